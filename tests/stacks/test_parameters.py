"""Parameters take values within their declared limits, and nothing else."""

from typing import Any

import pytest

from muster.stacks.parameters import declared, settle, value
from muster.stacks.problem import Problem


def settled(body: dict[str, Any], **given: str) -> Any:
    parameters = declared({"P": body})
    return value(parameters["P"], settle(parameters, given)["P"])


def test_default_stands_in_for_a_value() -> None:
    assert settled({"Type": "String", "Default": "d"}) == "d"
    assert settled({"Type": "String", "Default": "d"}, P="given") == "given"
    assert settled({"Type": "Number", "Default": 3}) == "3"
    assert settled({"Type": "String", "Default": True}) == "true"


def test_lists_are_cut_at_commas() -> None:
    assert settled({"Type": "CommaDelimitedList"}, P="a, b,c") == ["a", "b", "c"]
    assert settled({"Type": "List<Number>"}, P="1,2") == ["1", "2"]


@pytest.mark.parametrize(
    ("body", "given", "told"),
    [
        ({"Type": "String"}, {}, r"Parameters: \[P\] must have values"),
        ({"Type": "String"}, {"Q": "x", "P": "y"}, r"Parameters: \[Q\] do not exist in the template"),
        ({"Type": "String", "AllowedValues": ["a", "b"]}, {"P": "c"}, r"one of AllowedValues \[a, b\]"),
        ({"Type": "String", "AllowedPattern": "[a-z]+"}, {"P": "A"}, "must match pattern"),
        (
            {"Type": "String", "AllowedPattern": "x", "ConstraintDescription": "only x"},
            {"P": "y"},
            "pattern x: only x",
        ),
        ({"Type": "String", "MinLength": 2}, {"P": "a"}, "at least 2 characters"),
        ({"Type": "String", "MaxLength": "2"}, {"P": "abc"}, "at most 2 characters"),
        ({"Type": "Number"}, {"P": "x"}, "must be a number"),
        ({"Type": "Number", "MinValue": 5}, {"P": "4"}, "not less than 5"),
        ({"Type": "Number", "MaxValue": 5}, {"P": "6"}, "not greater than 5"),
        ({"Type": "List<Number>"}, {"P": "1,x"}, "must be a number"),
        ({"Type": "AWS::SSM::Parameter::Value<String>"}, {"P": "x"}, "does not support the type AWS::SSM"),
        ({"Type": "String", "Defualt": "x"}, {"P": "x"}, "Defualt of P. Did you mean Default?"),
        ({"Default": "x"}, {}, "must contain a Type"),
    ],
)
def test_value_out_of_its_limits_is_refused(body: dict[str, Any], given: dict[str, str], told: str) -> None:
    with pytest.raises(Problem, match=told):
        settled(body, **given)
