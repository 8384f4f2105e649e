"""JSONata as Step Functions speaks it: expressions compiled once, evaluated with variables and chance from outside.

Keeps true: any text becomes an Expression or ExpressionInvalid; an evaluation gives plain JSON, UNDEFINED, or
ExpressionFailed, and changes nothing. A path of plain names from a variable, by far the commonest expression, never
meets the engine; it and the engine agree. Does not know fields, states or `{% %}`.
Source: docs.aws.amazon.com/step-functions/latest/dg/transforming-data.html
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from muster.languages.intrinsics.functions import Chance
from muster.languages.jsonata.failures import (
    INVALID,
    UNDEFINED,
    UNSUPPORTED,
    ExpressionFailed,
    ExpressionInvalid,
    Undefined,
)

if TYPE_CHECKING:
    from muster.languages.jsonata.engine import Parsed

__all__ = [
    "INVALID",
    "UNDEFINED",
    "UNSUPPORTED",
    "Expression",
    "ExpressionFailed",
    "ExpressionInvalid",
    "Undefined",
    "compile_expression",
]

CACHED_MAX = 8192
TEXT_MAX = 100_000

_PLAIN = re.compile(r"\$[A-Za-z_][A-Za-z_0-9]*(?:\.[A-Za-z_][A-Za-z_0-9]*)*", re.ASCII)
_RESERVED = frozenset(("and", "or", "in", "true", "false", "null", "function"))


class Expression:
    """A compiled expression. `variables`: the names it reads, without `$`, functions among them."""

    __slots__ = ("_keys", "_name", "_parsed", "text", "variables")

    def __init__(self, text: str) -> None:
        self.text = text
        self._parsed: Parsed | None = None
        names = text.split(".")
        if _PLAIN.fullmatch(text) and not _RESERVED.intersection(names):
            self._name = names[0][1:]
            self._keys: tuple[str, ...] | None = tuple(names[1:])
            self.variables = frozenset((self._name,))
        else:
            self._name = ""
            self._keys = None
            self.variables = self.parsed().variables

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def parsed(self) -> "Parsed":
        """The expression as the engine has it; parsed when first needed."""
        if self._parsed is None:
            # Here and not above: loading the engine takes a tenth of a second, and many programs never need it.
            from muster.languages.jsonata.engine import Parsed

            self._parsed = Parsed(self.text)
        return self._parsed

    def evaluate(self, variables: Mapping[str, Any], chance: Chance, now: float | None = None) -> Any:
        """The value with these variables (names without `$`): plain JSON, or UNDEFINED when it is nothing.

        `now` (seconds since the epoch) is what $now() and $millis() tell; without it, they tell when the state was
        entered, by `states.context.State.EnteredTime`. Raises ExpressionFailed.
        """
        if self._keys is not None and self._name in variables:
            value = variables[self._name]
            for key in self._keys:
                if isinstance(value, dict):
                    value = value.get(key, UNDEFINED)
                elif isinstance(value, list):
                    break
                else:
                    return UNDEFINED
            else:
                return value
        return self.parsed().evaluate(variables, chance, now)


@lru_cache(CACHED_MAX)
def compile_expression(text: str) -> Expression:
    """An expression, without its `{% %}`. Raises ExpressionInvalid, whose `code` is that of AWS's diagnostic."""
    if len(text) > TEXT_MAX:
        raise ExpressionInvalid(f"The expression is longer than {TEXT_MAX} characters")
    return Expression(text.strip())
