"""Patterns: what each operator means, and what is refused."""

import json
from typing import Any

import pytest

from muster.languages.patterns import InvalidPattern, Pattern


def matches(pattern: dict[str, Any], event: dict[str, Any]) -> bool:
    return Pattern(json.dumps(pattern)).matches(event)


def reason(text: str) -> str:
    with pytest.raises(InvalidPattern) as refused:
        Pattern(text)
    return refused.value.reason.splitlines()[0]


@pytest.mark.parametrize("inner", [{"prefix": "TEST-"}, {"suffix": "-1"}, {"wildcard": "TEST*1"}])
def test_anything_but_with_an_inner_operator_filters(inner: dict[str, str]) -> None:
    pattern = {"detail": {"id": [{"anything-but": inner}]}}
    assert not matches(pattern, {"detail": {"id": "TEST-1"}})
    assert matches(pattern, {"detail": {"id": "PROD-42"}})


def test_null_is_a_value_for_anything_but_and_an_absent_field_is_none() -> None:
    pattern = {"detail": {"command": [{"anything-but": ["no-message"]}]}}
    assert matches(pattern, {"detail": {"command": None}})
    assert not matches(pattern, {"detail": {}})


def test_top_level_or_is_honoured() -> None:
    pattern = {"$or": [{"source": ["aws.ec2"]}, {"source": ["aws.s3"]}]}
    assert matches(pattern, {"source": "aws.s3"})
    assert not matches(pattern, {"source": "my.app"})


def test_unknown_top_level_names_never_widen_a_pattern() -> None:
    assert not matches({"sauce": ["a"]}, {"source": "a"})


def test_unknown_operators_are_refused() -> None:
    assert reason('{"a": [{"regex": "x"}]}') == "Unrecognized match type regex"
    assert reason('{"a": [{"anything-but": {"regex": "x"}}]}') == "Unsupported anything-but pattern: regex"


def test_leaves_of_one_match_lie_in_the_same_array_element() -> None:
    pattern = {"people": {"first": ["Anna"], "last": ["Jones"]}}
    assert not matches(pattern, {"people": [{"first": "Anna", "last": "Smith"}, {"first": "Bob", "last": "Jones"}]})
    assert matches(pattern, {"people": [{"first": "Anna", "last": "Smith"}, {"first": "Anna", "last": "Jones"}]})


def test_numbers_are_equal_by_value_and_never_equal_texts_or_booleans() -> None:
    assert matches({"n": [300]}, {"n": 3.0e2})
    assert not matches({"n": [300]}, {"n": "300"})
    assert not matches({"n": [1]}, {"n": True})
    assert not matches({"n": [False]}, {"n": 0})


def test_exists_sees_leaves_only() -> None:
    assert not matches({"a": [{"exists": True}]}, {"a": {"b": 1}})
    assert matches({"a": [{"exists": False}]}, {"a": []})


@pytest.mark.parametrize(
    ("form", "text", "fits"),
    [
        ("a*b", "ab", True),
        ("a*b", "a", False),
        ("*aba*aba", "ababa", False),
        ("a\\*b", "a*b", True),
        ("a\\*b", "axb", False),
        ("*", "", True),
        ("ab*bc", "abc", False),
    ],
)
def test_wildcards(form: str, text: str, fits: bool) -> None:
    assert matches({"a": [{"wildcard": form}]}, {"a": text}) is fits


def test_a_hostile_wildcard_is_quick() -> None:
    assert not matches({"a": [{"wildcard": "a*" * 8 + "b"}]}, {"a": "a" * 100_000})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "Filter is not an object"),
        ("{}", "Empty objects are not allowed"),
        ('{"a": "b"}', '"a" must be an object or an array'),
        ('{"a": [["b"]]}', "Match value must be String, number, true, false, or null"),
        ('{"a": [{"wildcard": "a**"}]}', "Consecutive wildcard characters at pos 2"),
        ('{"a": [{"numeric": ["<", 9e9]}]}', "Value must be between -5.0E9 and 5.0E9, inclusive, got 9000000000.0"),
        (
            '{"$or": [{"prefix": ["a"]}, {"b": [1]}]}',
            "prefix is Ruler reserved fieldName which cannot be used inside $or.",
        ),
        ("{'a': 1}", "Unexpected character (''' (code 39)): was expecting double-quote to start field name"),
    ],
)
def test_what_is_wrong_is_said_as_eventbridge_says_it(text: str, said: str) -> None:
    assert reason(text) == said
