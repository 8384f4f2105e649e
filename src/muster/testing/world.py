"""A small world: real services on a real store, with simulated time and seeded ids, driven step by step.

Nothing happens by itself: `settle` carries what is due, `clock.advance` moves time. Does not speak HTTP.
"""

import asyncio
import atexit
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from muster.clock import SimulatedClock
from muster.engine.dispatcher import Dispatcher, Runner
from muster.ids import SeededIds
from muster.operation import Answer, CarryOutside, Operations, Service, Wait
from muster.store.port import NOBODY, Realm
from muster.store.sqlite import SqliteStore
from muster.transaction import Caller, Row, Transaction

T = TypeVar("T")

_loop = asyncio.new_event_loop()
atexit.register(_loop.close)


class World:
    """Services on a store, without a server. With a `path`, `restart` opens the same database anew."""

    def __init__(
        self,
        services: Iterable[Service],
        *,
        runners: Mapping[str, CarryOutside] | None = None,
        path: Path | None = None,
        clock: SimulatedClock | None = None,
        seed: int = 0,
        parts: Mapping[str, tuple[str, ...]] | None = None,
        carriers: Mapping[str, Callable[..., None]] | None = None,
    ) -> None:
        self.clock = clock or SimulatedClock()
        self.ids = SeededIds(seed)
        self.services = {service.name: service for service in services}
        self.operations = Operations(self.services)
        self._path = path
        self._runners = {kind: Runner(carry) for kind, carry in (runners or {}).items()}
        self._carriers = {kind: carry for service in self.services.values() for kind, carry in service.carriers.items()}
        self._carriers.update(carriers or {})
        self._parts = {**(parts or {}), **{name: service.migrations for name, service in self.services.items()}}
        self._begin()

    def _begin(self) -> None:
        self.store = SqliteStore(self._path, self.clock, self.ids, self.operations, Realm())
        self._let_go = weakref.finalize(self, self.store.close_now)
        self.run(self.store.open(self._parts))
        self.dispatcher = Dispatcher(self.store, self.clock, self.ids, self._carriers, self._runners)

    def restart(self) -> None:
        """Stop dead and start again on the same database."""
        assert self._path is not None, "a world in memory does not survive a restart"
        self._let_go()
        self._begin()
        self.run(self.dispatcher.recover())

    def run(self, work: Any) -> Any:
        """Run a coroutine to its end."""
        return _loop.run_until_complete(work)

    def change(self, change: Callable[[Transaction], T], caller: Caller = NOBODY) -> T:
        """Run a change."""
        result: T = self.run(self.store.change(change, caller))
        return result

    def rows(self, sql: str, **values: Any) -> list[Row]:
        """The rows that a query answers."""
        result: list[Row] = self.run(self.store.read(lambda tx: tx.all(sql, **values)))
        return result

    def call(self, service: str, operation: str, /, **request: Any) -> Answer:
        """Ask for an operation as a client would. One that waits is given time: what is due is carried, and the clock
        moves to the end of the wait when nothing came."""
        found = self.operations.asked(service, operation, request, inside=False)
        answer = self.change(lambda tx: found.run(tx, request))
        while isinstance(answer, Wait):
            self.settle()
            then, until = answer.then, answer.until
            answer = self.change(then)
            if isinstance(answer, Wait):
                self.clock.advance(max(0.0, until - self.clock.now()))
                answer = self.change(answer.then)
        return answer

    def settle(self) -> None:
        """Carry everything that is due now, and what that makes due."""

        async def all_due() -> None:
            while await self.dispatcher.pass_once() or self.dispatcher.flying:
                await self.dispatcher.landed()

        self.run(all_due())

    def pass_time(self, seconds: float) -> None:
        """Let `seconds` pass, carrying each delivery at the instant it is due."""
        end = self.clock.now() + seconds
        self.settle()
        while True:
            row = self.rows("SELECT MIN(due_at) AS due_at FROM deliveries")[0]
            if row["due_at"] is None or row["due_at"] > end:
                break
            self.clock.advance(max(0.0, row["due_at"] - self.clock.now()))
            self.settle()
        self.clock.advance(max(0.0, end - self.clock.now()))
        self.settle()
