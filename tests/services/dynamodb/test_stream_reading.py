"""Streams: what was written to a table, in order, until it is a day old."""

from typing import Any

import pytest

from muster.errors import ServiceError
from muster.services.dynamodb import SERVICE, STREAMS
from muster.testing import World


@pytest.fixture
def world() -> World:
    world = World([SERVICE, STREAMS])
    world.call(
        "dynamodb",
        "CreateTable",
        TableName="things",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    return world


def ask(world: World, operation: str, **request: Any) -> dict[str, Any]:
    return world.call("dynamodbstreams", operation, **request)


def arn(world: World) -> str:
    found: str = ask(world, "ListStreams", TableName="things")["Streams"][-1]["StreamArn"]
    return found


def iterator(world: World, kind: str = "TRIM_HORIZON", **more: Any) -> str:
    stream = arn(world)
    [shard] = ask(world, "DescribeStream", StreamArn=stream)["StreamDescription"]["Shards"]
    found: str = ask(
        world, "GetShardIterator", StreamArn=stream, ShardId=shard["ShardId"], ShardIteratorType=kind, **more
    )["ShardIterator"]
    return found


def put(world: World, **attributes: Any) -> None:
    world.call("dynamodb", "PutItem", TableName="things", Item=attributes)


def test_each_change_leaves_a_record_with_its_images(world: World) -> None:
    put(world, pk={"S": "a"}, b={"B": b"\x01"})
    put(world, pk={"S": "a"}, n={"N": "2"})
    put(world, pk={"S": "a"}, n={"N": "2.0"})
    world.call("dynamodb", "DeleteItem", TableName="things", Key={"pk": {"S": "a"}})
    records = ask(world, "GetRecords", ShardIterator=iterator(world))["Records"]
    assert [record["eventName"] for record in records] == ["INSERT", "MODIFY", "REMOVE"]
    inserted, modified, removed = (record["dynamodb"] for record in records)
    assert inserted["NewImage"] == {"pk": {"S": "a"}, "b": {"B": b"\x01"}}
    assert "OldImage" not in inserted
    assert modified["OldImage"] == inserted["NewImage"]
    assert removed["Keys"] == {"pk": {"S": "a"}}
    assert inserted["SequenceNumber"] < modified["SequenceNumber"] < removed["SequenceNumber"]


def test_reader_goes_on_where_it_was(world: World) -> None:
    for name in ("a", "b", "c"):
        put(world, pk={"S": name})
    first = ask(world, "GetRecords", ShardIterator=iterator(world), Limit=2)
    rest = ask(world, "GetRecords", ShardIterator=first["NextShardIterator"])
    assert [record["dynamodb"]["Keys"]["pk"]["S"] for record in rest["Records"]] == ["c"]
    last = first["Records"][-1]["dynamodb"]["SequenceNumber"]
    again = ask(world, "GetRecords", ShardIterator=iterator(world, "AT_SEQUENCE_NUMBER", SequenceNumber=last))
    assert len(again["Records"]) == 2
    assert ask(world, "GetRecords", ShardIterator=iterator(world, "LATEST"))["Records"] == []


def test_failed_write_leaves_no_record(world: World) -> None:
    put(world, pk={"S": "a"})
    with pytest.raises(ServiceError):
        world.call(
            "dynamodb",
            "PutItem",
            TableName="things",
            Item={"pk": {"S": "a"}, "x": {"S": "y"}},
            ConditionExpression="attribute_not_exists(pk)",
        )
    assert len(ask(world, "GetRecords", ShardIterator=iterator(world))["Records"]) == 1


def test_expired_item_is_removed_by_the_service(world: World) -> None:
    specification = {"Enabled": True, "AttributeName": "until"}
    world.call("dynamodb", "UpdateTimeToLive", TableName="things", TimeToLiveSpecification=specification)
    put(world, pk={"S": "a"}, until={"N": str(int(world.clock.now()) + 10)})
    world.pass_time(11)
    records = ask(world, "GetRecords", ShardIterator=iterator(world))["Records"]
    assert records[-1]["eventName"] == "REMOVE"
    assert records[-1]["userIdentity"] == {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}


def test_records_are_kept_for_a_day(world: World) -> None:
    put(world, pk={"S": "old"})
    world.clock.advance(86_401)
    put(world, pk={"S": "new"})
    records = ask(world, "GetRecords", ShardIterator=iterator(world))["Records"]
    assert [record["dynamodb"]["Keys"]["pk"]["S"] for record in records] == ["new"]
    with pytest.raises(ServiceError) as caught:
        iterator(world, "AT_SEQUENCE_NUMBER", SequenceNumber="1")
    assert caught.value.code == "TrimmedDataAccessException"


def test_iterator_expires_after_fifteen_minutes(world: World) -> None:
    found = iterator(world)
    world.clock.advance(901)
    with pytest.raises(ServiceError) as caught:
        ask(world, "GetRecords", ShardIterator=found)
    assert caught.value.code == "ExpiredIteratorException"


def test_stream_that_ended_is_read_to_its_end(world: World) -> None:
    put(world, pk={"S": "a"})
    world.call("dynamodb", "DeleteTable", TableName="things")
    answer = ask(world, "GetRecords", ShardIterator=iterator(world))
    assert len(answer["Records"]) == 1
    assert "NextShardIterator" not in answer


def test_ended_stream_is_forgotten_after_a_day_and_a_new_one_has_its_own_name(world: World) -> None:
    put(world, pk={"S": "a"})
    first = arn(world)
    for enabled in ({"StreamEnabled": False}, {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}):
        world.call("dynamodb", "UpdateTable", TableName="things", StreamSpecification=enabled)
    assert arn(world) != first
    shown = world.call("dynamodb", "DescribeTable", TableName="things")["Table"]
    assert shown["LatestStreamArn"] == arn(world)
    world.pass_time(86_401)
    assert [each["StreamArn"] for each in ask(world, "ListStreams")["Streams"]] == [arn(world)]
    assert world.rows("SELECT * FROM dynamodb_stream_records") == []
