"""Archives: the events of a bus that match a pattern, kept to be sent again.

Keeps true: an archived event is kept whole, in one commit with its acceptance; after the archive's days of retention it
is no longer counted, shown or replayed, and is deleted when the archive is next written to.
"""

from typing import Any

from muster.arn import Arn, arn
from muster.operation import Request
from muster.services.events import buses, occurrence, rules
from muster.services.events.occurrence import Event
from muster.services.events.refusals import already_exists, not_found
from muster.transaction import Row, Transaction

_DAY = 86_400


def archive_arn(tx: Transaction, name: str) -> str:
    return arn(tx, "events", f"archive/{name}")


def get(tx: Transaction, name: str) -> Row:
    """The archive; ResourceNotFoundException when there is none."""
    row = tx.one("SELECT * FROM events_archives WHERE name = :name", name=name)
    if row is None:
        raise not_found(f"Archive {name}")
    return row


def bus_of(tx: Transaction, source_arn: str) -> str:
    """The bus of an archive's event source ARN, which has to exist here."""
    name = buses.name_of(source_arn)
    if Arn.parse(source_arn).account != tx.account or buses.find(tx, name) is None:
        raise not_found(f"Event bus {name}")
    return name


def create(tx: Transaction, request: Request) -> Row:
    name, pattern = request["ArchiveName"], request.get("EventPattern") or None
    bus = bus_of(tx, request["EventSourceArn"])
    if tx.one("SELECT name FROM events_archives WHERE name = :name", name=name) is not None:
        raise already_exists(f"Archive {name}")
    if pattern is not None:
        rules.pattern_of(pattern)
    tx.run(
        "INSERT INTO events_archives (name, bus, description, pattern, retention_days, created_at)"
        " VALUES (:name, :bus, :description, :pattern, :days, :now)",
        name=name,
        bus=bus,
        description=request.get("Description"),
        pattern=pattern,
        days=request.get("RetentionDays") or 0,
        now=tx.now,
    )
    buses.routes_changed(tx, bus, "archive", name, pattern)
    return get(tx, name)


def update(tx: Transaction, request: Request) -> Row:
    """Change what is given."""
    row = get(tx, request["ArchiveName"])
    pattern = request.get("EventPattern") or row["pattern"]
    days = request.get("RetentionDays")
    if pattern is not None:
        rules.pattern_of(pattern)
    tx.run(
        "UPDATE events_archives SET description = :description, pattern = :pattern, retention_days = :days"
        " WHERE name = :name",
        name=row["name"],
        description=request.get("Description", row["description"]),
        pattern=pattern,
        days=row["retention_days"] if days is None else days,
    )
    buses.routes_changed(tx, row["bus"], "archive", row["name"], pattern)
    return get(tx, row["name"])


def delete(tx: Transaction, name: str) -> None:
    row = get(tx, name)
    tx.run("DELETE FROM events_archived WHERE archive = :name", name=name)
    tx.run("DELETE FROM events_archives WHERE name = :name", name=name)
    buses.routes_changed(tx, row["bus"], "no archive", name)


def keep(tx: Transaction, name: str, event: Event) -> None:
    """Archive the event, and delete what is past its retention."""
    row = get(tx, name)
    if row["retention_days"]:
        tx.run(
            "DELETE FROM events_archived WHERE archive = :archive AND archived_at < :oldest",
            archive=name,
            oldest=_oldest(tx, row),
        )
    tx.run(
        "INSERT INTO events_archived (archive, at, id, archived_at, size, event)"
        " VALUES (:archive, :at, :id, :now, :size, :event) ON CONFLICT DO NOTHING",
        archive=name,
        at=occurrence.instant(event),
        id=event["id"],
        now=tx.now,
        size=_size(event),
        event=occurrence.text(event),
    )


def _size(event: Event) -> int:
    """The size of an archived event: its time, source, detail type, resources and detail, as AWS counts SizeBytes."""
    detail = occurrence.spaced(event["detail"])
    texts = [event["time"], event["source"], event["detail-type"], *event["resources"], detail]
    return sum(len(text.encode()) for text in texts)


def _oldest(tx: Transaction, row: Row) -> float:
    return tx.now - row["retention_days"] * _DAY if row["retention_days"] else 0.0


def batch(tx: Transaction, archive: Row, after: tuple[float, str], until: float, limit: int) -> list[Row]:
    """The next events after a place (time, id), up to and including a time."""
    at, id_ = after
    return tx.all(
        "SELECT at, id, event FROM events_archived WHERE archive = :archive AND archived_at >= :oldest"
        " AND (at > :at OR (at = :at AND id > :id)) AND at <= :until ORDER BY at, id LIMIT :limit",
        archive=archive["name"],
        oldest=_oldest(tx, archive),
        at=at,
        id=id_,
        until=until,
        limit=limit,
    )


def selected(tx: Transaction, request: Request) -> list[Row]:
    """The archives that ListArchives is asked for."""
    rows = tx.all("SELECT * FROM events_archives ORDER BY name")
    if request.get("EventSourceArn"):
        bus = bus_of(tx, request["EventSourceArn"])
        rows = [row for row in rows if row["bus"] == bus]
    if request.get("State") not in (None, "ENABLED"):
        return []
    return [row for row in rows if row["name"].startswith(request.get("NamePrefix") or "")]


def summary(tx: Transaction, row: Row) -> dict[str, Any]:
    """The archive as ListArchives shows it."""
    held = tx.one(
        "SELECT COUNT(*) AS events, COALESCE(SUM(size), 0) AS size FROM events_archived"
        " WHERE archive = :archive AND archived_at >= :oldest",
        archive=row["name"],
        oldest=_oldest(tx, row),
    )
    assert held is not None
    return {
        "ArchiveName": row["name"],
        "EventSourceArn": buses.bus_arn(tx, row["bus"]),
        "State": "ENABLED",
        "RetentionDays": row["retention_days"],
        "SizeBytes": int(held["size"]),
        "EventCount": held["events"],
        "CreationTime": row["created_at"],
    }


def described(tx: Transaction, row: Row) -> dict[str, Any]:
    """The archive as DescribeArchive shows it."""
    answer = {"ArchiveArn": archive_arn(tx, row["name"]), **summary(tx, row)}
    if row["description"]:
        answer["Description"] = row["description"]
    if row["pattern"]:
        answer["EventPattern"] = row["pattern"]
    return answer
