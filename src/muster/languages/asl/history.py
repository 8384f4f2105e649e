"""History events: written compactly, one list per step, and expanded to AWS's shape when they are read.

Keeps true: ids run on without gaps, because an entry's id is its place; an entry names its predecessor. Does not know
where entries are kept or when they happened.

An entry is `(type, previous id, details)`. Its details hold the members of the event's own `…EventDetails` shape; the
companions of texts (`inputDetails`, `outputDetails`) are added on reading, and a StateEntered entry without an `input`
has the output of the entry before it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

Entry = tuple[str, int, dict[str, Any]]

_COMPANIONS = {
    "input": "inputDetails",
    "output": "outputDetails",
    "assignedVariables": "assignedVariablesDetails",
}
_DATA = frozenset({"input", "output", "parameters", "assignedVariables"})


def _member(kind: str) -> str:
    if kind.endswith("StateEntered"):
        return "stateEnteredEventDetails"
    if kind.endswith("StateExited"):
        return "stateExitedEventDetails"
    return f"{kind[0].lower()}{kind[1:]}EventDetails"


# Event types whose events carry no details at all in AWS's shape.
_BARE = frozenset(
    {
        "ParallelStateStarted",
        "ParallelStateSucceeded",
        "ParallelStateFailed",
        "ParallelStateAborted",
        "MapStateSucceeded",
        "MapStateFailed",
        "MapStateAborted",
        "MapRunSucceeded",
        "MapRunAborted",
        "TaskStateAborted",
        "WaitStateAborted",
        "LambdaFunctionStarted",
    }
)


def expand(entries: Iterable[Any], first_id: int, at: float, *, include_data: bool = True) -> Iterator[dict[str, Any]]:
    """The entries of one step as AWS's HistoryEvent shapes; `at` is the instant of the step."""
    output: Any = None
    for number, (kind, previous, details) in enumerate(entries, first_id):
        event: dict[str, Any] = {"timestamp": at, "type": kind, "id": number, "previousEventId": previous}
        if "output" in details:
            output = details["output"]
        if kind not in _BARE:
            shown = dict(details)
            if kind.endswith("StateEntered") and "input" not in shown:
                shown["input"] = output
            for name, companion in _COMPANIONS.items():
                if name in shown:
                    shown[companion] = {"truncated": False}
            if not include_data:
                shown = {name: value for name, value in shown.items() if name not in _DATA}
            event[_member(kind)] = shown
        yield event
