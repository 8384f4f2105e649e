"""The conditions of a JSONPath filter, as functions of the element and the document.

Keeps true: a condition never fails; what cannot be compared is unequal and unordered. A number and a text are equal
when one reads as the other, and a missing value is different from everything, null included, as in Jayway's dialect.
"""

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

Operand = Callable[[Any, Any], Any]
Condition = Callable[[Any, Any], bool]

MISSING: Any = object()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _number_text(value: Any) -> str:
    return str(value)


def equal(left: Any, right: Any) -> bool:
    """`==`."""
    if left is MISSING or right is MISSING:
        return False
    if _is_number(left) and isinstance(right, str):
        parsed = _number(right)
        return parsed is not None and parsed == Decimal(str(left))
    if isinstance(left, str) and _is_number(right):
        return left == _number_text(right)
    return same(left, right)


def same(left: Any, right: Any) -> bool:
    """`===`: equal and of one type."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return left is not MISSING and right is not MISSING and bool(left == right)


def _less(left: Any, right: Any) -> bool:
    return _ordered(left, right) and left < right


def _less_or_equal(left: Any, right: Any) -> bool:
    return _ordered(left, right) and left <= right


def _ordered(left: Any, right: Any) -> bool:
    return (_is_number(left) and _is_number(right)) or (isinstance(left, str) and isinstance(right, str))


def _in(left: Any, right: Any) -> bool:
    return isinstance(right, list) and any(equal(left, item) for item in right)


def _contains(left: Any, right: Any) -> bool:
    if isinstance(left, str):
        return isinstance(right, str) and right in left
    return _in(right, left)


def _overlap(left: Any, right: Any) -> bool:
    return isinstance(left, list) and any(_in(item, right) for item in left)


def _size(value: Any) -> int | None:
    return len(value) if isinstance(value, list | str) else None


def _has_size(left: Any, right: Any) -> bool:
    wanted = right if _is_number(right) else _size(right)
    return wanted is not None and _size(left) == wanted


def _empty(left: Any, right: Any) -> bool:
    return isinstance(left, list | str | dict) and isinstance(right, bool) and (len(left) == 0) is right


def _matches(left: Any, right: Any) -> bool:
    if not isinstance(right, re.Pattern):
        return False
    texts = left if isinstance(left, list) else [left]
    return any(isinstance(text, str) and right.fullmatch(text) is not None for text in texts)


def _not(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda left, right: not test(left, right)


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "===": same,
    "!==": _not(same),
    "==": equal,
    "!=": _not(equal),
    "<>": _not(equal),
    "<=": _less_or_equal,
    ">=": lambda left, right: _less_or_equal(right, left),
    "=~": _matches,
    "<": _less,
    ">": lambda left, right: _less(right, left),
    "subsetof": lambda left, right: isinstance(left, list) and all(_in(item, right) for item in left),
    "contains": _contains,
    "noneof": lambda left, right: isinstance(left, list) and not _overlap(left, right),
    "anyof": _overlap,
    "empty": _empty,
    "size": _has_size,
    "nin": lambda left, right: not _in(left, right),
    "in": _in,
}
SYMBOLS = tuple(name for name in OPERATORS if not name.isalpha())
WORDS = tuple(name for name in OPERATORS if name.isalpha())


def compared(name: str, left: Operand, right: Operand) -> Condition:
    """`left name right`."""
    test = OPERATORS[name]
    return lambda item, root: test(left(item, root), right(item, root))


def exists(operand: Operand) -> Condition:
    """A path alone: whether it leads anywhere."""
    return lambda item, root: operand(item, root) is not MISSING


def negated(condition: Condition) -> Condition:
    """`!(…)`."""
    return lambda item, root: not condition(item, root)


def every(conditions: list[Condition]) -> Condition:
    """`… && …`."""
    return lambda item, root: all(condition(item, root) for condition in conditions)


def either(conditions: list[Condition]) -> Condition:
    """`… || …`."""
    return lambda item, root: any(condition(item, root) for condition in conditions)


def literal(value: Any) -> Operand:
    """A value as written."""
    return lambda item, root: value
