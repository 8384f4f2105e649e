"""The steps of a JSONPath: what each selects from one value.

Keeps true: a step changes nothing and never fails on data; where nothing is there it selects nothing, or, when every
step before it named exactly one place, says NoMatch, as Jayway's evaluator does. Does not know how paths are written.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

MATCHES_MAX = 250_000  # more than a document of 256 KiB can hold; `$..*..*..*` on a deep one would never end


class PathError(ValueError):
    """A path that is not one, or (as NoMatch, Unwritable) leads nowhere. `text` is the path, `reason` says why."""

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(f"{text}: {reason}" if reason else text)
        self.text = text
        self.reason = reason


class NoMatch(PathError):
    """A path that names one place, and the document has no such place."""


class Unwritable(PathError):
    """A reference path that cannot be applied to the document."""


class Nowhere(Exception):
    """Inside evaluation: there is no such place; the path turns it into NoMatch with its text."""


class Step(Protocol):
    """A step; `single` when it selects at most one value of one value."""

    @property
    def single(self) -> bool: ...

    def select(self, value: Any, root: Any, certain: bool) -> Iterator[Any]:
        """The values selected from `value`; `certain`: all steps before were single, so a miss is Nowhere."""
        ...


@dataclass(frozen=True, slots=True)
class Name:
    """`.name` or `['name']`."""

    name: str
    single: bool = True

    def select(self, value: Any, root: Any, certain: bool) -> Iterator[Any]:
        if isinstance(value, dict) and self.name in value:
            yield value[self.name]
        elif certain:
            raise Nowhere


@dataclass(frozen=True, slots=True)
class Index:
    """`[3]`, or from the end `[-1]`."""

    index: int
    single: bool = True

    def select(self, value: Any, root: Any, certain: bool) -> Iterator[Any]:
        if isinstance(value, list):
            # Beyond the end of a list there is nothing, even where a miss is an error: `$.a[9].b[*]` is [].
            if -len(value) <= self.index < len(value):
                yield value[self.index]
        elif certain:
            raise Nowhere


@dataclass(frozen=True, slots=True)
class Names:
    """`['a','b']`: at the end of a path one object with those members, else each of their values."""

    names: tuple[str, ...]
    single: bool

    def select(self, value: Any, root: Any, certain: bool) -> Iterator[Any]:
        if not isinstance(value, dict):
            if certain:
                raise Nowhere
            return
        found = {name: value[name] for name in self.names if name in value}
        if self.single:
            yield found
        else:
            yield from found.values()


@dataclass(frozen=True, slots=True)
class Indexes:
    """`[0,2]`: the elements that exist, in the order written."""

    indexes: tuple[int, ...]
    single: bool = False

    def select(self, value: Any, root: Any, certain: bool) -> Iterator[Any]:
        if isinstance(value, list):
            for index in self.indexes:
                if -len(value) <= index < len(value):
                    yield value[index]
        elif certain:
            raise Nowhere


@dataclass(frozen=True, slots=True)
class Slice:
    """`[1:3]`, `[:2]`, `[-2:]`."""

    start: int | None
    stop: int | None
    single: bool = False

    def select(self, value: Any, root: Any, certain: bool) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[self.start : self.stop]
        elif certain:
            raise Nowhere


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`.*` or `[*]`: every member or element."""

    single: bool = False

    def select(self, value: Any, root: Any, certain: bool) -> Iterator[Any]:
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list):
            yield from value


@dataclass(frozen=True, slots=True)
class Descent:
    """`..`: the value itself and everything below it that has parts, parents first."""

    single: bool = False

    def select(self, value: Any, root: Any, certain: bool) -> Iterator[Any]:
        waiting = [value]
        while waiting:
            here = waiting.pop()
            if isinstance(here, dict):
                yield here
                waiting.extend(reversed(here.values()))
            elif isinstance(here, list):
                yield here
                waiting.extend(reversed(here))


@dataclass(frozen=True, slots=True)
class Filter:
    """`[?(…)]`: the elements of a list that fit, or an object itself if it does.

    After `..` only objects are tested (`below`): every list's elements come by themselves.
    """

    fits: Callable[[Any, Any], bool]
    below: bool = False
    single: bool = False

    def select(self, value: Any, root: Any, certain: bool) -> Iterator[Any]:
        if isinstance(value, dict):
            if self.fits(value, root):
                yield value
        elif isinstance(value, list):
            if not self.below:
                for item in value:
                    if self.fits(item, root):
                        yield item
        elif certain:
            raise Nowhere


def _numbers(value: Any) -> list[float]:
    """The numbers of a list; Nowhere when there are none, as an aggregate of nothing is no value."""
    items = value if isinstance(value, list) else [value]
    numbers = [item for item in items if isinstance(item, int | float) and not isinstance(item, bool)]
    if not numbers:
        raise Nowhere
    return numbers


def _length(value: Any) -> Any:
    if isinstance(value, list | dict | str):
        return len(value)
    raise Nowhere


def _average(value: Any) -> float:
    numbers = _numbers(value)
    return sum(numbers) / len(numbers)


def _deviation(value: Any) -> float:
    numbers = _numbers(value)
    mean = sum(numbers) / len(numbers)
    return math.sqrt(sum((number - mean) ** 2 for number in numbers) / len(numbers))


def _keys(value: Any) -> Any:
    if isinstance(value, dict):
        return list(value)
    raise Nowhere


def _end(place: int) -> Callable[[Any], Any]:
    def element(value: Any) -> Any:
        if isinstance(value, list) and value:
            return value[place]
        raise Nowhere

    return element


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "length": _length,
    "size": _length,
    "min": lambda value: min(_numbers(value)),
    "max": lambda value: max(_numbers(value)),
    "sum": lambda value: sum(_numbers(value)),
    "avg": _average,
    "stddev": _deviation,
    "keys": _keys,
    "first": _end(0),
    "last": _end(-1),
}


def walk(steps: tuple[Step, ...], document: Any, root: Any) -> list[Any]:
    """All values the steps lead to, in document order. Raises Nowhere where a certain step leads nowhere."""
    values = [document]
    certain = True
    for step in steps:
        found: list[Any] = []
        for value in values:
            found.extend(step.select(value, root, certain))
            if len(found) > MATCHES_MAX:
                raise Nowhere
        values = found
        certain = certain and step.single
    return values
