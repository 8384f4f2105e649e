"""Simple Notification Service: one message for everyone who subscribed. The face is `operations`; `topics`,
`subscriptions`, `filters`, `messages`, `envelope`, `delivering` and `backoff` are the ideas behind it."""

from muster.operation import Service
from muster.services.sns.delivering import DELIVER, GROUP, Delivering
from muster.services.sns.operations import operations
from muster.services.sns.schema import MIGRATIONS

__all__ = ["SERVICE", "service"]


def service(endpoint: str) -> Service:
    """The service of a server that is reached at `endpoint`, which the addresses in its messages begin with."""
    delivering = Delivering(endpoint)
    carriers = {DELIVER: delivering.carry, GROUP: delivering.carry_group}
    return Service("sns", operations(delivering), MIGRATIONS, carriers)


SERVICE = service("http://127.0.0.1:4566")
