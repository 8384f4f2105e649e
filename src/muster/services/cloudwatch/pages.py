"""Listings page by page: a token is where the next page begins, and instants come as numbers or as datetimes."""

import base64
import binascii
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from muster.clock import Instant
from muster.services.cloudwatch.refusals import bad_token


def page(listed: Sequence[Any], token: str | None, size: int) -> tuple[list[Any], str | None]:
    """The page that a token asks for, and the token of the next."""
    begin = 0
    if token:
        try:
            begin = int(base64.b64decode(token, validate=True))
        except (binascii.Error, ValueError):
            raise bad_token() from None
        if not 0 <= begin <= len(listed):
            raise bad_token()
    end = begin + size
    return list(listed[begin:end]), base64.b64encode(str(end).encode()).decode() if end < len(listed) else None


def instant(value: "float | datetime") -> Instant:
    return value.timestamp() if isinstance(value, datetime) else float(value)
