"""EventBridge's recorded answers, case by case, through the operations table.

Compared as the recordings' own README says: placeholders stand for anything of their kind, and a JSON text equals the
JSON it is. Cases that cannot hold here are listed with their reason.
"""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from muster import models
from muster.errors import ServiceError
from muster.services import events, sqs
from muster.testing import World

CONNECTIONS = "connections and API destinations are not offered"
REGIONS = "the recording makes a bus of one name in three regions; a data folder has one region"
SAME_NAME = "the recorded message repeats the request in the words of AWS's own classes"

EXCEPTIONS = {
    "events/events/TestEventBus/create_list_describe_delete_custom_event_buses[False-regions1]": REGIONS,
    "events/events/TestEventBus/create_list_describe_delete_custom_event_buses[True-regions1]": REGIONS,
    "events/events/TestEvents/put_events_exceed_limit_ten_entries[custom]": SAME_NAME,
    "events/events/TestEvents/put_events_exceed_limit_ten_entries[default]": SAME_NAME,
}

PLACEHOLDER = re.compile(r"<+[^<>]*>(?::\d+>)?|\d{12}|datetime|[a-z]+-arn|target-id(?:-\w+)?|event-id")


def exception(case: dict[str, Any]) -> str | None:
    if any(step["operation"].endswith(("Connection", "Connections", "ApiDestination")) for step in case["steps"]):
        return CONNECTIONS
    return EXCEPTIONS.get(case["case"])


def filled(value: Any, answers: list[Any]) -> Any:
    """The parameters with references to former answers replaced, and times as the operations take them."""
    if isinstance(value, dict):
        return {name: filled(member, answers) for name, member in value.items()}
    if isinstance(value, list):
        return [filled(member, answers) for member in value]
    if isinstance(value, str):
        if re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+00:00", value):
            return datetime.fromisoformat(value).timestamp()
        return re.sub(r"\{(\d+(?:\.\w+)+)\}", lambda found: str(reference(found[1], answers)), value)
    return value


def reference(path: str, answers: list[Any]) -> Any:
    value: Any = answers
    for step in path.split("."):
        value = value[int(step)] if step.isdecimal() else value[step]
    return value


def differences(recorded: Any, answer: Any, where: str = "") -> list[str]:
    if isinstance(recorded, dict | list) and isinstance(answer, str):
        answer = json.loads(answer)
    if isinstance(recorded, dict):
        if not isinstance(answer, dict) or recorded.keys() - {"ResponseMetadata"} != answer.keys():
            return [f"{where}: {recorded} != {answer}"]
        return [
            one
            for name, member in recorded.items()
            if name != "ResponseMetadata"
            for one in differences(member, answer[name], f"{where}.{name}")
        ]
    if isinstance(recorded, list):
        if not isinstance(answer, list) or len(recorded) != len(answer):
            return [f"{where}: {recorded} != {answer}"]
        return [
            one
            for number, (left, right) in enumerate(zip(recorded, answer, strict=True))
            for one in differences(left, right, f"{where}[{number}]")
        ]
    if isinstance(recorded, str):
        literal = [re.escape(part) for part in PLACEHOLDER.split(recorded)]
        return [] if re.fullmatch(".*".join(literal), str(answer), re.DOTALL) else [f"{where}: {recorded} != {answer}"]
    return [] if recorded == answer else [f"{where}: {recorded} != {answer}"]


def asked(world: World, step: dict[str, Any], answers: list[Any]) -> Any:
    request = filled(step["parameters"], answers)
    try:
        models.validate(step["service"], step["operation"], request)
        answer = world.call(step["service"], step["operation"], **request)
    except ServiceError as refusal:
        return {"Error": {"Code": refusal.code, "Message": refusal.message}}
    world.settle()
    return answer


def wrong(case: dict[str, Any]) -> list[str]:
    world = World([events.SERVICE, sqs.SERVICE])
    answers: list[Any] = []
    found: list[str] = []
    for number, step in enumerate(case["steps"]):
        answers.append(asked(world, step, answers))
        if step.get("recorded"):
            each = [differences(recorded, answers[-1]) for recorded in step["recorded"].values()]
            if all(each):
                found += [f"{case['case']} step {number} {step['operation']}{one}" for one in each[0]]
        elif "Error" in answers[-1] and step["operation"] != "RemovePermission":
            found.append(f"{case['case']} step {number} {step['operation']}: {answers[-1]}")
    return found


def test_eventbridge_answers_as_recorded(conformance: Path) -> None:
    cases = [json.loads(line) for line in (conformance / "services.jsonl").read_text().splitlines()]
    ours = [case for case in cases if any(step["service"] == "events" for step in case["steps"])]
    assert ours
    assert EXCEPTIONS.keys() <= {case["case"] for case in ours}
    assert [one for case in ours if not exception(case) for one in wrong(case)] == []


@pytest.mark.parametrize("code", ["NotImplemented"])
def test_what_is_excepted_for_not_being_offered_is_refused_by_name(code: str) -> None:
    with pytest.raises(ServiceError) as refused:
        World([events.SERVICE]).call("events", "CreateConnection", Name="c")
    assert refused.value.code == code
