"""What one worker prints, as lines, with the lines that the platform adds around each invocation.

Keeps true: what waits to be stored is bounded, and what was left out is said. Does not know where logs are kept.
"""

import base64
import datetime
from dataclasses import dataclass, field

from muster.clock import Clock, Instant
from muster.runners.platform_log import Frame, Report, TextFrame

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
    frame: Frame = field(default_factory=TextFrame)
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
        self._write_all(self.frame.start(self.clock.now(), request_id, version))

    def end(self, request_id: str, report: Report) -> None:
        """An invocation is over."""
        if self._rest:
            self._add(self._rest)
            self._rest = b""
        self._write_all(self.frame.end(self.clock.now(), request_id, report))

    def _write_all(self, messages: list[str]) -> None:
        for message in messages:
            self.write(message)

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
