"""Log groups, streams and events."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.errors import ServiceError
from muster.services.logs import SERVICE
from muster.services.logs.filtering import compiled
from muster.testing import World

GROUP = "/aws/lambda/f"


@pytest.fixture
def world() -> World:
    world = World([SERVICE])
    world.call("logs", "CreateLogGroup", logGroupName=GROUP)
    world.call("logs", "CreateLogStream", logGroupName=GROUP, logStreamName="a")
    return world


def put(world: World, stream: str, *messages: str, at: int = 1_000) -> None:
    events = [{"timestamp": at + number, "message": message} for number, message in enumerate(messages)]
    world.call("logs", "PutLogEvents", logGroupName=GROUP, logStreamName=stream, logEvents=events)


def texts(answer: dict[str, Any]) -> list[str]:
    return [event["message"] for event in answer["events"]]


def test_events_are_read_forwards_page_by_page_until_the_token_stays(world: World) -> None:
    put(world, "a", *"abcde")
    request = {"logGroupName": GROUP, "logStreamName": "a", "startFromHead": True, "limit": 2}
    seen: list[str] = []
    token: str | None = None
    while True:
        page = world.call("logs", "GetLogEvents", **request, **({"nextToken": token} if token else {}))
        seen += texts(page)
        if page["nextForwardToken"] == token:
            break
        token = page["nextForwardToken"]
    assert seen == list("abcde")


def test_without_a_start_the_latest_events_come_and_earlier_ones_by_the_backward_token(world: World) -> None:
    put(world, "a", *"abcde")
    request = {"logGroupName": GROUP, "logStreamName": "a", "limit": 2}
    latest = world.call("logs", "GetLogEvents", **request)
    before = world.call("logs", "GetLogEvents", **request, nextToken=latest["nextBackwardToken"])
    assert (texts(latest), texts(before)) == (["d", "e"], ["b", "c"])


def test_group_is_filtered_over_its_streams_in_time_order(world: World) -> None:
    world.call("logs", "CreateLogStream", logGroupName=GROUP, logStreamName="b")
    put(world, "a", "error one", "fine", at=1_000)
    put(world, "b", "error two", at=900)
    found = world.call("logs", "FilterLogEvents", logGroupName=GROUP, filterPattern="error")
    assert texts(found) == ["error two", "error one"]
    only = world.call("logs", "FilterLogEvents", logGroupName=GROUP, logStreamNames=["a"], startTime=1_001)
    assert texts(only) == ["fine"]


def test_filtering_goes_on_by_token(world: World) -> None:
    put(world, "a", *(f"line {number}" for number in range(7)))
    seen: list[str] = []
    token: dict[str, str] = {}
    while True:
        page = world.call("logs", "FilterLogEvents", logGroupName=GROUP, limit=3, **token)
        seen += texts(page)
        if "nextToken" not in page:
            break
        token = {"nextToken": page["nextToken"]}
    assert seen == [f"line {number}" for number in range(7)]


@pytest.mark.parametrize(
    ("pattern", "message", "matches"),
    [
        ("", "anything", True),
        ("ERROR", "an ERROR here", True),
        ("ERROR", "an error here", False),
        ("ERROR disk", "disk ERROR", True),
        ("ERROR disk", "ERROR", False),
        ("?ERROR ?WARN", "WARN", True),
        ("?ERROR ?WARN", "INFO", False),
        ("ERROR -disk", "ERROR disk", False),
        ('"disk full"', "the disk full now", True),
        ('"disk full"', "full disk", False),
    ],
)
def test_terms_match_as_documented(pattern: str, message: str, matches: bool) -> None:
    assert compiled(pattern).matches(message) is matches


@pytest.mark.parametrize("pattern", ['{ $.level = "error" }', "[ip, user]", "%regex%"])
def test_other_kinds_of_pattern_are_refused(world: World, pattern: str) -> None:
    with pytest.raises(ServiceError) as caught:
        world.call("logs", "FilterLogEvents", logGroupName=GROUP, filterPattern=pattern)
    assert caught.value.code == "NotImplemented"


@given(st.text(max_size=20), st.text(max_size=40))
def test_quoted_phrase_matches_exactly_where_it_occurs(phrase: str, message: str) -> None:
    quoted = phrase.replace("\\", "\\\\").replace('"', '\\"')
    fits = compiled(f'"{quoted}"')
    assert fits.matches(message) is (phrase in message)
    assert fits.matches(message + phrase)


def test_missing_group_and_stream_are_named(world: World) -> None:
    with pytest.raises(ServiceError, match="The specified log group does not exist"):
        world.call("logs", "DescribeLogStreams", logGroupName="nothing")
    with pytest.raises(ServiceError, match="The specified log stream does not exist"):
        put(world, "z", "x")
    with pytest.raises(ServiceError, match="ResourceAlreadyExistsException"):
        world.call("logs", "CreateLogGroup", logGroupName=GROUP)


def test_streams_are_ordered_by_their_last_event(world: World) -> None:
    world.call("logs", "CreateLogStream", logGroupName=GROUP, logStreamName="b")
    put(world, "a", "x", at=2_000)
    put(world, "b", "x", at=1_000)
    answer = world.call("logs", "DescribeLogStreams", logGroupName=GROUP, orderBy="LastEventTime", descending=True)
    assert [stream["logStreamName"] for stream in answer["logStreams"]] == ["a", "b"]
    assert answer["logStreams"][0]["lastEventTimestamp"] == 2_000


def test_events_beyond_their_retention_are_forgotten_when_new_ones_come(world: World) -> None:
    world.call("logs", "PutRetentionPolicy", logGroupName=GROUP, retentionInDays=1)
    now = int(world.clock.now() * 1000)
    put(world, "a", "old", at=now - 2 * 86_400_000)
    put(world, "a", "new", at=now)
    assert texts(world.call("logs", "FilterLogEvents", logGroupName=GROUP)) == ["new"]
    assert world.call("logs", "DescribeLogGroups")["logGroups"][0]["storedBytes"] == len("new") + 26
    with pytest.raises(ServiceError, match="retentionInDays"):
        world.call("logs", "PutRetentionPolicy", logGroupName=GROUP, retentionInDays=2)


def test_deleted_group_takes_its_streams_and_events_along(world: World) -> None:
    put(world, "a", "x")
    world.call("logs", "DeleteLogGroup", logGroupName=GROUP)
    assert world.call("logs", "DescribeLogGroups")["logGroups"] == []
    assert world.rows("SELECT 1 AS found FROM logs_events") == []


def test_function_log_is_recorded_into_what_it_creates(world: World) -> None:
    request = {
        "logGroupName": "/aws/lambda/new",
        "logStreamName": "s",
        "logEvents": [{"timestamp": 1, "message": "hello\n"}],
    }
    world.change(lambda tx: tx.call("logs", "RecordEvents", request))
    assert texts(world.call("logs", "FilterLogEvents", logGroupName="/aws/lambda/new")) == ["hello\n"]
    groups = world.call("logs", "DescribeLogGroups", logGroupNamePrefix="/aws/lambda/n")["logGroups"]
    assert groups[0]["arn"] == "arn:aws:logs:us-east-1:000000000000:log-group:/aws/lambda/new:*"


def test_group_is_tagged_by_its_arn(world: World) -> None:
    arn = f"arn:aws:logs:us-east-1:000000000000:log-group:{GROUP}"
    world.call("logs", "TagResource", resourceArn=arn, tags={"a": "1", "b": "2"})
    world.call("logs", "UntagResource", resourceArn=arn, tagKeys=["a"])
    assert world.call("logs", "ListTagsForResource", resourceArn=arn)["tags"] == {"b": "2"}
