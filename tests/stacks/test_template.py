"""A template is checked word by word, and its resources come in order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.stacks.names import Names
from muster.stacks.problem import Problem
from muster.stacks.template import EMPTY, Resource, check, order, wanted
from muster.store.port import Realm


def names(template: Any = EMPTY, **values: str) -> Names:
    return Names(template, values, Realm(), "s", "arn:s", lambda name: None)


def one(**attributes: Any) -> dict[str, Any]:
    return {"Resources": {"R": {"Type": "AWS::SQS::Queue", **attributes}}}


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ({}, "At least one Resources member"),
        ({"Resources": {}}, "At least one Resources member"),
        ({**one(), "Resuorces": {}}, r"\[Resuorces\]. Did you mean Resources?"),
        ({**one(), "Rules": {"a": {}}}, "does not support the section Rules"),
        ({**one(), "Transform": "AWS::Include"}, "does not support the transform"),
        ({**one(), "Transform": "My::Macro"}, "does not support the transform My::Macro"),
        ({**one(), "Globals": {}}, "Globals needs Transform"),
        (one(Events={}), "unknown attribute Events on resource R .* It belongs under Properties"),
        (one(CreationPolicy={}), "does not support the attribute CreationPolicy of resource R"),
        (one(DeletionPolicy="Snapshot"), "deletion policy Snapshot of resource R"),
        (one(Condition="Nowhere"), "Condition Nowhere of resource R is not defined"),
        (one(Type="AWS::CloudFormation::Stack"), "does not support nested stacks: resource R"),
        (one(Type="Custom::Thing"), "does not support custom resources: resource R"),
        ({"Resources": {"Fn::ForEach::X": []}}, "does not support the function Fn::ForEach among resources"),
        ({"Resources": {"a-b": {"Type": "AWS::SQS::Queue"}}}, "a-b is non alphanumeric"),
        ({"Resources": {"R": {}}}, "must have a Type"),
        ({**one(), "Outputs": {"O": {}}}, "Output O must have a Value"),
        ({**one(), "Outputs": {"O": {"Value": 1, "Valeu": 2}}}, "Output O has an unknown attribute Valeu"),
        ({**one(), "Parameters": {"R": {"Type": "String"}}}, "R is both a parameter and a resource"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(template: dict[str, Any], told: str) -> None:
    with pytest.raises(Problem, match=told):
        check(template)


def test_events_beside_properties_of_a_sam_function_are_an_unknown_attribute() -> None:
    template = one(Type="AWS::Serverless::Function", Events={"E": {}}) | {"Transform": "AWS::Serverless-2016-10-31"}
    with pytest.raises(Problem, match=r"unknown attribute Events on resource R \(AWS::Serverless::Function\)"):
        check(template)


def resources(edges: dict[str, list[str]]) -> dict[str, Resource]:
    return {name: Resource(name, "T", {"p": [{"Ref": to} for to in tos]}) for name, tos in edges.items()}


@given(st.permutations("ABCDEFG"), st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6))))
def test_every_resource_comes_after_those_it_refers_to(shuffled: list[str], pairs: set[tuple[int, int]]) -> None:
    edges: dict[str, list[str]] = {name: [] for name in sorted(shuffled)}
    for a, b in pairs:
        if a > b:
            edges[shuffled[a]].append(shuffled[b])
    place = {resource.logical_id: index for index, resource in enumerate(order(resources(edges), names(), frozenset()))}
    assert len(place) == 7
    assert all(place[to] < place[name] for name, tos in edges.items() for to in tos)


def test_cycle_is_reported_by_its_members() -> None:
    edges = {"A": ["B"], "B": ["C"], "C": ["B"], "D": []}
    with pytest.raises(Problem, match=r"Circular dependency between resources: \[B, C\]"):
        order(resources(edges), names(), frozenset())
    with pytest.raises(Problem, match=r"Circular dependency between resources: \[A\]"):
        order(resources({"A": ["A"]}), names(), frozenset())


def test_name_that_means_nothing_is_reported() -> None:
    with pytest.raises(Problem, match=r"Unresolved resource dependencies \[Nowhere\]"):
        order(resources({"A": ["Nowhere"]}), names(), frozenset())


def test_condition_leaves_a_resource_out() -> None:
    template = check(
        {
            "Parameters": {"Stage": {"Type": "String"}},
            "Conditions": {
                "IsProd": {"Fn::Equals": [{"Ref": "Stage"}, "prod"]},
                "IsNot": {"Fn::Not": [{"Condition": "IsProd"}]},
            },
            "Resources": {
                "A": {"Type": "AWS::SQS::Queue", "Condition": "IsProd"},
                "B": {"Type": "AWS::SQS::Queue", "Condition": "IsNot"},
            },
        }
    )
    assert list(wanted(template, names(template, Stage="prod"))) == ["A"]
    assert list(wanted(template, names(template, Stage="dev"))) == ["B"]


def test_conditions_in_a_ring_are_refused() -> None:
    template = check(
        {
            **one(Condition="A"),
            "Conditions": {"A": {"Fn::Not": [{"Condition": "B"}]}, "B": {"Fn::Not": [{"Condition": "A"}]}},
        }
    )
    with pytest.raises(Problem, match="circular condition dependency"):
        wanted(template, names(template))
