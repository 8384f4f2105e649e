"""Redriving executions that did not succeed."""

from typing import Any

import pytest

from muster.errors import ServiceError
from muster.services.sqs import SERVICE as SQS
from tests.services.stepfunctions.machinery import Machinery, one, passing, task


@pytest.fixture
def world() -> Machinery:
    return Machinery([SQS])


def send(**members: Any) -> dict[str, Any]:
    """A task that fails until there is a queue."""
    url = "http://127.0.0.1:4566/000000000000/later"
    return task("sqs:sendMessage", Parameters={"QueueUrl": url, "MessageBody.$": "$.text"}, ResultPath=None, **members)


def redrive(world: Machinery, execution: str) -> None:
    world.call("stepfunctions", "RedriveExecution", executionArn=execution)
    world.settle()


def test_redriven_execution_goes_on_from_the_state_that_failed(world: Machinery) -> None:
    first = {"Type": "Pass", "Result": "hello", "ResultPath": "$.text", "Next": "Send"}
    execution = world.begin(one("First", first, Send=send(Next="Last"), Last=passing()))
    assert world.failure(execution)[0] == "SQS.QueueDoesNotExistException"
    world.call("sqs", "CreateQueue", QueueName="later")
    redrive(world, execution)
    assert world.output(execution) == {"text": "hello"}
    types = world.types(execution)
    again = types.index("ExecutionRedriven")
    assert types[again + 1] == "TaskScheduled"
    assert types.count("PassStateEntered") == 2
    described = world.described(execution)
    assert (described["redriveCount"], described["redriveStatus"]) == (1, "NOT_REDRIVABLE")
    assert [event["id"] for event in world.history(execution)] == list(range(1, len(types) + 1))


def test_branches_that_succeeded_do_not_run_again(world: Machinery) -> None:
    parallel = {"Type": "Parallel", "Branches": [one("Good", passing()), one("Send", send())], "End": True}
    execution = world.begin(one("Both", parallel), {"text": "x"})
    assert world.status(execution) == "FAILED"
    world.call("sqs", "CreateQueue", QueueName="later")
    redrive(world, execution)
    assert world.output(execution) == [{"text": "x"}, {"text": "x"}]
    assert world.types(execution).count("PassStateEntered") == 1


def test_aborted_and_timed_out_executions_may_be_redriven(world: Machinery) -> None:
    machine = world.create({"TimeoutSeconds": 5, **one("Sleep", {"Type": "Wait", "Seconds": 4, "End": True})})
    execution = world.start(machine)
    world.call("stepfunctions", "StopExecution", executionArn=execution)
    redrive(world, execution)
    assert world.status(execution) == "RUNNING"
    world.pass_time(4)
    assert world.status(execution) == "SUCCEEDED"


def test_what_succeeded_is_not_redriven(world: Machinery) -> None:
    execution = world.begin(one("A", passing()))
    with pytest.raises(ServiceError, match="ExecutionNotRedrivable"):
        redrive(world, execution)
