"""The JSON paths of `InputPath` and `InputPathsMap`: names and places in arrays, from the event down.

Keeps true: a path that was accepted can be followed in any event; where it leads nowhere, the answer is ABSENT.
Source: the EventBridge user guide, "Input transformation": dot notation, `[n]`, `['name']` and `[*]`.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final


class InvalidPath(Exception):
    """A text that is no path."""


class _Absent:
    """Nothing there, as opposed to null."""


class _All:
    """All elements."""


ABSENT: Final = _Absent()
_EACH: Final = _All()
Step = str | int | _All


@lru_cache(maxsize=1024)
def steps(text: str) -> tuple[Step, ...]:
    """The steps of a path; InvalidPath when the text is none."""
    if not text.startswith("$"):
        raise InvalidPath(text)
    found: list[Step] = []
    at = 1
    while at < len(text):
        if text[at] == "[":
            end = text.find("]", at)
            if end < 0:
                raise InvalidPath(text)
            found.append(_bracketed(text[at + 1 : end], text))
            at = end + 1
        elif text[at] == ".":
            end = at + 1
            while end < len(text) and text[end] not in ".[":
                end += 1
            if end == at + 1:
                raise InvalidPath(text)
            name = text[at + 1 : end]
            found.append(_EACH if name == "*" else name)
            at = end
        else:
            raise InvalidPath(text)
    return tuple(found)


def _bracketed(text: str, path: str) -> Step:
    if text == "*":
        return _EACH
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.removeprefix("-").isdecimal():
        return int(text)
    raise InvalidPath(path)


def follow(path: str, document: Any) -> Any:
    """What the path leads to in the document, or ABSENT."""
    return _follow(steps(path), document)


def _follow(left: Sequence[Step], value: Any) -> Any:
    for number, step in enumerate(left):
        if isinstance(step, _All):
            members = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
            found = [_follow(left[number + 1 :], member) for member in members]
            return [one for one in found if one is not ABSENT] or ABSENT
        if isinstance(step, int):
            if not isinstance(value, list) or not -len(value) <= step < len(value):
                return ABSENT
            value = value[step]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return ABSENT
    return value
