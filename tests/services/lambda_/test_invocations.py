"""Invocations on a simulated clock, with a runner that does as the test says."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from muster.errors import ServiceError
from muster.operation import Answer, Operation, Service
from muster.services.lambda_ import SERVICE, invocations
from muster.services.sqs import SERVICE as SQS
from muster.testing import World
from muster.transaction import Carried, Transaction

ARN = "arn:aws:lambda:us-east-1:000000000000:function"


class Function:
    """Stands for the runner: notes what it was handed and answers by `answer`; while `held`, it does not take off."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.ids: list[str] = []
        self.answer: Callable[[Any], dict[str, Any]] = lambda event: {"Payload": b'"done"'}
        self.world: World

    async def carry(self, delivery: Carried) -> Callable[[Transaction], None]:
        asked = {"InvocationId": delivery.subject, "Attempt": delivery.attempts}
        job: Answer = await self.world.store.read(lambda tx: tx.call("lambda", "TakeInvocation", asked))
        if job["Verdict"] == "Gone":
            return lambda tx: None
        outcome: dict[str, Any] = {"Error": {"Code": job.get("Code", "ServiceException"), "Message": "not run"}}
        if job["Verdict"] == "Run":
            event = orjson.loads(job["Payload"])
            self.events.append(event)
            self.ids.append(delivery.subject)
            outcome = self.answer(event)

        def record(tx: Transaction) -> None:
            tx.call("lambda", "FinishInvocation", {"InvocationId": delivery.subject, **outcome})

        return record


def raising(event: Any) -> dict[str, Any]:
    payload = orjson.dumps({"errorType": "ValueError", "errorMessage": "no good"})
    return {"Payload": payload, "FunctionError": "Unhandled"}


async def killed(delivery: Carried) -> Callable[[Transaction], None]:
    return lambda tx: None


REPLIES: list[dict[str, Any]] = []


def note_reply(tx: Transaction, delivery: Carried) -> None:
    REPLIES.append({"Subject": delivery.subject, **delivery.payload})


@pytest.fixture
def function() -> Function:
    return Function()


@pytest.fixture
def world(function: Function) -> World:
    return make_world(function)


def make_world(function: Function, path: Path | None = None, services: tuple[Service, ...] = ()) -> World:
    REPLIES.clear()
    world = World(
        [SERVICE, SQS, *services],
        runners={"lambda.invoke": function.carry, "lambda.kill": killed},
        carriers={"test.reply": note_reply},
        path=path,
    )
    function.world = world
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("app.py", "")
    world.call(
        "lambda",
        "CreateFunction",
        FunctionName="f",
        Runtime="python3.11",
        Handler="app.handler",
        Role="arn:aws:iam::000000000000:role/any",
        Code={"ZipFile": buffer.getvalue()},
    )
    return world


def invoke(world: World, event: Any = None, **more: Any) -> Answer:
    return world.call("lambda", "Invoke", FunctionName="f", Payload=orjson.dumps(event), **more)


def begin(world: World, subject: str, event: Any = None) -> str:
    request = {
        "FunctionName": "f",
        "Payload": orjson.dumps(event),
        "Reply": {"Kind": "test.reply", "Subject": subject},
    }
    answer = world.change(lambda tx: tx.call("lambda", "BeginInvocation", request))
    return str(answer["InvocationId"])


def statuses(world: World) -> list[str]:
    return [row["status"] for row in world.rows("SELECT status FROM lambda_invocations ORDER BY queued_at, id")]


