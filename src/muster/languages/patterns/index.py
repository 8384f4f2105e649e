"""Many patterns at once: an event is compared with those that could match it, not with all.

Keeps true: the answer is that of asking each pattern alone. Every alternative is filed once, under the lookups of its
most selective path, or under the mere presence of a path; what only asks for absence is always a candidate.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from muster.languages.patterns.event import Fields, Leaf, fields
from muster.languages.patterns.match import Pattern, holds
from muster.languages.patterns.operators import Absent, Anchor, Operator, fold
from muster.languages.patterns.parse import Alternative

K = TypeVar("K")
Filed = list[tuple[int, Alternative]]  # (number of the pattern, one of its alternatives)


class _Shelf:
    """What is filed under one path."""

    __slots__ = ("by_folded", "by_prefix", "by_suffix", "by_value", "present")

    def __init__(self) -> None:
        self.by_value: dict[Leaf, Filed] = {}
        self.by_folded: dict[Leaf, Filed] = {}
        self.by_prefix: dict[int, dict[Leaf, Filed]] = {}  # by the length of the prefix
        self.by_suffix: dict[int, dict[Leaf, Filed]] = {}
        self.present: Filed = []

    def file(self, anchor: Anchor, number: int, alternative: Alternative) -> None:
        table: dict[Leaf, Filed]
        match anchor.by:
            case "value":
                table = self.by_value
            case "folded":
                table = self.by_folded
            case affix:
                sized = self.by_prefix if affix == "prefix" else self.by_suffix
                table = sized.setdefault(len(str(anchor.key)), {})
        table.setdefault(anchor.key, []).append((number, alternative))

    def candidates(self, value: Leaf) -> Iterable[tuple[int, Alternative]]:
        yield from self.by_value.get(value, ())
        if isinstance(value, str):
            if self.by_folded:
                yield from self.by_folded.get(fold(value), ())
            for size, table in self.by_prefix.items():
                yield from table.get(value[:size], ())
            for size, table in self.by_suffix.items():
                yield from table.get(value[-size:], ())


class Index(Generic[K]):
    """A fixed set of patterns by key."""

    def __init__(self, patterns: Iterable[tuple[K, Pattern]]) -> None:
        self._keys: list[K] = []
        self._shelves: dict[str, _Shelf] = {}
        self._always: Filed = []
        numbered: Filed = []
        for number, (key, pattern) in enumerate(patterns):
            self._keys.append(key)
            numbered += [(number, alternative) for alternative in pattern.alternatives]
        popular = Counter(
            (path, anchor)
            for _, alternative in numbered
            for path, operators in alternative.items()
            for anchor in _anchors(operators)
        )
        for number, alternative in numbered:
            self._file(number, alternative, popular)

    def matching(self, event: Mapping[str, Any]) -> list[K]:
        """The keys of the patterns that match, in the order they were given."""
        if not self._keys:
            return []
        found = fields(event)
        matched: set[int] = set()
        for number, alternative in self._always:
            if number not in matched and holds(alternative, found):
                matched.add(number)
        for path, shelf in self._candidates(found):
            for number, alternative in shelf.present:
                if number not in matched and holds(alternative, found):
                    matched.add(number)
            for value, _ in found[path]:
                for number, alternative in shelf.candidates(value):
                    if number not in matched and holds(alternative, found):
                        matched.add(number)
        return [self._keys[number] for number in sorted(matched)]

    def _candidates(self, found: Fields) -> Iterable[tuple[str, _Shelf]]:
        for path in found:
            shelf = self._shelves.get(path)
            if shelf is not None:
                yield path, shelf

    def _file(self, number: int, alternative: Alternative, popular: Counter[tuple[str, Anchor]]) -> None:
        best: tuple[int, str, tuple[Anchor, ...]] | None = None
        present: str | None = None
        for path, operators in alternative.items():
            if any(isinstance(operator, Absent) for operator in operators):
                continue
            present = present or path
            anchors = _anchors(operators)
            if anchors:
                crowd = sum(popular[path, anchor] for anchor in anchors)
                if best is None or crowd < best[0]:
                    best = (crowd, path, anchors)
        if best is not None:
            for anchor in best[2]:
                self._shelf(best[1]).file(anchor, number, alternative)
        elif present is not None:
            self._shelf(present).present.append((number, alternative))
        else:
            self._always.append((number, alternative))

    def _shelf(self, path: str) -> _Shelf:
        return self._shelves.setdefault(path, _Shelf())


def _anchors(operators: tuple[Operator, ...]) -> tuple[Anchor, ...]:
    """Lookups that find every value that any of the operators match; none unless each has some."""
    anchors = [operator.anchors() for operator in operators]
    return tuple(dict.fromkeys(anchor for some in anchors for anchor in some)) if all(anchors) else ()
