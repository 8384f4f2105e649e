"""Loose template values become what the API wants, or the property that does not fit is named."""

from typing import Any

import pytest

from muster.stacks.problem import Problem
from muster.stacks.shapes import fit


def test_scalars_are_taken_loosely() -> None:
    fitted = fit(
        "lambda",
        "CreateFunction",
        {
            "FunctionName": "f",
            "Role": "r",
            "Code": {"S3Bucket": "b", "S3Key": "k"},
            "Timeout": "30",
            "MemorySize": 512.0,
            "Publish": "true",
            "Environment": {"Variables": {"N": 3, "B": True}},
            "Description": None,
        },
    )
    assert fitted["Timeout"] == 30
    assert fitted["MemorySize"] == 512
    assert fitted["Publish"] is True
    assert fitted["Environment"] == {"Variables": {"N": "3", "B": "true"}}
    assert "Description" not in fitted


def test_capital_letters_are_folded_to_the_api_spelling() -> None:
    logging = {"Level": "ALL", "Destinations": [{"CloudWatchLogsLogGroup": {"LogGroupArn": "a"}}]}
    fitted = fit(
        "stepfunctions",
        "CreateStateMachine",
        {"name": "m", "definition": "{}", "roleArn": "r", "loggingConfiguration": logging},
    )
    assert fitted["loggingConfiguration"] == {
        "level": "ALL",
        "destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": "a"}}],
    }


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"Timeout": "soon"}, "property Timeout must be a whole number"),
        ({"Timeout": 1.5}, "property Timeout must be a whole number"),
        ({"Publish": "maybe"}, "property Publish must be true or false"),
        ({"Layers": "one"}, "property Layers must be a list"),
        ({"Environment": {"Variable": {}}}, "Environment has an unknown property Variable. Did you mean Variables?"),
        ({"Environment": {"Variables": {"A": {}}}}, "Environment.Variables.A must be a text"),
        ({"Environment": "x"}, "property Environment must be an object"),
        ({"Role": None}, "property Role is required"),
    ],
)
def test_what_does_not_fit_is_named(more: dict[str, Any], told: str) -> None:
    with pytest.raises(Problem, match=told):
        fit("lambda", "CreateFunction", {"FunctionName": "f", "Role": "r", "Code": {}, **more})