def messages(world: World, queue: str) -> list[dict[str, Any]]:
    url = world.call("sqs", "GetQueueUrl", QueueName=queue)["QueueUrl"]
    answer = world.call("sqs", "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
    return list(answer.get("Messages", []))


def queue(world: World, name: str) -> str:
    world.call("sqs", "CreateQueue", QueueName=name)
    return f"arn:aws:sqs:us-east-1:000000000000:{name}"


def test_synchronous_call_answers_with_the_result(world: World, function: Function) -> None:
    answer = invoke(world, {"a": 1})
    assert answer == {"StatusCode": 200, "ExecutedVersion": "$LATEST", "Payload": b'"done"'}
    assert function.events == [{"a": 1}]
    assert statuses(world) == ["succeeded"]


def test_error_of_the_function_is_told_as_such(world: World, function: Function) -> None:
    function.answer = raising
    answer = invoke(world)
    assert answer["FunctionError"] == "Unhandled"
    assert orjson.loads(answer["Payload"])["errorMessage"] == "no good"


def test_function_that_could_not_be_run_raises_for_the_caller(world: World, function: Function) -> None:
    function.answer = lambda event: {"Error": {"Code": "InvalidRuntimeException", "Message": "no node"}}
    with pytest.raises(ServiceError, match="InvalidRuntimeException: no node"):
        invoke(world)


def test_dry_run_checks_and_does_not_run(world: World, function: Function) -> None:
    assert invoke(world, InvocationType="DryRun") == {"StatusCode": 204}
    with pytest.raises(ServiceError, match="Function not found"):
        world.call("lambda", "Invoke", FunctionName="g", InvocationType="DryRun")
    assert function.events == []


@pytest.mark.parametrize(
    ("payload", "kind", "code"),
    [
        (b"{", "RequestResponse", "InvalidRequestContentException"),
        (b'"' + b"x" * 6_291_455 + b'"', "RequestResponse", "RequestEntityTooLargeException"),
        (b'"' + b"x" * 1_048_575 + b'"', "Event", "RequestEntityTooLargeException"),
    ],
)
def test_payloads_are_json_within_limits(world: World, payload: bytes, kind: str, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        world.call("lambda", "Invoke", FunctionName="f", Payload=payload, InvocationType=kind)
    assert caught.value.code == code


def test_failing_event_runs_three_times_a_minute_and_two_apart_under_one_id(world: World, function: Function) -> None:
    function.answer = raising
    assert invoke(world, "e", InvocationType="Event") == {"StatusCode": 202}
    world.settle()
    assert len(function.events) == 1
    world.pass_time(59)
    assert len(function.events) == 1
    world.pass_time(1)
    assert len(function.events) == 2
    world.pass_time(119)
    assert len(function.events) == 2
    world.pass_time(1)
    assert len(function.events) == 3
    world.pass_time(3600)
    assert (len(function.events), len(set(function.ids))) == (3, 1)


def test_event_goes_to_the_dead_letter_queue_after_its_retries(world: World, function: Function) -> None:
    function.answer = raising
    target = queue(world, "dead")
    world.call("lambda", "UpdateFunctionConfiguration", FunctionName="f", DeadLetterConfig={"TargetArn": target})
    invoke(world, {"order": 1}, InvocationType="Event")
    world.pass_time(180)
    [message] = messages(world, "dead")
    assert orjson.loads(message["Body"]) == {"order": 1}
    attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
    assert attributes == {"RequestID": function.ids[0], "ErrorCode": "200", "ErrorMessage": "no good"}


def test_failure_destination_gets_the_envelope(world: World, function: Function) -> None:
    function.answer = raising
    target = queue(world, "failed")
    config = {"OnFailure": {"Destination": target}}
    world.call("lambda", "PutFunctionEventInvokeConfig", FunctionName="f", DestinationConfig=config)
    invoke(world, {"order": 1}, InvocationType="Event")
    world.pass_time(180)
    [message] = messages(world, "failed")
    envelope = orjson.loads(message["Body"])
    assert envelope["requestContext"] == {
        "requestId": function.ids[0],
        "functionArn": f"{ARN}:f:$LATEST",
        "condition": "RetriesExhausted",
        "approximateInvokeCount": 3,
    }
    assert envelope["requestPayload"] == {"order": 1}
    assert envelope["responseContext"] == {
        "statusCode": 200,
        "executedVersion": "$LATEST",
        "functionError": "Unhandled",
    }
    assert envelope["responsePayload"]["errorMessage"] == "no good"


def test_success_destination_gets_the_result(world: World, function: Function) -> None:
    target = queue(world, "succeeded")
    config = {"OnSuccess": {"Destination": target}}
    world.call("lambda", "PutFunctionEventInvokeConfig", FunctionName="f", DestinationConfig=config)
    invoke(world, 1, InvocationType="Event")
    world.settle()
    envelope = orjson.loads(messages(world, "succeeded")[0]["Body"])
    assert (envelope["requestContext"]["condition"], envelope["responsePayload"]) == ("Success", "done")


def test_zero_retries_means_one_run(world: World, function: Function) -> None:
    function.answer = raising
    world.call("lambda", "PutFunctionEventInvokeConfig", FunctionName="f", MaximumRetryAttempts=0)
    invoke(world, InvocationType="Event")
    world.pass_time(3600)
    assert len(function.events) == 1


def test_retry_that_would_come_too_late_is_not_waited_for(world: World, function: Function) -> None:
    function.answer = raising
    config = {"OnFailure": {"Destination": queue(world, "failed")}}
    world.call(
        "lambda",
        "PutFunctionEventInvokeConfig",
        FunctionName="f",
        MaximumEventAgeInSeconds=60,
        DestinationConfig=config,
    )
    invoke(world, InvocationType="Event")
    world.pass_time(60)
    assert len(function.events) == 2
    envelope = orjson.loads(messages(world, "failed")[0]["Body"])
    assert envelope["requestContext"]["condition"] == "EventAgeExceeded"


def test_destination_that_is_gone_is_given_up_and_noted(world: World, function: Function) -> None:
    target = "arn:aws:sqs:us-east-1:000000000000:nowhere"
    config = {"OnSuccess": {"Destination": target}}
    world.call("lambda", "PutFunctionEventInvokeConfig", FunctionName="f", DestinationConfig=config)
    invoke(world, InvocationType="Event")
    world.pass_time(600)
    [row] = world.rows("SELECT status, undelivered FROM lambda_invocations")
    assert row["status"] == "succeeded"
    assert row["undelivered"].startswith(target)


def test_reply_comes_back_as_a_delivery(world: World, function: Function) -> None:
    id_ = begin(world, "task-1", {"a": 1})
    world.settle()
    assert [
        {
            "Subject": "task-1",
            "InvocationId": id_,
            "RequestId": id_,
            "ExecutedVersion": "$LATEST",
            "StatusCode": 200,
            "Payload": '"done"',
            "FunctionError": None,
        }
    ] == REPLIES


def test_reply_says_why_it_could_not_run(world: World, function: Function) -> None:
    function.answer = lambda event: {"Error": {"Code": "InvalidRuntimeException", "Message": "no node"}}
    begin(world, "task-1")
    world.settle()
    assert REPLIES[0]["Error"] == {"Code": "InvalidRuntimeException", "Message": "no node"}


def test_cancelled_call_is_not_run_and_not_answered(world: World, function: Function) -> None:
    id_ = begin(world, "task-1")
    world.change(lambda tx: tx.call("lambda", "CancelInvocation", {"InvocationId": id_}))
    world.settle()
    assert (function.events, REPLIES, statuses(world)) == ([], [], ["cancelled"])


def test_more_calls_than_places_wait_as_rows_and_all_run(world: World, function: Function) -> None:
    count = invocations.PLACES + 10
    for number in range(count):
        invoke(world, number, InvocationType="Event")
    assert statuses(world).count("running") == invocations.PLACES
    world.settle()
    assert sorted(function.events) == list(range(count))
    assert set(statuses(world)) == {"succeeded"}


def test_reserved_concurrency_throttles_who_waits_and_queues_events(world: World, function: Function) -> None:
    world.call("lambda", "PutFunctionConcurrency", FunctionName="f", ReservedConcurrentExecutions=1)
    begin(world, "task-1")
    with pytest.raises(ServiceError) as caught:
        begin(world, "task-2")
    assert caught.value.code == "TooManyRequestsException"
    assert caught.value.fields["Reason"] == "ReservedFunctionConcurrentInvocationLimitExceeded"
    invoke(world, "later", InvocationType="Event")
    assert sorted(statuses(world)) == ["queued", "running"]
    world.settle()
    assert function.events == [None, "later"]


def test_function_without_concurrency_gives_its_events_up_at_their_age(world: World, function: Function) -> None:
    world.call("lambda", "PutFunctionConcurrency", FunctionName="f", ReservedConcurrentExecutions=0)
    config = {"OnFailure": {"Destination": queue(world, "failed")}}
    world.call(
        "lambda",
        "PutFunctionEventInvokeConfig",
        FunctionName="f",
        MaximumEventAgeInSeconds=120,
        DestinationConfig=config,
    )
    invoke(world, "e", InvocationType="Event")
    world.pass_time(119)
    assert statuses(world) == ["queued"]
    world.pass_time(1)
    assert statuses(world) == ["failed"]
    envelope = orjson.loads(messages(world, "failed")[0]["Body"])
    assert envelope["requestContext"]["condition"] == "EventAgeExceeded"
    assert envelope["requestContext"]["approximateInvokeCount"] == 0
    assert function.events == []


def test_retry_that_finds_no_place_is_given_up_at_its_age(world: World, function: Function) -> None:
    function.answer = raising
    config = {"OnFailure": {"Destination": queue(world, "failed")}}
    world.call("lambda", "PutFunctionEventInvokeConfig", FunctionName="f", DestinationConfig=config)
    invoke(world, "e", InvocationType="Event")
    world.settle()
    world.call("lambda", "PutFunctionConcurrency", FunctionName="f", ReservedConcurrentExecutions=0)
    world.pass_time(21_599)
    assert (statuses(world), len(function.events)) == (["queued"], 1)
    world.pass_time(1)
    envelope = orjson.loads(messages(world, "failed")[0]["Body"])
    assert envelope["requestContext"]["condition"] == "EventAgeExceeded"
    assert statuses(world) == ["failed"]


def test_deleted_function_ends_what_waits_for_it(world: World, function: Function) -> None:
    world.call("lambda", "PutFunctionConcurrency", FunctionName="f", ReservedConcurrentExecutions=1)
    begin(world, "task-1")
    invoke(world, InvocationType="Event")
    world.call("lambda", "DeleteFunction", FunctionName="f")
    assert sorted(statuses(world)) == ["failed", "running"]
    world.settle()
    assert REPLIES[0]["Error"]["Code"] == "ResourceNotFoundException"


def test_crash_before_the_outcome_is_recorded_runs_an_event_again_under_the_same_id(
    function: Function, tmp_path: Path
) -> None:
    world = make_world(function, tmp_path / "muster.db")
    invoke(world, "e", InvocationType="Event")
    crashed = [row["id"] for row in world.rows("SELECT id FROM lambda_invocations")]
    world.change(lambda tx: tx.run("UPDATE deliveries SET attempts = 1"))
    world.restart()
    world.change(lambda tx: tx.call("lambda", "RecoverInvocations", {}))
    world.settle()
    assert function.ids == crashed
    assert statuses(world) == ["succeeded"]


def test_crash_closes_a_synchronous_call_whose_caller_is_gone(function: Function, tmp_path: Path) -> None:
    world = make_world(function, tmp_path / "muster.db")
    found = world.operations.find("lambda", "Invoke")
    assert isinstance(found, Operation)
    world.change(lambda tx: found.run(tx, {"FunctionName": "f", "Payload": b"1"}))
    assert statuses(world) == ["running"]
    world.restart()
    world.change(lambda tx: tx.call("lambda", "RecoverInvocations", {}))
    world.settle()
    assert (function.events, statuses(world)) == ([], ["failed"])


def test_alias_with_weights_sends_a_share_to_the_second_version(world: World) -> None:
    world.call("lambda", "PublishVersion", FunctionName="f")
    world.call("lambda", "UpdateFunctionConfiguration", FunctionName="f", Description="second")
    world.call("lambda", "PublishVersion", FunctionName="f")
    routing = {"AdditionalVersionWeights": {"2": 0.3}}
    world.call("lambda", "CreateAlias", FunctionName="f", Name="live", FunctionVersion="1", RoutingConfig=routing)
    ran = [invoke(world, Qualifier="live")["ExecutedVersion"] for _ in range(100)]
    assert set(ran) == {"1", "2"}
    assert 15 <= ran.count("2") <= 45


def test_ended_invocations_are_forgotten_after_a_while(world: World) -> None:
    invoke(world, InvocationType="Event")
    world.settle()
    world.pass_time(invocations.KEPT_SECONDS + 1)
    invoke(world, InvocationType="Event")
    world.settle()
    assert statuses(world) == ["succeeded"]
