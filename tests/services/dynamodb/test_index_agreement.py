"""Indexes, streams and items agree, whatever is done to the table."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.services.dynamodb import SERVICE, STREAMS
from muster.testing import World

KEYS = st.sampled_from(["a", "b", "c"])
GROUPS = st.one_of(st.none(), st.sampled_from(["x", "y"]))
RANKS = st.one_of(st.none(), st.integers(-2, 2))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, GROUPS, RANKS),
        st.tuples(st.just("regroup"), KEYS, GROUPS, RANKS),
        st.tuples(st.just("delete"), KEYS, GROUPS, RANKS),
        st.tuples(st.just("transact"), KEYS, GROUPS, RANKS),
    ),
    max_size=15,
)


def attributes(key: str, group: str | None, rank: int | None) -> dict[str, Any]:
    item: dict[str, Any] = {"pk": {"S": key}}
    if group is not None:
        item["g"] = {"S": group}
    if rank is not None:
        item["r"] = {"N": str(rank)}
    return item


def created() -> World:
    world = World([SERVICE, STREAMS])
    world.call(
        "dynamodb",
        "CreateTable",
        TableName="things",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "g", "AttributeType": "S"},
            {"AttributeName": "r", "AttributeType": "N"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_rank",
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}, {"AttributeName": "r", "KeyType": "RANGE"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        BillingMode="PAY_PER_REQUEST",
    )
    return world


def do(world: World, model: dict[str, dict[str, Any]], step: tuple[str, str, str | None, int | None]) -> None:
    kind, key, group, rank = step
    item = attributes(key, group, rank)
    match kind:
        case "put":
            world.call("dynamodb", "PutItem", TableName="things", Item=item)
            model[key] = item
        case "transact":
            world.call("dynamodb", "TransactWriteItems", TransactItems=[{"Put": {"TableName": "things", "Item": item}}])
            model[key] = item
        case "delete":
            world.call("dynamodb", "DeleteItem", TableName="things", Key={"pk": {"S": key}})
            model.pop(key, None)
        case _:
            change = "REMOVE g" if group is None else "SET g = :g"
            values = {} if group is None else {"ExpressionAttributeValues": {":g": {"S": group}}}
            world.call(
                "dynamodb", "UpdateItem", TableName="things", Key={"pk": {"S": key}}, UpdateExpression=change, **values
            )
            before = model.get(key, {"pk": {"S": key}})
            model[key] = {name: value for name, value in before.items() if name != "g"}
            if group is not None:
                model[key]["g"] = {"S": group}


@settings(deadline=None, max_examples=60)
@given(STEPS)
def test_index_and_stream_agree_with_the_items(steps: list[tuple[str, str, str | None, int | None]]) -> None:
    world = created()
    model: dict[str, dict[str, Any]] = {}
    for step in steps:
        do(world, model, step)
    items = world.call("dynamodb", "Scan", TableName="things")["Items"]
    assert {item["pk"]["S"]: item for item in items} == model
    for group in ("x", "y"):
        found = world.call(
            "dynamodb",
            "Query",
            TableName="things",
            IndexName="by_rank",
            KeyConditionExpression="g = :g",
            ExpressionAttributeValues={":g": {"S": group}},
        )["Items"]
        assert [int(item["r"]["N"]) for item in found] == sorted(int(item["r"]["N"]) for item in found)
        expected = {key for key, item in model.items() if item.get("g") == {"S": group} and "r" in item}
        assert {item["pk"]["S"] for item in found} == expected
    assert replayed(world) == model


def replayed(world: World) -> dict[str, dict[str, Any]]:
    """The items as a reader of the stream makes them out."""
    arn = world.call("dynamodbstreams", "ListStreams")["Streams"][0]["StreamArn"]
    [shard] = world.call("dynamodbstreams", "DescribeStream", StreamArn=arn)["StreamDescription"]["Shards"]
    iterator = world.call(
        "dynamodbstreams",
        "GetShardIterator",
        StreamArn=arn,
        ShardId=shard["ShardId"],
        ShardIteratorType="TRIM_HORIZON",
    )["ShardIterator"]
    seen: dict[str, dict[str, Any]] = {}
    for record in world.call("dynamodbstreams", "GetRecords", ShardIterator=iterator)["Records"]:
        key = record["dynamodb"]["Keys"]["pk"]["S"]
        if record["eventName"] == "REMOVE":
            del seen[key]
        else:
            assert (record["eventName"] == "INSERT") == (key not in seen)
            seen[key] = record["dynamodb"]["NewImage"]
    return seen
