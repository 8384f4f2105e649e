"""An index over many patterns answers as each pattern would alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.languages.patterns import Index, Pattern
from muster.languages.patterns.event import Fields
from muster.languages.patterns.match import holds
from muster.languages.patterns.parse import Alternative

names = st.sampled_from(["a", "b", "c"])
texts = st.sampled_from(["", "a", "ab", "aB", "abc", "ba", "10.0.0.1", "::1"])
scalars = st.one_of(texts, st.sampled_from([0, 1, 1.0, 2.5, -3]), st.booleans(), st.none())
strings = st.sampled_from(["a", "ab", "b", "Ba", "abc"])
forms = st.sampled_from(["*", "a*", "*b", "a*c", "ab", "*b*"])

operators = st.one_of(
    scalars,
    st.fixed_dictionaries({"prefix": texts}),
    st.fixed_dictionaries({"suffix": texts}),
    st.fixed_dictionaries({"prefix": st.fixed_dictionaries({"equals-ignore-case": strings})}),
    st.fixed_dictionaries({"equals-ignore-case": texts}),
    st.fixed_dictionaries({"wildcard": forms}),
    st.fixed_dictionaries({"exists": st.booleans()}),
    st.fixed_dictionaries({"anything-but": st.lists(strings, min_size=1, max_size=2)}),
    st.fixed_dictionaries({"anything-but": st.fixed_dictionaries({"suffix": strings})}),
    st.sampled_from([{"numeric": [">", 0]}, {"numeric": ["=", 1]}, {"numeric": [">=", -3, "<", 2]}]),
    st.just({"cidr": "10.0.0.0/24"}),
)
questions = st.lists(operators, min_size=1, max_size=3)
objects = st.dictionaries(names, st.one_of(questions, st.dictionaries(names, questions, min_size=1)), min_size=1)
patterns = st.one_of(
    objects,
    st.tuples(objects, st.lists(objects, min_size=2, max_size=3)).map(lambda both: {**both[0], "$or": both[1]}),
)
events = st.dictionaries(
    names,
    st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
        max_leaves=8,
    ),
)


@given(st.lists(patterns, max_size=8), st.lists(events, min_size=1, max_size=4))
def test_index_answers_as_each_pattern_alone(asked: list[dict[str, Any]], seen: list[dict[str, Any]]) -> None:
    compiled = [Pattern(json.dumps(pattern)) for pattern in asked]
    index = Index(enumerate(compiled))
    for event in seen:
        assert index.matching(event) == [number for number, pattern in enumerate(compiled) if pattern.matches(event)]


def test_matching_asks_only_the_patterns_that_could_match(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def counted(alternative: Alternative, found: Fields) -> bool:
        nonlocal asked
        asked += 1
        return holds(alternative, found)

    monkeypatch.setattr("muster.languages.patterns.index.holds", counted)
    rules = [
        (number, Pattern(json.dumps({"source": ["app"], "detail": {"key": [{"prefix": f"in/{number:04}/"}]}})))
        for number in range(1000)
    ]
    event = {"source": "app", "detail": {"key": "in/0007/file.csv"}}
    assert Index(rules).matching(event) == [7]
    assert asked == 1
