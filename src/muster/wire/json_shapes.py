"""Shapes as JSON: a value read from what a client sent, an answer made into what a client expects.

Each shape is compiled once into a reader and a writer. The same two passes serve CBOR, whose leaves differ: `Leaves`
says how blobs and instants look. Keeps true: what is read has the types that the model says; a member that the model
does not name is kept, so that it is refused by name and not forgotten. Does not know about HTTP.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.model import Shape

from muster.wire import timestamp
from muster.wire.message import Misread

Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Leaves:
    """How a medium writes what JSON has no words for."""

    read_blob: Convert
    read_timestamp: Convert
    write_blob: Convert
    write_timestamp: Callable[[str | None], Convert]  # by the shape's timestampFormat


class Shapes:
    """The readers and writers of shapes in one medium, built when they are first needed and kept."""

    def __init__(self, leaves: Leaves) -> None:
        self._leaves = leaves
        self._readers: dict[tuple[Any, ...], Convert] = {}
        self._writers: dict[tuple[Any, ...], Convert | None] = {}

    # Readers -----------------------------------------------------------------------------------------------------

    def reader(self, shape: Shape) -> Convert:
        """From what was parsed to a request's value; raises Misread."""
        key = _identity(shape)
        known = self._readers.get(key)
        if known is not None:
            return known
        built: list[Convert] = []
        self._readers[key] = lambda value: built[0](value)  # a shape inside itself
        reader = self._build_reader(shape)
        built.append(reader)
        self._readers[key] = reader
        return reader

    def _build_reader(self, shape: Any) -> Convert:
        match shape.type_name:
            case "structure":
                return _pass if shape.is_document_type else self.structure_reader(shape, shape.members)
            case "list":
                return _list_reader(self.reader(shape.member))
            case "map":
                return _map_reader(self.reader(shape.value))
            case "blob":
                return self._leaves.read_blob
            case "timestamp":
                return self._leaves.read_timestamp
            case "boolean":
                return _read_boolean
            case "integer" | "long" | "short" | "byte":
                return _read_integer
            case "float" | "double" | "bigdecimal":
                return _read_number
            case _:
                return _read_string

    def structure_reader(self, shape: Any, members: Mapping[str, Any]) -> Convert:
        """The reader of a structure of which `members` are in this medium."""
        readers = {
            member.serialization.get("name", name): (name, self.reader(member)) for name, member in members.items()
        }

        def read(value: Any) -> dict[str, Any]:
            if value.__class__ is not dict:
                raise Misread(_unexpected(value, "a structure"))
            found: dict[str, Any] = {}
            for wire, item in value.items():
                if item is None:
                    continue
                member = readers.get(wire)
                if member is None:
                    if wire != "__type":
                        found[wire] = item
                    continue
                try:
                    found[member[0]] = member[1](item)
                except Misread as problem:
                    problem.path.append(wire)
                    raise
            return found

        return read

    # Writers -----------------------------------------------------------------------------------------------------

    def writer(self, shape: Shape) -> Convert | None:
        """From an answer's value to what is dumped; None where they are the same."""
        key = _identity(shape)
        if key in self._writers:
            return self._writers[key]
        built: list[Convert | None] = []

        def through(value: Any) -> Any:
            inner = built[0]
            return value if inner is None else inner(value)

        self._writers[key] = through
        writer = self._build_writer(shape)
        built.append(writer)
        self._writers[key] = writer
        return writer

    def _build_writer(self, shape: Any) -> Convert | None:
        match shape.type_name:
            case "structure":
                return None if shape.is_document_type else self.structure_writer(shape.members)
            case "list":
                member = self.writer(shape.member)
                return None if member is None else lambda value: [member(item) for item in value]
            case "map":
                inner = self.writer(shape.value)
                return None if inner is None else lambda value: {key: inner(item) for key, item in value.items()}
            case "blob":
                return self._leaves.write_blob
            case "timestamp":
                return self._leaves.write_timestamp(shape.serialization.get("timestampFormat"))
            case _:
                return None

    def structure_writer(self, members: Mapping[str, Any]) -> Convert:
        """The writer of a structure of which `members` are in this medium; absent and null members are left out."""
        writers = {
            name: (member.serialization.get("name", name), self.writer(member)) for name, member in members.items()
        }

        def write(value: Mapping[str, Any]) -> dict[str, Any]:
            written: dict[str, Any] = {}
            for name, item in value.items():
                if item is None:
                    continue
                member = writers.get(name)
                if member is not None:
                    writer = member[1]
                    written[member[0]] = item if writer is None else writer(item)
            return written

        return write


