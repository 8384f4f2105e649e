"""The orders example's payment service in a process of its own, and what it answers.

Keeps true: once `start` returns, the service answers; nothing of it is left after `stop`. Does not know who else calls.
"""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

CALL_SECONDS_MAX = 30.0


class Payments:
    """A payment service with books of its own; a context manager."""

    def __init__(self, program: Path, data: Path) -> None:
        self.program = program
        self.data = data
        self.endpoint = ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "Payments":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the service on a free port; RuntimeError when it does not come up."""
        command = [sys.executable, str(self.program), "--port", "0", "--data", str(self.data)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if not said.startswith("ready at "):
            self.stop()
            raise RuntimeError(f"The payment service did not start: {said}")
        self.endpoint = said.removeprefix("ready at ").strip()

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    def post(self, path: str, body: dict[str, Any], key: str | None = None) -> int:
        """The status of the answer to one call, whatever it is."""
        headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
        request = urllib.request.Request(self.endpoint + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=CALL_SECONDS_MAX) as response:
                return int(response.status)
        except urllib.error.HTTPError as refusal:
            return refusal.code

    def read(self, path: str) -> Any:
        """What the service has in its books, or its figures."""
        with urllib.request.urlopen(self.endpoint + path, timeout=CALL_SECONDS_MAX) as response:
            return json.load(response)

    def figures(self) -> dict[str, int]:
        """Counts of calls, charges, receipts and refusals."""
        found: dict[str, int] = self.read("/figures")
        return found
