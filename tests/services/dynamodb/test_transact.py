"""Transactions: all or nothing, once per token, and one winner among many."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from muster.errors import ServiceError
from muster.testing import World

Table = Callable[..., dict[str, Any]]


def key(name: str) -> dict[str, Any]:
    return {"pk": {"S": name}}


def put_action(name: str, **more: Any) -> dict[str, Any]:
    return {"Put": {"TableName": "things", "Item": key(name), **more}}


def transact(world: World, *actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return world.call("dynamodb", "TransactWriteItems", TransactItems=list(actions), **more)


def refused(world: World, *actions: dict[str, Any], **more: Any) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        transact(world, *actions, **more)
    return caught.value


def names(world: World) -> list[str]:
    return sorted(item["pk"]["S"] for item in world.call("dynamodb", "Scan", TableName="things")["Items"])


ABSENT = {"ConditionExpression": "attribute_not_exists(pk)"}


def test_all_writes_of_a_transaction_happen(world: World, table: Table) -> None:
    table()
    transact(world, put_action("gone"), put_action("there"))
    transact(
        world,
        put_action("new"),
        {"Delete": {"TableName": "things", "Key": key("gone")}},
        {
            "Update": {
                "TableName": "things",
                "Key": key("counted"),
                "UpdateExpression": "ADD n :one",
                "ExpressionAttributeValues": {":one": {"N": "1"}},
            }
        },
        {
            "ConditionCheck": {
                "TableName": "things",
                "Key": key("there"),
                "ConditionExpression": "attribute_exists(pk)",
            }
        },
    )
    assert names(world) == ["counted", "new", "there"]


def test_one_failed_condition_cancels_all_with_a_reason_for_each(world: World, table: Table) -> None:
    table()
    transact(world, put_action("there"))
    error = refused(
        world,
        put_action("new"),
        put_action("there", **ABSENT, ReturnValuesOnConditionCheckFailure="ALL_OLD"),
        {
            "Update": {
                "TableName": "things",
                "Key": key("other"),
                "UpdateExpression": "SET a = b",
            }
        },
    )
    assert error.code == "TransactionCanceledException"
    assert error.message == (
        "Transaction cancelled, please refer cancellation reasons for specific reasons "
        "[None, ConditionalCheckFailed, ValidationError]"
    )
    assert error.fields["CancellationReasons"] == [
        {"Code": "None"},
        {
            "Code": "ConditionalCheckFailed",
            "Message": "The conditional request failed",
            "Item": key("there"),
        },
        {
            "Code": "ValidationError",
            "Message": "The provided expression refers to an attribute that does not exist in the item",
        },
    ]
    assert names(world) == ["there"]


def test_transaction_touches_an_item_once(world: World, table: Table) -> None:
    table()
    error = refused(world, put_action("a"), {"Delete": {"TableName": "things", "Key": key("a")}})
    assert error.message == "Transaction request cannot include multiple operations on one item"


def test_token_makes_a_repetition_succeed_without_writing_for_ten_minutes(world: World, table: Table) -> None:
    table()
    action = put_action("a", **ABSENT)
    transact(world, action, ClientRequestToken="token")
    world.clock.advance(599)
    transact(world, action, ClientRequestToken="token")
    error = refused(world, put_action("b"), ClientRequestToken="token")
    assert error.code == "IdempotentParameterMismatchException"
    world.clock.advance(2)
    assert refused(world, action, ClientRequestToken="token").code == "TransactionCanceledException"


def test_failed_transaction_does_not_use_up_its_token(world: World, table: Table) -> None:
    table()
    transact(world, put_action("a"))
    refused(world, put_action("a", **ABSENT), ClientRequestToken="token")
    world.call("dynamodb", "DeleteItem", TableName="things", Key=key("a"))
    transact(world, put_action("a", **ABSENT), ClientRequestToken="token")
    assert names(world) == ["a"]


def test_transactional_read_answers_in_order_with_gaps(world: World, table: Table) -> None:
    table()
    transact(world, put_action("a"), put_action("b"))
    gets = [{"Get": {"TableName": "things", "Key": key(name)}} for name in ("b", "none", "a")]
    answer = world.call("dynamodb", "TransactGetItems", TransactItems=gets, ReturnConsumedCapacity="TOTAL")
    assert answer["Responses"] == [{"Item": key("b")}, {}, {"Item": key("a")}]
    assert answer["ConsumedCapacity"] == [{"TableName": "things", "CapacityUnits": 6.0, "ReadCapacityUnits": 6.0}]


@pytest.mark.parametrize("transactional", [False, True])
def test_of_many_who_put_if_absent_at_once_exactly_one_wins(world: World, table: Table, transactional: bool) -> None:
    """idempotency-04: condition and write see the same item."""
    table()
    operations = world.operations

    def attempt(number: int, round_: int) -> Callable[[Any], dict[str, Any]]:
        item = {**key(f"event-{round_}"), "winner": {"N": str(number)}}
        put = {
            "TableName": "things",
            "Item": item,
            **ABSENT,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if transactional:
            return lambda tx: operations.call(tx, "dynamodb", "TransactWriteItems", {"TransactItems": [{"Put": put}]})
        return lambda tx: operations.call(tx, "dynamodb", "PutItem", put)

    async def race(round_: int) -> list[Any]:
        changes = [world.store.change(attempt(number, round_)) for number in range(50)]
        outcomes: list[Any] = await asyncio.gather(*changes, return_exceptions=True)
        return outcomes

    for round_ in range(20):
        outcomes = world.run(race(round_))
        losers = [outcome for outcome in outcomes if isinstance(outcome, ServiceError)]
        assert len(losers) == 49
        winner = world.call("dynamodb", "GetItem", TableName="things", Key=key(f"event-{round_}"))["Item"]
        for loser in losers:
            shown = loser.fields["CancellationReasons"][0] if transactional else loser.fields
            assert shown["Item"] == winner
