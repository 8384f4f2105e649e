"""Schedule expressions of EventBridge: `rate(5 minutes)` and `cron(0 8 ? * MON-FRI *)`, and when they are next due.

Keeps true: `following(t)` is the first instant after `t`, or None when there is none. Cron is in UTC, to the minute.
Does not know the present time. Source: the EventBridge user guide, "Setting a schedule pattern".
"""

import calendar
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Protocol

_YEARS = (1970, 2199)
_MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_WEEKDAYS = {name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"), 1)}
_SECONDS = {"minute": 60, "hour": 3600, "day": 86400}


class InvalidSchedule(Exception):
    """A text that is no schedule expression; the text says why."""


class Schedule(Protocol):
    """When something is due, again and again."""

    def following(self, instant: float) -> float | None:
        """The first time it is due after `instant`."""
        ...


@dataclass(frozen=True, slots=True)
class Rate:
    """Every so many seconds."""

    seconds: int

    def following(self, instant: float) -> float | None:
        return instant + self.seconds


@dataclass(frozen=True, slots=True)
class Days:
    """Which days of a month: by number, from its end, nearest weekday, or by weekday."""

    numbers: frozenset[int] = frozenset()
    last: bool = False
    nearest_weekday: int | None = None
    weekdays: frozenset[int] = frozenset()  # 1 is Sunday
    last_weekday: int | None = None
    nth_weekday: tuple[int, int] | None = None  # (weekday, which of the month)

    def include(self, day: date) -> bool:
        """Whether the day is one of them."""
        length = calendar.monthrange(day.year, day.month)[1]
        weekday = day.isoweekday() % 7 + 1
        if day.day in self.numbers or weekday in self.weekdays:
            return True
        if self.last and day.day == length:
            return True
        if self.nearest_weekday is not None and day.day == _nearest_weekday(day, self.nearest_weekday, length):
            return True
        if self.last_weekday == weekday and day.day > length - 7:
            return True
        return self.nth_weekday == (weekday, (day.day + 6) // 7)


def _nearest_weekday(day: date, number: int, length: int) -> int:
    """The Monday to Friday nearest to a day of the month, without leaving the month."""
    wanted = day.replace(day=min(number, length))
    match wanted.isoweekday():
        case 6:
            return wanted.day - 1 if wanted.day > 1 else 3
        case 7:
            return wanted.day + 1 if wanted.day < length else wanted.day - 2
        case _:
            return wanted.day


@dataclass(frozen=True, slots=True)
class Cron:
    """The minutes that all six fields allow."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: Days
    months: frozenset[int]
    years: frozenset[int]

    def following(self, instant: float) -> float | None:
        start = datetime.fromtimestamp(instant, UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        day = start.date()
        while day.year <= max(self.years):
            if day.year not in self.years:
                day = date(day.year + 1, 1, 1)
            elif day.month not in self.months:
                day = date(day.year + day.month // 12, day.month % 12 + 1, 1)
            elif self.days.include(day) and (found := self._within(day, start)) is not None:
                return found.timestamp()
            else:
                day += timedelta(days=1)
        return None

    def _within(self, day: date, start: datetime) -> datetime | None:
        for hour in self.hours:
            for minute in self.minutes:
                found = datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)
                if found >= start:
                    return found
        return None


def schedule(text: str) -> Schedule:
    """Read an expression; InvalidSchedule when it is none."""
    if not text.endswith(")"):
        raise InvalidSchedule(text)
    if text.startswith("rate("):
        return _rate(text[5:-1])
    if text.startswith("cron("):
        return _cron(text[5:-1])
    raise InvalidSchedule(text)


def _rate(text: str) -> Rate:
    number, _, unit = text.strip().partition(" ")
    if not number.isdecimal() or int(number) < 1:
        raise InvalidSchedule("a rate is a positive number")
    singular = unit.strip().removesuffix("s")
    if singular not in _SECONDS or (int(number) == 1) != (unit.strip() == singular):
        raise InvalidSchedule("a rate is in minutes, hours or days, in the singular only for 1")
    return Rate(int(number) * _SECONDS[singular])


def _cron(text: str) -> Cron:
    parts = text.upper().split()
    if len(parts) != 6:
        raise InvalidSchedule("a cron expression has six fields")
    minutes, hours, days, months, weekdays, years = parts
    if (days == "?") == (weekdays == "?"):
        raise InvalidSchedule("one of day-of-month and day-of-week is ?, the other not")
    return Cron(
        tuple(sorted(_field(minutes, 0, 59))),
        tuple(sorted(_field(hours, 0, 23))),
        _of_month(days) if weekdays == "?" else _of_week(weekdays),
        _field(months, 1, 12, _MONTHS),
        _field(years, *_YEARS),
    )


def _of_month(text: str) -> Days:
    if text == "L":
        return Days(last=True)
    if text.endswith("W"):
        return Days(nearest_weekday=_number(text[:-1], 1, 31, {}))
    return Days(numbers=_field(text, 1, 31))


def _of_week(text: str) -> Days:
    if text == "L":
        return Days(weekdays=frozenset({7}))
    if text.endswith("L"):
        return Days(last_weekday=_number(text[:-1], 1, 7, _WEEKDAYS))
    weekday, hash_, nth = text.partition("#")
    if hash_:
        return Days(nth_weekday=(_number(weekday, 1, 7, _WEEKDAYS), _number(nth, 1, 5, {})))
    return Days(weekdays=_field(text, 1, 7, _WEEKDAYS))


def _field(text: str, low: int, high: int, names: Mapping[str, int] | None = None) -> frozenset[int]:
    allowed: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, 1, high, {}) if slash else 1
        first_text, dash, last_text = span.partition("-")
        if span == "*":
            first, last = low, high
        else:
            first = _number(first_text, low, high, names or {})
            last = _number(last_text, low, high, names or {}) if dash else high if slash else first
        if last >= first:
            allowed.update(range(first, last + 1, step))
        else:  # a range over the end, such as FRI-MON
            size = high - low + 1
            allowed.update(low + (number - low) % size for number in range(first, last + size + 1, step))
    return frozenset(allowed)


def _number(text: str, low: int, high: int, names: Mapping[str, int]) -> int:
    number = names.get(text)
    if number is None:
        if not text.isdecimal():
            raise InvalidSchedule(f"{text!r} is no number")
        number = int(text)
    if not low <= number <= high:
        raise InvalidSchedule(f"{text} is not between {low} and {high}")
    return number
