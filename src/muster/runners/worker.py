"""One worker: a process of a function that works on one event at a time, and what became of each.

Keeps true: a worker that timed out, exited or failed to start is dead with all its children before its outcome is
told; whatever it printed before its answer is in the log. Does not know the store, nor which worker gets which event.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from muster.clock import Clock
from muster.runners import runtimes
from muster.runners.function_log import FunctionLog
from muster.runners.platform_log import Report, instant
from muster.runners.runtime_api import RESPONSE_BYTES_MAX, Brought, Event, Faulted, Overflowed, Responded, RuntimeApi
from muster.runners.runtimes import InvalidEntrypoint, Revision, Surroundings

# Lambda gives an initialization 10 s and then begins again within the function's timeout; here machines are shared and
# may be slow to start an interpreter, so it gets a minute, once.
INIT_SECONDS_MAX = 60.0
_READ_BYTES = 65_536


# How the platform's report calls the end of a worker, and the type of its error.
Status = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of an event: the payload to be told, and the kind of error if it was one."""

    payload: bytes
    function_error: str | None = None


class Worker:
    """A process of a function, from its start to its death."""

    def __init__(self, revision: Revision, root: Path, log: FunctionLog, around: Surroundings, clock: Clock) -> None:
        self.revision = revision
        self.log = log
        self.idle_since = 0.0
        self.on_output: Callable[[], None] = lambda: None
        self._root = root
        self._around = around
        self._clock = clock
        self._api = RuntimeApi()
        self._process: asyncio.subprocess.Process | None = None
        self._pipe: int | None = None
        self._exit: asyncio.Task[int] | None = None
        self._started_at = 0.0
        self._init_seconds: float | None = None
        self._init_failed = False
        self._fresh = True

    @property
    def alive(self) -> bool:
        """Whether the process can take another event."""
        return self._exit is not None and not self._exit.done() and self._api.init_fault is None

    async def start(self) -> None:
        """Start the process; it initializes on its own from here."""
        await self._api.open()
        try:
            command = runtimes.command(self.revision, self._root)
            environment = runtimes.environment(
                self.revision, self._root, self._api.address, self.log.stream, self._around
            )
            read_end, write_end = os.pipe()
            try:
                self._started_at = time.monotonic()
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-ISE",
                    str(runtimes.LAUNCH),
                    str(os.getpid()),
                    *command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=write_end,
                    stderr=write_end,
                    cwd=self._root,
                    env=environment,
                    start_new_session=True,
                )
            except BaseException:
                os.close(read_end)
                raise
            finally:
                os.close(write_end)
        except BaseException:
            self._api.close()
            raise
        os.set_blocking(read_end, False)
        self._pipe = read_end
        asyncio.get_running_loop().add_reader(read_end, self._drain)
        self._exit = asyncio.create_task(self._process.wait())

    def _drain(self) -> None:
        """Take in all that the process has printed so far."""
        while self._pipe is not None:
            try:
                printed = os.read(self._pipe, _READ_BYTES)
            except BlockingIOError:
                break
            except OSError:
                printed = b""
            if not printed:
                self._close_pipe()
                break
            self.log.feed(printed)
        self.on_output()

    def _close_pipe(self) -> None:
        if self._pipe is not None:
            asyncio.get_running_loop().remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = None

    async def work(self, event: Event, invoked_arn: str, client_context: str | None) -> Attempt:
        """Have the process work on an event, killing it when it does not end within the function's timeout."""
        assert self._exit is not None, "a worker is started before it works"
        request_id = event.request_id
        first, self._fresh = self._fresh, False
        self.log.start(request_id, self.revision.version)
        begun_at = time.monotonic()
        status: Status = (None, None)
        if await self.initialized():
            begun_at = time.monotonic()
            timeout = float(self.revision.settings["Timeout"])
            brought = await self._brought(self._event(event, invoked_arn, client_context, timeout), timeout)
        else:
            timeout = INIT_SECONDS_MAX
            brought = self._api.init_fault
        duration = time.monotonic() - begun_at
        self._drain()
        if isinstance(brought, Responded | Faulted) and brought is not self._api.init_fault:
            attempt = Attempt(brought.payload, "Unhandled" if isinstance(brought, Faulted) else None)
            used_mb = self._memory_mb()
        else:
            used_mb = self._memory_mb()
            attempt, status = await self._fatal(request_id, brought, timeout)
        init = self._init_seconds if first else None
        self.log.end(request_id, Report(duration, self.revision.settings["MemorySize"], used_mb, init, *status))
        return attempt

    async def initialized(self) -> bool:
        """Wait until the process asks for its first event; False when it never will."""
        assert self._exit is not None, "a worker is started before it works"
        if not self._api.ready.is_set() and not self._init_failed:
            ready = asyncio.create_task(self._api.ready.wait())
            try:
                await asyncio.wait({ready, self._exit}, timeout=INIT_SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED)
            finally:
                ready.cancel()
        if not self._api.ready.is_set():
            self._init_failed = True
            return False
        if self._init_seconds is None:
            self._init_seconds = time.monotonic() - self._started_at
        return True

    def _event(self, event: Event, invoked_arn: str, client_context: str | None, timeout: float) -> Event:
        headers = {
            "Lambda-Runtime-Deadline-Ms": str(int((self._clock.now() + timeout) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": invoked_arn,
            "Lambda-Runtime-Trace-Id": f"Root=1-{int(self._clock.now()):08x}-{event.request_id.replace('-', '')[:24]};Sampled=0",
            **event.headers,
        }
        if client_context is not None:
            headers["Lambda-Runtime-Client-Context"] = client_context
        return Event(event.request_id, event.payload, headers)

    async def _brought(self, event: Event, timeout: float) -> Brought | None:
        """What the process brings back in time; None when it exits or the time is over."""
        assert self._exit is not None, "a worker is started before it works"
        brought = self._api.offer(event)
        futures: set[asyncio.Future[Any]] = {brought, self._exit}
        await asyncio.wait(futures, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        return brought.result() if brought.done() else None

    async def _fatal(self, request_id: str, brought: Brought | None, timeout: float) -> tuple[Attempt, Status]:
        """The outcome of an event that ends its worker, once that is dead."""
        assert self._exit is not None, "a worker is started before it works"
        exited = self._exit.done()
        if brought is None and not exited and self._api.init_fault is None:
            await self.kill()
            now = instant(self._clock.now())
            self.log.write(f"{now} {request_id} Task timed out after {timeout:.2f} seconds\n")
            message = f"RequestId: {request_id} Error: Task timed out after {timeout:.2f} seconds"
            return _error("Sandbox.Timedout", message), ("timeout", None)
        if isinstance(brought, Overflowed):
            await self.kill()
            message = f"Response payload size exceeded maximum allowed payload size ({RESPONSE_BYTES_MAX} bytes)."
            return _error("Function.ResponseSizeTooLarge", message), ("error", "Function.ResponseSizeTooLarge")
        fault = self._api.init_fault
        await self.kill()
        if fault is not None:
            return Attempt(fault.payload, "Unhandled"), ("error", "Runtime.Unknown")
        message = f"RequestId: {request_id} Error: {_exit_reason(self._exit.result())}"
        self.log.write(message)
        return _error("Runtime.ExitError", message), ("error", "Runtime.ExitError")

    def _memory_mb(self) -> int:
        """The most memory that the process has held, where the kernel tells."""
        if self._process is None:
            return 0
        try:
            with open(f"/proc/{self._process.pid}/status", encoding="ascii") as lines:
                for line in lines:
                    if line.startswith("VmHWM:"):
                        return int(line.split()[1]) // 1024
        except OSError:
            pass
        return 0

    async def kill(self) -> None:
        """End the process and all that it started, at once."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        if self._exit is not None:
            await asyncio.shield(self._exit)
        self._drain()
        self._close_pipe()
        self._api.close()


def _error(kind: str, message: str) -> Attempt:
    return Attempt(orjson.dumps({"errorType": kind, "errorMessage": message}), "Unhandled")


def _exit_reason(code: int) -> str:
    if code == 0:
        return "Runtime exited without providing a reason"
    if code < 0:
        return f"Runtime exited with error: signal: {signal.strsignal(-code) or -code}".replace("Killed", "killed")
    return f"Runtime exited with error: exit status {code}"


def invalid_entrypoint(request_id: str, fault: InvalidEntrypoint) -> Attempt:
    """The outcome of an event for a package without a program."""
    return _error("Runtime.InvalidEntrypoint", f"RequestId: {request_id} Error: {fault}")
