"""What is refused in a definition, where, and in which words."""

from typing import Any

import orjson
import pytest

from muster.languages import asl


def found(definition: Any) -> list[tuple[str | None, str]]:
    text = definition if isinstance(definition, str) else orjson.dumps(definition).decode()
    _, diagnostics = asl.examine(text)
    return [(one.location, one.message) for one in diagnostics]


def machine(**state: Any) -> dict[str, Any]:
    return {"StartAt": "A", "States": {"A": state}}


def test_right_definition_has_no_findings() -> None:
    assert found(machine(Type="Pass", End=True)) == []


@pytest.mark.parametrize(
    ("definition", "location", "words"),
    [
        ({"StartAt": "A"}, "/", "These fields are required: [States]"),
        (machine(Type="Pass"), "/States/A", "Next or End"),
        (machine(Type="Pass", Next="B"), "/States/A/Next", "Missing 'Next' target: B"),
        (machine(Type="Pass", End=True, Foo=1), "/States/A", "Field 'Foo' is not supported"),
        (machine(Type="Pass", End=True, Output=1), "/States/A", "is only supported for the 'JSONata'"),
        (machine(Type="Nope", End=True), "/States/A/Type", "should have one of these values"),
        (machine(Type="Wait", Seconds=-1, End=True), "/States/A/Seconds", "Minimum value is 0"),
        (machine(Type="Wait", End=True), "/States/A", "Exactly one of"),
        (machine(Type="Choice", Choices=[]), "/States/A/Choices", "Value cannot be empty"),
        (machine(Type="Task", Resource="x", End=True), "/States/A/Resource", "is not recognized"),
        (machine(Type="Pass", InputPath="$.[", End=True), "/States/A/InputPath", "not a valid JSONPath"),
        (machine(Type="Pass", Parameters={"a.$": "States.Nope()"}, End=True), "/States/A/Parameters", "not a valid"),
        (
            machine(Type="Task", Resource="arn:aws:states:::sqs:sendMessage", Retry=[{"ErrorEquals": []}], End=True),
            "/States/A/Retry[0]",
            "ErrorEquals",
        ),
        (machine(Type="Pass", Next="A"), None, "Workflow has no terminal state"),
        (machine(Type="Wait", Seconds=10**9, End=True), "/States/A/Seconds", "Maximum value is 99999999"),
        (
            {"StartAt": "A", "States": {"A": {"Type": "Succeed"}, "B": {"Type": "Succeed"}}},
            "/States/B",
            "is not reachable",
        ),
        ({"QueryLanguage": "JSONata", **machine(Type="Pass", Output="{% 1 + %}", End=True)}, "/States/A/Output", ""),
    ],
)
def test_finding_says_where_and_what(definition: Any, location: str | None, words: str) -> None:
    findings = found(definition)
    assert any((location is None or place == location) and words in message for place, message in findings), findings


def test_express_machine_may_not_wait_for_callbacks() -> None:
    state = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken", "End": True}
    text = orjson.dumps(machine(**state)).decode()
    assert asl.examine(text)[1] == []
    assert [one.location for one in asl.examine(text, express=True)[1]] == ["/States/A/Resource"]


def test_state_names_may_have_spaces_but_not_81_characters() -> None:
    named = {"StartAt": "Read the file", "States": {"Read the file": {"Type": "Succeed"}}}
    assert found(named) == []
    long = "x" * 81
    assert found({"StartAt": long, "States": {long: {"Type": "Succeed"}}})
