"""Log events of executions: which, where, and how much of the data."""

from typing import Any

import orjson
import pytest

from muster.errors import ServiceError
from muster.services.logs import SERVICE as LOGS
from tests.services.stepfunctions.machinery import Machinery, one, passing

GROUP = "/aws/vendedlogs/states/m"
FAILING = one("A", {"Type": "Pass", "Next": "B"}, B={"Type": "Fail", "Error": "Broken"})


@pytest.fixture
def world() -> Machinery:
    return Machinery([LOGS])


def logging(level: str, *, data: bool = True, group: str = f"{GROUP}:*") -> dict[str, Any]:
    destination = {"logGroupArn": f"arn:aws:logs:us-east-1:000000000000:log-group:{group}"}
    destinations = [{"cloudWatchLogsLogGroup": destination}]
    return {"level": level, "includeExecutionData": data, "destinations": destinations}


def messages(world: Machinery) -> list[dict[str, Any]]:
    if not world.call("logs", "DescribeLogGroups", logGroupNamePrefix=GROUP)["logGroups"]:
        return []
    events = world.call("logs", "FilterLogEvents", logGroupName=GROUP)["events"]
    return sorted((orjson.loads(event["message"]) for event in events), key=lambda message: int(message["id"]))


@pytest.mark.parametrize(
    ("level", "kinds"),
    [
        ("ALL", ["ExecutionStarted", "PassStateEntered", "PassStateExited", "FailStateEntered", "ExecutionFailed"]),
        ("ERROR", ["FailStateEntered", "ExecutionFailed"]),
        ("FATAL", ["ExecutionFailed"]),
        ("OFF", []),
    ],
)
@pytest.mark.parametrize("kind", ["STANDARD", "EXPRESS"])
def test_level_says_which_events_are_logged(world: Machinery, level: str, kinds: list[str], kind: str) -> None:
    execution = world.begin(FAILING, type=kind, loggingConfiguration=logging(level))
    assert [message["type"] for message in messages(world)] == kinds
    assert all(message["execution_arn"] == execution for message in messages(world))


def test_data_is_logged_only_when_it_is_asked_for(world: Machinery) -> None:
    world.begin(one("A", passing()), {"secret": 1}, type="EXPRESS", loggingConfiguration=logging("ALL", data=False))
    assert "secret" not in str(messages(world))
    world.begin(one("A", passing()), {"open": 1}, type="EXPRESS", loggingConfiguration=logging("ALL"))
    assert messages(world)[0]["details"].get("input") in (None, '{"open":1}')
    assert "open" in str(messages(world))


def test_data_that_is_too_large_for_a_log_event_is_truncated(world: Machinery) -> None:
    world.begin(one("A", passing()), {"text": '"' * 130_000}, type="EXPRESS", loggingConfiguration=logging("ALL"))
    assert messages(world)[0]["details"]["inputDetails"] == {"truncated": True}


def test_destination_that_is_no_log_group_is_refused(world: Machinery) -> None:
    with pytest.raises(ServiceError, match="valid Log Group"):
        world.create(FAILING, loggingConfiguration=logging("ALL", group=GROUP))
