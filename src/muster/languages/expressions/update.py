"""Updates: what an update expression makes of an item.

Keeps true: all operands are read from the item as it was before; list indexes that are removed count in that item too.
Source: the developer guide, "Using update expressions".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.languages.expressions.condition import Values, check_defined, literal_kind, wrong_type
from muster.languages.expressions.document import Tree, found, placed, removed, tree
from muster.languages.expressions.number import add, subtract
from muster.languages.expressions.parser import Action, UpdateReader
from muster.languages.expressions.problem import ExpressionError
from muster.languages.expressions.syntax import Arithmetic, Attribute, Call, Operand, Path, Placeholder, walk
from muster.languages.expressions.value import SETS, AttributeValue, Item, kind_of, made_set

Compute = Callable[[Item, Values], AttributeValue]

_TYPE_NAMES = {
    "S": "STRING", "N": "NUMBER", "B": "BINARY", "NULL": "NULL", "BOOL": "BOOLEAN", "L": "LIST", "M": "MAP",
    "SS": "STRING_SET", "NS": "NUMBER_SET", "BS": "BINARY_SET",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Update:
    """An update, ready to be applied; `touched` is the tree of the paths it writes."""

    actions: tuple[Action, ...]
    computes: tuple[Compute | None, ...]
    names: frozenset[str]
    values: frozenset[str]
    touched: Tree

    def check(self, values: Values) -> None:
        """ExpressionError when a value is missing or of a type that its operator does not take."""
        check_defined(self.values, values)
        for action in self.actions:
            if action.operand is not None:
                _check_action(action, values)

    def heads(self) -> set[str]:
        """The top-level attributes it writes."""
        return {str(action.path[0]) for action in self.actions}

    def applied(self, item: Item, values: Values) -> Item:
        """The item after the update; ExpressionError when the item does not allow it."""
        computed = [compute(item, values) if compute else None for compute in self.computes]
        after = item
        removals: list[Path] = []
        # Writes in the order of their list indexes, so that several beyond a list's end are appended in that order.
        for action, value in sorted(zip(self.actions, computed, strict=True), key=lambda pair: _by_index(pair[0].path)):
            match action.verb:
                case "SET":
                    assert value is not None
                    after = placed(after, action.path, value)
                case "REMOVE":
                    removals.append(action.path)
                case "ADD":
                    assert value is not None
                    after = placed(after, action.path, _added(found(item, action.path), value))
                case _:
                    assert value is not None
                    left = _without(found(item, action.path), value)
                    if left is None:
                        removals.append(action.path)
                    else:
                        after = placed(after, action.path, left)
        for path in reversed(removals):
            after = removed(after, path)
        return after


def _by_index(path: Path) -> list[tuple[int, str]]:
    return [(part, "") if isinstance(part, int) else (-1, part) for part in path]


def parse(text: str, names: Mapping[str, str]) -> Update:
    """The update that `text` writes; ExpressionError when it is none."""
    reader = UpdateReader(text, names)
    actions = reader.update()
    return Update(
        actions,
        tuple(_compute(action.operand) if action.operand is not None else None for action in actions),
        frozenset(reader.used_names),
        frozenset(reader.used_values),
        tree(action.path for action in actions),
    )


def _check_action(action: Action, values: Values) -> None:
    assert action.operand is not None
    if action.verb in ("ADD", "DELETE"):
        kind = literal_kind(action.operand, values)
        assert kind is not None
        if kind not in SETS and not (action.verb == "ADD" and kind == "N"):
            raise ExpressionError(
                f"Incorrect operand type for operator or function; operator: {action.verb}, "
                f"operand type: {_TYPE_NAMES[kind]}, typeSet: ALLOWED_FOR_{action.verb}_OPERAND"
            )
        return
    for node in walk(action.operand):
        match node:
            case Arithmetic(sign=sign, left=left, right=right):
                _check_operands(sign, (left, right), "N", values)
            case Call(function="list_append", operands=operands):
                _check_operands("list_append", operands, "L", values)
            case _:
                pass


def _check_operands(function: str, operands: tuple[Operand, ...], wanted: str, values: Values) -> None:
    for operand in operands:
        kind = literal_kind(operand, values)
        if kind is not None and kind != wanted:
            raise wrong_type(function, kind)


def wrong_data_type() -> ExpressionError:
    """The refusal of an item's value that an operator does not take."""
    return ExpressionError("An operand in the update expression has an incorrect data type")


def _compute(operand: Operand) -> Compute:
    match operand:
        case Placeholder(name=name):
            return lambda item, values: values[name]
        case Attribute(path=path):
            return lambda item, values: _existing(item, path)
        case Arithmetic(sign=sign, left=left, right=right):
            first, second = _compute(left), _compute(right)
            work = add if sign == "+" else subtract
            return lambda item, values: {"N": work(_the(first(item, values), "N"), _the(second(item, values), "N"))}
        case Call(function="if_not_exists", operands=(Attribute(path=path), otherwise)):
            other = _compute(otherwise)
            return lambda item, values: other(item, values) if (it := found(item, path)) is None else it
        case Call(function="list_append", operands=(one, another)):
            head, tail = _compute(one), _compute(another)
            return lambda item, values: {"L": [*_the(head(item, values), "L"), *_the(tail(item, values), "L")]}
        case _:
            raise AssertionError("the reader lets no other operand through")


def _existing(item: Item, path: Path) -> AttributeValue:
    value = found(item, path)
    if value is None:
        raise ExpressionError("The provided expression refers to an attribute that does not exist in the item")
    return value


def _the(value: AttributeValue, kind: str) -> Any:
    if kind not in value:
        raise wrong_data_type()
    return value[kind]


def _added(current: AttributeValue | None, value: AttributeValue) -> AttributeValue:
    if current is None:
        return value
    kind = kind_of(value)
    if kind_of(current) != kind:
        raise wrong_data_type()
    if kind == "N":
        return {"N": add(current["N"], value["N"])}
    return made_set(kind, {*current[kind], *value[kind]})


def _without(current: AttributeValue | None, value: AttributeValue) -> AttributeValue | None:
    """What is left of a set; None when nothing is, or when there was none."""
    if current is None:
        return None
    kind = kind_of(value)
    if kind_of(current) != kind:
        raise wrong_data_type()
    left = set(current[kind]) - set(value[kind])
    return made_set(kind, left) if left else None
