"""Keys: what identifies an item, and bytes in the order of the keys.

Keeps true: of two keys of one type the one that comes first in DynamoDB's order (texts by UTF-8, numbers by value,
binaries by byte) has the encoding that comes first by byte. A partition key's encoding begins with two bytes of its
checksum, so that a scan meets partitions in no telling order and its segments are ranges. Does not know any table.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.languages.expressions import AttributeValue, Item
from muster.services.dynamodb.refusal import invalid, invalid_values

# "Quotas": a partition key has at most 2048 bytes, a sort key 1024.
HASH_BYTES_MAX = 2048
RANGE_BYTES_MAX = 1024

SLOTS = 65_536


@dataclass(frozen=True, slots=True)
class Schema:
    """A key schema: the names and types of the partition key and, perhaps, of the sort key."""

    hash_name: str
    hash_type: str
    range_name: str | None = None
    range_type: str | None = None

    def names(self) -> tuple[str, ...]:
        """The key attributes' names, partition key first."""
        return (self.hash_name,) if self.range_name is None else (self.hash_name, self.range_name)

    def typed(self) -> tuple[tuple[str, str], ...]:
        """The key attributes' names and types."""
        if self.range_name is None or self.range_type is None:
            return ((self.hash_name, self.hash_type),)
        return ((self.hash_name, self.hash_type), (self.range_name, self.range_type))

    def cut(self, item: Mapping[str, AttributeValue]) -> Item:
        """The key attributes alone."""
        return {name: item[name] for name in self.names()}

    def encoded(self, item: Mapping[str, AttributeValue]) -> "Key":
        """The key of an item that is known to have one."""
        hash_key = encode_hash(item[self.hash_name])
        return Key(hash_key, encode(item[self.range_name]) if self.range_name is not None else b"")


@dataclass(frozen=True, slots=True)
class Key:
    """An item's place in its table or index."""

    hash_key: bytes
    range_key: bytes


def encode(value: AttributeValue) -> bytes:
    """Bytes in the order of the values of that type."""
    [(kind, content)] = value.items()
    if kind == "S":
        encoded: bytes = content.encode()
        return encoded
    return _encode_number(content) if kind == "N" else content


def encode_hash(value: AttributeValue) -> bytes:
    """A partition key's bytes, behind its slot."""
    encoded = encode(value)
    return (zlib.crc32(encoded) >> 16).to_bytes(2, "big") + encoded


def _encode_number(text: str) -> bytes:
    negative = text.startswith("-")
    whole, _, fraction = text.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return b"\x80"
    magnitude = len(whole) - 1 if whole != "0" else -1 - (len(fraction) - len(digits))
    digits = digits.rstrip("0")
    # A magnitude is within -130 and 125: one byte.
    if not negative:
        return bytes((0x81, magnitude + 130)) + digits.encode()
    return bytes((0x7F, 125 - magnitude)) + bytes(0x69 - ord(digit) for digit in digits) + b"\xff"


def after_prefix(prefix: bytes) -> bytes | None:
    """The first bytes that come after everything beginning with `prefix`; None when nothing does."""
    shortened = prefix.rstrip(b"\xff")
    return shortened[:-1] + bytes((shortened[-1] + 1,)) if shortened else None


def segment_bounds(segment: int, total: int) -> tuple[bytes, bytes | None]:
    """The range of partition keys of a scan's segment: from, and below (None: to the end)."""
    first, last = -(-segment * SLOTS // total), -(-(segment + 1) * SLOTS // total)
    below = None if last >= SLOTS else last.to_bytes(2, "big")
    return (first.to_bytes(2, "big") if first < SLOTS else b"\xff\xff\xff"), below


def key_of_item(schema: Schema, item: Item) -> Key:
    """The key of an item to be put; ValidationException when it has none of the right types."""
    for name, kind in schema.typed():
        value = item.get(name)
        if value is None:
            raise invalid_values(f"Missing the key {name} in the item")
        if kind not in value:
            raise invalid_values(f"Type mismatch for key {name} expected: {kind} actual: {next(iter(value))}")
        check_not_empty(name, value)
    return _within_limits(schema.encoded(item))


def key_given(schema: Schema, given: Mapping[str, Any]) -> Key:
    """The key that a request gives (in normal form); ValidationException when it does not fit the schema."""
    typed = schema.typed()
    if len(given) != len(typed) or any(name not in given or kind not in given[name] for name, kind in typed):
        raise invalid("The provided key element does not match the schema")
    for name, _ in typed:
        check_not_empty(name, given[name])
    return _within_limits(schema.encoded(given))


def check_not_empty(name: str, value: AttributeValue) -> None:
    """ValidationException when a key's text or binary is empty."""
    [(kind, content)] = value.items()
    if not content:
        what = "string" if kind == "S" else "binary"
        raise invalid(
            "One or more parameter values are not valid. "
            f"The AttributeValue for a key attribute cannot contain an empty {what} value. Key: {name}"
        )


def _within_limits(key: Key) -> Key:
    if len(key.hash_key) - 2 > HASH_BYTES_MAX:
        # Observed wording: without a space before the number.
        raise invalid_values(f"Size of hashkey has exceeded the maximum size limit of{HASH_BYTES_MAX} bytes")
    if len(key.range_key) > RANGE_BYTES_MAX:
        raise invalid_values(
            f"Aggregated size of all range keys has exceeded the size limit of {RANGE_BYTES_MAX} bytes"
        )
    return key
