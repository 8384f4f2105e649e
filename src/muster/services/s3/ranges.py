"""Byte ranges: what of an object a request asks for.

Source: RFC 9110, section 14; S3 answers one range and takes a malformed or manifold header for none.
"""

import re
from dataclasses import dataclass

from muster.services.s3.refusals import invalid_argument, refusal

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_COPY_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


@dataclass(frozen=True, slots=True)
class Range:
    start: int
    length: int

    def header(self, size: int) -> str:
        """The Content-Range of an answer."""
        return f"bytes {self.start}-{self.start + self.length - 1}/{size}"


def asked(header: str | None, size: int) -> Range | None:
    """The range, or None for all of it; InvalidRange when nothing of the object lies in it."""
    matched = _RANGE.fullmatch(header.strip()) if header else None
    if matched is None or matched.groups() == ("", ""):
        return None
    first, last = matched.groups()
    if first == "":
        length = min(int(last), size)
        found = Range(size - length, length)
    else:
        start = int(first)
        end = size - 1 if last == "" else min(int(last), size - 1)
        if last != "" and int(last) < start:
            return None
        found = Range(start, end - start + 1)
    if found.length <= 0:
        raise refusal("InvalidRange", ActualObjectSize=str(size), RangeRequested=header)
    return found


def of_copy(header: str | None, size: int) -> Range:
    """The range of a source to be copied, which must lie within it."""
    if header is None:
        return Range(0, size)
    matched = _COPY_RANGE.fullmatch(header.strip())
    if matched is None or int(matched[2]) < int(matched[1]):
        raise invalid_argument(
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the"
            " zero-based offsets of the first and last bytes to copy",
            "x-amz-copy-source-range",
            header,
        )
    first, last = int(matched[1]), int(matched[2])
    if last >= size:
        raise invalid_argument(
            f"Range specified is not valid for source object of size: {size}", "x-amz-copy-source-range", header
        )
    return Range(first, last - first + 1)
