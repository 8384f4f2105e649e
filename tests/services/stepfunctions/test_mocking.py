"""Test cases from a mock configuration: tasks answered by the file, attempt by attempt."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from muster.errors import MusterError, ServiceError
from muster.services import stepfunctions
from muster.services.stepfunctions.mocking import parse
from muster.testing import World
from tests.services.stepfunctions.machinery import Machinery, one, passing, task

RETURN = {"Return": {"Payload": "hello"}}
THROW = {"Throw": {"Error": "Lambda.ServiceException", "Cause": "busy"}}
FILE = {
    "StateMachines": {
        "machine-1": {
            "TestCases": {"Happy": {"Ask": "Answers"}, "Retried": {"Ask": "AnswersAtLast"}, "Untouched": {}},
        }
    },
    "MockedResponses": {"Answers": {"0": RETURN}, "AnswersAtLast": {"0-1": THROW, "2": RETURN}},
}


class Mocked(Machinery):
    """A world whose Step Functions has the file's test cases."""

    def __init__(self, file: dict[str, Any], **options: Any) -> None:
        service = stepfunctions.service(parse(orjson.dumps(file).decode()))
        World.__init__(self, [service], **options)
        self.count = 0


ASK = task(
    "lambda:invoke",
    Parameters={"FunctionName": "f", "Payload": {}},
    Retry=[{"ErrorEquals": ["Lambda.ServiceException"], "IntervalSeconds": 5}],
    Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Caught"}],
)
DEFINITION = one("Ask", ASK, Caught=passing(Result="caught"))


@pytest.fixture
def world() -> Mocked:
    return Mocked(FILE)


def test_case_answers_the_task_instead_of_the_service(world: Mocked) -> None:
    execution = world.start(f"{world.create(DEFINITION)}#Happy")
    assert world.output(execution) == {"Payload": "hello"}
    assert world.types(execution)[2:5] == ["TaskScheduled", "TaskStarted", "TaskSucceeded"]
    assert execution.endswith(world.described(execution)["name"]), "the case is no part of the execution's ARN"


def test_attempts_are_counted_across_retries_and_a_restart(tmp_path: Path) -> None:
    world = Mocked(FILE, path=tmp_path / "muster.db")
    execution = world.start(f"{world.create(DEFINITION)}#Retried")
    assert world.types(execution)[-1] == "TaskFailed"
    world.restart()
    world.pass_time(5)
    world.pass_time(10)
    assert world.output(execution) == {"Payload": "hello"}
    assert world.types(execution).count("TaskFailed") == 2


def test_attempt_that_the_file_does_not_know_fails_the_execution(world: Mocked) -> None:
    twice = one("Ask", {**ASK, "Next": "Again"} | {"End": None}, Again=passing())
    twice["States"]["Ask"].pop("End")
    twice["States"]["Again"] = {"Type": "Choice", "Choices": [{"Variable": "$.x", "IsPresent": True, "Next": "Caught"}]}
    twice["States"]["Again"]["Default"] = "Ask"
    twice["States"]["Caught"] = passing()
    error, cause = world.failure(world.start(f"{world.create(twice)}#Happy"))
    assert error == "States.Runtime"
    assert "invocation 1" in str(cause)


def test_state_without_a_mock_asks_its_service(world: Mocked) -> None:
    assert world.output(world.start(f"{world.create(DEFINITION)}#Untouched")) == "caught"


def test_unknown_case_is_refused(world: Mocked) -> None:
    machine = world.create(DEFINITION)
    with pytest.raises(ServiceError, match="no test case 'Sad'"):
        world.start(f"{machine}#Sad")


@pytest.mark.parametrize(
    ("file", "complaint"),
    [
        ("{", "not JSON"),
        ("{}", "MockedResponses"),
        ('{"MockedResponses": {"A": {"x": {"Return": 1}}}, "StateMachines": {}}', '"x" is neither'),
        ('{"MockedResponses": {"A": {"0": {}}}, "StateMachines": {}}', "either Return or Throw"),
        ('{"MockedResponses": {"A": {"0": {"Throw": {}}}}, "StateMachines": {}}', "needs an Error"),
        ('{"MockedResponses": {}, "StateMachines": {"M": {"TestCases": {"C": {"S": "B"}}}}}', "'B'"),
    ],
)
def test_file_that_cannot_be_used_is_refused_with_the_place(file: str, complaint: str) -> None:
    with pytest.raises(MusterError, match=complaint):
        parse(file)
