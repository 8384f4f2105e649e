"""What can go wrong inside a state: errors with AWS's names, and which of them a state may catch.

Keeps true: a terminal failure is matched by nothing. Does not know how a failure is recorded or carried upwards.

Sources: "Handling errors in Step Functions workflows" and the States Language, section "Errors".
"""

from collections.abc import Iterable
from dataclasses import dataclass

ALL = "States.ALL"
BRANCH_FAILED = "States.BranchFailed"
DATA_LIMIT = "States.DataLimitExceeded"
HEARTBEAT_TIMEOUT = "States.HeartbeatTimeout"
INTRINSIC_FAILURE = "States.IntrinsicFailure"
ITEM_READER_FAILED = "States.ItemReaderFailed"
NO_CHOICE = "States.NoChoiceMatched"
QUERY_EVALUATION = "States.QueryEvaluationError"
RESULT_WRITER_FAILED = "States.ResultWriterFailed"
# The guide calls it States.ResultPathMatchFailure; AWS was observed to raise this name. A Catch may use either.
RESULT_PATH = "States.ReferencePathConflict"
RESULT_PATH_DOCUMENTED = "States.ResultPathMatchFailure"
RUNTIME = "States.Runtime"
TASK_FAILED = "States.TaskFailed"
THRESHOLD = "States.ExceedToleratedFailureThreshold"
TIMEOUT = "States.Timeout"

PAYLOAD_MAX = 262_144  # bytes of a state's input or output, "Quotas": 256 KiB
HISTORY_MAX = 25_000  # events of a Standard execution; the last of them is the failure itself
TASK_TIMEOUT_DEFAULT = 99_999_999  # seconds: what TimeoutSeconds means when it is not written


@dataclass(frozen=True, slots=True)
class Failure:
    """An error on its way outwards: from a state to its retriers and catchers, then to whatever encloses it.

    `terminal` ones end the execution whatever a Retry or Catch says. `location` is the field of a JSONata expression
    that failed, and asks for an EvaluationFailed history event. A missed `heartbeat` is States.Timeout wherever it is
    written (as recorded from AWS), and a Retry or Catch may name it States.HeartbeatTimeout.
    """

    error: str | None
    cause: str | None
    terminal: bool = False
    location: str | None = None
    heartbeat: bool = False

    def output(self) -> dict[str, str]:
        """The error output that a catcher hands on (States Language, "Error Output")."""
        output = {"Error": self.error or ""}
        if self.cause is not None:
            output["Cause"] = self.cause
        return output


class StateFailed(Exception):
    """Raised while a state is worked on; the stepper turns it into history."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.error)
        self.failure = failure


class Refused(Exception):
    """A field's value cannot be used: a sentence without the state's name, which the stepper puts in front."""

    def __init__(self, error: str, sentence: str, location: str | None = None) -> None:
        super().__init__(sentence)
        self.error = error
        self.sentence = sentence
        self.location = location


def matches(failure: Failure, names: Iterable[str]) -> bool:
    """Whether an ErrorEquals list speaks of this failure.

    States.ALL never stands for States.DataLimitExceeded or States.Runtime; States.TaskFailed stands for everything
    but timeouts; States.Timeout includes a missed heartbeat, which States.HeartbeatTimeout names alone ("Error names").
    """
    if failure.terminal:
        return False
    error = failure.error or ""
    for name in names:
        if name == error:
            return True
        if name == ALL and error != DATA_LIMIT:
            return True
        if name == TASK_FAILED and error not in (TIMEOUT, HEARTBEAT_TIMEOUT, DATA_LIMIT):
            return True
        if name == HEARTBEAT_TIMEOUT and failure.heartbeat:
            return True
        if name == RESULT_PATH_DOCUMENTED and error == RESULT_PATH:
            return True
    return False
