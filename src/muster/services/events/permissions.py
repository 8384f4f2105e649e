"""The resource policy of an event bus, written statement by statement or as a whole.

Keeps true: a statement's Sid is unique in its policy. The policy is kept and shown; Muster has one account, so nobody
else asks.
"""

from typing import Any

import orjson

from muster.errors import ServiceError
from muster.operation import Request
from muster.services.events import buses
from muster.services.events.refusals import invalid
from muster.transaction import Row, Transaction


def put(tx: Transaction, request: Request) -> None:
    """Add or replace a statement, or the whole policy."""
    bus = buses.get(tx, request.get("EventBusName"))
    if request.get("Policy"):
        _write(tx, bus, _read(request["Policy"]))
        return
    sid, principal = request.get("StatementId"), request.get("Principal")
    if not sid or not principal or not request.get("Action"):
        raise invalid("Parameters Action, Principal and StatementId must be specified.")
    policy = _policy(bus) or {"Version": "2012-10-17", "Statement": []}
    statement: dict[str, Any] = {
        "Sid": sid,
        "Effect": "Allow",
        "Principal": "*" if principal == "*" else {"AWS": f"arn:aws:iam::{principal}:root"},
        "Action": request["Action"],
        "Resource": buses.bus_arn(tx, bus["name"]),
    }
    condition = request.get("Condition")
    if condition:
        statement["Condition"] = {condition["Type"]: {condition["Key"]: condition["Value"]}}
    policy["Statement"] = [one for one in policy["Statement"] if one.get("Sid") != sid] + [statement]
    _write(tx, bus, policy)


def remove(tx: Transaction, request: Request) -> None:
    """Remove a statement, or all of them."""
    bus = buses.get(tx, request.get("EventBusName"))
    if request.get("RemoveAllPermissions"):
        _write(tx, bus, None)
        return
    policy = _policy(bus)
    if policy is None:
        raise ServiceError("ResourceNotFoundException", "EventBus does not have a policy.", status=400)
    rest = [one for one in policy["Statement"] if one.get("Sid") != request.get("StatementId")]
    if len(rest) == len(policy["Statement"]):
        raise ServiceError("ResourceNotFoundException", "Statement with the provided id does not exist.", status=400)
    _write(tx, bus, {**policy, "Statement": rest} if rest else None)


def _policy(bus: Row) -> dict[str, Any] | None:
    return orjson.loads(bus["policy"]) if bus["policy"] else None


def _read(text: str) -> dict[str, Any]:
    try:
        policy = orjson.loads(text)
    except orjson.JSONDecodeError:
        policy = None
    if not isinstance(policy, dict) or not isinstance(policy.get("Statement"), list):
        raise invalid("Policy is not valid.")
    return policy


def _write(tx: Transaction, bus: Row, policy: dict[str, Any] | None) -> None:
    tx.run(
        "UPDATE events_buses SET policy = :policy, modified_at = :now WHERE name = :name",
        name=bus["name"],
        policy=None if policy is None else orjson.dumps(policy).decode(),
        now=tx.now,
    )
