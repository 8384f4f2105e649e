"""Error texts of JSONata as its reference implementation, and so AWS, words them.

Keeps true: every error of the engine gets a text. The engine's catalogue is a translation in which "function" became
"Object" and the inserts lost their quotes; both are mended here. Observed on AWS: `T0410: Argument 1 of function "abs"
does not match function signature`, `T0412: Argument 1 of function "sum" must be an array of "numbers"`.
"""

import re
from typing import Any

import orjson
from jsonata import JException

_INSERT = re.compile(r"\{\{\{(\w+)\}\}\}|\{\{(\w+)\}\}")
_TYPES = {"a": "arrays", "b": "booleans", "f": "functions", "n": "numbers", "o": "objects", "s": "strings"}
# Which of the engine's values stand for which inserts, where that is not simply their order.
_ORDER: dict[str, tuple[str, ...]] = {
    "T0411": ("value", "index"),
    "D1002": ("token", "value"),
    "S0202": ("value", "token"),
    "S0203": ("value", "token"),
}


def wording(error: JException, function: str | None = None) -> str:
    """The text of an error; `function` is the name of the function that was being called."""
    template = JException.error_codes.get(error.error)
    if template is None:
        return str(error.error)
    values = [error.current, error.expected, error.extra]
    inserts = [first or second for first, second in _INSERT.findall(template)]
    named = dict(zip(_ORDER.get(error.error, tuple(inserts)), values, strict=False))
    if error.error in ("T0410", "T0411", "T0412") and named.get("token") is None:
        named["token"] = function
    if error.error == "T0412":
        named["type"] = _TYPES.get(str(error.extra), error.extra)

    def insert(found: re.Match[str]) -> str:
        raw, quoted = found.groups()
        return str(named.get(raw)) if raw else _shown(named.get(quoted))

    return _INSERT.sub(insert, template.replace("Object", "function"))


def _shown(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        return orjson.dumps(value, default=_nothing).decode()
    except TypeError:
        return "null"


def _nothing(value: Any) -> None:
    """JSON's null and functions, the engine's only values that are no JSON, show as null."""
