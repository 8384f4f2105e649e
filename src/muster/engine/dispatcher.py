"""Carries deliveries that are due: inside a transaction, or by a runner outside.

Keeps true: a delivery inside is carried and its row deleted in one commit, hence exactly once; one outside is leased
for as long as it is carried, at least once, never twice at a time while the lease holds, and its result is recorded in
the transaction that deletes its row. What fails is tried again later and says why. The rows are the truth: memory
holds only a hint, per kind, of when to look next. Does not know what the deliveries are about.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import orjson

from muster.clock import Clock, Instant
from muster.ids import Ids
from muster.operation import Carry, CarryOutside, Outcome
from muster.store.port import Committed, Store
from muster.transaction import Carried, Row, Transaction

log = logging.getLogger(__name__)

# One pass carries this many of a kind at most, and no longer than this, so that requests get their turn.
PASS_ROWS = 100
PASS_SECONDS = 0.02
# A runner's lease, and how often it is renewed while the runner works: a dead process is noticed after the lease.
LEASE_SECONDS = 60.0
RENEW_SECONDS = 15.0
# Back-off after the n-th failed attempt: doubling from one second to five minutes.
BACKOFF_SECONDS_MAX = 300.0
# With nothing due and nothing posted, look again now and then: another process may have posted.
IDLE_SECONDS = 30.0


def backoff_seconds(attempts: int) -> float:
    """How long to wait after `attempts` failed attempts."""
    return min(2.0 ** min(attempts - 1, 16), BACKOFF_SECONDS_MAX)


@dataclass(frozen=True, slots=True)
class Runner:
    """Carries one kind outside, up to `at_once` at a time."""

    carry: CarryOutside
    at_once: int = 1000


def carried(row: Row) -> Carried:
    return Carried(
        id=row["id"],
        kind=row["kind"],
        subject=row["subject"],
        payload=orjson.loads(row["payload"]),
        due_at=row["due_at"],
        posted_at=row["posted_at"],
        attempts=row["attempts"] + 1,
    )


class Dispatcher:
    """Looks for due deliveries and has them carried."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        carriers: Mapping[str, Carry],
        runners: Mapping[str, Runner],
    ) -> None:
        assert not carriers.keys() & runners.keys(), "a kind is carried inside or outside, not both"
        self._store = store
        self._clock = clock
        self._ids = ids
        self._carriers = carriers
        self._runners = runners
        self._next: dict[str, Instant] = dict.fromkeys((*carriers, *runners), 0.0)
        self._posted = asyncio.Event()
        self._flying: dict[int, tuple[str, str, asyncio.Task[None]]] = {}
        store.subscribe(self._heard)

    async def recover(self) -> None:
        """At start, when no other process works on this store: leases of the process before are over."""
        await self._store.change(lambda tx: _release_all(tx))

    async def run(self) -> None:
        """Carry whatever becomes due, until cancelled."""
        renewing = asyncio.create_task(self._renew())
        try:
            while True:
                self._posted.clear()
                if not await self.pass_once():
                    await self._idle()
        finally:
            renewing.cancel()
            flying = [task for _, _, task in self._flying.values()]
            for task in flying:
                task.cancel()
            await asyncio.gather(renewing, *flying, return_exceptions=True)

    async def pass_once(self) -> bool:
        """Carry (inside) or take off with (outside) what is due now; whether there was anything."""
        now = self._clock.now()
        due = [kind for kind, at in self._next.items() if at <= now and self._free(kind) > 0]
        if not due:
            return False
        results = await asyncio.gather(*(self._carry_kind(kind) for kind in due))
        return any(results)

    async def landed(self) -> None:
        """Wait until no runner is at work; for tests."""
        while self._flying:
            await asyncio.gather(*(task for _, _, task in self._flying.values()))

    @property
    def flying(self) -> int:
        """How many deliveries are outside at this moment."""
        return len(self._flying)

    def _heard(self, committed: Committed) -> None:
        for kind, due_at in committed.due.items():
            known = self._next.get(kind)
            if known is not None:
                self._next[kind] = min(known, due_at)
                self._posted.set()

    def _free(self, kind: str) -> int:
        runner = self._runners.get(kind)
        if runner is None:
            return PASS_ROWS
        return runner.at_once - sum(1 for flying_kind, _, _ in self._flying.values() if flying_kind == kind)

    async def _idle(self) -> None:
        now = self._clock.now()
        waiting = [at - now for kind, at in self._next.items() if self._free(kind) > 0]
        try:
            async with asyncio.timeout(max(0.001, min([IDLE_SECONDS, *waiting]))):
                await self._posted.wait()
        except TimeoutError:
            pass

    async def _carry_kind(self, kind: str) -> bool:
        # Told of a post from here on, `_heard` lowers the hint again; infinity until the look says better.
        self._next[kind] = float("inf")
        carry = self._carriers.get(kind)
        try:
            if carry is not None:
                count, next_at = await self._store.change(lambda tx: carry_inside(tx, kind, carry))
            else:
                count, next_at = await self._take_off(kind, self._runners[kind])
        except Exception:
            log.exception("deliveries of kind %s could not be carried; trying again", kind)
            count, next_at = 0, self._clock.now() + 1.0
        self._next[kind] = min(self._next[kind], next_at)
        return count > 0

    async def _take_off(self, kind: str, runner: Runner) -> tuple[int, Instant]:
        lease = self._ids.new_id()
        free = min(self._free(kind), PASS_ROWS)
        taken, next_at = await self._store.change(lambda tx: take(tx, kind, lease, free))
        for delivery in taken:
            task = asyncio.create_task(self._fly(delivery, lease, runner))
            self._flying[delivery.id] = (kind, lease, task)
        return len(taken), next_at

    async def _fly(self, delivery: Carried, lease: str, runner: Runner) -> None:
        try:
            try:
                outcome = await runner.carry(delivery)
                await self._store.change(lambda tx: land(tx, delivery, lease, outcome))
            except Exception as error:
                log.exception("delivery %d of kind %s failed; it will be tried again", delivery.id, delivery.kind)
                reason = f"{type(error).__name__}: {error}"
                await self._store.change(lambda tx: put_back(tx, delivery, lease, reason))
        finally:
            self._flying.pop(delivery.id, None)
            # A place is free: whatever of this kind is due can take it.
            self._next[delivery.kind] = 0.0
            self._posted.set()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            flying = [(id_, lease) for id_, (_, lease, _) in self._flying.items()]
            if flying:
                await self._store.change(lambda tx, flying=flying: renew(tx, flying))  # type: ignore[misc]


