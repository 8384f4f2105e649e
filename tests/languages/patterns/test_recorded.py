"""What AWS and its matcher answered for patterns and events."""

import json
from pathlib import Path

from muster.languages.patterns import InvalidPattern, Pattern


def test_every_recorded_pattern_is_judged_as_recorded(conformance: Path) -> None:
    wrong = []
    for line in (conformance / "patterns.jsonl").read_text().splitlines():
        case = json.loads(line)
        message = None
        try:
            verdict = "match" if Pattern(case["pattern"]).matches(json.loads(case["event"])) else "no match"
        except InvalidPattern as problem:
            verdict, message = "invalid", str(problem).splitlines()[0]
        recorded = case.get("message")
        if verdict != case["verdict"] or (recorded and message != recorded.splitlines()[0]):
            wrong.append((case["name"], case["verdict"], verdict, message, case["pattern"], case["event"][-300:]))
    assert wrong == []
