"""EventBridge with the real services behind its targets."""

import io
import json
import zipfile
from collections.abc import Callable

from muster.services import events, lambda_, logs, sqs, stepfunctions
from muster.testing import World
from muster.transaction import Carried, Transaction


async def killed(delivery: Carried) -> Callable[[Transaction], None]:
    return lambda tx: None


def route(world: World, target: dict[str, object]) -> None:
    world.call("events", "PutRule", Name="r", EventPattern='{"source": ["app"]}')
    world.call("events", "PutTargets", Rule="r", Targets=[{"Id": "t", **target}])


def put(world: World) -> str:
    answer = world.call("events", "PutEvents", Entries=[{"Source": "app", "DetailType": "t", "Detail": '{"a": 1}'}])
    world.settle()
    event_id: str = answer["Entries"][0]["EventId"]
    return event_id


def test_zero_retries_of_the_rule_leave_the_function_its_two() -> None:
    ran: list[str] = []

    async def raising(delivery: Carried) -> Callable[[Transaction], None]:
        asked = {"InvocationId": delivery.subject, "Attempt": delivery.attempts}
        job = await world.store.read(lambda tx: tx.call("lambda", "TakeInvocation", asked))
        assert job["Verdict"] == "Run"
        ran.append(json.loads(job["Payload"])["id"])
        outcome = {"InvocationId": delivery.subject, "Payload": b'{"errorType": "E"}', "FunctionError": "Unhandled"}

        def record(tx: Transaction) -> None:
            tx.call("lambda", "FinishInvocation", outcome)

        return record

    world = World(
        [events.SERVICE, sqs.SERVICE, lambda_.SERVICE], runners={"lambda.invoke": raising, "lambda.kill": killed}
    )
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("app.py", "")
    made = world.call(
        "lambda",
        "CreateFunction",
        FunctionName="f",
        Runtime="python3.12",
        Role="arn:aws:iam::000000000000:role/r",
        Handler="app.handler",
        Code={"ZipFile": code.getvalue()},
    )
    route(world, {"Arn": made["FunctionArn"], "RetryPolicy": {"MaximumRetryAttempts": 0}})
    event_id = put(world)
    world.pass_time(3600)
    assert ran == [event_id] * 3


def test_an_event_starts_one_execution_and_a_replay_another() -> None:
    world = World([events.SERVICE, stepfunctions.SERVICE])
    definition = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
    machine = world.call(
        "stepfunctions",
        "CreateStateMachine",
        name="m",
        roleArn="arn:aws:iam::000000000000:role/r",
        definition=json.dumps(definition),
    )["stateMachineArn"]
    bus = world.call("events", "DescribeEventBus")["Arn"]
    archive = world.call("events", "CreateArchive", ArchiveName="a", EventSourceArn=bus)["ArchiveArn"]
    route(world, {"Arn": machine})
    event_id = put(world)
    (run,) = world.call("stepfunctions", "ListExecutions", stateMachineArn=machine)["executions"]
    assert run["name"].startswith(event_id)
    assert run["status"] == "SUCCEEDED"
    world.call(
        "events",
        "StartReplay",
        ReplayName="again",
        EventSourceArn=archive,
        EventStartTime=world.clock.now() - 60,
        EventEndTime=world.clock.now() + 60,
        Destination={"Arn": bus},
    )
    world.settle()
    assert len(world.call("stepfunctions", "ListExecutions", stateMachineArn=machine)["executions"]) == 2
    assert world.rows("SELECT id FROM events_failed_deliveries") == []


def test_events_are_written_to_a_log_group() -> None:
    world = World([events.SERVICE, logs.SERVICE])
    world.call("logs", "CreateLogGroup", logGroupName="/events")
    route(world, {"Arn": "arn:aws:logs:us-east-1:000000000000:log-group:/events:*", "InputPath": "$.detail"})
    put(world)
    put(world)
    found = world.call("logs", "FilterLogEvents", logGroupName="/events")["events"]
    assert [event["message"] for event in found] == ['{"a":1}', '{"a":1}']
    assert len({event["logStreamName"] for event in found}) == 1
