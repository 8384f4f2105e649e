"""Listings in pages: keys in the order of their UTF-8 bytes, with those that share a prefix up to a delimiter as one.

Keeps true: a listing with a delimiter jumps over what it rolls up, so that its cost grows with what it answers.
Does not know which rows it lists: a source gives the next rows after a place.
"""

import base64
import binascii
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import quote_plus

from muster.services.s3.refusals import invalid_argument
from muster.transaction import Row

PAGE_MAX = 1000
BATCH = 200


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the order of rows: at or behind `key`; `tie` orders rows of one key (versions, uploads).

    `inclusive` means that a row at exactly this place is still to come.
    """

    key: str
    tie: str = ""
    inclusive: bool = False


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """What one page answers, and where the next begins (None: this was the last)."""

    items: list[T]
    prefixes: list[str]
    truncated: bool
    last: "T | str | None"


Source = Callable[[Place, int], list[Row]]


def successor(text: str) -> str | None:
    """The least text that is greater than every text beginning with `text`; None when there is none."""
    while text:
        point = ord(text[-1]) + 1
        if 0xD800 <= point <= 0xDFFF:
            point = 0xE000
        if point <= 0x10FFFF:
            return text[:-1] + chr(point)
        text = text[:-1]
    return None


def page(source: Source, make: Callable[[Row], T], place: Place, prefix: str, delimiter: str, most: int) -> Page[T]:
    """Up to `most` items and common prefixes with `prefix`, from `place` on."""
    items: list[T] = []
    prefixes: list[str] = []
    last: T | str | None = None
    if most == 0:
        return Page(items, prefixes, False, None)
    for found in _rolled(source, place, prefix, delimiter, most + 1):
        if len(items) + len(prefixes) == most:
            return Page(items, prefixes, True, last)
        if isinstance(found, str):
            prefixes.append(found)
            last = found
        else:
            item = make(found)
            items.append(item)
            last = item
    return Page(items, prefixes, False, None)


def _rolled(source: Source, place: Place, prefix: str, delimiter: str, most: int) -> Iterator[Row | str]:
    if prefix > place.key:
        place = Place(prefix, inclusive=True)
    while True:
        rows = source(place, min(most, BATCH))
        if not rows:
            return
        for row in rows:
            key = row["key"]
            if not key.startswith(prefix):
                return
            at = key.find(delimiter, len(prefix)) if delimiter else -1
            if at >= 0:
                common = key[: at + len(delimiter)]
                yield common
                beyond = successor(common)
                if beyond is None:
                    return
                place = Place(beyond, inclusive=True)
                break
            yield row
            place = Place(key, str(row["tie"]))
        else:
            if len(rows) < min(most, BATCH):
                return


def after(marker: str, prefix: str, delimiter: str) -> Place:
    """Behind a marker; one that is a common prefix stands for everything that it rolls up."""
    if delimiter and marker.startswith(prefix) and marker.endswith(delimiter) and len(marker) > len(prefix):
        at = marker.find(delimiter, len(prefix))
        if at + len(delimiter) == len(marker):
            beyond = successor(marker)
            return Place(beyond or marker, inclusive=beyond is not None)
    return Place(marker)


def token(text: str) -> str:
    """An opaque continuation token."""
    return base64.urlsafe_b64encode(text.encode()).decode()


def from_token(stated: str) -> str:
    """What a continuation token of ours stands for; InvalidArgument when it is none."""
    try:
        if not stated:
            raise ValueError(stated)
        return base64.b64decode(stated.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise invalid_argument("The continuation token provided is incorrect", "continuation-token", stated) from error


def count_asked(stated: int | None, name: str) -> int:
    """A page size, at most 1,000."""
    if stated is None:
        return PAGE_MAX
    if not 0 <= stated <= 2**31 - 1:
        raise invalid_argument(f"Argument {name} must be an integer between 0 and 2147483647", name, stated)
    return min(stated, PAGE_MAX)


def encoder(encoding_type: str | None) -> Callable[[str], str]:
    """How keys are written in the answer: as they are, or URL-encoded."""
    if encoding_type is None:
        return lambda key: key
    if encoding_type != "url":
        raise invalid_argument("Invalid Encoding Method specified in Request", "encoding-type", encoding_type)
    return lambda key: quote_plus(key, safe="/")
