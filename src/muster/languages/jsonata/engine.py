"""The JSONata engine, bounded and without hidden state: one evaluator per evaluation.

Keeps true: an evaluation ends (steps, depth and size are bounded, by counts and not by a clock, so that it ends the
same way every time), changes nothing it was given, and raises ExpressionFailed only. The engine keeps the evaluator of
a thread in a thread-local, which is set for the time of an evaluation; parsed trees are only read, and shared.
"""

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from jsonata import Functions, JException, Jsonata, Utils

from muster.languages.intrinsics.functions import Chance
from muster.languages.jsonata.failures import UNDEFINED, ExpressionFailed, ExpressionInvalid
from muster.languages.jsonata.functions import CHARACTERS_MAX, ELEMENTS_MAX, frame, out_of_memory, with_nulls
from muster.languages.jsonata.messages import wording
from muster.languages.jsonata.references import survey

DEPTH_MAX = 100  # evaluations within evaluations; where AWS was observed to stop, give or take one
STEPS_MAX = 200_000  # evaluations in all: a second or two
TOO_DEEP = "Stack overflow error: Check for non-terminating recursive function. Consider rewriting as tail-recursive."
TOO_LONG = "Expression evaluation timeout: Check for infinite loop"

# What a Python program of the engine's kind can trip over; the engine checks less than it promises.
_STUMBLES = (
    RuntimeError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
    re.error,
)

_FUNCTIONS = frame()


class Evaluator(Jsonata):  # type: ignore[misc]
    """A parsed expression; a copy of it evaluates once."""

    chance: Chance
    now: float | None
    depth: int = 0
    steps: int = 0
    function: str | None = None
    input: Any
    environment: Any

    def moment(self) -> int:
        """The time of the evaluation in milliseconds."""
        if self.now is None:
            raise ExpressionFailed("The time is not known here")
        return math.floor(self.now * 1000)

    def get_per_thread_instance(self) -> Any:
        return self

    def eval(self, expr: Any, input: Any, environment: Any) -> Any:
        self.steps += 1
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise ExpressionFailed(TOO_DEEP)
        if self.steps > STEPS_MAX:
            raise ExpressionFailed(TOO_LONG)
        held_input, held_environment = self.input, self.environment
        try:
            shortcut = getattr(expr, "shortcut", None)
            result = shortcut(environment) if shortcut else None
            if result is None:
                result = self._eval(expr, input, environment)
        finally:
            self.input, self.environment = held_input, held_environment
            self.depth -= 1
        if isinstance(result, str):
            if len(result) > CHARACTERS_MAX:
                raise out_of_memory()
        elif isinstance(result, list) and len(result) > ELEMENTS_MAX:
            raise out_of_memory()
        return result

    def evaluate_function(self, expr: Any, input: Any, environment: Any, applyto_context: Any) -> Any:
        try:
            return super().evaluate_function(expr, input, environment, applyto_context)
        except JException:
            if self.function is None:
                self.function = str(getattr(expr.procedure, "value", ""))
            raise

    def apply_inner(self, proc: Any, args: Any, input: Any, environment: Any) -> Any:
        # The engine would print what it was given.
        if not (Functions.is_lambda(proc) or Functions.is_regex(proc) or isinstance(proc, Jsonata.JFunctionCallable)):
            raise JException("T1006", 0)
        return super().apply_inner(proc, args, input, environment)

    def evaluate_range_expression(self, lhs: Any, rhs: Any) -> Any:
        for side, code in ((lhs, "T2003"), (rhs, "T2004")):
            if side is not None and (isinstance(side, bool) or not isinstance(side, int)):
                raise JException(code, -1, side)
        if lhs is None or rhs is None or lhs > rhs:
            return None
        if rhs - lhs >= ELEMENTS_MAX:
            raise out_of_memory()
        return Utils.create_sequence_from_iter(range(lhs, rhs + 1))


