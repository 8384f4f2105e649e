"""Versions and aliases: fixed numbers of revisions, and names that route to one or two of them.

Keeps true: a version's number is never given twice; an alias routes to existing versions of one machine with weights
that make 100; a version in an alias cannot be deleted.

Sources: "Manage continuous deployments with versions and aliases"; wording as recorded from AWS.
"""

from typing import Any

import orjson

from muster.errors import ServiceError
from muster.operation import Answer, Request
from muster.services.stepfunctions import machines, names, pages
from muster.transaction import Row, Transaction


def publish(tx: Transaction, request: Request) -> Answer:
    """PublishStateMachineVersion."""
    machine_arn = request["stateMachineArn"]
    names.parse(machine_arn, "stateMachine")
    version_arn = machines.publish(tx, machine_arn, request.get("description"), request.get("revisionId"))
    row = tx.one("SELECT created_at FROM states_versions WHERE arn = :arn", arn=version_arn)
    assert row is not None
    return {"stateMachineVersionArn": version_arn, "creationDate": row["created_at"]}


def listed(tx: Transaction, request: Request) -> Answer:
    """ListStateMachineVersions, newest first."""
    machine_arn = request["stateMachineArn"]
    names.parse(machine_arn, "stateMachine")
    size, before = pages.size(request), pages.place(f"versions {machine_arn}", request)
    rows = tx.all(
        "SELECT * FROM states_versions WHERE machine_arn = :arn AND number < :before ORDER BY number DESC LIMIT :most",
        arn=machine_arn,
        before=before or 2**62,
        most=size + 1,
    )
    answer: Answer = {
        "stateMachineVersions": [
            {"stateMachineVersionArn": row["arn"], "creationDate": row["created_at"]} for row in rows[:size]
        ]
    }
    if len(rows) > size:
        answer["nextToken"] = pages.token(f"versions {machine_arn}", rows[size - 1]["number"])
    return answer


def delete(tx: Transaction, request: Request) -> Answer:
    """DeleteStateMachineVersion; ConflictException while an alias routes to it."""
    version_arn = request["stateMachineVersionArn"]
    machine_arn, qualifier = names.machine_of(version_arn)
    if qualifier is None or not qualifier.isdigit():
        raise ServiceError("ValidationException", f"'{version_arn}' is not a state machine version ARN")
    using = [row["name"] for row in _aliases(tx, machine_arn) if version_arn in {arn for arn, _ in _routes(row)}]
    if using:
        raise ServiceError(
            "ConflictException",
            "Version to be deleted must not be referenced by an alias. Current list of aliases referencing this "
            f"version: [{', '.join(using)}]",
        )
    tx.run("DELETE FROM states_versions WHERE arn = :arn", arn=version_arn)
    return {}


def _aliases(tx: Transaction, machine_arn: str) -> list[Row]:
    return tx.all("SELECT * FROM states_aliases WHERE machine_arn = :arn ORDER BY name", arn=machine_arn)


def _routes(row: Row) -> list[tuple[str, int]]:
    return [(arn, weight) for arn, weight in orjson.loads(row["routes"])]


def _checked_routes(tx: Transaction, given: list[dict[str, Any]]) -> list[tuple[str, int]]:
    routes = [(str(route["stateMachineVersionArn"]), int(route["weight"])) for route in given]
    arns = [arn for arn, _ in routes]
    shown = ", ".join(arns)
    if not 1 <= len(routes) <= 2:
        items = ", ".join(
            f"RoutingConfigurationListItem(stateMachineVersionArn={arn}, weight={weight})" for arn, weight in routes
        )
        raise ServiceError(
            "ValidationException",
            f"1 validation error detected: Value '[{items}]' at 'routingConfiguration' failed to satisfy constraint: "
            "Member must have length less than or equal to 2",
        )
    for place, (_, weight) in enumerate(routes, 1):
        if weight > 100:
            raise ServiceError(
                "ValidationException",
                f"1 validation error detected: Value '{weight}' at 'routingConfiguration.{place}.member.weight' failed "
                "to satisfy constraint: Member must have value less than or equal to 100",
            )
    if len(set(arns)) != len(arns):
        raise ServiceError(
            "ValidationException",
            f"Routing configuration must contain distinct state machine version ARNs. Received: [{shown}]",
        )
    if any(not (names.machine_of(arn)[1] or "").isdigit() for arn in arns):
        raise ServiceError(
            "ValidationException", f"Routing configuration must contain state machine version ARNs. Received: [{shown}]"
        )
    weights = [weight for _, weight in routes]
    if sum(weights) != 100:
        raise ServiceError(
            "ValidationException", f"Sum of routing configuration weights must equal 100. Received: {weights}"
        )
    if len({names.machine_of(arn)[0] for arn in arns}) > 1:
        raise ServiceError("ValidationException", "Routing configuration must contain versions of one state machine")
    for arn in arns:
        if tx.one("SELECT arn FROM states_versions WHERE arn = :arn", arn=arn) is None:
            raise ServiceError("ResourceNotFound", "Request references a resource that does not exist.")
    return routes


