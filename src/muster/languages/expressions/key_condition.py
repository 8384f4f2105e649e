"""Key conditions: an equality on the partition key and at most one range of the sort key.

Keeps true: what is answered fits the key schema it was asked for. Does not know how a range is looked up.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.languages.expressions.condition import Condition, Values
from muster.languages.expressions.condition import parse as parse_condition
from muster.languages.expressions.problem import ExpressionError
from muster.languages.expressions.syntax import (
    And,
    Attribute,
    Between,
    Call,
    Compare,
    In,
    Not,
    Operand,
    Or,
    Placeholder,
    Test,
)
from muster.languages.expressions.value import AttributeValue


@dataclass(frozen=True, slots=True)
class KeyTest:
    """`attribute operator bounds`: operator is a comparison, `BETWEEN` (two bounds) or `begins_with`."""

    attribute: str
    operator: str
    bounds: tuple[AttributeValue, ...]


@dataclass(frozen=True, slots=True)
class KeyCondition:
    """A key condition, ready to be fitted to a key schema."""

    condition: Condition
    parts: tuple[tuple[str, str, tuple[str, ...]], ...]

    @property
    def names(self) -> frozenset[str]:
        """The name placeholders it uses."""
        return self.condition.names

    @property
    def values(self) -> frozenset[str]:
        """The value placeholders it uses."""
        return self.condition.values

    def tests(self, values: Values) -> tuple[KeyTest, ...]:
        """Its one or two tests; ExpressionError when a value is missing or of a type its operator does not take."""
        self.condition.check(values)
        return tuple(
            KeyTest(attribute, operator, tuple(values[name] for name in bounds))
            for attribute, operator, bounds in self.parts
        )


def parse(text: str, names: Mapping[str, str]) -> KeyCondition:
    """The key condition that `text` writes; ExpressionError when it is none."""
    condition = parse_condition(text, names)
    parts: list[tuple[str, str, tuple[str, ...]]] = []
    for test in _conjuncts(condition.test):
        part = _part(test)
        if any(part[0] == other[0] for other in parts):
            raise ExpressionError("KeyConditionExpressions must only contain one condition per key")
        parts.append(part)
    return KeyCondition(condition, tuple(parts))


def _conjuncts(test: Test) -> list[Test]:
    if isinstance(test, And):
        return [*_conjuncts(test.left), *_conjuncts(test.right)]
    return [test]


_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def _part(test: Test) -> tuple[str, str, tuple[str, ...]]:
    match test:
        case Compare(sign="<>"):
            raise _not_here("<>")
        case Compare(sign=sign, left=Placeholder() as value, right=Attribute() as attribute):
            return (_key(attribute), _FLIPPED[sign], _bounds(value))
        case Compare(sign=sign, left=left, right=right):
            return (_key(left), sign, _bounds(right))
        case Between(operand=operand, low=low, high=high):
            return (_key(operand), "BETWEEN", _bounds(low, high))
        case Call(function="begins_with", operands=(operand, start)):
            return (_key(operand), "begins_with", _bounds(start))
        case Call(function=function):
            raise _not_here(function)
        case Or():
            raise _not_here("OR")
        case Not():
            raise _not_here("NOT")
        case In():
            raise _not_here("IN")
        case _:
            raise AssertionError("conjunctions were taken apart before")


def _not_here(operator: str) -> ExpressionError:
    return ExpressionError(f"Invalid operator used in KeyConditionExpression: {operator}")


def _key(operand: Operand) -> str:
    match operand:
        case Attribute(path=(str() as name,)):
            return name
        case Attribute():
            raise ExpressionError("KeyConditionExpressions cannot have conditions on nested attributes")
        case Call(function=function):
            raise _not_here(function)
        case _:
            raise ExpressionError("No key attribute specified")


def _bounds(*operands: Operand) -> tuple[str, ...]:
    names = []
    for operand in operands:
        match operand:
            case Placeholder(name=name):
                names.append(name)
            case Call(function=function):
                raise _not_here(function)
            case _:
                raise ExpressionError("Multiple attribute names used in one condition")
    return tuple(names)


def fitted(tests: tuple[KeyTest, ...], hash_key: str, range_key: str | None) -> tuple[AttributeValue, KeyTest | None]:
    """The partition key's value and the sort key's test; ExpressionError when the tests do not fit the schema."""
    if len(tests) > 2:
        raise ExpressionError("Conditions can be of length 1 or 2 only")
    by_name = {test.attribute: test for test in tests}
    partition = by_name.pop(hash_key, None)
    if partition is None:
        raise ExpressionError(f"Query condition missed key schema element: {hash_key}")
    if partition.operator != "=":
        raise ExpressionError("Query key condition not supported")
    if not by_name:
        return partition.bounds[0], None
    [(name, test)] = by_name.items()
    if name != range_key:
        if range_key is None:
            raise ExpressionError("Query key condition not supported")
        raise ExpressionError(f"Query condition missed key schema element: {range_key}")
    return partition.bounds[0], test
