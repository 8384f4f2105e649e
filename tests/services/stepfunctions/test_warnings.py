"""Executions that come close to a limit are warned of, once."""

import pytest

from muster.services.logs import SERVICE as LOGS
from muster.services.stepfunctions.warnings import GROUP
from tests.services.stepfunctions.machinery import Machinery, one, passing


@pytest.fixture
def world() -> Machinery:
    return Machinery([LOGS])


def warnings(world: Machinery) -> list[str]:
    if not world.call("logs", "DescribeLogGroups", logGroupNamePrefix=GROUP)["logGroups"]:
        return []
    return [event["message"] for event in world.call("logs", "FilterLogEvents", logGroupName=GROUP)["events"]]


def test_small_execution_warns_of_nothing(world: Machinery) -> None:
    world.output(world.begin(one("A", passing())))
    assert warnings(world) == []


def test_large_payload_is_warned_of_once(world: Machinery) -> None:
    definition = one("A", {"Type": "Pass", "Next": "B"}, B=passing())
    world.output(world.begin(definition, {"text": "x" * 220_000}))
    assert [warning.split(":")[0] for warning in warnings(world)] == ["payload"]


def test_long_history_is_warned_of_once_before_it_fails(world: Machinery) -> None:
    stop = {"Variable": "$.stop", "IsPresent": True, "Next": "End"}
    endless = one("A", {"Type": "Choice", "Choices": [stop], "Default": "A"}, End={"Type": "Succeed"})
    error, _ = world.failure(world.begin(endless))
    assert error == "States.Runtime"
    assert [warning.split()[0] for warning in warnings(world)] == ["history"]
