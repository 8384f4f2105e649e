"""Targets: who receives what a rule matches, in what form, and for how long it is tried.

Keeps true: a rule has five targets at most; what a target is to receive has been understood, and its kind is one that
this process can reach.
"""

from typing import Any

import orjson

from muster.arn import Arn
from muster.errors import unsupported
from muster.operation import Request
from muster.services.events import buses, destinations, inputs, rules
from muster.services.events.refusals import invalid, invalid_parameter, too_many
from muster.transaction import Transaction

# Quota "Targets per rule" (EventBridge user guide, "Quotas").
PER_RULE_MAX = 5

Target = dict[str, Any]


def put(tx: Transaction, request: Request) -> None:
    """Add targets to a rule, or replace those with the same ids."""
    rule = rules.get(tx, request.get("EventBusName"), request["Rule"])
    bus, name = rule["bus"], rule["name"]
    given: dict[str, Target] = {}
    for described in request["Targets"]:
        target = {member: value for member, value in described.items() if value is not None}
        _check(tx, target)
        given[target["Id"]] = target
    known = {target["Id"] for target in of_rule(tx, bus, name)}
    if len(known | given.keys()) > PER_RULE_MAX:
        raise too_many()
    position = rule["next_position"]
    for id_, target in given.items():
        tx.run(
            "INSERT INTO events_targets (bus, rule, id, position, arn, definition)"
            " VALUES (:bus, :rule, :id, :position, :arn, :definition)"
            " ON CONFLICT (bus, rule, id) DO UPDATE SET arn = excluded.arn, definition = excluded.definition",
            bus=bus,
            rule=name,
            id=id_,
            position=position,
            arn=target["Arn"],
            definition=orjson.dumps(target).decode(),
        )
        position += 1
    tx.run(
        "UPDATE events_rules SET next_position = :position WHERE bus = :bus AND name = :name",
        position=position,
        bus=bus,
        name=name,
    )
    buses.routes_changed(tx, bus, "targets", name, list(given.values()))


def _check(tx: Transaction, target: Target) -> None:
    for member in destinations.UNSUPPORTED:
        if target.get(member) is not None:
            raise unsupported(f"the parameter {member} of a target")
    inputs.check(target)
    arn = destinations.parsed(target["Arn"])
    kind = destinations.kind_of(arn)
    if kind is None:
        if any(member in target for member in ("Input", "InputPath", "InputTransformer")):
            raise unsupported("an input of its own for an event bus as a target")
    elif not tx.offers(kind.service, kind.operation):
        raise unsupported(f"targets of the kind {arn.service}")
    group = (target.get("SqsParameters") or {}).get("MessageGroupId")
    if arn.service == "sqs" and arn.resource.endswith(".fifo") and not group:
        raise invalid(f"Parameter(s) SqsParameters must be specified for target: {target['Id']}.")
    dead_letters = (target.get("DeadLetterConfig") or {}).get("Arn")
    if dead_letters is not None:
        _check_dead_letters(destinations.parsed(dead_letters, "DeadLetterConfig"))


def _check_dead_letters(queue: Arn) -> None:
    if queue.service != "sqs":
        raise invalid_parameter("DeadLetterConfig", "A dead-letter queue is an SQS queue.")


def remove(tx: Transaction, request: Request) -> None:
    """Take targets away; one that is not there is as good as taken away."""
    rule = rules.get(tx, request.get("EventBusName"), request["Rule"])
    bus, name = rule["bus"], rule["name"]
    for id_ in request["Ids"]:
        tx.run("DELETE FROM events_targets WHERE bus = :bus AND rule = :rule AND id = :id", bus=bus, rule=name, id=id_)
    buses.routes_changed(tx, bus, "no targets", name, list(request["Ids"]))


def of_rule(tx: Transaction, bus: str, rule: str) -> list[Target]:
    rows = tx.all(
        "SELECT definition FROM events_targets WHERE bus = :bus AND rule = :rule ORDER BY position", bus=bus, rule=rule
    )
    return [orjson.loads(row["definition"]) for row in rows]


def rules_of(tx: Transaction, bus: str, target_arn: str) -> list[str]:
    """The names of the rules that have the target."""
    rows = tx.all(
        "SELECT DISTINCT rule FROM events_targets WHERE bus = :bus AND arn = :arn ORDER BY rule",
        bus=bus,
        arn=target_arn,
    )
    return [row["rule"] for row in rows]
