"""What an operation would have consumed of a table's capacity.

Does not limit anything. Source: the developer guide, "DynamoDB read and write operations": a write unit is 1 KB, a read
unit 4 KB read consistently or twice that read eventually; transactions take double.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.languages.expressions import Item
from muster.languages.expressions.value import size_of_item
from muster.services.dynamodb import items
from muster.services.dynamodb.definition import Index
from muster.services.dynamodb.table import Table


@dataclass(slots=True)
class Consumed:
    """Units taken from one table: by the table itself and by its indexes."""

    table: Table
    read_units: float = 0.0
    write_units: float = 0.0
    index_units: dict[str, float] = field(default_factory=dict)

    def shown(self, wanted: str, *, split: bool = False) -> dict[str, Any]:
        """As a ConsumedCapacity: TOTAL or INDEXES; `split` into reads and writes as transactions show it."""
        own = self.read_units + self.write_units
        total = own + sum(self.index_units.values())
        answer: dict[str, Any] = {"TableName": self.table.name, "CapacityUnits": total}
        kind = "WriteCapacityUnits" if self.write_units else "ReadCapacityUnits"
        if split:
            answer[kind] = total
        if wanted == "INDEXES":
            answer["Table"] = {"CapacityUnits": own, **({kind: own} if split else {})}
            for parameter, is_global in (("LocalSecondaryIndexes", False), ("GlobalSecondaryIndexes", True)):
                units = {
                    index.name: {"CapacityUnits": self.index_units[index.name]}
                    for index in self.table.definition.indexes
                    if index.is_global == is_global and index.name in self.index_units
                }
                if units:
                    answer[parameter] = units
        return answer


def read_units(size_bytes: int, consistent: bool) -> float:
    """The units of reading that many bytes."""
    units = max(1, -(-size_bytes // 4096))
    return float(units) if consistent else units * 0.5


def write_units(old: Item | None, new: Item | None) -> float:
    """The units of a write: by the larger of the items before and after."""
    size = max(size_of_item(old) if old else 0, size_of_item(new) if new else 0)
    return float(max(1, -(-size // 1024)))


def of_write(table: Table, old: Item | None, new: Item | None, consumed: Consumed | None = None) -> Consumed:
    """What a write took, added to what was consumed before."""
    consumed = consumed or Consumed(table)
    consumed.write_units += write_units(old, new)
    for index in table.definition.indexes:
        units = _index_units(index, old, new)
        if units:
            consumed.index_units[index.name] = consumed.index_units.get(index.name, 0.0) + units
    return consumed


def _index_units(index: Index, old: Item | None, new: Item | None) -> float:
    before, after = items.entry_key(index, old), items.entry_key(index, new)
    if (before is None and after is None) or (before == after and old == new):
        return 0.0
    if before is not None and after is not None and before != after:
        return write_units(old, None) + write_units(None, new)
    return write_units(old if before is not None else None, new if after is not None else None)


def added(answer: dict[str, Any], request: Mapping[str, Any], consumed: Consumed) -> None:
    """Show the capacity in the answer when the request asks for it."""
    wanted = request.get("ReturnConsumedCapacity", "NONE")
    if wanted != "NONE":
        answer["ConsumedCapacity"] = consumed.shown(wanted)


def added_for_all(
    answer: dict[str, Any], request: Mapping[str, Any], consumed: Iterable[Consumed], *, split: bool = False
) -> None:
    """Show the capacity of several tables in the answer when the request asks for it."""
    wanted = request.get("ReturnConsumedCapacity", "NONE")
    if wanted != "NONE":
        answer["ConsumedCapacity"] = [each.shown(wanted, split=split) for each in consumed]


def collection(table: Table, old: Item | None, new: Item | None) -> dict[str, Any] | None:
    """The ItemCollectionMetrics of a write: only a table with local indexes has item collections."""
    there = new if new is not None else old
    if there is None or all(index.is_global for index in table.definition.indexes):
        return None
    name = table.schema.hash_name
    return {"ItemCollectionKey": {name: there[name]}, "SizeEstimateRangeGB": [0.0, 1.0]}
