"""Events come in: each is matched, and what it matched is posted, in the transaction that took it.

Keeps true: an accepted event has been archived where it is to be and posted to every target of every rule it matches,
in one commit with its cause. Events that were put from outside do not claim to come from AWS. An entry that is refused
harms no other.

Source: PutEvents in the API reference; "Calculating PutEvents event entry size".
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from muster.operation import Answer, Request
from muster.services.events import archives, buses, occurrence, routes
from muster.services.events.occurrence import Event
from muster.services.events.refusals import invalid
from muster.transaction import Transaction

ENTRIES_MAX = 10
BYTES_MAX = 256 * 1024

Refusal = tuple[str, str]


def put_events(tx: Transaction, request: Request) -> Answer:
    """PutEvents: an id or an error for each entry."""
    entries = request["Entries"]
    if len(entries) > ENTRIES_MAX:
        raise invalid(
            "1 validation error detected: Value at 'entries' failed to satisfy constraint: "
            f"Member must have length less than or equal to {ENTRIES_MAX}"
        )
    if sum(size(entry) for entry in entries) > BYTES_MAX:
        raise invalid("Total size of the entries in the request is over the limit.")
    answers = [_put(tx, entry) for entry in entries]
    return {"FailedEntryCount": sum("ErrorCode" in answer for answer in answers), "Entries": answers}


def size(entry: Mapping[str, Any]) -> int:
    """The size of an entry as EventBridge counts it."""
    texts = [entry.get("Source"), entry.get("DetailType"), entry.get("Detail"), *(entry.get("Resources") or ())]
    return sum(len(text.encode()) for text in texts if text) + (14 if entry.get("Time") is not None else 0)


def _put(tx: Transaction, entry: Mapping[str, Any]) -> dict[str, str]:
    detail, refusal = _checked(entry)
    if refusal is not None:
        return {"ErrorCode": refusal[0], "ErrorMessage": refusal[1]}
    event = occurrence.new(
        tx,
        entry["Source"],
        entry["DetailType"],
        detail,
        list(entry.get("Resources") or ()),
        _instant(entry.get("Time")),
    )
    bus = buses.name_of(entry.get("EventBusName"))
    if not publish(tx, bus, event, trace=entry.get("TraceHeader")):
        # As at AWS, the answer does not tell; the row does.
        record_failure(tx, event, bus, code="NO_RESOURCE", message=f"Event bus {bus} does not exist.")
    return {"EventId": event["id"]}


def _checked(entry: Mapping[str, Any]) -> tuple[dict[str, Any], Refusal | None]:
    for member in ("Source", "DetailType", "Detail"):
        if not entry.get(member):
            reason = f"Parameter {member} is not valid. Reason: {member} is a required argument."
            return {}, ("InvalidArgument", reason)
    if entry["Source"].startswith("aws."):
        return {}, ("NotAuthorizedForSource", "Not authorized for the source.")
    try:
        detail = orjson.loads(entry["Detail"])
    except orjson.JSONDecodeError:
        detail = None
    if not isinstance(detail, dict):
        return {}, ("MalformedDetail", "Detail is malformed.")
    return detail, None


def _instant(time: Any) -> float | None:
    return time.timestamp() if isinstance(time, datetime) else None if time is None else float(time)


def publish_service_event(tx: Transaction, request: Request) -> Answer:
    """A sibling tells what happened at it: the one way to an event whose source begins with `aws.`."""
    event = occurrence.new(
        tx,
        request["Source"],
        request["DetailType"],
        orjson.loads(request["Detail"]),
        list(request.get("Resources") or ()),
        _instant(request.get("Time")),
    )
    publish(tx, buses.DEFAULT, event)
    return {"EventId": event["id"]}


def publish(tx: Transaction, bus: str, event: Event, *, trace: str | None = None, hops: int = 0) -> bool:
    """Archive the event and post it to what it matches; False when there is no such bus."""
    found = routes.of(tx, bus)
    if found is None:
        return False
    for archive in found.archives.matching(event):
        archives.keep(tx, archive, event)
    matched = {rule: found.targets.get(rule, ()) for rule in found.rules.matching(event)}
    routes.send(tx, bus, event, matched, trace=trace, hops=hops)
    return True


def republish(tx: Transaction, bus: str, event: Event, only: frozenset[str] | None) -> None:
    """Send an archived event again: to the rules named, or all; it is not archived a second time."""
    found = routes.of(tx, bus)
    if found is not None:
        matched = {
            rule: found.targets.get(rule, ()) for rule in found.rules.matching(event) if only is None or rule in only
        }
        routes.send(tx, bus, event, matched)


def record_failure(
    tx: Transaction,
    event: Event,
    bus: str,
    *,
    code: str,
    message: str,
    rule: str | None = None,
    target: Mapping[str, Any] | None = None,
    exhausted: str | None = None,
    attempts: int = 0,
) -> None:
    """Write down that an event did not get where it should have."""
    tx.run(
        "INSERT INTO events_failed_deliveries (id, event_id, bus, rule, target_id, target_arn, error_code,"
        " error_message, exhausted, attempts, event, failed_at) VALUES (:id, :event_id, :bus, :rule, :target_id,"
        " :target_arn, :code, :message, :exhausted, :attempts, :event, :now)",
        id=tx.new_id(),
        event_id=event["id"],
        bus=bus,
        rule=rule,
        target_id=target["Id"] if target else None,
        target_arn=target["Arn"] if target else None,
        code=code,
        message=message,
        exhausted=exhausted,
        attempts=attempts,
        event=occurrence.text(event),
        now=tx.now,
    )
