"""Timestamps of the States Language: RFC 3339 with a capital T and Z, read and written.

Does not know the present time.
"""

import re
from datetime import UTC, datetime

_FORM = re.compile(r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})\Z")


def parse(text: str) -> float | None:
    """Seconds since the epoch, or None when `text` is no timestamp (States Language, "Timestamps")."""
    form = _FORM.match(text)
    if form is None:
        return None
    day, time, fraction, zone = form.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{time}{'+00:00' if zone == 'Z' else zone}")
    except ValueError:
        return None
    return moment.timestamp() + (float(f"0.{fraction}") if fraction else 0.0)


def text(instant: float) -> str:
    """The instant as the context object shows it, to the millisecond."""
    moment = datetime.fromtimestamp(round(instant * 1000) / 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
