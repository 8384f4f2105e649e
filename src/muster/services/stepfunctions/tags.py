"""Tags of state machines and activities.

Keeps true: a name has one value per resource, and no resource has more than fifty.
"""

from collections.abc import Iterable, Mapping

from muster.errors import ServiceError
from muster.operation import Answer, Request
from muster.services.stepfunctions import names
from muster.transaction import Transaction

TAGS_MAX = 50  # "Quotas related to tagging"


def add(tx: Transaction, resource: str, given: Iterable[Mapping[str, str]]) -> None:
    """Set tags; TooManyTags beyond fifty."""
    for tag in given:
        tx.run(
            "INSERT INTO states_tags (arn, name, value) VALUES (:arn, :name, :value)"
            " ON CONFLICT (arn, name) DO UPDATE SET value = excluded.value",
            arn=resource,
            name=tag["key"],
            value=tag.get("value", ""),
        )
    count = tx.one("SELECT COUNT(*) AS n FROM states_tags WHERE arn = :arn", arn=resource)
    if count is not None and count["n"] > TAGS_MAX:
        raise ServiceError("TooManyTags", "Too Many Tags", fields={"resourceName": resource})


def _resource(tx: Transaction, resource: str) -> str:
    _, parts = names.parse(resource, "stateMachine", "activity")
    table = "states_machines" if parts[0] == "stateMachine" else "states_activities"
    if tx.one(f"SELECT arn FROM {table} WHERE arn = :arn", arn=resource) is None:
        raise ServiceError("ResourceNotFound", f"Resource not found: '{resource}'", fields={"resourceName": resource})
    return resource


def tag(tx: Transaction, request: Request) -> Answer:
    """TagResource."""
    add(tx, _resource(tx, request["resourceArn"]), request["tags"])
    return {}


def untag(tx: Transaction, request: Request) -> Answer:
    """UntagResource; names that are not there are nothing to it."""
    resource = _resource(tx, request["resourceArn"])
    for name in request["tagKeys"]:
        tx.run("DELETE FROM states_tags WHERE arn = :arn AND name = :name", arn=resource, name=name)
    return {}


def listed(tx: Transaction, request: Request) -> Answer:
    """ListTagsForResource."""
    rows = tx.all(
        "SELECT name, value FROM states_tags WHERE arn = :arn ORDER BY name",
        arn=_resource(tx, request["resourceArn"]),
    )
    return {"tags": [{"key": row["name"], "value": row["value"]} for row in rows]}
