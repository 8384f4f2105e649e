"""An operation is a row in a table: AWS's name and shapes on the outside, a function of a transaction inside.

Every door (HTTP, state machines, event targets, templates, the command line) goes through the same table, and none
has logic of its own.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.clock import Instant
from muster.errors import ServiceError, unsupported
from muster.transaction import Carried, Transaction

Request = Mapping[str, Any]
Answer = dict[str, Any]

# How a delivery is carried: inside the transaction that deletes its row, or outside by a runner, which acts and brings
# back the change that records the result.
Carry = Callable[[Transaction, Carried], None]
Outcome = Callable[[Transaction], None]
CarryOutside = Callable[[Carried], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Wait:
    """The answer comes later: ask `then` again when `topic` is woken, or when `until` has come."""

    topic: str
    until: Instant
    then: "Callable[[Transaction], Answer | Wait]"


@dataclass(frozen=True, slots=True)
class Operation:
    """What a service offers under one of AWS's operation names.

    `accepts` names the request's top-level members that are supported; any other is refused by name before `run`.
    `reads` runs on a snapshot beside the writer and must not write. `http_only` cannot be called by a sibling,
    `internal` only by one.
    """

    run: Callable[[Transaction, Request], Answer | Wait]
    accepts: frozenset[str]
    reads: bool = False
    http_only: bool = False
    internal: bool = False


@dataclass(frozen=True, slots=True)
class Service:
    """A service as the composition root sees it: its operations, its tables, what it carries inside transactions."""

    name: str
    operations: Mapping[str, Operation]
    migrations: tuple[str, ...] = ()
    carriers: Mapping[str, Carry] = field(default_factory=dict)


class Operations:
    """The one table: (service, operation) → function."""

    def __init__(self, services: Mapping[str, Service]) -> None:
        self._services = services

    def find(self, service: str, operation: str) -> Operation:
        """The operation of that name; UnknownOperationException when there is none here."""
        known = self._services.get(service)
        if known is None:
            raise unsupported(f"the service {service}")
        found = known.operations.get(operation)
        if found is None:
            raise unsupported(f"the operation {service}:{operation}")
        return found

    def offers(self, service: str, operation: str) -> bool:
        """Whether the operation is in the table."""
        known = self._services.get(service)
        return known is not None and operation in known.operations

    def asked(self, service: str, operation: str, request: Request, *, inside: bool) -> Operation:
        """The operation, once it is known to be open to this door and to support all that the request names."""
        found = self.find(service, operation)
        if found.internal and not inside:
            raise unsupported(f"the operation {service}:{operation}")
        if found.http_only and inside:
            raise unsupported(f"{service}:{operation} inside a transaction")
        if not request.keys() <= found.accepts:
            strange = ", ".join(sorted(request.keys() - found.accepts))
            raise unsupported(f"the parameter {strange} of {service}:{operation}")
        return found

    def call(self, tx: Transaction, service: str, operation: str, request: Request) -> Answer:
        """Ask a sibling inside the transaction, in a savepoint."""
        found = self.asked(service, operation, request, inside=True)
        with tx.savepoint():
            answer = found.run(tx, request)
            # Refused within the savepoint, so that nothing of the refused remains.
            if isinstance(answer, Wait):
                what = f"{service}:{operation} cannot be waited for inside a transaction."
                raise ServiceError("NotImplemented", what)
        return answer
