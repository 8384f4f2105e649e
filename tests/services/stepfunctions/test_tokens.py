"""Task tokens, heartbeats, timeouts, activities."""

from typing import Any

import pytest

from muster.errors import ServiceError
from muster.services.sqs import SERVICE as SQS
from tests.services.stepfunctions.machinery import Machinery, one, passing, task


@pytest.fixture
def world() -> Machinery:
    return Machinery([SQS])


def callback(world: Machinery, **members: Any) -> dict[str, Any]:
    """A task that sends its token to a queue and waits."""
    queue = world.call("sqs", "CreateQueue", QueueName="q")["QueueUrl"]
    body = {"token.$": "$$.Task.Token"}
    return task("sqs:sendMessage.waitForTaskToken", Parameters={"QueueUrl": queue, "MessageBody": body}, **members)


def success(world: Machinery, token: str, output: str = "{}") -> None:
    world.call("stepfunctions", "SendTaskSuccess", taskToken=token, output=output)
    world.settle()


def test_answered_token_lets_the_execution_go_on(world: Machinery) -> None:
    execution = world.begin(one("Ask", callback(world)))
    assert world.status(execution) == "RUNNING"
    assert world.types(execution)[-1] == "TaskSubmitted"
    success(world, world.tokens()[0], '{"answer":42}')
    assert world.output(execution) == {"answer": 42}


def test_execution_input_stays_the_original_after_a_callback(world: Machinery) -> None:
    """task-token-03"""
    look = {"Type": "Pass", "Parameters": {"files.$": "$$.Execution.Input.files"}, "Next": "Each"}
    each = {
        "Type": "Map",
        "ItemsPath": "$.files",
        "ItemProcessor": {"StartAt": "One", "States": {"One": passing()}},
        "End": True,
    }
    definition = one("Ask", callback(world, Next="Look"), Look=look, Each=each)
    execution = world.begin(definition, {"files": ["a", "b"]})
    success(world, world.tokens()[0])
    assert world.output(execution) == ["a", "b"]


def test_heartbeats_of_several_executions_are_accepted_until_each_ends(world: Machinery) -> None:
    """task-token-04"""
    machine = world.create(one("Ask", callback(world, HeartbeatSeconds=10)))
    executions = [world.start(machine, {"n": n}) for n in range(6)]
    open_ones = dict(zip(world.tokens(), executions, strict=True))
    for _ in range(6):
        for _ in range(4):
            world.pass_time(2)
            for token in open_ones:
                world.call("stepfunctions", "SendTaskHeartbeat", taskToken=token)
        token, execution = open_ones.popitem()
        success(world, token)
        assert world.status(execution) == "SUCCEEDED"


def test_missed_heartbeat_fails_the_task(world: Machinery) -> None:
    execution = world.begin(one("Ask", callback(world, HeartbeatSeconds=10)))
    world.pass_time(6)
    world.call("stepfunctions", "SendTaskHeartbeat", taskToken=world.tokens()[0])
    world.pass_time(9)
    assert world.status(execution) == "RUNNING"
    world.pass_time(2)
    assert world.failure(execution)[0] == "States.Timeout", "as AWS was recorded to write it"
    assert world.types(execution)[-2] == "TaskTimedOut"


@pytest.mark.parametrize("name", ["States.HeartbeatTimeout", "States.Timeout"])
def test_missed_heartbeat_is_caught_under_both_names(world: Machinery, name: str) -> None:
    catch = [{"ErrorEquals": ["States.TaskFailed"], "Next": "No"}, {"ErrorEquals": [name], "Next": "Yes"}]
    asking = callback(world, HeartbeatSeconds=10, Catch=catch)
    execution = world.begin(one("Ask", asking, No=passing(Result="no"), Yes=passing(Result="yes")))
    world.pass_time(10)
    assert world.output(execution) == "yes"


def test_time_that_is_over_is_no_missed_heartbeat(world: Machinery) -> None:
    catch = [{"ErrorEquals": ["States.HeartbeatTimeout"], "Next": "No"}, {"ErrorEquals": ["States.ALL"], "Next": "Yes"}]
    asking = callback(world, TimeoutSeconds=5, Catch=catch)
    execution = world.begin(one("Ask", asking, No=passing(Result="no"), Yes=passing(Result="yes")))
    world.pass_time(5)
    assert world.output(execution) == "yes"


def test_callback_that_is_never_answered_times_out_and_may_be_caught(world: Machinery) -> None:
    """task-token-05: the task"""
    catch = [{"ErrorEquals": ["States.Timeout"], "ResultPath": "$.error", "Next": "Late"}]
    execution = world.begin(one("Ask", callback(world, TimeoutSeconds=5, Catch=catch), Late=passing()))
    world.pass_time(4)
    assert world.status(execution) == "RUNNING"
    world.pass_time(1)
    assert world.output(execution) == {"error": {"Error": "States.Timeout"}}
    timed_out = next(event for event in world.history(execution) if event["type"] == "TaskTimedOut")
    assert "cause" not in timed_out["taskTimedOutEventDetails"]


