"""Conditions: compiled to closures once, bound to values, asked about items.

Keeps true: asking never fails; all that can be wrong with a condition or its values is found by `parse` and `check`,
before any item is read. Comparison follows "Comparison operator and function reference": values of different types are
unequal and in no order; a missing attribute satisfies only `<>` and `attribute_not_exists`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muster.languages.expressions.document import found
from muster.languages.expressions.parser import ConditionReader
from muster.languages.expressions.problem import ExpressionError
from muster.languages.expressions.syntax import (
    And,
    Attribute,
    Between,
    Call,
    Compare,
    In,
    Node,
    Not,
    Operand,
    Or,
    Path,
    Placeholder,
    Test,
    walk,
)
from muster.languages.expressions.value import SETS, TYPES, AttributeValue, kind_of, sort_key

Values = Mapping[str, AttributeValue]
Ask = Callable[[Mapping[str, AttributeValue], Values], bool]
Find = Callable[[Mapping[str, AttributeValue], Values], AttributeValue | None]

ORDERED = frozenset({"S", "N", "B"})
SIZED = frozenset(TYPES) - {"N", "BOOL", "NULL"}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition, ready to be asked; `names` and `values` are the placeholders it uses, `paths` what it reads,
    `choosy` its parts that do not take values of every type."""

    test: Test
    holds: Ask
    names: frozenset[str]
    values: frozenset[str]
    paths: frozenset[Path]
    choosy: tuple[Node, ...]

    def check(self, values: Values) -> None:
        """ExpressionError when a value is missing or of a type that its operator does not take."""
        check_defined(self.values, values)
        for node in self.choosy:
            match node:
                case Compare(sign=sign, left=left, right=right):
                    _check_ordered(sign, (left, right), values)
                case Between(operand=operand, low=low, high=high):
                    _check_ordered("BETWEEN", (operand, low, high), values)
                    _check_bounds(low, high, values)
                case Call(function=function, operands=operands):
                    _check_call(function, operands, values)
                case _:
                    pass


def parse(text: str, names: Mapping[str, str]) -> Condition:
    """The condition that `text` writes; ExpressionError when it is none."""
    reader = ConditionReader(text, names)
    test = reader.condition()
    return Condition(
        test,
        _ask(test),
        frozenset(reader.used_names),
        frozenset(reader.used_values),
        frozenset(node.path for node in walk(test) if isinstance(node, Attribute)),
        tuple(node for node in walk(test) if _is_choosy(node)),
    )


def _is_choosy(node: Node) -> bool:
    """Whether the node does not take values of every type."""
    match node:
        case Compare(sign=sign):
            return sign not in ("=", "<>")
        case Call(function=function):
            return function in ("begins_with", "size", "attribute_type")
        case _:
            return isinstance(node, Between)


def check_defined(used: frozenset[str], values: Values) -> None:
    """ExpressionError when a value placeholder has no value."""
    if not used <= values.keys():
        missing = min(used - values.keys())
        raise ExpressionError(
            f"An expression attribute value used in expression is not defined; attribute value: {missing}"
        )


def wrong_type(function: str, kind: str) -> ExpressionError:
    """The refusal of a literal operand of that type."""
    return ExpressionError(
        f"Incorrect operand type for operator or function; operator or function: {function}, operand type: {kind}"
    )


def literal_kind(operand: Operand, values: Values) -> str | None:
    """The type of an operand that is known without an item."""
    if isinstance(operand, Placeholder):
        return kind_of(values[operand.name])
    if isinstance(operand, Call) and operand.function == "size":
        return "N"
    return None


def _check_ordered(sign: str, operands: tuple[Operand, ...], values: Values) -> None:
    for operand in operands:
        kind = literal_kind(operand, values)
        if kind is not None and kind not in ORDERED:
            raise ExpressionError(
                f"Incorrect operand type for operator or function; operator: {sign}, operand type: {kind}"
            )


def _check_bounds(low: Operand, high: Operand, values: Values) -> None:
    if not isinstance(low, Placeholder) or not isinstance(high, Placeholder):
        return
    lower, upper = values[low.name], values[high.name]
    shown = (
        f"lower bound operand: AttributeValue: {_shown(lower)}, upper bound operand: AttributeValue: {_shown(upper)}"
    )
    if kind_of(lower) != kind_of(upper):
        raise ExpressionError(f"The BETWEEN operator requires same data type for lower and upper bounds; {shown}")
    if sort_key(lower) > sort_key(upper):
        raise ExpressionError(
            f"The BETWEEN operator requires upper bound to be greater than or equal to lower bound; {shown}"
        )


def _shown(value: AttributeValue) -> str:
    [(kind, content)] = value.items()
    return f"{{{kind}:{content!r}}}" if isinstance(content, bytes) else f"{{{kind}:{content}}}"


