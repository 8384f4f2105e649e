"""Every function computed, and what cannot be computed refused by name."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.stacks.intrinsics import NO_VALUE, holds, references, resolve
from muster.stacks.problem import Problem


class Scope:
    """A few names with fixed meanings."""

    zones = ("r-1a", "r-1b", "r-1c")

    def ref(self, name: str) -> Any:
        known = {
            "Name": "value",
            "List": ["a", "b"],
            "AWS::NoValue": NO_VALUE,
            "AWS::StackId": "arn:aws:cloudformation:us-east-1:000000000000:stack/s/9f86d081-884c",
        }
        if name not in known:
            raise Problem(f"unresolved {name}")
        return known[name]

    def attribute(self, resource: str, name: str) -> Any:
        return f"<{resource}.{name}>"

    def mapped(self, table: str, first: str, second: str) -> Any:
        return {"Table": {"one": {"two": "found"}}}[table][first][second]

    def condition(self, name: str) -> bool:
        return {"Yes": True, "No": False}[name]

    def imported(self, name: str) -> Any:
        return f"imported {name}"


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ({"Ref": "Name"}, "value"),
        ({"Fn::GetAtt": ["R", "Arn"]}, "<R.Arn>"),
        ({"Fn::GetAtt": "R.Nested.Arn"}, "<R.Nested.Arn>"),
        ({"Fn::Sub": "a ${Name} ${R.Arn} ${!Literal} $"}, "a value <R.Arn> ${Literal} $"),
        ({"Fn::Sub": ["${x}-${Name}", {"x": {"Ref": "Name"}, "unused": 1}]}, "value-value"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Name"}, 3]]}, "a-value-3"),
        ({"Fn::Join": ["-", {"Ref": "List"}]}, "a-b"),
        ({"Fn::Join": ["", ["a", {"Ref": "AWS::NoValue"}, "b"]]}, "ab"),
        ({"Fn::Select": [1, {"Ref": "List"}]}, "b"),
        ({"Fn::Select": ["0", ["x"]]}, "x"),
        ({"Fn::Split": ["|", "a|b|"]}, ["a", "b", ""]),
        ({"Fn::FindInMap": ["Table", "one", "two"]}, "found"),
        ({"Fn::FindInMap": ["Table", "one", "three", {"DefaultValue": "else"}]}, "else"),
        ({"Fn::If": ["Yes", "then", {"Ref": "Nowhere"}]}, "then"),
        ({"Fn::If": ["No", {"Ref": "Nowhere"}, "else"]}, "else"),
        ({"Fn::Base64": "hello"}, "aGVsbG8="),
        ({"Fn::ImportValue": {"Fn::Sub": "${Name}-x"}}, "imported value-x"),
        ({"Fn::GetAZs": {"Ref": "Name"}}, ["r-1a", "r-1b", "r-1c"]),
        ({"Fn::Cidr": ["192.168.0.0/24", 3, 5]}, ["192.168.0.0/27", "192.168.0.32/27", "192.168.0.64/27"]),
        ({"Fn::Length": {"Ref": "List"}}, 2),
        ({"Fn::ToJsonString": {"a": {"Ref": "Name"}}}, '{"a":"value"}'),
        ({"a": {"Ref": "AWS::NoValue"}, "b": 1}, {"b": 1}),
        ([1, {"Ref": "AWS::NoValue"}], [1]),
        ({"Condition": {"StringEquals": {"a": "b"}}}, {"Condition": {"StringEquals": {"a": "b"}}}),
        (
            {
                "Fn::Join": [
                    "-",
                    [
                        "sales",
                        {
                            "Fn::Select": [
                                0,
                                {
                                    "Fn::Split": [
                                        "-",
                                        {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]},
                                    ]
                                },
                            ]
                        },
                    ],
                ]
            },
            "sales-9f86d081",
        ),
    ],
)
def test_function_is_computed(value: Any, answer: Any) -> None:
    assert resolve(value, Scope()) == answer


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"Fn::Transform": {"Name": "AWS::Include"}}, "does not support the function Fn::Transform"),
        ({"Fn::Nonsense": 1}, "does not support the function Fn::Nonsense"),
        ({"Fn::Select": [2, ["a"]]}, "nonexistent value at index 2"),
        ({"Fn::Select": ["x", ["a"]]}, "requires an index"),
        ({"Fn::Join": ["-"]}, "Fn::Join requires a list argument with 2 elements"),
        ({"Fn::Join": ["-", [["a"]]]}, "works on text"),
        ({"Fn::FindInMap": ["Table", "one", "three"]}, "Unable to get mapping for Table::one::three"),
        ({"Fn::Sub": "${Nowhere}"}, "unresolved Nowhere"),
        ({"Ref": ["a"]}, "single String value"),
        ({"Fn::Cidr": ["10.0.0.0/30", 9, 1]}, "cannot take 9 blocks"),
        ("{{resolve:ssm:/a:1}}", "dynamic references"),
    ],
)
def test_what_cannot_be_computed_is_refused_by_name(value: Any, told: str) -> None:
    with pytest.raises(Problem, match=told):
        resolve(value, Scope())


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        ({"Fn::Equals": ["a", "a"]}, True),
        ({"Fn::Equals": [1, "1"]}, True),
        ({"Fn::Equals": [{"Ref": "Name"}, "other"]}, False),
        ({"Fn::Not": [{"Condition": "No"}]}, True),
        ({"Fn::And": [{"Condition": "Yes"}, {"Fn::Equals": [1, 2]}]}, False),
        ({"Fn::Or": [{"Condition": "No"}, {"Condition": "Yes"}]}, True),
    ],
)
def test_condition_holds_or_not(condition: Any, truth: bool) -> None:
    assert holds(condition, Scope()) is truth


def test_references_are_found_in_every_form_but_not_in_the_branch_not_taken() -> None:
    value = [
        {"Ref": "A"},
        {"Fn::GetAtt": ["B", "Arn"]},
        {"Fn::Sub": ["${C.Arn} ${D} ${given} ${!Not}", {"given": {"Ref": "E"}}]},
        {"Fn::If": ["Yes", {"Ref": "F"}, {"Ref": "Never"}]},
        {"deep": {"Fn::Join": ["", [{"Ref": "G"}]]}},
    ]
    assert set(references(value, Scope())) == {
        ("A", None),
        ("B", "Arn"),
        ("C", "Arn"),
        ("D", None),
        ("E", None),
        ("F", None),
        ("G", None),
    }


@given(st.lists(st.text(alphabet="abc", max_size=3), min_size=1))
def test_join_undoes_split(parts: list[str]) -> None:
    joined = resolve({"Fn::Join": ["|", parts]}, Scope())
    assert resolve({"Fn::Split": ["|", joined]}, Scope()) == parts
