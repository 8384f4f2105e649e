"""Recorded answers of AWS's, case by case, through the operations table.

Compared as the recordings' own README says: placeholders stand for anything of their kind, and a JSON text equals the
JSON it is.
"""

import json
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from muster import models
from muster.errors import ServiceError
from muster.operation import Service
from muster.testing import World

# Steps without a recording that were refused when they were recorded, or tidied up.
MAY_FAIL = frozenset({"RemovePermission", "GetTopicAttributes"})

PLACEHOLDER = re.compile(r"<+[^<>]*>(?::\d+>)?|\d{12}|datetime|[a-z]+-arn|target-id(?:-\w+)?|event-id")


def filled(value: Any, answers: list[Any]) -> Any:
    """The parameters with references to former answers replaced, and times as the operations take them."""
    if isinstance(value, dict):
        return {filled(name, answers): filled(member, answers) for name, member in value.items()}
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
        # An error's type is the wire's word.
        recorded = {name: member for name, member in recorded.items() if (where, name) != (".Error", "Type")}
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
        if recorded in ("date", "timestamp"):
            return []
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


def wrong(case: dict[str, Any], services: Sequence[Service]) -> list[str]:
    """Where Muster, offering these services, answers otherwise than was recorded."""
    world = World(services)
    answers: list[Any] = []
    found: list[str] = []
    for number, step in enumerate(case["steps"]):
        answers.append(asked(world, step, answers))
        if step.get("recorded"):
            each = [differences(recorded, answers[-1]) for recorded in step["recorded"].values()]
            if all(each):
                found += [f"{case['case']} step {number} {step['operation']}{one}" for one in each[0]]
        elif "Error" in answers[-1] and step["operation"] not in MAY_FAIL:
            found.append(f"{case['case']} step {number} {step['operation']}: {answers[-1]}")
    return found


def cases_with(conformance: Path, service: str) -> list[dict[str, Any]]:
    """The recorded cases that use a service."""
    cases = [json.loads(line) for line in (conformance / "services.jsonl").read_text().splitlines()]
    return [case for case in cases if any(step["service"] == service for step in case["steps"])]
