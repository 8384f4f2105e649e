"""What a change is given: one serializable transaction that knows the time, and the words around it.

Keeps true: everything done through one transaction becomes durable together or not at all. Does not know which
database is behind it.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from muster.clock import Instant

Value = str | int | float | bytes | None


class Row(Protocol):
    """A row of an answer; values by column name."""

    def __getitem__(self, column: str, /) -> Any: ...
    def keys(self) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asked: for what services record about a request."""

    access_key: str = ""
    source_ip: str = "127.0.0.1"
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Something to be carried after the commit, at least once: a message to a sibling, a timer, work for a runner."""

    kind: str
    subject: str
    payload: Mapping[str, Any]
    due_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Carried:
    """A delivery in a carrier's hands; `attempts` counts this one too."""

    id: int
    kind: str
    subject: str
    payload: dict[str, Any]
    due_at: Instant
    posted_at: Instant
    attempts: int


class Transaction(Protocol):
    """One change's view of the store. A change may be run again after a conflict, so it touches nothing else."""

    now: Instant
    account: str
    region: str
    caller: Caller

    def new_id(self) -> str:
        """A fresh UUID as text."""
        ...

    def random(self) -> float:
        """A number in [0, 1)."""
        ...

    def token(self, n_bytes: int) -> str:
        """An unguessable hexadecimal text of `n_bytes` bytes."""
        ...

    def one(self, sql: str, **values: Value) -> Row | None:
        """The first row of the answer, or None."""
        ...

    def all(self, sql: str, **values: Value) -> list[Row]:
        """All rows of the answer."""
        ...

    def run(self, sql: str, **values: Value) -> int:
        """Write; the number of rows it touched."""
        ...

    def savepoint(self) -> AbstractContextManager[None]:
        """A part that is undone by itself when its block raises."""
        ...

    def call(self, service: str, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Ask a sibling, in this transaction and in a savepoint; ServiceError when it refuses."""
        ...

    def offers(self, service: str, operation: str) -> bool:
        """Whether a sibling offers this operation in this process."""
        ...

    def post(self, delivery: Delivery) -> None:
        """Write down something to be carried after the commit, at least once."""
        ...

    def cancel(self, kind: str, subject: str) -> int:
        """Delete what was posted under this kind and subject and is not yet carried; how many."""
        ...

    def wake(self, topic: str) -> None:
        """Hint, after the commit, to whoever waits on `topic`; may be lost."""
        ...
