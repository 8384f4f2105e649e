"""Listings in pages: the token is the number of the first item of the next page."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from muster.services.events.refusals import invalid_parameter

T = TypeVar("T")


def page(request: Mapping[str, Any], items: Sequence[T]) -> tuple[list[T], dict[str, str]]:
    """The part of `items` that is asked for, and `NextToken` when there is more. Limit is 100 at most and by default."""
    start = 0
    token = request.get("NextToken")
    if token:
        try:
            start = int(base64.b64decode(token + "=" * (-len(token) % 4), validate=True))
        except (ValueError, binascii.Error):
            raise invalid_parameter("NextToken") from None
    end = start + min(request.get("Limit") or 100, 100)
    more = {"NextToken": base64.b64encode(str(end).encode()).decode().rstrip("=")} if end < len(items) else {}
    return list(items[start:end]), more
