"""An event: what happened, in the envelope that rules are matched against and targets receive.

Keeps true: every event has all members of the envelope, and its time is to the second, as EventBridge writes it.
"""

import json
from datetime import UTC, datetime
from typing import Any

import orjson

from muster.arn import arn
from muster.clock import Instant
from muster.transaction import Transaction

Event = dict[str, Any]


def iso(instant: Instant) -> str:
    return datetime.fromtimestamp(int(instant), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def new(
    tx: Transaction,
    source: str,
    detail_type: str,
    detail: dict[str, Any],
    resources: list[str],
    at: Instant | None = None,
) -> Event:
    """A new event with an id of its own."""
    return {
        "version": "0",
        "id": tx.new_id(),
        "detail-type": detail_type,
        "source": source,
        "account": tx.account,
        "time": iso(tx.now if at is None else at),
        "region": tx.region,
        "resources": resources,
        "detail": detail,
    }


def scheduled(tx: Transaction, rule: str, at: Instant) -> Event:
    """The event of a schedule that is due."""
    return new(tx, "aws.events", "Scheduled Event", {}, [arn(tx, "events", f"rule/{rule}")], at)


def instant(event: Event) -> Instant:
    """When the event says it happened."""
    return datetime.fromisoformat(event["time"]).timestamp()


def text(event: Event) -> str:
    """The event as JSON."""
    return orjson.dumps(event).decode()


def spaced(detail: dict[str, Any]) -> str:
    """A detail with a space after each comma and colon, as its size is counted."""
    return json.dumps(detail, ensure_ascii=False)
