"""Template values fitted to the shapes of the API that makes the resource.

CloudFormation takes scalars loosely ("30" for 30, true for "true") and spells members with a capital where some APIs
do not. Keeps true: what leaves here has the API's types and names, or a Problem names the property that does not
fit. Knows the shapes from AWS's service models; does not know what they are for.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from botocore.model import Shape

from muster import models
from muster.stacks.parameters import text_of
from muster.stacks.problem import Problem, suggestion


def fit(service: str, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """`request` in the types and spelling of the operation's input; Problem when a value cannot be."""
    shape = models.operation(service, operation).input_shape
    if shape is None:
        return {}
    fitted: dict[str, Any] = _structure(shape, {k: v for k, v in request.items() if v is not None}, "")
    return fitted


def _fit(shape: Shape, value: Any, place: str) -> Any:
    return _FITS.get(shape.type_name, _as_it_is)(shape, value, place)


def _structure(shape: Any, value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Problem(f"{_of(place)}must be an object, not {_shown(value)}.")
    members: Mapping[str, Shape] = shape.members
    folded = {name[0].upper() + name[1:]: name for name in members}
    made: dict[str, Any] = {}
    for key, item in value.items():
        name = key if key in members else folded.get(key)
        if name is None:
            raise Problem(f"{_of(place)}has an unknown property {key}.{suggestion(str(key), folded)}")
        made[name] = _fit(members[name], item, f"{place}.{key}" if place else str(key))
    for name in shape.required_members:
        if name not in made:
            inside = f" of {place}" if place else ""
            raise Problem(f"The property {name[0].upper() + name[1:]}{inside} is required.")
    return made


def _list(shape: Any, value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise Problem(f"{_of(place)}must be a list, not {_shown(value)}.")
    return [_fit(shape.member, item, f"{place}[{index}]") for index, item in enumerate(value)]


def _map(shape: Any, value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Problem(f"{_of(place)}must be an object, not {_shown(value)}.")
    return {text_of(key): _fit(shape.value, item, f"{place}.{key}") for key, item in value.items()}


def _string(_: Shape, value: Any, place: str) -> str:
    if isinstance(value, (dict, list)) or value is None:
        raise Problem(f"{_of(place)}must be a text, not {_shown(value)}.")
    return text_of(value)


def _integer(_: Shape, value: Any, place: str) -> int:
    try:
        if isinstance(value, (dict, list, bool)) or float(value) != int(float(value)):
            raise ValueError
        return int(float(value))
    except (TypeError, ValueError):
        raise Problem(f"{_of(place)}must be a whole number, not {_shown(value)}.") from None


def _number(_: Shape, value: Any, place: str) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        return float(value)
    except (TypeError, ValueError):
        raise Problem(f"{_of(place)}must be a number, not {_shown(value)}.") from None


def _boolean(_: Shape, value: Any, place: str) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise Problem(f"{_of(place)}must be true or false, not {_shown(value)}.")


def _as_it_is(_: Shape, value: Any, place: str) -> Any:
    return value


_FITS: Mapping[str, Any] = {
    "structure": _structure,
    "list": _list,
    "map": _map,
    "string": _string,
    "integer": _integer,
    "long": _integer,
    "float": _number,
    "double": _number,
    "boolean": _boolean,
}


def _of(place: str) -> str:
    return f"The property {place} " if place else "The resource "


def _shown(value: Any) -> str:
    shown = orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    return shown if len(shown) < 120 else shown[:120] + "…"
