"""CBOR (RFC 8949) as Smithy's RPC v2 uses it: maps, lists, texts, binary, numbers, and instants under tag 1.

Keeps true: whatever bytes come in, reading ends with a value or with Misread, in memory bounded by their number. Does
not know about shapes.
"""

import struct
from dataclasses import dataclass
from typing import Any

from muster.wire import timestamp
from muster.wire.json_shapes import Leaves
from muster.wire.message import Misread

DEPTH_MAX = 200
INDEFINITE = 31
BREAK = object()


@dataclass(frozen=True, slots=True)
class Instant:
    """Seconds since the epoch, told apart from a plain number."""

    seconds: float


def loads(body: bytes) -> Any:
    """The one value that `body` holds."""
    reader = _Reader(body)
    value = reader.value(0)
    if value is BREAK or reader.at != len(body):
        raise Misread("The CBOR has more than one value")
    return value


class _Reader:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self.at = 0

    def _take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self._body):
            raise Misread("The CBOR ends too early")
        taken = self._body[self.at : end]
        self.at = end
        return taken

    def _argument(self, low: int) -> int:
        if low < 24:
            return low
        if low > 27:
            raise Misread("The CBOR is not well-formed")
        return int.from_bytes(self._take(1 << (low - 24)), "big")

    def value(self, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise Misread("The CBOR is nested too deeply")
        first = self._take(1)[0]
        major, low = first >> 5, first & 31
        match major:
            case 0:
                return self._argument(low)
            case 1:
                return -1 - self._argument(low)
            case 2:
                return self._string(low, 2)
            case 3:
                try:
                    return self._string(low, 3).decode("utf-8")
                except UnicodeDecodeError:
                    raise Misread("A text of the CBOR is not UTF-8") from None
            case 4:
                return list(self._items(low, depth))
            case 5:
                return self._map(low, depth)
            case 6:
                return self._tagged(self._argument(low), depth)
            case _:
                return self._simple(low)

    def _string(self, low: int, major: int) -> bytes:
        if low != INDEFINITE:
            return self._take(self._argument(low))
        chunks = []
        while (first := self._take(1)[0]) != 0xFF:
            if first >> 5 != major or first & 31 == INDEFINITE:
                raise Misread("The CBOR is not well-formed")
            chunks.append(self._take(self._argument(first & 31)))
        return b"".join(chunks)

    def _items(self, low: int, depth: int) -> Any:
        left = None if low == INDEFINITE else self._argument(low)
        while left is None or left > 0:
            item = self.value(depth + 1)
            if item is BREAK:
                if left is None:
                    return
                raise Misread("The CBOR is not well-formed")
            yield item
            left = None if left is None else left - 1

    def _map(self, low: int, depth: int) -> dict[str, Any]:
        left = None if low == INDEFINITE else self._argument(low)
        found: dict[str, Any] = {}
        while left is None or left > 0:
            key = self.value(depth + 1)
            if key is BREAK and left is None:
                break
            if not isinstance(key, str):
                raise Misread("A key of the CBOR is not a text")
            item = self.value(depth + 1)
            if item is BREAK:
                raise Misread("The CBOR is not well-formed")
            found[key] = item
            left = None if left is None else left - 1
        return found

    def _tagged(self, tag: int, depth: int) -> Any:
        value = self.value(depth + 1)
        if tag != 1:
            raise Misread(f"The CBOR tag {tag} is not supported")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Misread("An instant of the CBOR is not a number")
        return Instant(float(value))

    def _simple(self, low: int) -> Any:
        match low:
            case 20:
                return False
            case 21:
                return True
            case 22 | 23:
                return None
            case 25:
                return struct.unpack(">e", self._take(2))[0]
            case 26:
                return struct.unpack(">f", self._take(4))[0]
            case 27:
                return struct.unpack(">d", self._take(8))[0]
            case 31:
                return BREAK
        raise Misread("The CBOR is not well-formed")


def dumps(value: Any) -> bytes:
    """A value as CBOR, lengths always given."""
    out = bytearray()
    _write(out, value)
    return bytes(out)


def _head(out: bytearray, major: int, argument: int) -> None:
    if argument < 24:
        out.append(major << 5 | argument)
        return
    for low, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if argument < 1 << (8 * size):
            out.append(major << 5 | low)
            out += argument.to_bytes(size, "big")
            return
    raise OverflowError("an integer of more than 64 bits")


def _write(out: bytearray, value: Any) -> None:
    match value:
        case None:
            out.append(0xF6)
        case bool():
            out.append(0xF5 if value else 0xF4)
        case int():
            _head(out, 0 if value >= 0 else 1, value if value >= 0 else -1 - value)
        case float():
            out.append(0xFB)
            out += struct.pack(">d", value)
        case str():
            encoded = value.encode("utf-8")
            _head(out, 3, len(encoded))
            out += encoded
        case bytes() | bytearray() | memoryview():
            _head(out, 2, len(value))
            out += value
        case Instant():
            out.append(0xC1)
            _write(out, value.seconds)
        case dict():
            _head(out, 5, len(value))
            for key, item in value.items():
                _write(out, key)
                _write(out, item)
        case list() | tuple():
            _head(out, 4, len(value))
            for item in value:
                _write(out, item)
        case _:
            raise TypeError(f"no CBOR for {type(value).__name__}")


def _read_blob(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    raise Misread("A value can not be converted to binary")


def _read_timestamp(value: Any) -> float:
    if isinstance(value, Instant):
        return value.seconds
    raise Misread("A value can not be converted to a timestamp")


CBOR = Leaves(
    read_blob=_read_blob,
    read_timestamp=_read_timestamp,
    write_blob=lambda value: value.encode() if isinstance(value, str) else bytes(value),
    write_timestamp=lambda form: lambda value: Instant(timestamp.write_epoch(value)),
)
