"""Tags of buses and rules.

Keeps true: a key is given once, and a resource has fifty tags at most.
"""

from collections.abc import Iterable, Mapping

import orjson

from muster.services.events import buses, destinations, rules
from muster.services.events.refusals import invalid, invalid_parameter
from muster.transaction import Row, Transaction

MOST = 50


def as_dict(tags: Iterable[Mapping[str, str]] | None) -> dict[str, str]:
    """A list of Key and Value as a dict; ValidationException when a key is given twice or there are too many."""
    found: dict[str, str] = {}
    for tag in tags or ():
        if tag["Key"] in found:
            raise invalid("Duplicate keys provided.")
        found[tag["Key"]] = tag["Value"]
    return _few(found)


def _few(tags: dict[str, str]) -> dict[str, str]:
    if len(tags) > MOST:
        raise invalid_parameter("Tags", f"A resource has at most {MOST} tags.")
    return tags


def of(tx: Transaction, arn: str) -> dict[str, str]:
    _, row = _resource(tx, arn)
    tags: dict[str, str] = orjson.loads(row["tags"])
    return tags


def change(tx: Transaction, arn: str, put: Mapping[str, str], remove: Iterable[str] = ()) -> None:
    """Put some tags and remove others."""
    table, row = _resource(tx, arn)
    gone = frozenset(remove)
    tags = _few({key: value for key, value in {**orjson.loads(row["tags"]), **put}.items() if key not in gone})
    text = orjson.dumps(tags).decode()
    if table == "events_buses":
        tx.run("UPDATE events_buses SET tags = :tags WHERE name = :name", tags=text, name=row["name"])
    else:
        tx.run(
            "UPDATE events_rules SET tags = :tags WHERE bus = :bus AND name = :name",
            tags=text,
            bus=row["bus"],
            name=row["name"],
        )


def _resource(tx: Transaction, arn: str) -> tuple[str, Row]:
    resource = destinations.parsed(arn, "ResourceARN").resource
    if resource.startswith("event-bus/"):
        return "events_buses", buses.get(tx, arn)
    if resource.startswith("rule/"):
        return "events_rules", rules.by_arn(tx, resource)
    raise invalid_parameter("ResourceARN", "Tags are on event buses and rules.")
