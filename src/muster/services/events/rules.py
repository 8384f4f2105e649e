"""Rules: a pattern or a schedule on a bus, enabled or not.

Keeps true: a rule's pattern has been read and understood, and so has its schedule; a rule with targets is not deleted;
whatever changes about a rule changes the revision of its bus.
"""

from typing import Any

import orjson

from muster.arn import arn
from muster.errors import ServiceError, unsupported
from muster.languages.patterns import InvalidPattern, Pattern
from muster.operation import Request
from muster.services.events import buses, schedules
from muster.services.events.refusals import invalid
from muster.transaction import Row, Transaction


def rule_arn(tx: Transaction, bus: str, name: str) -> str:
    return arn(tx, "events", f"rule/{name}" if bus == buses.DEFAULT else f"rule/{bus}/{name}")


def pattern_of(text: str) -> Pattern:
    """The pattern; InvalidEventPatternException when the text is none."""
    try:
        return Pattern(text)
    except InvalidPattern as problem:
        raise ServiceError("InvalidEventPatternException", str(problem), status=400) from problem


def find(tx: Transaction, bus: str, name: str) -> Row | None:
    return tx.one("SELECT * FROM events_rules WHERE bus = :bus AND name = :name", bus=bus, name=name)


def get(tx: Transaction, given_bus: str | None, name: str) -> Row:
    """The rule; ResourceNotFoundException when it or its bus is not there."""
    bus = buses.get(tx, given_bus)["name"]
    row = find(tx, bus, name)
    if row is None:
        raise not_found_on(bus, name)
    return row


def not_found_on(bus: str, name: str) -> ServiceError:
    return ServiceError("ResourceNotFoundException", f"Rule {name} does not exist on EventBus {bus}.", status=400)


def put(tx: Transaction, request: Request, tags: dict[str, str]) -> str:
    """Create the rule, or replace all of it but its targets and tags; its ARN."""
    bus = buses.get(tx, request.get("EventBusName"))["name"]
    name = request["Name"]
    pattern = request.get("EventPattern") or None
    schedule = request.get("ScheduleExpression") or None
    state = request.get("State") or "ENABLED"
    if pattern is None and schedule is None:
        raise invalid("Parameter(s) EventPattern or ScheduleExpression must be specified.")
    if pattern is not None:
        pattern_of(pattern)
    if schedule is not None:
        if bus != buses.DEFAULT:
            raise invalid("ScheduleExpression is supported only on the default event bus.")
        schedules.checked(schedule)
    if state not in ("ENABLED", "DISABLED"):
        raise unsupported(f"rules in the state {state}")
    tx.run(
        "INSERT INTO events_rules (bus, name, pattern, schedule, state, description, role_arn, tags)"
        " VALUES (:bus, :name, :pattern, :schedule, :state, :description, :role, :tags)"
        " ON CONFLICT (bus, name) DO UPDATE SET pattern = excluded.pattern, schedule = excluded.schedule,"
        " state = excluded.state, description = excluded.description, role_arn = excluded.role_arn",
        bus=bus,
        name=name,
        pattern=pattern,
        schedule=schedule,
        state=state,
        description=request.get("Description"),
        role=request.get("RoleArn"),
        tags=orjson.dumps(tags).decode(),
    )
    buses.routes_changed(tx, bus, "rule", name, pattern, state)
    schedules.restart(tx, bus, name, schedule if state == "ENABLED" else None)
    return rule_arn(tx, bus, name)


def set_state(tx: Transaction, request: Request, state: str) -> None:
    row = get(tx, request.get("EventBusName"), request["Name"])
    if row["state"] == state:
        return
    bus, name = row["bus"], row["name"]
    tx.run("UPDATE events_rules SET state = :state WHERE bus = :bus AND name = :name", state=state, bus=bus, name=name)
    buses.routes_changed(tx, bus, "state", name, state)
    schedules.restart(tx, bus, name, row["schedule"] if state == "ENABLED" else None)


def delete(tx: Transaction, request: Request) -> None:
    """Delete the rule; one that is not there is as good as deleted."""
    bus = buses.get(tx, request.get("EventBusName"))["name"]
    name = request["Name"]
    if find(tx, bus, name) is None:
        return
    if tx.one("SELECT id FROM events_targets WHERE bus = :bus AND rule = :rule", bus=bus, rule=name) is not None:
        raise invalid("Rule can't be deleted since it has targets.")
    tx.run("DELETE FROM events_rules WHERE bus = :bus AND name = :name", bus=bus, name=name)
    buses.routes_changed(tx, bus, "no rule", name)
    schedules.restart(tx, bus, name, None)


def starting_with(tx: Transaction, given_bus: str | None, prefix: str) -> list[Row]:
    bus = buses.get(tx, given_bus)["name"]
    rows = tx.all("SELECT * FROM events_rules WHERE bus = :bus ORDER BY name", bus=bus)
    return [row for row in rows if row["name"].startswith(prefix)]


def by_arn(tx: Transaction, resource: str) -> Row:
    """The rule of an ARN's resource, `rule/name` or `rule/bus/name`."""
    bus, _, name = resource.removeprefix("rule/").rpartition("/")
    row = find(tx, bus or buses.DEFAULT, name)
    if row is None:
        raise not_found_on(bus or buses.DEFAULT, name)
    return row


def described(tx: Transaction, row: Row) -> dict[str, Any]:
    """The rule as DescribeRule and ListRules show it."""
    answer = {
        "Name": row["name"],
        "Arn": rule_arn(tx, row["bus"], row["name"]),
        "State": row["state"],
        "EventBusName": row["bus"],
        "EventPattern": row["pattern"],
        "ScheduleExpression": row["schedule"],
        "Description": row["description"],
        "RoleArn": row["role_arn"],
    }
    return {member: value for member, value in answer.items() if value is not None}
