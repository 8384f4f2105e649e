"""Items: put, got, changed and deleted, with conditions, one by one and in batches."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.errors import ServiceError
from muster.languages.expressions.value import normal_item
from muster.services.dynamodb import SERVICE
from muster.testing import World

Table = Callable[..., dict[str, Any]]


def refused(world: World, operation: str, **request: Any) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        world.call("dynamodb", operation, **request)
    return caught.value


def put(world: World, **attributes: Any) -> None:
    world.call("dynamodb", "PutItem", TableName="things", Item=attributes)


def got(world: World, **key: Any) -> dict[str, Any] | None:
    return world.call("dynamodb", "GetItem", TableName="things", Key=key).get("Item")


def test_item_is_read_back_as_it_was_put(world: World, table: Table) -> None:
    table("N")
    item = {"pk": {"S": "a"}, "sk": {"N": "1.0"}, "b": {"B": b"\x00\xff"}, "m": {"M": {"B": {"BS": [b"2", b"1"]}}}}
    put(world, **item)
    assert got(world, pk={"S": "a"}, sk={"N": "1"}) == {
        "pk": {"S": "a"},
        "sk": {"N": "1"},
        "b": {"B": b"\x00\xff"},
        "m": {"M": {"B": {"BS": [b"1", b"2"]}}},
    }
    assert got(world, pk={"S": "a"}, sk={"N": "2"}) is None


VALUES: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.one_of(
        st.fixed_dictionaries({"S": st.text(max_size=8)}),
        st.fixed_dictionaries({"N": st.integers(-(10**30), 10**30).map(str)}),
        st.fixed_dictionaries({"B": st.binary(max_size=8)}),
        st.fixed_dictionaries({"BOOL": st.booleans()}),
        st.just({"NULL": True}),
        st.fixed_dictionaries({"SS": st.lists(st.text(max_size=3), min_size=1, max_size=3, unique=True)}),
        st.fixed_dictionaries({"BS": st.lists(st.binary(max_size=3), min_size=1, max_size=3, unique=True)}),
        st.fixed_dictionaries(
            {"NS": st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True).map(lambda ns: [*map(str, ns)])}
        ),
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"L": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"M": st.dictionaries(st.sampled_from(["B", "BS", "S", "x", '"B":']), inner)}),
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.text(min_size=1, max_size=5).filter(lambda name: name != "pk"), VALUES, max_size=4))
def test_random_items_come_back_whole(attributes: dict[str, Any]) -> None:
    world = World([SERVICE])
    world.call(
        "dynamodb",
        "CreateTable",
        TableName="things",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    item = {"pk": {"S": "a"}, **attributes}
    world.call("dynamodb", "PutItem", TableName="things", Item=item)
    assert got(world, pk={"S": "a"}) == normal_item(item)
    assert world.call("dynamodb", "Scan", TableName="things")["Items"] == [normal_item(item)]


def test_failed_condition_leaves_the_item_and_shows_it_when_asked(world: World, table: Table) -> None:
    table()
    put(world, pk={"S": "a"}, n={"N": "1"})
    request = {
        "TableName": "things",
        "Item": {"pk": {"S": "a"}},
        "ConditionExpression": "attribute_not_exists(pk)",
    }
    error = refused(world, "PutItem", **request)
    assert (error.code, error.message) == ("ConditionalCheckFailedException", "The conditional request failed")
    assert "Item" not in error.fields
    error = refused(world, "PutItem", **request, ReturnValuesOnConditionCheckFailure="ALL_OLD")
    assert error.fields["Item"] == {"pk": {"S": "a"}, "n": {"N": "1"}}
    assert got(world, pk={"S": "a"}) == {"pk": {"S": "a"}, "n": {"N": "1"}}


def test_attribute_not_exists_is_about_the_item_not_the_partition(world: World, table: Table) -> None:
    """idempotency-05: uniqueness needs the event id as the whole key."""
    table("S")
    put(world, pk={"S": "e1"}, sk={"S": "a"})
    world.call(
        "dynamodb",
        "PutItem",
        TableName="things",
        Item={"pk": {"S": "e1"}, "sk": {"S": "b"}},
        ConditionExpression="attribute_not_exists(pk)",
    )
    assert got(world, pk={"S": "e1"}, sk={"S": "b"}) is not None


@pytest.mark.parametrize(
    ("wanted", "attributes"),
    [
        ("NONE", None),
        ("ALL_OLD", {"pk": {"S": "a"}, "n": {"N": "1"}, "m": {"M": {"x": {"N": "1"}, "y": {"N": "2"}}}}),
        ("UPDATED_OLD", {"n": {"N": "1"}, "m": {"M": {"x": {"N": "1"}}}}),
        ("ALL_NEW", {"pk": {"S": "a"}, "n": {"N": "3"}, "m": {"M": {"x": {"N": "2"}, "y": {"N": "2"}}}}),
        ("UPDATED_NEW", {"n": {"N": "3"}, "m": {"M": {"x": {"N": "2"}}}}),
    ],
)
def test_update_answers_the_values_that_were_asked_for(
    world: World, table: Table, wanted: str, attributes: dict[str, Any] | None
) -> None:
    table()
    put(world, pk={"S": "a"}, n={"N": "1"}, m={"M": {"x": {"N": "1"}, "y": {"N": "2"}}})
    answer = world.call(
        "dynamodb",
        "UpdateItem",
        TableName="things",
        Key={"pk": {"S": "a"}},
        UpdateExpression="SET n = n + :v, m.x = :v",
        ExpressionAttributeValues={":v": {"N": "2"}},
        ReturnValues=wanted,
    )
    assert answer.get("Attributes") == attributes


def test_update_makes_the_item_when_there_is_none(world: World, table: Table) -> None:
    table()
    world.call("dynamodb", "UpdateItem", TableName="things", Key={"pk": {"S": "a"}})
    assert got(world, pk={"S": "a"}) == {"pk": {"S": "a"}}


def test_delete_answers_the_old_item_and_forgives_a_missing_one(world: World, table: Table) -> None:
    table()
    put(world, pk={"S": "a"})
    request = {"TableName": "things", "Key": {"pk": {"S": "a"}}, "ReturnValues": "ALL_OLD"}
    assert world.call("dynamodb", "DeleteItem", **request) == {"Attributes": {"pk": {"S": "a"}}}
    assert world.call("dynamodb", "DeleteItem", **request) == {}


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        ("PutItem", {"Item": {"x": {"S": "a"}}},
         "One or more parameter values were invalid: Missing the key pk in the item"),
        ("PutItem", {"Item": {"pk": {"N": "1"}}},
         "One or more parameter values were invalid: Type mismatch for key pk expected: S actual: N"),
        ("PutItem", {"Item": {"pk": {"S": ""}}},
         "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty "
         "string value. Key: pk"),
        ("PutItem", {"Item": {"pk": {"S": "a"}, "x": {"S": "y" * 409_600}}},
         "Item size has exceeded the maximum allowed size"),
        ("PutItem", {"Item": {"pk": {"S": "a"}, "x": {"SS": []}}},
         "One or more parameter values were invalid: An string set  may not be empty"),
        ("PutItem", {"Item": {"pk": {"S": "a"}}, "ReturnValues": "ALL_NEW"}, "ReturnValues can only be ALL_OLD or NONE"),
        ("PutItem", {"Item": {"pk": {"S": "a"}}, "ExpressionAttributeValues": {":v": {"S": "a"}}},
         "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null"),
        ("GetItem", {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}},
         "The provided key element does not match the schema"),
        ("GetItem", {"Key": {"pk": {"N": "1"}}}, "The provided key element does not match the schema"),
        ("UpdateItem", {"Key": {"pk": {"S": "a"}}, "UpdateExpression": "REMOVE pk"},
         "One or more parameter values were invalid: Cannot update attribute pk. This attribute is part of the key"),
        ("UpdateItem",
         {"Key": {"pk": {"S": "a"}}, "UpdateExpression": "SET x = :v",
          "ExpressionAttributeValues": {":v": {"S": "y" * 409_600}}},
         "Item size to update has exceeded the maximum allowed size"),
        ("UpdateItem", {"Key": {"pk": {"S": "a"}}, "UpdateExpression": "SET x = y"},
         "The provided expression refers to an attribute that does not exist in the item"),
    ],
)  # fmt: skip
def test_request_is_refused(world: World, table: Table, operation: str, request_: dict[str, Any], message: str) -> None:
    table()
    error = refused(world, operation, TableName="things", **request_)
    assert (error.code, error.message) == ("ValidationException", message)


def test_missing_table_is_not_found(world: World) -> None:
    error = refused(world, "GetItem", TableName="no-such", Key={"pk": {"S": "a"}})
    assert (error.code, error.message) == ("ResourceNotFoundException", "Requested resource not found")


def test_legacy_parameters_are_refused_by_name(world: World, table: Table) -> None:
    table()
    error = refused(world, "PutItem", TableName="things", Item={"pk": {"S": "a"}}, Expected={"pk": {"Exists": False}})
    assert error.message == "Muster does not support the parameter Expected of dynamodb:PutItem."


def test_batches_write_and_read_across_tables(world: World, table: Table) -> None:
    table()
    table(name="other")
    put(world, pk={"S": "old"})
    answer = world.call(
        "dynamodb",
        "BatchWriteItem",
        RequestItems={
            "things": [{"PutRequest": {"Item": {"pk": {"S": "a"}}}}, {"DeleteRequest": {"Key": {"pk": {"S": "old"}}}}],
            "other": [{"PutRequest": {"Item": {"pk": {"S": "b"}, "x": {"N": "1"}}}}],
        },
        ReturnConsumedCapacity="TOTAL",
    )
    assert answer["UnprocessedItems"] == {}
    assert {each["TableName"]: each["CapacityUnits"] for each in answer["ConsumedCapacity"]} == {
        "things": 2.0,
        "other": 1.0,
    }
    read = world.call(
        "dynamodb",
        "BatchGetItem",
        RequestItems={
            "things": {"Keys": [{"pk": {"S": "a"}}, {"pk": {"S": "old"}}]},
            "other": {"Keys": [{"pk": {"S": "b"}}], "ProjectionExpression": "x"},
        },
    )
    assert read["Responses"] == {"things": [{"pk": {"S": "a"}}], "other": [{"x": {"N": "1"}}]}
    assert read["UnprocessedKeys"] == {}


def test_batch_with_one_key_twice_is_refused(world: World, table: Table) -> None:
    table()
    twice = [{"PutRequest": {"Item": {"pk": {"S": "a"}}}}, {"DeleteRequest": {"Key": {"pk": {"S": "a"}}}}]
    error = refused(world, "BatchWriteItem", RequestItems={"things": twice})
    assert error.message == "Provided list of item keys contains duplicates"


def test_write_capacity_counts_the_indexes_it_touches(world: World, table: Table) -> None:
    index = {
        "IndexName": "by_g",
        "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    table(attributes={"g": "S"}, GlobalSecondaryIndexes=[index])
    answer = world.call(
        "dynamodb",
        "PutItem",
        TableName="things",
        Item={"pk": {"S": "a"}, "g": {"S": "x"}, "fill": {"S": "z" * 1024}},
        ReturnConsumedCapacity="INDEXES",
    )
    assert answer["ConsumedCapacity"] == {
        "TableName": "things",
        "CapacityUnits": 4.0,
        "Table": {"CapacityUnits": 2.0},
        "GlobalSecondaryIndexes": {"by_g": {"CapacityUnits": 2.0}},
    }
