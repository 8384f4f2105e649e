"""Tables: created, described, changed, deleted; and what leaves them by itself."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.errors import ServiceError
from muster.testing import World

Table = Callable[..., dict[str, Any]]

BY_G = {
    "IndexName": "by_g",
    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}


def refused(world: World, operation: str, **request: Any) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        world.call("dynamodb", operation, **request)
    return caught.value


def put(world: World, **attributes: Any) -> None:
    world.call("dynamodb", "PutItem", TableName="things", Item=attributes)


def scanned(world: World) -> list[str]:
    return sorted(item["pk"]["S"] for item in world.call("dynamodb", "Scan", TableName="things")["Items"])


def test_table_is_described_as_it_was_created(world: World, table: Table) -> None:
    table(
        "N",
        attributes={"g": "S"},
        GlobalSecondaryIndexes=[BY_G],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        TableClass="STANDARD",
        DeletionProtectionEnabled=True,
        SSESpecification={"Enabled": True},
        Tags=[{"Key": "a", "Value": "b"}],
    )
    put(world, pk={"S": "a"}, sk={"N": "1"}, g={"S": "x"})
    put(world, pk={"S": "b"}, sk={"N": "1"})
    shown = world.call("dynamodb", "DescribeTable", TableName="things")["Table"]
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/things"
    assert shown["TableArn"] == arn
    assert shown["TableStatus"] == "ACTIVE"
    assert shown["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    assert shown["ItemCount"] == 2
    assert shown["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert shown["TableClassSummary"] == {"TableClass": "STANDARD"}
    assert shown["SSEDescription"] == {"Status": "ENABLED", "SSEType": "KMS"}
    assert shown["DeletionProtectionEnabled"] is True
    assert shown["LatestStreamArn"] == f"{arn}/stream/{shown['LatestStreamLabel']}"
    [index] = shown["GlobalSecondaryIndexes"]
    assert (index["IndexStatus"], index["ItemCount"], index["IndexArn"]) == ("ACTIVE", 1, f"{arn}/index/by_g")
    assert world.call("dynamodb", "ListTagsOfResource", ResourceArn=arn) == {"Tags": [{"Key": "a", "Value": "b"}]}
    assert world.call("dynamodb", "DescribeTable", TableName=arn)["Table"]["TableName"] == "things"


def test_table_name_is_taken_once(world: World, table: Table) -> None:
    table()
    with pytest.raises(ServiceError) as caught:
        table()
    assert (caught.value.code, caught.value.message) == ("ResourceInUseException", "Table already exists: things")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"AttributeDefinitions": []},
         "One or more parameter values were invalid: Some index key attributes are not defined in "
         "AttributeDefinitions. Keys: [pk], AttributeDefinitions: []"),
        ({"AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"},
                                   {"AttributeName": "x", "AttributeType": "S"}]},
         "One or more parameter values were invalid: Number of attributes in KeySchema does not exactly match number "
         "of attributes defined in AttributeDefinitions"),
        ({"BillingMode": "PROVISIONED"},
         "One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must both be specified "
         "when BillingMode is PROVISIONED"),
        ({"KeySchema": [{"AttributeName": "pk", "KeyType": "RANGE"}]},
         "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"),
        ({"LocalSecondaryIndexes": [BY_G], "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"},
                                                                    {"AttributeName": "g", "AttributeType": "S"}]},
         "One or more parameter values were invalid: Table KeySchema does not have a range key, which is required when "
         "specifying a LocalSecondaryIndex"),
        ({"TableName": "ab"},
         "TableName must be at least 3 characters long and at most 255 characters long"),
    ],
)  # fmt: skip
def test_definition_that_does_not_hold_together_is_refused(table: Table, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ServiceError) as caught:
        table(**changes)
    assert caught.value.message == message


def test_tables_are_listed_page_by_page(world: World, table: Table) -> None:
    for name in ("ccc", "aaa", "bbb"):
        table(name=name)
    first = world.call("dynamodb", "ListTables", Limit=2)
    assert first == {"TableNames": ["aaa", "bbb"], "LastEvaluatedTableName": "bbb"}
    assert world.call("dynamodb", "ListTables", ExclusiveStartTableName="bbb") == {"TableNames": ["ccc"]}


def test_deleted_table_is_gone_at_once_and_its_items_soon(world: World, table: Table) -> None:
    table(attributes={"g": "S"}, GlobalSecondaryIndexes=[BY_G])
    put(world, pk={"S": "a"}, g={"S": "x"})
    shown = world.call("dynamodb", "DeleteTable", TableName="things")["TableDescription"]
    assert shown["TableStatus"] == "DELETING"
    error = refused(world, "DescribeTable", TableName="things")
    assert error.message == "Requested resource not found: Table: things not found"
    table()
    assert scanned(world) == []
    world.settle()
    assert world.rows("SELECT * FROM dynamodb_items") == []
    assert world.rows("SELECT * FROM dynamodb_index_entries") == []
    assert len(world.rows("SELECT * FROM dynamodb_tables")) == 1


def test_protected_table_is_deleted_only_once_the_protection_is_off(world: World, table: Table) -> None:
    table(DeletionProtectionEnabled=True)
    assert "protected against deletion" in refused(world, "DeleteTable", TableName="things").message
    world.call("dynamodb", "UpdateTable", TableName="things", DeletionProtectionEnabled=False)
    world.call("dynamodb", "DeleteTable", TableName="things")


def test_index_made_later_is_filled_with_the_items_that_were_there(world: World, table: Table) -> None:
    table()
    for number in range(3):
        put(world, pk={"S": f"k{number}"}, g={"S": "x"})
    put(world, pk={"S": "odd"}, g={"N": "1"})
    world.call(
        "dynamodb",
        "UpdateTable",
        TableName="things",
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "g", "AttributeType": "S"},
        ],
        GlobalSecondaryIndexUpdates=[{"Create": BY_G}],
    )
    query: dict[str, Any] = {
        "TableName": "things",
        "IndexName": "by_g",
        "KeyConditionExpression": "g = :g",
        "ExpressionAttributeValues": {":g": {"S": "x"}},
        "Select": "COUNT",
    }
    assert "backfilling" in refused(world, "Query", **query).message
    put(world, pk={"S": "meanwhile"}, g={"S": "x"})
    world.settle()
    assert world.call("dynamodb", "Query", **query)["Count"] == 4
    world.call(
        "dynamodb", "UpdateTable", TableName="things", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by_g"}}]
    )
    world.settle()
    assert world.rows("SELECT * FROM dynamodb_index_entries") == []
    assert refused(world, "Query", **query).message == "The table does not have the specified index: by_g"


def test_billing_mode_and_throughput_change(world: World, table: Table) -> None:
    table()
    throughput = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}
    shown = world.call(
        "dynamodb", "UpdateTable", TableName="things", BillingMode="PROVISIONED", ProvisionedThroughput=throughput
    )["TableDescription"]
    assert shown["ProvisionedThroughput"] == {**throughput, "NumberOfDecreasesToday": 0}
    assert "BillingModeSummary" not in shown


def test_tags_come_and_go(world: World, table: Table) -> None:
    arn = table()["TableArn"]
    world.call(
        "dynamodb", "TagResource", ResourceArn=arn, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]
    )
    world.call("dynamodb", "UntagResource", ResourceArn=arn, TagKeys=["a"])
    assert world.call("dynamodb", "ListTagsOfResource", ResourceArn=arn)["Tags"] == [{"Key": "b", "Value": "2"}]


def enable_ttl(world: World, enabled: bool = True) -> None:
    world.call(
        "dynamodb",
        "UpdateTimeToLive",
        TableName="things",
        TimeToLiveSpecification={"Enabled": enabled, "AttributeName": "until"},
    )


def later(world: World, seconds: float) -> dict[str, str]:
    return {"N": str(int(world.clock.now() + seconds))}


def test_items_leave_when_their_time_to_live_is_over(world: World, table: Table) -> None:
    table(attributes={"g": "S"}, GlobalSecondaryIndexes=[BY_G])
    enable_ttl(world)
    put(world, pk={"S": "late"}, until=later(world, 100), g={"S": "x"})
    put(world, pk={"S": "soon"}, until=later(world, 10), g={"S": "x"})
    put(world, pk={"S": "never"}, g={"S": "x"})
    put(world, pk={"S": "mistake"}, until={"N": "12"})
    put(world, pk={"S": "text"}, until={"S": "12"})
    world.pass_time(9)
    assert scanned(world) == ["late", "mistake", "never", "soon", "text"]
    world.pass_time(2)
    assert scanned(world) == ["late", "mistake", "never", "text"]
    world.pass_time(100)
    assert scanned(world) == ["mistake", "never", "text"]
    assert len(world.rows("SELECT * FROM dynamodb_index_entries")) == 1


def test_time_to_live_counts_for_items_that_were_there_and_for_prolonged_ones(world: World, table: Table) -> None:
    table()
    put(world, pk={"S": "a"}, until=later(world, 10))
    put(world, pk={"S": "b"}, until=later(world, 10))
    enable_ttl(world)
    assert world.call("dynamodb", "DescribeTimeToLive", TableName="things")["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "ENABLED",
        "AttributeName": "until",
    }
    world.settle()
    put(world, pk={"S": "b"}, until=later(world, 50))
    world.pass_time(20)
    assert scanned(world) == ["b"]
    enable_ttl(world, False)
    world.pass_time(100)
    assert scanned(world) == ["b"]


def test_many_items_that_expire_at_once_all_leave(world: World, table: Table) -> None:
    table()
    enable_ttl(world)
    for number in range(250):
        put(world, pk={"S": str(number)}, until=later(world, 10))
    world.pass_time(11)
    assert scanned(world) == []


def test_enabling_time_to_live_twice_is_refused(world: World, table: Table) -> None:
    table()
    enable_ttl(world)
    with pytest.raises(ServiceError, match="TimeToLive is already enabled"):
        enable_ttl(world)


def test_point_in_time_recovery_is_recorded_and_shown(world: World, table: Table) -> None:
    table()

    def status() -> str:
        answer = world.call("dynamodb", "DescribeContinuousBackups", TableName="things")
        shown: dict[str, str] = answer["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
        return shown["PointInTimeRecoveryStatus"]

    assert status() == "DISABLED"
    world.call(
        "dynamodb",
        "UpdateContinuousBackups",
        TableName="things",
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
    )
    assert status() == "ENABLED"


def test_two_indexes_are_added_one_after_the_other_with_all_attributes_defined(world: World, table: Table) -> None:
    table()
    attributes = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "g", "h")]
    for name in ("g", "h"):
        index = {**BY_G, "IndexName": f"by_{name}", "KeySchema": [{"AttributeName": name, "KeyType": "HASH"}]}
        shown = world.call(
            "dynamodb",
            "UpdateTable",
            TableName="things",
            AttributeDefinitions=attributes,
            GlobalSecondaryIndexUpdates=[{"Create": index}],
        )["TableDescription"]
    assert [index["IndexName"] for index in shown["GlobalSecondaryIndexes"]] == ["by_g", "by_h"]
    assert [each["AttributeName"] for each in shown["AttributeDefinitions"]] == ["pk", "g", "h"]