class Variables(Jsonata.Frame):  # type: ignore[misc]
    """The frame of the caller's variables, which are made the engine's own when it first asks for them."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(_FUNCTIONS)
        self.values = values

    def lookup(self, name: str) -> Any:
        if name in self.values and name not in self.bindings:
            self.bindings[name] = with_nulls(self.values[name])
        return super().lookup(name)


def shorten(node: Any) -> None:
    """Give a node that is a literal, a variable or a path of names from a variable a shorter way to its value.

    The shorter way answers None where the engine has to decide: for all that is not a text, a number or a boolean.
    """
    kind = getattr(node, "type", None)
    if not _is_bare(node):
        return
    if kind in ("string", "number"):
        literal = node.value
        node.shortcut = lambda environment: literal
    elif kind == "variable" and node.value:
        node.shortcut = _scalar(str(node.value), ())
    elif kind == "path" and not node.keep_singleton_array:
        first, *rest = node.steps
        plain_names = all(step.type == "name" for step in rest) and all(_is_bare(step) for step in node.steps)
        if first.type == "variable" and first.value and plain_names:
            node.shortcut = _scalar(str(first.value), tuple(str(step.value) for step in rest))


_ADDITIONS = ("predicate", "stages", "group", "keep_array", "tuple", "focus", "index", "ancestor", "seeking_parent")


def _is_bare(node: Any) -> bool:
    return not any(getattr(node, name, None) for name in _ADDITIONS)


def _scalar(name: str, keys: tuple[str, ...]) -> Callable[[Any], Any]:
    def shortcut(environment: Any) -> Any:
        frame = environment
        while frame is not None:
            if name in frame.bindings:
                value = frame.bindings[name]
                break
            if type(frame) is Variables and name in frame.values:
                value = frame.values[name]
                break
            frame = frame.parent
        else:
            return None
        for key in keys:
            if type(value) is not dict:
                return None
            value = value.get(key)
        return value if isinstance(value, str | int | float) else None

    return shortcut


class Parsed:
    """An expression's tree and the variables it reads (functions among them)."""

    __slots__ = ("_evaluator", "variables")

    def __init__(self, text: str) -> None:
        try:
            self._evaluator = Evaluator(text)
            if self._evaluator.errors:
                raise self._evaluator.errors[0]
        except JException as why:
            raise ExpressionInvalid(wording(why)) from why
        except IndexError as why:
            raise ExpressionInvalid("Unexpected end of expression") from why
        except _STUMBLES as why:
            raise ExpressionInvalid(f"The expression cannot be read: {why}") from why
        self.variables = survey(self._evaluator.ast, shorten)

    def evaluate(self, variables: Mapping[str, Any], chance: Chance, now: float | None) -> Any:
        """The value, with `nothing` for undefined. Raises ExpressionFailed."""
        evaluator = Evaluator.__new__(Evaluator)
        evaluator.__dict__.update(self._evaluator.__dict__)
        evaluator.chance = chance
        evaluator.now = entered_at(variables) if now is None else now
        held = getattr(Jsonata.CURRENT, "jsonata", None)
        try:
            Jsonata.CURRENT.jsonata = evaluator
            return plain(evaluator.eval(evaluator.ast, None, Variables(variables)))
        except JException as why:
            raise ExpressionFailed(wording(why, evaluator.function), why.error) from why
        except ZeroDivisionError as why:
            raise ExpressionFailed("Number out of range: null", "D1001") from why
        except RecursionError as why:
            raise ExpressionFailed(TOO_DEEP) from why
        except MemoryError as why:
            raise out_of_memory() from why
        except _STUMBLES as why:
            raise ExpressionFailed(f"The expression cannot be evaluated: {why}") from why
        finally:
            Jsonata.CURRENT.jsonata = held


def entered_at(variables: Mapping[str, Any]) -> float | None:
    """When the state was entered, as `$states.context` tells; None where it does not."""
    try:
        return datetime.fromisoformat(variables["states"]["context"]["State"]["EnteredTime"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return None


def plain(value: Any) -> Any:
    """An engine's value as JSON: lists, whole numbers as integers, null as None; parts that need no change are kept."""
    if value is None:
        return UNDEFINED
    if value is Utils.NULL_VALUE:
        return None
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ExpressionFailed(f"Number out of range: {value}", "D1001")
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        members = {name: inner if inner is None else plain(inner) for name, inner in value.items()}
        return {name: inner for name, inner in members.items() if inner is not UNDEFINED}
    if isinstance(value, list):
        return [inner if inner is None else plain(inner) for inner in value]
    raise ExpressionFailed("The result is a function, which is not a JSON value")
