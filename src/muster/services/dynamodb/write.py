"""One write: a condition is asked of the item as it is, and what is to be there instead takes its place.

Keeps true: condition and write see the same item, in one transaction. Everything about a write that does not depend on
the stored item is decided before the item is read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.languages import expressions
from muster.languages.expressions import Condition, Item, Placeholders, Update, placeholders
from muster.languages.expressions.value import normal_item
from muster.services.dynamodb import items
from muster.services.dynamodb.key import Key, key_given, key_of_item
from muster.services.dynamodb.refusal import condition_failed, invalid_values
from muster.services.dynamodb.table import Table
from muster.transaction import Transaction

TOO_LARGE = "Item size has exceeded the maximum allowed size"
TOO_LARGE_TO_UPDATE = "Item size to update has exceeded the maximum allowed size"


@dataclass(frozen=True, slots=True)
class Write:
    """What is to be done to one item. `after` answers the new item from the old one; itself where nothing changes,
    None where the item goes."""

    table: Table
    key: Key
    after: Callable[[Item | None], Item | None]
    condition: Condition | None
    given: Placeholders
    shows_item: bool
    update: Update | None = None
    too_large: str = TOO_LARGE
    blind: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """A write's outcome: the item before (unless nobody needed it) and after."""

    old: Item | None
    new: Item | None


def _beside(request: Mapping[str, Any], *expression_names: str) -> Placeholders:
    return placeholders.read(
        request.get("ExpressionAttributeNames"),
        request.get("ExpressionAttributeValues"),
        {name: request.get(name) for name in expression_names},
    )


def _condition(request: Mapping[str, Any], given: Placeholders) -> Condition | None:
    text = request.get("ConditionExpression")
    return None if text is None else expressions.condition(text, given)


def _shows_item(request: Mapping[str, Any]) -> bool:
    return bool(request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD")


def put(table: Table, request: Mapping[str, Any], *, wants_old: bool = False) -> Write:
    """The write that a PutItem (or a Put of a transaction or batch) asks for."""
    given = _beside(request, "ConditionExpression")
    condition = _condition(request, given)
    given.all_used([condition] if condition else [])
    item = normal_item(request["Item"])
    key = key_of_item(table.schema, item)
    items.check(table, item, TOO_LARGE)
    blind = condition is None and not wants_old and not items.needs_old(table)
    return Write(table, key, lambda old: item, condition, given, _shows_item(request), blind=blind)


def delete(table: Table, request: Mapping[str, Any]) -> Write:
    """The write that a DeleteItem (or a Delete of a transaction or batch) asks for."""
    given = _beside(request, "ConditionExpression")
    condition = _condition(request, given)
    given.all_used([condition] if condition else [])
    key = key_given(table.schema, normal_item(request["Key"]))
    return Write(table, key, lambda old: None, condition, given, _shows_item(request))


def check(table: Table, request: Mapping[str, Any]) -> Write:
    """A transaction's ConditionCheck: a write that leaves the item as it is."""
    given = _beside(request, "ConditionExpression")
    condition = _condition(request, given)
    given.all_used([condition] if condition else [])
    key = key_given(table.schema, normal_item(request["Key"]))
    return Write(table, key, lambda old: old, condition, given, _shows_item(request))


def update(table: Table, request: Mapping[str, Any]) -> Write:
    """The write that an UpdateItem (or an Update of a transaction) asks for."""
    given = _beside(request, "UpdateExpression", "ConditionExpression")
    text = request.get("UpdateExpression")
    changes = None if text is None else expressions.update(text, given)
    condition = _condition(request, given)
    given.all_used([each for each in (changes, condition) if each is not None])
    key_item = normal_item(request["Key"])
    key = key_given(table.schema, key_item)
    if changes is not None:
        for name in table.schema.names():
            if name in changes.heads():
                raise invalid_values(f"Cannot update attribute {name}. This attribute is part of the key")

    def after(old: Item | None) -> Item | None:
        before = key_item if old is None else old
        if changes is None:
            return before
        return changes.applied(before, given.values)

    return Write(table, key, after, condition, given, _shows_item(request), changes, TOO_LARGE_TO_UPDATE)


def decide(write: Write, old: Item | None) -> Item | None:
    """What is to be there in place of `old`; ConditionalCheckFailedException when the condition does not hold."""
    if write.condition is not None and not write.condition.holds(old or {}, write.given.values):
        raise condition_failed(old if write.shows_item else None)
    new = write.after(old)
    if new is not None and write.update is not None:
        items.check(write.table, new, write.too_large)
    return new


def store(tx: Transaction, write: Write, old: Item | None, new: Item | None) -> None:
    """Put what was decided in place of what was there."""
    if new is None:
        if old is not None:
            items.delete(tx, write.table, write.key, old)
    elif new is not old:
        items.put(tx, write.table, write.key, new, old)


def perform(tx: Transaction, write: Write) -> Done:
    """Read, decide and store."""
    old = None if write.blind else items.get(tx, write.table, write.key)
    new = decide(write, old)
    store(tx, write, old, new)
    return Done(old, new)
