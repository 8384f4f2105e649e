"""DynamoDB's expression language: conditions, filters, key conditions, updates and projections.

Text to checked and compiled expression, once per text and names, kept for the most recent few thousand. Pure: knows
neither tables nor transactions. Every refusal is an ExpressionError with the text of AWS's ValidationException.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from muster.languages.expressions import condition as conditions
from muster.languages.expressions import key_condition as key_conditions
from muster.languages.expressions import update as updates
from muster.languages.expressions.condition import Condition, Values
from muster.languages.expressions.document import Tree, cut_out, tree
from muster.languages.expressions.key_condition import KeyCondition, KeyTest, fitted
from muster.languages.expressions.parser import ProjectionReader
from muster.languages.expressions.placeholders import Placeholders
from muster.languages.expressions.problem import ExpressionError
from muster.languages.expressions.update import Update
from muster.languages.expressions.value import AttributeValue, Item

__all__ = [
    "AttributeValue",
    "Condition",
    "ExpressionError",
    "Item",
    "KeyCondition",
    "KeyTest",
    "Placeholders",
    "Projection",
    "Update",
    "condition",
    "cut_out",
    "fitted",
    "key_condition",
    "projection",
    "tree",
    "update",
]

T = TypeVar("T")

# Compiled expressions that are kept; a program has tens of them, one that writes values into the text has no end.
KEPT_MAX = 4096


@dataclass(frozen=True, slots=True)
class Projection:
    """A projection, ready to cut items down; `heads` are the top-level attributes it reads."""

    wanted: Tree
    names: frozenset[str]
    values: frozenset[str]
    heads: frozenset[str]

    def of(self, item: Mapping[str, AttributeValue]) -> Item:
        """Only what the projection names of `item`."""
        return cut_out(item, self.wanted)


def _projection(text: str, names: Mapping[str, str]) -> Projection:
    reader = ProjectionReader(text, names)
    paths = reader.projection()
    return Projection(tree(paths), frozenset(reader.used_names), frozenset(), frozenset(str(path[0]) for path in paths))


_PARSERS: Mapping[str, Callable[[str, Mapping[str, str]], object]] = {
    "condition": conditions.parse,
    "key": key_conditions.parse,
    "update": updates.parse,
    "projection": _projection,
}


@lru_cache(maxsize=KEPT_MAX)
def _compiled(kind: str, text: str, names: tuple[tuple[str, str], ...]) -> object:
    return _PARSERS[kind](text, dict(names))


def _labelled(label: str, work: Callable[[], T]) -> T:
    try:
        return work()
    except ExpressionError as error:
        raise ExpressionError(f"Invalid {label}: {error.message}") from error


def _ready(kind: str, label: str, text: str, names: Mapping[str, str]) -> object:
    key = tuple(sorted(names.items())) if names else ()
    return _labelled(label, lambda: _compiled(kind, text, key))


def condition(text: str, given: Placeholders, label: str = "ConditionExpression") -> Condition:
    """The condition, checked against the values given beside it."""
    ready = _ready("condition", label, text, given.names)
    assert isinstance(ready, Condition)
    _labelled(label, lambda: ready.check(given.values))
    return ready


def key_condition(text: str, given: Placeholders) -> tuple[KeyCondition, tuple[KeyTest, ...]]:
    """The key condition and its tests with their values."""
    label = "KeyConditionExpression"
    ready = _ready("key", label, text, given.names)
    assert isinstance(ready, KeyCondition)
    return ready, _labelled(label, lambda: ready.tests(given.values))


def update(text: str, given: Placeholders) -> Update:
    """The update, checked against the values given beside it."""
    label = "UpdateExpression"
    ready = _ready("update", label, text, given.names)
    assert isinstance(ready, Update)
    _labelled(label, lambda: ready.check(given.values))
    return ready


def projection(text: str, given: Placeholders) -> Projection:
    """The projection."""
    ready = _ready("projection", "ProjectionExpression", text, given.names)
    assert isinstance(ready, Projection)
    return ready


def holds(test: Condition, item: Mapping[str, AttributeValue] | None, values: Values) -> bool:
    """Whether the condition holds for the item; a missing item has no attributes."""
    return test.holds(item or {}, values)
