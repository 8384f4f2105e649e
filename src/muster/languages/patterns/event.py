"""An event as patterns see it: its leaves by their dotted paths, each with the array elements it lies in.

Keeps true: two leaves can belong to one match only if they lie in the same element of every array they share, which is
how EventBridge's matcher (github.com/aws/event-ruler) treats arrays; a scalar element lies in what its array lies in.
A name that contains a dot reads like two nested
names, again as there. Objects and empty arrays are no leaves: an `exists` does not see them.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any


class Literal(Enum):
    """JSON's other values; Python's own would equal 1, 0 and None's kin."""

    TRUE = "true"
    FALSE = "false"
    NULL = "null"


Leaf = str | int | float | Literal
Place = tuple[tuple[int, int], ...]  # (array, element) for each array around a leaf, outermost first
Fields = dict[str, list[tuple[Leaf, Place]]]


def leaf(value: Any) -> Leaf:
    """A scalar of parsed JSON as patterns compare it."""
    if value is None:
        return Literal.NULL
    if value is True:
        return Literal.TRUE
    if value is False:
        return Literal.FALSE
    assert isinstance(value, str | int | float)
    return value


def fields(event: Mapping[str, Any]) -> Fields:
    """All leaves of `event` by path. Uses no recursion, so that depth costs nothing but memory."""
    found: Fields = {}
    arrays = 0
    within: list[tuple[str, Any, Place]] = [("", event, ())]
    while within:
        path, value, place = within.pop()
        if isinstance(value, dict):
            prefix = f"{path}." if path else ""
            for name, member in value.items():
                if isinstance(member, dict | list):
                    within.append((prefix + name, member, place))
                else:
                    found.setdefault(prefix + name, []).append((leaf(member), place))
        else:
            for number, element in enumerate(value):
                if isinstance(element, dict | list):
                    within.append((path, element, (*place, (arrays, number))))
                else:
                    found.setdefault(path, []).append((leaf(element), place))
            arrays += 1
    return found
