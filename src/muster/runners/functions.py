"""Carries invocations to workers: one worker per invocation at a time, kept warm for the next one.

Keeps true: a worker serves one revision of one version; one that is idle for long, or whose revision is over, is ended;
none outlives the runner. The outcome and the log are recorded in the transaction that completes the delivery. Does not
decide what runs when: the Lambda service does.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from muster.clock import Clock, SystemClock
from muster.errors import ServiceError
from muster.runners import package, platform_log
from muster.runners.function_log import FunctionLog, Line, stream_name
from muster.runners.runtime_api import Event
from muster.runners.runtimes import InvalidEntrypoint, Revision, Surroundings
from muster.runners.worker import Attempt, Worker, invalid_entrypoint
from muster.transaction import Carried, Transaction

log = logging.getLogger(__name__)

T = TypeVar("T")
Outcome = Callable[[Transaction], None]

# A warm worker is ended after so long without work, and when more than so many are idle.
IDLE_SECONDS_MAX = 300.0
IDLE_WORKERS_MAX = 32
# So many initialize at once; who waits for a start takes a worker that becomes free meanwhile, so that a burst of short
# calls does not start a crowd of interpreters.
STARTS_AT_ONCE = max(2, os.cpu_count() or 1)
_REAP_SECONDS = 15.0
# What a function prints is stored this often while it runs, and when its invocation ends.
_LOG_SECONDS = 1.0
# A change is short, so that others get their turn.
LINES_AT_ONCE = 500


class Engine(Protocol):
    """What the runner needs of the engine (or of a store)."""

    async def change(self, change: Callable[[Transaction], T]) -> T: ...
    async def read(self, query: Callable[[Transaction], T]) -> T: ...


class FunctionRunner:
    """The carriers of the Lambda service's deliveries."""

    def __init__(
        self,
        engine: Engine,
        data_folder: Path,
        endpoint_url: str,
        *,
        region: str = "us-east-1",
        clock: Clock | None = None,
        idle_seconds_max: float = IDLE_SECONDS_MAX,
        idle_workers_max: int = IDLE_WORKERS_MAX,
    ) -> None:
        self._engine = engine
        self._clock = clock or SystemClock()
        self._cache = data_folder / "functions" / "code"
        self._around = Surroundings(endpoint_url, region, data_folder / "functions" / "home")
        self._idle_seconds_max = idle_seconds_max
        self._idle_workers_max = idle_workers_max
        self._idle: list[Worker] = []
        self._busy: dict[str, Worker] = {}
        self._invoking: set[str] = set()
        self._cancelled: set[str] = set()
        self._starting = 0
        self._freed = asyncio.Condition()
        self._unpacking: dict[str, asyncio.Lock] = {}
        self._flushing: dict[Worker, asyncio.Task[None]] = {}
        self._reaper: asyncio.Task[None] | None = None
        self.carriers = {"lambda.invoke": self.invoke, "lambda.kill": self.kill}

    async def start(self) -> None:
        """Call before deliveries are carried: closes calls that the process before left, and starts what waits."""
        self._around.home.mkdir(parents=True, exist_ok=True)
        recovered = await self._engine.change(lambda tx: tx.call("lambda", "RecoverInvocations", {}))
        await asyncio.to_thread(package.sweep, self._cache, recovered["CodeSha256"])
        self._reaper = asyncio.create_task(self._reap())

    async def stop(self) -> None:
        """End all workers."""
        if self._reaper is not None:
            self._reaper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reaper
        for task in self._flushing.values():
            task.cancel()
        workers = [*self._idle, *self._busy.values()]
        self._idle.clear()
        for worker in workers:
            await worker.kill()
            await self._store_lines(worker)

    @property
    def idle(self) -> int:
        """How many workers are warm and without work."""
        return len(self._idle)

    async def invoke(self, delivery: Carried) -> Outcome:
        """Run one attempt of an invocation."""
        id_ = delivery.subject
        self._invoking.add(id_)
        try:
            return await self._invoke(id_, delivery)
        finally:
            self._invoking.discard(id_)
            self._cancelled.discard(id_)

    async def _invoke(self, id_: str, delivery: Carried) -> Outcome:
        asked = {"InvocationId": id_, "Attempt": delivery.attempts}
        job: dict[str, Any] = await self._engine.read(lambda tx: tx.call("lambda", "TakeInvocation", asked))
        match job["Verdict"]:
            case "Gone":
                return lambda tx: None
            case "Abandoned":
                return _not_run(
                    id_,
                    ServiceError(
                        "ServiceException", "The invocation was interrupted before the function had answered."
                    ),
                )
            case "Refused":
                return _not_run(id_, ServiceError(job["Code"], job["Message"]))
        revision = Revision(job["FunctionName"], job["Version"], job["Revision"], job["Settings"], job["CodeSha256"])
        try:
            worker = await self._worker(revision)
        except ServiceError as refusal:
            return _not_run(id_, refusal)
        except InvalidEntrypoint as fault:
            attempt = invalid_entrypoint(id_, fault)
            return _recorded(id_, attempt, "", None, [])
        except OSError as fault:
            log.exception("a worker for %s could not be started", revision.function)
            return _not_run(id_, ServiceError("ServiceException", f"The function could not be started: {fault}"))
        return await self._run(worker, id_, job)

    async def _run(self, worker: Worker, id_: str, job: dict[str, Any]) -> Outcome:
        if id_ in self._cancelled:
            await self._rest(worker)
            return lambda tx: None
        self._busy[id_] = worker
        done = False
        try:
            event = Event(id_, job["Payload"], {})
            attempt = await worker.work(event, job["InvokedFunctionArn"], job["ClientContext"])
            done = True
        finally:
            if not done:
                await worker.kill()
                await self._store_lines(worker)
            self._busy.pop(id_, None)
        if worker.alive:
            await self._rest(worker)
        else:
            await worker.kill()
        if id_ in self._cancelled:
            # Its delivery is gone, so nobody would record what it printed.
            await self._store_lines(worker)
            return lambda tx: None
        flushing = self._flushing.pop(worker, None)
        if flushing is not None:
            flushing.cancel()
        lines = worker.log.take()
        rest = await self._all_but_the_last(worker.log, lines)
        return _recorded(id_, attempt, worker.log.tail(), worker.log, rest)

    async def kill(self, delivery: Carried) -> Outcome:
        """End the worker of an invocation that was cancelled, if it is still at work."""
        if delivery.subject in self._invoking:
            self._cancelled.add(delivery.subject)
        worker = self._busy.get(delivery.subject)
        if worker is not None:
            await worker.kill()
        return lambda tx: None

    async def _worker(self, revision: Revision) -> Worker:
        """A warm worker of that revision, or a new one; idle ones of an older revision are ended."""
        async with self._freed:
            while True:
                warm = self._warm(revision)
                if warm is not None:
                    return warm
                if self._starting < STARTS_AT_ONCE:
                    break
                await self._freed.wait()
            self._starting += 1
        try:
            return await self._started(revision)
        finally:
            self._starting -= 1
            await self._tell()

    async def _tell(self) -> None:
        """A worker is free, or another may start."""
        async with self._freed:
            self._freed.notify_all()

    def _warm(self, revision: Revision) -> Worker | None:
        for worker in reversed(self._idle):
            if worker.revision == revision and worker.alive:
                self._idle.remove(worker)
                return worker
        return None

    async def _started(self, revision: Revision) -> Worker:
        outdated = [
            worker
            for worker in self._idle
            if (worker.revision.function, worker.revision.version) == (revision.function, revision.version)
        ]
        for worker in outdated:
            self._idle.remove(worker)
            await worker.kill()
        root = await self._root(revision.code_sha256)
        token = os.urandom(16).hex()
        stream = stream_name(self._clock.now(), revision.version, token)
        worker = Worker(
            revision,
            root,
            FunctionLog(self._clock, revision.log_group, stream, platform_log.frame(revision.logging)),
            self._around,
            self._clock,
        )
        worker.on_output = lambda: self._soon_stored(worker)
        await worker.start()
        try:
            await worker.initialized()
        except BaseException:
            await worker.kill()
            raise
        return worker

    async def _root(self, sha256: str) -> Path:
        """The folder of a package, unpacked once."""
        folder = self._cache / package.folder_name(sha256)
        if folder.is_dir():
            return folder
        async with self._unpacking.setdefault(sha256, asyncio.Lock()):
            if not folder.is_dir():
                answer = await self._engine.read(lambda tx: tx.call("lambda", "GetCode", {"CodeSha256": sha256}))
                await asyncio.to_thread(package.unpacked, self._cache, sha256, answer["ZipFile"])
        return folder

    async def _rest(self, worker: Worker) -> None:
        worker.idle_since = asyncio.get_running_loop().time()
        self._idle.append(worker)
        await self._tell()

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(min(_REAP_SECONDS, self._idle_seconds_max))
            await self.reap()

    async def reap(self) -> None:
        """End workers that have been idle for long or are dead, and the longest idle of too many."""
        now = asyncio.get_running_loop().time()
        spare = len(self._idle) - self._idle_workers_max
        over = [
            worker
            for position, worker in enumerate(self._idle)
            if position < spare or now - worker.idle_since > self._idle_seconds_max or not worker.alive
        ]
        for worker in over:
            self._idle.remove(worker)
        for worker in over:
            await worker.kill()
            await self._store_lines(worker)

    def _soon_stored(self, worker: Worker) -> None:
        if worker.log.waiting and worker not in self._flushing:
            self._flushing[worker] = asyncio.create_task(self._store_later(worker))

    async def _store_later(self, worker: Worker) -> None:
        await asyncio.sleep(_LOG_SECONDS)
        self._flushing.pop(worker, None)
        await self._store_lines(worker)

    async def _store_lines(self, worker: Worker) -> None:
        if worker.log.waiting:
            rest = await self._all_but_the_last(worker.log, worker.log.take())
            await self._engine.change(lambda tx: _store(tx, worker.log, rest))

    async def _all_but_the_last(self, printed: FunctionLog, lines: list[Line]) -> list[Line]:
        """Store lines in short changes, but for the last few."""
        while len(lines) > LINES_AT_ONCE:
            some, lines = lines[:LINES_AT_ONCE], lines[LINES_AT_ONCE:]
            await self._engine.change(lambda tx, some=some: _store(tx, printed, some))  # type: ignore[misc]
        return lines


def _not_run(id_: str, refusal: ServiceError) -> Outcome:
    error = {"Code": refusal.code, "Message": refusal.message}

    def record(tx: Transaction) -> None:
        tx.call("lambda", "FinishInvocation", {"InvocationId": id_, "Error": error})

    return record


def _recorded(id_: str, attempt: Attempt, tail: str, printed: FunctionLog | None, lines: list[Line]) -> Outcome:
    request: dict[str, Any] = {"InvocationId": id_, "Payload": attempt.payload, "LogTail": tail}
    if attempt.function_error is not None:
        request["FunctionError"] = attempt.function_error
    if printed is not None:
        request["LogStream"] = printed.stream

    def record(tx: Transaction) -> None:
        tx.call("lambda", "FinishInvocation", request)
        if printed is not None and lines:
            _store(tx, printed, lines)

    return record


def _store(tx: Transaction, printed: FunctionLog, lines: list[Line]) -> None:
    if not tx.offers("logs", "RecordEvents"):
        return
    events = [{"timestamp": line.at_ms, "message": line.message} for line in lines]
    tx.call(
        "logs", "RecordEvents", {"logGroupName": printed.group, "logStreamName": printed.stream, "logEvents": events}
    )
