"""Filter patterns of plain terms: all must occur; `?term` any of them; `-term` must not; quotes keep a phrase together.

Keeps true: a pattern that is not of this kind (JSON, space-delimited fields, regular expressions) is refused. Source:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html.
"""

import re
from dataclasses import dataclass

from muster.errors import ServiceError, unsupported

_TERM = re.compile(r'\s*(?P<sign>[?-]?)(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[A-Za-z0-9_./:@#$&+=-]+))(?=\s|$)')


@dataclass(frozen=True, slots=True)
class Filter:
    """A compiled pattern."""

    needed: tuple[str, ...] = ()
    either: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()

    def matches(self, message: str) -> bool:
        """Whether the message fits; terms are case-sensitive."""
        return (
            all(term in message for term in self.needed)
            and (not self.either or any(term in message for term in self.either))
            and not any(term in message for term in self.forbidden)
        )


def compiled(pattern: str) -> Filter:
    """The filter for a pattern; an empty one lets all through."""
    text = pattern.strip()
    if text.startswith(("{", "[", "%")):
        raise unsupported(f"the filter pattern {pattern} (only terms)")
    found: dict[str, list[str]] = {"": [], "?": [], "-": []}
    position = 0
    while position < len(text):
        match = _TERM.match(text, position)
        if match is None:
            raise ServiceError("InvalidParameterException", f"Invalid filter pattern: {pattern}")
        term = match["plain"] if match["quoted"] is None else re.sub(r"\\(.)", r"\1", match["quoted"])
        found[match["sign"]].append(term)
        position = match.end()
    # Where a needed term stands beside optional ones, the optional ones do not count.
    either = () if found[""] else tuple(found["?"])
    return Filter(tuple(found[""]), either, tuple(found["-"]))
