"""A compiled pattern, and whether an event is of its kind.

Keeps true: a pattern matches when in one of its alternatives every path finds a leaf it asks for, and those leaves can
be chosen so that no two lie in different elements of one array.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from muster.languages.patterns.event import Fields, Place, fields
from muster.languages.patterns.operators import Absent, Operator
from muster.languages.patterns.parse import Alternative, alternatives

_NOWHERE: frozenset[Place] = frozenset({()})


class Pattern:
    """An event pattern, ready to be asked."""

    __slots__ = ("alternatives", "text")

    def __init__(self, text: str) -> None:
        """Compile; InvalidPattern when the text is no pattern."""
        self.text = text
        self.alternatives: list[Alternative] = alternatives(text)

    def matches(self, event: Mapping[str, Any]) -> bool:
        """Whether the event, as parsed JSON, is of this pattern."""
        found = fields(event)
        return any(holds(alternative, found) for alternative in self.alternatives)


def holds(alternative: Alternative, found: Fields) -> bool:
    """Whether an event with these fields satisfies one alternative."""
    bound: list[frozenset[Place]] = []
    for path, operators in alternative.items():
        places = _places(operators, found, path)
        if not places:
            return False
        if () not in places:
            bound.append(places)
    return len(bound) < 2 or _agree(bound)


def _places(operators: tuple[Operator, ...], found: Fields, path: str) -> frozenset[Place]:
    leaves = found.get(path)
    if leaves is None:
        return _NOWHERE if any(isinstance(operator, Absent) for operator in operators) else frozenset()
    return frozenset(place for value, place in leaves if any(operator.matches(value) for operator in operators))


def _agree(bound: list[frozenset[Place]]) -> bool:
    """Whether one place of each set can be chosen so that all agree on the element of every array."""
    mentioned: Counter[int] = Counter()
    for places in bound:
        mentioned.update({array for place in places for array, _ in place})
    shared = [
        frozenset(tuple(step for step in place if mentioned[step[0]] > 1) for place in places) for places in bound
    ]
    constraints = sorted((places for places in shared if () not in places), key=len)
    chosen: set[Place] = {()}
    for places in constraints:
        chosen = {joined for so_far in chosen for place in places if (joined := _joined(so_far, place)) is not None}
        if not chosen:
            return False
    return True


def _joined(one: Place, other: Place) -> Place | None:
    together = dict(one)
    for array, element in other:
        if together.setdefault(array, element) != element:
            return None
    return tuple(sorted(together.items()))
