"""JSONPath text to steps, in the dialect that Step Functions takes (Jayway's).

Keeps true: any text either becomes steps or is refused with PathError; nothing else is raised, whatever its length or
nesting. A backslash in a quoted name escapes only the quote and itself, as AWS was observed to read
`$['Test\\""Name"']`. Does not know documents.
Source: docs.aws.amazon.com/step-functions/latest/dg/amazon-states-language-paths.html
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from muster.languages.jsonpath import filters
from muster.languages.jsonpath.filters import MISSING, Condition, Operand
from muster.languages.jsonpath.steps import (
    FUNCTIONS,
    Descent,
    Filter,
    Index,
    Indexes,
    Name,
    Names,
    Nowhere,
    PathError,
    Slice,
    Step,
    Wildcard,
    walk,
)

T = TypeVar("T")

NESTING_MAX = 40  # brackets within brackets in a filter
_INTEGER = re.compile(r"-?\d{1,18}")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d{1,3})?")
_VARIABLE = re.compile(r"[^\W\d]\w{0,79}")
_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE, "u": re.UNICODE, "d": re.NOFLAG}
_ENDS_NAME = frozenset(".[( \t\n\r")
_ENDS_NAME_IN_FILTER = _ENDS_NAME | frozenset(")]<>=!~&|,")
_SPACE = frozenset(" \t\n\r")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a text says: where to start, the steps, and the function that is called on what they find."""

    root: str
    steps: tuple[Step, ...]
    function: str | None

    @property
    def single(self) -> bool:
        """Whether the steps lead to one value at most."""
        return all(step.single for step in self.steps)


def parse(text: str) -> Parsed:
    """A whole path. Raises PathError."""
    return _Parser(text.strip(), text).whole()


