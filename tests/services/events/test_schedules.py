"""Rules by the clock."""

import json
from typing import Any

import pytest

from muster.errors import ServiceError
from muster.services import events, sqs
from muster.testing import World

QUEUE = "arn:aws:sqs:us-east-1:000000000000:q"


@pytest.fixture
def world() -> World:
    world = World([events.SERVICE, sqs.SERVICE])
    world.call("sqs", "CreateQueue", QueueName="q")
    return world


def every(world: World, expression: str) -> None:
    world.call("events", "PutRule", Name="r", ScheduleExpression=expression)
    world.call("events", "PutTargets", Rule="r", Targets=[{"Id": "t", "Arn": QUEUE}])


def received(world: World) -> list[Any]:
    answer = world.call(
        "sqs", "ReceiveMessage", QueueUrl="http://127.0.0.1:4566/000000000000/q", MaxNumberOfMessages=10
    )
    return [json.loads(message["Body"]) for message in answer.get("Messages", [])]


def test_a_rate_fires_again_and_again(world: World) -> None:
    every(world, "rate(5 minutes)")
    world.pass_time(299)
    assert received(world) == []
    world.pass_time(602)
    fired = received(world)
    assert len(fired) == 3
    assert fired[0]["detail-type"] == "Scheduled Event"
    assert fired[0]["source"] == "aws.events"
    assert fired[0]["resources"] == ["arn:aws:events:us-east-1:000000000000:rule/r"]


def test_what_was_missed_fires_once(world: World) -> None:
    every(world, "rate(1 minute)")
    world.clock.advance(3600)
    world.settle()
    assert len(received(world)) == 1


def test_a_disabled_or_deleted_schedule_is_silent(world: World) -> None:
    every(world, "rate(1 minute)")
    world.call("events", "DisableRule", Name="r")
    world.pass_time(180)
    assert received(world) == []
    world.call("events", "EnableRule", Name="r")
    world.pass_time(61)
    assert len(received(world)) == 1
    world.call("events", "RemoveTargets", Rule="r", Ids=["t"])
    world.call("events", "DeleteRule", Name="r")
    assert world.rows("SELECT id FROM deliveries") == []


def test_a_schedule_put_again_has_one_timer(world: World) -> None:
    every(world, "rate(1 minute)")
    every(world, "rate(2 minutes)")
    assert len(world.rows("SELECT id FROM deliveries")) == 1


@pytest.mark.parametrize("text", ["rate(1 minutes)", "cron(* * * * * *)", "sometimes"])
def test_what_is_no_schedule_is_refused(world: World, text: str) -> None:
    with pytest.raises(ServiceError) as refused:
        every(world, text)
    assert refused.value.message == "Parameter ScheduleExpression is not valid."


def test_schedules_are_on_the_default_bus_only(world: World) -> None:
    world.call("events", "CreateEventBus", Name="b")
    with pytest.raises(ServiceError, match="only on the default event bus"):
        world.call("events", "PutRule", Name="r", EventBusName="b", ScheduleExpression="rate(1 day)")
