"""Where rest-json and rest-xml put a request's members: the path, the query, headers, and what is left in the body.

Keeps true: every member is looked for where its model says, and nowhere else. Does not know what the body is written
in: `Body` does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from botocore.model import OperationModel

from muster.wire import timestamp
from muster.wire.message import Encoded, Misread
from muster.wire.xml_shapes import text_reader, text_writer

Pairs = Sequence[tuple[str, str]]


class Body(Protocol):
    """The medium of a body."""

    content_type: str

    def structure_reader(self, shape: Any, members: Mapping[str, Any]) -> Callable[[bytes], dict[str, Any]]: ...
    def payload_reader(self, shape: Any) -> Callable[[bytes], Any]: ...
    def structure_writer(self, operation: OperationModel, members: Mapping[str, Any]) -> Callable[[Any], bytes]: ...
    def payload_writer(self, shape: Any) -> Callable[[Any], bytes]: ...


@dataclass(frozen=True, slots=True)
class _Located:
    """An operation's members by where they are; each with the name there and its converter."""

    uri: list[tuple[str, str, Callable[[str], Any]]]
    query: list[tuple[str, str, Callable[[list[str]], Any]]]
    query_map: str | None
    headers: list[tuple[str, str, Callable[[str], Any]]]
    prefixed: list[tuple[str, str]]


class RequestReader:
    """Reads one operation's requests."""

    def __init__(self, operation: OperationModel, body: Body) -> None:
        shape = operation.input_shape
        members: Mapping[str, Any] = shape.members if shape is not None else {}
        payload = shape.serialization.get("payload") if shape is not None else None
        self._located = _locate(members)
        self._payload = payload
        self._read_body: Callable[[bytes], Any] | None = None
        inside = {name: member for name, member in members.items() if "location" not in member.serialization}
        if payload is not None:
            self._read_body = _payload_reader(members[payload], body)
        elif inside:
            self._read_body = body.structure_reader(shape, inside)

    def read(self, uri: Mapping[str, str], query: Pairs, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """The request, from the values in the path, the query's pairs, headers by small names, and the body."""
        found: dict[str, Any] = {}
        if self._read_body is not None and body:
            read = self._read_body(body)
            if self._payload is None:
                found.update(read)
            else:
                found[self._payload] = read
        located = self._located
        for name, member, convert in located.uri:
            if name in uri:
                found[member] = _at(member, convert, uri[name])
        if located.query or located.query_map:
            by_name: dict[str, list[str]] = {}
            for key, value in query:
                by_name.setdefault(key, []).append(value)
            for name, member, convert_all in located.query:
                if name in by_name:
                    found[member] = _at(member, convert_all, by_name[name])
            if located.query_map is not None:
                known = {name for name, _, _ in located.query}
                found[located.query_map] = {key: values[-1] for key, values in by_name.items() if key not in known}
        for name, member, convert in located.headers:
            text = headers.get(name)
            if text is not None:
                found[member] = _at(member, convert, text)
        for prefix, member in located.prefixed:
            inside = {key[len(prefix) :]: value for key, value in headers.items() if key.startswith(prefix)}
            if inside:
                found[member] = inside
        return found


def _at(member: str, convert: Callable[[Any], Any], value: Any) -> Any:
    try:
        return convert(value)
    except Misread as problem:
        problem.path.append(member)
        raise


def _locate(members: Mapping[str, Any]) -> _Located:
    located = _Located([], [], None, [], [])
    query_map = None
    for name, member in members.items():
        wire = member.serialization.get("name", name)
        match member.serialization.get("location"):
            case "uri":
                located.uri.append((wire, name, text_reader(member)))
            case "querystring" if member.type_name == "map":
                query_map = name
            case "querystring":
                located.query.append((wire, name, _all_reader(member)))
            case "header":
                located.headers.append((wire.lower(), name, _header_reader(member)))
            case "headers":
                located.prefixed.append((wire.lower(), name))
    return _Located(located.uri, located.query, query_map, located.headers, located.prefixed)


def _all_reader(shape: Any) -> Callable[[list[str]], Any]:
    if shape.type_name == "list":
        item = text_reader(shape.member)
        return lambda values: [item(value) for value in values]
    one = text_reader(shape)
    return lambda values: one(values[-1])


def _header_reader(shape: Any) -> Callable[[str], Any]:
    if shape.type_name == "list":
        item = text_reader(shape.member)
        return lambda text: [item(piece.strip().strip('"')) for piece in text.split(",") if piece.strip()]
    return text_reader(shape)


def _payload_reader(shape: Any, body: Body) -> Callable[[bytes], Any]:
    if shape.type_name == "blob":
        return lambda content: content
    if shape.type_name == "string":
        return _utf8
    return body.payload_reader(shape)


def _utf8(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise Misread("The body is not UTF-8") from None


class AnswerWriter:
    """Writes one operation's answers."""

    def __init__(self, operation: OperationModel, body: Body) -> None:
        shape = operation.output_shape
        members: Mapping[str, Any] = shape.members if shape is not None else {}
        self._status: int = operation.http.get("responseCode", 200)
        self._status_member: str | None = None
        self._headers: list[tuple[str, str, Callable[[Any], str]]] = []
        self._prefixed: list[tuple[str, str]] = []
        self._payload = shape.serialization.get("payload") if shape is not None else None
        self._write_body: Callable[[Any], Any] | None = None
        self._content_type = body.content_type
        inside = {}
        for name, member in members.items():
            wire = member.serialization.get("name", name)
            match member.serialization.get("location"):
                case "header":
                    self._headers.append((name, wire, _header_writer(member)))
                case "headers":
                    self._prefixed.append((name, wire))
                case "statusCode":
                    self._status_member = name
                case _:
                    inside[name] = member
        if self._payload is not None:
            payload = members[self._payload]
            if payload.type_name in ("blob", "string"):
                self._content_type = "application/octet-stream"
                self._write_body = lambda value: value.encode() if isinstance(value, str) else value
            else:
                self._write_body = body.payload_writer(payload)
        elif inside and operation.http.get("method") != "HEAD":
            self._write_body = body.structure_writer(operation, inside)

    def write(self, answer: Mapping[str, Any]) -> Encoded:
        """The status, the headers (Content-Type among them when there is a body) and the body."""
        status = self._status
        if self._status_member is not None:
            status = answer.get(self._status_member) or status
        headers: list[tuple[str, str]] = []
        for member, wire, convert in self._headers:
            value = answer.get(member)
            if value is not None:
                headers.append((wire, convert(value)))
        for member, prefix in self._prefixed:
            headers.extend((prefix + key, value) for key, value in (answer.get(member) or {}).items())
        content: Any = b""
        if self._write_body is not None:
            if self._payload is None:
                content = self._write_body(answer)
            elif answer.get(self._payload) is not None:
                content = self._write_body(answer[self._payload])
        if content != b"" and not any(name.lower() == "content-type" for name, _ in headers):
            headers.append(("Content-Type", self._content_type))
        return Encoded(status, headers, content)


def _header_writer(shape: Any) -> Callable[[Any], str]:
    if shape.type_name == "list":
        item = text_writer(shape.member, timestamp.write_http_date)
        return lambda values: ",".join(map(item, values))
    return text_writer(shape, timestamp.write_http_date)
