"""Tables: found by name or ARN, created, described, changed, deleted.

Keeps true: a table can be used as soon as CreateTable has answered, and is gone as soon as DeleteTable has; what lay in
it is then removed bit by bit. Does not know what items look like.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from muster.arn import arn
from muster.errors import ServiceError, unsupported
from muster.services.dynamodb import definition as definitions
from muster.services.dynamodb.definition import Definition, Index
from muster.services.dynamodb.key import Schema
from muster.services.dynamodb.refusal import invalid, invalid_values, no_table
from muster.transaction import Carried, Delivery, Transaction

PURGE = "dynamodb.purge"
BACKFILL = "dynamodb.backfill"

# How many items one carried delivery deletes: a few milliseconds of the writer's time.
PURGED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it is stored: its row's id and its definition."""

    id: int
    definition: Definition

    @property
    def name(self) -> str:
        """The table's name."""
        return self.definition.name

    @property
    def schema(self) -> Schema:
        """The table's own key schema."""
        return self.definition.schema


def name_of(name_or_arn: str) -> str:
    """The table's name, where a request may give its ARN instead."""
    if name_or_arn.startswith("arn:"):
        return name_or_arn.rpartition("table/")[2].partition("/")[0]
    return name_or_arn


def find(tx: Transaction, name_or_arn: str) -> Table | None:
    """The table, or None."""
    row = tx.one("SELECT id, definition FROM dynamodb_tables WHERE name = :name", name=name_of(name_or_arn))
    return Table(row["id"], definitions.read(row["definition"])) if row else None


def for_items(tx: Transaction, name_or_arn: str) -> Table:
    """The table, for an operation on items; ResourceNotFoundException when there is none."""
    table = find(tx, name_or_arn)
    if table is None:
        raise no_table()
    return table


def named(tx: Transaction, name_or_arn: str) -> Table:
    """The table, for an operation on tables; ResourceNotFoundException when there is none."""
    table = find(tx, name_or_arn)
    if table is None:
        raise no_table(name_of(name_or_arn))
    return table


def by_id(tx: Transaction, table_id: int) -> Table | None:
    """The table with that id, unless it was deleted."""
    row = tx.one("SELECT id, definition FROM dynamodb_tables WHERE id = :id AND name IS NOT NULL", id=table_id)
    return Table(row["id"], definitions.read(row["definition"])) if row else None


def create(tx: Transaction, request: Mapping[str, Any]) -> Table:
    """Create a table; ResourceInUseException when its name is taken."""
    definition = definitions.defined(request, tx.new_id(), tx.now)
    if find(tx, definition.name) is not None:
        raise ServiceError("ResourceInUseException", f"Table already exists: {definition.name}")
    row = tx.one(
        "INSERT INTO dynamodb_tables (name, definition) VALUES (:name, :definition) RETURNING id",
        name=definition.name,
        definition=definition.text(),
    )
    assert row is not None
    return Table(row["id"], definition)


def store(tx: Transaction, table: Table, definition: Definition) -> Table:
    """Write a changed definition."""
    tx.run(
        "UPDATE dynamodb_tables SET definition = :definition WHERE id = :id", id=table.id, definition=definition.text()
    )
    return Table(table.id, definition)


def delete(tx: Transaction, table: Table) -> None:
    """Delete a table; what lies in it is removed by deliveries."""
    if table.definition.deletion_protection:
        raise invalid(
            "Resource cannot be deleted as it is currently protected against deletion. "
            "Disable deletion protection first."
        )
    tx.run("UPDATE dynamodb_tables SET name = NULL WHERE id = :id", id=table.id)
    tx.post(Delivery(PURGE, str(table.id), {"table": table.id}))


