"""Reference paths: where a value is written, and that nothing else changes."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.languages.jsonpath import NoMatch, PathError, Unwritable, compile_path, compile_reference


@pytest.mark.parametrize(
    ("path", "document", "result"),
    [
        ("$", {"a": 1}, "new"),
        ("$.b", {"a": 1}, {"a": 1, "b": "new"}),
        ("$.a", {"a": 1}, {"a": "new"}),
        ("$.a.b.c", {}, {"a": {"b": {"c": "new"}}}),
        ("$.a.b", {"a": {"c": 1}}, {"a": {"c": 1, "b": "new"}}),
        ("$['x y'].z", {}, {"x y": {"z": "new"}}),
        ("$.a[1]", {"a": [1, 2]}, {"a": [1, "new"]}),
        ("$.a[0].b", {"a": [{}]}, {"a": [{"b": "new"}]}),
        ("$[0]", [1], ["new"]),
    ],
)
def test_value_is_written(path: str, document: Any, result: Any) -> None:
    before = copy.deepcopy(document)
    assert compile_reference(path).write(document, "new") == result
    assert document == before


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("$.a", "text"),
        ("$.a", None),
        ("$.a", [1]),
        ("$.a.b", {"a": 5}),
        ("$.a.b", {"a": None}),
        ("$.a[0]", {}),
        ("$.a[0]", {"a": []}),
        ("$.a[2]", {"a": [1]}),
        ("$$.a", {}),
        ("$x.a", {}),
    ],
)
def test_place_that_cannot_be_written_is_refused(path: str, document: Any) -> None:
    with pytest.raises(Unwritable):
        compile_reference(path).write(document, 1)


@pytest.mark.parametrize("path", ["$.a[*]", "$..a", "$.a[0:1]", "$.a[?(@.b)]", "$['a','b']", "$.a.length()", "a"])
def test_reference_names_one_place(path: str) -> None:
    with pytest.raises(PathError):
        compile_reference(path)


values = st.recursive(
    st.integers(0, 2),
    lambda inner: st.dictionaries(st.sampled_from("ab"), inner, max_size=2) | st.lists(inner, max_size=2),
    max_leaves=8,
)


@given(document=values, value=values, steps=st.lists(st.sampled_from([".a", ".b", "[0]", "[-1]"]), max_size=4))
def test_what_was_written_is_read_and_the_document_is_as_before(document: Any, value: Any, steps: list[str]) -> None:
    path = "$" + "".join(steps)
    before = copy.deepcopy(document)
    try:
        result = compile_reference(path).write(document, value)
    except Unwritable:
        with pytest.raises(NoMatch):
            compile_path(path).read(document)
    else:
        assert compile_path(path).read(result) == value
    assert document == before
