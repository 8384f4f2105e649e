"""Who wants to be told that a stream has a record: siblings, by a delivery.

Keeps true: one who listens is told once, of the first record beyond what it has read; then it reads and listens again,
so that a burst costs one delivery and not one per record. Does not know who listens, nor why.
"""

from muster.clock import Instant
from muster.transaction import Delivery, Transaction


def listen(tx: Transaction, arn: str, kind: str, subject: str, after: int, not_before: Instant) -> None:
    """Post one delivery of that kind and subject once there is a record beyond `after`, not before `not_before`."""
    tx.cancel(kind, subject)
    row = tx.one("SELECT last_sequence FROM dynamodb_streams WHERE arn = :arn", arn=arn)
    there = row is not None and row["last_sequence"] > after
    tx.run(
        "INSERT INTO dynamodb_stream_listeners (arn, kind, subject, told, not_before)"
        " VALUES (:arn, :kind, :subject, :told, :not_before)"
        " ON CONFLICT (arn, kind, subject) DO UPDATE SET told = excluded.told, not_before = excluded.not_before",
        arn=arn,
        kind=kind,
        subject=subject,
        told=int(there),
        not_before=not_before,
    )
    if there:
        tx.post(Delivery(kind, subject, {}, due_at=max(tx.now, not_before)))


def unlisten(tx: Transaction, arn: str, kind: str, subject: str) -> None:
    """Nobody wants to be told any more."""
    tx.run(
        "DELETE FROM dynamodb_stream_listeners WHERE arn = :arn AND kind = :kind AND subject = :subject",
        arn=arn,
        kind=kind,
        subject=subject,
    )
    tx.cancel(kind, subject)


def heard(tx: Transaction, arn: str) -> None:
    """There is a record: tell those who listen."""
    rows = tx.all(
        "SELECT kind, subject, not_before FROM dynamodb_stream_listeners WHERE arn = :arn AND told = 0", arn=arn
    )
    for row in rows:
        tx.post(Delivery(row["kind"], row["subject"], {}, due_at=max(tx.now, row["not_before"])))
    if rows:
        tx.run("UPDATE dynamodb_stream_listeners SET told = 1 WHERE arn = :arn", arn=arn)
