"""Resource policies of functions: statements that are recorded and shown.

Keeps true: a statement id is unique per function and qualifier. Does not know who calls: permissions are not enforced.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from muster.errors import ServiceError
from muster.services.lambda_ import functions
from muster.services.lambda_.names import Name, function_arn
from muster.transaction import Transaction


def add(tx: Transaction, name: Name, request: Mapping[str, Any]) -> dict[str, Any]:
    """Record a statement; the statement as it stands in the policy."""
    functions.resolved(tx, name)
    sid = request["StatementId"]
    if any(known["Sid"] == sid for known in statements(tx, name)):
        raise ServiceError(
            "ResourceConflictException",
            f"The statement id ({sid}) provided already exists. Please provide a new statement id, or remove the existing "
            "statement.",
            fields={"Type": "User"},
        )
    statement = _statement(tx, name, request)
    last = tx.one(
        "SELECT MAX(position) AS position FROM lambda_statements WHERE function = :function", function=name.function
    )
    tx.run(
        "INSERT INTO lambda_statements (function, qualifier, sid, position, statement)"
        " VALUES (:function, :qualifier, :sid, :position, :statement)",
        function=name.function,
        qualifier=name.qualifier or "",
        sid=sid,
        position=((last["position"] if last is not None else None) or 0) + 1,
        statement=orjson.dumps(statement).decode(),
    )
    return statement


def _statement(tx: Transaction, name: Name, request: Mapping[str, Any]) -> dict[str, Any]:
    principal = request["Principal"]
    shown: Any = {"Service": principal}
    if principal == "*":
        shown = "*"
    elif principal.startswith("arn:"):
        shown = {"AWS": principal}
    elif principal.isdigit():
        shown = {"AWS": f"arn:aws:iam::{principal}:root"}
    statement: dict[str, Any] = {
        "Sid": request["StatementId"],
        "Effect": "Allow",
        "Principal": shown,
        "Action": request["Action"],
        "Resource": function_arn(tx, name.function, name.qualifier),
    }
    condition: dict[str, Any] = {}
    if "SourceAccount" in request:
        condition["StringEquals"] = {"AWS:SourceAccount": request["SourceAccount"]}
    if "PrincipalOrgID" in request:
        condition.setdefault("StringEquals", {})["aws:PrincipalOrgID"] = request["PrincipalOrgID"]
    if "SourceArn" in request:
        condition["ArnLike"] = {"AWS:SourceArn": request["SourceArn"]}
    if condition:
        statement["Condition"] = condition
    return statement


def remove(tx: Transaction, name: Name, sid: str) -> None:
    """Remove a statement; ResourceNotFoundException when it is not there."""
    functions.resolved(tx, name)
    removed = tx.run(
        "DELETE FROM lambda_statements WHERE function = :function AND qualifier = :qualifier AND sid = :sid",
        function=name.function,
        qualifier=name.qualifier or "",
        sid=sid,
    )
    if not removed:
        raise ServiceError(
            "ResourceNotFoundException", f"Statement {sid} is not found in resource policy.", fields={"Type": "User"}
        )


def statements(tx: Transaction, name: Name) -> list[dict[str, Any]]:
    """The statements in the order in which they were added."""
    rows = tx.all(
        "SELECT statement FROM lambda_statements WHERE function = :function AND qualifier = :qualifier ORDER BY position",
        function=name.function,
        qualifier=name.qualifier or "",
    )
    return [orjson.loads(row["statement"]) for row in rows]


def policy(tx: Transaction, name: Name) -> dict[str, Any]:
    """The policy document; ResourceNotFoundException when there is no statement."""
    version = functions.resolved(tx, name)
    found = statements(tx, name)
    if not found:
        raise ServiceError(
            "ResourceNotFoundException", "The resource you requested does not exist.", fields={"Type": "User"}
        )
    document = {"Version": "2012-10-17", "Id": "default", "Statement": found}
    return {"Policy": orjson.dumps(document).decode(), "RevisionId": version.revision}
