"""Values that a shape allows, for property tests of the codecs; and botocore as the other side of the wire."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import HeadersDict, create_request_object, prepare_request_dict
from botocore.parsers import create_parser
from botocore.serialize import create_serializer
from hypothesis import strategies as st

from muster.wire.message import Encoded, Incoming

# What XML 1.0 can hold, less the carriage return, which botocore itself does not write safely.
TEXT = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_characters="\x7f")
    | st.sampled_from("\n\t&<>\"'+%=é😀"),
    max_size=12,
)
# What a header or a part of a path can hold.
TOKEN = st.text("abcXYZ019-_.:/ +%=&?#é", min_size=1, max_size=10).filter(lambda text: text == text.strip())
HEADER = st.text("abcXYZ019-_.:/+%=&?#", min_size=1, max_size=10)


def _scalar(shape: Any, place: str | None) -> st.SearchStrategy[Any]:
    match shape.type_name:
        case "boolean":
            return st.booleans()
        case "integer" | "short" | "byte":
            return st.integers(-(2**31), 2**31 - 1)
        case "long":
            return st.integers(-(2**63), 2**63 - 1)
        case "float" | "double" | "bigdecimal":
            return st.floats(allow_nan=False, allow_infinity=False)
        case "timestamp" if place or shape.serialization.get("timestampFormat") == "rfc822":
            return st.integers(0, 4_000_000_000).map(float)
        case "timestamp":
            return st.integers(0, 4_000_000_000_000).map(lambda milliseconds: milliseconds / 1000)
        case "blob":
            return st.binary(max_size=8)
        case _ if shape.metadata.get("enum"):
            return st.sampled_from(shape.metadata["enum"])
        case _:
            return {None: TEXT, "uri": TOKEN, "querystring": TOKEN}.get(place, HEADER)


def values(shape: Any, depth: int = 4, place: str | None = None) -> st.SearchStrategy[Any]:
    """Any value of the shape, nested at most `depth` deep."""
    place = shape.serialization.get("location", place)
    match shape.type_name:
        case "structure" if shape.is_document_type:
            return st.dictionaries(TEXT, TEXT | st.integers(0, 9), max_size=2)
        case "structure":
            return _structure(shape, depth)
        case "list":
            if depth <= 0:
                return st.just([])
            return st.lists(values(shape.member, depth - 1, place), min_size=1 if place else 0, max_size=3)
        case "map":
            if depth <= 0:
                return st.just({})
            keys = HEADER.map(str.lower) if place == "headers" else TOKEN if place else _scalar(shape.key, place)
            return st.dictionaries(keys, values(shape.value, depth - 1, place), max_size=3)
        case _:
            return _scalar(shape, place)


@st.composite
def _structure(draw: st.DrawFn, shape: Any, depth: int) -> dict[str, Any]:
    members = shape.members
    if shape.is_tagged_union:
        chosen = [draw(st.sampled_from(sorted(members)))] if members else []
    else:
        must = {
            name
            for name, member in members.items()
            if name in shape.required_members or member.serialization.get("location") == "uri"
        }
        rest = sorted(members.keys() - must)
        may = draw(st.lists(st.sampled_from(rest), max_size=4, unique=True)) if rest and depth > 0 else []
        chosen = [*sorted(must), *may]
    if depth <= -3:  # a shape that requires itself
        return {}
    return {name: draw(values(members[name], depth - 1)) for name in chosen}


def to_botocore(value: Any, shape: Any) -> Any:
    """Muster's instants as the datetimes that botocore takes and gives."""
    match shape.type_name:
        case "structure" if not shape.is_document_type:
            return {name: to_botocore(item, shape.members[name]) for name, item in value.items()}
        case "list":
            return [to_botocore(item, shape.member) for item in value]
        case "map":
            return {key: to_botocore(item, shape.value) for key, item in value.items()}
        case "timestamp":
            return datetime.fromtimestamp(value, UTC)
        case _:
            return value


def settled(value: Any, *, empty: bool) -> Any:
    """A value to compare: instants to the millisecond; without the empty lists and maps where the protocol has no way
    to write them (`empty` false)."""
    match value:
        case datetime():
            return round(value.timestamp(), 3)
        case bytearray():
            return bytes(value)
        case bool():
            return value
        case int() | float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            pairs = ((key, settled(item, empty=empty)) for key, item in value.items() if key != "ResponseMetadata")
            return {key: item for key, item in pairs if empty or item not in ({}, [])}
        case list():
            items = [settled(item, empty=empty) for item in value]
            return items if empty else [item for item in items if item not in ({}, [])]
        case _:
            return value


def sent(operation: Any, protocol: str, request: Mapping[str, Any]) -> Incoming:
    """The request as botocore writes it."""
    parameters = to_botocore(request, operation.input_shape) if operation.input_shape is not None else {}
    written = create_serializer(protocol, include_validation=False).serialize_to_request(parameters, operation)
    prepare_request_dict(written, endpoint_url="http://localhost", context={})
    prepared = create_request_object(written).prepare()
    url = urlsplit(prepared.url)
    body = prepared.body or b""
    if hasattr(body, "read"):
        body = body.read()
    return Incoming(
        prepared.method,
        url.path,
        url.query,
        {
            name.lower(): value.decode() if isinstance(value, bytes) else value
            for name, value in prepared.headers.items()
        },
        body.encode() if isinstance(body, str) else bytes(body),
    )


def received(operation: Any, protocol: str, encoded: Encoded) -> dict[str, Any]:
    """The answer, or the error, as botocore reads it."""
    response = {"status_code": encoded.status, "headers": HeadersDict(encoded.headers), "body": encoded.body}
    parsed: dict[str, Any] = create_parser(protocol).parse(response, operation.output_shape)
    return parsed
