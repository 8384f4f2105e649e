"""What a row of data points says about an alarm: in alarm, in order, or not enough data.

Pure. Keeps true: the newest points decide, at most as many as the alarm evaluates; what is missing is treated as the
alarm asks. Does not know where points come from.

Source: "Configuring how CloudWatch alarms treat missing data" in the CloudWatch user guide, whose two tables of
examples are the tests of this module. More points are looked at than are evaluated, so that a late one does not count
as missing: `EXTRA` more.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from muster.clock import Instant

OK, ALARM, INSUFFICIENT = "OK", "ALARM", "INSUFFICIENT_DATA"
EXTRA = 2
# A reason holds 1,023 characters: the newest points are named.
SHOWN_MAX = 20

COMPARISONS: Mapping[str, tuple[str, Callable[[float, float], bool]]] = {
    "GreaterThanThreshold": ("greater than", operator.gt),
    "GreaterThanOrEqualToThreshold": ("greater than or equal to", operator.ge),
    "LessThanThreshold": ("less than", operator.lt),
    "LessThanOrEqualToThreshold": ("less than or equal to", operator.le),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """When an alarm is in ALARM: at least `needed` of the last `periods` points beyond the threshold."""

    comparison: str
    threshold: float
    periods: int
    needed: int
    missing: str


@dataclass(frozen=True, slots=True)
class Point:
    """The value of one period."""

    at: Instant
    value: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state that the points call for and AWS's sentence; `state` None: as it is."""

    state: str | None
    reason: str
    evaluated: tuple[Point, ...]


def judge(rule: Rule, points: Sequence[Point | None], before: str) -> Verdict:
    """The verdict on the points of the last periods, the oldest first; None where there is none."""
    words, beyond = COMPARISONS[rule.comparison]
    real = [point for point in points if point is not None][-rule.periods :]
    filled = rule.periods - len(real)
    breaching = sum(beyond(point.value, rule.threshold) for point in real)
    state = _state(rule, len(real), breaching, filled)
    if state is None:
        return Verdict(None, "", tuple(real))
    if not real:
        return Verdict(state, _without_points(rule, state), ())
    counted = [point for point in real if beyond(point.value, rule.threshold) == (state == ALARM)]
    shown = ", ".join(f"{point.value} ({_short(point.at)})" for point in reversed(counted[-SHOWN_MAX:]))
    negation = "" if state == ALARM else "not "
    needed = rule.needed if state == ALARM else rule.periods - rule.needed + 1
    reason = (
        f"Threshold Crossed: {len(counted)} out of the last {len(real)} datapoints [{shown}]"
        f" {'was' if len(counted) == 1 else 'were'} {negation}{words} the threshold ({rule.threshold})"
        f" (minimum {needed} datapoint{'' if needed == 1 else 's'} for {_arrow(before, state)} transition)."
    )
    return Verdict(state, reason, tuple(real))


def _state(rule: Rule, real: int, breaching: int, filled: int) -> str | None:
    match rule.missing:
        case "breaching":
            return ALARM if breaching + filled >= rule.needed else OK
        case "notBreaching":
            return ALARM if breaching >= rule.needed else OK
        case "ignore":
            if breaching >= rule.needed:
                return ALARM
            return OK if real > breaching else None
    if not real:
        return INSUFFICIENT
    return ALARM if breaching >= min(rule.needed, real) else OK


def _without_points(rule: Rule, state: str) -> str:
    many = "" if rule.periods == 1 else "s"
    if state == INSUFFICIENT:
        return f"Insufficient Data: {rule.periods} datapoint{many} {'was' if not many else 'were'} unknown."
    treated = "Breaching" if state == ALARM else "NonBreaching"
    return (
        f"Threshold Crossed: no datapoints were received for {rule.periods} period{many} and {rule.periods} missing"
        f" datapoint{many} {'was' if not many else 'were'} treated as [{treated}]."
    )


def _arrow(before: str, state: str) -> str:
    return f"{before if before != state else (OK if state == ALARM else ALARM)} -> {state}".replace(
        "INSUFFICIENT_DATA -> ", "OK -> " if state == ALARM else "ALARM -> "
    )


def _short(at: Instant) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%d/%m/%y %H:%M:%S")
