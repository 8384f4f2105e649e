"""Items by their keys: one, a batch, or several at one instant.

Keeps true: what is read together is of one moment, for a request reads from one snapshot.
"""

from collections.abc import Mapping
from typing import Any

from muster.errors import unsupported
from muster.languages import expressions
from muster.languages.expressions import Item, Projection, placeholders
from muster.languages.expressions.value import normal_item, size_of_item
from muster.services.dynamodb import capacity, items
from muster.services.dynamodb import table as tables
from muster.services.dynamodb.capacity import Consumed
from muster.services.dynamodb.key import key_given
from muster.services.dynamodb.refusal import invalid
from muster.services.dynamodb.table import Table
from muster.transaction import Transaction

# API reference of BatchGetItem: at most 100 items and 16 MB.
BATCH_ITEMS_MAX = 100
BATCH_BYTES_MAX = 16 * 1024 * 1024


def _projection(request: Mapping[str, Any]) -> Projection | None:
    text = request.get("ProjectionExpression")
    given = placeholders.read(request.get("ExpressionAttributeNames"), None, {"ProjectionExpression": text})
    if text is None:
        return None
    projection = expressions.projection(text, given)
    given.all_used([projection])
    return projection


def _shown(item: Item, projection: Projection | None) -> Item:
    return item if projection is None else projection.of(item)


def get_item(tx: Transaction, request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a GetItem."""
    projection = _projection(request)
    table = tables.for_items(tx, request["TableName"])
    item = items.get(tx, table, key_given(table.schema, normal_item(request["Key"])))
    answer: dict[str, Any] = {} if item is None else {"Item": _shown(item, projection)}
    if "ReturnConsumedCapacity" in request:
        units = capacity.read_units(size_of_item(item or {}), bool(request.get("ConsistentRead")))
        capacity.added(answer, request, Consumed(table, read_units=units))
    return answer


def batch_get(tx: Transaction, request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a BatchGetItem; keys beyond 16 MB come back as unprocessed."""
    asked = request["RequestItems"]
    if sum(len(wanted["Keys"]) for wanted in asked.values()) > BATCH_ITEMS_MAX:
        raise invalid("Too many items requested for the BatchGetItem call")
    responses: dict[str, list[Item]] = {}
    unprocessed: dict[str, Any] = {}
    consumed: list[Consumed] = []
    read_bytes = 0
    for name, wanted in asked.items():
        strange = wanted.keys() - {"Keys", "ConsistentRead", "ProjectionExpression", "ExpressionAttributeNames"}
        if strange:
            raise unsupported(f"the parameter {', '.join(sorted(strange))} of dynamodb:BatchGetItem")
        projection = _projection(wanted)
        table = tables.for_items(tx, name)
        found = responses.setdefault(name, [])
        units = Consumed(table)
        consumed.append(units)
        keys = [key_given(table.schema, normal_item(key)) for key in wanted["Keys"]]
        if len(set(keys)) != len(keys):
            raise invalid("Provided list of item keys contains duplicates")
        for key, given in zip(keys, wanted["Keys"], strict=True):
            if read_bytes >= BATCH_BYTES_MAX:
                unprocessed.setdefault(name, {**wanted, "Keys": []})["Keys"].append(given)
                continue
            item = items.get(tx, table, key)
            size = size_of_item(item or {})
            read_bytes += size
            units.read_units += capacity.read_units(size, bool(wanted.get("ConsistentRead")))
            if item is not None:
                found.append(_shown(item, projection))
    answer: dict[str, Any] = {"Responses": responses, "UnprocessedKeys": unprocessed}
    capacity.added_for_all(answer, request, consumed)
    return answer


def transact_get(tx: Transaction, request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a TransactGetItems."""
    responses: list[dict[str, Any]] = []
    consumed: dict[str, Consumed] = {}
    seen: set[tuple[int, Any]] = set()
    for wanted in request["TransactItems"]:
        get = wanted["Get"]
        projection = _projection(get)
        table: Table = tables.for_items(tx, get["TableName"])
        key = key_given(table.schema, normal_item(get["Key"]))
        if (table.id, key) in seen:
            raise invalid("Transaction request cannot include multiple operations on one item")
        seen.add((table.id, key))
        item = items.get(tx, table, key)
        responses.append({} if item is None else {"Item": _shown(item, projection)})
        units = consumed.setdefault(table.name, Consumed(table))
        units.read_units += 2 * capacity.read_units(size_of_item(item or {}), True)
    answer: dict[str, Any] = {"Responses": responses}
    capacity.added_for_all(answer, request, consumed.values(), split=True)
    return answer
