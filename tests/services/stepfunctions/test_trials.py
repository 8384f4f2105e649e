"""TestState: mocks, retries, catches, and what inspection shows."""

from typing import Any

import orjson
import pytest

from muster.errors import ServiceError
from tests.services.stepfunctions.machinery import ROLE, Machinery, one, passing, task


def tried(world: Machinery, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    definition = orjson.dumps(state).decode()
    return world.call("stepfunctions", "TestState", definition=definition, inspectionLevel="DEBUG", **more)


def test_retriable_error_says_which_retrier_and_how_long(world: Machinery) -> None:
    retry = [{"ErrorEquals": ["A"]}, {"ErrorEquals": ["B"], "IntervalSeconds": 4, "BackoffRate": 2}]
    state = task("lambda:invoke", Parameters={"FunctionName": "f"}, Retry=retry)
    mock = {"errorOutput": {"error": "B", "cause": "x"}}
    answer = tried(world, state, mock=mock, stateConfiguration={"retrierRetryCount": 1})
    assert (answer["status"], answer["error"], answer["cause"]) == ("RETRIABLE", "B", "x")
    assert answer["inspectionData"]["errorDetails"] == {"retryIndex": 1, "retryBackoffIntervalSeconds": 8}
    answer = tried(world, state, mock=mock, stateConfiguration={"retrierRetryCount": 3})
    assert answer["status"] == "FAILED"


def test_caught_error_goes_to_the_catchers_state(world: Machinery) -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Mend"}]
    state = task("lambda:invoke", Parameters={"FunctionName": "f"}, Catch=catch)
    answer = tried(world, state, mock={"errorOutput": {"error": "B"}}, input='{"a":1}')
    assert (answer["status"], answer["nextState"]) == ("CAUGHT_ERROR", "Mend")
    assert orjson.loads(answer["output"]) == {"a": 1, "error": {"Error": "B"}}


def test_mocked_map_shows_its_items_and_goes_on_with_the_result(world: Machinery) -> None:
    state = {
        "Type": "Map",
        "ItemsPath": "$.items",
        "ItemSelector": {"v.$": "$$.Map.Item.Value"},
        "MaxConcurrency": 2,
        "ItemProcessor": one("One", passing()),
        "ResultPath": "$.result",
        "Next": "On",
    }
    answer = tried(world, state, mock={"result": "[10,20]"}, input='{"items":[1,2]}')
    assert answer["nextState"] == "On"
    assert orjson.loads(answer["output"]) == {"items": [1, 2], "result": [10, 20]}
    data = answer["inspectionData"]
    assert (data["afterItemsPath"], data["afterItemSelector"]) == ("[1,2]", '[{"v":1},{"v":2}]')
    assert data["maxConcurrency"] == 2


def test_nothing_is_written(world: Machinery) -> None:
    before = world.rows("SELECT COUNT(*) AS n FROM states_executions")[0]["n"]
    assert tried(world, passing(Result=1))["output"] == "1"
    assert world.rows("SELECT COUNT(*) AS n FROM states_executions")[0]["n"] == before


def test_task_that_waits_outside_needs_a_mock(world: Machinery) -> None:
    state = task("lambda:invoke", Parameters={"FunctionName": "f"})
    with pytest.raises(ServiceError, match="without a mock"):
        tried(world, state, roleArn=ROLE)
