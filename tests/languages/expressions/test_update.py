"""Updates, projections and key conditions."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.languages import expressions
from muster.languages.expressions import ExpressionError, Placeholders, placeholders
from muster.languages.expressions.value import AttributeValue, Item, normal_item


def applied(text: str, item: dict[str, Any], values: dict[str, Any] | None = None) -> Item:
    beside = placeholders.read(None, values, {"UpdateExpression": text})
    return expressions.update(text, beside).applied(normal_item(item), beside.values)


def refusal(text: str, item: dict[str, Any], values: dict[str, Any] | None = None) -> str:
    with pytest.raises(ExpressionError) as caught:
        applied(text, item, values)
    return caught.value.message


def numbers(*members: int) -> dict[str, Any]:
    return {"L": [{"N": str(member)} for member in members]}


ONE = {":v": {"N": "1"}}


@pytest.mark.parametrize(
    ("text", "item", "values", "after"),
    [
        ("SET a = :v", {}, ONE, {"a": {"N": "1"}}),
        ("SET a = a + :v", {"a": {"N": "0.5"}}, ONE, {"a": {"N": "1.5"}}),
        ("SET a = if_not_exists(a, :z) - :v", {}, {**ONE, ":z": {"N": "0"}}, {"a": {"N": "-1"}}),
        ("SET a = list_append(a, :l)", {"a": numbers(1)}, {":l": numbers(2)}, {"a": numbers(1, 2)}),
        ("SET a = b, b = a", {"a": {"N": "1"}, "b": {"N": "2"}}, None, {"a": {"N": "2"}, "b": {"N": "1"}}),
        ("SET a[9] = :v, a[8] = :w", {"a": numbers(0)}, {**ONE, ":w": {"N": "5"}}, {"a": numbers(0, 5, 1)}),
        ("SET m.x[0].y = :v", {"m": {"M": {"x": {"L": [{"M": {}}]}}}}, ONE,
         {"m": {"M": {"x": {"L": [{"M": {"y": {"N": "1"}}}]}}}}),
        ("SET a = (a + :v)", {"a": {"N": "1"}}, ONE, {"a": {"N": "2"}}),
        ("REMOVE a[0], a[2]", {"a": numbers(0, 1, 2, 3)}, None, {"a": numbers(1, 3)}),
        ("REMOVE a, zz", {"a": numbers(0)}, None, {}),
        ("ADD a :v", {}, ONE, {"a": {"N": "1"}}),
        ("ADD a :v", {"a": {"N": "41"}}, ONE, {"a": {"N": "42"}}),
        ("ADD s :s", {"s": {"SS": ["x"]}}, {":s": {"SS": ["x", "a"]}}, {"s": {"SS": ["a", "x"]}}),
        ("DELETE s :s", {"s": {"SS": ["x", "y"]}}, {":s": {"SS": ["x"]}}, {"s": {"SS": ["y"]}}),
        ("DELETE s :s", {"s": {"SS": ["x"]}}, {":s": {"SS": ["x"]}}, {}),
        ("DELETE s :s", {}, {":s": {"SS": ["x"]}}, {}),
        ("set a = :v remove b add c :v", {"b": {"N": "1"}}, ONE, {"a": {"N": "1"}, "c": {"N": "1"}}),
    ],
)  # fmt: skip
def test_update_brings_about(text: str, item: dict[str, Any], values: dict[str, Any] | None, after: Any) -> None:
    assert applied(text, item, values) == after


@pytest.mark.parametrize(
    ("text", "item", "values", "message"),
    [
        ("SET a.b = :v", {}, ONE, "The document path provided in the update expression is invalid for update"),
        ("SET a[0] = :v", {"a": {"N": "1"}}, ONE,
         "The document path provided in the update expression is invalid for update"),
        ("SET a = b", {}, None, "The provided expression refers to an attribute that does not exist in the item"),
        ("SET a = a + :v", {"a": {"S": "x"}}, ONE, "An operand in the update expression has an incorrect data type"),
        ("ADD a :v", {"a": {"S": "x"}}, ONE, "An operand in the update expression has an incorrect data type"),
        ("SET a = :v SET b = :v", {}, ONE,
         'Invalid UpdateExpression: The "SET" section can only be used once in an update expression;'),
        ("SET a = :v, a.b = :v", {}, ONE,
         "Invalid UpdateExpression: Two document paths overlap with each other; "
         "must remove or rewrite one of these paths; path one: [a], path two: [a, b]"),
        ("SET a[0] = :v, a.b = :v", {}, ONE,
         "Invalid UpdateExpression: Two document paths conflict with each other; "
         "must remove or rewrite one of these paths; path one: [a, [0]], path two: [a, b]"),
        ("SET a = attribute_exists(b)", {}, None,
         "Invalid UpdateExpression: The function is not allowed in an update expression; function: attribute_exists"),
        ("ADD a :v", {}, {":v": {"S": "x"}},
         "Invalid UpdateExpression: Incorrect operand type for operator or function; operator: ADD, "
         "operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND"),
        ("SET a = a + :v", {}, {":v": {"S": "x"}},
         "Invalid UpdateExpression: Incorrect operand type for operator or function; "
         "operator or function: +, operand type: S"),
        ("INVALID SYNTAX HERE", {}, None,
         'Invalid UpdateExpression: Syntax error; token: "INVALID", near: "INVALID SYNTAX"'),
        ("ADD hits : incr", {}, None, 'Invalid UpdateExpression: Syntax error; token: ":", near: "hits : incr"'),
        ("SET a = :v,", {}, ONE, 'Invalid UpdateExpression: Syntax error; token: "<EOF>", near: ","'),
        ("", {}, None, "Invalid UpdateExpression: The expression can not be empty;"),
    ],
)  # fmt: skip
def test_update_is_refused(text: str, item: dict[str, Any], values: dict[str, Any] | None, message: str) -> None:
    assert refusal(text, item, values) == message


def test_update_leaves_the_item_it_was_given_as_it_was() -> None:
    item = normal_item({"a": {"L": [{"N": "1"}]}, "m": {"M": {"x": {"N": "1"}}}})
    before = normal_item(item)
    beside = Placeholders({}, {":v": {"N": "2"}})
    expressions.update("SET a[0] = :v, m.x = :v REMOVE m.y", beside).applied(item, beside.values)
    assert item == before


# The naive model: documents of Python dicts and lists, updated at random paths.

KEYS = ["aa", "bb"]
DOCUMENTS = st.recursive(
    st.integers(0, 9),
    lambda inner: st.one_of(st.dictionaries(st.sampled_from(KEYS), inner), st.lists(inner, max_size=3)),
    max_leaves=8,
)
PATHS = st.tuples(st.sampled_from(KEYS), st.lists(st.one_of(st.sampled_from(KEYS), st.integers(0, 3)), max_size=3)).map(
    lambda parts: [parts[0], *parts[1]]
)


def as_value(document: Any) -> AttributeValue:
    if isinstance(document, dict):
        return {"M": {name: as_value(inner) for name, inner in document.items()}}
    if isinstance(document, list):
        return {"L": [as_value(inner) for inner in document]}
    return {"N": str(document)}


def as_text(path: list[str | int]) -> str:
    return str(path[0]) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path[1:])


def fits(container: Any, part: str | int) -> bool:
    return isinstance(container, list if isinstance(part, int) else dict)


@settings(deadline=None, max_examples=300)
@given(st.dictionaries(st.sampled_from(KEYS), DOCUMENTS), PATHS, st.booleans())
def test_updates_at_random_paths_agree_with_a_naive_model(
    document: dict[str, Any], path: list[str | int], removes: bool
) -> None:
    before = as_value(document)["M"]
    text = f"REMOVE {as_text(path)}" if removes else f"SET {as_text(path)} = :v"
    beside = Placeholders({}, {} if removes else {":v": {"N": "77"}})
    compiled = expressions.update(text, beside)
    container: Any = document
    try:
        for part in path[:-1]:
            if not fits(container, part):
                raise KeyError(part)
            container = container[part]
        if not fits(container, path[-1]):
            raise KeyError(path[-1])
    except (KeyError, IndexError):
        with pytest.raises(ExpressionError, match="document path"):
            compiled.applied(before, beside.values)
        return
    last = path[-1]
    if isinstance(container, list):
        assert isinstance(last, int)
        container[last : last + 1] = [] if removes else [77]
    elif removes:
        container.pop(last, None)
    else:
        container[last] = 77
    assert compiled.applied(before, beside.values) == as_value(document)["M"]


def projected(text: str, item: dict[str, Any]) -> Item:
    return expressions.projection(text, Placeholders()).of(normal_item(item))


def test_projection_keeps_the_shape_and_closes_gaps_in_lists() -> None:
    item = {"a": {"N": "1"}, "m": {"M": {"x": numbers(0, 1, 2, 3), "y": {"N": "2"}}}}
    assert projected("a, m.x[3], m.x[1], zz, m.q", item) == {
        "a": {"N": "1"},
        "m": {"M": {"x": numbers(1, 3)}},
    }


def test_projection_of_nothing_that_exists_is_empty() -> None:
    assert projected("zz, a.b", {"a": {"N": "1"}}) == {}
    assert projected("a[1]", {"a": numbers(1)}) == {}


def test_projection_with_overlapping_paths_is_refused() -> None:
    with pytest.raises(ExpressionError, match=r"path one: \[a, b\], path two: \[a\]"):
        projected("a.b, a", {})


def key_tests(text: str) -> Any:
    values: dict[str, AttributeValue] = {":h": {"S": "x"}, ":r": {"N": "1"}, ":s": {"N": "2"}}
    used = {name: value for name, value in values.items() if name in text}
    return expressions.key_condition(text, Placeholders({}, used))[1]


def test_key_condition_is_fitted_to_the_schema() -> None:
    partition, sort = expressions.fitted(key_tests("(rr BETWEEN :r AND :s) AND hh = :h"), "hh", "rr")
    assert partition == {"S": "x"}
    assert sort is not None
    assert (sort.operator, sort.bounds) == ("BETWEEN", ({"N": "1"}, {"N": "2"}))
    assert expressions.fitted(key_tests(":h = hh"), "hh", None) == ({"S": "x"}, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hh = :h OR rr = :r", "Invalid operator used in KeyConditionExpression: OR"),
        ("hh = :h AND contains(rr, :r)", "Invalid operator used in KeyConditionExpression: contains"),
        ("hh = :h AND rr <> :r", "Invalid operator used in KeyConditionExpression: <>"),
        ("hh = :h AND hh = :r", "KeyConditionExpressions must only contain one condition per key"),
        ("hh = rr", "Multiple attribute names used in one condition"),
    ],
)
def test_key_condition_is_refused(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        key_tests(text)
    assert caught.value.message == f"Invalid KeyConditionExpression: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rr = :r", "Query condition missed key schema element: hh"),
        ("hh > :h", "Query key condition not supported"),
        ("hh = :h AND qq = :r", "Query condition missed key schema element: rr"),
    ],
)
def test_key_condition_that_does_not_fit_is_refused(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        expressions.fitted(key_tests(text), "hh", "rr")
    assert caught.value.message == message
