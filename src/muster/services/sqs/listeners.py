"""Who wants to be told that a queue has a message: siblings, by a delivery.

Keeps true: one who listens has a delivery, at the instant the first message is visible, until it is told; then it looks
and listens again, so that a burst costs one delivery and not one per message. Does not know who listens, nor why.
"""

from collections.abc import Mapping
from typing import Any

from muster.clock import Instant
from muster.services.sqs.claim import CLAIMABLE, CLAIMABLE_IN_ORDER
from muster.services.sqs.queues import Queue
from muster.transaction import Delivery, Row, Transaction


def listen(
    tx: Transaction, queue: Queue, kind: str, subject: str, *, not_before: Instant = 0.0, new: bool = False
) -> None:
    """Post one delivery of that kind and subject for when a message is or becomes visible, not before `not_before`.

    With `new`, what is visible already does not count.
    """
    row = tx.one(
        "SELECT due_at FROM sqs_listeners WHERE queue = :queue AND kind = :kind AND subject = :subject",
        queue=queue.name,
        kind=kind,
        subject=subject,
    )
    visible_at = hidden_until(tx, queue) if new else next_at(tx, queue)
    due_at = None if visible_at is None else max(visible_at, not_before)
    if row is not None and row["due_at"] is not None:
        if due_at is not None and tx.now < row["due_at"] <= due_at:
            return
        tx.cancel(kind, subject)
    if due_at is not None:
        tx.post(Delivery(kind, subject, {}, due_at=due_at))
    tx.run(
        "INSERT INTO sqs_listeners (queue, kind, subject, due_at, not_before)"
        " VALUES (:queue, :kind, :subject, :due_at, :not_before)"
        " ON CONFLICT (queue, kind, subject) DO UPDATE SET due_at = excluded.due_at, not_before = excluded.not_before",
        queue=queue.name,
        kind=kind,
        subject=subject,
        due_at=due_at,
        not_before=not_before,
    )


def unlisten(tx: Transaction, queue: str, kind: str, subject: str) -> None:
    """Nobody wants to be told any more."""
    tx.run(
        "DELETE FROM sqs_listeners WHERE queue = :queue AND kind = :kind AND subject = :subject",
        queue=queue,
        kind=kind,
        subject=subject,
    )
    tx.cancel(kind, subject)


def heard(tx: Transaction, queue: str, visible_at: Instant) -> None:
    """A message is visible from `visible_at` on: tell those who listen, unless a delivery is on its way by then."""
    for row in tx.all(
        "SELECT * FROM sqs_listeners WHERE queue = :queue AND (due_at IS NULL OR due_at > :at)",
        queue=queue,
        at=visible_at,
    ):
        _tell(tx, row, max(visible_at, row["not_before"]))


def _tell(tx: Transaction, row: Row, due_at: Instant) -> None:
    if row["due_at"] is not None:
        if row["due_at"] <= due_at:
            return
        tx.cancel(row["kind"], row["subject"])
    tx.post(Delivery(row["kind"], row["subject"], {}, due_at=due_at))
    tx.run(
        "UPDATE sqs_listeners SET due_at = :due_at WHERE queue = :queue AND kind = :kind AND subject = :subject",
        due_at=due_at,
        queue=row["queue"],
        kind=row["kind"],
        subject=row["subject"],
    )


def queue_deleted(tx: Transaction, queue: str) -> None:
    """Those who listen are told at once, and find the queue gone."""
    heard(tx, queue, tx.now)
    tx.run("DELETE FROM sqs_listeners WHERE queue = :queue", queue=queue)


def next_at(tx: Transaction, queue: Queue) -> Instant | None:
    """When a message can be received: now, at an instant to come, or unknown.

    In a FIFO queue a message behind one in flight is told of when that one is deleted or comes back.
    """
    query = CLAIMABLE_IN_ORDER if queue.fifo else CLAIMABLE
    if tx.one(query, queue=queue.name, now=tx.now, count=1) is not None:
        return tx.now
    return hidden_until(tx, queue)


def hidden_until(tx: Transaction, queue: Queue) -> Instant | None:
    """When the first of the hidden messages becomes visible."""
    row = tx.one(
        "SELECT MIN(visible_at) AS at FROM sqs_messages WHERE queue = :queue AND visible_at > :now",
        queue=queue.name,
        now=tx.now,
    )
    return None if row is None else row["at"]


def visible(tx: Transaction, queue: Queue, count_max: int) -> Mapping[str, Any]:
    """How many messages are visible, counted up to `count_max`, and the characters in their bodies."""
    row = tx.one(
        "SELECT COUNT(*) AS messages, SUM(length) AS characters FROM (SELECT LENGTH(body) AS length FROM sqs_messages"
        " WHERE queue = :queue AND visible_at <= :now AND sent_at > :oldest LIMIT :most) AS seen",
        queue=queue.name,
        now=tx.now,
        oldest=tx.now - queue.number("MessageRetentionPeriod"),
        most=count_max,
    )
    assert row is not None, "a count is always answered"
    return {"Count": row["messages"], "Characters": row["characters"] or 0}