def create_alias(tx: Transaction, request: Request) -> Answer:
    """CreateStateMachineAlias; the same request again answers what the first did."""
    name = names.check(request["name"])
    if name.isdigit():
        raise ServiceError("InvalidName", f"Invalid Name: '{name}'")
    routes = _checked_routes(tx, request["routingConfiguration"])
    machine_arn = names.machine_of(routes[0][0])[0]
    alias_arn = f"{machine_arn}:{name}"
    written = orjson.dumps(routes).decode()
    known = tx.one("SELECT * FROM states_aliases WHERE arn = :arn", arn=alias_arn)
    if known is not None:
        if (known["routes"], known["description"]) != (written, request.get("description")):
            raise ServiceError(
                "ConflictException",
                f"Failed to create alias because an alias with the same name and a different routing configuration "
                f"already exists: '{name}'",
            )
        return {"stateMachineAliasArn": alias_arn, "creationDate": known["created_at"]}
    tx.run(
        "INSERT INTO states_aliases (arn, machine_arn, name, description, routes, created_at, updated_at)"
        " VALUES (:arn, :machine, :name, :description, :routes, :now, :now)",
        arn=alias_arn,
        machine=machine_arn,
        name=name,
        description=request.get("description"),
        routes=written,
        now=tx.now,
    )
    return {"stateMachineAliasArn": alias_arn, "creationDate": tx.now}


def _alias(tx: Transaction, alias_arn: str) -> Row:
    names.parse(alias_arn, "stateMachine")
    row = tx.one("SELECT * FROM states_aliases WHERE arn = :arn", arn=alias_arn)
    if row is None:
        raise ServiceError("ResourceNotFound", "Request references a resource that does not exist.")
    return row


def update_alias(tx: Transaction, request: Request) -> Answer:
    """UpdateStateMachineAlias."""
    row = _alias(tx, request["stateMachineAliasArn"])
    given = request.get("routingConfiguration")
    if given is None and request.get("description") is None:
        raise ServiceError("ValidationException", "Either description or routingConfiguration must be given")
    routes = orjson.dumps(_checked_routes(tx, given)).decode() if given is not None else row["routes"]
    description = request.get("description", row["description"])
    tx.run(
        "UPDATE states_aliases SET routes = :routes, description = :description, updated_at = :now WHERE arn = :arn",
        routes=routes,
        description=description,
        now=tx.now,
        arn=row["arn"],
    )
    return {"updateDate": tx.now}


def describe_alias(tx: Transaction, request: Request) -> Answer:
    """DescribeStateMachineAlias."""
    row = _alias(tx, request["stateMachineAliasArn"])
    answer: Answer = {
        "stateMachineAliasArn": row["arn"],
        "name": row["name"],
        "routingConfiguration": [{"stateMachineVersionArn": arn, "weight": weight} for arn, weight in _routes(row)],
        "creationDate": row["created_at"],
        "updateDate": row["updated_at"],
    }
    if row["description"] is not None:
        answer["description"] = row["description"]
    return answer


def list_aliases(tx: Transaction, request: Request) -> Answer:
    """ListStateMachineAliases, of a machine or of a version."""
    given = request["stateMachineArn"]
    machine_arn, qualifier = names.machine_of(given)
    machines.current(tx, machine_arn)
    size, after = pages.size(request), pages.place(f"aliases {given}", request)
    rows = [
        row
        for row in _aliases(tx, machine_arn)
        if row["name"] > (after or "") and (qualifier is None or given in {arn for arn, _ in _routes(row)})
    ]
    answer: Answer = {
        "stateMachineAliases": [
            {"stateMachineAliasArn": row["arn"], "creationDate": row["created_at"]} for row in rows[:size]
        ]
    }
    if len(rows) > size:
        answer["nextToken"] = pages.token(f"aliases {given}", rows[size - 1]["name"])
    return answer


def delete_alias(tx: Transaction, request: Request) -> Answer:
    """DeleteStateMachineAlias; one that is not there is already deleted."""
    names.parse(request["stateMachineAliasArn"], "stateMachine")
    tx.run("DELETE FROM states_aliases WHERE arn = :arn", arn=request["stateMachineAliasArn"])
    return {}


def routed(tx: Transaction, given: str) -> tuple[str, str, str | None, str | None]:
    """What StartExecution starts: the machine's ARN, a revision, and the ARNs of the version and alias it came by."""
    machine_arn, qualifier = names.machine_of(given)
    row = machines.current(tx, machine_arn) if qualifier is None else None
    if row is not None:
        return machine_arn, row["revision"], None, None
    alias_arn = None
    if not (qualifier or "").isdigit():
        alias = tx.one("SELECT * FROM states_aliases WHERE arn = :arn", arn=given)
        if alias is None:
            raise machines.does_not_exist(given)
        alias_arn = given
        routes = _routes(alias)
        given = routes[0][0]
        if len(routes) > 1 and tx.random() * 100 >= routes[0][1]:
            given = routes[1][0]
    version = tx.one("SELECT * FROM states_versions WHERE arn = :arn", arn=given)
    if version is None:
        raise machines.does_not_exist(given)
    return machine_arn, version["revision"], given, alias_arn