def _check_call(function: str, operands: tuple[Operand, ...], values: Values) -> None:
    match function:
        case "begins_with":
            for operand in operands:
                kind = literal_kind(operand, values)
                if kind is not None and kind not in ("S", "B"):
                    raise wrong_type(function, kind)
        case "size":
            kind = literal_kind(operands[0], values)
            if kind is not None and kind not in SIZED:
                raise wrong_type(function, kind)
        case "attribute_type":
            kind = literal_kind(operands[1], values)
            if kind != "S":
                raise wrong_type(function, kind or "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}")
            assert isinstance(operands[1], Placeholder)
            asked = values[operands[1].name]["S"]
            if asked not in TYPES:
                raise ExpressionError(
                    f"Invalid attribute type name found; type: {asked}, valid types: {{B,NULL,SS,BOOL,L,BS,N,NS,S,M}}"
                )
        case _:
            pass


def _find(operand: Operand) -> Find:
    match operand:
        case Attribute(path=path) if len(path) == 1:
            name = path[0]
            return lambda item, values: item.get(name)  # type: ignore[arg-type]
        case Attribute(path=path):
            return lambda item, values: found(item, path)
        case Placeholder(name=name):
            return lambda item, values: values[name]
        case Call(operands=(sized,)):
            find = _find(sized)
            return lambda item, values: _size(find(item, values))
        case _:
            raise AssertionError("the reader lets no other operand through")


def _size(value: AttributeValue | None) -> AttributeValue | None:
    if value is None:
        return None
    [(kind, content)] = value.items()
    return {"N": str(len(content))} if kind in SIZED else None


def _ask(test: Test) -> Ask:
    match test:
        case And(left=left, right=right):
            first, second = _ask(left), _ask(right)
            return lambda item, values: first(item, values) and second(item, values)
        case Or(left=left, right=right):
            first, second = _ask(left), _ask(right)
            return lambda item, values: first(item, values) or second(item, values)
        case Not(test=inner):
            ask = _ask(inner)
            return lambda item, values: not ask(item, values)
        case Compare(sign=sign, left=left_operand, right=right_operand):
            return _ask_comparison(sign, _find(left_operand), _find(right_operand))
        case Between(operand=operand, low=low, high=high):
            find, find_low, find_high = _find(operand), _find(low), _find(high)
            return lambda item, values: (
                in_order(find_low(item, values), value := find(item, values))
                and in_order(value, find_high(item, values))
            )
        case In(operand=operand, choices=choices):
            find_it = _find(operand)
            finds = [_find(choice) for choice in choices]
            return lambda item, values: (
                (value := find_it(item, values)) is not None and any(value == find(item, values) for find in finds)
            )
        case Call(function=function, operands=operands):
            return _ask_function(function, operands)
        case _:
            raise AssertionError("every kind of test is asked above")


def _ask_comparison(sign: str, left: Find, right: Find) -> Ask:
    match sign:
        case "=":
            return lambda item, values: (value := left(item, values)) is not None and value == right(item, values)
        case "<>":
            return lambda item, values: (value := left(item, values)) is None or value != right(item, values)
        case "<":
            return lambda item, values: before(left(item, values), right(item, values))
        case "<=":
            return lambda item, values: in_order(left(item, values), right(item, values))
        case ">":
            return lambda item, values: before(right(item, values), left(item, values))
        case _:
            return lambda item, values: in_order(right(item, values), left(item, values))


def comparable(left: AttributeValue | None, right: AttributeValue | None) -> bool:
    """Whether the two have an order."""
    if left is None or right is None:
        return False
    kind = kind_of(left)
    return kind in ORDERED and kind in right


def before(left: AttributeValue | None, right: AttributeValue | None) -> bool:
    """Whether the two are comparable and `left` comes strictly before `right`."""
    return comparable(left, right) and sort_key(left) < sort_key(right)  # type: ignore[arg-type]


def in_order(left: AttributeValue | None, right: AttributeValue | None) -> bool:
    """Whether the two are comparable and `left` does not come after `right`."""
    return comparable(left, right) and sort_key(left) <= sort_key(right)  # type: ignore[arg-type]


def _ask_function(function: str, operands: tuple[Operand, ...]) -> Ask:
    first = _find(operands[0])
    if function == "attribute_exists":
        return lambda item, values: first(item, values) is not None
    if function == "attribute_not_exists":
        return lambda item, values: first(item, values) is None
    second = _find(operands[1])
    match function:
        case "attribute_type":
            return lambda item, values: (
                (value := first(item, values)) is not None and second(item, values)["S"] in value  # type: ignore[index]
            )
        case "begins_with":
            return lambda item, values: begins_with(first(item, values), second(item, values))
        case _:
            return lambda item, values: contains(first(item, values), second(item, values))


def begins_with(value: AttributeValue | None, start: AttributeValue | None) -> bool:
    """Whether a text or binary begins with another of its kind."""
    if value is None or start is None:
        return False
    [(kind, content)] = value.items()
    return kind in ("S", "B") and kind in start and content.startswith(start[kind])


def contains(value: AttributeValue | None, part: AttributeValue | None) -> bool:
    """Whether a text or binary has a part, a set a member, or a list an element equal to `part`."""
    if value is None or part is None:
        return False
    [(kind, content)] = value.items()
    if kind in ("S", "B"):
        return kind in part and part[kind] in content
    if kind == "L":
        return part in content
    member = SETS.get(kind)
    return member is not None and member in part and part[member] in content