def _identity(shape: Any) -> tuple[Any, ...]:
    """What tells two uses of a shape apart: its model (kept alive by the model's own tables) and its traits."""
    return (shape.name, shape.serialization.get("timestampFormat"), shape.type_name)


def _pass(value: Any) -> Any:
    return value


def _list_reader(member: Convert) -> Convert:
    def read(value: Any) -> list[Any]:
        if value.__class__ is not list:
            raise Misread(_unexpected(value, "a list"))
        try:
            return [member(item) for item in value]
        except Misread as problem:
            problem.path.append("member")
            raise

    return read


def _map_reader(member: Convert) -> Convert:
    def read(value: Any) -> dict[str, Any]:
        if value.__class__ is not dict:
            raise Misread(_unexpected(value, "a map"))
        found = {}
        for key, item in value.items():
            try:
                found[key] = member(item)
            except Misread as problem:
                problem.path.append(str(key))
                raise
        return found

    return read


def _read_string(value: Any) -> str:
    if value.__class__ is str:
        return value
    raise Misread(_unexpected(value, "String"))


def _read_boolean(value: Any) -> bool:
    if value is True or value is False:
        return value
    raise Misread(_unexpected(value, "Boolean"))


def _read_integer(value: Any) -> int:
    if value.__class__ is int:
        return value
    if value.__class__ is float and value.is_integer():
        return int(value)
    raise Misread(_unexpected(value, "Integer"))


def _read_number(value: Any) -> float:
    if value.__class__ is float or value.__class__ is int:
        return value
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    raise Misread(_unexpected(value, "Double"))


def _unexpected(value: Any, wanted: str) -> str:
    """In the words of AWS's own parser."""
    match value:
        case dict():
            return "Start of structure or map found where not expected."
        case list():
            return "Start of list found where not expected"
        case True:
            found = "TRUE_VALUE"
        case False:
            found = "FALSE_VALUE"
        case int() | float():
            found = "NUMBER_VALUE"
        case None:
            found = "NULL_VALUE"
        case _:
            found = "STRING_VALUE"
    return f"{found} can not be converted to {wanted}"


# JSON's own leaves ---------------------------------------------------------------------------------------------------


def _read_base64(value: Any) -> bytes:
    try:
        return base64.b64decode(_read_string(value), validate=True)
    except (binascii.Error, ValueError):
        raise Misread("STRING_VALUE can not be decoded as Base64") from None


def _read_timestamp(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    try:
        return timestamp.read(_read_string(value))
    except (ValueError, OverflowError):
        raise Misread("STRING_VALUE can not be converted to a timestamp") from None


def write_base64(value: Any) -> str:
    """Binary as text; a text is taken to be meant as its UTF-8."""
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode("ascii")


def timestamp_writer(form: str | None, default: Convert) -> Convert:
    """The writer of instants in the form that a model names."""
    return {
        None: default,
        "iso8601": timestamp.write_iso8601,
        "rfc822": timestamp.write_http_date,
        "unixTimestamp": timestamp.write_epoch,
    }[form]


JSON = Leaves(
    read_blob=_read_base64,
    read_timestamp=_read_timestamp,
    write_blob=write_base64,
    write_timestamp=lambda form: timestamp_writer(form, timestamp.write_epoch),
)
