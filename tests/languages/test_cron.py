"""Schedule expressions and when they are next due."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.languages.cron import InvalidSchedule, schedule


def following(expression: str, after: str) -> str | None:
    instant = datetime.fromisoformat(after).replace(tzinfo=UTC).timestamp()
    due_at = schedule(expression).following(instant)
    return None if due_at is None else datetime.fromtimestamp(due_at, UTC).strftime("%Y-%m-%dT%H:%M")


@pytest.mark.parametrize(
    ("expression", "after", "due"),
    [
        ("cron(0 8 * * ? *)", "2026-12-01T07:59:59", "2026-12-01T08:00"),
        ("cron(0 8 * * ? *)", "2026-12-01T08:00:00", "2026-12-02T08:00"),
        ("cron(0/15 * * * ? *)", "2026-12-01T08:07", "2026-12-01T08:15"),
        ("cron(0 18 ? * MON-FRI *)", "2026-12-04T18:00", "2026-12-07T18:00"),
        ("cron(0 0 L * ? *)", "2028-02-01T00:00", "2028-02-29T00:00"),
        ("cron(0 0 15W * ? *)", "2026-08-01T00:00", "2026-08-14T00:00"),
        ("cron(0 0 1W * ? *)", "2026-07-31T00:00", "2026-08-03T00:00"),
        ("cron(0 9 ? * 2#1 *)", "2026-12-01T00:00", "2026-12-07T09:00"),
        ("cron(0 9 ? * 6L *)", "2026-12-01T00:00", "2026-12-25T09:00"),
        ("cron(0 9 ? * FRI-MON *)", "2026-12-01T00:00", "2026-12-04T09:00"),
        ("cron(0 0 29 2 ? *)", "2026-01-01T00:00", "2028-02-29T00:00"),
        ("cron(0 0 1 1 ? 2020)", "2026-01-01T00:00", None),
        ("rate(5 minutes)", "2026-12-01T00:00", "2026-12-01T00:05"),
        ("rate(1 day)", "2026-12-01T00:00", "2026-12-02T00:00"),
    ],
)
def test_schedules_are_due(expression: str, after: str, due: str | None) -> None:
    assert following(expression, after) == due


@pytest.mark.parametrize(
    "text",
    ["", "rate(1 minutes)", "rate(5 minute)", "rate(0 minutes)", "rate(5 seconds)", "cron(0 8 * * * *)",
     "cron(0 8 ? * ? *)", "cron(0 8 * * ?)", "cron(60 8 * * ? *)", "cron(0 8 * * ? *", "at(2026-01-01T00:00:00)"],
)  # fmt: skip
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchedule):
        schedule(text)


@given(st.sampled_from(["cron(7 3 * * ? *)", "cron(0/7 1-3 ? * TUE *)", "cron(0 0 L * ? *)"]), st.floats(0, 4e9))
def test_the_following_time_lies_ahead_and_on_a_minute(expression: str, instant: float) -> None:
    due_at = schedule(expression).following(instant)
    assert due_at is not None
    assert due_at > instant
    assert due_at % 60 == 0
