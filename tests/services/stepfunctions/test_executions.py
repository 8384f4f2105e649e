"""Starting, describing, listing and stopping executions."""

import orjson
import pytest

from muster.errors import ServiceError
from muster.services.events import SERVICE as EVENTS
from muster.services.sqs import SERVICE as SQS
from tests.services.stepfunctions.machinery import Machinery, one, passing


def waiting(seconds: int = 60) -> dict[str, object]:
    return one("Sleep", {"Type": "Wait", "Seconds": seconds, "End": True})


def test_execution_runs_through_all_its_states_in_one_commit(world: Machinery) -> None:
    definition = one("A", {"Type": "Pass", "Result": {"n": 1}, "Next": "B"}, B=passing(ResultPath="$.copy"))
    execution = world.begin(definition)
    assert world.output(execution) == {"n": 1, "copy": {"n": 1}}
    assert len(world.rows("SELECT * FROM states_history WHERE execution_arn = :arn", arn=execution)) == 1
    assert [(event["id"], event["previousEventId"]) for event in world.history(execution)] == [
        (1, 0),
        (2, 0),
        (3, 2),
        (4, 3),
        (5, 4),
        (6, 5),
    ]


def test_same_name_and_input_again_is_the_same_execution_while_it_runs(world: Machinery) -> None:
    machine = world.create(waiting())
    first = world.start(machine, {"a": 1}, name="x")
    assert world.start(machine, {"a": 1}, name="x") == first
    with pytest.raises(ServiceError, match="ExecutionAlreadyExists"):
        world.start(machine, {"a": 2}, name="x")
    world.pass_time(60)
    with pytest.raises(ServiceError, match="ExecutionAlreadyExists"):
        world.start(machine, {"a": 1}, name="x")


@pytest.mark.parametrize("name", ["a b", "a:b", "a/b", "x" * 81, "a?b", ""])
def test_name_with_characters_aws_forbids_is_refused(world: Machinery, name: str) -> None:
    machine = world.create(one("A", passing()))
    if name == "":
        return  # an empty name is refused by its shape, before it comes here
    with pytest.raises(ServiceError, match="InvalidName"):
        world.start(machine, name=name)


def test_input_that_is_no_json_is_refused(world: Machinery) -> None:
    machine = world.create(one("A", passing()))
    with pytest.raises(ServiceError, match="InvalidExecutionInput"):
        world.call("stepfunctions", "StartExecution", stateMachineArn=machine, input="{")


def test_stopped_execution_is_aborted_with_its_reason(world: Machinery) -> None:
    execution = world.begin(waiting())
    world.call("stepfunctions", "StopExecution", executionArn=execution, error="Enough", cause="because")
    described = world.described(execution)
    assert (described["status"], described["error"], described["cause"]) == ("ABORTED", "Enough", "because")
    assert world.types(execution)[-1] == "ExecutionAborted"
    assert not world.rows("SELECT * FROM deliveries")


def test_executions_are_listed_newest_first_and_page_by_page(world: Machinery) -> None:
    machine = world.create(one("A", passing()))
    started = []
    for _ in range(5):
        world.clock.advance(1)
        started.append(world.start(machine))
    seen: list[str] = []
    token: dict[str, str] = {}
    while True:
        page = world.call("stepfunctions", "ListExecutions", stateMachineArn=machine, maxResults=2, **token)
        seen += [row["executionArn"] for row in page["executions"]]
        if "nextToken" not in page:
            break
        token = {"nextToken": page["nextToken"]}
    assert seen == started[::-1]
    running = world.call("stepfunctions", "ListExecutions", stateMachineArn=machine, statusFilter="RUNNING")
    assert running["executions"] == []