def purge(tx: Transaction, carried: Carried) -> None:
    """Remove some of what lay in a deleted table or index, and come again while there is more."""
    table_id, index_id = carried.payload["table"], carried.payload.get("index")
    only = "" if index_id is None else " AND index_id = :index"
    values = {"table": table_id, "many": PURGED_AT_ONCE} | ({} if index_id is None else {"index": index_id})
    entry = "(table_id, index_id, hash_key, range_key, item_hash, item_range)"
    removed = tx.run(
        f"DELETE FROM dynamodb_index_entries WHERE {entry} IN (SELECT {entry[1:-1]} FROM dynamodb_index_entries"
        f" WHERE table_id = :table{only} LIMIT :many)",
        **values,
    )
    if not removed and index_id is None:
        removed = tx.run(
            "DELETE FROM dynamodb_items WHERE (table_id, hash_key, range_key) IN (SELECT table_id, hash_key, range_key"
            " FROM dynamodb_items WHERE table_id = :table LIMIT :many)",
            **values,
        )
    if removed:
        tx.post(Delivery(PURGE, carried.subject, carried.payload))
    elif index_id is None:
        tx.run("DELETE FROM dynamodb_tables WHERE id = :table AND name IS NULL", table=table_id)


def update(tx: Transaction, table: Table, request: Mapping[str, Any]) -> Table:
    """Change a table's settings; ValidationException when nothing would be changed."""
    definition = table.definition
    before = definition
    if "AttributeDefinitions" in request:
        wanted = definitions.attribute_types(request["AttributeDefinitions"])
        for name in definition.key_attributes() & wanted.keys():
            if wanted[name] != definition.attributes[name]:
                raise invalid_values(f"The type of the key attribute {name} cannot be changed")
        definition = replace(definition, attributes={**definition.attributes, **wanted})
    if "BillingMode" in request or "ProvisionedThroughput" in request:
        mode = request.get("BillingMode", definition.billing_mode)
        throughput = request.get("ProvisionedThroughput")
        definitions.check_throughput(mode, throughput or (definition.throughput if mode == "PROVISIONED" else None))
        definition = replace(
            definition,
            billing_mode=mode,
            throughput=(throughput or definition.throughput) if mode == "PROVISIONED" else None,
        )
    if "DeletionProtectionEnabled" in request:
        definition = replace(definition, deletion_protection=request["DeletionProtectionEnabled"])
    if "StreamSpecification" in request:
        definition = _stream_changed(definition, request["StreamSpecification"], tx.now)
    shown = definitions.settings_shown(request)
    if request.get("SSESpecification", {}).get("Enabled") is False:
        definition = replace(
            definition, shown={name: it for name, it in definition.shown.items() if name != "SSEDescription"}
        )
    definition = replace(definition, shown={**definition.shown, **shown})
    for change in request.get("GlobalSecondaryIndexUpdates") or ():
        definition = _index_changed(tx, table, definition, change)
    used = definition.key_attributes()
    definition = replace(
        definition, attributes={name: kind for name, kind in definition.attributes.items() if name in used}
    )
    if definition == before and not request.keys() - {"TableName"}:
        raise invalid(
            "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or "
            "SSESpecification or ReplicaUpdates is required"
        )
    return store(tx, table, definition)


def _stream_changed(definition: Definition, specification: Mapping[str, Any], now: float) -> Definition:
    if specification["StreamEnabled"] and definition.stream is not None:
        raise invalid_values(f"Table already has an enabled stream: TableName: {definition.name}")
    if not specification["StreamEnabled"] and definition.stream is None:
        raise invalid_values(f"Table has no stream to disable: TableName: {definition.name}")
    return definitions.with_stream(definition, specification, now)


def _index_changed(tx: Transaction, table: Table, definition: Definition, change: Mapping[str, Any]) -> Definition:
    if "Create" in change:
        definition, index = definitions.with_index(definition, change["Create"])
        tx.post(Delivery(BACKFILL, str(table.id), {"table": table.id, "index": index.number}))
        return definition
    action = "Delete" if "Delete" in change else "Update"
    name = change[action]["IndexName"]
    existing = definition.index(name)
    if existing is None or not existing.is_global:
        raise ServiceError("ResourceNotFoundException", f"Requested resource not found: Index: {name} not found")
    if action == "Delete":
        tx.post(Delivery(PURGE, f"{table.id}/{existing.number}", {"table": table.id, "index": existing.number}))
        return replace(definition, indexes=tuple(index for index in definition.indexes if index is not existing))
    if change["Update"].keys() - {"IndexName", "ProvisionedThroughput"}:
        raise unsupported("changes of an index other than its ProvisionedThroughput")
    changed = replace(existing, throughput=change["Update"].get("ProvisionedThroughput"))
    return replace(definition, indexes=tuple(changed if index is existing else index for index in definition.indexes))


