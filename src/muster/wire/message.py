"""One HTTP message as the codecs see it: a whole request in, a whole answer out.

Does not know how either travels.
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote_plus

from muster.errors import ServiceError


class Incoming(NamedTuple):
    """A request: the path and the query as they were sent, header names in small letters, the body read to its end."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = b""


class Encoded(NamedTuple):
    """An answer, ready to be sent."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Misread(Exception):
    """A value that its shape cannot be read from; collects where it stood on the way out."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []

    def __str__(self) -> str:
        return f"{self.reason} (at {'.'.join(reversed(self.path))})" if self.path else self.reason


def malformed(reason: str) -> ServiceError:
    """The refusal of a message that cannot be read at all, by the name of AWS's own servers."""
    return ServiceError("SerializationException", reason, status=400)


def query_pairs(text: str) -> list[tuple[str, str]]:
    """The names and values of a query string or form, decoded, in order; a name without `=` has an empty value."""
    pairs = []
    for piece in text.split("&"):
        if piece:
            name, _, value = piece.partition("=")
            pairs.append((unquote_plus(name, errors="strict"), unquote_plus(value, errors="strict")))
    return pairs
