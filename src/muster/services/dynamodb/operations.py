"""DynamoDB's operations: AWS's requests in, AWS's answers out.

Refused by name: the legacy parameters (Expected, AttributeUpdates, KeyConditions, QueryFilter, ScanFilter,
AttributesToGet, ConditionalOperator), global tables, restoring, imports and exports, PartiQL, resource policies and
warm throughput.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from muster.errors import ServiceError
from muster.languages.expressions import ExpressionError, cut_out
from muster.operation import Answer, Operation, Request
from muster.services.dynamodb import capacity, fetch, query, stream, transact, upkeep, write
from muster.services.dynamodb import table as tables
from muster.services.dynamodb.capacity import Consumed
from muster.services.dynamodb.refusal import invalid, invalid_values
from muster.services.dynamodb.table import Table
from muster.services.dynamodb.write import Done, Write
from muster.transaction import Transaction

BATCH_WRITES_MAX = 25

# How far back point-in-time recovery reaches where nothing else is asked for.
RECOVERY_DAYS = 35

_EXPRESSION = frozenset({"ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"})
_WRITE = _EXPRESSION | {
    "TableName",
    "ReturnValues",
    "ReturnConsumedCapacity",
    "ReturnItemCollectionMetrics",
    "ReturnValuesOnConditionCheckFailure",
}
_READ = frozenset(
    {
        "TableName",
        "IndexName",
        "Select",
        "Limit",
        "ConsistentRead",
        "ExclusiveStartKey",
        "ReturnConsumedCapacity",
        "ProjectionExpression",
        "FilterExpression",
        "ExpressionAttributeNames",
        "ExpressionAttributeValues",
    }
)
_SETTINGS = frozenset(
    {
        "TableName",
        "AttributeDefinitions",
        "BillingMode",
        "ProvisionedThroughput",
        "OnDemandThroughput",
        "StreamSpecification",
        "SSESpecification",
        "TableClass",
        "DeletionProtectionEnabled",
    }
)


def create_table(tx: Transaction, request: Request) -> Answer:
    """CreateTable."""
    table = tables.create(tx, request)
    if table.definition.stream is not None:
        table = stream.begin(tx, table)
    return {"TableDescription": tables.described(tx, table)}


def describe_table(tx: Transaction, request: Request) -> Answer:
    """DescribeTable."""
    return {"Table": tables.described(tx, tables.named(tx, request["TableName"]))}


def update_table(tx: Transaction, request: Request) -> Answer:
    """UpdateTable."""
    before = tables.named(tx, request["TableName"])
    after = tables.update(tx, before, request)
    if before.definition.stream != after.definition.stream:
        if before.definition.stream is not None:
            stream.end(tx, before.definition)
        if after.definition.stream is not None:
            after = stream.begin(tx, after)
    return {"TableDescription": tables.described(tx, after)}


def delete_table(tx: Transaction, request: Request) -> Answer:
    """DeleteTable."""
    table = tables.named(tx, request["TableName"])
    shown = tables.described(tx, table, "DELETING")
    tables.delete(tx, table)
    if table.definition.stream is not None:
        stream.end(tx, table.definition)
    upkeep.stop(tx, table)
    return {"TableDescription": shown}


def list_tables(tx: Transaction, request: Request) -> Answer:
    """ListTables."""
    limit = request.get("Limit", 100)
    rows = tx.all(
        "SELECT name FROM dynamodb_tables WHERE name > :after ORDER BY name LIMIT :many",
        after=request.get("ExclusiveStartTableName", ""),
        many=limit + 1,
    )
    names = [row["name"] for row in rows[:limit]]
    return {"TableNames": names} | ({"LastEvaluatedTableName": names[-1]} if len(rows) > limit else {})


def update_time_to_live(tx: Transaction, request: Request) -> Answer:
    """UpdateTimeToLive."""
    table = tables.for_items(tx, request["TableName"])
    wanted = request["TimeToLiveSpecification"]
    attribute = table.definition.ttl_attribute
    if not wanted["AttributeName"]:
        raise invalid_values("TimeToLiveSpecification attributeName must not be empty")
    if wanted["Enabled"] and attribute is not None:
        if attribute != wanted["AttributeName"]:
            raise invalid(f"TimeToLive is active on a different AttributeName: current AttributeName is {attribute}")
        raise invalid("TimeToLive is already enabled")
    if not wanted["Enabled"]:
        if attribute is None:
            raise invalid("TimeToLive is already disabled")
        if attribute != wanted["AttributeName"]:
            raise invalid(f"TimeToLive is active on a different AttributeName: current AttributeName is {attribute}")
    upkeep.set_time_to_live(tx, table, wanted["AttributeName"] if wanted["Enabled"] else None)
    return {"TimeToLiveSpecification": dict(wanted)}


def describe_time_to_live(tx: Transaction, request: Request) -> Answer:
    """DescribeTimeToLive."""
    attribute = tables.for_items(tx, request["TableName"]).definition.ttl_attribute
    if attribute is None:
        return {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
    return {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": attribute}}


def _tagged(tx: Transaction, request: Request) -> Table:
    table = tables.find(tx, request["ResourceArn"])
    if table is None:
        raise ServiceError(
            "ResourceNotFoundException", f"Requested resource not found: ResourcArn: {request['ResourceArn']} not found"
        )
    return table


def tag_resource(tx: Transaction, request: Request) -> Answer:
    """TagResource."""
    table = _tagged(tx, request)
    tags = {**table.definition.tags, **{tag["Key"]: tag["Value"] for tag in request["Tags"]}}
    tables.store(tx, table, replace(table.definition, tags=tags))
    return {}


def untag_resource(tx: Transaction, request: Request) -> Answer:
    """UntagResource."""
    table = _tagged(tx, request)
    tags = {name: value for name, value in table.definition.tags.items() if name not in request["TagKeys"]}
    tables.store(tx, table, replace(table.definition, tags=tags))
    return {}


def list_tags(tx: Transaction, request: Request) -> Answer:
    """ListTagsOfResource; all on one page, a table has at most fifty."""
    return {"Tags": [{"Key": key, "Value": value} for key, value in _tagged(tx, request).definition.tags.items()]}


def _finished(request: Request, write_: Write, done: Done) -> Answer:
    """What every write of one item adds to its answer when asked."""
    answer: Answer = {}
    if request.get("ReturnConsumedCapacity", "NONE") != "NONE":
        capacity.added(answer, request, capacity.of_write(write_.table, done.old, done.new))
    collection = capacity.collection(write_.table, done.old, done.new)
    if collection is not None and request.get("ReturnItemCollectionMetrics") == "SIZE":
        answer["ItemCollectionMetrics"] = collection
    return answer


def _return_values(request: Request) -> str:
    wanted: str = request.get("ReturnValues", "NONE")
    if wanted not in ("NONE", "ALL_OLD"):
        raise invalid("ReturnValues can only be ALL_OLD or NONE")
    return wanted


def put_item(tx: Transaction, request: Request) -> Answer:
    """PutItem."""
    wanted = _return_values(request)
    table = tables.for_items(tx, request["TableName"])
    wants_old = wanted == "ALL_OLD" or "ReturnConsumedCapacity" in request
    write_ = write.put(table, request, wants_old=wants_old)
    done = write.perform(tx, write_)
    answer = _finished(request, write_, done)
    return {"Attributes": done.old, **answer} if wanted == "ALL_OLD" and done.old is not None else answer


def delete_item(tx: Transaction, request: Request) -> Answer:
    """DeleteItem."""
    wanted = _return_values(request)
    write_ = write.delete(tables.for_items(tx, request["TableName"]), request)
    done = write.perform(tx, write_)
    answer = _finished(request, write_, done)
    return {"Attributes": done.old, **answer} if wanted == "ALL_OLD" and done.old is not None else answer


def update_item(tx: Transaction, request: Request) -> Answer:
    """UpdateItem."""
    write_ = write.update(tables.for_items(tx, request["TableName"]), request)
    done = write.perform(tx, write_)
    answer = _finished(request, write_, done)
    wanted = request.get("ReturnValues", "NONE")
    if wanted == "NONE":
        return answer
    image = done.old if wanted.endswith("_OLD") else done.new
    if image is not None and wanted.startswith("UPDATED"):
        image = cut_out(image, write_.update.touched) if write_.update is not None else {}
    return {"Attributes": image, **answer} if image else answer


def batch_write(tx: Transaction, request: Request) -> Answer:
    """BatchWriteItem: puts and deletes without conditions; all are done, nothing is left unprocessed."""
    asked: Mapping[str, Any] = request["RequestItems"]
    if not 1 <= sum(len(wanted) for wanted in asked.values()) <= BATCH_WRITES_MAX:
        raise invalid("Too many items requested for the BatchWriteItem call")
    writes: list[Write] = []
    for name, wanted in asked.items():
        table = tables.for_items(tx, name)
        writes += [_batched(table, each) for each in wanted]
    if len({(each.table.id, each.key) for each in writes}) != len(writes):
        raise invalid("Provided list of item keys contains duplicates")
    consumed: dict[str, Consumed] = {}
    collections: dict[str, list[dict[str, Any]]] = {}
    for each in writes:
        done = write.perform(tx, each)
        consumed[each.table.name] = capacity.of_write(each.table, done.old, done.new, consumed.get(each.table.name))
        collection = capacity.collection(each.table, done.old, done.new)
        if collection is not None:
            collections.setdefault(each.table.name, []).append(collection)
    answer: Answer = {"UnprocessedItems": {}}
    if request.get("ReturnItemCollectionMetrics") == "SIZE":
        answer["ItemCollectionMetrics"] = collections
    capacity.added_for_all(answer, request, consumed.values())
    return answer


def _batched(table: Table, wanted: Mapping[str, Any]) -> Write:
    if len(wanted) != 1:
        raise invalid("Supplied WriteRequest must contain exactly one of PutRequest or DeleteRequest")
    if "PutRequest" in wanted:
        return write.put(table, {"Item": wanted["PutRequest"]["Item"]})
    return write.delete(table, {"Key": wanted["DeleteRequest"]["Key"]})


def query_items(tx: Transaction, request: Request) -> Answer:
    """Query."""
    return query.query(tx, tables.for_items(tx, request["TableName"]), request)


def scan_items(tx: Transaction, request: Request) -> Answer:
    """Scan."""
    return query.scan(tx, tables.for_items(tx, request["TableName"]), request)


def describe_limits(tx: Transaction, request: Request) -> Answer:
    """DescribeLimits: AWS's own for a new account; nothing here is limited by them."""
    return {
        "AccountMaxReadCapacityUnits": 80_000,
        "AccountMaxWriteCapacityUnits": 80_000,
        "TableMaxReadCapacityUnits": 40_000,
        "TableMaxWriteCapacityUnits": 40_000,
    }


