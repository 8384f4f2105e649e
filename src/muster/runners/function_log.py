"""What one worker prints, as lines, and the lines that AWS adds around each invocation.

Keeps true: what waits to be stored is bounded, and what was left out is said. Does not know where logs are kept.
"""

import base64
import datetime
from dataclasses import dataclass, field

from muster.clock import Clock, Instant

# A log event holds up to 1 MB in CloudWatch; a line of a function is cut at 256 KB, as Lambda's own agent did.
LINE_BYTES_MAX = 262_144
WAITING_BYTES_MAX = 4_194_304
WAITING_LINES_MAX = 10_000
# https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html: LogType Tail shows the last 4 KB.
TAIL_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log."""

    at_ms: int
    message: str


@dataclass(slots=True)
class FunctionLog:
    """The log of one worker, into one stream."""

    clock: Clock
    group: str
    stream: str
    _rest: bytes = b""
    _waiting: list[Line] = field(default_factory=list)
    _waiting_bytes: int = 0
    _left_out: int = 0
    _tail: bytes = b""

    @property
    def waiting(self) -> bool:
        """Whether there are lines to be stored."""
        return bool(self._waiting)

    def feed(self, printed: bytes) -> None:
        """Take in what the worker printed; whole lines are ready to be stored."""
        *lines, rest = (self._rest + printed).split(b"\n")
        for line in lines:
            self._add(line)
        while len(rest) >= LINE_BYTES_MAX:
            self._add(rest[:LINE_BYTES_MAX])
            rest = rest[LINE_BYTES_MAX:]
        self._rest = rest

    def _add(self, line: bytes) -> None:
        # awslambdaric and the Node bootstrap join the lines of one record by carriage returns: one event of many lines.
        for start in range(0, max(1, len(line)), LINE_BYTES_MAX):
            text = line[start : start + LINE_BYTES_MAX].decode("utf-8", "replace")
            self.write(text.rstrip("\r").replace("\r", "\n"))

    def write(self, message: str) -> None:
        """Add a line of the platform's own."""
        encoded = (message + "\n").encode()
        self._tail = (self._tail + encoded)[-TAIL_BYTES_MAX:]
        if len(self._waiting) >= WAITING_LINES_MAX or self._waiting_bytes + len(encoded) > WAITING_BYTES_MAX:
            self._left_out += 1
            return
        self._waiting.append(Line(int(self.clock.now() * 1000), message + "\n"))
        self._waiting_bytes += len(encoded)

    def start(self, request_id: str, version: str) -> None:
        """An invocation begins."""
        self._tail = b""
        self.write(f"START RequestId: {request_id} Version: {version}")

    def end(self, request_id: str, report: str) -> None:
        """An invocation is over."""
        if self._rest:
            self._add(self._rest)
            self._rest = b""
        self.write(f"END RequestId: {request_id}")
        self.write(f"REPORT RequestId: {request_id}\t{report}")

    def tail(self) -> str:
        """The last 4 KB since the invocation began, in base64."""
        return base64.b64encode(self._tail).decode()

    def take(self) -> list[Line]:
        """The lines to be stored now."""
        lines, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if self._left_out:
            lines.append(Line(lines[-1].at_ms, f"[muster] {self._left_out} lines were left out: printed too fast\n"))
            self._left_out = 0
        return lines


def stream_name(at: Instant, version: str, token: str) -> str:
    """A log stream's name as Lambda forms it: date, version, and something unique."""
    return f"{datetime.datetime.fromtimestamp(at, datetime.UTC):%Y/%m/%d}/[{version}]{token}"


def report(
    duration_seconds: float, memory_mb: int, used_mb: int, init_seconds: float | None, status: str | None = None
) -> str:
    """The REPORT line's fields."""
    duration_ms = duration_seconds * 1000
    billed_ms = int(duration_ms) + (duration_ms > int(duration_ms))
    fields = [
        f"Duration: {duration_ms:.2f} ms",
        f"Billed Duration: {billed_ms} ms",
        f"Memory Size: {memory_mb} MB",
        f"Max Memory Used: {used_mb} MB",
    ]
    if init_seconds is not None:
        fields.append(f"Init Duration: {init_seconds * 1000:.2f} ms")
    if status is not None:
        fields.append(f"Status: {status}")
    return "\t".join(fields) + "\t"
