"""Conditions and filters: what they mean, and what is refused with which words."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.languages import expressions
from muster.languages.expressions import ExpressionError, placeholders
from muster.languages.expressions.value import normal, normal_item


def holds(text: str, item: dict[str, Any], values: dict[str, Any] | None = None, **names: str) -> bool:
    named = {f"#{name}": target for name, target in names.items()}
    given_beside = placeholders.read(named or None, values, {"ConditionExpression": text})
    condition = expressions.condition(text, given_beside)
    given_beside.all_used([condition])
    return expressions.holds(condition, normal_item(item), given_beside.values)


def refusal(text: str, values: dict[str, Any] | None = None, **names: str) -> str:
    with pytest.raises(ExpressionError) as caught:
        holds(text, {}, values, **names)
    return caught.value.message


ITEM: dict[str, Any] = {
    "a": {"N": "5"},
    "b": {"S": "hello"},
    "c": {"SS": ["x", "y"]},
    "d": {"M": {"e": {"L": [{"N": "1"}, {"S": "two"}]}}},
    "f": {"B": b"\x01\x02"},
    "g": {"NULL": True},
}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a = :v", {":v": {"N": "5.0"}}),
        ("a > :v", {":v": {"N": "-10"}}),
        ("a between :v and :w", {":v": {"N": "5"}, ":w": {"N": "50"}}),
        ("a IN (:v, :w)", {":v": {"N": "1"}, ":w": {"N": "5"}}),
        ("b <> :v", {":v": {"N": "5"}}),
        ("gone <> :v", {":v": {"N": "5"}}),
        ("NOT gone = :v", {":v": {"N": "5"}}),
        ("attribute_exists(d.e[1]) AND attribute_not_exists(d.e[2])", None),
        ("attribute_type(g, :v)", {":v": {"S": "NULL"}}),
        ("begins_with(b, :v)", {":v": {"S": "hel"}}),
        ("contains(b, :v) AND contains(c, :w)", {":v": {"S": "ell"}, ":w": {"S": "y"}}),
        ("contains(d.e, :v)", {":v": {"N": "1"}}),
        ("size(b) = :v AND size(d.e) < :v", {":v": {"N": "5"}}),
        ("(a = :v) OR (b = :v)", {":v": {"N": "5"}}),
        ("((a = :v OR b = :v) AND c <> :v) OR attribute_exists(zz)", {":v": {"N": "5"}}),
        ("(a) = (:v)", {":v": {"N": "5"}}),
        ("(size(c)) >= :v", {":v": {"N": "2"}}),
        (":v = a", {":v": {"N": "5"}}),
    ],
)
def test_condition_holds(text: str, values: dict[str, Any] | None) -> None:
    assert holds(text, ITEM, values)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a = :v", {":v": {"S": "5"}}),
        ("a < :v", {":v": {"S": "6"}}),
        ("gone < :v", {":v": {"N": "6"}}),
        ("begins_with(a, :v)", {":v": {"S": "5"}}),
        ("size(a) = :v", {":v": {"N": "1"}}),
        ("gone IN (:v)", {":v": {"N": "1"}}),
        ("attribute_exists(b.c)", None),
        ("NOT attribute_exists(a) AND attribute_exists(b)", None),
    ],
)
def test_condition_does_not_hold(text: str, values: dict[str, Any] | None) -> None:
    assert not holds(text, ITEM, values)


def test_and_binds_tighter_than_or_and_not_tighter_than_and() -> None:
    true, false = "attribute_exists(a)", "attribute_exists(zz)"
    assert holds(f"{true} OR {false} AND {false}", ITEM)
    assert holds(f"NOT {false} AND {true}", ITEM)
    assert not holds(f"NOT ({false} OR {true})", ITEM)


def test_name_placeholders_reach_reserved_and_dotted_attributes() -> None:
    assert holds("#n = :v", {"name": {"S": "x"}}, {":v": {"S": "x"}}, n="name")
    assert holds("#n = :v", {"a.b": {"S": "x"}}, {":v": {"S": "x"}}, n="a.b")


V = {":v": {"N": "1"}}


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("a = :v b", V, 'Syntax error; token: "b", near: ":v b"'),
        ("a =", None, 'Syntax error; token: "<EOF>", near: "="'),
        ("a : v", None, 'Syntax error; token: ":", near: "a : v"'),
        ("a", None, 'Syntax error; token: "<EOF>", near: "a"'),
        (" ", None, "The expression can not be empty;"),
        ("((a = :v))", V, "The expression has redundant parentheses;"),
        ("name = :v", V, "Attribute name is a reserved keyword; reserved keyword: name"),
        ("foo(a)", None, "Invalid function name; function: foo"),
        (
            "if_not_exists(a, b)",
            None,
            "The function is not allowed in a condition expression; function: if_not_exists",
        ),
        (
            "size(a)",
            None,
            "The function is not allowed to be used this way in an expression; function: size",
        ),
        (
            "attribute_exists(a, b)",
            None,
            "Incorrect number of operands for operator or function; "
            "operator or function: attribute_exists, number of operands: 2",
        ),
        (
            "attribute_exists(:v)",
            V,
            "Operator or function requires a document path; operator or function: attribute_exists",
        ),
        (
            "#x = :v",
            V,
            "An expression attribute name used in the document path is not defined; attribute name: #x",
        ),
        ("a = :w", None, "An expression attribute value used in expression is not defined; attribute value: :w"),
        (
            "a = a",
            None,
            "The first operand must be distinct from the remaining operands for this operator or function; "
            "operator: =, first operand: [a]",
        ),
        (
            "begins_with(a, :v)",
            V,
            "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N",
        ),
        (
            "a < :v",
            {":v": {"BOOL": True}},
            "Incorrect operand type for operator or function; operator: <, operand type: BOOL",
        ),
        (
            "a BETWEEN :v AND :w",
            {":v": {"N": "2"}, ":w": {"N": "1"}},
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
            "lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}",
        ),
        (
            "attribute_type(a, :v)",
            {":v": {"S": "X"}},
            "Invalid attribute type name found; type: X, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}",
        ),
    ],
)
def test_condition_is_refused_in_the_words_of_aws(text: str, values: dict[str, Any] | None, message: str) -> None:
    assert refusal(text, values) == f"Invalid ConditionExpression: {message}"


def test_placeholders_that_nothing_uses_are_refused() -> None:
    assert refusal("attribute_exists(a)", V) == (
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:v}"
    )
    assert refusal("attribute_exists(a)", None, n="x") == (
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#n}"
    )


# The naive model: a condition as a nested tuple, evaluated with Python's own words on an item of plain numbers.

ATTRIBUTES = st.sampled_from(["aa", "bb", "cc"])
COMPARISONS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
LEAVES = st.one_of(
    st.tuples(st.just("cmp"), ATTRIBUTES, COMPARISONS, st.integers(0, 3)),
    st.tuples(st.just("exists"), ATTRIBUTES),
    st.tuples(st.just("in"), ATTRIBUTES, st.lists(st.integers(0, 3), min_size=1, max_size=3)),
    st.tuples(st.just("between"), ATTRIBUTES, st.integers(0, 1), st.integers(1, 3)),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.just("and"), inner, inner),
        st.tuples(st.just("or"), inner, inner),
    ),
    max_leaves=12,
)
STRENGTH = {"or": 1, "and": 2, "not": 3}


def written(node: Any, outside: int = 0) -> str:
    match node:
        case ("cmp", name, sign, number):
            return f"{name} {sign} :v{number}"
        case ("exists", name):
            return f"attribute_exists({name})"
        case ("in", name, numbers):
            return f"{name} IN ({', '.join(f':v{number}' for number in numbers)})"
        case ("between", name, low, high):
            return f"{name} BETWEEN :v{low} AND :v{high}"
        case ("not", inner):
            return f"NOT {written(inner, 3)}"
        case (word, left, right):
            strength = STRENGTH[word]
            text = f"{written(left, strength)} {word.upper()} {written(right, strength + 1)}"
            return f"({text})" if strength < outside else text
    raise AssertionError(node)


def truth(node: Any, item: dict[str, int]) -> bool:
    match node:
        case ("cmp", name, sign, number):
            value = item.get(name)
            if value is None:
                return bool(sign == "<>")
            return bool(
                {
                    "=": value == number,
                    "<>": value != number,
                    "<": value < number,
                    "<=": value <= number,
                    ">": value > number,
                    ">=": value >= number,
                }[sign]
            )
        case ("exists", name):
            return name in item
        case ("in", name, numbers):
            return item.get(name) in numbers
        case ("between", name, low, high):
            return name in item and low <= item[name] <= high
        case ("not", inner):
            return not truth(inner, item)
        case ("and", left, right):
            return truth(left, item) and truth(right, item)
        case (_, left, right):
            return truth(left, item) or truth(right, item)
    raise AssertionError(node)


@settings(deadline=None, max_examples=200)
@given(TREES, st.dictionaries(ATTRIBUTES, st.integers(0, 3)))
def test_conditions_agree_with_a_naive_model(node: Any, item: dict[str, int]) -> None:
    values = {f":v{number}": normal({"N": str(number)}) for number in range(4)}
    condition = expressions.condition(written(node), expressions.Placeholders({}, values))
    stored = {name: normal({"N": f"{value}.0"}) for name, value in item.items()}
    assert condition.holds(stored, values) == truth(node, item)


@given(st.text(alphabet="ab()[].,#:<>=+- ANDORINOTsize01", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ExpressionError):
        expressions.condition(text, expressions.Placeholders())


@pytest.mark.parametrize("opening", ["(", "NOT ", "size(", "a = :v OR ("])
def test_nesting_without_end_is_refused(opening: str) -> None:
    assert "nested too deeply" in refusal(opening * (4000 // len(opening)), V)


def test_many_operators_in_a_row_are_no_nesting() -> None:
    assert holds(" OR ".join(["a = :v"] * 150), {"a": {"N": "1"}}, V)
