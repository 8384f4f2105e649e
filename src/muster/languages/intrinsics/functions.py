"""Step Functions' intrinsic functions, as plain functions of their arguments.

Keeps true: a function refuses with IntrinsicFailed and nothing else, and changes none of its arguments. Does not know
how calls are written. Sizes and argument rules:
docs.aws.amazon.com/step-functions/latest/dg/intrinsic-functions.html. AWS does not publish the refusals' wording.
"""

import base64
import binascii
import hashlib
import json
import math
import random
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Protocol

from muster.languages.intrinsics.failures import IntrinsicFailed

TEXT_MAX = 10_000  # characters that the encodings and the hash take
RANGE_MAX = 1_000  # elements that ArrayRange makes, and chunks that ArrayPartition makes

HASHES = {"MD5": "md5", "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512"}


class Chance(Protocol):
    """Where random numbers and ids come from."""

    def random(self) -> float: ...

    def new_id(self) -> str: ...


def refuse(name: str, why: str) -> IntrinsicFailed:
    """The refusal of a call, to be raised."""
    return IntrinsicFailed(f"Invalid arguments in States.{name}: {why}")


def is_number(value: Any) -> bool:
    """Whether a value is a JSON number that is finite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def rounded(value: Any) -> int:
    """A number as AWS rounds it: halves towards positive infinity, as Java's Math.round (observed: -1.5 gives -1)."""
    return value if isinstance(value, int) else math.floor(value + 0.5)


def whole(name: str, value: Any, what: str) -> int:
    """A number that has to be an integer; others are rounded."""
    if not is_number(value):
        raise refuse(name, f"{what} must be a number")
    return rounded(value)


def array(name: str, value: Any) -> list[Any]:
    """An argument that must be an array."""
    if not isinstance(value, list):
        raise refuse(name, "the argument must be an array")
    return value


def text(name: str, value: Any, what: str = "the argument") -> str:
    """An argument that must be a string."""
    if not isinstance(value, str):
        raise refuse(name, f"{what} must be a string")
    return value


