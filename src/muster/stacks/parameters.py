"""A template's parameters: their declarations, and the values a deployment gives them.

Keeps true: a value that passes is one of its type and within its declared limits. Does not know where values go.
Rules and messages after https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.stacks.problem import Problem, suggestion

HIDDEN = "****"
TYPES = ("String", "Number", "List<Number>", "CommaDelimitedList")
_MEMBERS = frozenset(
    [
        "Type",
        "Default",
        "Description",
        "AllowedValues",
        "AllowedPattern",
        "ConstraintDescription",
        "MinLength",
        "MaxLength",
        "MinValue",
        "MaxValue",
        "NoEcho",
    ]
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One declared parameter."""

    name: str
    type: str
    declared: Mapping[str, Any]

    @property
    def is_hidden(self) -> bool:
        return str(self.declared.get("NoEcho", "false")).lower() == "true"

    @property
    def default(self) -> str | None:
        value = self.declared.get("Default")
        return None if value is None else text_of(value)


def text_of(value: Any) -> str:
    """A scalar as CloudFormation writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(text_of(item) for item in value)
    return str(value)


def declared(section: Mapping[str, Any]) -> dict[str, Parameter]:
    """The parameters that a template's section declares."""
    found = {}
    for name, body in section.items():
        if not isinstance(body, dict) or "Type" not in body:
            raise Problem(
                f"Template format error: Every Parameters object must contain a Type member; {name} has none."
            )
        strange = body.keys() - _MEMBERS
        if strange:
            wrong = sorted(strange)[0]
            raise Problem(
                f"Template format error: Invalid parameter property {wrong} of {name}.{suggestion(wrong, _MEMBERS)}"
            )
        if body["Type"] not in TYPES:
            raise Problem(
                f"Muster does not support the type {body['Type']} of parameter {name}; supported are {', '.join(TYPES)}."
            )
        found[name] = Parameter(name, body["Type"], body)
    return found


def settle(parameters: Mapping[str, Parameter], given: Mapping[str, str]) -> dict[str, str]:
    """Every parameter's text: the one given, or else its default; Problem when one has none or is out of its limits."""
    unknown = given.keys() - parameters.keys()
    if unknown:
        raise Problem(f"Parameters: [{', '.join(sorted(unknown))}] do not exist in the template")
    settled: dict[str, str] = {}
    missing = []
    for name, parameter in parameters.items():
        text = given.get(name, parameter.default)
        if text is None:
            missing.append(name)
        else:
            _check(parameter, text)
            settled[name] = text
    if missing:
        raise Problem(f"Parameters: [{', '.join(missing)}] must have values")
    return settled


def value(parameter: Parameter, text: str) -> str | list[str]:
    """What a Ref to the parameter answers."""
    if parameter.type in ("CommaDelimitedList", "List<Number>"):
        return [item.strip() for item in text.split(",")]
    return text


def _check(parameter: Parameter, text: str) -> None:
    body, name = parameter.declared, parameter.name
    explained = f": {body['ConstraintDescription']}" if "ConstraintDescription" in body else ""
    items = value(parameter, text)
    each = items if isinstance(items, list) else [items]
    if "Number" in parameter.type:
        for item in each:
            _check_number(name, item, body)
    allowed = body.get("AllowedValues")
    if allowed is not None and any(item not in [text_of(one) for one in allowed] for item in each):
        choice = ", ".join(text_of(one) for one in allowed)
        raise Problem(f"Parameter '{name}' must be one of AllowedValues [{choice}]{explained}")
    pattern = body.get("AllowedPattern")
    if pattern is not None and any(re.fullmatch(pattern, item) is None for item in each):
        raise Problem(f"Parameter '{name}' must match pattern {pattern}{explained}")
    if "MinLength" in body and len(text) < int(body["MinLength"]):
        raise Problem(f"Parameter '{name}' must contain at least {body['MinLength']} characters{explained}")
    if "MaxLength" in body and len(text) > int(body["MaxLength"]):
        raise Problem(f"Parameter '{name}' must contain at most {body['MaxLength']} characters{explained}")


def _check_number(name: str, text: str, body: Mapping[str, Any]) -> None:
    try:
        number = float(text)
    except ValueError:
        raise Problem(f"Parameter '{name}' must be a number.") from None
    if "MinValue" in body and number < float(body["MinValue"]):
        raise Problem(f"Parameter '{name}' must be a number not less than {body['MinValue']}")
    if "MaxValue" in body and number > float(body["MaxValue"]):
        raise Problem(f"Parameter '{name}' must be a number not greater than {body['MaxValue']}")
