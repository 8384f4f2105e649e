"""Attribute values in AWS's own form, `{"S": "text"}`, checked and made normal.

Keeps true: a value that passed `normal` has exactly one type, numbers in their one text, sets sorted and without
duplicates, binaries as bytes; so two values are equal when their dicts are. Does not know tables or keys.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from muster.languages.expressions.number import normal_number
from muster.languages.expressions.problem import ExpressionError

AttributeValue = dict[str, Any]
Item = dict[str, AttributeValue]

TYPES = ("S", "N", "B", "SS", "NS", "BS", "M", "L", "NULL", "BOOL")
SETS = {"SS": "S", "NS": "N", "BS": "B"}
NESTING_MAX = 32

_INVALID = "One or more parameter values were invalid: "


def normal(value: Any, depth: int = 0) -> AttributeValue:
    """The normal form of an attribute value; ExpressionError with AWS's message when it is not one."""
    if not isinstance(value, Mapping):
        raise ExpressionError("Supplied AttributeValue is not a structure")
    if len(value) != 1:
        if len(value) > 1:
            raise ExpressionError(
                "Supplied AttributeValue has more than one datatypes set, "
                "must contain exactly one of the supported datatypes"
            )
        raise ExpressionError("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
    [(kind, content)] = value.items()
    reader = _READERS.get(kind)
    if reader is None:
        raise ExpressionError("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
    return {kind: reader(content, depth)}


def normal_item(item: Mapping[str, Any]) -> Item:
    """The normal form of every attribute of an item."""
    return {name: normal(value) for name, value in item.items()}


def _text(content: Any, _depth: int) -> str:
    if not isinstance(content, str):
        raise ExpressionError("STRING_VALUE cannot be converted to String")
    return content


def _number(content: Any, _depth: int) -> str:
    if not isinstance(content, str):
        raise ExpressionError("NUMBER_VALUE cannot be converted to String")
    return normal_number(content)


def _binary(content: Any, _depth: int) -> bytes:
    if isinstance(content, bytes | bytearray):
        return bytes(content)
    try:
        return base64.b64decode(content, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise ExpressionError("Invalid binary value: not base64") from None


def _flag(content: Any, _depth: int) -> bool:
    if not isinstance(content, bool):
        raise ExpressionError("Unexpected token received from parser")
    return content


def _null(content: Any, _depth: int) -> bool:
    if content is not True:
        raise ExpressionError(f"{_INVALID}Null attribute value types must have the value of true")
    return True


def _members(content: Any) -> list[Any]:
    if not isinstance(content, list | tuple):
        raise ExpressionError("Unexpected field type")
    return list(content)


def _texts(content: Any, depth: int) -> list[str]:
    texts = [_text(member, depth) for member in _members(content)]
    if not texts:
        raise ExpressionError(f"{_INVALID}An string set  may not be empty")
    if len(set(texts)) != len(texts):
        raise ExpressionError(f"{_INVALID}Input collection [{', '.join(texts)}] contains duplicates.")
    return sorted(texts)


def _numbers(content: Any, depth: int) -> list[str]:
    numbers = [_number(member, depth) for member in _members(content)]
    if not numbers:
        raise ExpressionError(f"{_INVALID}An number set  may not be empty")
    if len(set(numbers)) != len(numbers):
        raise ExpressionError("Input collection contains duplicates")
    return sorted(numbers, key=Decimal)


def _binaries(content: Any, depth: int) -> list[bytes]:
    binaries = [_binary(member, depth) for member in _members(content)]
    if not binaries:
        raise ExpressionError(f"{_INVALID}Binary sets should not be empty")
    if len(set(binaries)) != len(binaries):
        shown = ", ".join(base64.b64encode(binary).decode() for binary in binaries)
        raise ExpressionError(f"{_INVALID}Input collection [{shown}]of type BS contains duplicates.")
    return sorted(binaries)


def _deeper(depth: int) -> int:
    if depth + 1 >= NESTING_MAX:
        raise ExpressionError(
            "Nesting Levels have exceeded supported limits: "
            "Attributes in the item have nested levels beyond supported limit"
        )
    return depth + 1


def _list(content: Any, depth: int) -> list[AttributeValue]:
    deeper = _deeper(depth)
    return [normal(member, deeper) for member in _members(content)]


def _map(content: Any, depth: int) -> Item:
    if not isinstance(content, Mapping):
        raise ExpressionError("Unexpected field type")
    deeper = _deeper(depth)
    return {name: normal(member, deeper) for name, member in content.items()}


_READERS: dict[str, Callable[[Any, int], Any]] = {
    "S": _text,
    "N": _number,
    "B": _binary,
    "BOOL": _flag,
    "NULL": _null,
    "SS": _texts,
    "NS": _numbers,
    "BS": _binaries,
    "L": _list,
    "M": _map,
}


def kind_of(value: AttributeValue) -> str:
    """The type's name: `S`, `N`, …"""
    return next(iter(value))


def made_set(kind: str, members: set[Any]) -> AttributeValue:
    """A set of that kind in its normal form."""
    return {kind: sorted(members, key=Decimal) if kind == "NS" else sorted(members)}


def sort_key(value: AttributeValue) -> Any:
    """What orders values of one scalar kind: texts by code point (so by UTF-8), numbers by value, binaries by byte."""
    [(kind, content)] = value.items()
    return Decimal(content) if kind == "N" else content


def bytes_of_text(text: str) -> int:
    """The text's length in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def size_of(value: AttributeValue) -> int:
    """A value's size in bytes as it counts towards limits and capacity ("DynamoDB item sizes and formats")."""
    [(kind, content)] = value.items()
    match kind:
        case "S":
            return bytes_of_text(content)
        case "N":
            return _size_of_number(content)
        case "B":
            return len(content)
        case "BOOL" | "NULL":
            return 1
        case "SS":
            return sum(bytes_of_text(text) for text in content)
        case "NS":
            return sum(_size_of_number(number) for number in content)
        case "BS":
            return sum(len(binary) for binary in content)
        case "L":
            return 3 + sum(1 + size_of(member) for member in content)
        case _:
            return 3 + sum(1 + bytes_of_text(name) + size_of(member) for name, member in content.items())


def _size_of_number(text: str) -> int:
    digits = text.lstrip("-").replace(".", "").strip("0")
    return 1 + (len(digits) + 1) // 2 + text.startswith("-")


def size_of_item(item: Mapping[str, AttributeValue]) -> int:
    """An item's size in bytes: its names and its values."""
    return sum(bytes_of_text(name) + size_of(value) for name, value in item.items())