@pytest.mark.parametrize("around", ["Wait", "Callback", "Parallel", "Map", "Nested"])
def test_machine_timeout_ends_the_execution_whatever_it_waits_for(world: Machinery, around: str) -> None:
    """task-token-05: the machine"""
    sleep = {"Type": "Wait", "Seconds": 25, "End": True}
    nested = world.create(one("Sleep", sleep))
    states: dict[str, dict[str, Any]] = {
        "Wait": sleep,
        "Callback": callback(world),
        "Parallel": {"Type": "Parallel", "Branches": [one("Sleep", sleep)], "End": True},
        "Map": {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": one("Sleep", sleep), "End": True},
        "Nested": task("states:startExecution.sync", Parameters={"StateMachineArn": nested}),
    }
    execution = world.begin({"TimeoutSeconds": 3, **one("It", states[around])}, {"items": [1, 2]})
    world.pass_time(2.5)
    assert world.status(execution) == "RUNNING"
    world.pass_time(0.5)
    described = world.described(execution)
    assert described["status"] == "TIMED_OUT"
    assert not {"error", "cause"} & described.keys()
    assert world.types(execution)[-1] == "ExecutionTimedOut"
    if around == "Nested":
        children = world.call("stepfunctions", "ListExecutions", stateMachineArn=nested)["executions"]
        assert [child["status"] for child in children] == ["ABORTED"]


def test_late_answer_to_a_timed_out_task_changes_nothing(world: Machinery) -> None:
    """task-token-07"""
    execution = world.begin(one("Ask", callback(world, TimeoutSeconds=5)))
    token = world.tokens()[0]
    world.pass_time(5)
    before = world.history(execution)
    for operation, more in (("SendTaskSuccess", {"output": "{}"}), ("SendTaskHeartbeat", {}), ("SendTaskFailure", {})):
        with pytest.raises(ServiceError, match="TaskTimedOut"):
            world.call("stepfunctions", operation, taskToken=token, **more)
    world.settle()
    assert world.history(execution) == before


def test_token_is_answered_once_and_only_with_json_within_the_limit(world: Machinery) -> None:
    """task-token-08"""
    execution = world.begin(one("Ask", callback(world)))
    token = world.tokens()[0]

    def refused(code: str, token: str, output: str) -> None:
        with pytest.raises(ServiceError) as refusal:
            world.call("stepfunctions", "SendTaskSuccess", taskToken=token, output=output)
        assert refusal.value.code == code

    refused("InvalidToken", "made-up", "{}")
    refused("InvalidOutput", token, "not json")
    refused("ValidationException", token, '"' + "x" * 262_143 + '"')
    success(world, token, '"first"')
    refused("TaskTimedOut", token, '"second"')
    assert world.output(execution) == "first"


def test_failure_by_token_is_the_tasks_failure(world: Machinery) -> None:
    execution = world.begin(one("Ask", callback(world)))
    world.call("stepfunctions", "SendTaskFailure", taskToken=world.tokens()[0], error="No", cause="why")
    world.settle()
    assert world.failure(execution) == ("No", "why")


def test_activity_hands_each_task_to_one_worker(world: Machinery) -> None:
    activity = world.call("stepfunctions", "CreateActivity", name="work")["activityArn"]
    execution = world.begin(one("Work", {"Type": "Task", "Resource": activity, "End": True}), {"x": 1})
    assert world.types(execution)[-1] == "ActivityScheduled"
    taken = world.call("stepfunctions", "GetActivityTask", activityArn=activity, workerName="w")
    assert taken["input"] == '{"x":1}'
    world.settle()
    assert world.types(execution)[-1] == "ActivityStarted"
    success(world, taken["taskToken"], '{"done":true}')
    assert world.output(execution) == {"done": True}


def test_worker_who_finds_no_task_gets_an_empty_answer_after_a_minute(world: Machinery) -> None:
    activity = world.call("stepfunctions", "CreateActivity", name="work")["activityArn"]
    before = world.clock.now()
    assert world.call("stepfunctions", "GetActivityTask", activityArn=activity) == {}
    assert world.clock.now() - before == 60


def test_stopped_execution_voids_its_token(world: Machinery) -> None:
    execution = world.begin(one("Ask", callback(world)))
    token = world.tokens()[0]
    world.call("stepfunctions", "StopExecution", executionArn=execution)
    with pytest.raises(ServiceError, match="TaskTimedOut"):
        world.call("stepfunctions", "SendTaskSuccess", taskToken=token, output="{}")
