"""Pagination: a page of rows and an opaque token for the next one.

Keeps true: a token is bound to the listing it came from; one that was made up is refused.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import orjson

from muster.errors import ServiceError

PAGE_DEFAULT = 100
PAGE_MAX = 1000


def size(request: Mapping[str, Any]) -> int:
    """How many items the caller wants; 0 means the default."""
    return min(int(request.get("maxResults") or PAGE_DEFAULT), PAGE_MAX)


def token(listing: str, place: Any) -> str:
    """The token of the page that begins after `place`."""
    return base64.urlsafe_b64encode(orjson.dumps([listing, place])).decode()


def place(listing: str, request: Mapping[str, Any]) -> Any:
    """Where the page begins; None for the first one. InvalidToken when the token is not of this listing."""
    text = request.get("nextToken")
    if text is None:
        return None
    try:
        found_listing, found = orjson.loads(base64.urlsafe_b64decode(str(text)))
    except (ValueError, binascii.Error) as why:
        raise ServiceError("InvalidToken", f"Invalid Token: '{text}'") from why
    if found_listing != listing:
        raise ServiceError("InvalidToken", f"Invalid Token: '{text}'")
    return found
