"""Template text becomes plain data, short forms as long ones."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.stacks import document
from muster.stacks.problem import Problem

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_what_is_written_reads_the_same(template: dict[str, Any]) -> None:
    assert document.read(document.write(template)) == template


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("!Ref A", {"Ref": "A"}),
        ("!GetAtt A.B.C", {"Fn::GetAtt": ["A", "B.C"]}),
        ("!GetAtt [A, B]", {"Fn::GetAtt": ["A", "B"]}),
        ('!Sub "${A}-b"', {"Fn::Sub": "${A}-b"}),
        ('!Sub ["${x}", {x: !Ref A}]', {"Fn::Sub": ["${x}", {"x": {"Ref": "A"}}]}),
        ("!Join ['-', [a, !Select [0, !Split ['-', !Ref B]]]]", None),
        ("!If [C, a, !Ref 'AWS::NoValue']", {"Fn::If": ["C", "a", {"Ref": "AWS::NoValue"}]}),
        ("!Not [!Condition C]", {"Fn::Not": [{"Condition": "C"}]}),
        ("!ImportValue x", {"Fn::ImportValue": "x"}),
        ("!GetAZs ''", {"Fn::GetAZs": ""}),
    ],
)
def test_short_form_reads_as_its_long_form(short: str, long: Any) -> None:
    read = document.read(f"value: {short}")["value"]
    split = {"Fn::Select": [0, {"Fn::Split": ["-", {"Ref": "B"}]}]}
    assert read == (long or {"Fn::Join": ["-", ["a", split]]})


def test_dates_stay_the_text_that_they_are() -> None:
    assert document.read("Version: 2012-10-17") == {"Version": "2012-10-17"}


def test_keys_are_texts_also_where_yaml_sees_a_number() -> None:
    assert document.read("Mappings: {000123: {1: a}}") == {"Mappings": {"000123": {"1": "a"}}}


def test_aliases_are_read_where_the_template_is_written_anew() -> None:
    assert document.read("a: &x {k: 1}\nb: {<<: *x, l: 2}", aliases=True)["b"] == {"k": 1, "l": 2}


def test_flow_mapping_of_yaml_is_read_too() -> None:
    assert document.read("{Resources: {A: {Type: B}}}") == {"Resources": {"A": {"Type": "B"}}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        ("- a", "not an object"),
        ("a: [", "YAML not well-formed"),
        ('{"a": ', "JSON not well-formed"),
        ("a: 1\na: 2", "duplicate key a at line 2"),
        ("a: !Nonsense b", "unknown function !Nonsense at line 1"),
        ("a: &x [1]\nb: [*x]", r"aliases are not allowed in CloudFormation templates: \*x at line 2"),
        ("a: " + "[" * 5000, "nested too deeply|YAML not well-formed"),
        ("a: !!python/object/apply:os.system [ls]", "YAML not well-formed"),
    ],
)
def test_what_is_no_template_is_refused(text: str, told: str) -> None:
    with pytest.raises(Problem, match=told):
        document.read(text)
