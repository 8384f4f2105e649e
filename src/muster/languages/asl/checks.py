"""What a field's value must be once it is evaluated: checks around evaluators, with AWS's sentences.

Keeps true: a value that passes is what the state can use; one that does not raises Refused. Does not know where a value
comes from.
"""

from typing import Any

from muster.languages.asl import timestamps
from muster.languages.asl.definition import Evaluator
from muster.languages.asl.expressions import dumps, expecting
from muster.languages.asl.failures import QUERY_EVALUATION, RUNTIME, Refused


def fits(operand: Any, expected: str) -> bool:
    """Whether an operand is of the type its operator wants."""
    if expected == "boolean":
        return isinstance(operand, bool)
    if expected == "number":
        return isinstance(operand, int | float) and not isinstance(operand, bool)
    if expected == "timestamp":
        return isinstance(operand, str) and timestamps.parse(operand) is not None
    return isinstance(operand, str)


def _integer(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        return None
    return int(value)


def amount_by_path(find: Evaluator, field: str, text: str, low: float) -> Evaluator:
    """A whole number found by a path."""

    def evaluate(env: Any) -> Any:
        value = find(env)
        number = _integer(value)
        if number is None:
            shown = value if isinstance(value, str) else dumps(value)
            raise Refused(
                RUNTIME, f'The {field}Path field refers to value "{shown}" which is not a valid integer: {text}'
            )
        if number < low:
            raise Refused(RUNTIME, f"{field} cannot be {'negative' if low == 0 else f'less than {low:g}'}.")
        return number

    return evaluate


def seconds_by_path(find: Evaluator, text: str) -> Evaluator:
    """Wait's SecondsPath."""

    def evaluate(env: Any) -> Any:
        value = find(env)
        number = _integer(value)
        if number is None:
            raise Refused(RUNTIME, f"The SecondsPath parameter cannot be parsed as a long value: {text} == {value}")
        if number < 0:
            raise Refused(RUNTIME, f"The SecondsPath parameter references a negative value: {text} == {value}")
        return number

    return evaluate


def instant_by_path(find: Evaluator, text: str) -> Evaluator:
    """Wait's TimestampPath, as seconds since the epoch."""

    def evaluate(env: Any) -> Any:
        value = find(env)
        instant = timestamps.parse(value) if isinstance(value, str) else None
        if instant is None:
            raise Refused(
                RUNTIME,
                f"The TimestampPath parameter does not reference a valid ISO-8601 extended offset date-time format "
                f"string: {text} == {value}",
            )
        return instant

    return evaluate


def instant_by_jsonata(find: Evaluator, text: str) -> Evaluator:
    """Wait's Timestamp as a JSONata expression."""
    checked = expecting(find, "string", text, "Timestamp")

    def evaluate(env: Any) -> Any:
        value = checked(env)
        instant = timestamps.parse(value)
        if instant is None:
            raise Refused(
                QUERY_EVALUATION,
                f"The JSONata expression '{text[2:-2].strip()}' specified for the field 'Timestamp' returned an invalid "
                "timestamp",
                "Timestamp",
            )
        return instant

    return evaluate


def text_by_path(find: Evaluator, field: str, text: str) -> Evaluator:
    """ErrorPath and CausePath."""

    def evaluate(env: Any) -> Any:
        value = find(env)
        if not isinstance(value, str):
            raise Refused(RUNTIME, f"The {field} parameter does not refer to a string: {text}")
        return value

    return evaluate


def array_by_path(find: Evaluator, text: str) -> Evaluator:
    """ItemsPath."""

    def evaluate(env: Any) -> Any:
        value = find(env)
        if not isinstance(value, list):
            raise Refused(RUNTIME, f'Reference path "{text}" must point to array.')
        return value

    return evaluate
