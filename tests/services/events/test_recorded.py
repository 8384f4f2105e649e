"""EventBridge's recorded answers, case by case, through the operations table.

Cases that cannot hold here are listed with their reason.
"""

from pathlib import Path
from typing import Any

import pytest

from muster.errors import ServiceError
from muster.services import events, sqs
from muster.testing import World
from tests.conformance.services import cases_with, wrong

CONNECTIONS = "connections and API destinations are not offered"
REGIONS = "the recording makes a bus of one name in three regions; a data folder has one region"
SAME_NAME = "the recorded message repeats the request in the words of AWS's own classes"

EXCEPTIONS = {
    "events/events/TestEventBus/create_list_describe_delete_custom_event_buses[False-regions1]": REGIONS,
    "events/events/TestEventBus/create_list_describe_delete_custom_event_buses[True-regions1]": REGIONS,
    "events/events/TestEvents/put_events_exceed_limit_ten_entries[custom]": SAME_NAME,
    "events/events/TestEvents/put_events_exceed_limit_ten_entries[default]": SAME_NAME,
}


def exception(case: dict[str, Any]) -> str | None:
    if any(step["operation"].endswith(("Connection", "Connections", "ApiDestination")) for step in case["steps"]):
        return CONNECTIONS
    return EXCEPTIONS.get(case["case"])


def test_eventbridge_answers_as_recorded(conformance: Path) -> None:
    ours = cases_with(conformance, "events")
    assert ours
    services = [events.SERVICE, sqs.SERVICE]
    assert EXCEPTIONS.keys() <= {case["case"] for case in ours}
    assert [one for case in ours if not exception(case) for one in wrong(case, services)] == []


@pytest.mark.parametrize("code", ["NotImplemented"])
def test_what_is_excepted_for_not_being_offered_is_refused_by_name(code: str) -> None:
    with pytest.raises(ServiceError) as refused:
        World([events.SERVICE]).call("events", "CreateConnection", Name="c")
    assert refused.value.code == code
