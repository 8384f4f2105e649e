"""What was acknowledged goes on after a restart: waits, tokens, timers, long runs."""

from pathlib import Path
from typing import Any

import pytest

from muster.services.sqs import SERVICE as SQS
from tests.services.stepfunctions.machinery import Machinery, one, passing, task


@pytest.fixture
def world(tmp_path: Path) -> Machinery:
    return Machinery([SQS], path=tmp_path / "muster.db")


def callback(world: Machinery, **members: Any) -> dict[str, Any]:
    queue = world.call("sqs", "CreateQueue", QueueName="q")["QueueUrl"]
    parameters = {"QueueUrl": queue, "MessageBody.$": "$$.Task.Token"}
    return task("sqs:sendMessage.waitForTaskToken", Parameters=parameters, **members)


def test_started_execution_runs_after_a_crash_before_its_first_step(world: Machinery) -> None:
    machine = world.create(one("A", passing(Result="done")))
    started = world.call("stepfunctions", "StartExecution", stateMachineArn=machine)
    world.restart()
    world.settle()
    assert world.output(started["executionArn"]) == "done"


def test_wait_ends_on_time_after_a_restart(world: Machinery) -> None:
    execution = world.begin(one("Sleep", {"Type": "Wait", "Seconds": 30, "End": True}))
    world.pass_time(20)
    world.restart()
    world.pass_time(9)
    assert world.status(execution) == "RUNNING"
    world.pass_time(1)
    assert world.status(execution) == "SUCCEEDED"


def test_token_is_answered_after_a_restart_and_only_once(world: Machinery) -> None:
    execution = world.begin(one("Ask", callback(world)))
    token = world.tokens()[0]
    world.restart()
    world.call("stepfunctions", "SendTaskSuccess", taskToken=token, output="1")
    world.restart()
    world.settle()
    assert world.output(execution) == 1
    assert world.types(execution).count("TaskSucceeded") == 1


def test_overdue_timeout_fires_as_soon_as_the_server_is_back(world: Machinery) -> None:
    execution = world.begin(one("Ask", callback(world, TimeoutSeconds=5)))
    world.clock.advance(60)
    world.restart()
    world.settle()
    assert world.failure(execution) == ("States.Timeout", None)


def test_many_waiting_executions_are_rows_and_any_of_them_resumes(world: Machinery) -> None:
    machine = world.create(one("Ask", callback(world)))
    executions = [world.start(machine, {"n": n}) for n in range(50)]
    world.restart()
    tokens = world.rows("SELECT token, execution_arn FROM states_tokens")
    by_execution = {row["execution_arn"]: row["token"] for row in tokens}
    chosen = executions[37]
    world.call("stepfunctions", "SendTaskSuccess", taskToken=by_execution[chosen], output="{}")
    world.settle()
    statuses = {execution: world.status(execution) for execution in executions}
    assert [execution for execution, status in statuses.items() if status == "SUCCEEDED"] == [chosen]
