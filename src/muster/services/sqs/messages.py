"""Messages that wait, are leased, and either finish or come back.

Keeps true: a message is visible or in flight, never both; a lease ends by itself at its visibility timeout; one
that was received too often moves to the dead-letter queue in the transaction that would have received it again; in a FIFO queue a
group's messages come in order, and none while an earlier one of the group is in flight. Does not know who reads.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from muster.services.sqs import attributes as message_attributes
from muster.services.sqs import listeners
from muster.services.sqs.attributes import Attributes
from muster.services.sqs.claim import CLAIMABLE, CLAIMABLE_IN_ORDER
from muster.services.sqs.queues import Queue, Redrive, arn_of, find
from muster.services.sqs.refusals import bad_receipt, invalid, invalid_value, missing
from muster.transaction import Row, Transaction

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
UNSUPPORTED_CHARACTER = re.compile("[^\u0009\u000a\u000d\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
FIFO_ID = re.compile(r"""[A-Za-z0-9!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}""")
DEDUPLICATION_SECONDS = 300
VISIBILITY_SECONDS_MAX = 43200
# A FIFO sequence number has 20 digits, as AWS's.
TYPE_REFUSED = "The request includes a parameter that is not valid for this queue type."
SEQUENCE_BASE = 18_800_000_000_000_000_000


@dataclass(frozen=True, slots=True)
class Draft:
    """A message to be sent, checked."""

    body: str
    attributes: Attributes
    system: Attributes
    delay_seconds: int
    group_id: str | None
    deduplication_id: str | None

    @property
    def size_bytes(self) -> int:
        return len(self.body.encode()) + message_attributes.size(self.attributes)


@dataclass(frozen=True, slots=True)
class Sent:
    """What sending answers."""

    id: str
    sequence_number: str | None


def draft(queue: Queue, request: Mapping[str, Any]) -> Draft:
    """A message from a request's members, once it is known to be allowed."""
    body = request.get("MessageBody")
    if not body:
        raise missing("MessageBody")
    if UNSUPPORTED_CHARACTER.search(body):
        raise invalid(
            "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF |"
            " #xE000 to #xFFFD | #x10000 to #x10FFFF."
        )
    group, deduplication = request.get("MessageGroupId"), request.get("MessageDeduplicationId")
    delay = request.get("DelaySeconds")
    if delay is not None and not 0 <= delay <= 900:
        raise invalid_value(delay, "DelaySeconds", "DelaySeconds must be >= 0 and <= 900.")
    for name, value in (("MessageGroupId", group), ("MessageDeduplicationId", deduplication)):
        if value is not None and not FIFO_ID.fullmatch(value):
            raise invalid_value(
                value, name, "Can only include alphanumeric and punctuation characters. 1 to 128 in length."
            )
    if queue.fifo:
        if group is None:
            raise missing("MessageGroupId")
        if delay:
            raise invalid_value(delay, "DelaySeconds", TYPE_REFUSED)
        delay = None
        if deduplication is None:
            if not queue.is_on("ContentBasedDeduplication"):
                raise invalid(
                    "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId"
                    " provided explicitly"
                )
            deduplication = hashlib.sha256(body.encode()).hexdigest()
    elif deduplication is not None:
        raise invalid_value(deduplication, "MessageDeduplicationId", TYPE_REFUSED)
    system = message_attributes_of_system(request.get("MessageSystemAttributes"))
    made = Draft(
        body=body,
        attributes=message_attributes.checked(request.get("MessageAttributes")),
        system=system,
        delay_seconds=queue.number("DelaySeconds") if delay is None else delay,
        group_id=group,
        deduplication_id=deduplication,
    )
    if made.size_bytes > queue.number("MaximumMessageSize"):
        raise invalid(
            "One or more parameters cannot be validated. Reason: Message must be shorter than"
            f" {queue.number('MaximumMessageSize')} bytes."
        )
    return made


def message_attributes_of_system(given: Mapping[str, Any] | None) -> Attributes:
    """Only AWSTraceHeader can be sent, and only as a String."""
    for name, value in (given or {}).items():
        if name != "AWSTraceHeader":
            raise invalid(f"Message system attribute name '{name}' is invalid.")
        if value.get("DataType") != "String":
            raise invalid("The message system attribute 'AWSTraceHeader' must be of type String.")
    return message_attributes.checked(given)