class _Parser:
    def __init__(self, source: str, text: str) -> None:
        self.source = source
        self.text = text
        self.at = 0
        self.depth = 0

    def fail(self, reason: str) -> PathError:
        return PathError(self.text, reason)

    def peek(self, count: int = 1) -> str:
        return self.source[self.at : self.at + count]

    def take(self, piece: str) -> bool:
        if self.source.startswith(piece, self.at):
            self.at += len(piece)
            return True
        return False

    def need(self, piece: str) -> None:
        if not self.take(piece):
            raise self.fail(f"expected '{piece}' at position {self.at}")

    def blanks(self) -> None:
        while self.at < len(self.source) and self.source[self.at] in _SPACE:
            self.at += 1

    # paths

    def whole(self) -> Parsed:
        if not self.take("$"):
            raise self.fail("a path begins with '$'")
        root = "$"
        if self.take("$"):
            root = "$$"
        elif variable := _VARIABLE.match(self.source, self.at):
            root = variable.group()
            self.at = variable.end()
        steps, function = self.steps(_ENDS_NAME)
        if self.at < len(self.source):
            raise self.fail(f"unexpected '{self.peek()}' at position {self.at}")
        return Parsed(root, steps, function)

    def steps(self, ends: frozenset[str]) -> tuple[tuple[Step, ...], str | None]:
        steps: list[Step] = []
        function = None
        while function is None:
            if self.take(".."):
                steps.append(Descent())
                if self.peek() == "[":
                    steps.append(self.bracket(below=True))
                else:
                    steps.append(self.dotted(ends))
            elif self.take("."):
                if self.peek() == "[":
                    steps.append(self.bracket())
                    continue
                step = self.dotted(ends)
                if isinstance(step, Name) and self.peek() == "(":
                    function = self.function(step.name)
                else:
                    steps.append(step)
            elif self.peek() == "[":
                steps.append(self.bracket())
            else:
                break
        last = len(steps) - 1
        settled: list[Step] = [
            Names(step.names, single=place == last) if isinstance(step, Names) else step
            for place, step in enumerate(steps)
        ]
        return tuple(settled), function

    def dotted(self, ends: frozenset[str]) -> Step:
        start = self.at
        while self.at < len(self.source) and self.source[self.at] not in ends:
            self.at += 1
        name = self.source[start : self.at]
        if not name:
            raise self.fail("a path must not end with '.' or '..'" if self.at >= len(self.source) else "empty name")
        return Wildcard() if name == "*" else Name(name)

    def function(self, name: str) -> str:
        if name not in FUNCTIONS:
            raise self.fail(f"the function {name}() is not supported")
        self.need("(")
        self.blanks()
        self.need(")")
        return name

    def bracket(self, below: bool = False) -> Step:
        self.need("[")
        self.blanks()
        if self.take("*"):
            step: Step = Wildcard()
        elif self.peek() == "?":
            step = Filter(self.filter(), below)
        elif self.peek() in ("'", '"'):
            names = self.listed(self.quoted)
            if len(names) == 1:
                step = Name(names[0])
            else:
                step = Names(tuple(names), single=True)
        else:
            step = self.places()
        self.blanks()
        self.need("]")
        return step

    def listed(self, one: Callable[[], T]) -> list[T]:
        items = [one()]
        self.blanks()
        while self.take(","):
            self.blanks()
            items.append(one())
            self.blanks()
        return items

    def quoted(self) -> str:
        quote = self.peek()
        if quote not in ("'", '"'):
            raise self.fail(f"expected a quoted text at position {self.at}")
        self.at += 1
        parts: list[str] = []
        while self.at < len(self.source):
            char = self.source[self.at]
            self.at += 1
            if char == quote:
                return "".join(parts)
            if char == "\\" and self.peek() in ("\\", quote):
                char = self.peek()
                self.at += 1
            parts.append(char)
        raise self.fail("a quoted text does not end")

    def integer(self) -> int:
        found = _INTEGER.match(self.source, self.at)
        if not found:
            raise self.fail(f"expected a name in quotes, a number, '*' or '?' at position {self.at}")
        self.at = found.end()
        return int(found.group())

    def places(self) -> Step:
        start = None if self.peek() == ":" else self.integer()
        self.blanks()
        if self.take(":"):
            self.blanks()
            stop = self.integer() if _INTEGER.match(self.source, self.at) else None
            return Slice(start, stop)
        assert start is not None
        indexes = [start]
        while self.take(","):
            self.blanks()
            indexes.append(self.integer())
            self.blanks()
        return Index(start) if len(indexes) == 1 else Indexes(tuple(indexes))

    # filters

    def filter(self) -> Condition:
        self.need("?")
        self.blanks()
        self.need("(")
        condition = self.either()
        self.need(")")
        return condition

    def nested(self, inner: Callable[[], T]) -> T:
        self.depth += 1
        if self.depth > NESTING_MAX:
            raise self.fail("nested too deeply")
        result = inner()
        self.depth -= 1
        return result

    def either(self) -> Condition:
        conditions = [self.every()]
        while self.take("||"):
            conditions.append(self.every())
        return conditions[0] if len(conditions) == 1 else filters.either(conditions)

    def every(self) -> Condition:
        conditions = [self.condition()]
        while self.take("&&"):
            conditions.append(self.condition())
        return conditions[0] if len(conditions) == 1 else filters.every(conditions)

    def condition(self) -> Condition:
        self.blanks()
        if self.peek() == "!" and self.peek(2) != "!=":
            self.at += 1
            condition = filters.negated(self.nested(self.condition))
        elif self.take("("):
            condition = self.nested(self.either)
            self.need(")")
        else:
            condition = self.comparison()
        self.blanks()
        return condition

    def comparison(self) -> Condition:
        is_path = self.peek() in ("@", "$")
        left = self.operand()
        self.blanks()
        operator = next((name for name in filters.SYMBOLS if self.take(name)), None)
        if operator is None:
            lowered = self.source[self.at : self.at + 9].lower()
            operator = next((name for name in filters.WORDS if lowered.startswith(name)), None)
            self.at += len(operator or "")
        if operator is None:
            if not is_path:
                raise self.fail(f"expected an operator at position {self.at}")
            return filters.exists(left)
        self.blanks()
        return filters.compared(operator, left, self.operand())

    def operand(self) -> Operand:
        char = self.peek()
        if char in ("@", "$"):
            return self.nested(self.path_operand)
        if char == "/":
            return filters.literal(self.pattern())
        return filters.literal(self.nested(self.literal))

    def path_operand(self) -> Operand:
        from_item = self.take("@")
        if not from_item:
            self.need("$")
        steps, function = self.steps(_ENDS_NAME_IN_FILTER)
        single = all(step.single for step in steps)
        call = FUNCTIONS[function] if function else None

        def value(item: Any, root: Any) -> Any:
            try:
                values = walk(steps, item if from_item else root, root)
                found: Any = values if not single else values[0] if values else MISSING
                return call(found) if call else found
            except Nowhere:
                return MISSING

        return value

    def literal(self) -> Any:
        char = self.peek()
        if char in ("'", '"'):
            return self.quoted()
        if self.take("["):
            self.blanks()
            items = [] if self.peek() == "]" else self.listed(lambda: self.nested(self.literal))
            self.need("]")
            return items
        for word, value in (("true", True), ("false", False), ("null", None)):
            if self.take(word):
                return value
        number = _NUMBER.match(self.source, self.at)
        if not number or len(number.group()) > 64:
            raise self.fail(f"expected a value at position {self.at}")
        self.at = number.end()
        return float(number.group()) if number.group(1) or number.group(2) else int(number.group())

    def pattern(self) -> re.Pattern[str]:
        self.need("/")
        start = self.at
        while self.at < len(self.source) and self.source[self.at] != "/":
            self.at += 2 if self.source[self.at] == "\\" else 1
        body = self.source[start : self.at].replace("\\/", "/")
        self.need("/")
        flags = re.NOFLAG
        while self.peek() and self.peek() in _FLAGS:
            flags |= _FLAGS[self.peek()]
            self.at += 1
        try:
            return re.compile(body, flags)
        except (re.error, OverflowError, RecursionError) as why:
            raise self.fail(f"invalid regular expression: {why}") from why
