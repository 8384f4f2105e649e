"""Intrinsic functions of Step Functions: the text of a call, compiled to something that can be evaluated.

Keeps true: a text is compiled once; it either becomes an Intrinsic or is refused with IntrinsicInvalid, and evaluating
raises IntrinsicFailed or whatever `resolve` raises, nothing else. Does not know what a path means: `resolve` is asked.
Source: docs.aws.amazon.com/step-functions/latest/dg/intrinsic-functions.html and states-language.net, "Intrinsic
Functions" (the escapes \\' \\{ \\} \\\\ in a literal).
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from muster.languages.intrinsics.failures import IntrinsicFailed, IntrinsicInvalid
from muster.languages.intrinsics.functions import FUNCTIONS, Chance, format_text, template_pieces, text
from muster.languages.jsonpath import PathError, compile_path

__all__ = ["Chance", "Intrinsic", "IntrinsicFailed", "IntrinsicInvalid", "compile_intrinsic"]

CACHED_MAX = 8192
NESTING_MAX = 10  # calls within calls, AWS's limit
TEXT_MAX = 10_000  # characters of one invocation, AWS's limit on literals and more than any definition needs

Resolve = Callable[[str], Any]
_Part = Callable[[Resolve, Chance], Any]

_NAME = re.compile(r"States\.([A-Za-z0-9]+)\s*\(")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d{1,3})?")
_WORDS = {"true": True, "false": False, "null": None}
_SPACE = " \t\r\n"
_ESCAPED = frozenset("'{}\\")


class Intrinsic:
    """A compiled call. `paths` are the texts of all paths in it, in order."""

    __slots__ = ("_call", "paths", "text")

    def __init__(self, text: str, call: _Part, paths: tuple[str, ...]) -> None:
        self.text = text
        self.paths = paths
        self._call = call

    def __repr__(self) -> str:
        return f"Intrinsic({self.text!r})"

    def evaluate(self, resolve: Resolve, ids: Chance) -> Any:
        """The call's value. `resolve` gets the text of each path in it; raises IntrinsicFailed."""
        return self._call(resolve, ids)


@lru_cache(CACHED_MAX)
def compile_intrinsic(text: str) -> Intrinsic:
    """A call such as `States.Format('{}', $.x)`, nested up to ten deep. Raises IntrinsicInvalid."""
    if len(text) > TEXT_MAX:
        raise IntrinsicInvalid(text[:80] + "…", f"longer than {TEXT_MAX} characters")
    parser = _Parser(text)
    call = parser.whole()
    return Intrinsic(text, call, tuple(parser.paths))


class _Literal(str):
    """A literal text with its escapes undone; `raw` has them still, for Format."""

    raw: str


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.paths: list[str] = []

    def fail(self, reason: str) -> IntrinsicInvalid:
        return IntrinsicInvalid(self.text, reason)

    def whole(self) -> _Part:
        self.blanks()
        call = self.call(1)
        self.blanks()
        if self.at < len(self.text):
            raise self.fail(f"unexpected '{self.text[self.at]}' at position {self.at}")
        return call

    def blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _SPACE:
            self.at += 1

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def call(self, depth: int) -> _Part:
        found = _NAME.match(self.text, self.at)
        if not found:
            raise self.fail(f"expected an intrinsic function at position {self.at}")
        name = found.group(1)
        if name != "Format" and name not in FUNCTIONS:
            raise self.fail(f"there is no intrinsic function States.{name}")
        if depth > NESTING_MAX:
            raise self.fail(f"more than {NESTING_MAX} nested intrinsic functions")
        self.at = found.end()
        return self.compiled(name, self.arguments(depth))

    def arguments(self, depth: int) -> list[tuple[_Part, Any]]:
        """Each argument as a part, and its value when it is a literal (else None)."""
        self.blanks()
        arguments: list[tuple[_Part, Any]] = []
        if self.peek() != ")":
            arguments.append(self.argument(depth))
            self.blanks()
            while self.peek() == ",":
                self.at += 1
                self.blanks()
                arguments.append(self.argument(depth))
                self.blanks()
        if self.peek() != ")":
            raise self.fail(f"expected ',' or ')' at position {self.at}")
        self.at += 1
        return arguments

    def argument(self, depth: int) -> tuple[_Part, Any]:
        char = self.peek()
        if char == "$":
            return self.path(), None
        if char == "S":
            return self.call(depth + 1), None
        value = self.literal_text() if char == "'" else self.scalar()
        return lambda resolve, chance: value, value

    def literal_text(self) -> _Literal:
        start = self.at = self.at + 1
        pieces: list[str] = []
        while (char := self.peek()) != "'":
            if not char:
                raise self.fail("a literal text does not end")
            if char == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                if not following:
                    raise self.fail("an escape does not end")
                pieces.append(following if following in _ESCAPED else char + following)
                self.at += 2
            else:
                pieces.append(char)
                self.at += 1
        literal = _Literal("".join(pieces))
        literal.raw = self.text[start : self.at]
        self.at += 1
        return literal

    def scalar(self) -> Any:
        for word, value in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        number = _NUMBER.match(self.text, self.at)
        if not number or len(number.group()) > 64:
            raise self.fail(f"expected an argument at position {self.at}")
        self.at = number.end()
        return float(number.group()) if number.group(1) or number.group(2) else int(number.group())

    def path(self) -> _Part:
        """A path ends at a ',' or ')' that no bracket or quote of its own encloses."""
        start = self.at
        closers: list[str] = []
        quote = ""
        while char := self.peek():
            if quote:
                if char == "\\":
                    self.at += 1
                elif char == quote:
                    quote = ""
            elif closers and char in "'\"":
                quote = char
            elif char in "[(":
                closers.append("]" if char == "[" else ")")
            elif closers and char == closers[-1]:
                closers.pop()
            elif not closers and char in ",)":
                break
            self.at += 1
        path = self.text[start : self.at].strip()
        try:
            compile_path(path)
        except PathError as why:
            raise self.fail(f"invalid path {path}: {why.reason}") from why
        self.paths.append(path)
        return lambda resolve, chance: resolve(path)

    def compiled(self, name: str, arguments: list[tuple[_Part, Any]]) -> _Part:
        parts = [part for part, _ in arguments]
        if name == "Format":
            if not parts:
                raise self.fail("States.Format needs a template")
            template, rest = arguments[0][1], parts[1:]
            if isinstance(template, _Literal):
                pieces = template_pieces(template.raw, literal=True)
                return lambda resolve, chance: format_text(pieces, [part(resolve, chance) for part in rest])
            return lambda resolve, chance: format_text(
                template_pieces(text("Format", parts[0](resolve, chance), "the first argument"), literal=False),
                [part(resolve, chance) for part in rest],
            )
        fewest, most, function = FUNCTIONS[name]
        if len(parts) < fewest or (most is not None and len(parts) > most):
            raise self.fail(f"States.{name} takes {fewest} argument(s), not {len(parts)}")
        return lambda resolve, chance: function([part(resolve, chance) for part in parts], chance)
