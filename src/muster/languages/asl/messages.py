"""What goes into a step and what comes out: causes and commands, as data.

Keeps true: nothing here acts. A cause that speaks of an attempt is ignored once that attempt is over; `attempt` is a
number that is never used twice within an execution.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.languages.asl.failures import Failure
from muster.languages.asl.history import Entry
from muster.languages.asl.integrations import Integration

# Causes


@dataclass(frozen=True, slots=True)
class Started:
    """The execution begins; `details` are the members of its ExecutionStarted event."""

    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Continued:
    """A long run goes on where it was cut."""


@dataclass(frozen=True, slots=True)
class Redriven:
    """An execution that did not succeed goes on from where it stopped."""

    count: int


@dataclass(frozen=True, slots=True)
class Taken:
    """The request was taken and is being worked on; nothing is known of it yet."""

    frame: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Picked:
    """A worker has taken an activity's task."""

    frame: int
    attempt: int
    worker: str | None


@dataclass(frozen=True, slots=True)
class Submitted:
    """The service took the request; the task's end comes later."""

    frame: int
    attempt: int
    output: Any


@dataclass(frozen=True, slots=True)
class Succeeded:
    """A task has its result."""

    frame: int
    attempt: int
    output: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """A task failed, or the reading or writing of a distributed Map."""

    frame: int
    attempt: int
    error: str | None
    cause: str | None


@dataclass(frozen=True, slots=True)
class Unusable:
    """The request cannot be made at all: the execution fails with States.Runtime."""

    frame: int
    attempt: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Items:
    """A distributed Map's items, as they were read."""

    frame: int
    attempt: int
    items: list[Any]


@dataclass(frozen=True, slots=True)
class ChildEnded:
    """A child of a distributed Map has ended."""

    frame: int
    attempt: int
    index: int
    succeeded: bool


@dataclass(frozen=True, slots=True)
class Tuned:
    """A Map Run has new limits: children at once (0: as many as AWS allows), and failures it tolerates."""

    frame: int
    attempt: int
    concurrency: int
    count: int
    percentage: float


@dataclass(frozen=True, slots=True)
class Gathered:
    """A distributed Map's results, or where they were written."""

    frame: int
    attempt: int
    output: Any


@dataclass(frozen=True, slots=True)
class Fired:
    """A timer is due: `purpose` is "wake", "timeout" or "heartbeat"."""

    frame: int
    attempt: int
    purpose: str


@dataclass(frozen=True, slots=True)
class Aborted:
    """Someone stopped the execution."""

    error: str | None
    cause: str | None


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The machine's own TimeoutSeconds have passed."""


Cause = (
    Started
    | Continued
    | Redriven
    | Taken
    | Picked
    | Submitted
    | Succeeded
    | Failed
    | Unusable
    | Items
    | ChildEnded
    | Tuned
    | Gathered
    | Fired
    | Aborted
    | TimedOut
)


# Commands


@dataclass(frozen=True, slots=True)
class Call:
    """Ask a service; answer at once with Taken, Submitted, Succeeded, Failed or Unusable, and after Taken later."""

    frame: int
    attempt: int
    integration: Integration
    parameters: Any
    token: str | None
    heartbeat_seconds: float | None


@dataclass(frozen=True, slots=True)
class Offer:
    """Put a task before an activity's workers; answer at once with Taken or Unusable."""

    frame: int
    attempt: int
    activity: str
    input: str
    token: str
    heartbeat_seconds: float | None


@dataclass(frozen=True, slots=True)
class Timer:
    """Answer with Fired at `due_at`, unless it is released first."""

    frame: int
    attempt: int
    purpose: str
    due_at: float


@dataclass(frozen=True, slots=True)
class Release:
    """An attempt is over: its timers are no longer wanted; if `abandoned`, neither is its work nor its token."""

    frame: int
    attempt: int
    abandoned: bool


@dataclass(frozen=True, slots=True)
class OpenMapRun:
    """A Map Run begins."""

    frame: int
    attempt: int
    map_run: str
    concurrency: int
    tolerated_count: int
    tolerated_percentage: float
    label: str
    express: bool


@dataclass(frozen=True, slots=True)
class ReadItems:
    """Read a Map Run's items from S3; answer with Items or Failed."""

    frame: int
    attempt: int
    operation: str
    parameters: Any
    format: Mapping[str, Any]
    most: Any


@dataclass(frozen=True, slots=True)
class Item:
    """The input of one child execution, and what its `$$.Map.Item` shows."""

    input: Any
    shown: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Spawn:
    """Keep these items with the Map Run, and start children on its items from `first` up to `end`."""

    frame: int
    attempt: int
    map_run: str
    scope: int
    items: tuple[Item, ...]
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Gather:
    """Put the children's results together, or write them to the bucket that `target` names; answer with Gathered or
    Failed."""

    frame: int
    attempt: int
    map_run: str
    target: Any
    transformation: str
    lines: bool


@dataclass(frozen=True, slots=True)
class CloseMapRun:
    """A Map Run has ended; children still running are no longer wanted."""

    map_run: str
    status: str


Command = Call | Offer | Timer | Release | OpenMapRun | ReadItems | Spawn | Gather | CloseMapRun


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an execution ended."""

    status: str
    output: str | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a step decided: the new execution state, what happened, and what is to be done.

    `first_id` is the id of the first entry. `more` says that the step was cut and wants to be Continued.
    """

    state: dict[str, Any]
    entries: list[Entry]
    first_id: int
    commands: list[Command]
    outcome: Outcome | None
    more: bool
    transitions: int