def test_history_is_paged_forwards_and_backwards_without_gaps(world: Machinery) -> None:
    states = {f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(20)}
    definition = {"StartAt": "S0", "States": {**states, "S20": passing()}}
    execution = world.begin(definition)
    for backwards in (False, True):
        seen: list[int] = []
        token: dict[str, str] = {}
        while True:
            page = world.call(
                "stepfunctions",
                "GetExecutionHistory",
                executionArn=execution,
                maxResults=7,
                reverseOrder=backwards,
                **token,
            )
            seen += [event["id"] for event in page["events"]]
            if "nextToken" not in page:
                break
            token = {"nextToken": page["nextToken"]}
        assert seen == (list(range(44, 0, -1)) if backwards else list(range(1, 45)))


def test_history_without_data_shows_neither_input_nor_output(world: Machinery) -> None:
    execution = world.begin(one("A", passing()), {"secret": 1})
    events = world.history(execution, includeExecutionData=False)
    assert "secret" not in orjson.dumps(events).decode()


def test_endless_loop_ends_at_the_25000th_event_and_lets_others_pass(world: Machinery) -> None:
    again = {"Type": "Choice", "Choices": [{"Variable": "$.stop", "IsPresent": True, "Next": "C"}], "Default": "A"}
    loop = one("A", {"Type": "Pass", "Next": "B"}, B=again, C=passing())
    execution = world.begin(loop)
    error, cause = world.failure(execution)
    assert error == "States.Runtime"
    assert "maximum number of history events" in (cause or "")
    last = world.call("stepfunctions", "GetExecutionHistory", executionArn=execution, reverseOrder=True, maxResults=1)
    assert (last["events"][0]["id"], last["events"][0]["type"]) == (25_000, "ExecutionFailed")
    rows = world.rows("SELECT events FROM states_history WHERE execution_arn = :arn", arn=execution)
    assert max(row["events"] for row in rows) <= 2_000


def test_express_execution_is_answered_when_it_has_ended(world: Machinery) -> None:
    machine = world.create(one("A", passing()), type="EXPRESS")
    answer = world.call("stepfunctions", "StartSyncExecution", stateMachineArn=machine, input='{"a":1}')
    assert (answer["status"], answer["output"]) == ("SUCCEEDED", '{"a":1}')
    with pytest.raises(ServiceError, match="StateMachineTypeNotSupported"):
        world.call("stepfunctions", "StartSyncExecution", stateMachineArn=world.create(one("A", passing())))


def test_express_execution_ends_after_five_minutes(world: Machinery) -> None:
    machine = world.create(waiting(600), type="EXPRESS")
    answer = world.call("stepfunctions", "StartSyncExecution", stateMachineArn=machine)
    assert answer["status"] == "TIMED_OUT"


def test_running_execution_keeps_the_revision_it_began_with(world: Machinery) -> None:
    machine = world.create(one("Sleep", {"Type": "Wait", "Seconds": 5, "Next": "Say"}, Say=passing(Result="old")))
    execution = world.start(machine)
    text = orjson.dumps(one("Say", passing(Result="new"))).decode()
    world.call("stepfunctions", "UpdateStateMachine", stateMachineArn=machine, definition=text)
    world.pass_time(5)
    assert world.output(execution) == "old"
    assert world.output(world.start(machine)) == "new"


def test_status_changes_are_told_to_the_bus() -> None:
    world = Machinery([EVENTS, SQS])
    queue = world.call("sqs", "CreateQueue", QueueName="q")["QueueUrl"]
    pattern = {"source": ["aws.states"], "detail": {"status": ["RUNNING", "FAILED"]}}
    world.call("events", "PutRule", Name="r", EventPattern=orjson.dumps(pattern).decode())
    arn = "arn:aws:sqs:us-east-1:000000000000:q"
    world.call("events", "PutTargets", Rule="r", Targets=[{"Id": "q", "Arn": arn}])
    execution = world.begin(one("A", {"Type": "Fail", "Error": "E"}))
    messages = world.call("sqs", "ReceiveMessage", QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
    details = [orjson.loads(message["Body"])["detail"] for message in messages]
    assert sorted(detail["status"] for detail in details) == ["FAILED", "RUNNING"]
    assert {detail["executionArn"] for detail in details} == {execution}
