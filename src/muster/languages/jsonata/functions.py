"""The functions that Step Functions adds to JSONata, and those whose chance and time must come from the caller.

Keeps true: none touches the system's randomness or clock. `$eval` is unbound, as on AWS.
Source: docs.aws.amazon.com/step-functions/latest/dg/transforming-data.html; the answers of `$random(42)` and the
memory bound were observed on AWS.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import orjson
from jsonata import Functions, JException, Jsonata, Utils

from muster.languages.intrinsics.functions import HASHES
from muster.languages.jsonata.failures import ExpressionFailed

ELEMENTS_MAX = 873_782  # the longest sequence that AWS was observed to hold
CHARACTERS_MAX = 6_990_256  # eight times as many bytes, the same bound for a text
MEMORY = "Expression evaluation memory limit exceeded: Check for excessive memory usage"


def out_of_memory() -> ExpressionFailed:
    return ExpressionFailed(MEMORY)


class JavaRandom:
    """The first number that java.util.Random draws for a seed; `$random(42)` is 0.7275636800328681 on AWS."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)

    def _bits(self, count: int) -> int:
        self._state = (self._state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        return self._state >> (48 - count)

    def random(self) -> float:
        return ((self._bits(26) << 27) + self._bits(27)) / (1 << 53)


class _Native(Jsonata.JFunctionCallable):  # type: ignore[misc]
    """A Python function as the engine calls one; arguments that were left out are None."""

    def __init__(self, function: Callable[..., Any], most: int) -> None:
        self.function = function
        self.most = most

    def call(self, input: Any, args: Sequence[Any] | None) -> Any:
        given = list(args or ())[: self.most]
        return self.function(*given, *[None] * (self.most - len(given)))


def _current() -> Any:
    return Jsonata.CURRENT.jsonata


def partition(items: Any, size: Any) -> Any:
    if items is None or size is None:
        return None
    step = int(size)
    if step < 1 or step != size:
        raise ExpressionFailed('The second argument of function "partition" must be a positive integer')
    return [list(items[start : start + step]) for start in range(0, len(items), step)]


def arithmetic_range(first: Any, last: Any, step: Any) -> Any:
    """Whole or fractional numbers from `first` to `last`, both included. One number is itself, as for any sequence."""
    if first is None or last is None or step is None:
        return None
    if step == 0:
        raise ExpressionFailed('The third argument of function "range" must not be zero')
    count = int((last - first) / step + 1e-9) + 1 if (last - first) / step >= 0 else 0
    if count > ELEMENTS_MAX:
        raise out_of_memory()
    return Utils.create_sequence_from_iter(Utils.convert_number(first + place * step) for place in range(count))


def hashed(value: Any, algorithm: Any) -> Any:
    if value is None:
        return None
    if algorithm not in HASHES:
        raise ExpressionFailed(f'The second argument of function "hash" must be one of {", ".join(HASHES)}')
    return hashlib.new(HASHES[algorithm], value.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def drawn(seed: Any) -> float:
    number: float = _current().chance.random() if seed is None else JavaRandom(int(seed)).random()
    return number


def parse(text: Any) -> Any:
    if text is None:
        return None
    try:
        return with_nulls(orjson.loads(text))
    except ValueError as why:
        raise ExpressionFailed(f'The argument of function "parse" is not valid JSON: {why}') from why


def shuffle(items: Any) -> Any:
    if items is None:
        return None
    result = list(items)
    for place in range(len(result) - 1, 0, -1):
        other = int(_current().chance.random() * (place + 1))
        result[place], result[other] = result[other], result[place]
    return result


def now(picture: Any, timezone: Any) -> Any:
    return Functions.datetime_from_millis(_current().moment(), picture, timezone)


def number(value: Any) -> Any:
    try:
        return Functions.number(value)
    except ValueError:
        raise JException("D3030", -1, value) from None


def pad(text: Any, width: Any, char: Any) -> Any:
    if width is not None and abs(width) > CHARACTERS_MAX:
        raise out_of_memory()
    return Functions.pad(text, width, char)


_FUNCTIONS: tuple[tuple[str, str, Callable[..., Any], int], ...] = (
    ("partition", "<an:a>", partition, 2),
    ("range", "<nnn:a>", arithmetic_range, 3),
    ("hash", "<ss:s>", hashed, 2),
    ("random", "<n?:n>", drawn, 1),
    ("uuid", "<:s>", lambda: _current().chance.new_id(), 0),
    ("parse", "<s:x>", parse, 1),
    ("shuffle", "<a:a>", shuffle, 1),
    ("now", "<s?s?:s>", now, 2),
    ("millis", "<:n>", lambda: _current().moment(), 0),
    ("number", "<(nsb)-:n>", number, 1),
    ("pad", "<s-ns?:s>", pad, 3),
)


class _Function(Jsonata.JFunction):  # type: ignore[misc]
    def __init__(self, name: str, signature: str, function: Callable[..., Any], most: int) -> None:
        super().__init__(_Native(function, most), signature)
        self.function_name = name
        self.most = most

    def get_number_of_args(self) -> int:
        return self.most


def frame() -> Any:
    """The engine's functions with these over them."""
    result = Jsonata.Frame(Jsonata.static_frame)
    for name, signature, function, most in _FUNCTIONS:
        result.bind(name, _Function(name, signature, function, most))
    result.bind("eval", None)
    return result


def with_nulls(value: Any) -> Any:
    """JSON's null as the engine has it, where None means undefined; the value itself when there is none in it."""
    if isinstance(value, dict | list):
        try:
            # Looking through the text is many times quicker than looking through the value.
            if b"null" not in orjson.dumps(value):
                return value
        except TypeError:
            pass
    return _with_nulls(value)


def _with_nulls(value: Any) -> Any:
    if value is None:
        return Utils.NULL_VALUE
    if isinstance(value, dict):
        changed: dict[str, Any] = {}
        for name, inner in value.items():
            other = _with_nulls(inner)
            if other is not inner:
                changed[name] = other
        return {**value, **changed} if changed else value
    if isinstance(value, list):
        items = [_with_nulls(inner) for inner in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value
