"""Queries and scans: a stretch of a table or an index, read page by page.

Keeps true: a page ends at the limit or at 1 MB of items read, whichever comes first, and the next begins right behind
it, whatever was written meanwhile. The work is in proportion to what is read, not to what lies beside it.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.languages import expressions
from muster.languages.expressions import (
    AttributeValue,
    Condition,
    Item,
    KeyTest,
    Placeholders,
    Projection,
    cut_out,
    fitted,
    placeholders,
)
from muster.languages.expressions.value import kind_of, normal_item, size_of_item
from muster.services.dynamodb import capacity
from muster.services.dynamodb import key as keys
from muster.services.dynamodb.capacity import Consumed
from muster.services.dynamodb.definition import Index
from muster.services.dynamodb.key import Key, Schema
from muster.services.dynamodb.refusal import invalid, invalid_values
from muster.services.dynamodb.table import Table
from muster.services.dynamodb.written import read
from muster.transaction import Transaction

PAGE_BYTES_MAX = 1024 * 1024
ROWS_AT_ONCE = 256


@dataclass(slots=True)
class Stretch:
    """A part of a table or index in key order.

    Within one partition (`partition`) its bounds are those of the sort key; without, those of the partition key. A
    bound is an operator and bytes. `start` is the last place that was read, as the columns it consists of.
    """

    partition: bytes | None = None
    low: tuple[str, bytes] | None = None
    high: tuple[str, bytes] | None = None
    forward: bool = True
    start: dict[str, bytes] = field(default_factory=dict)

    def holds(self, place: Key) -> bool:
        """Whether the place lies in the stretch."""
        if self.partition is not None and place.hash_key != self.partition:
            return False
        bounded = place.hash_key if self.partition is None else place.range_key
        return all(
            _COMPARED[operator](bounded, bound) for operator, bound in (each for each in (self.low, self.high) if each)
        )

    def begin_after(self, place: Key, item: Key | None) -> None:
        """Go on behind that place (of an index: behind that item at that place)."""
        self.start = {} if self.partition is not None else {"hash_key": place.hash_key}
        self.start["range_key"] = place.range_key
        if item is not None:
            self.start |= {"item_hash": item.hash_key, "item_range": item.range_key}

    def where(self) -> tuple[str, dict[str, bytes]]:
        """The stretch as SQL conditions and their values.

        The start takes the place of the bound on its side, so that the database seeks it rather than the bound.
        """
        conditions: list[str] = []
        values: dict[str, bytes] = {}
        column = "e.hash_key"
        if self.partition is not None:
            conditions.append("e.hash_key = :partition")
            values["partition"] = self.partition
            column = "e.range_key"
        for name, bound, passed in (("low", self.low, self.forward), ("high", self.high, not self.forward)):
            if bound is not None and not (self.start and passed):
                conditions.append(f"{column} {bound[0]} :{name}")
                values[name] = bound[1]
        if self.start:
            columns = ", ".join(f"e.{each}" for each in self.start)
            names = ", ".join(f":start_{each}" for each in self.start)
            conditions.append(f"({columns}) {'>' if self.forward else '<'} ({names})")
            values |= {f"start_{each}": at for each, at in self.start.items()}
        return "".join(f" AND {condition}" for condition in conditions), values


_COMPARED: Mapping[str, Callable[[bytes, bytes], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a request wants of the items in a stretch."""

    table: Table
    index: Index | None
    filter: Condition | None
    projection: Projection | None
    given: Placeholders
    limit: int | None
    counts_only: bool
    consistent: bool

    @property
    def schema(self) -> Schema:
        """The keys of what is read: the index's or the table's."""
        return self.index.schema if self.index else self.table.schema

    def place(self, item: Item) -> tuple[Key, Key | None]:
        """Where the item lies; in an index also which item it is, for several may lie at one place."""
        return self.schema.encoded(item), self.table.schema.encoded(item) if self.index is not None else None

    def last_key(self, item: Item) -> Item:
        """The item's key as LastEvaluatedKey shows it: the index's key with the table's."""
        return {**self.schema.cut(item), **self.table.schema.cut(item)}


