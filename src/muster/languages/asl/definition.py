"""A state machine as typed values: states whose paths, templates and expressions are compiled, in scopes.

Keeps true: everything here is frozen, shared by all executions of a revision, and knows no execution. A scope is a set
of states with a start: the machine itself, a branch of a Parallel state, the processor of a Map state.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.languages.asl.environment import Environment
from muster.languages.asl.integrations import Integration

Evaluator = Callable[[Environment], Any]
Writer = Callable[[Any, Any], Any]  # (document, value) -> new document


@dataclass(frozen=True, slots=True)
class Retrier:
    """One element of Retry."""

    errors: tuple[str, ...]
    interval_seconds: float = 1
    attempts_max: int = 3
    backoff_rate: float = 2.0
    delay_seconds_max: float | None = None
    full_jitter: bool = False


@dataclass(frozen=True, slots=True)
class Catcher:
    """One element of Catch."""

    errors: tuple[str, ...]
    next: str
    result_path: "Writer | None"  # None: the catcher discards the error output
    assign: Evaluator | None
    output: Evaluator | None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What every state has; `next` is None where the state ends its scope."""

    name: str
    jsonata: bool
    next: str | None = None
    input: Evaluator | None = None  # InputPath; None: the whole input
    output_path: Evaluator | None = None  # OutputPath; None: the whole output
    assign: Evaluator | None = None
    output: Evaluator | None = None  # JSONata's Output

    kind = "State"


@dataclass(frozen=True, slots=True, kw_only=True)
class Working(State):
    """What states with a result share: Pass, Task, Parallel and Map."""

    parameters: Evaluator | None = None  # Parameters or Arguments
    result_selector: Evaluator | None = None
    result_path: Writer | None = None  # None: the result is the output
    retriers: tuple[Retrier, ...] = ()
    catchers: tuple[Catcher, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass(Working):
    result: tuple[Any] | None = None  # boxed, because null is a result
    kind = "Pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Working):
    integration: Integration
    timeout: Evaluator | None = None
    heartbeat: Evaluator | None = None
    credentials: Evaluator | None = None
    kind = "Task"


@dataclass(frozen=True, slots=True)
class Rule:
    """One element of Choices: what it asks and where it leads."""

    holds: Evaluator
    next: str
    assign: Evaluator | None
    output: Evaluator | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(State):
    rules: tuple[Rule, ...]
    default: str | None = None
    kind = "Choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(State):
    seconds: Evaluator | None = None
    until: Evaluator | None = None  # an instant, in seconds since the epoch
    kind = "Wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeed(State):
    kind = "Succeed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail(State):
    error: Evaluator | None = None
    cause: Evaluator | None = None
    kind = "Fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel(Working):
    branches: tuple[int, ...]  # numbers of scopes
    kind = "Parallel"


@dataclass(frozen=True, slots=True)
class Reader:
    """ItemReader of a distributed Map: the S3 operation, and how its answer is read."""

    operation: str  # GetObject or ListObjectsV2
    parameters: Evaluator | None
    format: Mapping[str, Any]  # ReaderConfig as it is written
    items_max: Evaluator | None


@dataclass(frozen=True, slots=True)
class Batcher:
    """ItemBatcher of a distributed Map."""

    items_max: Evaluator | None
    bytes_max: Evaluator | None
    input: Evaluator | None


@dataclass(frozen=True, slots=True)
class ResultWriter:
    """ResultWriter of a distributed Map; without parameters the results are only transformed."""

    parameters: Evaluator | None
    transformation: str
    lines: bool  # JSON lines instead of a JSON array


@dataclass(frozen=True, slots=True, kw_only=True)
class Map(Working):
    processor: int  # number of a scope
    items: Evaluator | None = None
    item_selector: Evaluator | None = None
    concurrency: Evaluator | None = None
    tolerated_count: Evaluator | None = None
    tolerated_percentage: Evaluator | None = None
    distributed: bool = False
    label: str | None = None
    express: bool = False
    reader: Reader | None = None
    batcher: Batcher | None = None
    writer: ResultWriter | None = None
    kind = "Map"


@dataclass(frozen=True, slots=True)
class Scope:
    """States and where to start among them."""

    start_at: str
    states: Mapping[str, State]


@dataclass(frozen=True, slots=True)
class Machine:
    """A whole definition; scope 0 is its own."""

    scopes: tuple[Scope, ...]
    timeout_seconds: float | None
    variable_references: Mapping[str, list[str]]
