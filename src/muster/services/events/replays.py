"""Replays: archived events of a span of time are sent again, to some rules or all of the archive's bus.

Keeps true: a replay goes on after a crash where it stopped, since its place is written with what it sends; it sends no
event twice and ends as COMPLETED, CANCELLED or FAILED. Events carry the replay's name and are not archived again.
"""

from typing import Any

import orjson

from muster.arn import Arn, arn
from muster.errors import ServiceError
from muster.operation import Request
from muster.services.events import archives, buses, publishing
from muster.services.events.refusals import already_exists, invalid, invalid_parameter, not_found
from muster.transaction import Carried, Delivery, Row, Transaction

KIND = "events.replay"

# One transaction sends this many, so that others get their turn.
_BATCH = 100


def replay_arn(tx: Transaction, name: str) -> str:
    return arn(tx, "events", f"replay/{name}")


def get(tx: Transaction, name: str) -> Row:
    """The replay; ResourceNotFoundException when there is none."""
    row = tx.one("SELECT * FROM events_replays WHERE name = :name", name=name)
    if row is None:
        raise not_found(f"Replay {name}")
    return row


def start(tx: Transaction, request: Request, from_at: float, until_at: float) -> Row:
    """Write the replay down and set it going."""
    name, destination = request["ReplayName"], request["Destination"]
    if from_at >= until_at:
        raise invalid_parameter("EventEndTime", "EventStartTime must be before EventEndTime.")
    if tx.one("SELECT name FROM events_replays WHERE name = :name", name=name) is not None:
        raise already_exists(f"Replay {name}")
    archive = archives.get(tx, _archive_name(request["EventSourceArn"]))
    bus = buses.get(tx, destination["Arn"])["name"]
    if bus != archive["bus"]:
        raise invalid_parameter("Destination.Arn", "Cross event bus replay is not permitted.")
    for rule in destination.get("FilterArns") or ():
        _rule_name(rule)
    tx.run(
        "INSERT INTO events_replays (name, archive, description, destination, from_at, until_at, state, started_at)"
        " VALUES (:name, :archive, :description, :destination, :from_at, :until_at, 'STARTING', :now)",
        name=name,
        archive=archive["name"],
        description=request.get("Description"),
        destination=orjson.dumps(destination).decode(),
        from_at=from_at,
        until_at=until_at,
        now=tx.now,
    )
    tx.post(Delivery(KIND, name, {}))
    return get(tx, name)


def _archive_name(source_arn: str) -> str:
    resource = Arn.parse(source_arn).resource
    if not resource.startswith("archive/"):
        raise invalid_parameter("EventSourceArn", "Must contain an archive ARN.")
    return resource.removeprefix("archive/")


def _rule_name(rule_arn: str) -> str:
    try:
        resource = Arn.parse(rule_arn).resource
    except ValueError:
        raise invalid_parameter("Destination.FilterArns", "Must contain ARNs of rules.") from None
    if not resource.startswith("rule/"):
        raise invalid("Parameter Destination.FilterArns is not valid. Reason: Must contain ARNs of rules.")
    return resource.rsplit("/", 1)[-1]


def cancel(tx: Transaction, name: str) -> Row:
    """Ask the replay to stop; it does at its next step."""
    row = get(tx, name)
    if row["state"] not in ("STARTING", "RUNNING"):
        raise ServiceError(
            "IllegalStatusException", f"Replay {name} is not in a valid state for this operation.", status=400
        )
    tx.run("UPDATE events_replays SET state = 'CANCELLING' WHERE name = :name", name=name)
    return get(tx, name)


def carry(tx: Transaction, delivery: Carried) -> None:
    """Send the next events, then post the step after."""
    row = tx.one("SELECT * FROM events_replays WHERE name = :name", name=delivery.subject)
    if row is None or row["ended_at"] is not None:
        return
    if row["state"] == "CANCELLING":
        _end(tx, row, "CANCELLED", "Replay cancelled")
        return
    archive = tx.one("SELECT * FROM events_archives WHERE name = :name", name=row["archive"])
    if archive is None:
        _end(tx, row, "FAILED", f"Archive {row['archive']} does not exist.")
        return
    destination = orjson.loads(row["destination"])
    chosen = destination.get("FilterArns")
    only = frozenset(_rule_name(rule) for rule in chosen) if chosen else None
    place = (row["from_at"], "") if row["reached_at"] is None else (row["reached_at"], row["reached_id"])
    events = archives.batch(tx, archive, place, row["until_at"], _BATCH)
    for kept in events:
        publishing.republish(tx, archive["bus"], {**orjson.loads(kept["event"]), "replay-name": row["name"]}, only)
        place = (kept["at"], kept["id"])
    if events:
        tx.run(
            "UPDATE events_replays SET state = 'RUNNING', reached_at = :at, reached_id = :id WHERE name = :name",
            at=place[0],
            id=place[1],
            name=row["name"],
        )
    if len(events) == _BATCH:
        tx.post(Delivery(KIND, row["name"], {}))
    else:
        _end(tx, row, "COMPLETED", None)


def _end(tx: Transaction, row: Row, state: str, reason: str | None) -> None:
    tx.run(
        "UPDATE events_replays SET state = :state, reason = :reason, ended_at = :now WHERE name = :name",
        state=state,
        reason=reason,
        now=tx.now,
        name=row["name"],
    )


def selected(tx: Transaction, request: Request) -> list[Row]:
    """The replays that ListReplays is asked for."""
    rows = tx.all("SELECT * FROM events_replays ORDER BY name")
    if request.get("EventSourceArn"):
        archive = _archive_name(request["EventSourceArn"])
        rows = [row for row in rows if row["archive"] == archive]
    if request.get("State"):
        rows = [row for row in rows if row["state"] == request["State"]]
    return [row for row in rows if row["name"].startswith(request.get("NamePrefix") or "")]


def summary(tx: Transaction, row: Row) -> dict[str, Any]:
    """The replay as ListReplays shows it."""
    answer = {
        "ReplayName": row["name"],
        "EventSourceArn": archives.archive_arn(tx, row["archive"]),
        "State": row["state"],
        "StateReason": row["reason"],
        "EventStartTime": row["from_at"],
        "EventEndTime": row["until_at"],
        "EventLastReplayedTime": row["reached_at"],
        "ReplayStartTime": row["started_at"],
        "ReplayEndTime": row["ended_at"],
    }
    return {member: value for member, value in answer.items() if value is not None}


def described(tx: Transaction, row: Row) -> dict[str, Any]:
    """The replay as DescribeReplay shows it."""
    answer = {
        **summary(tx, row),
        "ReplayArn": replay_arn(tx, row["name"]),
        "Destination": orjson.loads(row["destination"]),
    }
    if row["description"]:
        answer["Description"] = row["description"]
    return answer
