"""Log groups and their streams of events.

Keeps true: events of a stream keep the order in which they were taken in; what a retention has outlived is forgotten.
Does not know who writes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from muster.errors import ServiceError
from muster.transaction import Row, Transaction

DAY_MS = 86_400_000
# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html
EVENT_OVERHEAD_BYTES = 26
# Old events go a few at a time, whenever new ones come to their group.
EXPIRED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One event, before it has a position."""

    at_ms: int
    message: str


def size_bytes(message: str) -> int:
    """What an event counts for: its text in UTF-8 and 26 bytes, as the service counts."""
    return len(message.encode()) + EVENT_OVERHEAD_BYTES


def now_ms(tx: Transaction) -> int:
    """The transaction's instant as the service writes instants."""
    return int(tx.now * 1000)


def group(tx: Transaction, name: str) -> Row:
    """The group's row; ResourceNotFoundException when it is not there."""
    row = tx.one("SELECT * FROM logs_groups WHERE name = :name", name=name)
    if row is None:
        raise ServiceError("ResourceNotFoundException", "The specified log group does not exist.")
    return row


def stream(tx: Transaction, group_name: str, name: str) -> Row:
    """The stream's row; ResourceNotFoundException when it (or its group) is not there."""
    group(tx, group_name)
    row = tx.one("SELECT * FROM logs_streams WHERE group_name = :group AND name = :name", group=group_name, name=name)
    if row is None:
        raise ServiceError("ResourceNotFoundException", "The specified log stream does not exist.")
    return row


def create_group(tx: Transaction, name: str, tags: str) -> None:
    """A new group; ResourceAlreadyExistsException when the name is taken."""
    if not _ensure_group(tx, name, tags):
        raise ServiceError("ResourceAlreadyExistsException", "The specified log group already exists")


def _ensure_group(tx: Transaction, name: str, tags: str = "{}") -> bool:
    return bool(
        tx.run(
            "INSERT INTO logs_groups (name, tags, created_at_ms) VALUES (:name, :tags, :now) ON CONFLICT DO NOTHING",
            name=name,
            tags=tags,
            now=now_ms(tx),
        )
    )


def create_stream(tx: Transaction, group_name: str, name: str) -> None:
    """A new stream; ResourceAlreadyExistsException when the name is taken."""
    group(tx, group_name)
    if not _ensure_stream(tx, group_name, name):
        raise ServiceError("ResourceAlreadyExistsException", "The specified log stream already exists")


def _ensure_stream(tx: Transaction, group_name: str, name: str) -> bool:
    return bool(
        tx.run(
            "INSERT INTO logs_streams (group_name, name, created_at_ms) VALUES (:group, :name, :now) ON CONFLICT DO NOTHING",
            group=group_name,
            name=name,
            now=now_ms(tx),
        )
    )


def ensure(tx: Transaction, group_name: str, name: str) -> None:
    """Create what is missing of a group and a stream, as Lambda does for its functions."""
    known = tx.one(
        "SELECT 1 AS found FROM logs_streams WHERE group_name = :group AND name = :name", group=group_name, name=name
    )
    if known is None:
        _ensure_group(tx, group_name)
        _ensure_stream(tx, group_name, name)


def put(tx: Transaction, group_name: str, name: str, events: Sequence[LogEvent]) -> None:
    """Append events to a stream that exists."""
    if not events:
        return
    row = stream(tx, group_name, name)
    first: int = row["events"]
    for position, event in enumerate(events, start=first):
        tx.run(
            "INSERT INTO logs_events (group_name, stream_name, position, at_ms, ingested_ms, message)"
            " VALUES (:group, :stream, :position, :at, :now, :message)",
            group=group_name,
            stream=name,
            position=position,
            at=event.at_ms,
            now=now_ms(tx),
            message=event.message,
        )
    known = [at for at in (row["first_event_ms"], row["last_event_ms"]) if at is not None]
    tx.run(
        "UPDATE logs_streams SET events = :events, first_event_ms = :first, last_event_ms = :last,"
        " last_ingestion_ms = :now, stored_bytes = stored_bytes + :size WHERE group_name = :group AND name = :name",
        events=first + len(events),
        first=min([*known, *(event.at_ms for event in events)]),
        last=max([*known, *(event.at_ms for event in events)]),
        now=now_ms(tx),
        size=sum(size_bytes(event.message) for event in events),
        group=group_name,
        name=name,
    )
    _expire(tx, group_name)


def _expire(tx: Transaction, group_name: str) -> None:
    retention = group(tx, group_name)["retention_days"]
    if retention is None:
        return
    old = tx.all(
        "SELECT stream_name, position, message FROM logs_events WHERE group_name = :group AND at_ms < :horizon"
        " ORDER BY at_ms LIMIT :count",
        group=group_name,
        horizon=now_ms(tx) - retention * DAY_MS,
        count=EXPIRED_AT_ONCE,
    )
    for row in old:
        tx.run(
            "DELETE FROM logs_events WHERE group_name = :group AND stream_name = :stream AND position = :position",
            group=group_name,
            stream=row["stream_name"],
            position=row["position"],
        )
        tx.run(
            "UPDATE logs_streams SET stored_bytes = stored_bytes - :size WHERE group_name = :group AND name = :stream",
            size=size_bytes(row["message"]),
            group=group_name,
            stream=row["stream_name"],
        )


def delete_group(tx: Transaction, name: str) -> None:
    """Delete a group with its streams and events."""
    group(tx, name)
    for table in ("logs_events", "logs_streams"):
        tx.run(f"DELETE FROM {table} WHERE group_name = :name", name=name)
    tx.run("DELETE FROM logs_groups WHERE name = :name", name=name)


def delete_stream(tx: Transaction, group_name: str, name: str) -> None:
    """Delete a stream with its events."""
    stream(tx, group_name, name)
    tx.run("DELETE FROM logs_events WHERE group_name = :group AND stream_name = :name", group=group_name, name=name)
    tx.run("DELETE FROM logs_streams WHERE group_name = :group AND name = :name", group=group_name, name=name)
