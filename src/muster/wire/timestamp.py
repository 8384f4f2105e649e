"""Instants as AWS writes them: ISO 8601, seconds since the epoch, and the dates of HTTP headers.

Keeps true: what is written is read back to the same millisecond. Inside Muster an instant is a float of seconds.
"""

from datetime import datetime, timedelta, timezone
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - datetime.UTC reads worse beside timedelta


def seconds(value: Any) -> float:
    """An instant in seconds, from whatever a service's answer holds: a number or a datetime."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=EPOCH.tzinfo)
        return (aware - EPOCH).total_seconds()
    return float(value)


def write_epoch(value: Any) -> float:
    """Seconds with a fraction to the millisecond."""
    return round(seconds(value), 3)


def write_iso8601(value: Any) -> str:
    """`2015-01-01T12:00:00Z`, with milliseconds where there are any."""
    return _iso8601(round(seconds(value) * 1000))


@lru_cache(maxsize=1024)
def _iso8601(milliseconds: int) -> str:
    moment = EPOCH + timedelta(milliseconds=milliseconds)
    fraction = f".{milliseconds % 1000:03d}" if milliseconds % 1000 else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z" if moment.year >= 1000 else f"{moment.isoformat()[:19]}{fraction}Z"


def write_http_date(value: Any) -> str:
    """`Thu, 01 Jan 2015 12:00:00 GMT`: whole seconds, as RFC 9110 has them."""
    return formatdate(int(seconds(value) // 1), usegmt=True)


def read(text: str) -> float:
    """An instant from any of the three forms; ValueError when it is none."""
    try:
        return _finite(float(text))
    except ValueError:
        pass
    if text[:1].isdigit():
        moment = datetime.fromisoformat(text.strip())
    else:
        try:
            moment = parsedate_to_datetime(text)
        except (TypeError, IndexError, OverflowError) as error:
            raise ValueError(f"not a date: {text[:64]!r}") from error
    return seconds(moment)


def _finite(number: float) -> float:
    if number - number != 0:
        raise ValueError("not a date")
    return number
