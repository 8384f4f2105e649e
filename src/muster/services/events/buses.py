"""Event buses: where events are put and rules wait for them.

Keeps true: the default bus is always there; a bus with rules is not deleted; the revision of a bus is a digest of all
changes that were ever made to its rules, so that two states with one revision are the same state, in whatever
transaction, process or rolled-back attempt they came to be.
"""

import hashlib
from typing import Any

import orjson

from muster.arn import arn
from muster.services.events.refusals import already_exists, invalid, not_found
from muster.transaction import Row, Transaction

DEFAULT = "default"


def name_of(given: str | None) -> str:
    """The name of a bus that is given by name, by ARN or not at all."""
    return given.rsplit(":event-bus/", 1)[-1] if given else DEFAULT


def bus_arn(tx: Transaction, name: str) -> str:
    return arn(tx, "events", f"event-bus/{name}")


def find(tx: Transaction, name: str) -> Row | None:
    return tx.one("SELECT * FROM events_buses WHERE name = :name", name=name)


def get(tx: Transaction, given: str | None) -> Row:
    """The bus; ResourceNotFoundException when there is none."""
    name = name_of(given)
    row = find(tx, name)
    if row is None:
        raise not_found(f"Event bus {name}")
    return row


def create(
    tx: Transaction, name: str, description: str | None, dead_letter_arn: str | None, tags: dict[str, str]
) -> None:
    if "/" in name:
        raise invalid("Event bus name must not contain '/'.")
    if find(tx, name) is not None:
        raise already_exists(f"Event bus {name}")
    tx.run(
        "INSERT INTO events_buses (name, description, dead_letter_arn, tags, revision, created_at, modified_at)"
        " VALUES (:name, :description, :dead_letter, :tags, '', :now, :now)",
        name=name,
        description=description,
        dead_letter=dead_letter_arn,
        tags=orjson.dumps(tags).decode(),
        now=tx.now,
    )


def update(tx: Transaction, name: str, description: str | None, dead_letter_arn: str | None) -> None:
    """Change what is not None; an empty text takes away."""
    tx.run(
        "UPDATE events_buses SET description = COALESCE(:description, description),"
        " dead_letter_arn = COALESCE(:dead_letter, dead_letter_arn), modified_at = :now WHERE name = :name",
        name=name,
        description=description,
        dead_letter=dead_letter_arn,
        now=tx.now,
    )


def delete(tx: Transaction, name: str) -> None:
    """Delete the bus; one that is not there is as good as deleted."""
    if name == DEFAULT:
        raise invalid("Cannot delete event bus default.")
    # An archive counts as a rule: EventBridge keeps a managed rule on the bus for each.
    used = "SELECT name FROM events_rules WHERE bus = :bus UNION ALL SELECT name FROM events_archives WHERE bus = :bus"
    if tx.one(used, bus=name) is not None:
        raise invalid("Event bus can't be deleted since it has rules.")
    tx.run("DELETE FROM events_buses WHERE name = :name", name=name)


def starting_with(tx: Transaction, prefix: str) -> list[Row]:
    rows = tx.all("SELECT * FROM events_buses ORDER BY name")
    return [row for row in rows if row["name"].startswith(prefix)]


def routes_changed(tx: Transaction, name: str, *what: Any) -> None:
    """Write down that the rules, targets or archives of the bus changed, and how."""
    row = tx.one("SELECT revision FROM events_buses WHERE name = :name", name=name)
    if row is not None:
        change = orjson.dumps([row["revision"], *what])
        tx.run(
            "UPDATE events_buses SET revision = :revision WHERE name = :name",
            name=name,
            revision=hashlib.sha256(change).hexdigest(),
        )


def described(tx: Transaction, row: Row) -> dict[str, Any]:
    """The bus as DescribeEventBus and ListEventBuses show it."""
    answer = {
        "Name": row["name"],
        "Arn": bus_arn(tx, row["name"]),
        "CreationTime": row["created_at"],
        "LastModifiedTime": row["modified_at"],
    }
    if row["description"]:
        answer["Description"] = row["description"]
    if row["policy"]:
        answer["Policy"] = row["policy"]
    return answer
