"""Paths: what each form reads, what is refused, and that the fast reader reads as the general one does."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.languages.jsonpath import NoMatch, Path, PathError, compile_path, general
from muster.languages.jsonpath.parser import parse

DOCUMENT: dict[str, Any] = {
    "store": {
        "books": [
            {"title": "Sayings", "price": 8.95, "tags": ["old"]},
            {"title": "Sword", "price": 12.99, "isbn": "0-553"},
            {"title": "Moby", "price": 8.99, "isbn": "0-395", "tags": []},
        ],
        "open": True,
    },
    "delivery-partner": "bike",
    "empty": None,
    "def ghi": 1,
    "status": "0",
    'Test\\""Name"': "escaped",
    "a.b": {"it's": 5},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$", DOCUMENT),
        ("$.store.open", True),
        ("$['store']['open']", True),
        ('$["store"].open', True),
        ("$.['def ghi']", 1),
        ("$['a.b']['it\\'s']", 5),
        ("$.delivery-partner", "bike"),
        ("$.empty", None),
        ("$.store.books[0].title", "Sayings"),
        ("$.store.books[-1].title", "Moby"),
        ("$.store.books[1:].title", ["Sword", "Moby"]),
        ("$.store.books[:1].title", ["Sayings"]),
        ("$.store.books[-2:-1].title", ["Sword"]),
        ("$.store.books[0,2].title", ["Sayings", "Moby"]),
        ("$.store.books[7,2].title", ["Moby"]),
        ("$.store.books[*].isbn", ["0-553", "0-395"]),
        ("$.store.books[*].tags[*]", ["old"]),
        ("$..isbn", ["0-553", "0-395"]),
        ("$..tags[0]", ["old"]),
        ("$.store.books[9].title[*]", []),
        ("$.store.open[*]", []),
        ("$.store.books[0]['title','price']", {"title": "Sayings", "price": 8.95}),
        ("$.store.books[*]['isbn']", ["0-553", "0-395"]),
        ("$.store.books.length()", 3),
        ("$.store.books[*].price.max()", 12.99),
        ("$.store.keys()", ["books", "open"]),
        ("$.store.books.last()", DOCUMENT["store"]["books"][2]),
    ],
)
def test_path_reads(path: str, value: Any) -> None:
    assert compile_path(path).read(DOCUMENT) == value


@pytest.mark.parametrize(
    ("condition", "titles"),
    [
        ("@.isbn", ["Sword", "Moby"]),
        ("!@.isbn", ["Sayings"]),
        ("!(@.isbn)", ["Sayings"]),
        ("@.price < 9", ["Sayings", "Moby"]),
        ("@.price >= 8.99 && @.isbn", ["Sword", "Moby"]),
        ("@.price == 8.95 || @.title == 'Moby'", ["Sayings", "Moby"]),
        ("(@.price > 8.95 && @.price < 9) || @.title == 'Sword'", ["Sword", "Moby"]),
        ('@.title != "Sword"', ["Sayings", "Moby"]),
        ("@.isbn != '0-553'", ["Sayings", "Moby"]),
        ("@.title =~ /s.*/i", ["Sayings", "Sword"]),
        ("@.title =~ /Mob/", []),
        ("@.title in ['Moby', 'Emma']", ["Moby"]),
        ("@.title nin ['Moby']", ["Sayings", "Sword"]),
        ("@.tags contains 'old'", ["Sayings"]),
        ("@.tags size 0", ["Moby"]),
        ("@.tags empty true", ["Moby"]),
        ("@['price'] < $.limit", []),
        ("@.price == '8.95'", ["Sayings"]),
        ("@.tags == ['old']", ["Sayings"]),
        ("@.tags.length() == 1", ["Sayings"]),
        ("8.95 == @.price", ["Sayings"]),
        ("@.missing == null", []),
    ],
)
def test_filter_selects(condition: str, titles: list[str]) -> None:
    assert compile_path(f"$.store.books[?({condition})].title").read(DOCUMENT) == titles


def test_filter_after_descent_tests_every_object_once() -> None:
    assert compile_path("$..[?(@.price > 10)].title").read(DOCUMENT) == ["Sword"]


def test_filter_of_an_object_tests_the_object() -> None:
    assert compile_path("$.store[?(@.open == true)].open").read(DOCUMENT) == [True]


def test_filter_answers_what_aws_was_recorded_to_answer() -> None:
    users = {"users": [{"year": 1997, "status": 0}, {"year": 1998, "status": 1}]}
    assert compile_path("$.users[?(@.status == 0)]").read(users) == [{"year": 1997, "status": 0}]


def test_backslash_in_a_quoted_name_escapes_only_the_quote_as_recorded_on_aws() -> None:
    assert compile_path('$[\'Test\\""Name"\']').read(DOCUMENT) == "escaped"


@pytest.mark.parametrize(
    "path",
    [
        "$.nope.deep",
        "$.nope",
        "$.empty.x",
        "$.store.books.title",
        "$.store.books[3]",
        "$.store.books[-4]",
        "$.store[0]",
        "$.status[0]",
        "$.nope[*]",
        "$.nope[?(@.a)]",
        "$.store.open[1:2]",
        "$.store.open.length()",
    ],
)
def test_place_that_is_not_there_is_no_match(path: str) -> None:
    with pytest.raises(NoMatch) as refused:
        compile_path(path).read(DOCUMENT)
    assert refused.value.text == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "$.",
        "$..",
        "$.a.",
        "$.a b",
        "$a b",
        "$[",
        "$[]",
        "$[a]",
        "$['a",
        "$['a'",
        "$[1",
        "$[1:2:3]",
        "$[?]",
        "$[?(@.a]",
        "$[?(1)]",
        "$[?(@.a ==)]",
        "$[?(@.a =~ /(/)]",
        "$.a.nosuch()",
        "$.a.length(",
        "$.a.length().b",
        "$[?(" + "(" * 50 + "@.a" + ")" * 50 + ")]",
        "$" + ".a" * 20_000,
    ],
)
def test_text_that_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(PathError):
        compile_path(path)


@pytest.mark.parametrize(
    ("path", "root"), [("$", "$"), ("$.a", "$"), ("$$", "$$"), ("$$.Map.Item", "$$"), ("$x", "x"), ("$x_1[0].b", "x_1")]
)
def test_path_says_where_it_starts(path: str, root: str) -> None:
    assert compile_path(path).root == root


@pytest.mark.parametrize(
    ("path", "definite"),
    [
        ("$.a[0]['b']", True),
        ("$", True),
        ("$.a[*]", False),
        ("$..a", False),
        ("$.a[0:1]", False),
        ("$['a','b']", False),
    ],
)
def test_path_says_whether_it_names_one_place(path: str, definite: bool) -> None:
    assert compile_path(path).definite is definite


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "0"]), inner, max_size=3),
    max_leaves=12,
)
plain_steps = st.lists(st.sampled_from([".a", ".b", "['0']", "[0]", "[1]", "[-1]"]), max_size=4)
any_steps = st.lists(
    st.sampled_from(
        [
            ".a",
            "['b']",
            "[0]",
            "[-1]",
            "[*]",
            ".*",
            "..a",
            "..*",
            "[0,1]",
            "[:1]",
            "['a','b']",
            "[?(@.a)]",
            "[?(@ == 1)]",
        ]
    ),
    max_size=4,
)


def read(path: Path, document: Any) -> Any:
    try:
        return ("value", path.read(document))
    except NoMatch:
        return "no match"


@given(steps=plain_steps, document=json_values)
def test_fast_reader_reads_as_the_general_one(steps: list[str], document: Any) -> None:
    text = "$" + "".join(steps)
    path = compile_path(text)
    assert path.definite
    slow = Path(text, parse(text))
    slow.read = general(text, parse(text))
    assert read(path, document) == read(slow, document)


@given(steps=any_steps, document=json_values)
def test_reading_any_document_gives_a_value_or_no_match(steps: list[str], document: Any) -> None:
    read(compile_path("$" + "".join(steps)), document)


@given(text=st.text(max_size=30) | st.text(alphabet="$@.[]()?*'\"\\,:a0 !&|=<>~/-", max_size=30).map("$".__add__))
def test_any_text_is_a_path_or_a_path_error(text: str) -> None:
    try:
        path = compile_path(text)
    except PathError:
        return
    read(path, DOCUMENT)
