"""The JSON of a pattern, with the order and the repetitions of its names kept.

Keeps true: what is wrong with the text is said as EventBridge says it, which reads patterns with the Jackson parser.
Does not know what the names mean.
"""

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from muster.languages.patterns.problem import InvalidPattern

_EXPECTED = "was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')"


@dataclass(frozen=True, slots=True)
class Members:
    """A JSON object as written: its members in order, repeated names included."""

    pairs: tuple[tuple[str, Any], ...]


def read(text: str) -> Members:
    """The object that `text` is; InvalidPattern when it is none."""
    try:
        document = _DECODER.decode(text)
    except json.JSONDecodeError as problem:
        _refuse(text, problem)
    except RecursionError:
        raise InvalidPattern("Document nesting depth exceeds the maximum allowed") from None
    if not isinstance(document, Members):
        raise InvalidPattern(f"Filter is not an object{_where(text, len(text) - len(text.lstrip()) + 1)}")
    return document


def _no_constant(name: str) -> NoReturn:
    raise InvalidPattern(f"Unrecognized token '{name}': {_EXPECTED}")


_DECODER = json.JSONDecoder(object_pairs_hook=lambda pairs: Members(tuple(pairs)), parse_constant=_no_constant)


def _where(text: str, offset: int) -> str:
    before = text[:offset]
    line, column = before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
    return f'\n at [Source: (String)"{text}"; line: {line}, column: {column}]'


def _refuse(text: str, problem: json.JSONDecodeError) -> NoReturn:
    at = problem.pos
    if at >= len(text):
        raise InvalidPattern(f"Unexpected end-of-input{_where(text, len(text))}") from None
    if problem.msg.startswith("Expecting value") and (text[at].isalnum() or text[at] in "_$"):
        end = at
        while end < len(text) and (text[end].isalnum() or text[end] in "_$"):
            end += 1
        raise InvalidPattern(f"Unrecognized token '{text[at:end]}': {_EXPECTED}{_where(text, end)}") from None
    if problem.msg.startswith("Expecting property name"):
        wanted = "was expecting double-quote to start field name"
    elif problem.msg.startswith("Expecting ':'"):
        wanted = "was expecting a colon to separate field name and value"
    elif problem.msg.startswith("Expecting ','"):
        wanted = "was expecting comma to separate entries"
    else:
        wanted = "expected a valid value (JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
    character = text[at]
    raise InvalidPattern(
        f"Unexpected character ('{character}' (code {ord(character)})): {wanted}{_where(text, at)}"
    ) from None
