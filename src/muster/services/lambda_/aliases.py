"""Aliases: names for versions, which may send a share of the calls to a second version.

Keeps true: an alias points at versions that exist. Does not know how a version is run.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from muster.errors import ServiceError
from muster.services.lambda_ import functions
from muster.services.lambda_.functions import Version
from muster.services.lambda_.names import Name, function_arn
from muster.transaction import Row, Transaction


def create(tx: Transaction, function: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """A new alias; ResourceConflictException when the name is taken."""
    functions.require(tx, function)
    name = request["Name"]
    if name.isdigit():
        raise ServiceError("InvalidParameterValueException", f"The alias name {name} cannot be a number.")
    if _found(tx, function, name) is not None:
        raise ServiceError(
            "ResourceConflictException",
            f"Alias already exists: {function_arn(tx, function, name)}",
            fields={"Type": "User"},
        )
    functions.exact(tx, function, request["FunctionVersion"])
    weights = _weights(tx, function, request)
    tx.run(
        "INSERT INTO lambda_aliases (function, name, version, description, routing, revision)"
        " VALUES (:function, :name, :version, :description, :routing, :revision)",
        function=function,
        name=name,
        version=request["FunctionVersion"],
        description=request.get("Description", ""),
        routing=orjson.dumps(weights).decode(),
        revision=tx.new_id(),
    )
    return get(tx, function, name)


def _weights(tx: Transaction, function: str, request: Mapping[str, Any]) -> dict[str, float]:
    weights = dict((request.get("RoutingConfig") or {}).get("AdditionalVersionWeights") or {})
    if len(weights) > 1:
        raise ServiceError(
            "InvalidParameterValueException", "Number of items in AdditionalVersionWeights cannot be greater than 1"
        )
    for version, weight in weights.items():
        functions.exact(tx, function, version)
        if not 0.0 <= weight <= 1.0:
            raise ServiceError("InvalidParameterValueException", f"Invalid value {weight} for AdditionalVersionWeights")
    return weights


def _found(tx: Transaction, function: str, name: str) -> Row | None:
    return tx.one(
        "SELECT * FROM lambda_aliases WHERE function = :function AND name = :name", function=function, name=name
    )


def _required(tx: Transaction, function: str, name: str) -> Row:
    row = _found(tx, function, name)
    if row is None:
        raise ServiceError(
            "ResourceNotFoundException",
            f"Cannot find alias arn: {function_arn(tx, function, name)}",
            fields={"Type": "User"},
        )
    return row


def get(tx: Transaction, function: str, name: str) -> dict[str, Any]:
    """AliasConfiguration of an alias; ResourceNotFoundException when it is not there."""
    functions.require(tx, function)
    return _shown(tx, _required(tx, function, name))


def _shown(tx: Transaction, row: Row) -> dict[str, Any]:
    answer = {
        "AliasArn": function_arn(tx, row["function"], row["name"]),
        "Name": row["name"],
        "FunctionVersion": row["version"],
        "Description": row["description"],
        "RevisionId": row["revision"],
    }
    weights = orjson.loads(row["routing"])
    if weights:
        answer["RoutingConfig"] = {"AdditionalVersionWeights": weights}
    return answer


def update(tx: Transaction, function: str, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Point an alias elsewhere or describe it anew."""
    functions.require(tx, function)
    row = _required(tx, function, name)
    if request.get("RevisionId", row["revision"]) != row["revision"]:
        raise ServiceError(
            "PreconditionFailedException",
            "The Revision Id provided does not match the latest Revision Id. "
            "Call the GetFunction/GetAlias API to retrieve the latest Revision Id",
        )
    version = request.get("FunctionVersion", row["version"])
    functions.exact(tx, function, version)
    weights = _weights(tx, function, request) if "RoutingConfig" in request else orjson.loads(row["routing"])
    tx.run(
        "UPDATE lambda_aliases SET version = :version, description = :description, routing = :routing,"
        " revision = :revision WHERE function = :function AND name = :name",
        version=version,
        description=request.get("Description", row["description"]),
        routing=orjson.dumps(weights).decode(),
        revision=tx.new_id(),
        function=function,
        name=name,
    )
    return get(tx, function, name)


def delete(tx: Transaction, function: str, name: str) -> None:
    """Delete an alias; one that is not there is deleted already, as on AWS."""
    functions.require(tx, function)
    tx.run("DELETE FROM lambda_aliases WHERE function = :function AND name = :name", function=function, name=name)


def listed(tx: Transaction, function: str, version: str | None) -> list[dict[str, Any]]:
    """All aliases of a function, or those of one version, by name."""
    functions.require(tx, function)
    rows = tx.all("SELECT * FROM lambda_aliases WHERE function = :function ORDER BY name", function=function)
    return [_shown(tx, row) for row in rows if version is None or row["version"] == version]


def chosen(tx: Transaction, name: Name) -> Version:
    """The version that runs a call to `name`: an alias with weights draws lots."""
    if name.qualifier is not None:
        row = _found(tx, name.function, name.qualifier)
        if row is not None:
            for version, weight in orjson.loads(row["routing"]).items():
                if tx.random() < weight:
                    return functions.exact(tx, name.function, version)
    return functions.resolved(tx, name)