def query(tx: Transaction, table: Table, request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a Query."""
    text = request.get("KeyConditionExpression")
    given = placeholders.read(
        request.get("ExpressionAttributeNames"),
        request.get("ExpressionAttributeValues"),
        {name: request.get(name) for name in ("FilterExpression", "KeyConditionExpression", "ProjectionExpression")},
    )
    if text is None:
        raise invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
    condition, tests = expressions.key_condition(text, given)
    reading = _reading(table, request, given, [condition])
    _check_filter(reading)
    partition, sort = fitted(tests, reading.schema.hash_name, reading.schema.range_name)
    _check_bound(reading.schema.hash_name, reading.schema.hash_type, partition)
    stretch = Stretch(keys.encode_hash(partition), forward=request.get("ScanIndexForward", True))
    if sort is not None:
        _narrow(stretch, reading.schema, sort)
    start = request.get("ExclusiveStartKey")
    if start is not None:
        place, key = _start(reading, start)
        if not stretch.holds(place):
            raise invalid("The provided starting key is outside query boundaries based on provided conditions")
        stretch.begin_after(place, key)
    return _page(tx, reading, stretch, request)


def scan(tx: Transaction, table: Table, request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a Scan."""
    given = placeholders.read(
        request.get("ExpressionAttributeNames"),
        request.get("ExpressionAttributeValues"),
        {name: request.get(name) for name in ("FilterExpression", "ProjectionExpression")},
    )
    reading = _reading(table, request, given, [])
    stretch = Stretch()
    segment, total = request.get("Segment"), request.get("TotalSegments")
    if segment is not None or total is not None:
        _take_segment(stretch, segment, total)
    start = request.get("ExclusiveStartKey")
    if start is not None:
        place, key = _start(reading, start)
        if not stretch.holds(place):
            raise invalid(
                "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with "
                f"correct Segment. TotalSegments: {total} Segment: {segment}"
            )
        stretch.begin_after(place, key)
    return _page(tx, reading, stretch, request)


def _take_segment(stretch: Stretch, segment: int | None, total: int | None) -> None:
    if total is None:
        raise invalid(
            "The TotalSegments parameter is required but was not present in the request when Segment parameter is "
            "present"
        )
    if segment is None:
        raise invalid(
            "The Segment parameter is required but was not present in the request when parameter TotalSegments is "
            "present"
        )
    if segment >= total:
        raise invalid(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
            f"Segment: {segment} is not less than TotalSegments: {total}"
        )
    first, below = keys.segment_bounds(segment, total)
    stretch.low = (">=", first)
    stretch.high = ("<", below) if below is not None else None


def _reading(
    table: Table, request: Mapping[str, Any], given: Placeholders, others: list[placeholders.Expression]
) -> Reading:
    index_name = request.get("IndexName")
    index = table.definition.index(index_name) if index_name is not None else None
    if index_name is not None and index is None:
        raise invalid(f"The table does not have the specified index: {index_name}")
    consistent = bool(request.get("ConsistentRead"))
    if index is not None and index.is_global:
        if consistent:
            raise invalid("Consistent reads are not supported on global secondary indexes")
        if not index.ready:
            raise invalid(f"Cannot read from backfilling global secondary index: {index.name}")
    filter_text, projection_text = request.get("FilterExpression"), request.get("ProjectionExpression")
    filter_ = expressions.condition(filter_text, given, "FilterExpression") if filter_text is not None else None
    projection = expressions.projection(projection_text, given) if projection_text is not None else None
    given.all_used([each for each in (*others, filter_, projection) if each is not None])
    select = request.get("Select")
    _check_select(index, select, projection)
    if index is not None and index.is_global and not index.projects_all():
        _check_projected(table, index, projection)
    return Reading(table, index, filter_, projection, given, request.get("Limit"), select == "COUNT", consistent)


def _check_select(index: Index | None, select: str | None, projection: Projection | None) -> None:
    if select == "ALL_PROJECTED_ATTRIBUTES" and index is None:
        raise invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
    if projection is not None and select not in (None, "SPECIFIC_ATTRIBUTES"):
        raise invalid(f"Cannot specify the ProjectionExpression when choosing to get {select}")
    if projection is None and select == "SPECIFIC_ATTRIBUTES":
        raise invalid(
            "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"
        )
    if select == "ALL_ATTRIBUTES" and index is not None and index.is_global and not index.projects_all():
        raise invalid_values(
            f"Select type ALL_ATTRIBUTES is not supported for global secondary index {index.name} because its "
            "projection type is not ALL"
        )


def _projected(table: Table, index: Index) -> set[str]:
    return {*table.schema.names(), *index.schema.names(), *index.projection.get("NonKeyAttributes", ())}


def _check_projected(table: Table, index: Index, projection: Projection | None) -> None:
    strange = projection.heads - _projected(table, index) if projection is not None else set()
    if strange:
        raise invalid_values(f"Global secondary index {index.name} does not project [{', '.join(sorted(strange))}]")


def _check_filter(reading: Reading) -> None:
    if reading.filter is None:
        return
    heads = {path[0] for path in reading.filter.paths}
    for name in reading.schema.names():
        if name in heads:
            raise invalid(
                f"Filter Expression can only contain non-primary key attributes: Primary key attribute: {name}"
            )


def _check_bound(name: str, kind: str | None, bound: AttributeValue) -> None:
    if kind_of(bound) != kind:
        raise invalid_values("Condition parameter type does not match schema type")
    keys.check_not_empty(name, bound)


def _narrow(stretch: Stretch, schema: Schema, test: KeyTest) -> None:
    assert schema.range_name is not None
    for bound in test.bounds:
        _check_bound(schema.range_name, schema.range_type, bound)
    encoded = keys.encode(test.bounds[0])
    match test.operator:
        case "=":
            stretch.low, stretch.high = (">=", encoded), ("<=", encoded)
        case "BETWEEN":
            stretch.low, stretch.high = (">=", encoded), ("<=", keys.encode(test.bounds[1]))
        case "begins_with":
            after = keys.after_prefix(encoded)
            stretch.low, stretch.high = (">=", encoded), ("<", after) if after is not None else None
        case ">" | ">=":
            stretch.low = (test.operator, encoded)
        case _:
            stretch.high = (test.operator, encoded)


def _start(reading: Reading, given: Mapping[str, Any]) -> tuple[Key, Key | None]:
    """The place in the table, or in the index with the item's key, that an ExclusiveStartKey names."""
    start = normal_item(given)
    typed = dict((*reading.schema.typed(), *reading.table.schema.typed()))
    if start.keys() != typed.keys() or any(kind not in start[name] for name, kind in typed.items()):
        raise invalid("The provided starting key is invalid: The provided key element does not match the schema")
    return reading.place(start)


def _rows(tx: Transaction, reading: Reading, stretch: Stretch) -> Iterator[Item]:
    """The items of the stretch in order, fetched a batch at a time."""
    index = reading.index
    many = ROWS_AT_ONCE if reading.limit is None else min(reading.limit, ROWS_AT_ONCE)
    way = "ASC" if stretch.forward else "DESC"
    order = [f"e.hash_key {way}", f"e.range_key {way}"]
    if index is None:
        source = "SELECT e.item FROM dynamodb_items e WHERE e.table_id = :table"
    else:
        order += [f"e.item_hash {way}", f"e.item_range {way}"]
        source = (
            "SELECT i.item FROM dynamodb_index_entries e JOIN dynamodb_items i ON i.table_id = e.table_id"
            " AND i.hash_key = e.item_hash AND i.range_key = e.item_range"
            " WHERE e.table_id = :table AND e.index_id = :index"
        )
    while True:
        where, values = stretch.where()
        rows = tx.all(
            f"{source}{where} ORDER BY {', '.join(order)} LIMIT :many",
            table=reading.table.id,
            many=many,
            **({"index": index.number} if index is not None else {}),
            **values,
        )
        item: Item = {}
        for row in rows:
            item = read(row["item"])
            yield item
        if len(rows) < many:
            return
        stretch.begin_after(*reading.place(item))


def _page(tx: Transaction, reading: Reading, stretch: Stretch, request: Mapping[str, Any]) -> dict[str, Any]:
    index = reading.index
    kept: list[Item] = []
    count = scanned = read_bytes = 0
    last: Item | None = None
    projected = None
    if index is not None and not index.projects_all() and (index.is_global or _select_is_default(request)):
        projected = _projected(reading.table, index)
    for item in _rows(tx, reading, stretch):
        shown = item if projected is None else {name: it for name, it in item.items() if name in projected}
        scanned += 1
        read_bytes += size_of_item(shown)
        if reading.filter is None or reading.filter.holds(shown, reading.given.values):
            count += 1
            if not reading.counts_only:
                kept.append(shown if reading.projection is None else cut_out(shown, reading.projection.wanted))
        if scanned == reading.limit or read_bytes >= PAGE_BYTES_MAX:
            last = item
            break
    answer: dict[str, Any] = {} if reading.counts_only else {"Items": kept}
    answer |= {"Count": count, "ScannedCount": scanned}
    if last is not None:
        answer["LastEvaluatedKey"] = reading.last_key(last)
    units = capacity.read_units(read_bytes, reading.consistent)
    consumed = Consumed(reading.table)
    if index is None:
        consumed.read_units = units
    else:
        consumed.index_units[index.name] = units
    capacity.added(answer, request, consumed)
    return answer


def _select_is_default(request: Mapping[str, Any]) -> bool:
    """Whether a local index shows only what it projects: unless more was asked for, which is fetched."""
    return (
        request.get("Select") in (None, "ALL_PROJECTED_ATTRIBUTES", "COUNT") and "ProjectionExpression" not in request
    )
