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
    constraints = [places for places in shared if () not in places]
    return len(constraints) < 2 or (1 << len(constraints)) - 1 in _satisfied_together(constraints)


def _satisfied_together(constraints: list[frozenset[Place]]) -> set[int]:
    """Which of the constraints, as bits, one choice of elements can satisfy; only the largest such sets.

    Arrays and elements are a tree: an array lies in one element of what is around it. From the innermost elements
    outwards, an element satisfies what ends in it, together with what one element of each array in it satisfies. The
    time is linear in the places, however many elements the arrays have.
    """
    ends: dict[Place, int] = {}
    for number, places in enumerate(constraints):
        for place in places:
            ends[place] = ends.get(place, 0) | 1 << number
    levels: dict[int, set[Place]] = {}
    for place in ends:
        levels.setdefault(len(place), set()).add(place)
    inside: dict[Place, dict[int, set[int]]] = {}  # element → array in it → what its elements satisfy
    for depth in range(max(levels), 0, -1):
        outer = levels.setdefault(depth - 1, set())
        for place in levels.pop(depth):
            satisfied = _combined(ends.get(place, 0), inside.pop(place, {}))
            around = place[:-1]
            inside.setdefault(around, {}).setdefault(place[-1][0], set()).update(satisfied)
            outer.add(around)
    return _combined(0, inside.pop((), {}))


def _combined(ending: int, arrays: dict[int, set[int]]) -> set[int]:
    combined = {ending}
    for satisfied in arrays.values():
        combined = _largest({one | other for one in combined for other in _largest(satisfied)})
    return combined


def _largest(sets: set[int]) -> set[int]:
    return {one for one in sets if not any(one != other and one | other == other for other in sets)}