def describe_endpoints(tx: Transaction, request: Request) -> Answer:
    """DescribeEndpoints."""
    return {"Endpoints": [{"Address": f"dynamodb.{tx.region}.amazonaws.com", "CachePeriodInMinutes": 1440}]}


def _backed_up(tx: Transaction, request: Request) -> Table:
    table = tables.find(tx, request["TableName"])
    if table is None:
        raise ServiceError("TableNotFoundException", f"Table not found: {tables.name_of(request['TableName'])}")
    return table


def describe_continuous_backups(tx: Transaction, request: Request) -> Answer:
    """DescribeContinuousBackups: the setting, as it was recorded."""
    recovery = _backed_up(tx, request).definition.recovery
    return {
        "ContinuousBackupsDescription": {
            "ContinuousBackupsStatus": "ENABLED",
            "PointInTimeRecoveryDescription": {
                "PointInTimeRecoveryStatus": "ENABLED" if recovery else "DISABLED",
                **({"RecoveryPeriodInDays": recovery} if recovery else {}),
            },
        }
    }


def update_continuous_backups(tx: Transaction, request: Request) -> Answer:
    """UpdateContinuousBackups: recorded and shown, so that templates deploy; restoring is refused, being no operation
    here."""
    table = _backed_up(tx, request)
    wanted = request["PointInTimeRecoverySpecification"]
    days = wanted.get("RecoveryPeriodInDays", RECOVERY_DAYS) if wanted["PointInTimeRecoveryEnabled"] else 0
    tables.store(tx, table, replace(table.definition, recovery=days))
    return describe_continuous_backups(tx, request)


