"""What a target receives: the event, a part of it, a constant, or a template filled from it.

Keeps true: a template that is JSON stays JSON whatever the event holds: inside a string a value is written as the
string's text, elsewhere as the JSON value it is. A variable whose path leads nowhere is empty in a string and null
elsewhere. Source: the EventBridge user guide, "Input transformation".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from muster.services.events.occurrence import Event, text
from muster.services.events.paths import ABSENT, InvalidPath, follow, steps
from muster.services.events.refusals import invalid, invalid_parameter

RESERVED = frozenset(
    {
        "aws.events.rule-arn",
        "aws.events.rule-name",
        "aws.events.event.ingestion-time",
        "aws.events.event",
        "aws.events.event.json",
    }
)
_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A variable in a template, and whether it stands inside a string."""

    name: str
    in_string: bool


@dataclass(frozen=True, slots=True)
class Matched:
    """The rule that brought the event, for the reserved variables."""

    rule_arn: str
    rule_name: str
    ingested_at: str


@lru_cache(maxsize=1024)
def parts(template: str) -> tuple[str | Placeholder, ...]:
    """The template as text and placeholders."""
    found: list[str | Placeholder] = []
    literal: list[str] = []
    in_string = False
    at = 0
    while at < len(template):
        character = template[at]
        if character == "<":
            end = template.find(">", at)
            name = template[at + 1 : end] if end > 0 else ""
            if name and _NAME.issuperset(name):
                found += ["".join(literal), Placeholder(name, in_string)]
                literal = []
                at = end + 1
                continue
        if character == "\\" and in_string:
            literal.append(template[at : at + 2])
            at += 2
            continue
        if character == '"':
            in_string = not in_string
        literal.append(character)
        at += 1
    found.append("".join(literal))
    return tuple(found)


def check(target: Mapping[str, Any]) -> None:
    """ValidationException when what the target is to receive cannot be understood."""
    id_ = target["Id"]
    if sum(member in target for member in ("Input", "InputPath", "InputTransformer")) > 1:
        raise invalid(f"Only one of Input, InputPath, or InputTransformer must be provided for target {id_}.")
    if "Input" in target:
        try:
            orjson.loads(target["Input"])
        except orjson.JSONDecodeError:
            raise invalid(f"JSON syntax error in Input for target {id_}.") from None
    if "InputPath" in target:
        _check_path(target["InputPath"], "InputPath", id_)
    if "InputTransformer" in target:
        transformer = target["InputTransformer"]
        variables = transformer.get("InputPathsMap") or {}
        for name, path in variables.items():
            if name.lower().startswith("aws."):
                raise invalid(f"InputPathsMap for target {id_} contains the reserved name {name}.")
            _check_path(path, "InputPathsMap", id_)
        for part in parts(transformer["InputTemplate"]):
            if isinstance(part, Placeholder) and part.name not in variables and part.name not in RESERVED:
                raise invalid(f"InputTemplate for target {id_} contains invalid placeholder {part.name}.")


def _check_path(path: str, where: str, id_: str) -> None:
    try:
        steps(path)
    except InvalidPath:
        raise invalid_parameter(where, f"{path} is not a JSON path (target {id_}).") from None


def render(target: Mapping[str, Any], event: Event, matched: Matched) -> str:
    """The text that the target receives."""
    if "Input" in target:
        return str(target["Input"])
    if "InputPath" in target:
        found = follow(target["InputPath"], event)
        return "null" if found is ABSENT else orjson.dumps(found).decode()
    if "InputTransformer" not in target:
        return text(event)
    transformer = target["InputTransformer"]
    variables = transformer.get("InputPathsMap") or {}
    written: list[str] = []
    for part in parts(transformer["InputTemplate"]):
        if isinstance(part, str):
            written.append(part)
        else:
            written.append(_written(_value(part.name, variables, event, matched), in_string=part.in_string))
    return "".join(written)


def _value(name: str, variables: Mapping[str, str], event: Event, matched: Matched) -> Any:
    if name in variables:
        return follow(variables[name], event)
    match name:
        case "aws.events.rule-arn":
            return matched.rule_arn
        case "aws.events.rule-name":
            return matched.rule_name
        case "aws.events.event.ingestion-time":
            return matched.ingested_at
        case "aws.events.event":
            return {member: value for member, value in event.items() if member != "detail"}
        case _:
            return event


def _written(value: Any, *, in_string: bool) -> str:
    if not in_string:
        return "null" if value is ABSENT else orjson.dumps(value).decode()
    if value is ABSENT:
        return ""
    plain = value if isinstance(value, str) else orjson.dumps(value).decode()
    return orjson.dumps(plain).decode()[1:-1]