def due_rows(tx: Transaction, kind: str, limit: int) -> list[Row]:
    return tx.all(
        "SELECT id, kind, subject, payload, due_at, posted_at, attempts FROM deliveries"
        " WHERE kind = :kind AND due_at <= :now ORDER BY due_at, id LIMIT :limit",
        kind=kind,
        now=tx.now,
        limit=limit,
    )


def next_due(tx: Transaction, kind: str) -> Instant:
    row = tx.one("SELECT MIN(due_at) AS due_at FROM deliveries WHERE kind = :kind", kind=kind)
    return row["due_at"] if row is not None and row["due_at"] is not None else float("inf")


def carry_inside(tx: Transaction, kind: str, carry: Carry) -> tuple[int, Instant]:
    """Carry due deliveries of a kind in this transaction; how many, and when the next is due."""
    stop_at = time.perf_counter() + PASS_SECONDS
    count = 0
    for row in due_rows(tx, kind, PASS_ROWS):
        delivery = carried(row)
        # An earlier one of this pass may have cancelled it.
        if tx.run("DELETE FROM deliveries WHERE id = :id AND kind = :kind", id=delivery.id, kind=kind) == 0:
            continue
        count += 1
        try:
            with tx.savepoint():
                carry(tx, delivery)
        except Exception as error:
            log.exception("delivery %d of kind %s failed; it will be tried again", delivery.id, kind)
            _write_back(tx, delivery, f"{type(error).__name__}: {error}")
        if time.perf_counter() > stop_at:
            break
    return count, next_due(tx, kind)


def _write_back(tx: Transaction, delivery: Carried, reason: str) -> None:
    tx.run(
        "INSERT INTO deliveries (id, kind, subject, payload, due_at, posted_at, attempts, last_error)"
        " VALUES (:id, :kind, :subject, :payload, :due_at, :posted_at, :attempts, :reason)",
        id=delivery.id,
        kind=delivery.kind,
        subject=delivery.subject,
        payload=orjson.dumps(delivery.payload).decode(),
        due_at=tx.now + backoff_seconds(delivery.attempts),
        posted_at=delivery.posted_at,
        attempts=delivery.attempts,
        reason=reason,
    )


def take(tx: Transaction, kind: str, lease: str, limit: int) -> tuple[list[Carried], Instant]:
    """Lease up to `limit` due deliveries of a kind; them, and when the next is due."""
    rows = due_rows(tx, kind, limit)
    for row in rows:
        tx.run(
            "UPDATE deliveries SET lease = :lease, attempts = attempts + 1, due_at = :until WHERE id = :id",
            lease=lease,
            until=tx.now + LEASE_SECONDS,
            id=row["id"],
        )
    return [carried(row) for row in rows], next_due(tx, kind)


def land(tx: Transaction, delivery: Carried, lease: str, outcome: Outcome) -> None:
    """Record what a runner brought back, unless the lease was lost or the delivery cancelled meanwhile."""
    if tx.run("DELETE FROM deliveries WHERE id = :id AND lease = :lease", id=delivery.id, lease=lease):
        outcome(tx)


def put_back(tx: Transaction, delivery: Carried, lease: str, reason: str) -> None:
    """After a failed attempt: due again after a back-off, with the reason."""
    due_at = tx.now + backoff_seconds(delivery.attempts)
    tx.run(
        "UPDATE deliveries SET lease = NULL, due_at = :due_at, last_error = :reason WHERE id = :id AND lease = :lease",
        due_at=due_at,
        reason=reason,
        id=delivery.id,
        lease=lease,
    )


def renew(tx: Transaction, flying: Iterable[tuple[int, str]]) -> None:
    """Prolong the leases of deliveries that are still outside."""
    for id_, lease in flying:
        tx.run(
            "UPDATE deliveries SET due_at = :until WHERE id = :id AND lease = :lease",
            until=tx.now + LEASE_SECONDS,
            id=id_,
            lease=lease,
        )


def _release_all(tx: Transaction) -> None:
    tx.run("UPDATE deliveries SET lease = NULL, due_at = :now WHERE lease IS NOT NULL", now=tx.now)
