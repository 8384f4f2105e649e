"""Simple Queue Service: messages that wait for whoever works on them. The face is `operations`; `queues`, `messages`,
`attributes`, `moves` and `permissions` are the ideas behind it."""

from muster.operation import Service
from muster.services.sqs import moves
from muster.services.sqs.operations import operations
from muster.services.sqs.schema import MIGRATIONS

__all__ = ["SERVICE", "service"]


def service(endpoint: str) -> Service:
    """The service of a server that is reached at `endpoint`, which its queue URLs begin with."""
    return Service("sqs", operations(endpoint), MIGRATIONS, {moves.KIND: moves.carry})


SERVICE = service("http://127.0.0.1:4566")