def _stating(run: Callable[[Transaction, Request], Answer]) -> Callable[[Transaction, Request], Answer]:
    """The same operation, with what is wrong with an expression or a value as a ValidationException."""

    def stated(tx: Transaction, request: Request) -> Answer:
        try:
            return run(tx, request)
        except ExpressionError as error:
            raise invalid(error.message) from error

    return stated


def _operation(
    run: Callable[[Transaction, Request], Answer], accepts: frozenset[str] | set[str], *, reads: bool = False
) -> Operation:
    return Operation(_stating(run), frozenset(accepts), reads=reads)


OPERATIONS: Mapping[str, Operation] = {
    "CreateTable": _operation(
        create_table, _SETTINGS | {"KeySchema", "LocalSecondaryIndexes", "GlobalSecondaryIndexes", "Tags"}
    ),
    "DescribeTable": _operation(describe_table, {"TableName"}, reads=True),
    "UpdateTable": _operation(update_table, _SETTINGS | {"GlobalSecondaryIndexUpdates"}),
    "DeleteTable": _operation(delete_table, {"TableName"}),
    "ListTables": _operation(list_tables, {"ExclusiveStartTableName", "Limit"}, reads=True),
    "UpdateTimeToLive": _operation(update_time_to_live, {"TableName", "TimeToLiveSpecification"}),
    "DescribeTimeToLive": _operation(describe_time_to_live, {"TableName"}, reads=True),
    "TagResource": _operation(tag_resource, {"ResourceArn", "Tags"}),
    "UntagResource": _operation(untag_resource, {"ResourceArn", "TagKeys"}),
    "ListTagsOfResource": _operation(list_tags, {"ResourceArn"}, reads=True),
    "PutItem": _operation(put_item, _WRITE | {"Item"}),
    "DeleteItem": _operation(delete_item, _WRITE | {"Key"}),
    "UpdateItem": _operation(update_item, _WRITE | {"Key", "UpdateExpression"}),
    "GetItem": _operation(
        fetch.get_item,
        {
            "TableName",
            "Key",
            "ConsistentRead",
            "ReturnConsumedCapacity",
            "ProjectionExpression",
            "ExpressionAttributeNames",
        },
        reads=True,
    ),
    "Query": _operation(query_items, _READ | {"KeyConditionExpression", "ScanIndexForward"}, reads=True),
    "Scan": _operation(scan_items, _READ | {"Segment", "TotalSegments"}, reads=True),
    "BatchGetItem": _operation(fetch.batch_get, {"RequestItems", "ReturnConsumedCapacity"}, reads=True),
    "BatchWriteItem": _operation(
        batch_write, {"RequestItems", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics"}
    ),
    "TransactGetItems": _operation(fetch.transact_get, {"TransactItems", "ReturnConsumedCapacity"}, reads=True),
    "TransactWriteItems": _operation(
        transact.transact_write,
        {"TransactItems", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics", "ClientRequestToken"},
    ),
    "DescribeLimits": _operation(describe_limits, set(), reads=True),
    "DescribeEndpoints": _operation(describe_endpoints, set(), reads=True),
    "DescribeContinuousBackups": _operation(describe_continuous_backups, {"TableName"}, reads=True),
    "UpdateContinuousBackups": _operation(update_continuous_backups, {"TableName", "PointInTimeRecoverySpecification"}),
}
