"""Intrinsic functions: what a template's values become once the names in them have meanings.

Keeps true: a function is either computed or refused by name; `AWS::NoValue` leaves no trace where it stood. Does not
know resources or stacks: a Scope answers for them.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/intrinsic-function-reference.html
"""

import base64
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import orjson

from muster.stacks.parameters import text_of
from muster.stacks.problem import Problem

NO_VALUE: Any = object()

_TOKEN = re.compile(r"\$\{([^!{}][^{}]*)\}|\$\{!([^{}]*)\}")
_DYNAMIC = re.compile(r"\{\{resolve:([^:}]*)")


class Scope(Protocol):
    """What the names in a template mean at some moment of a deployment."""

    def ref(self, name: str) -> Any:
        """The value of a parameter, pseudo parameter or resource; NO_VALUE for AWS::NoValue."""
        ...

    def attribute(self, resource: str, name: str) -> Any:
        """An attribute of a resource."""
        ...

    def mapped(self, table: str, first: str, second: str) -> Any:
        """An entry of the Mappings section; KeyError when there is none."""
        ...

    def condition(self, name: str) -> bool:
        """Whether a named condition holds."""
        ...

    def imported(self, name: str) -> Any:
        """A value that another stack exports."""
        ...

    @property
    def zones(self) -> tuple[str, ...]:
        """The region's availability zones."""
        ...


def resolve(value: Any, scope: Scope) -> Any:
    """`value` with every function in it computed."""
    if isinstance(value, dict):
        if len(value) == 1:
            name = next(iter(value))
            function = _FUNCTIONS.get(name)
            if function is not None:
                return function(value[name], scope)
            if isinstance(name, str) and name.startswith("Fn::"):
                raise Problem(f"Muster does not support the function {name}.")
        made = {key: resolve(item, scope) for key, item in value.items()}
        return {key: item for key, item in made.items() if item is not NO_VALUE}
    if isinstance(value, list):
        return [item for item in (resolve(item, scope) for item in value) if item is not NO_VALUE]
    if isinstance(value, str) and "{{resolve:" in value:
        found = _DYNAMIC.search(value)
        raise Problem(f"Muster does not support dynamic references ({{{{resolve:{found[1] if found else ''}:…}}}}).")
    return value


def holds(condition: Any, scope: Scope) -> bool:
    """Whether a condition, written with Fn::Equals and its kin, holds."""
    found = resolve(condition, scope)
    if isinstance(found, bool):
        return found
    raise Problem(
        "Template format error: a condition must be made of Fn::And, Fn::Equals, Fn::Not, Fn::Or or Condition."
    )


def references(value: Any, scope: Scope) -> Iterator[tuple[str, str | None]]:
    """The names that `value` refers to, each with the attribute asked for (None for a plain Ref).

    Of an Fn::If only the branch that its condition takes is looked at, as CloudFormation does.
    """
    if isinstance(value, list):
        for item in value:
            yield from references(item, scope)
    elif isinstance(value, dict):
        if len(value) == 1:
            name, argument = next(iter(value.items()))
            if name == "Ref" and isinstance(argument, str):
                yield argument, None
                return
            if name == "Fn::GetAtt":
                resource, attribute = _attribute_of(argument)
                yield resource, attribute if isinstance(attribute, str) else "*"
                yield from references(attribute, scope)
                return
            if name == "Fn::If":
                yield from references(_branch(argument, scope), scope)
                return
            if name == "Fn::Sub":
                yield from _sub_references(argument, scope)
                return
        for item in value.values():
            yield from references(item, scope)


def _sub_references(argument: Any, scope: Scope) -> Iterator[tuple[str, str | None]]:
    text, names = _sub_parts(argument)
    yield from references(dict(names), scope)
    for found in _TOKEN.finditer(text):
        token = (found[1] or "").strip()
        if token and token not in names:
            resource, _, attribute = token.partition(".")
            yield resource, attribute or None


def _arguments(function: str, value: Any, *counts: int) -> list[Any]:
    if not isinstance(value, list) or (counts and len(value) not in counts):
        wanted = " or ".join(str(count) for count in counts)
        raise Problem(f"Template error: {function} requires a list argument with {wanted} elements.")
    return value


