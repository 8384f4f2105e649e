"""From PutEvents to the target: what matches arrives, what cannot be delivered is kept, nothing arrives twice."""

import json
from typing import Any

import pytest

from muster.errors import ServiceError
from muster.operation import Answer, Operation, Request, Service
from muster.services import events, sqs
from muster.testing import World
from muster.transaction import Transaction

FUNCTION = "arn:aws:lambda:us-east-1:000000000000:function:f"
MACHINE = "arn:aws:states:us-east-1:000000000000:stateMachine:m"
FROM_APP = {"source": ["app"]}


class Sibling:
    """A stand-in for a service: remembers what it was asked, and refuses with `refusing` while that is set."""

    def __init__(self, name: str, operation: str, accepts: str) -> None:
        self.asked: list[Request] = []
        self.refusing: ServiceError | None = None
        self.service = Service(name, {operation: Operation(self._run, frozenset(accepts.split()))})

    def _run(self, tx: Transaction, request: Request) -> Answer:
        self.asked.append(request)
        if self.refusing is not None:
            raise self.refusing
        return {}


@pytest.fixture
def function() -> Sibling:
    return Sibling("lambda", "Invoke", "FunctionName InvocationType Payload")


@pytest.fixture
def machine() -> Sibling:
    return Sibling("stepfunctions", "StartExecution", "stateMachineArn input name traceHeader")


@pytest.fixture
def world(function: Sibling, machine: Sibling) -> World:
    return World([events.SERVICE, sqs.SERVICE, function.service, machine.service])


def queue(world: World, name: str, **attributes: str) -> str:
    world.call("sqs", "CreateQueue", QueueName=name, Attributes=attributes)
    return f"arn:aws:sqs:us-east-1:000000000000:{name}"


def rule(world: World, name: str, pattern: dict[str, Any], *targets: dict[str, Any], bus: str = "default") -> None:
    world.call("events", "PutRule", Name=name, EventBusName=bus, EventPattern=json.dumps(pattern))
    if targets:
        world.call("events", "PutTargets", Rule=name, EventBusName=bus, Targets=list(targets))


def put(world: World, detail: dict[str, Any] | None = None, **entry: Any) -> str:
    given = {"Source": "app", "DetailType": "t", "Detail": json.dumps(detail or {}), **entry}
    answer = world.call("events", "PutEvents", Entries=[given])
    assert answer["FailedEntryCount"] == 0, answer
    world.settle()
    event_id: str = answer["Entries"][0]["EventId"]
    return event_id


