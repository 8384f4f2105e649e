"""JSONPath as Step Functions reads it: paths that read a document, reference paths that write to one.

Keeps true: a text is compiled once and kept; reading changes nothing, and writing copies only the objects on the way.
Any text becomes a path or PathError. Does not know which field a path stands in, nor where a variable's value is kept:
`root` says whether a path starts at the input (`$`), the context object (`$$`) or a variable (its name).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from muster.languages.jsonpath.parser import Parsed, parse
from muster.languages.jsonpath.steps import FUNCTIONS, Index, Name, NoMatch, Nowhere, PathError, Unwritable, walk

__all__ = ["NoMatch", "Path", "PathError", "Reference", "Unwritable", "compile_path", "compile_reference"]

CACHED_MAX = 8192  # texts kept compiled; a definition rarely has a hundred
PATH_LENGTH_MAX = 16_384

_Reader = Callable[[Any], Any]


class Path:
    """A compiled path. `definite`: made of names and indexes only, so that it names one place."""

    __slots__ = ("definite", "read", "root", "text")

    read: _Reader
    """The value(s) in a document: for a path that names one place that value, else the list of all that match
    (perhaps empty). Raises NoMatch when the one place, or the part of the path that names one, is not there."""

    def __init__(self, text: str, parsed: Parsed) -> None:
        self.text = text
        self.root = parsed.root
        plain = _plain(parsed)
        self.definite = plain is not None
        self.read = general(text, parsed) if plain is None else _direct(text, plain)

    def __repr__(self) -> str:
        return f"Path({self.text!r})"


class Reference:
    """A compiled reference path: names and indexes only, starting at `root`."""

    __slots__ = ("_steps", "root", "text")

    def __init__(self, text: str, root: str, steps: tuple[str | int, ...]) -> None:
        self.text = text
        self.root = root
        self._steps = steps

    def __repr__(self) -> str:
        return f"Reference({self.text!r})"

    def write(self, document: Any, value: Any) -> Any:
        """A new document with `value` at this place; objects are created on the way, array elements must exist.

        The document stays as it was, and shares with the new one all that lies beside the way. Raises Unwritable
        where something on the way is neither missing nor an object (an array, for an index); AWS calls that
        States.ResultPathMatchFailure.
        """
        if self.root != "$":
            raise Unwritable(self.text, "only the document can be written to")
        if not self._steps:
            return value
        result: Any = [document]
        holder: Any = result
        place: Any = 0
        for step in self._steps:
            copy = holder[place] = self._opened(holder[place], step)
            if isinstance(step, str):
                copy.setdefault(step, _ABSENT)
            holder, place = copy, step
        holder[place] = value
        return result[0]

    def _opened(self, here: Any, step: str | int) -> Any:
        """A copy of what is here, into which `step` can be written."""
        if isinstance(step, int):
            if isinstance(here, list) and -len(here) <= step < len(here):
                return here.copy()
            raise Unwritable(self.text, f"there is no element {step} to write to")
        if here is _ABSENT:
            return {}
        if isinstance(here, dict):
            return here.copy()
        raise Unwritable(self.text, f"'{step}' cannot be written into something that is not an object")


_ABSENT: Any = object()


def _plain(parsed: Parsed) -> tuple[str | int, ...] | None:
    """The steps as keys and indexes when there is nothing else among them."""
    if parsed.function:
        return None
    keys: list[str | int] = []
    for step in parsed.steps:
        match step:
            case Name(name):
                keys.append(name)
            case Index(index):
                keys.append(index)
            case _:
                return None
    return tuple(keys)


def _direct(text: str, keys: tuple[str | int, ...]) -> _Reader:
    """The fast reader: subscripts only."""
    if not keys:
        return lambda document: document
    names = tuple(key for key in keys if isinstance(key, str))
    if len(names) == len(keys):

        def read_names(document: Any) -> Any:
            try:
                for key in names:
                    document = document[key]
            except (KeyError, TypeError) as why:
                raise NoMatch(text, "no such place") from why
            return document

        return read_names

    holders: list[tuple[Any, type[Any]]] = [(key, dict if isinstance(key, str) else list) for key in keys]

    def read(document: Any) -> Any:
        for key, holder in holders:
            # An index into a text would find a character.
            if not isinstance(document, holder):
                raise NoMatch(text, "no such place")
            try:
                document = document[key]
            except (KeyError, IndexError) as why:
                raise NoMatch(text, "no such place") from why
        return document

    return read


def general(text: str, parsed: Parsed) -> _Reader:
    """The reader for any path."""
    steps, single = parsed.steps, parsed.single
    function = FUNCTIONS[parsed.function] if parsed.function else None

    def read(document: Any) -> Any:
        try:
            values = walk(steps, document, document)
            if single and not values:
                raise Nowhere
            found = values[0] if single else values
            return function(found) if function else found
        except Nowhere as why:
            raise NoMatch(text, "no such place") from why

    return read


def _parsed(text: str) -> Parsed:
    if len(text) > PATH_LENGTH_MAX:
        raise PathError(text[:80] + "…", "too long")
    return parse(text)


@lru_cache(CACHED_MAX)
def compile_path(text: str) -> Path:
    """A path of any kind: names, brackets, slices, wildcards, `..`, filters, a function at the end.

    Raises PathError.
    """
    return Path(text, _parsed(text))


@lru_cache(CACHED_MAX)
def compile_reference(text: str) -> Reference:
    """A reference path: names and indexes only. Raises PathError.

    Source: docs.aws.amazon.com/step-functions/latest/dg/amazon-states-language-paths.html, "Reference Paths".
    """
    parsed = _parsed(text)
    keys = _plain(parsed)
    if keys is None:
        raise PathError(text, "a reference path must name one place: only names and indexes")
    return Reference(text, parsed.root, keys)
