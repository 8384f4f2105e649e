"""Archived events, and how they are sent again."""

import json
from typing import Any

import pytest

from muster.errors import ServiceError
from muster.services import events, sqs
from muster.testing import World

BUS = "arn:aws:events:us-east-1:000000000000:event-bus/default"
ARCHIVE = "arn:aws:events:us-east-1:000000000000:archive/a"
NAMED = "arn:aws:events:us-east-1:000000000000:rule/named"


@pytest.fixture
def world() -> World:
    world = World([events.SERVICE, sqs.SERVICE])
    for name in ("named", "other"):
        world.call("sqs", "CreateQueue", QueueName=name)
        world.call("events", "PutRule", Name=name, EventPattern='{"source": ["app"]}')
        arn = f"arn:aws:sqs:us-east-1:000000000000:{name}"
        world.call("events", "PutTargets", Rule=name, Targets=[{"Id": "t", "Arn": arn}])
    return world


def put(world: World, numbers: range) -> None:
    entries = [{"Source": "app", "DetailType": "t", "Detail": json.dumps({"n": number})} for number in numbers]
    world.call("events", "PutEvents", Entries=entries)
    world.settle()


def received(world: World, name: str) -> list[Any]:
    url = f"http://127.0.0.1:4566/000000000000/{name}"
    found: list[Any] = []
    while answer := world.call("sqs", "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10):
        found += [json.loads(message["Body"]) for message in answer["Messages"]]
    return found


def archive(world: World, **settings: Any) -> None:
    world.call("events", "CreateArchive", ArchiveName="a", EventSourceArn=BUS, **settings)


def replay(world: World, name: str = "again", filters: list[str] | None = None, before: float = 3600) -> None:
    world.call(
        "events",
        "StartReplay",
        ReplayName=name,
        EventSourceArn=ARCHIVE,
        EventStartTime=world.clock.now() - before,
        EventEndTime=world.clock.now() + 1,
        Destination={"Arn": BUS, "FilterArns": filters or []},
    )


def test_a_replay_sends_what_was_archived_to_the_named_rule_only(world: World) -> None:
    archive(world, EventPattern=json.dumps({"detail": {"n": [{"numeric": ["<", 6]}]}}))
    put(world, range(10))
    assert world.call("events", "DescribeArchive", ArchiveName="a")["EventCount"] == 6
    first = received(world, "named")
    assert len(first) == len(received(world, "other")) == 10

    replay(world, filters=[NAMED])
    world.settle()
    again = received(world, "named")
    assert sorted(event["detail"]["n"] for event in again) == list(range(6))
    assert {event["replay-name"] for event in again} == {"again"}
    assert {event["id"] for event in again} <= {event["id"] for event in first}
    assert received(world, "other") == []
    assert world.call("events", "DescribeArchive", ArchiveName="a")["EventCount"] == 6
    described = world.call("events", "DescribeReplay", ReplayName="again")
    assert described["State"] == "COMPLETED"
    assert described["ReplayEndTime"] == world.clock.now()


def test_a_long_replay_goes_on_in_steps_and_sends_each_event_once(world: World) -> None:
    archive(world)
    for start in range(0, 250, 10):
        put(world, range(start, start + 10))
    received(world, "named")
    replay(world)
    world.settle()
    assert sorted(event["detail"]["n"] for event in received(world, "named")) == list(range(250))


def test_a_replay_takes_only_its_span_of_time(world: World) -> None:
    archive(world)
    put(world, range(1))
    world.clock.advance(600)
    put(world, range(1, 2))
    received(world, "named")
    replay(world, before=300)
    world.settle()
    assert [event["detail"]["n"] for event in received(world, "named")] == [1]


def test_a_cancelled_replay_sends_nothing_more(world: World) -> None:
    archive(world)
    put(world, range(3))
    received(world, "named")
    replay(world)
    assert world.call("events", "CancelReplay", ReplayName="again")["State"] == "CANCELLING"
    world.settle()
    assert received(world, "named") == []
    assert world.call("events", "DescribeReplay", ReplayName="again")["State"] == "CANCELLED"
    with pytest.raises(ServiceError) as refused:
        world.call("events", "CancelReplay", ReplayName="again")
    assert refused.value.code == "IllegalStatusException"


def test_what_is_past_its_retention_is_not_counted_or_replayed(world: World) -> None:
    archive(world, RetentionDays=1)
    put(world, range(2))
    world.clock.advance(86_401)
    put(world, range(2, 3))
    assert world.call("events", "DescribeArchive", ArchiveName="a")["EventCount"] == 1
    assert len(world.rows("SELECT id FROM events_archived")) == 1


def test_an_archive_that_is_gone_fails_its_replay(world: World) -> None:
    archive(world)
    replay(world)
    world.call("events", "DeleteArchive", ArchiveName="a")
    world.settle()
    described = world.call("events", "DescribeReplay", ReplayName="again")
    assert described["State"] == "FAILED"
    assert described["StateReason"] == "Archive a does not exist."


def test_a_bus_with_an_archive_is_kept(world: World) -> None:
    bus = world.call("events", "CreateEventBus", Name="b")["EventBusArn"]
    world.call("events", "CreateArchive", ArchiveName="a", EventSourceArn=bus)
    with pytest.raises(ServiceError, match="since it has rules"):
        world.call("events", "DeleteEventBus", Name="b")
