"""The questions of Choice rules in JSONPath: comparison operators as a table, And, Or and Not over them.

Keeps true: a value of another type than the operator's is simply not equal to anything; a path that finds nothing is an
error, except to IsPresent. Does not know where a rule leads.

Source: States Language, "Data-test expression"; "Choice workflow state".
"""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from muster.languages.asl import timestamps
from muster.languages.asl.definition import Evaluator
from muster.languages.asl.environment import NOTHING, Environment
from muster.languages.asl.expressions import path, present
from muster.languages.asl.failures import RUNTIME, Refused

Test = Callable[[Any, Any], bool]  # (the variable's value, the comparand) -> the answer

_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "Equals": operator.eq,
    "LessThan": operator.lt,
    "GreaterThan": operator.gt,
    "LessThanEquals": operator.le,
    "GreaterThanEquals": operator.ge,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_timestamp(value: Any) -> bool:
    return isinstance(value, str) and timestamps.parse(value) is not None


def _strings(compare: Callable[[Any, Any], bool]) -> Test:
    return lambda value, other: isinstance(value, str) and isinstance(other, str) and compare(value, other)


def _numbers(compare: Callable[[Any, Any], bool]) -> Test:
    return lambda value, other: _is_number(value) and _is_number(other) and compare(value, other)


def _moments(compare: Callable[[Any, Any], bool]) -> Test:
    def test(value: Any, other: Any) -> bool:
        if not isinstance(value, str) or not isinstance(other, str):
            return False
        left, right = timestamps.parse(value), timestamps.parse(other)
        return left is not None and right is not None and compare(left, right)

    return test


def _booleans(value: Any, other: Any) -> bool:
    return isinstance(value, bool) and isinstance(other, bool) and value is other


def _matches(value: Any, pattern: Any) -> bool:
    if not isinstance(value, str) or not isinstance(pattern, str):
        return False
    return re.fullmatch(_wildcard(pattern), value, re.DOTALL) is not None


def _wildcard(pattern: str) -> str:
    r"""`*` stands for any characters; `\*` and `\\` for themselves."""
    out: list[str] = []
    place = 0
    while place < len(pattern):
        letter = pattern[place]
        if letter == "\\" and place + 1 < len(pattern) and pattern[place + 1] in "\\*":
            place += 1
            out.append(re.escape(pattern[place]))
        else:
            out.append(".*" if letter == "*" else re.escape(letter))
        place += 1
    return "".join(out)


COMPARISONS: Mapping[str, Test] = {
    **{f"String{name}": _strings(compare) for name, compare in _ORDER.items()},
    **{f"Numeric{name}": _numbers(compare) for name, compare in _ORDER.items()},
    **{f"Timestamp{name}": _moments(compare) for name, compare in _ORDER.items()},
    "BooleanEquals": _booleans,
    "StringMatches": _matches,
}

KINDS: Mapping[str, Callable[[Any], bool]] = {
    "IsNull": lambda value: value is None,
    "IsString": lambda value: isinstance(value, str),
    "IsNumeric": _is_number,
    "IsBoolean": lambda value: isinstance(value, bool),
    "IsTimestamp": _is_timestamp,
}

# Every operator and the JSON type of what stands beside it; `…Path` forms take a path.
OPERANDS: Mapping[str, str] = {
    **{name: {"S": "string", "N": "number", "B": "boolean", "T": "timestamp"}[name[0]] for name in COMPARISONS},
    **{f"{name}Path": "path" for name in COMPARISONS if name != "StringMatches"},
    **dict.fromkeys(KINDS, "boolean"),
    "IsPresent": "boolean",
}


def comparison(variable: str, name: str, operand: Any) -> Evaluator:
    """The question `name` about the value that the path `variable` finds."""
    find = present(variable)
    if name == "IsPresent":
        return lambda env: (find(env) is not NOTHING) is operand

    def value_of(env: Environment) -> Any:
        value = find(env)
        if value is NOTHING:
            raise Refused(
                RUNTIME, f"Invalid path '{variable}': The choice state's condition path references an invalid value."
            )
        return value

    if name in KINDS:
        is_kind = KINDS[name]
        return lambda env: is_kind(value_of(env)) is operand
    if name.endswith("Path"):
        test = COMPARISONS[name.removesuffix("Path")]
        other = path(operand, name)
        return lambda env: test(value_of(env), other(env))
    test = COMPARISONS[name]
    return lambda env: test(value_of(env), operand)


def every(questions: list[Evaluator]) -> Evaluator:
    """And."""
    return lambda env: all(question(env) for question in questions)


def some(questions: list[Evaluator]) -> Evaluator:
    """Or."""
    return lambda env: any(question(env) for question in questions)


def negation(question: Evaluator) -> Evaluator:
    """Not."""
    return lambda env: not question(env)
