"""Distributed Maps: child executions, Map Runs, tolerated failures."""

from typing import Any

import pytest

from tests.services.stepfunctions.machinery import Machinery, one, passing, task


def distributed(**members: Any) -> dict[str, Any]:
    """A Map over `$.items` whose children fail on items that say so."""
    choice = {"Type": "Choice", "Choices": [{"Variable": "$", "StringEquals": "bad", "Next": "Bad"}], "Default": "Good"}
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        **one("Judge", choice, Bad={"Type": "Fail", "Error": "Rotten"}, Good=passing()),
    }
    return {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": processor, "End": True, **members}


def map_run(world: Machinery, execution: str) -> dict[str, Any]:
    (run,) = world.call("stepfunctions", "ListMapRuns", executionArn=execution)["mapRuns"]
    return world.call("stepfunctions", "DescribeMapRun", mapRunArn=run["mapRunArn"])


ITEMS = {"items": ["bad", "a", "b", "c", "bad", "d", "e", "f", "g", "h"], "most": 20}


@pytest.mark.parametrize(
    ("tolerance", "status"),
    [
        ({"ToleratedFailureCount": 2}, "SUCCEEDED"),
        ({"ToleratedFailureCount": 1}, "FAILED"),
        ({}, "FAILED"),
        ({"ToleratedFailurePercentagePath": "$.most"}, "SUCCEEDED"),
        ({"ToleratedFailurePercentage": 10}, "FAILED"),
    ],
)
def test_failures_are_tolerated_as_declared(world: Machinery, tolerance: dict[str, Any], status: str) -> None:
    """sfn-map-01"""
    execution = world.begin(one("Each", distributed(**tolerance)), ITEMS)
    assert world.status(execution) == status
    described = map_run(world, execution)
    assert described["status"] == status
    assert described["toleratedFailureCount"] == tolerance.get("ToleratedFailureCount", 0)
    if status == "FAILED":
        assert world.failure(execution)[0] == "States.ExceedToleratedFailureThreshold"
        assert "MapRunFailed" in world.types(execution)
    else:
        assert described["itemCounts"]["failed"] == 2
        assert described["itemCounts"]["succeeded"] == 8


def test_iteration_that_starts_a_missing_machine_fails_map_and_execution(world: Machinery) -> None:
    """sfn-map-03"""
    arn = "arn:aws:states:us-east-1:000000000000:stateMachine:missing"
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        **one("Start", task("states:startExecution", Parameters={"StateMachineArn": arn})),
    }
    each = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": processor, "End": True}
    execution = world.begin(one("Each", each), {"items": [{}]})
    assert world.failure(execution)[0] == "States.ExceedToleratedFailureThreshold"
    described = map_run(world, execution)
    assert (described["status"], described["itemCounts"]["failed"]) == ("FAILED", 1)
    listed = world.call("stepfunctions", "ListExecutions", mapRunArn=described["mapRunArn"])["executions"]
    child = world.described(listed[0]["executionArn"])
    assert child["error"] == "StepFunctions.StateMachineDoesNotExistException"


def test_no_more_children_run_than_allowed(world: Machinery) -> None:
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        **one("Sleep", {"Type": "Wait", "Seconds": 10, "End": True}),
    }
    each = {"Type": "Map", "MaxConcurrency": 2, "ItemProcessor": processor, "End": True}
    execution = world.begin(one("Each", each), [1, 2, 3, 4, 5])
    assert map_run(world, execution)["itemCounts"]["running"] == 2
    world.pass_time(30)
    assert world.output(execution) == [1, 2, 3, 4, 5]