def number_text(value: int | float) -> str:
    """A number as Java prints it: 1.0, 0.001, 1.0E7, 1.5E-4."""
    if isinstance(value, int):
        return str(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, exponent = f"{Decimal(repr(value)).normalize():E}".split("E")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def json_text(value: Any) -> str:
    """Compact JSON, members in their order, as JsonToString writes it."""
    pieces: list[str] = []
    try:
        _write(value, pieces.append)
    except (RecursionError, TypeError, ValueError) as why:
        raise IntrinsicFailed(f"the value cannot be written as JSON: {why}") from why
    return "".join(pieces)


def _write(value: Any, write: Callable[[str], None]) -> None:
    if isinstance(value, dict):
        before = "{"
        for name, inner in value.items():
            write(before + json.dumps(name, ensure_ascii=False) + ":")
            _write(inner, write)
            before = ","
        write("}" if value else "{}")
    elif isinstance(value, list):
        before = "["
        for inner in value:
            write(before)
            _write(inner, write)
            before = ","
        write("]" if value else "[]")
    elif isinstance(value, float) and math.isfinite(value):
        write(number_text(value))
    else:
        write(json.dumps(value, ensure_ascii=False, allow_nan=False))


def shown(value: Any) -> str:
    """A value as Format puts it into a text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | dict):
        raise refuse("Format", "an argument must be a string, a number, a boolean or null")
    return json_text(value)


def key(value: Any) -> Any:
    """Something hashable that is equal for equal JSON values (1 and 1.0 are, true and 1 are not)."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, dict):
        return ("object", frozenset((name, key(inner)) for name, inner in value.items()))
    if isinstance(value, list):
        return ("array", tuple(key(inner) for inner in value))
    return value


_PLACEHOLDER = re.compile(r"\\([\\'{}])|(\{\})")


def template_pieces(template: str, literal: bool) -> list[str]:
    """The texts around each `{}` of a template. In a literal one `\\{` and the like stand for the character."""
    if not literal:
        return template.split("{}")
    pieces = [""]
    at = 0
    for found in _PLACEHOLDER.finditer(template):
        escaped = found.group(1)
        pieces[-1] += template[at : found.start()] + (escaped or "")
        at = found.end()
        if not escaped:
            pieces.append("")
    pieces[-1] += template[at:]
    return pieces


def format_text(pieces: Sequence[str], arguments: Sequence[Any]) -> str:
    """The pieces with an argument between each two."""
    if len(pieces) != len(arguments) + 1:
        raise refuse("Format", "the number of '{}' and of arguments differ")
    texts = [pieces[0]]
    for argument, piece in zip(arguments, pieces[1:], strict=True):
        texts += (shown(argument), piece)
    return "".join(texts)


def string_to_json(value: Any) -> Any:
    source = text("StringToJson", value)
    if not source.strip():
        return None
    try:
        return json.loads(source, parse_constant=_no_constant)
    except (ValueError, RecursionError) as why:
        raise refuse("StringToJson", "the text is not valid JSON") from why


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def array_partition(value: Any, size: Any) -> list[list[Any]]:
    items = array("ArrayPartition", value)
    step = whole("ArrayPartition", size, "the chunk size")
    if step <= 0:
        raise refuse("ArrayPartition", "the chunk size must be a positive integer")
    if -(-len(items) // step) > RANGE_MAX:
        raise refuse("ArrayPartition", f"more than {RANGE_MAX} chunks")
    return [items[start : start + step] for start in range(0, len(items), step)]


def array_contains(value: Any, wanted: Any) -> bool:
    sought = key(wanted)
    return any(key(item) == sought for item in array("ArrayContains", value))


def array_range(first: Any, last: Any, step: Any) -> list[int]:
    start, stop, stride = (whole("ArrayRange", value, "each argument") for value in (first, last, step))
    if stride == 0:
        raise refuse("ArrayRange", "the step must not be 0")
    numbers = range(start, stop + (1 if stride > 0 else -1), stride)
    # Not len(): it fails beyond 2**63.
    if numbers[RANGE_MAX : RANGE_MAX + 1]:
        raise refuse("ArrayRange", f"more than {RANGE_MAX} elements")
    return list(numbers)


def array_get_item(value: Any, index: Any) -> Any:
    items = array("ArrayGetItem", value)
    place = whole("ArrayGetItem", index, "the index")
    if not 0 <= place < len(items):
        raise refuse("ArrayGetItem", f"the index {place} is out of bounds for an array of length {len(items)}")
    return items[place]


def array_unique(value: Any) -> list[Any]:
    found: dict[Any, Any] = {}
    for item in array("ArrayUnique", value):
        found.setdefault(key(item), item)
    return list(found.values())


def base64_encode(value: Any) -> str:
    return base64.b64encode(_bounded("Base64Encode", value).encode("utf-8", "surrogatepass")).decode()


def base64_decode(value: Any) -> str:
    source = _bounded("Base64Decode", value)
    try:
        return base64.b64decode(source, validate=True).decode()
    except (binascii.Error, ValueError) as why:
        raise refuse("Base64Decode", "the text is not valid Base64") from why


def _bounded(name: str, value: Any) -> str:
    source = text(name, value)
    if len(source) > TEXT_MAX:
        raise refuse(name, f"more than {TEXT_MAX} characters")
    return source


def hashed(value: Any, algorithm: Any) -> str:
    """The hash in hexadecimal; a value that is not a string is hashed as its JSON text."""
    source = value if isinstance(value, str) else json_text(value)
    if len(source) > TEXT_MAX:
        raise refuse("Hash", f"more than {TEXT_MAX} characters")
    if algorithm not in HASHES if isinstance(algorithm, str) else True:
        raise refuse("Hash", f"the algorithm must be one of {', '.join(HASHES)}")
    return hashlib.new(HASHES[algorithm], source.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def json_merge(left: Any, right: Any, deep: Any) -> dict[str, Any]:
    if not isinstance(left, dict) or not isinstance(right, dict):
        raise refuse("JsonMerge", "the first two arguments must be objects")
    if deep is not False:
        raise refuse("JsonMerge", "only shallow merging is supported: the third argument must be false")
    return {**left, **right}


def math_add(left: Any, right: Any) -> int:
    return whole("MathAdd", left, "each argument") + whole("MathAdd", right, "each argument")


def math_random(first: Any, last: Any, seed: Any, chance: Chance) -> int:
    """An integer from `first` up to, not including, `last`; the same one for the same seed."""
    start = whole("MathRandom", first, "each argument")
    stop = whole("MathRandom", last, "each argument")
    if start >= stop:
        raise refuse("MathRandom", "the start number must be less than the end number")
    if seed is None:
        drawn = chance.random()
    else:
        drawn = random.Random(whole("MathRandom", seed, "each argument")).random()
    return min(start + int(drawn * (stop - start)), stop - 1)


def string_split(value: Any, separators: Any) -> list[str]:
    """The parts between any of the separator's characters; empty parts are left out."""
    source = text("StringSplit", value)
    around = text("StringSplit", separators)
    if not around:
        return [source]
    return [part for part in re.split(f"[{re.escape(around)}]", source) if part]


def uuid(chance: Chance) -> str:
    return chance.new_id()


Call = Callable[[Sequence[Any], Chance], Any]

# name -> fewest and most arguments, and the function. Format is not here: its first argument may be a literal.
FUNCTIONS: dict[str, tuple[int, int | None, Call]] = {
    "StringToJson": (1, 1, lambda a, chance: string_to_json(a[0])),
    "JsonToString": (1, 1, lambda a, chance: json_text(a[0])),
    "Array": (0, None, lambda a, chance: list(a)),
    "ArrayPartition": (2, 2, lambda a, chance: array_partition(*a)),
    "ArrayContains": (2, 2, lambda a, chance: array_contains(*a)),
    "ArrayRange": (3, 3, lambda a, chance: array_range(*a)),
    "ArrayGetItem": (2, 2, lambda a, chance: array_get_item(*a)),
    "ArrayLength": (1, 1, lambda a, chance: len(array("ArrayLength", a[0]))),
    "ArrayUnique": (1, 1, lambda a, chance: array_unique(a[0])),
    "Base64Encode": (1, 1, lambda a, chance: base64_encode(a[0])),
    "Base64Decode": (1, 1, lambda a, chance: base64_decode(a[0])),
    "Hash": (2, 2, lambda a, chance: hashed(*a)),
    "JsonMerge": (3, 3, lambda a, chance: json_merge(*a)),
    "MathRandom": (2, 3, lambda a, chance: math_random(a[0], a[1], a[2] if len(a) > 2 else None, chance)),
    "MathAdd": (2, 2, lambda a, chance: math_add(*a)),
    "StringSplit": (2, 2, lambda a, chance: string_split(*a)),
    "UUID": (0, 0, lambda a, chance: uuid(chance)),
}
