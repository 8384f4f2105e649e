"""An event as patterns see it: its leaves by their dotted paths, each with the array elements it lies in.

Keeps true: two leaves can belong to one match only if they lie in the same element of every array they share, which is
how EventBridge's matcher (github.com/aws/event-ruler) treats arrays; a scalar element lies in what its array lies in.
A name that contains a dot reads like two nested
names, again as there. Objects and empty arrays are no leaves: an `exists` does not see them.
"""

from collections.abc import Iterator, Mapping
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
    """All leaves of `event` by path."""
    found: Fields = {}
    arrays = iter(range(1 << 62))
    _object(event, "", (), found, arrays)
    return found


def _object(members: Mapping[str, Any], prefix: str, place: Place, found: Fields, arrays: Iterator[int]) -> None:
    for name, value in members.items():
        _value(value, prefix + name, place, found, arrays)


def _value(value: Any, path: str, place: Place, found: Fields, arrays: Iterator[int]) -> None:
    if isinstance(value, dict):
        _object(value, path + ".", place, found, arrays)
    elif isinstance(value, list):
        array = next(arrays)
        for number, element in enumerate(value):
            inside = (*place, (array, number)) if isinstance(element, dict | list) else place
            _value(element, path, inside, found, arrays)
    else:
        found.setdefault(path, []).append((leaf(value), place))
