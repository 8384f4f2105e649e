"""Matching compared with definitions that are slow and plain."""

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from muster.languages.patterns import Pattern
from muster.languages.patterns.event import fields

names = st.sampled_from(["a", "b", "c"])
numbers = st.integers(0, 2)
events = st.dictionaries(
    names,
    st.recursive(
        numbers,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
        max_leaves=14,
    ),
)


def by_definition(asked: dict[str, int], event: dict[str, Any]) -> bool:
    """Some choice of one leaf per path has the values asked for and no array with two elements."""
    found = fields(event)
    choices = [[place for value, place in found.get(path, []) if value == number] for path, number in asked.items()]
    for chosen in itertools.product(*choices):
        steps = {step for place in chosen for step in place}
        if len({array for array, _ in steps}) == len(steps):
            return True
    return False


@given(st.dictionaries(st.sampled_from(["a", "b", "a.b", "a.c", "b.a", "a.b.c"]), numbers, min_size=1), events)
def test_array_consistency_is_as_defined(asked: dict[str, int], event: dict[str, Any]) -> None:
    pattern = Pattern(json.dumps({path: [number] for path, number in asked.items()}))
    assert pattern.matches(event) is by_definition(asked, event)


def fits(form: str, text: str) -> bool:
    if not form:
        return not text
    if form[0] == "*":
        return fits(form[1:], text) or (text != "" and fits(form, text[1:]))
    return text != "" and form[0] == text[0] and fits(form[1:], text[1:])


@given(st.text("ab*", max_size=8).filter(lambda form: "**" not in form), st.text("ab", max_size=10))
def test_wildcards_match_as_defined(form: str, text: str) -> None:
    pattern = Pattern(json.dumps({"a": [{"wildcard": form}]}))
    assert pattern.matches({"a": text}) is fits(form, text)


def test_long_arrays_are_matched_in_little_time() -> None:
    pattern = Pattern(json.dumps({"x": {name: [{"exists": True}] for name in "abcd"}}))
    element = [{"a": 1, "b": 1}, {"c": 1, "d": 1}]
    assert not pattern.matches({"x": element * 20_000})
    assert pattern.matches({"x": [*element * 20_000, {"a": 1, "b": 1, "c": 1, "d": 1}]})