def send(tx: Transaction, queue: Queue, message: Draft) -> Sent:
    """Put a message into the queue; a FIFO queue answers a repeat within five minutes as the first one."""
    scope = (message.group_id or "") if queue.per_group else ""
    if queue.fifo:
        tx.run(
            "DELETE FROM sqs_deduplications WHERE queue = :queue AND expires_at <= :now", queue=queue.name, now=tx.now
        )
        known = tx.one(
            "SELECT message_id, sequence FROM sqs_deduplications"
            " WHERE queue = :queue AND scope = :scope AND deduplication_id = :id",
            queue=queue.name,
            scope=scope,
            id=message.deduplication_id,
        )
        if known:
            return Sent(known["message_id"], str(SEQUENCE_BASE + known["sequence"]))
    sequence = next_sequence(tx, queue.name)
    id_ = tx.new_id()
    system: dict[str, Any] = {"SenderId": tx.caller.access_key or tx.account}
    if message.system:
        system["AWSTraceHeader"] = message.system["AWSTraceHeader"]["StringValue"]
    tx.run(
        "INSERT INTO sqs_messages (queue, sequence, id, body, attributes, system, group_id, deduplication_id, sent_at,"
        " visible_at) VALUES (:queue, :sequence, :id, :body, :attributes, :system, :group, :deduplication, :now, :visible)",
        queue=queue.name,
        sequence=sequence,
        id=id_,
        body=message.body,
        attributes=orjson.dumps(message.attributes).decode() if message.attributes else None,
        system=orjson.dumps(system).decode(),
        group=message.group_id,
        deduplication=message.deduplication_id,
        now=tx.now,
        visible=tx.now + message.delay_seconds,
    )
    if queue.fifo:
        tx.run(
            "INSERT INTO sqs_deduplications (queue, scope, deduplication_id, message_id, sequence, expires_at)"
            " VALUES (:queue, :scope, :deduplication, :id, :sequence, :expires)",
            queue=queue.name,
            scope=scope,
            deduplication=message.deduplication_id,
            id=id_,
            sequence=sequence,
            expires=tx.now + DEDUPLICATION_SECONDS,
        )
    told(tx, queue.name, tx.now + message.delay_seconds)
    return Sent(id_, str(SEQUENCE_BASE + sequence) if queue.fifo else None)


def told(tx: Transaction, queue: str, visible_at: float) -> None:
    """Tell whoever waits for a queue's messages that one is, or becomes, visible."""
    tx.wake(topic(queue))
    listeners.heard(tx, queue, visible_at)


def topic(queue: str) -> str:
    """What wakes those who wait for a queue's messages."""
    return f"sqs:{queue}"


def next_sequence(tx: Transaction, queue: str) -> int:
    row = tx.one(
        "UPDATE sqs_queues SET next_sequence = next_sequence + 1 WHERE name = :queue RETURNING next_sequence",
        queue=queue,
    )
    assert row is not None, "the queue exists"
    number: int = row["next_sequence"] - 1
    return number


def receive(
    tx: Transaction,
    queue: Queue,
    count: int,
    visibility_seconds: int,
    fits: Callable[[Row], bool] = lambda row: True,
) -> list[Row]:
    """Lease up to `count` visible messages, fewer when one does not fit; those received too often go to the
    dead-letter queue instead."""
    expire(tx, queue)
    live: list[Row] = []
    redrive = queue.redrive
    while len(live) < count:
        wanted = count - len(live)
        query = CLAIMABLE_IN_ORDER if queue.fifo else CLAIMABLE
        # With a visibility timeout of zero a leased message is visible at once: it must not be leased twice here.
        taken = {row["sequence"] for row in live}
        rows = [
            row
            for row in tx.all(query, queue=queue.name, now=tx.now, count=wanted + len(taken))
            if row["sequence"] not in taken
        ][:wanted]
        if not rows:
            break
        for row in rows:
            if (
                redrive is not None
                and row["receive_count"] >= redrive.receive_count_max
                and bury(tx, queue, redrive, row)
            ):
                continue
            if not fits(row):
                return live
            live.append(lease(tx, queue, row, visibility_seconds))
    return live


def expire(tx: Transaction, queue: Queue) -> None:
    """Forget messages older than the retention period."""
    oldest = tx.now - queue.number("MessageRetentionPeriod")
    tx.run("DELETE FROM sqs_messages WHERE queue = :queue AND sent_at <= :oldest", queue=queue.name, oldest=oldest)


def lease(tx: Transaction, queue: Queue, row: Row, visibility_seconds: int) -> Row:
    receipt = tx.token(12)
    leased = tx.one(
        "UPDATE sqs_messages SET visible_at = :visible, receive_count = receive_count + 1, receipt = :receipt,"
        " first_received_at = COALESCE(first_received_at, :now) WHERE queue = :queue AND sequence = :sequence RETURNING *",
        visible=tx.now + visibility_seconds,
        receipt=receipt,
        now=tx.now,
        queue=queue.name,
        sequence=row["sequence"],
    )
    assert leased is not None
    return leased


def bury(tx: Transaction, queue: Queue, redrive: Redrive, row: Row) -> bool:
    """Move a message to the dead-letter queue; whether that queue is still there."""
    target = find(tx, redrive.target)
    if target is None:
        return False
    system = {**orjson.loads(row["system"]), "DeadLetterQueueSourceArn": arn_of(tx, queue.name)}
    move(tx, row, target.name, system)
    return True


