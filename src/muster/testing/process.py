"""A real server in a process of its own: started on a free port, stopped politely, or killed as a power cut would.

Keeps true: once `start` returns, the server answers at `endpoint`; nothing of it is left after `stop` or `kill`.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

READY = re.compile(r"ready at (http://\S+)")
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 20.0


def environment() -> dict[str, str]:
    """The server's environment: it prints at once, and keeps compiled modules, which halves the time of its next start."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONUNBUFFERED": "1"}


class ServerProcess:
    """`muster up` on a data folder; use it as a context manager, or `start` and `stop` by hand."""

    def __init__(self, data: Path, *, port: int = 0, arguments: Sequence[str] = ()) -> None:
        self.data = data
        self.port = port
        self.arguments = tuple(arguments)
        self.endpoint = ""
        self.start_seconds = 0.0
        self._process: subprocess.Popen[str] | None = None
        self._log: list[str] = []

    def __enter__(self) -> "ServerProcess":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self._process is not None, "the server has not been started"
        return self._process.pid

    @property
    def log(self) -> str:
        """What the server has printed so far."""
        return "".join(self._log)

    def start(self) -> None:
        """Start the server and wait until it is ready; RuntimeError with its output when it does not come up."""
        began = time.perf_counter()
        command = [sys.executable, "-m", "muster", "up", "--port", str(self.port), "--data", str(self.data)]
        process = subprocess.Popen(
            [*command, *self.arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env=environment(),
        )
        self._process = process
        ready = threading.Event()
        threading.Thread(target=self._listen, args=(process, ready), daemon=True).start()
        if not ready.wait(START_SECONDS_MAX) or not self.endpoint:
            self.kill()
            raise RuntimeError(f"The server did not start:\n{self.log}")
        self.start_seconds = time.perf_counter() - began
        self.port = int(self.endpoint.rsplit(":", 1)[1])

    def _listen(self, process: "subprocess.Popen[str]", ready: threading.Event) -> None:
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                self._log.append(line)
                if found := READY.search(line):
                    self.endpoint = found.group(1)
                    ready.set()
        ready.set()

    def kill(self) -> None:
        """SIGKILL: no goodbye, as when the power fails."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to stop, and wait until it has."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._process = None
        self.endpoint = ""
