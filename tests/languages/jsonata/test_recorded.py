"""Expressions, paths and intrinsic functions give what AWS was recorded to give, in machines of one Pass state."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from muster.ids import SeededIds
from muster.languages.intrinsics import compile_intrinsic
from muster.languages.jsonata import compile_expression
from muster.languages.jsonpath import compile_path


def recorded(folder: Path) -> Iterator[tuple[str, dict[str, Any], Any, Any]]:
    """Case, the only state (a Pass), the input, the output."""
    for line in (folder / "states.jsonl").read_text().splitlines():
        case = json.loads(line)
        steps = case["steps"]
        machines = {
            number: step["parameters"]["definition"]
            for number, step in enumerate(steps)
            if step["operation"] == "CreateStateMachine" and "definition" in step["parameters"]
        }
        for number, step in enumerate(steps):
            if step["operation"] != "StartExecution" or "input" not in step["parameters"]:
                continue
            machine = machines.get(int(step["parameters"]["stateMachineArn"].strip("{}").split(".")[0]))
            output = succeeded(steps, f"{{{number}.executionArn}}")
            try:
                definition = json.loads(machine or "")
                given = json.loads(step["parameters"]["input"])
            except ValueError:
                continue
            states = list(definition.get("States", {}).values())
            if len(states) == 1 and states[0]["Type"] == "Pass" and output is not None:
                yield case["case"], states[0], given, output


def succeeded(steps: list[dict[str, Any]], arn: str) -> Any:
    for step in steps:
        if step["operation"] == "GetExecutionHistory" and step["parameters"].get("executionArn") == arn:
            for answer in step.get("recorded", {}).values():
                if isinstance(answer, dict) and answer.get("events"):
                    last = answer["events"][-1]
                    return last.get("executionSucceededEventDetails", {}).get("output")
    return None


def read(text: str, given: Any) -> Any:
    """What a `.$` field asks for."""
    if text.startswith("$"):
        return compile_path(text).read(given)
    return compile_intrinsic(text).evaluate(lambda path: compile_path(path).read(given), SeededIds(1))


def as_json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def test_pass_states_give_what_was_recorded(conformance: Path) -> None:
    checked = 0
    for case, state, given, output in recorded(conformance):
        expected = as_json(output)
        if isinstance(state.get("Output"), str) and state["Output"].startswith("{%"):
            expression = compile_expression(state["Output"][2:-2])
            assert expression.evaluate({"states": {"input": given}}, SeededIds(1)) == expected, case
            checked += 1
        for name, text in state.get("Parameters", {}).items():
            if set(state) - {"Type", "Parameters", "End"} or not name.endswith(".$") or text.startswith("$$"):
                continue
            value = read(text, given)
            if expected[name[:-2]] != "RandomNumberGenerated":
                assert value == expected[name[:-2]], case
                checked += 1
    assert checked > 60
