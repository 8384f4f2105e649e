"""Where the events of a bus go: its enabled rules and archives, compiled and kept in memory by the bus's revision.

Keeps true: what is kept for a revision is what the rows say at that revision, in every transaction and process, since
a revision is a digest of all changes (see `buses`). Matching an event and posting what it matched are one commit with
whatever put it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from muster.languages.patterns import Index, Pattern
from muster.services.events.occurrence import Event
from muster.transaction import Delivery, Transaction

KIND = "events.target"

Target = dict[str, Any]

_KEPT_MAX = 256
_kept: dict[tuple[str, str], "Routes"] = {}


@dataclass(frozen=True, slots=True)
class Routes:
    """The enabled rules of a bus, its targets by rule, and its archives."""

    rules: Index[str]
    targets: Mapping[str, Sequence[Target]]
    archives: Index[str]


def of(tx: Transaction, bus: str) -> Routes | None:
    """The routes of a bus as they are in this transaction; None when there is no such bus."""
    row = tx.one("SELECT revision FROM events_buses WHERE name = :name", name=bus)
    if row is None:
        return None
    key = (bus, row["revision"])
    found = _kept.pop(key, None) or _read(tx, bus)
    _kept[key] = found  # at the end: the first ones are those not asked for the longest
    while len(_kept) > _KEPT_MAX:
        _kept.pop(next(iter(_kept)), None)
    return found


def send(
    tx: Transaction,
    bus: str,
    event: Event,
    matched: Mapping[str, Sequence[Target]],
    *,
    trace: str | None = None,
    hops: int = 0,
) -> None:
    """Post the event to the targets of the rules it matched."""
    for rule, targets in matched.items():
        for target in targets:
            payload = {
                "event": event,
                "bus": bus,
                "rule": rule,
                "target": target,
                "trace": trace,
                "hops": hops,
                "attempts": 0,
                "since": tx.now,
            }
            tx.post(Delivery(KIND, event["id"], payload))


@lru_cache(maxsize=4096)
def _compiled(text: str) -> Pattern:
    return Pattern(text)


# An archive without a pattern keeps every event; every event has a source.
_EVERYTHING = '{"source": [{"exists": true}]}'


def _read(tx: Transaction, bus: str) -> Routes:
    rules = tx.all(
        "SELECT name, pattern FROM events_rules"
        " WHERE bus = :bus AND state = 'ENABLED' AND pattern IS NOT NULL ORDER BY name",
        bus=bus,
    )
    targets: dict[str, list[Target]] = {}
    for row in tx.all("SELECT rule, definition FROM events_targets WHERE bus = :bus ORDER BY rule, position", bus=bus):
        targets.setdefault(row["rule"], []).append(orjson.loads(row["definition"]))
    archives = tx.all("SELECT name, pattern FROM events_archives WHERE bus = :bus ORDER BY name", bus=bus)
    return Routes(
        Index((row["name"], _compiled(row["pattern"])) for row in rules),
        targets,
        Index((row["name"], _compiled(row["pattern"] or _EVERYTHING)) for row in archives),
    )
