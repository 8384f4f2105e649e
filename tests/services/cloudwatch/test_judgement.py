"""What a row of points says: the examples of AWS's user guide, and the rule that newest points decide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.services.cloudwatch.judgement import EXTRA, Point, Rule, judge

TREATMENTS = ("missing", "ignore", "breaching", "notBreaching")


def states(row: str, needed: int) -> list[str]:
    """The state under each treatment; "0" in order, "X" beyond, "-" missing; "=" where it stays."""
    points = [
        None if mark == "-" else Point(60.0 * number, 5.0 if mark == "X" else 0.0) for number, mark in enumerate(row)
    ]
    rules = [Rule("GreaterThanThreshold", 1.0, 3, needed, treatment) for treatment in TREATMENTS]
    return [judge(rule, points, "OK").state or "=" for rule in rules]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("0-X-X", ["OK", "OK", "OK", "OK"]),
        ("0----", ["OK", "OK", "OK", "OK"]),
        ("-----", ["INSUFFICIENT_DATA", "=", "ALARM", "OK"]),
        ("0XX-X", ["ALARM", "ALARM", "ALARM", "ALARM"]),
        ("--X--", ["ALARM", "=", "ALARM", "OK"]),
    ],
)
def test_three_of_three(row: str, expected: list[str]) -> None:
    assert states(row, 3) == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("0-X-X", ["ALARM", "ALARM", "ALARM", "ALARM"]),
        ("00X0X", ["ALARM", "ALARM", "ALARM", "ALARM"]),
        ("0-X--", ["OK", "OK", "ALARM", "OK"]),
        ("----0", ["OK", "OK", "ALARM", "OK"]),
        ("---X-", ["ALARM", "=", "ALARM", "OK"]),
    ],
)
def test_two_of_three(row: str, expected: list[str]) -> None:
    assert states(row, 2) == expected


@given(st.lists(st.sampled_from("0X"), min_size=3 + EXTRA, max_size=3 + EXTRA).map("".join), st.integers(1, 3))
def test_without_gaps_the_last_points_are_counted_however_gaps_are_treated(row: str, needed: int) -> None:
    assert set(states(row, needed)) == {"ALARM" if row[-3:].count("X") >= needed else "OK"}


def test_the_reason_is_aws_sentence() -> None:
    rule = Rule("GreaterThanOrEqualToThreshold", 1.0, 2, 1, "missing")
    verdict = judge(rule, [Point(1764547200.0, 0.0), Point(1764547260.0, 3.0)], "OK")
    assert verdict.reason == (
        "Threshold Crossed: 1 out of the last 2 datapoints [3.0 (01/12/25 00:01:00)] was greater than or equal to the"
        " threshold (1.0) (minimum 1 datapoint for OK -> ALARM transition)."
    )
