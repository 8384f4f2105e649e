"""Recorded cases, run through the operations table and compared with AWS's answers.

The rules of comparison are those of the README beside the recordings.
"""

import re
from collections import Counter
from typing import Any

import orjson

from muster import models
from muster.errors import ServiceError
from muster.testing import World

_ROLE = "arn:aws:iam::000000000000:role/machine"
_REFERENCE = re.compile(r"\{(\d+)\.([A-Za-z]+)\}")
_MARKS = re.compile(
    r"<[^<>]+>|111111111111|snf_role_arn\w*|sfn_role_arn\w*|activity_arn\w*|[_-][0-9a-f]{8}\b|\w*alias_(?:base_)?name(?:-\d)?"
)
_NUMBERED = re.compile(r"<[^<>]*\d[^<>]*>")
_FREE = frozenset({"timestamp", "date", "datetime", "start-date", "stop-date", "start-time", "entered-time"})
_SKIPPED = frozenset({"ResponseMetadata"})


class Different(AssertionError):
    """What was answered is not what AWS answered."""


class Comparison:
    """One case's comparison: a placeholder with a number stands for one value throughout."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}

    def same(self, recorded: Any, answered: Any, path: str = "") -> None:
        """Refuse, by name, the first difference."""
        if isinstance(recorded, str):
            self._text(recorded, answered, path)
        elif isinstance(recorded, dict):
            self._object(recorded, answered, path)
        elif isinstance(recorded, list):
            self._list(recorded, answered, path)
        elif isinstance(recorded, bool) or recorded is None:
            if answered is not recorded:
                raise Different(f"{path}: {recorded!r} was recorded, {answered!r} came")
        elif answered != recorded or isinstance(answered, bool):
            raise Different(f"{path}: {recorded!r} was recorded, {answered!r} came")

    def _object(self, recorded: dict[str, Any], answered: Any, path: str) -> None:
        answered = _parsed(answered)
        if not isinstance(answered, dict):
            raise Different(f"{path}: an object was recorded, {answered!r} came")
        names = set(recorded) - _SKIPPED
        if "loggingConfiguration" in names and "encryptionConfiguration" not in names:
            answered = {key: value for key, value in answered.items() if key != "encryptionConfiguration"}
        if names != set(answered) - _SKIPPED:
            raise Different(f"{path}: members {sorted(names ^ (set(answered) - _SKIPPED))} differ")
        for name in sorted(names):
            self.same(recorded[name], answered[name], f"{path}.{name}")

    def _list(self, recorded: list[Any], answered: Any, path: str) -> None:
        answered = _parsed(answered)
        if not isinstance(answered, list) or len(answered) != len(recorded):
            raise Different(f"{path}: {len(recorded)} elements were recorded, {answered!r} came")
        for place, (one, other) in enumerate(zip(recorded, answered, strict=True)):
            self.same(one, other, f"{path}[{place}]")

    def _text(self, recorded: str, answered: Any, path: str) -> None:
        if recorded in _FREE or _is_placeholder(recorded, path):
            return
        if not isinstance(answered, str):
            try:
                self.same(orjson.loads(recorded), answered, path)
            except orjson.JSONDecodeError:
                raise Different(f"{path}: {recorded!r} was recorded, {answered!r} came") from None
            return
        if recorded == answered or self._fits(recorded, answered):
            return
        left, right = _parsed(recorded), _parsed(answered)
        if (isinstance(left, dict | list) and isinstance(right, dict | list)) or (left in _FREE and recorded != left):
            self.same(left, right, path)
            return
        raise Different(f"{path}: {recorded!r} was recorded, {answered!r} came")

    def _fits(self, recorded: str, answered: str) -> bool:
        """Whether the text fits, its placeholders standing for anything; a numbered one always for the same."""
        pattern, place = "", 0
        groups: dict[str, str] = {}
        for mark in _MARKS.finditer(recorded):
            pattern += re.escape(recorded[place : mark.start()])
            name = mark[0]
            if not _NUMBERED.match(name):
                pattern += ".*?"
            elif name in self.bound:
                pattern += re.escape(self.bound[name])
            elif name in groups:
                pattern += f"(?P={groups[name]})"
            else:
                groups[name] = f"g{len(groups)}"
                pattern += f"(?P<{groups[name]}>.*?)"
            place = mark.end()
        found = re.fullmatch(pattern + re.escape(recorded[place:]), answered, re.DOTALL)
        if found is None:
            return False
        for name, group in groups.items():
            self.bound[name] = found[group]
        return True

    def events(self, recorded: list[dict[str, Any]], answered: list[dict[str, Any]]) -> None:
        """Histories: in sequence with their ids, but for what Parallel and Map leave open."""
        loose = [
            event
            for event in recorded
            if [0] in (event["id"], event["previousEventId"]) or "[0]" in (event["id"], event["previousEventId"])
        ]
        firm = [event for event in recorded if event not in loose]
        by_id = {event["id"]: event for event in answered}
        for event in firm:
            if event["id"] not in by_id:
                raise Different(f"event {event['id']} {event['type']} is missing")
            self.same(event, by_id.pop(event["id"]), f"event {event['id']}")
        rest = list(by_id.values())
        if not loose and rest:
            raise Different(f"events too many: {[event['type'] for event in rest]}")
        for event in loose:
            for candidate in rest:
                trial = Comparison()
                shown = {key: value for key, value in event.items() if key not in ("id", "previousEventId")}
                other = {key: value for key, value in candidate.items() if key not in ("id", "previousEventId")}
                try:
                    trial.same(shown, other)
                except Different:
                    continue
                rest.remove(candidate)
                break
            else:
                raise Different(f"no event like {event}")
        if Counter(event["type"] for event in rest) - Counter({"ParallelStateSucceeded": 9, "MapStateSucceeded": 9}):
            raise Different(f"events too many: {[event['type'] for event in rest]}")


def _is_placeholder(text: str, path: str) -> bool:
    return (
        text.startswith("activity_name")
        or text in ("snf_role_arn", "sfn_role_arn", "activity_arn", "request-id", "x-amzn-RequestId", "RequestId")
        or (
            text.endswith(("Generated", "_role_arn_t0", "_role_arn_t1", "_role_arn_t2"))
            or path.endswith(("Content-Length[0]", ".Content-Length"))
        )
    )


def _parsed(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def _filled(value: Any, answers: list[dict[str, Any]]) -> Any:
    if isinstance(value, str):
        return _REFERENCE.sub(lambda found: str(answers[int(found[1])][found[2]]), value)
    if isinstance(value, dict):
        return {key: _filled(inner, answers) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, answers) for inner in value]
    return value


def run_case(world: World, case: dict[str, Any]) -> None:
    """Do the steps of a case in order; Different at the first answer that AWS would not have given."""
    answers: list[dict[str, Any]] = []
    comparison = Comparison()
    for place, one in enumerate(case["steps"]):
        request = _filled(one["parameters"], answers)
        if "roleArn" in request:
            request["roleArn"] = request["roleArn"] if str(request["roleArn"]).startswith("arn:") else _ROLE
        recorded = list((one.get("recorded") or {}).values())
        if recorded and _refused_by_client(recorded[0]):
            answers.append({})
            continue
        world.clock.advance(0.001)
        if one["operation"] in ("GetExecutionHistory", "DescribeExecution", "ListExecutions"):
            _wait(world, answers)
        answer: dict[str, Any] = {}
        refusal: ServiceError | None = None
        try:
            models.validate("stepfunctions", one["operation"], request)
            answer = world.call("stepfunctions", one["operation"], **request)
        except ServiceError as why:
            refusal = why
        answers.append(answer)
        at = f"step {place} {one['operation']}"
        if refusal is not None:
            if not any(_is_refusal(expected) for expected in recorded):
                raise Different(f"{at}: refused: {refusal}")
            expected = next(expected for expected in recorded if _is_refusal(expected))
            _same_refusal(comparison, expected, refusal, one["operation"], at)
            continue
        for expected in recorded:
            if _is_refusal(expected):
                raise Different(f"{at}: AWS refused: {expected}")
            if isinstance(expected, dict) and "events" in expected:
                comparison.events(expected["events"], answer["events"])
            else:
                comparison.same(expected, answer, at)
        if "output" in one:
            comparison.same(one["output"], answer.get("output"), f"{at} output")


def _wait(world: World, answers: list[dict[str, Any]]) -> None:
    """Give the executions started so far the time they need."""
    world.settle()
    for _ in range(600):
        arns = [answer["executionArn"] for answer in answers if "executionArn" in answer and "stopDate" not in answer]
        running = [
            arn
            for arn in arns
            if world.call("stepfunctions", "DescribeExecution", executionArn=arn)["status"] == "RUNNING"
        ]
        if not running:
            return
        world.pass_time(1)


def _is_refusal(expected: Any) -> bool:
    return isinstance(expected, str) or (
        isinstance(expected, dict) and ("Error" in expected or "exception_value" in expected)
    )


def _refused_by_client(expected: Any) -> bool:
    text = (
        expected
        if isinstance(expected, str)
        else str(expected.get("exception_value", ""))
        if isinstance(expected, dict)
        else ""
    )
    return text.startswith("Parameter validation failed")


def _same_refusal(comparison: Comparison, expected: Any, refusal: ServiceError, operation: str, at: str) -> None:
    said = f"An error occurred ({refusal.code}) when calling the {operation} operation: {refusal.message}"
    if isinstance(expected, str):
        comparison.same(expected, said, at)
    elif "exception_value" in expected:
        comparison.same(expected["exception_value"], said, at)
    else:
        comparison.same(expected["Error"]["Code"], refusal.code, f"{at} code")
        comparison.same(expected["Error"]["Message"], refusal.message, f"{at} message")