def _text(function: str, value: Any) -> str:
    if isinstance(value, (dict, list)) or value is None or value is NO_VALUE:
        raise Problem(f"Template error: {function} works on text, and was given {_shown(value)}.")
    return text_of(value)


def _shown(value: Any) -> str:
    if value is NO_VALUE:
        return "AWS::NoValue"
    shown = orjson.dumps(value, default=str).decode()
    return shown if len(shown) < 200 else shown[:200] + "…"


def _ref(argument: Any, scope: Scope) -> Any:
    if not isinstance(argument, str):
        raise Problem("Template format error: every Ref object must have a single String value.")
    return scope.ref(argument)


def _attribute_of(argument: Any) -> tuple[str, Any]:
    if isinstance(argument, str) and "." in argument:
        resource, _, attribute = argument.partition(".")
        return resource, attribute
    if isinstance(argument, list) and len(argument) >= 2 and isinstance(argument[0], str):
        if all(isinstance(part, str) for part in argument):
            return argument[0], ".".join(argument[1:])
        if len(argument) == 2:
            return argument[0], argument[1]
    raise Problem("Template error: Fn::GetAtt requires a resource and an attribute.")


def _get_att(argument: Any, scope: Scope) -> Any:
    resource, attribute = _attribute_of(argument)
    return scope.attribute(resource, _text("Fn::GetAtt", resolve(attribute, scope)))


def _sub_parts(argument: Any) -> tuple[str, Mapping[str, Any]]:
    if isinstance(argument, str):
        return argument, {}
    if (
        isinstance(argument, list)
        and len(argument) == 2
        and isinstance(argument[0], str)
        and isinstance(argument[1], dict)
    ):
        return argument[0], argument[1]
    raise Problem("Template error: Fn::Sub takes a text, or a list of a text and a map of variables.")


def _sub(argument: Any, scope: Scope) -> str:
    text, given = _sub_parts(argument)
    names = {name: resolve(value, scope) for name, value in given.items()}

    def replaced(found: re.Match[str]) -> str:
        if found[1] is None:
            return "${" + found[2] + "}"
        token = found[1].strip()
        if token in names:
            return _text(f"Fn::Sub of ${{{token}}}", names[token])
        resource, dot, attribute = token.partition(".")
        return _text(f"Fn::Sub of ${{{token}}}", scope.attribute(resource, attribute) if dot else scope.ref(token))

    return _TOKEN.sub(replaced, text)


def _join(argument: Any, scope: Scope) -> str:
    delimiter, items = _arguments("Fn::Join", argument, 2)
    parts = resolve(items, scope)
    if not isinstance(delimiter, str) or not isinstance(parts, list):
        raise Problem("Template error: Fn::Join requires a delimiter and a list.")
    return delimiter.join(_text("Fn::Join", part) for part in parts)


def _select(argument: Any, scope: Scope) -> Any:
    index, items = resolve(_arguments("Fn::Select", argument, 2), scope)
    try:
        position = int(index)
    except (TypeError, ValueError):
        raise Problem(f"Template error: Fn::Select requires an index, and was given {_shown(index)}.") from None
    if not isinstance(items, list) or not 0 <= position < len(items):
        raise Problem(f"Template error: Fn::Select cannot select nonexistent value at index {position}")
    return items[position]


def _split(argument: Any, scope: Scope) -> list[str]:
    delimiter, text = resolve(_arguments("Fn::Split", argument, 2), scope)
    if not isinstance(delimiter, str) or not delimiter:
        raise Problem("Template error: Fn::Split requires a delimiter of at least one character.")
    return _text("Fn::Split", text).split(delimiter)


def _find_in_map(argument: Any, scope: Scope) -> Any:
    parts = _arguments("Fn::FindInMap", argument, 3, 4)
    table, first, second = (_text("Fn::FindInMap", resolve(part, scope)) for part in parts[:3])
    try:
        return resolve(scope.mapped(table, first, second), scope)
    except KeyError:
        if len(parts) == 4 and isinstance(parts[3], dict) and "DefaultValue" in parts[3]:
            return resolve(parts[3]["DefaultValue"], scope)
        raise Problem(f"Template error: Unable to get mapping for {table}::{first}::{second}") from None


