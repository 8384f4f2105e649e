"""AWS's own refusals of requests that break their shape, as recorded."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster import models
from muster.errors import ServiceError


def recorded_refusals(folder: Path) -> Iterator[tuple[str, str, dict[str, Any], str]]:
    """Each step that AWS refused for its shape: service, operation, parameters, message. Those that need the answer of
    another step are left out."""
    for line in (folder / "services.jsonl").read_text().splitlines():
        for step in json.loads(line)["steps"]:
            for answer in (step.get("recorded") or {}).values():
                message = answer.get("Error", {}).get("Message", "") if isinstance(answer, dict) else ""
                if " detected: " in message and not re.search(r'"\{\d+\.', json.dumps(step["parameters"])):
                    yield step["service"], step["operation"], step["parameters"], message


def constraints(message: str) -> tuple[str, list[tuple[str, str]]]:
    """The count, and each violation's place and constraint. What AWS prints of a value may hold members that no model
    has, and its enumerations come in the order of a hash table; the texts of patterns are newer in the models."""
    head, _, rest = message.partition(" detected: ")
    found = re.findall(r"' at '([^']+)' failed to satisfy constraint: (.*?)(?=; Value |$)", rest, re.DOTALL)
    plain = []
    for place, constraint in found:
        kind, bracket, names = constraint.partition(": [" if "enum value set" in constraint else ": ")
        ordered = ",".join(sorted(names.rstrip("]").split(", "))) if bracket == ": [" else ""
        plain.append((place, kind + ordered))
    return head, plain


def test_requests_that_aws_refused_are_refused_alike(conformance: Path) -> None:
    compared = 0
    for service, operation, parameters, message in recorded_refusals(conformance):
        with pytest.raises(ServiceError) as refused:
            models.validate(service, operation, parameters)
        assert refused.value.code == "ValidationException"
        assert constraints(refused.value.message) == constraints(message), operation
        compared += 1
    assert compared
