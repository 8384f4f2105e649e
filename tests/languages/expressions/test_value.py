"""Numbers and attribute values: one normal form each, exact, or a refusal."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.languages.expressions import ExpressionError
from muster.languages.expressions.number import add, normal_number, subtract
from muster.languages.expressions.value import normal, size_of_item

DIGITS = st.text(alphabet="0123456789", min_size=1, max_size=38)


@pytest.mark.parametrize(
    ("written", "normal_form"),
    [
        ("007", "7"),
        ("-0", "0"),
        ("1.500", "1.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+3e2", "300"),
        ("1e-3", "0.001"),
        ("-12.3450E1", "-123.45"),
        ("9" * 38, "9" * 38),
    ],
)
def test_number_has_one_text(written: str, normal_form: str) -> None:
    assert normal_number(written) == normal_form


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", "The parameter cannot be converted to a numeric value"),
        ("abc", "The parameter cannot be converted to a numeric value: abc"),
        ("NaN", "The parameter cannot be converted to a numeric value: NaN"),
        ("1_0", "The parameter cannot be converted to a numeric value: 1_0"),
        (".", "The parameter cannot be converted to a numeric value: ."),
        ("1" * 39, "Attempting to store more than 38 significant digits in a Number"),
        (
            "1e126",
            "Number overflow. Attempting to store a number with magnitude larger than supported range",
        ),
        (
            "-1e-131",
            "Number underflow. Attempting to store a number with magnitude smaller than supported range",
        ),
        (
            "1e999999999999999999999999999999",
            "Number overflow. Attempting to store a number with magnitude larger than supported range",
        ),
    ],
)
def test_number_is_refused(written: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        normal_number(written)
    assert caught.value.message == message


@given(DIGITS, st.integers(-90, 80), st.booleans())
def test_normal_number_keeps_its_value_and_is_its_own_normal_form(digits: str, exponent: int, negative: bool) -> None:
    text = f"{'-' if negative else ''}{digits}E{exponent}"
    normal_form = normal_number(text)
    assert Decimal(normal_form) == Decimal(text)
    assert "E" not in normal_form
    assert normal_number(normal_form) == normal_form


@given(st.integers(-(10**37), 10**37), st.integers(-(10**37), 10**37))
def test_arithmetic_is_exact(left: int, right: int) -> None:
    assert add(str(left), str(right)) == str(left + right)
    assert subtract(str(left), str(right)) == str(left - right)


def test_sum_of_more_than_38_digits_is_refused_rather_than_rounded() -> None:
    with pytest.raises(ExpressionError, match="38 significant digits"):
        add("1e60", "1")


def test_sets_are_sorted_and_binaries_are_bytes() -> None:
    assert normal({"SS": ["b", "a"]}) == {"SS": ["a", "b"]}
    assert normal({"NS": ["10", "9.0", "-1"]}) == {"NS": ["-1", "9", "10"]}
    assert normal({"B": "AQI="}) == {"B": b"\x01\x02"}
    assert normal({"L": [{"M": {"x": {"N": "01"}}}]}) == {"L": [{"M": {"x": {"N": "1"}}}]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"),
        (
            {"S": "a", "N": "1"},
            "Supplied AttributeValue has more than one datatypes set, "
            "must contain exactly one of the supported datatypes",
        ),
        ({"SS": []}, "One or more parameter values were invalid: An string set  may not be empty"),
        (
            {"SS": ["a", "a"]},
            "One or more parameter values were invalid: Input collection [a, a] contains duplicates.",
        ),
        ({"NS": ["1", "1.0"]}, "Input collection contains duplicates"),
        (
            {"NULL": False},
            "One or more parameter values were invalid: Null attribute value types must have the value of true",
        ),
    ],
)
def test_value_is_refused(value: dict[str, Any], message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        normal(value)
    assert caught.value.message == message


def test_nesting_beyond_32_levels_is_refused() -> None:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(32):
        value = {"L": [value]}
    with pytest.raises(ExpressionError, match="Nesting Levels"):
        normal(value)


def test_size_counts_names_and_values() -> None:
    assert size_of_item({"ab": {"S": "é"}, "n": {"N": "123"}, "l": {"L": [{"BOOL": True}]}}) == 4 + 4 + 6