def arn_of(tx: Transaction, definition: Definition) -> str:
    """The table's ARN."""
    return arn(tx, "dynamodb", f"table/{definition.name}")


def stream_arn_of(tx: Transaction, definition: Definition) -> str:
    """The ARN of the table's stream."""
    return f"{arn_of(tx, definition)}/stream/{definition.stream_label}"


def described(tx: Transaction, table: Table, status: str = "ACTIVE") -> dict[str, Any]:
    """The table as DescribeTable shows it; counts and sizes are those of this moment."""
    definition = table.definition
    totals = tx.one(
        "SELECT COUNT(*) AS items, COALESCE(SUM(size_bytes), 0) AS bytes FROM dynamodb_items WHERE table_id = :id",
        id=table.id,
    )
    assert totals is not None
    average = int(totals["bytes"]) // max(1, totals["items"])
    answer: dict[str, Any] = {
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": kind} for name, kind in definition.attributes.items()
        ],
        "TableName": definition.name,
        "KeySchema": _key_schema(definition.schema),
        "TableStatus": status,
        "CreationDateTime": definition.created_at,
        "ProvisionedThroughput": _throughput(definition.throughput),
        "TableSizeBytes": int(totals["bytes"]),
        "ItemCount": totals["items"],
        "TableArn": arn_of(tx, definition),
        "TableId": definition.uuid,
        "DeletionProtectionEnabled": definition.deletion_protection,
        **definition.shown,
    }
    if definition.billing_mode == "PAY_PER_REQUEST":
        answer["BillingModeSummary"] = {
            "BillingMode": "PAY_PER_REQUEST",
            "LastUpdateToPayPerRequestDateTime": definition.created_at,
        }
    if definition.stream is not None:
        answer["StreamSpecification"] = dict(definition.stream)
    if definition.stream_label is not None:
        answer["LatestStreamLabel"] = definition.stream_label
        answer["LatestStreamArn"] = stream_arn_of(tx, definition)
    for parameter, is_global in (("LocalSecondaryIndexes", False), ("GlobalSecondaryIndexes", True)):
        indexes = [index for index in definition.indexes if index.is_global == is_global]
        if indexes:
            answer[parameter] = [_described_index(tx, table, index, average) for index in indexes]
    return answer


def _described_index(tx: Transaction, table: Table, index: Index, average_bytes: int) -> dict[str, Any]:
    """The index; its size is an estimate (AWS's is six hours old) from the items' average."""
    totals = tx.one(
        "SELECT COUNT(*) AS items FROM dynamodb_index_entries WHERE table_id = :id AND index_id = :index",
        id=table.id,
        index=index.number,
    )
    assert totals is not None
    answer: dict[str, Any] = {
        "IndexName": index.name,
        "KeySchema": _key_schema(index.schema),
        "Projection": dict(index.projection),
        "IndexSizeBytes": totals["items"] * average_bytes,
        "ItemCount": totals["items"],
        "IndexArn": f"{arn_of(tx, table.definition)}/index/{index.name}",
    }
    if index.is_global:
        answer["IndexStatus"] = "ACTIVE" if index.ready else "CREATING"
        if not index.ready:
            answer["Backfilling"] = True
        answer["ProvisionedThroughput"] = _throughput(index.throughput)
    return answer


def _key_schema(schema: Schema) -> list[dict[str, str]]:
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(schema.names(), ("HASH", "RANGE"), strict=False)
    ]


def _throughput(throughput: Mapping[str, Any] | None) -> dict[str, Any]:
    given = throughput or {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}
    return {**given, "NumberOfDecreasesToday": 0}
