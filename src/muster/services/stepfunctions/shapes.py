"""Parameters and results of integrations, between a state machine's JSON and a service's own members.

State machines write members in PascalCase, texts where the model wants bytes or instants, and objects where it wants
JSON text; this turns them into what an operation takes, and its answer back. What does not fit is named. Knows
botocore's models, and no service.

Sources: "Learning to use AWS service SDK integrations in Step Functions"; "Optimizing Step Functions integrations".
"""

import base64
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson
from botocore.model import ListShape, MapShape, OperationModel, Shape, StructureShape

from muster import models
from muster.languages.asl import timestamps


class Unfit(Exception):
    """Parameters that are not what the operation takes; carries AWS's remarks."""

    def __init__(self, remarks: list[str]) -> None:
        super().__init__(", ".join(remarks))
        self.remarks = remarks


def operation(service: str, name: str) -> OperationModel | None:
    """The operation's model, or None when the service has no such operation."""
    return models.operation(service, name) if models.has(service, name) else None


@lru_cache(maxsize=4096)
def _members(shape: StructureShape) -> dict[str, tuple[str, Shape]]:
    """Members by their name in PascalCase."""
    return {pascal(name): (name, member) for name, member in shape.members.items()}


def pascal(name: str) -> str:
    """The name as state machines write it."""
    return name[:1].upper() + name[1:]


def to_request(operation_model: OperationModel, parameters: Mapping[str, Any], *, lenient: bool) -> dict[str, Any]:
    """The operation's request; Unfit with every remark. `lenient` is the optimised DynamoDB integration's reading of
    plain strings as attribute values."""
    remarks: list[str] = []
    shape = operation_model.input_shape
    if shape is None:
        return {}
    assert isinstance(shape, StructureShape)
    request = _structure(parameters, shape, "", lenient, remarks)
    if remarks:
        raise Unfit(remarks)
    return request


def _structure(
    value: Mapping[str, Any], shape: StructureShape, path: str, lenient: bool, remarks: list[str]
) -> dict[str, Any]:
    known = _members(shape)
    request: dict[str, Any] = {}
    for key, inner in value.items():
        found = known.get(key)
        if found is None:
            remarks.append(f'The field "{path}{key}" is not supported by Step Functions')
        elif inner is not None:
            name, member = found
            request[name] = _value(inner, member, f"{path}{key}", lenient, remarks)
    for name in shape.required_members:
        if name not in request:
            remarks.append(f'The field "{path}{pascal(name)}" is required but was missing')
    return request


def _value(value: Any, shape: Shape, path: str, lenient: bool, remarks: list[str]) -> Any:
    kind = shape.type_name
    if isinstance(shape, StructureShape):
        if lenient and shape.name == "AttributeValue":
            if isinstance(value, str):
                return {"S": value}
            if isinstance(value, list) and all(isinstance(one, str) for one in value):
                return {"SS": value}
        if isinstance(value, Mapping):
            return _structure(value, shape, f"{path}.", lenient, remarks)
    elif isinstance(shape, ListShape):
        if isinstance(value, list):
            return [_value(one, shape.member, f"{path}[{place}]", lenient, remarks) for place, one in enumerate(value)]
    elif isinstance(shape, MapShape):
        if isinstance(value, Mapping):
            return {key: _value(one, shape.value, f"{path}.{key}", lenient, remarks) for key, one in value.items()}
    elif kind == "string":
        if isinstance(value, str):
            return value
        if isinstance(value, dict | list):
            return orjson.dumps(value).decode()
    elif kind == "blob":
        return value.encode() if isinstance(value, str) else orjson.dumps(value)
    elif kind == "boolean":
        if isinstance(value, bool):
            return value
    elif kind == "timestamp":
        instant = timestamps.parse(value) if isinstance(value, str) else value
        if isinstance(instant, int | float) and not isinstance(instant, bool):
            return instant
    elif isinstance(value, int | float) and not isinstance(value, bool):
        return value
    remarks.append(f'The value for the field "{path}" must be {_ARTICLES.get(kind, kind.upper())}')
    return value


_ARTICLES = {
    "structure": "an OBJECT",
    "map": "an OBJECT",
    "list": "an ARRAY",
    "string": "a STRING",
    "boolean": "a BOOLEAN",
    "integer": "an INTEGER",
    "long": "a LONG",
    "float": "a FLOAT",
    "double": "a DOUBLE",
    "timestamp": "a TIMESTAMP",
}


def from_answer(operation_model: OperationModel, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer as a state machine sees it."""
    shape = operation_model.output_shape
    if shape is None:
        return {}
    found = _shown(answer, shape)
    assert isinstance(found, dict)
    return found


def _shown(value: Any, shape: Shape) -> Any:
    if value is None:
        return None
    if isinstance(shape, StructureShape):
        return {pascal(name): _shown(value[name], member) for name, member in shape.members.items() if name in value}
    if isinstance(shape, ListShape):
        return [_shown(one, shape.member) for one in value]
    if isinstance(shape, MapShape):
        return {key: _shown(one, shape.value) for key, one in value.items()}
    if shape.type_name == "timestamp" and isinstance(value, int | float):
        return timestamps.text(value)
    if shape.type_name == "blob" and isinstance(value, bytes | bytearray):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    return value
