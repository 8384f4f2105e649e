"""Queries and scans: the right items, in order, page by page."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.errors import ServiceError
from muster.services.dynamodb import SERVICE
from muster.testing import World

Table = Callable[..., dict[str, Any]]


def put(world: World, **attributes: Any) -> None:
    world.call("dynamodb", "PutItem", TableName="things", Item=attributes)


def query(world: World, condition: str, values: dict[str, Any], **more: Any) -> dict[str, Any]:
    return world.call(
        "dynamodb",
        "Query",
        TableName="things",
        KeyConditionExpression=condition,
        ExpressionAttributeValues=values,
        **more,
    )


def sorts(answer: dict[str, Any]) -> list[str]:
    return [next(iter(item["sk"].values())) for item in answer["Items"]]


def everything(world: World, operation: str, **request: Any) -> list[dict[str, Any]]:
    """All pages."""
    items: list[dict[str, Any]] = []
    while True:
        answer = world.call("dynamodb", operation, **request)
        items += answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return items
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


P = {":p": {"S": "a"}}


@pytest.mark.parametrize(
    ("condition", "values", "found"),
    [
        ("pk = :p", {}, ["-10", "-1.5", "0", "2", "10"]),
        ("pk = :p AND sk < :v", {":v": {"N": "0"}}, ["-10", "-1.5"]),
        ("pk = :p AND sk >= :v", {":v": {"N": "2"}}, ["2", "10"]),
        ("pk = :p AND sk = :v", {":v": {"N": "-1.50"}}, ["-1.5"]),
        ("sk BETWEEN :v AND :w AND pk = :p", {":v": {"N": "-2"}, ":w": {"N": "2"}}, ["-1.5", "0", "2"]),
    ],
)
def test_numbers_are_found_in_their_order(
    world: World, table: Table, condition: str, values: dict[str, Any], found: list[str]
) -> None:
    table("N")
    for number in ("10", "2", "-10", "0", "-1.5"):
        put(world, pk={"S": "a"}, sk={"N": number})
    put(world, pk={"S": "b"}, sk={"N": "5"})
    assert sorts(query(world, condition, {**P, **values})) == found
    assert sorts(query(world, condition, {**P, **values}, ScanIndexForward=False)) == found[::-1]


def test_texts_are_found_by_what_they_begin_with(world: World, table: Table) -> None:
    table("S")
    for text in ("ab", "abc", "ac", "b", "ab\U0010ffff"):
        put(world, pk={"S": "a"}, sk={"S": text})
    found = query(world, "pk = :p AND begins_with(sk, :v)", {**P, ":v": {"S": "ab"}})
    assert sorts(found) == ["ab", "abc", "ab\U0010ffff"]


def test_limit_counts_what_is_read_before_the_filter(world: World, table: Table) -> None:
    table("N")
    for number in range(4):
        put(world, pk={"S": "a"}, sk={"N": str(number)}, odd={"BOOL": bool(number % 2)})
    answer = query(world, "pk = :p", {**P, ":t": {"BOOL": True}}, Limit=3, FilterExpression="odd = :t")
    assert (sorts(answer), answer["Count"], answer["ScannedCount"]) == (["1"], 1, 3)
    assert answer["LastEvaluatedKey"] == {"pk": {"S": "a"}, "sk": {"N": "2"}}
    rest = query(
        world,
        "pk = :p",
        {**P, ":t": {"BOOL": True}},
        FilterExpression="odd = :t",
        ExclusiveStartKey=answer["LastEvaluatedKey"],
    )
    assert sorts(rest) == ["3"]
    assert "LastEvaluatedKey" not in rest


def test_page_ends_at_one_megabyte(world: World, table: Table) -> None:
    table("N")
    for number in range(5):
        put(world, pk={"S": "a"}, sk={"N": str(number)}, fill={"S": "x" * 300_000})
    answer = query(world, "pk = :p", P)
    assert answer["Count"] == 4
    assert len(everything(world, "Scan", TableName="things")) == 5


def test_count_and_projection(world: World, table: Table) -> None:
    table("N")
    put(world, pk={"S": "a"}, sk={"N": "1"}, x={"S": "y"}, z={"S": "w"})
    assert query(world, "pk = :p", P, Select="COUNT") == {"Count": 1, "ScannedCount": 1}
    assert query(world, "pk = :p", P, ProjectionExpression="x")["Items"] == [{"x": {"S": "y"}}]


INDEXES: dict[str, Any] = {
    "attributes": {"g": "S", "h": "N"},
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_g",
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}, {"AttributeName": "h", "KeyType": "RANGE"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "by_h",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "h", "KeyType": "RANGE"}],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]},
        }
    ],
}


def test_indexes_hold_what_has_their_keys_and_follow_every_change(world: World, table: Table) -> None:
    table("N", **INDEXES)
    put(world, pk={"S": "a"}, sk={"N": "1"}, g={"S": "x"}, h={"N": "20"}, x={"S": "shown"}, y={"S": "hidden"})
    put(world, pk={"S": "a"}, sk={"N": "2"}, g={"S": "x"}, h={"N": "3"})
    put(world, pk={"S": "a"}, sk={"N": "3"}, g={"S": "x"})

    def by_g(group: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = query(world, "g = :g", {":g": {"S": group}}, IndexName="by_g")["Items"]
        return items

    assert by_g("x") == [
        {"pk": {"S": "a"}, "sk": {"N": "2"}, "g": {"S": "x"}, "h": {"N": "3"}},
        {"pk": {"S": "a"}, "sk": {"N": "1"}, "g": {"S": "x"}, "h": {"N": "20"}},
    ]
    local = query(world, "pk = :p AND h > :v", {**P, ":v": {"N": "5"}}, IndexName="by_h", ConsistentRead=True)["Items"]
    assert local == [{"pk": {"S": "a"}, "sk": {"N": "1"}, "h": {"N": "20"}, "x": {"S": "shown"}}]
    whole = query(world, "pk = :p AND h > :v", {**P, ":v": {"N": "5"}}, IndexName="by_h", Select="ALL_ATTRIBUTES")
    assert whole["Items"][0]["y"] == {"S": "hidden"}
    world.call(
        "dynamodb",
        "UpdateItem",
        TableName="things",
        Key={"pk": {"S": "a"}, "sk": {"N": "2"}},
        UpdateExpression="SET g = :g",
        ExpressionAttributeValues={":g": {"S": "moved"}},
    )
    assert len(by_g("x")) == 1
    assert len(by_g("moved")) == 1
    world.call("dynamodb", "DeleteItem", TableName="things", Key={"pk": {"S": "a"}, "sk": {"N": "2"}})
    assert by_g("moved") == []


def test_index_pages_go_on_among_equal_keys(world: World, table: Table) -> None:
    table("N", **INDEXES)
    for number in range(7):
        put(world, pk={"S": f"p{number}"}, sk={"N": "1"}, g={"S": "x"}, h={"N": "5"})
    request = {
        "TableName": "things",
        "IndexName": "by_g",
        "KeyConditionExpression": "g = :g",
        "ExpressionAttributeValues": {":g": {"S": "x"}},
        "Limit": 2,
    }
    for forward in (True, False):
        found = everything(world, "Query", **request, ScanIndexForward=forward)
        assert sorted(item["pk"]["S"] for item in found) == [f"p{number}" for number in range(7)]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"IndexName": "by_g", "KeyConditionExpression": "g = :p", "ConsistentRead": True},
         "Consistent reads are not supported on global secondary indexes"),
        ({"IndexName": "by_g", "KeyConditionExpression": "g = :p", "Select": "ALL_ATTRIBUTES"},
         "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary "
         "index by_g because its projection type is not ALL"),
        ({"IndexName": "by_g", "KeyConditionExpression": "g = :p", "ProjectionExpression": "y"},
         "One or more parameter values were invalid: Global secondary index by_g does not project [y]"),
        ({"IndexName": "none", "KeyConditionExpression": "g = :p"},
         "The table does not have the specified index: none"),
        ({"KeyConditionExpression": "pk = :p AND sk = :p"},
         "One or more parameter values were invalid: Condition parameter type does not match schema type"),
        ({"KeyConditionExpression": "sk = :p"}, "Query condition missed key schema element: pk"),
        ({"KeyConditionExpression": "pk = :p", "FilterExpression": "sk = :p"},
         "Filter Expression can only contain non-primary key attributes: Primary key attribute: sk"),
        ({"KeyConditionExpression": "pk = :p", "Select": "ALL_PROJECTED_ATTRIBUTES"},
         "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"),
        ({"KeyConditionExpression": "pk = :p", "ExclusiveStartKey": {"pk": {"S": "a"}}},
         "The provided starting key is invalid: The provided key element does not match the schema"),
    ],
)  # fmt: skip
def test_query_is_refused(world: World, table: Table, request_: dict[str, Any], message: str) -> None:
    table("N", **INDEXES)
    with pytest.raises(ServiceError) as caught:
        world.call("dynamodb", "Query", TableName="things", ExpressionAttributeValues=P, **request_)
    assert caught.value.message == message


def test_segments_of_a_scan_share_out_the_items(world: World, table: Table) -> None:
    table()
    for number in range(50):
        put(world, pk={"S": f"p{number}"})
    shares = [
        [
            item["pk"]["S"]
            for item in everything(world, "Scan", TableName="things", TotalSegments=4, Segment=segment, Limit=3)
        ]
        for segment in range(4)
    ]
    assert sorted(name for share in shares for name in share) == sorted(f"p{number}" for number in range(50))
    assert all(shares)


def test_segment_beyond_the_total_is_refused(world: World, table: Table) -> None:
    table()
    with pytest.raises(ServiceError, match="zero-based"):
        world.call("dynamodb", "Scan", TableName="things", TotalSegments=4, Segment=4)
    with pytest.raises(ServiceError, match="The TotalSegments parameter is required"):
        world.call("dynamodb", "Scan", TableName="things", Segment=0)


NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-50, max_value=50)


@settings(deadline=None, max_examples=40)
@given(
    st.sets(NUMBERS, max_size=12),
    NUMBERS,
    st.sampled_from(["<", "<=", "=", ">=", ">"]),
    st.booleans(),
    st.integers(1, 5),
)
def test_queries_agree_with_a_naive_model(
    numbers: set[Decimal], bound: Decimal, sign: str, forward: bool, limit: int
) -> None:
    world = World([SERVICE])
    world.call(
        "dynamodb",
        "CreateTable",
        TableName="things",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    for number in numbers:
        put(world, pk={"S": "a"}, sk={"N": str(number)})
    found = everything(
        world,
        "Query",
        TableName="things",
        KeyConditionExpression=f"pk = :p AND sk {sign} :v",
        ExpressionAttributeValues={**P, ":v": {"N": str(bound)}},
        ScanIndexForward=forward,
        Limit=limit,
    )
    holds: dict[str, Callable[[Decimal], bool]] = {
        "<": lambda it: it < bound,
        "<=": lambda it: it <= bound,
        "=": lambda it: it == bound,
        ">=": lambda it: it >= bound,
        ">": lambda it: it > bound,
    }
    expected = sorted((it for it in numbers if holds[sign](it)), reverse=not forward)
    assert [Decimal(item["sk"]["N"]) for item in found] == expected


def test_start_outside_what_is_asked_for_is_refused(world: World, table: Table) -> None:
    table("N")
    with pytest.raises(ServiceError, match="outside query boundaries"):
        query(
            world,
            "pk = :p AND sk > :v",
            {**P, ":v": {"N": "5"}},
            ExclusiveStartKey={"pk": {"S": "a"}, "sk": {"N": "2"}},
        )
