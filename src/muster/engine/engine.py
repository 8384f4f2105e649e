"""The door to the operations table for everything outside a transaction.

Keeps true: an operation is one change (or one read on a snapshot); an answer that comes later is asked for again when
its topic is woken, and no wake between asking and waiting is missed. Does not know any protocol.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from muster.clock import Clock
from muster.operation import Answer, Operations, Request, Wait
from muster.store.port import NOBODY, Committed, Store
from muster.transaction import Caller, Transaction

T = TypeVar("T")


class Engine:
    """Runs operations on a store."""

    def __init__(self, store: Store, operations: Operations, clock: Clock) -> None:
        self._store = store
        self._operations = operations
        self._clock = clock
        self._waiters: dict[str, set[asyncio.Event]] = {}
        store.subscribe(self._heard)

    async def change(self, change: Callable[[Transaction], T], caller: Caller = NOBODY) -> T:
        """Run a change; returns when it is on disk."""
        return await self._store.change(change, caller)

    async def read(self, query: Callable[[Transaction], T], caller: Caller = NOBODY) -> T:
        """Run a query on a snapshot."""
        return await self._store.read(query, caller)

    async def operate(self, service: str, operation: str, request: Request, caller: Caller = NOBODY) -> Answer:
        """Answer one request; ServiceError when the service refuses it or does not offer it."""
        found = self._operations.asked(service, operation, request, inside=False)
        run = found.run
        if found.reads:
            answer = await self._store.read(lambda tx: run(tx, request), caller)
        else:
            answer = await self._store.change(lambda tx: run(tx, request), caller)
        while isinstance(answer, Wait):
            answer = await self._later(answer, caller)
        return answer

    async def _later(self, wait: Wait, caller: Caller) -> Answer | Wait:
        woken = asyncio.Event()
        waiters = self._waiters.setdefault(wait.topic, set())
        waiters.add(woken)
        try:
            # Asked once more after registering: what happened between the first look and now is not missed.
            answer = await self._store.change(wait.then, caller)
            while isinstance(answer, Wait) and answer.topic == wait.topic:
                remaining = answer.until - self._clock.now()
                if remaining > 0:
                    try:
                        async with asyncio.timeout(remaining):
                            await woken.wait()
                    except TimeoutError:
                        pass
                woken.clear()
                answer = await self._store.change(answer.then, caller)
            return answer
        finally:
            waiters.discard(woken)
            if not waiters:
                self._waiters.pop(wait.topic, None)

    def _heard(self, committed: Committed) -> None:
        for topic in committed.topics:
            for waiter in self._waiters.get(topic, ()):
                waiter.set()
