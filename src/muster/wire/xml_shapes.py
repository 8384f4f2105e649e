"""Shapes as XML: the bodies of rest-xml and the answers of the query protocol.

Keeps true: no document type is ever read, hence no entity is ever expanded; whatever text an answer holds, the XML is
well formed unless the text holds characters that XML 1.0 has no way to write (then they are written as character
references, as S3 does). Does not know about HTTP.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from muster.wire import timestamp
from muster.wire.json_shapes import timestamp_writer, write_base64
from muster.wire.message import Misread

Read = Callable[[Element], Any]
Write = Callable[[list[str], str, Any], None]

# Deeper than any shape nests, and shallow enough for every recursion.
DEPTH_MAX = 100

XSI = "http://www.w3.org/2001/XMLSchema-instance"


def parse(body: bytes) -> Element:
    """The root element, names without their namespaces; Misread when it is no XML, or XML with a document type."""
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEPTH_MAX:
            raise Misread("The XML you provided is nested too deeply")
        builder.start(name.rpartition("}")[2], attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name.rpartition("}")[2])

    def refuse(*_: Any) -> None:
        raise Misread("A document type declaration is not allowed")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, LookupError, ValueError) as problem:
        raise Misread(f"The XML is not well-formed: {problem}") from None
    return builder.close()


# Reading -------------------------------------------------------------------------------------------------------------


def reader(shape: Any, cache: dict[Any, Read]) -> Read:
    """From an element to a value of `shape`; `cache` belongs to one service."""
    key = (shape.name, shape.serialization.get("timestampFormat"), shape.serialization.get("flattened", False))
    known = cache.get(key)
    if known is not None:
        return known
    built: list[Read] = []
    cache[key] = lambda node: built[0](node)
    made = _build_reader(shape, cache)
    built.append(made)
    cache[key] = made
    return made


def _build_reader(shape: Any, cache: dict[Any, Read]) -> Read:
    match shape.type_name:
        case "structure":
            return structure_reader(shape.members, cache)
        case "list":
            name = shape.member.serialization.get("name", "member")
            item = reader(shape.member, cache)
            return lambda node: [_located(item, child, name) for child in node if child.tag == name]
        case "map":
            return _map_reader(shape, cache)
        case _:
            scalar = text_reader(shape)
            return lambda node: scalar(_text(node))


def structure_reader(members: Mapping[str, Any], cache: dict[Any, Read]) -> Read:
    """From an element to the members found in it. An element that the model does not name is kept as its text."""
    single: dict[str, tuple[str, Read]] = {}
    repeated: dict[str, tuple[str, Read, bool]] = {}
    attributes: dict[str, tuple[str, Callable[[str], Any]]] = {}
    for name, member in members.items():
        wire = member.serialization.get("name", name)
        if member.serialization.get("xmlAttribute"):
            prefix, _, local = wire.rpartition(":")
            attributes[f"{XSI}}}{local}" if prefix == "xsi" else local] = (name, text_reader(member))
        elif member.type_name == "list" and member.serialization.get("flattened"):
            repeated[member.member.serialization.get("name", wire)] = (name, reader(member.member, cache), False)
        elif member.type_name == "map" and member.serialization.get("flattened"):
            repeated[wire] = (name, _entry_reader(member, cache), True)
        else:
            single[wire] = (name, reader(member, cache))

    def read(node: Element) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, text in node.attrib.items():
            attribute = attributes.get(key)
            if attribute is not None:
                found[attribute[0]] = attribute[1](text)
        for child in node:
            known = single.get(child.tag)
            if known is not None:
                found[known[0]] = _located(known[1], child, child.tag)
                continue
            many = repeated.get(child.tag)
            if many is None:
                found[child.tag] = _text(child)
                continue
            value = _located(many[1], child, child.tag)
            if many[2]:
                found.setdefault(many[0], {})[value[0]] = value[1]
            else:
                found.setdefault(many[0], []).append(value)
        return found

    return read


def _map_reader(shape: Any, cache: dict[Any, Read]) -> Read:
    entry = _entry_reader(shape, cache)
    return lambda node: dict(_located(entry, child, "entry") for child in node if child.tag == "entry")


def _entry_reader(shape: Any, cache: dict[Any, Read]) -> Read:
    key_name = shape.key.serialization.get("name", "key")
    value_name = shape.value.serialization.get("name", "value")
    value = reader(shape.value, cache)

    def read(node: Element) -> tuple[str, Any]:
        key = node.find(key_name)
        item = node.find(value_name)
        if key is None or item is None:
            raise Misread(f"An entry needs a {key_name} and a {value_name}")
        return _text(key), value(item)

    return read


def _located(read: Read, node: Element, name: str) -> Any:
    try:
        return read(node)
    except Misread as problem:
        problem.path.append(name)
        raise


def _text(node: Element) -> str:
    if len(node):
        raise Misread("An element was found where text was expected")
    return node.text or ""


def text_reader(shape: Any) -> Callable[[str], Any]:
    """From text (an element's, a header's, a form field's, a part of a path) to a scalar of `shape`."""
    match shape.type_name:
        case "boolean":
            return _boolean
        case "integer" | "long" | "short" | "byte":
            return _integer
        case "float" | "double" | "bigdecimal":
            return _number
        case "timestamp":
            return _instant
        case "blob":
            return _blob
        case "string" | "character":
            return lambda text: text
        case other:
            raise AssertionError(f"a {other} has no text")


def _boolean(text: str) -> bool:
    match text.strip().lower():
        case "true" | "1":
            return True
        case "false" | "0":
            return False
    raise Misread(f"{_shown(text)} is not a boolean")


_DIGITS = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")


def _integer(text: str) -> int:
    if _DIGITS.fullmatch(text) is None:
        raise Misread(f"{_shown(text)} is not an integer")
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Misread(f"{_shown(text)} is not a number") from None


def _instant(text: str) -> float:
    try:
        return timestamp.read(text)
    except (ValueError, OverflowError):
        raise Misread(f"{_shown(text)} is not a timestamp") from None


def _blob(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise Misread(f"{_shown(text)} is not Base64") from None


def _shown(text: str) -> str:
    return repr(text[:64])


# Writing -------------------------------------------------------------------------------------------------------------

# What must not stand in text: the three characters of the syntax, and what parsers change or refuse.
_SPECIAL = re.compile('[&<>"\r\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]')
_NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


def escape(text: str) -> str:
    """Text as it stands in XML."""
    if _SPECIAL.search(text) is None:
        return text
    return _SPECIAL.sub(lambda found: _NAMED.get(found[0]) or f"&#{ord(found[0])};", text)


def writer(shape: Any, cache: dict[Any, Write]) -> Write:
    """Appends `<name>…</name>` for a value of `shape`; `cache` belongs to one service."""
    key = (
        shape.name,
        shape.serialization.get("timestampFormat"),
        shape.serialization.get("flattened", False),
        tuple((shape.serialization.get("xmlNamespace") or {}).values()),
    )
    known = cache.get(key)
    if known is not None:
        return known
    built: list[Write] = []
    cache[key] = lambda out, name, value: built[0](out, name, value)
    made = _build_writer(shape, cache)
    built.append(made)
    cache[key] = made
    return made


def _build_writer(shape: Any, cache: dict[Any, Write]) -> Write:
    match shape.type_name:
        case "structure":
            return _structure_writer(shape, cache)
        case "list":
            return _list_writer(shape, cache)
        case "map":
            return _map_writer(shape, cache)
        case _:
            text = text_writer(shape)

            def write(out: list[str], name: str, value: Any) -> None:
                out.append(f"<{name}>{escape(text(value))}</{name}>")

            return write


def members_writer(
    members: Mapping[str, Any], cache: dict[Any, Write]
) -> Callable[[list[str], Mapping[str, Any]], None]:
    """Appends the elements of those members that have a value, in the model's order."""
    plan: list[tuple[str, str, Write]] = [
        (name, member.serialization.get("name", name), writer(member, cache))
        for name, member in members.items()
        if not member.serialization.get("xmlAttribute")
    ]

    def write(out: list[str], value: Mapping[str, Any]) -> None:
        for name, wire, inner in plan:
            item = value.get(name)
            if item is not None:
                inner(out, wire, item)

    return write


def _structure_writer(shape: Any, cache: dict[Any, Write]) -> Write:
    inside = members_writer(shape.members, cache)
    attributes = [
        (name, member.serialization["name"], text_writer(member))
        for name, member in shape.members.items()
        if member.serialization.get("xmlAttribute")
    ]
    namespace = namespace_of(shape)

    def write(out: list[str], name: str, value: Mapping[str, Any]) -> None:
        written = "".join(
            f' {wire}="{escape(text(value[member]))}"'
            for member, wire, text in attributes
            if value.get(member) is not None
        )
        out.append(f"<{name}{namespace}{written}>")
        inside(out, value)
        out.append(f"</{name}>")

    return write


def namespace_of(shape: Any) -> str:
    """The attribute that declares the shape's namespace, if it has one."""
    namespace = shape.serialization.get("xmlNamespace")
    if not namespace:
        return ""
    prefix = f":{namespace['prefix']}" if namespace.get("prefix") else ""
    return f' xmlns{prefix}="{escape(namespace["uri"])}"'


def _list_writer(shape: Any, cache: dict[Any, Write]) -> Write:
    item = writer(shape.member, cache)
    own_name = shape.member.serialization.get("name")
    if shape.serialization.get("flattened"):

        def write_flat(out: list[str], name: str, value: Iterable[Any]) -> None:
            for one in value:
                item(out, own_name or name, one)

        return write_flat
    item_name = own_name or "member"

    def write(out: list[str], name: str, value: Iterable[Any]) -> None:
        out.append(f"<{name}>")
        for one in value:
            item(out, item_name, one)
        out.append(f"</{name}>")

    return write


def _map_writer(shape: Any, cache: dict[Any, Write]) -> Write:
    key_name = shape.key.serialization.get("name", "key")
    value_name = shape.value.serialization.get("name", "value")
    inner = writer(shape.value, cache)
    flattened = bool(shape.serialization.get("flattened"))

    def write(out: list[str], name: str, value: Mapping[str, Any]) -> None:
        entry = name if flattened else "entry"
        if not flattened:
            out.append(f"<{name}>")
        for key, item in value.items():
            out.append(f"<{entry}><{key_name}>{escape(key)}</{key_name}>")
            inner(out, value_name, item)
            out.append(f"</{entry}>")
        if not flattened:
            out.append(f"</{name}>")

    return write


def text_writer(shape: Any, instant: Callable[[Any], Any] = timestamp.write_iso8601) -> Callable[[Any], str]:
    """From a scalar to its text; `instant` is the place's usual form of a timestamp."""
    match shape.type_name:
        case "boolean":
            return lambda value: "true" if value else "false"
        case "timestamp":
            form = timestamp_writer(shape.serialization.get("timestampFormat"), instant)
            return lambda value: _plain(form(value))
        case "blob":
            return write_base64
        case "float" | "double" | "bigdecimal":
            return _plain
        case _:
            return str


def _plain(value: Any) -> str:
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value, "NaN")
        if value.is_integer() and abs(value) < 1e15:
            return str(int(value)) if abs(value) >= 1e6 else str(value)
    return str(value)