def _branch(argument: Any, scope: Scope) -> Any:
    name, then, otherwise = _arguments("Fn::If", argument, 3)
    if not isinstance(name, str):
        raise Problem("Template error: Fn::If requires the name of a condition.")
    return then if scope.condition(name) else otherwise


def _if(argument: Any, scope: Scope) -> Any:
    return resolve(_branch(argument, scope), scope)


def _base64(argument: Any, scope: Scope) -> str:
    return base64.b64encode(_text("Fn::Base64", resolve(argument, scope)).encode()).decode()


def _import_value(argument: Any, scope: Scope) -> Any:
    return scope.imported(_text("Fn::ImportValue", resolve(argument, scope)))


def _get_azs(argument: Any, scope: Scope) -> list[str]:
    resolve(argument, scope)
    return list(scope.zones)


def _cidr(argument: Any, scope: Scope) -> list[str]:
    parts = resolve(_arguments("Fn::Cidr", argument, 2, 3), scope)
    try:
        network = ipaddress.ip_network(_text("Fn::Cidr", parts[0]), strict=False)
        count, bits = int(parts[1]), int(parts[2]) if len(parts) == 3 else 8
        subnets = network.subnets(new_prefix=network.max_prefixlen - bits)
        found = [str(subnet) for _, subnet in zip(range(count), subnets, strict=False)]
    except ValueError as error:
        raise Problem(f"Template error: Fn::Cidr: {error}.") from None
    if not 1 <= count <= 256 or len(found) < count:
        raise Problem(f"Template error: Fn::Cidr cannot take {count} blocks of {bits} bits out of {network}.")
    return found


def _length(argument: Any, scope: Scope) -> int:
    items = resolve(argument, scope)
    if not isinstance(items, list):
        raise Problem("Template error: Fn::Length requires a list.")
    return len(items)


def _to_json_string(argument: Any, scope: Scope) -> str:
    return orjson.dumps(resolve(argument, scope), option=orjson.OPT_NON_STR_KEYS).decode()


def _equals(argument: Any, scope: Scope) -> bool:
    left, right = resolve(_arguments("Fn::Equals", argument, 2), scope)
    if isinstance(left, (dict, list)) or isinstance(right, (dict, list)):
        return bool(left == right)
    return text_of(left) == text_of(right)


def _and(argument: Any, scope: Scope) -> bool:
    return all(holds(item, scope) for item in _several("Fn::And", argument))


def _or(argument: Any, scope: Scope) -> bool:
    return any(holds(item, scope) for item in _several("Fn::Or", argument))


def _several(function: str, argument: Any) -> list[Any]:
    if not isinstance(argument, list) or not 2 <= len(argument) <= 10:
        raise Problem(f"Template error: every {function} object requires a list of 2 to 10 conditions.")
    return argument


def _not(argument: Any, scope: Scope) -> bool:
    return not holds(_arguments("Fn::Not", argument, 1)[0], scope)


def _condition(argument: Any, scope: Scope) -> Any:
    # A property may be called Condition as well (in policy statements), and then holds an object.
    if isinstance(argument, str):
        return scope.condition(argument)
    return {"Condition": resolve(argument, scope)}


_FUNCTIONS: dict[str, Callable[[Any, Scope], Any]] = {
    "Ref": _ref,
    "Condition": _condition,
    "Fn::And": _and,
    "Fn::Base64": _base64,
    "Fn::Cidr": _cidr,
    "Fn::Equals": _equals,
    "Fn::FindInMap": _find_in_map,
    "Fn::GetAZs": _get_azs,
    "Fn::GetAtt": _get_att,
    "Fn::If": _if,
    "Fn::ImportValue": _import_value,
    "Fn::Join": _join,
    "Fn::Length": _length,
    "Fn::Not": _not,
    "Fn::Or": _or,
    "Fn::Select": _select,
    "Fn::Split": _split,
    "Fn::Sub": _sub,
    "Fn::ToJsonString": _to_json_string,
}