def messages(world: World, arn: str) -> list[dict[str, Any]]:
    url = f"http://127.0.0.1:4566/000000000000/{arn.rsplit(':', 1)[-1]}"
    answer = world.call("sqs", "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
    return list(answer.get("Messages", []))


def received(world: World, arn: str) -> list[Any]:
    return [json.loads(message["Body"]) for message in messages(world, arn)]


def test_a_matching_event_arrives_whole(world: World) -> None:
    arn = queue(world, "q")
    rule(world, "r", {"detail": {"n": [1]}}, {"Id": "t", "Arn": arn})
    event_id = put(world, {"n": 1}, Resources=["x"], Time=1_000_000_000.5)
    put(world, {"n": 2})
    assert received(world, arn) == [
        {
            "version": "0",
            "id": event_id,
            "detail-type": "t",
            "source": "app",
            "account": "000000000000",
            "time": "2001-09-09T01:46:40Z",
            "region": "us-east-1",
            "resources": ["x"],
            "detail": {"n": 1},
        }
    ]


def test_anything_but_with_a_nested_prefix_filters(world: World) -> None:
    arn = queue(world, "q")
    rule(world, "r", {"detail": {"id": [{"anything-but": {"prefix": "TEST-"}}]}}, {"Id": "t", "Arn": arn})
    put(world, {"id": "TEST-1"})
    put(world, {"id": "PROD-42"})
    assert [event["detail"]["id"] for event in received(world, arn)] == ["PROD-42"]


def test_an_unknown_operator_is_refused_when_the_rule_is_put(world: World) -> None:
    with pytest.raises(ServiceError) as refused:
        rule(world, "r", {"source": [{"matches": "x"}]})
    assert refused.value.code == "InvalidEventPatternException"


def test_null_passes_anything_but_and_an_absent_field_does_not(world: World) -> None:
    arn = queue(world, "q")
    rule(world, "r", {"detail": {"command": [{"anything-but": ["no-message"]}]}}, {"Id": "t", "Arn": arn})
    put(world, {"command": None})
    put(world, {})
    assert [event["detail"] for event in received(world, arn)] == [{"command": None}]


def test_a_top_level_or_is_not_ignored(world: World) -> None:
    arn = queue(world, "q")
    rule(world, "r", {"$or": [{"source": ["aws.ec2"]}, {"source": ["aws.s3"]}]}, {"Id": "t", "Arn": arn})
    put(world)
    request = {"Source": "aws.s3", "DetailType": "Object Created", "Detail": "{}"}
    world.change(lambda tx: tx.call("events", "PublishServiceEvent", request))
    world.settle()
    assert [event["source"] for event in received(world, arn)] == ["aws.s3"]


def test_events_from_outside_do_not_claim_to_be_from_aws(world: World) -> None:
    entry = {"Source": "aws.s3", "DetailType": "t", "Detail": "{}"}
    answer = world.call("events", "PutEvents", Entries=[entry, {**entry, "Source": "app"}])
    assert answer["FailedEntryCount"] == 1
    assert answer["Entries"][0]["ErrorCode"] == "NotAuthorizedForSource"
    assert "EventId" in answer["Entries"][1]
    with pytest.raises(ServiceError):
        world.call("events", "PublishServiceEvent", **entry)


@pytest.mark.parametrize("detail", ["", "[]", "{", '"a"'])
def test_a_detail_that_is_no_object_is_refused_alone(world: World, detail: str) -> None:
    entries = [{"Source": "a", "DetailType": "t", "Detail": text} for text in (detail, "{}")]
    answer = world.call("events", "PutEvents", Entries=entries)
    assert ["ErrorCode" in entry for entry in answer["Entries"]] == [True, False]


def test_a_machine_is_started_under_a_name_that_a_repeat_would_repeat(world: World, machine: Sibling) -> None:
    rule(world, "r", FROM_APP, {"Id": "a", "Arn": MACHINE}, {"Id": "b", "Arn": MACHINE})
    machine.refusing = ServiceError("ExecutionAlreadyExists", "")
    event_id = put(world)
    names = [request["name"] for request in machine.asked]
    assert len(set(names)) == 2
    assert all(name.startswith(f"{event_id}_") and len(name) <= 80 for name in names)
    assert world.rows("SELECT * FROM events_failed_deliveries") == []


def test_zero_retries_are_about_delivery_and_leave_the_function_its_own(world: World, function: Sibling) -> None:
    policy = {"MaximumRetryAttempts": 0}
    rule(world, "r", FROM_APP, {"Id": "t", "Arn": FUNCTION, "RetryPolicy": policy})
    put(world)
    world.pass_time(3600)
    # Accepted once, as an asynchronous invocation: from here on it is the function's own retry that counts.
    assert [request["InvocationType"] for request in function.asked] == ["Event"]


def test_a_refused_delivery_is_tried_again_and_ends_as_a_dead_letter(world: World, function: Sibling) -> None:
    dead = queue(world, "dead")
    function.refusing = ServiceError("TooManyRequestsException", "Rate Exceeded.")
    target = {
        "Id": "t",
        "Arn": FUNCTION,
        "RetryPolicy": {"MaximumRetryAttempts": 2},
        "DeadLetterConfig": {"Arn": dead},
    }
    rule(world, "r", FROM_APP, target)
    event_id = put(world)
    assert len(function.asked) == 1
    world.pass_time(600)
    assert len(function.asked) == 3
    (letter,) = messages(world, dead)
    assert json.loads(letter["Body"])["id"] == event_id
    assert {name: value["StringValue"] for name, value in letter["MessageAttributes"].items()} == {
        "RULE_ARN": "arn:aws:events:us-east-1:000000000000:rule/r",
        "TARGET_ARN": FUNCTION,
        "ERROR_CODE": "SDK_CLIENT_ERROR",
        "ERROR_MESSAGE": "TooManyRequestsException: Rate Exceeded.",
        "EXHAUSTED_RETRY_CONDITION": "MaximumRetryAttempts",
        "RETRY_ATTEMPTS": "2",
    }


def test_an_event_too_old_is_given_up(world: World, function: Sibling) -> None:
    function.refusing = ServiceError("TooManyRequestsException", "Rate Exceeded.")
    rule(world, "r", FROM_APP, {"Id": "t", "Arn": FUNCTION, "RetryPolicy": {"MaximumEventAgeInSeconds": 60}})
    put(world)
    world.pass_time(3600)
    (row,) = world.rows("SELECT * FROM events_failed_deliveries")
    assert row["exhausted"] == "MaximumEventAgeInSeconds"
    assert row["attempts"] == len(function.asked)


def test_a_target_that_is_gone_is_recorded_at_once(world: World) -> None:
    arn = queue(world, "q")
    rule(world, "r", FROM_APP, {"Id": "t", "Arn": arn})
    world.call("sqs", "DeleteQueue", QueueUrl="http://127.0.0.1:4566/000000000000/q")
    event_id = put(world)
    (row,) = world.rows("SELECT * FROM events_failed_deliveries")
    assert (row["event_id"], row["rule"], row["error_code"], row["attempts"]) == (event_id, "r", "NO_RESOURCE", 1)


def test_an_event_for_a_bus_that_is_not_there_leaves_a_row(world: World) -> None:
    put(world, EventBusName="nowhere")
    (row,) = world.rows("SELECT * FROM events_failed_deliveries")
    assert row["bus"] == "nowhere"


def test_messages_keep_their_group_in_a_fifo_queue(world: World) -> None:
    arn = queue(world, "q.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    with pytest.raises(ServiceError):
        rule(world, "r", FROM_APP, {"Id": "t", "Arn": arn})
    rule(world, "r", FROM_APP, {"Id": "t", "Arn": arn, "SqsParameters": {"MessageGroupId": "g"}})
    put(world)
    assert len(messages(world, arn)) == 1


def test_buses_pass_events_on_and_a_circle_ends(world: World) -> None:
    arn = queue(world, "q")
    for bus in ("one", "two"):
        world.call("events", "CreateEventBus", Name=bus)
    rule(world, "r", FROM_APP, {"Id": "t", "Arn": "arn:aws:events:us-east-1:000000000000:event-bus/two"}, bus="one")
    back = {"Id": "t", "Arn": "arn:aws:events:us-east-1:000000000000:event-bus/one"}
    rule(world, "r", FROM_APP, back, {"Id": "q", "Arn": arn}, bus="two")
    event_id = put(world, EventBusName="one")
    assert {event["id"] for event in received(world, arn)} == {event_id}
    (row,) = world.rows("SELECT error_message FROM events_failed_deliveries")
    assert row["error_message"].startswith("LoopDetected")


def test_disabled_and_changed_rules_route_accordingly(world: World) -> None:
    arn = queue(world, "q")
    rule(world, "r", FROM_APP, {"Id": "t", "Arn": arn})
    world.call("events", "DisableRule", Name="r")
    put(world)
    assert received(world, arn) == []
    world.call("events", "EnableRule", Name="r")
    world.call("events", "PutRule", Name="r", EventPattern=json.dumps({"source": ["other"]}))
    put(world)
    put(world, Source="other")
    assert [event["source"] for event in received(world, arn)] == ["other"]
    world.call("events", "RemoveTargets", Rule="r", Ids=["t"])
    put(world, Source="other")
    assert received(world, arn) == []


def test_a_rule_that_was_rolled_back_never_routes(world: World) -> None:
    """A later change must not meet what was compiled for an attempt that came to nothing."""
    arn = queue(world, "q")
    rule(world, "r", {"source": ["quiet"]}, {"Id": "t", "Arn": arn})

    def attempt(tx: Transaction) -> None:
        tx.call("events", "PutRule", {"Name": "r", "EventPattern": json.dumps(FROM_APP)})
        entry = {"Source": "app", "DetailType": "t", "Detail": "{}"}
        tx.call("events", "PutEvents", {"Entries": [entry]})
        raise ServiceError("Nevermind", "")

    with pytest.raises(ServiceError):
        world.change(attempt)
    put(world)
    rule(world, "r", {"source": ["quieter"]})
    put(world)
    assert received(world, arn) == []


@pytest.mark.parametrize(
    "target",
    [
        {"Arn": "arn:aws:kinesis:us-east-1:000000000000:stream/s"},
        {"Arn": "arn:aws:sns:us-east-1:000000000000:topic"},
        {"Arn": FUNCTION, "HttpParameters": {}},
    ],
)
def test_targets_that_cannot_be_reached_are_refused_when_put(world: World, target: dict[str, Any]) -> None:
    rule(world, "r", FROM_APP)
    with pytest.raises(ServiceError) as refused:
        world.call("events", "PutTargets", Rule="r", Targets=[{"Id": "t", **target}])
    assert refused.value.code == "NotImplemented"


def test_deliveries_survive_a_restart(tmp_path: Any) -> None:
    world = World([events.SERVICE, sqs.SERVICE], path=tmp_path / "db")
    arn = queue(world, "q")
    rule(world, "r", FROM_APP, {"Id": "t", "Arn": arn})
    world.call("events", "PutEvents", Entries=[{"Source": "app", "DetailType": "t", "Detail": "{}"}])
    world.restart()
    world.settle()
    assert len(received(world, arn)) == 1
