"""Sending dead letters back: a move task takes messages from a dead-letter queue to where they came from, or elsewhere.

Keeps true: a message is in one queue at every instant; a task moves no faster than it was asked to, and goes on after a
restart, because each portion is a delivery. Does not know why the messages died.
"""

import base64
from collections.abc import Mapping
from typing import Any

import orjson

from muster.errors import ServiceError
from muster.services.sqs import messages
from muster.services.sqs.claim import CLAIMABLE
from muster.services.sqs.queues import Queue, arn_of, by_arn, find, name_in
from muster.services.sqs.refusals import invalid, missing, no_such_resource
from muster.transaction import Carried, Delivery, Row, Transaction

# "A maximum of 500 messages per second" is the most that can be asked for, and what Muster uses when nothing is asked.
PER_SECOND_MAX = 500
KIND = "sqs.move"


def start(tx: Transaction, request: Mapping[str, Any]) -> str:
    """Begin a move task; its handle."""
    source = by_arn(tx, request.get("SourceArn", ""))
    if source is None:
        raise no_such_resource("SourceArn")
    if not sources(tx, source):
        raise invalid("Source queue must be configured as a Dead Letter Queue.")
    destination = request.get("DestinationArn")
    target = by_arn(tx, destination) if destination else None
    if destination and target is None:
        raise no_such_resource("DestinationArn")
    if target is not None and (target.name == source.name or target.fifo != source.fifo):
        raise invalid("Source queue arn and destination queue arn must be different queues of the same type.")
    rate = request.get("MaxNumberOfMessagesPerSecond", PER_SECOND_MAX)
    if not 1 <= rate <= PER_SECOND_MAX:
        raise invalid(
            f"Value {rate} for parameter MaxNumberOfMessagesPerSecond is invalid. Reason: You must enter a"
            " value that's between 1 and 500."
        )
    if tx.one("SELECT id FROM sqs_moves WHERE source = :source AND status = 'RUNNING'", source=source.name):
        raise ServiceError(
            "UnsupportedOperation",
            "There is already a task running. Only one active task is allowed for a source queue arn at a given time.",
            status=400,
        )
    count = tx.one("SELECT COUNT(*) AS n FROM sqs_messages WHERE queue = :queue", queue=source.name)
    id_ = tx.new_id()
    tx.run(
        "INSERT INTO sqs_moves (id, source, destination, per_second, status, to_move, started_at)"
        " VALUES (:id, :source, :destination, :rate, 'RUNNING', :count, :now)",
        id=id_,
        source=source.name,
        destination=target.name if target else None,
        rate=rate,
        count=count["n"] if count else 0,
        now=tx.now,
    )
    tx.post(Delivery(KIND, id_, {}))
    return handle(tx, id_, source.name)


def handle(tx: Transaction, id_: str, source: str) -> str:
    return base64.b64encode(orjson.dumps({"taskId": id_, "sourceArn": arn_of(tx, source)})).decode()


def cancel(tx: Transaction, task_handle: Any) -> int:
    """Stop a running task; how many messages it had moved."""
    if not task_handle:
        raise missing("TaskHandle")
    try:
        named = orjson.loads(base64.b64decode(task_handle, validate=True))
        id_, source = named["taskId"], named["sourceArn"]
    except (ValueError, TypeError, KeyError):
        raise invalid("Value for parameter TaskHandle is invalid.") from None
    if by_arn(tx, source) is None:
        raise no_such_resource("SourceArn")
    row = tx.one("SELECT status, moved FROM sqs_moves WHERE id = :id", id=id_)
    if row is None:
        raise ServiceError("ResourceNotFoundException", "Task does not exist.")
    if row["status"] != "RUNNING":
        raise ServiceError("UnsupportedOperation", "Only active tasks can be cancelled.", status=400)
    tx.run("UPDATE sqs_moves SET status = 'CANCELLED' WHERE id = :id", id=id_)
    tx.cancel(KIND, id_)
    moved: int = row["moved"]
    return moved


def listed(tx: Transaction, request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A source's newest tasks."""
    source = by_arn(tx, request.get("SourceArn", ""))
    if source is None:
        raise no_such_resource("SourceArn")
    rows = tx.all(
        "SELECT * FROM sqs_moves WHERE source = :source ORDER BY started_at DESC LIMIT :count",
        source=source.name,
        count=max(1, min(request.get("MaxResults", 1), 10)),
    )
    return [_shown(tx, row) for row in rows]


def _shown(tx: Transaction, row: Row) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "Status": row["status"],
        "SourceArn": arn_of(tx, row["source"]),
        "MaxNumberOfMessagesPerSecond": row["per_second"],
        "ApproximateNumberOfMessagesMoved": row["moved"],
        "ApproximateNumberOfMessagesToMove": row["to_move"],
        "StartedTimestamp": int(row["started_at"] * 1000),
    }
    if row["destination"]:
        shown["DestinationArn"] = arn_of(tx, row["destination"])
    if row["status"] == "RUNNING":
        shown["TaskHandle"] = handle(tx, row["id"], row["source"])
    if row["failure"]:
        shown["FailureReason"] = row["failure"]
    return shown


def carry(tx: Transaction, delivery: Carried) -> None:
    """Move one second's portion, and post the next when there is more."""
    task = tx.one("SELECT * FROM sqs_moves WHERE id = :id AND status = 'RUNNING'", id=delivery.subject)
    if task is None:
        return
    # Those that are visible, oldest first; one in flight is somebody's at this moment.
    rows = tx.all(CLAIMABLE, queue=task["source"], now=tx.now, count=task["per_second"])
    moved, failure = 0, None
    for row in rows:
        system = orjson.loads(row["system"])
        target = task["destination"] or name_in(system.get("DeadLetterQueueSourceArn", ""))
        queue = find(tx, target) if target else None
        if queue is None:
            failure = "AWS.SimpleQueueService.NonExistentQueue" if target else "CouldNotDetermineMessageSource"
            break
        system.pop("DeadLetterQueueSourceArn", None)
        messages.move(tx, row, queue.name, system)
        moved += 1
    done = failure is None and len(rows) < task["per_second"]
    tx.run(
        "UPDATE sqs_moves SET moved = moved + :moved, status = :status, failure = :failure WHERE id = :id",
        moved=moved,
        status="FAILED" if failure else "COMPLETED" if done else "RUNNING",
        failure=failure,
        id=delivery.subject,
    )
    if not done and not failure:
        tx.post(Delivery(KIND, delivery.subject, {}, due_at=tx.now + 1))


def sources(tx: Transaction, queue: Queue) -> list[str]:
    """The queues that send their dead letters to this one, by name."""
    rows = tx.all("SELECT name, attributes FROM sqs_queues ORDER BY name")
    found = []
    for row in rows:
        policy = orjson.loads(row["attributes"]).get("RedrivePolicy")
        if policy and name_in(orjson.loads(policy)["deadLetterTargetArn"]) == queue.name:
            found.append(row["name"])
    return found
