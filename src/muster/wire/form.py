"""Shapes as form fields: the requests of the query protocol, `Name.member.1.Key=value`.

Keeps true: a field that no member of the shape accounts for is kept at the top, so that it is refused by name. Does not
know about HTTP.
"""

from collections.abc import Callable, Iterable
from typing import Any

from muster.wire.message import Misread
from muster.wire.xml_shapes import text_reader

# What belongs to the envelope and to signatures, not to the operation.
ENVELOPE = frozenset(
    {"Action", "Version", "AWSAccessKeyId", "Signature", "SignatureVersion", "SignatureMethod", "Timestamp", "Expires"}
    | {"SecurityToken", "ContentType", "DebugMode"}
)

FIELDS_MAX = 20_000


class Field:
    """A place in the tree of names: its own text, if any, and the places below it."""

    __slots__ = ("below", "text")

    def __init__(self) -> None:
        self.text: str | None = None
        self.below: dict[str, Field] = {}


Read = Callable[[Field], Any]


def tree(pairs: Iterable[tuple[str, str]]) -> Field:
    """The fields by the parts of their names."""
    root = Field()
    for number, (name, value) in enumerate(pairs):
        if number >= FIELDS_MAX:
            raise Misread(f"More than {FIELDS_MAX} fields")
        place = root
        for part in name.split(".", 64):
            place = place.below.setdefault(part, Field())
        place.text = value
    return root


def request_reader(shape: Any, cache: dict[Any, Read]) -> Read:
    """From the tree of a whole form to an operation's request; `cache` belongs to one service."""
    if shape is None:
        inside: Read = lambda place: {}  # noqa: E731
        names: set[str] = set()
    else:
        inside = reader(shape, cache)
        # botocore writes an empty flattened list under the member's own name.
        names = {
            wire for name, member in shape.members.items() for wire in (_wire_name(name, member), _own(name, member))
        }
    names |= ENVELOPE

    def read(root: Field) -> dict[str, Any]:
        found: dict[str, Any] = inside(root)
        for name, place in root.below.items():
            if name not in names and not name.startswith("X-Amz-"):
                found[name] = place.text
        return found

    return read


def reader(shape: Any, cache: dict[Any, Read]) -> Read:
    """From a place in the tree to a value of `shape`."""
    key = (shape.name, shape.serialization.get("flattened", False))
    known = cache.get(key)
    if known is not None:
        return known
    built: list[Read] = []
    cache[key] = lambda place: built[0](place)
    made = _build(shape, cache)
    built.append(made)
    cache[key] = made
    return made


def _build(shape: Any, cache: dict[Any, Read]) -> Read:
    match shape.type_name:
        case "structure":
            return _structure(shape, cache)
        case "list":
            return _list(shape, cache)
        case "map":
            return _map(shape, cache)
        case _:
            scalar = text_reader(shape)
            return lambda place: scalar(_text(place))


def _own(name: str, member: Any) -> str:
    wire: str = member.serialization.get("name", name)
    return wire


def _wire_name(name: str, member: Any) -> str:
    wire = _own(name, member)
    if member.type_name == "list" and member.serialization.get("flattened"):
        wire = member.member.serialization.get("name", wire)
    return wire


def _structure(shape: Any, cache: dict[Any, Read]) -> Read:
    members = [(_wire_name(name, member), name, reader(member, cache)) for name, member in shape.members.items()]
    emptied = [
        (_own(name, member), name)
        for name, member in shape.members.items()
        if _own(name, member) != _wire_name(name, member)
    ]

    def read(place: Field) -> dict[str, Any]:
        found: dict[str, Any] = {}
        below = place.below
        for wire, name, member in members:
            inner = below.get(wire)
            if inner is not None:
                try:
                    found[name] = member(inner)
                except Misread as problem:
                    problem.path.append(wire)
                    raise
        for wire, name in emptied:
            if wire in below and name not in found and not below[wire].text:
                found[name] = []
        return found

    return read


def _list(shape: Any, cache: dict[Any, Read]) -> Read:
    item = reader(shape.member, cache)
    item_name = None if shape.serialization.get("flattened") else shape.member.serialization.get("name", "member")

    def read(place: Field) -> list[Any]:
        inner = place if item_name is None else place.below.get(item_name)
        return [] if inner is None else [item(one) for one in _numbered(inner)]

    return read


def _map(shape: Any, cache: dict[Any, Read]) -> Read:
    key_name = shape.key.serialization.get("name", "key")
    value_name = shape.value.serialization.get("name", "value")
    value = reader(shape.value, cache)
    flattened = bool(shape.serialization.get("flattened"))

    def read(place: Field) -> dict[str, Any]:
        entries = place if flattened else place.below.get("entry")
        found: dict[str, Any] = {}
        for entry in [] if entries is None else _numbered(entries):
            key, item = entry.below.get(key_name), entry.below.get(value_name)
            if key is None or item is None:
                raise Misread(f"An entry needs a {key_name} and a {value_name}")
            found[_text(key)] = value(item)
        return found

    return read


def _numbered(place: Field) -> list[Field]:
    """The places below in the order of their numbers; gaps do not matter, as on AWS."""
    try:
        return [
            inner for _, inner in sorted(((_number(name), inner) for name, inner in place.below.items()), key=_first)
        ]
    except ValueError:
        raise Misread(f"An element's number was expected in place of {sorted(place.below)[0][:64]!r}") from None


def _first(pair: tuple[int, Field]) -> int:
    return pair[0]


def _number(name: str) -> int:
    if not (name.isascii() and name.isdigit() and len(name) <= 9):
        raise ValueError(name)
    return int(name)


def _text(place: Field) -> str:
    if place.text is None:
        raise Misread("A structure was found where a value was expected")
    return place.text
