"""The port to a store: changes in serializable transactions, reads on snapshots, and word of what was committed.

Keeps true: a change is acknowledged after its commit is on disk; a read sees every change acknowledged before it; a
change that fails harms no other. Does not know what the changes are about, nor how a database is spoken to: a driver
provides `execute` and commits.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import orjson

from muster.clock import Clock, Instant
from muster.ids import Ids
from muster.operation import Operations
from muster.transaction import Caller, Delivery, Row, Transaction, Value

T = TypeVar("T")

NOBODY = Caller()

DELIVERIES = """
CREATE TABLE deliveries (
    id SERIAL_KEY,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    payload TEXT NOT NULL,
    due_at DOUBLE PRECISION NOT NULL,   -- while leased: when the lease ends and the delivery is due again
    posted_at DOUBLE PRECISION NOT NULL,
    attempts BIGINT NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    lease TEXT,
    last_error TEXT,
    CHECK (lease IS NULL OR attempts > 0)
);
CREATE INDEX deliveries_due ON deliveries (kind, due_at, id);
CREATE INDEX deliveries_subject ON deliveries (subject, kind);
"""

# The store's own part of the schema. A script is never edited once it has been released: the next one amends it.
PART = "store"
MIGRATIONS = (DELIVERIES,)


@dataclass(frozen=True, slots=True)
class Realm:
    """The one account and region that a data folder speaks for."""

    account: str = "000000000000"
    region: str = "us-east-1"


@dataclass(slots=True)
class Committed:
    """What a commit leaves for those who listen: topics woken, and per delivery kind the earliest instant due."""

    topics: set[str] = field(default_factory=set)
    due: dict[str, Instant] = field(default_factory=dict)

    def add(self, other: "Committed") -> None:
        """Take in what another change of the same commit left."""
        self.topics |= other.topics
        for kind, due_at in other.due.items():
            self.note_due(kind, due_at)

    def note_due(self, kind: str, due_at: Instant) -> None:
        known = self.due.get(kind)
        if known is None or due_at < known:
            self.due[kind] = due_at


class Store(Protocol):
    """What the engine needs of a store."""

    async def open(self, parts: Mapping[str, tuple[str, ...]]) -> None:
        """Bring the schema of each part up to its last script; MusterError when it is newer than this program."""
        ...

    async def change(self, change: Callable[[Transaction], T], caller: Caller = NOBODY) -> T:
        """Run `change` in a serializable transaction; returns once it is on disk, raises what it raised."""
        ...

    async def read(self, query: Callable[[Transaction], T], caller: Caller = NOBODY) -> T:
        """Run `query`, which writes nothing, on a snapshot beside the writer."""
        ...

    def subscribe(self, hear: Callable[[Committed], None]) -> None:
        """Have `hear` called after every commit that woke or posted something."""
        ...

    async def close(self) -> None:
        """Finish the changes under way and let go of the database."""
        ...


class BoundTransaction:
    """The part of a transaction that is the same for every driver."""

    __slots__ = ("_ids", "_operations", "account", "caller", "left", "now", "region")

    def __init__(self, realm: Realm, clock: Clock, ids: Ids, operations: Operations, caller: Caller) -> None:
        self.now: Instant = clock.now()
        self.account = realm.account
        self.region = realm.region
        self.caller = caller
        self.left = Committed()
        self._ids = ids
        self._operations = operations

    def new_id(self) -> str:
        return self._ids.new_id()

    def random(self) -> float:
        return self._ids.random()

    def token(self, n_bytes: int) -> str:
        return self._ids.token(n_bytes)

    def one(self, sql: str, **values: Value) -> Row | None:
        raise AssertionError("a driver provides this")

    def all(self, sql: str, **values: Value) -> list[Row]:
        raise AssertionError("a driver provides this")

    def run(self, sql: str, **values: Value) -> int:
        raise AssertionError("a driver provides this")

    def savepoint(self) -> AbstractContextManager[None]:
        raise AssertionError("a driver provides this")

    def call(self, service: str, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._operations.call(self, service, operation, request)

    def offers(self, service: str, operation: str) -> bool:
        return self._operations.offers(service, operation)

    def post(self, delivery: Delivery) -> None:
        due_at = self.now if delivery.due_at is None else delivery.due_at
        self.run(
            "INSERT INTO deliveries (kind, subject, payload, due_at, posted_at)"
            " VALUES (:kind, :subject, :payload, :due_at, :now)",
            kind=delivery.kind,
            subject=delivery.subject,
            payload=orjson.dumps(delivery.payload).decode(),
            due_at=due_at,
            now=self.now,
        )
        self.left.note_due(delivery.kind, due_at)

    def cancel(self, kind: str, subject: str) -> int:
        return self.run("DELETE FROM deliveries WHERE kind = :kind AND subject = :subject", kind=kind, subject=subject)

    def wake(self, topic: str) -> None:
        self.left.topics.add(topic)


def statements(script: str, complete: Callable[[str], bool]) -> Iterator[str]:
    """The statements of an SQL script, one by one; `complete` says whether a text is whole."""
    pending = ""
    for piece in script.split(";"):
        pending += piece + ";"
        if complete(pending):
            if pending.strip(" \t\r\n;"):
                yield pending
            pending = ""
    assert not pending.strip(" \t\r\n;"), "the script ends amid a statement"
