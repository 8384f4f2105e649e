"""How asynchronous invocations of a function are treated: retries, age, destinations.

Keeps true: settings are within AWS's limits. Source:
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-configuring.html. Does not know how they are applied.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from muster.errors import ServiceError
from muster.services.lambda_ import functions, settings
from muster.services.lambda_.invocations import EVENT_AGE_SECONDS_MAX
from muster.services.lambda_.names import LATEST, Name, function_arn
from muster.transaction import Row, Transaction

RETRIES_DEFAULT = 2
DESTINATIONS = ("sqs", "sns", "lambda", "events")
_MEMBERS = ("MaximumRetryAttempts", "MaximumEventAgeInSeconds", "DestinationConfig")


@dataclass(frozen=True, slots=True)
class Policy:
    """What holds for one asynchronous invocation."""

    retries: int = RETRIES_DEFAULT
    age_seconds: int = EVENT_AGE_SECONDS_MAX
    on_success: str | None = None
    on_failure: str | None = None


def _row(tx: Transaction, name: Name) -> Row | None:
    return tx.one(
        "SELECT * FROM lambda_invoke_configs WHERE function = :function AND qualifier = :qualifier",
        function=name.function,
        qualifier=name.qualifier or LATEST,
    )


def policy(tx: Transaction, name: Name) -> Policy:
    """The policy for calls to `name`; AWS's defaults where nothing is configured."""
    row = _row(tx, name)
    if row is None:
        return Policy()
    config = orjson.loads(row["config"])
    destinations = config.get("DestinationConfig", {})
    return Policy(
        retries=config.get("MaximumRetryAttempts", RETRIES_DEFAULT),
        age_seconds=config.get("MaximumEventAgeInSeconds", EVENT_AGE_SECONDS_MAX),
        on_success=destinations.get("OnSuccess", {}).get("Destination"),
        on_failure=destinations.get("OnFailure", {}).get("Destination"),
    )


def put(tx: Transaction, name: Name, request: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the configuration."""
    functions.resolved(tx, name)
    return _write(tx, name, {member: request[member] for member in _MEMBERS if member in request})


def update(tx: Transaction, name: Name, request: Mapping[str, Any]) -> dict[str, Any]:
    """Change the members that the request names."""
    row = _required(tx, name)
    config = orjson.loads(row["config"])
    return _write(tx, name, {**config, **{member: request[member] for member in _MEMBERS if member in request}})


def _write(tx: Transaction, name: Name, config: dict[str, Any]) -> dict[str, Any]:
    if not config:
        raise ServiceError(
            "InvalidParameterValueException", "You must specify at least one of the event invoke config settings."
        )
    for side, destination in (config.get("DestinationConfig") or {}).items():
        settings.check_target((destination or {}).get("Destination", ""), f"{side} destination", DESTINATIONS)
    tx.run(
        "INSERT INTO lambda_invoke_configs (function, qualifier, config, modified_at)"
        " VALUES (:function, :qualifier, :config, :now) ON CONFLICT (function, qualifier)"
        " DO UPDATE SET config = excluded.config, modified_at = excluded.modified_at",
        function=name.function,
        qualifier=name.qualifier or LATEST,
        config=orjson.dumps(config).decode(),
        now=tx.now,
    )
    return get(tx, name)


def _required(tx: Transaction, name: Name) -> Row:
    functions.resolved(tx, name)
    row = _row(tx, name)
    if row is None:
        raise ServiceError(
            "ResourceNotFoundException",
            f"The function {function_arn(tx, name.function, name.qualifier or LATEST)} doesn't have an EventInvokeConfig",
            fields={"Type": "User"},
        )
    return row


def get(tx: Transaction, name: Name) -> dict[str, Any]:
    """FunctionEventInvokeConfig; ResourceNotFoundException when there is none."""
    return _shown(tx, _required(tx, name))


def _shown(tx: Transaction, row: Row) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "FunctionArn": function_arn(tx, row["function"], row["qualifier"]),
        "LastModified": row["modified_at"],
        "DestinationConfig": {"OnSuccess": {}, "OnFailure": {}},
    }
    answer.update(orjson.loads(row["config"]))
    return answer


def delete(tx: Transaction, name: Name) -> None:
    """Back to AWS's defaults; ResourceNotFoundException when there is none."""
    _required(tx, name)
    tx.run(
        "DELETE FROM lambda_invoke_configs WHERE function = :function AND qualifier = :qualifier",
        function=name.function,
        qualifier=name.qualifier or LATEST,
    )


def listed(tx: Transaction, function: str) -> list[dict[str, Any]]:
    """All configurations of a function, by qualifier."""
    functions.require(tx, function)
    rows = tx.all(
        "SELECT * FROM lambda_invoke_configs WHERE function = :function ORDER BY qualifier", function=function
    )
    return [_shown(tx, row) for row in rows]
