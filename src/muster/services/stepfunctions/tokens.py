"""Task tokens: handed to whoever does the work, and answered once.

Keeps true: a token is answered at most once; one whose task is over is refused as timed out; a heartbeat moves the
deadline and costs no delivery. Does not know how the execution goes on: the answer is posted to it.

Sources: SendTaskSuccess, SendTaskFailure, SendTaskHeartbeat in the API reference.
"""

from typing import Any

import orjson

from muster.errors import ServiceError
from muster.languages.asl.expressions import dumps
from muster.languages.asl.failures import PAYLOAD_MAX, Refused
from muster.languages.asl.messages import Cause, Failed, Picked, Submitted, Succeeded, Unusable
from muster.operation import Answer, Request
from muster.services.stepfunctions.names import subject
from muster.transaction import Delivery, Row, Transaction


def hand_out(
    tx: Transaction, token: str, execution_arn: str, frame: int, attempt: int, heartbeat_seconds: float | None
) -> None:
    """Make the token valid."""
    tx.run(
        "INSERT INTO states_tokens (token, execution_arn, frame, attempt, status, heartbeat_seconds, beat_at)"
        " VALUES (:token, :arn, :frame, :attempt, 'OPEN', :heartbeat, :now)",
        token=token,
        arn=execution_arn,
        frame=frame,
        attempt=attempt,
        heartbeat=heartbeat_seconds,
        now=tx.now,
    )


def close(tx: Transaction, execution_arn: str, attempt: int) -> None:
    """The attempt is over, and its token with it."""
    row = tx.one(
        "SELECT token FROM states_tokens WHERE execution_arn = :arn AND attempt = :attempt AND status = 'OPEN'",
        arn=execution_arn,
        attempt=attempt,
    )
    if row is not None:
        _close(tx, row["token"])


def _close(tx: Transaction, token: str) -> None:
    tx.run("UPDATE states_tokens SET status = 'CLOSED' WHERE token = :token", token=token)
    tx.run("DELETE FROM states_offers WHERE token = :token", token=token)


def next_beat_due(tx: Transaction, execution_arn: str, attempt: int) -> float | None:
    """When the attempt's next heartbeat must have come."""
    row = tx.one(
        "SELECT beat_at, heartbeat_seconds FROM states_tokens"
        " WHERE execution_arn = :arn AND attempt = :attempt AND status = 'OPEN'",
        arn=execution_arn,
        attempt=attempt,
    )
    return None if row is None or row["heartbeat_seconds"] is None else row["beat_at"] + row["heartbeat_seconds"]


def _open(tx: Transaction, token: str) -> Row:
    row = tx.one("SELECT * FROM states_tokens WHERE token = :token", token=token)
    if row is None:
        raise ServiceError("InvalidToken", "Invalid Token: 'Invalid token'")
    if row["status"] != "OPEN":
        raise ServiceError("TaskTimedOut", "Task Timed Out: 'Provided task does not exist anymore'")
    return row


def send_success(tx: Transaction, request: Request) -> Answer:
    """SendTaskSuccess."""
    text = request["output"]
    if len(text.encode()) > PAYLOAD_MAX:
        raise ServiceError(
            "ValidationException",
            "1 validation error detected: Value at 'output' failed to satisfy constraint: Member must have length less "
            f"than or equal to {PAYLOAD_MAX}",
        )
    row = _open(tx, request["taskToken"])
    try:
        output = orjson.loads(text)
        dumps(output)
    except (orjson.JSONDecodeError, Refused) as why:
        raise ServiceError("InvalidOutput", f"Invalid Output: '{why}'") from why
    return _answer(tx, row, Succeeded(row["frame"], row["attempt"], output))


def send_failure(tx: Transaction, request: Request) -> Answer:
    """SendTaskFailure."""
    row = _open(tx, request["taskToken"])
    return _answer(tx, row, Failed(row["frame"], row["attempt"], request.get("error"), request.get("cause")))


def send_heartbeat(tx: Transaction, request: Request) -> Answer:
    """SendTaskHeartbeat."""
    row = _open(tx, request["taskToken"])
    tx.run("UPDATE states_tokens SET beat_at = :now WHERE token = :token", now=tx.now, token=row["token"])
    return {}


def _answer(tx: Transaction, row: Row, cause: Cause) -> Answer:
    _close(tx, row["token"])
    tx.post(answer_delivery(row["execution_arn"], cause))
    return {}


_CAUSES = {kind.__name__: kind for kind in (Succeeded, Failed, Submitted, Picked, Unusable)}


def answer_delivery(execution_arn: str, cause: Cause) -> Delivery:
    """A cause on its way to an execution."""
    assert isinstance(cause, Succeeded | Failed | Submitted | Picked | Unusable)
    written: dict[str, Any] = {"Kind": type(cause).__name__, **{name: getattr(cause, name) for name in cause.__slots__}}
    return Delivery("states.reply", subject(execution_arn, cause.frame, cause.attempt), {"Cause": written})


def written_cause(written: dict[str, Any]) -> Cause:
    """The cause that `answer_delivery` wrote."""
    members = dict(written)
    return _CAUSES[members.pop("Kind")](**members)