def move(tx: Transaction, row: Row, target: str, system: Mapping[str, Any]) -> None:
    """Put a message at the end of another queue, visible, with a fresh count of receives; its id, group and age stay."""
    tx.run(
        "UPDATE sqs_messages SET queue = :target, sequence = :sequence, system = :system, visible_at = :now,"
        " receive_count = 0, receipt = NULL, first_received_at = NULL WHERE queue = :queue AND sequence = :was",
        target=target,
        sequence=next_sequence(tx, target),
        system=orjson.dumps(dict(system)).decode(),
        now=tx.now,
        queue=row["queue"],
        was=row["sequence"],
    )
    told(tx, target, tx.now)


def handle(queue: Queue, row: Row) -> str:
    """A receipt handle: which message of which queue, and which receive."""
    return base64.b64encode(f"{queue.name} {row['sequence']} {row['receipt']}".encode()).decode()


def opened(queue: Queue, receipt_handle: Any) -> tuple[int, str]:
    """The message and the receive that a receipt handle names; ReceiptHandleIsInvalid when it is none of this queue's."""
    if not isinstance(receipt_handle, str) or not receipt_handle:
        raise missing("ReceiptHandle")
    try:
        name, sequence, receipt = base64.b64decode(receipt_handle, validate=True).decode().split(" ")
        number = int(sequence)
    except (binascii.Error, ValueError):
        raise bad_receipt(receipt_handle) from None
    if name != queue.name:
        raise bad_receipt(receipt_handle)
    return number, receipt


def delete(tx: Transaction, queue: Queue, receipt_handle: Any) -> None:
    """Finish a message. An old handle of a standard queue's message changes nothing, as AWS says it might not."""
    sequence, receipt = opened(queue, receipt_handle)
    fresh = " AND visible_at > :now" if queue.fifo else ""
    done = tx.run(
        f"DELETE FROM sqs_messages WHERE queue = :queue AND sequence = :sequence AND receipt = :receipt{fresh}",
        queue=queue.name,
        sequence=sequence,
        receipt=receipt,
        **({"now": tx.now} if queue.fifo else {}),
    )
    if done:
        tx.wake(topic(queue.name))
        if queue.fifo:
            # The next one of its group can be received now.
            listeners.heard(tx, queue.name, tx.now)
    elif queue.fifo and _exists(tx, queue, sequence):
        raise invalid_value(receipt_handle, "ReceiptHandle", "The receipt handle has expired.")


def _exists(tx: Transaction, queue: Queue, sequence: int) -> bool:
    return (
        tx.one(
            "SELECT 1 AS one FROM sqs_messages WHERE queue = :queue AND sequence = :sequence",
            queue=queue.name,
            sequence=sequence,
        )
        is not None
    )


def change_visibility(tx: Transaction, queue: Queue, receipt_handle: Any, seconds: Any) -> None:
    """Have a message come back `seconds` from now; zero makes it visible at once."""
    if seconds is None:
        raise missing("VisibilityTimeout")
    if not 0 <= seconds <= VISIBILITY_SECONDS_MAX:
        raise invalid_value(seconds, "VisibilityTimeout", "VisibilityTimeout must be an integer between 0 and 43200")
    sequence, receipt = opened(queue, receipt_handle)
    row = tx.one(
        "SELECT receipt, visible_at, sent_at FROM sqs_messages WHERE queue = :queue AND sequence = :sequence",
        queue=queue.name,
        sequence=sequence,
    )
    if row is None or row["receipt"] != receipt or (queue.fifo and row["visible_at"] <= tx.now):
        raise invalid_value(
            receipt_handle, "ReceiptHandle", "Message does not exist or is not available for visibility timeout change."
        )
    tx.run(
        "UPDATE sqs_messages SET visible_at = :visible WHERE queue = :queue AND sequence = :sequence",
        visible=tx.now + seconds,
        queue=queue.name,
        sequence=sequence,
    )
    told(tx, queue.name, tx.now + seconds)


def system_attributes(row: Row) -> dict[str, str]:
    """A received message's system attributes."""
    shown: dict[str, str] = dict(orjson.loads(row["system"]))
    shown["SentTimestamp"] = str(int(row["sent_at"] * 1000))
    shown["ApproximateReceiveCount"] = str(row["receive_count"])
    shown["ApproximateFirstReceiveTimestamp"] = str(int(row["first_received_at"] * 1000))
    if row["group_id"] is not None:
        shown["MessageGroupId"] = row["group_id"]
    if row["deduplication_id"] is not None:
        shown["MessageDeduplicationId"] = row["deduplication_id"]
        shown["SequenceNumber"] = str(SEQUENCE_BASE + row["sequence"])
    return shown
