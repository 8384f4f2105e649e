"""State machines and their revisions.

Keeps true: a machine always has a current revision; a revision never changes, so what was compiled from it stays right;
executions keep the revision they began with. Does not know executions.

Sources: CreateStateMachine, UpdateStateMachine and DescribeStateMachine in the API reference.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from muster.arn import arn
from muster.errors import ServiceError, unsupported
from muster.languages import asl
from muster.languages.asl.definition import Task
from muster.languages.asl.integrations import Kind
from muster.languages.asl.parsing import DEFINITION_BYTES_MAX
from muster.operation import Answer, Request
from muster.services.stepfunctions import names, pages, tags
from muster.transaction import Row, Transaction

_ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{0,12}:role/.+\Z")
_DEFAULTS: dict[str, Any] = {
    "loggingConfiguration": {"level": "OFF", "includeExecutionData": False},
    "tracingConfiguration": {"enabled": False},
}
# Definitions in use, compiled. A definition's text is its own key, so what is kept can never be out of date.
compiled = lru_cache(maxsize=512)(asl.parse)


@dataclass(frozen=True, slots=True)
class Revision:
    """What an execution needs to know of its machine."""

    id: str
    machine_arn: str
    definition: str
    role_arn: str
    settings: dict[str, Any]
    shown_id: str | None
    created_at: float


def current(tx: Transaction, machine_arn: str) -> Row:
    """The machine, or StateMachineDoesNotExist."""
    row = tx.one("SELECT * FROM states_machines WHERE arn = :arn", arn=machine_arn)
    if row is None:
        raise does_not_exist(machine_arn)
    return row


def does_not_exist(machine_arn: str) -> ServiceError:
    """AWS's refusal of a machine that is not there."""
    return ServiceError("StateMachineDoesNotExist", f"State Machine Does Not Exist: '{machine_arn}'")


def revision(tx: Transaction, revision_id: str) -> Revision:
    """A revision that is known to be there."""
    row = tx.one("SELECT * FROM states_revisions WHERE revision = :id", id=revision_id)
    assert row is not None, "executions and machines name only revisions that exist"
    return Revision(
        revision_id,
        row["machine_arn"],
        row["definition"],
        row["role_arn"],
        orjson.loads(row["settings"]),
        row["shown_id"],
        row["created_at"],
    )


def machine(found: Revision, *, express: bool) -> asl.Machine:
    """The compiled machine of a revision."""
    return compiled(found.definition, express=express)


def _checked(definition: str, *, express: bool) -> asl.Machine:
    if len(definition.encode()) > DEFINITION_BYTES_MAX:
        raise ServiceError(
            "InvalidDefinition", f"Invalid State Machine Definition: length is over {DEFINITION_BYTES_MAX} bytes"
        )
    try:
        found = compiled(definition, express=express)
    except asl.InvalidDefinition as why:
        raise ServiceError("InvalidDefinition", why.sentence()) from why
    for scope in found.scopes:
        for state in scope.states.values():
            if isinstance(state, Task) and state.integration.kind is Kind.SERVICE and not state.integration.service:
                raise ServiceError(
                    "InvalidDefinition",
                    f"Invalid State Machine Definition: 'Muster does not support the resource "
                    f"{state.integration.resource} at /States/{state.name}/Resource'",
                )
    return found


def _check_role(role: str) -> None:
    if not _ROLE.match(role):
        raise ServiceError("InvalidArn", f"Invalid Role Arn: '{role}'")


def _settings(request: Request, before: dict[str, Any]) -> dict[str, Any]:
    settings = dict(before)
    logging = request.get("loggingConfiguration")
    if logging is not None:
        level = logging.get("level", "OFF")
        destinations = logging.get("destinations") or []
        if level != "OFF" and len(destinations) != 1:
            raise ServiceError(
                "InvalidLoggingConfiguration",
                "Invalid Logging Configuration: Must specify exactly one Log Destination.",
            )
        for one in destinations:
            group = (one.get("cloudWatchLogsLogGroup") or {}).get("logGroupArn") or ""
            if ":log-group:" not in group or not group.endswith(":*"):
                raise ServiceError(
                    "InvalidLoggingConfiguration",
                    "Invalid Logging Configuration: Log Destination Arn needs to be a valid Log Group Arn ending in :*",
                )
        settings["loggingConfiguration"] = {"level": level, "includeExecutionData": False, **logging}
    if request.get("tracingConfiguration") is not None:
        settings["tracingConfiguration"] = {"enabled": False, **request["tracingConfiguration"]}
    encryption = request.get("encryptionConfiguration")
    if encryption is not None:
        if encryption.get("type") != "AWS_OWNED_KEY":
            raise unsupported("encryptionConfiguration with a customer managed key")
        settings["encryptionConfiguration"] = encryption
    return settings


def create(tx: Transaction, request: Request) -> Answer:
    """CreateStateMachine; the same request again answers what the first did."""
    name = names.check(request["name"])
    kind = request.get("type") or "STANDARD"
    if request.get("versionDescription") is not None and not request.get("publish"):
        raise ServiceError("ValidationException", "Version description can only be set when publish is true")
    _checked(request["definition"], express=kind == "EXPRESS")
    _check_role(request["roleArn"])
    settings = _settings(request, _DEFAULTS)
    machine_arn = arn(tx, "states", f"stateMachine:{name}")
    known = tx.one("SELECT * FROM states_machines WHERE arn = :arn", arn=machine_arn)
    if known is not None:
        before = revision(tx, known["revision"])
        same = (before.definition, before.role_arn, before.settings, known["type"]) == (
            request["definition"],
            request["roleArn"],
            settings,
            kind,
        )
        if not same:
            raise ServiceError("StateMachineAlreadyExists", f"State Machine Already Exists: '{machine_arn}'")
    else:
        first = _add_revision(tx, machine_arn, request["definition"], request["roleArn"], settings, shown=False)
        tx.run(
            "INSERT INTO states_machines (arn, name, type, revision, created_at, last_version)"
            " VALUES (:arn, :name, :type, :revision, :now, 0)",
            arn=machine_arn,
            name=name,
            type=kind,
            revision=first.id,
            now=tx.now,
        )
        tags.add(tx, machine_arn, request.get("tags") or [])
    answer: Answer = {
        "stateMachineArn": machine_arn,
        "creationDate": known["created_at"] if known is not None else tx.now,
    }
    if request.get("publish"):
        answer["stateMachineVersionArn"] = publish(tx, machine_arn, request.get("versionDescription"))
    return answer


def _add_revision(
    tx: Transaction, machine_arn: str, definition: str, role: str, settings: dict[str, Any], *, shown: bool
) -> Revision:
    new = tx.new_id()
    tx.run(
        "INSERT INTO states_revisions (revision, machine_arn, shown_id, definition, role_arn, settings, created_at)"
        " VALUES (:revision, :machine, :shown, :definition, :role, :settings, :now)",
        revision=new,
        machine=machine_arn,
        shown=new if shown else None,
        definition=definition,
        role=role,
        settings=orjson.dumps(settings).decode(),
        now=tx.now,
    )
    return Revision(new, machine_arn, definition, role, settings, new if shown else None, tx.now)


def update(tx: Transaction, request: Request) -> Answer:
    """UpdateStateMachine: a new revision, unless nothing changes."""
    machine_arn = request["stateMachineArn"]
    names.parse(machine_arn, "stateMachine")
    row = current(tx, machine_arn)
    if request.get("versionDescription") is not None and not request.get("publish"):
        raise ServiceError("ValidationException", "Version description can only be set when publish is true")
    before = revision(tx, row["revision"])
    definition = request.get("definition") or before.definition
    role = request.get("roleArn") or before.role_arn
    if request.get("definition"):
        _checked(definition, express=row["type"] == "EXPRESS")
    if request.get("roleArn"):
        _check_role(role)
    settings = _settings(request, before.settings)
    after = before
    if (definition, role, settings) != (before.definition, before.role_arn, before.settings):
        after = _add_revision(tx, machine_arn, definition, role, settings, shown=True)
        tx.run("UPDATE states_machines SET revision = :revision WHERE arn = :arn", revision=after.id, arn=machine_arn)
    answer: Answer = {"updateDate": tx.now}
    if after.shown_id is not None:
        answer["revisionId"] = after.shown_id
    if request.get("publish"):
        answer["stateMachineVersionArn"] = publish(tx, machine_arn, request.get("versionDescription"))
    return answer


def publish(tx: Transaction, machine_arn: str, description: str | None, expected: str | None = None) -> str:
    """Give the current revision a version number, unless it is the latest version already; the version's ARN."""
    row = current(tx, machine_arn)
    now_at = revision(tx, row["revision"])
    if expected is not None and expected != (now_at.shown_id or "INITIAL"):
        raise ServiceError(
            "ConflictException",
            f"Failed to publish the State Machine version for revision {expected}. The current State Machine revision "
            f"is {now_at.shown_id or 'INITIAL'}.",
        )
    latest = tx.one(
        "SELECT * FROM states_versions WHERE machine_arn = :arn ORDER BY number DESC LIMIT 1", arn=machine_arn
    )
    if latest is not None and latest["revision"] == row["revision"]:
        version_arn: str = latest["arn"]
        return version_arn
    number = row["last_version"] + 1
    version_arn = f"{machine_arn}:{number}"
    tx.run("UPDATE states_machines SET last_version = :number WHERE arn = :arn", number=number, arn=machine_arn)
    tx.run(
        "INSERT INTO states_versions (arn, machine_arn, number, revision, description, created_at)"
        " VALUES (:arn, :machine, :number, :revision, :description, :now)",
        arn=version_arn,
        machine=machine_arn,
        number=number,
        revision=row["revision"],
        description=description,
        now=tx.now,
    )
    return version_arn


def describe(tx: Transaction, request: Request) -> Answer:
    """DescribeStateMachine, also of a version or an alias."""
    given = request["stateMachineArn"]
    machine_arn, qualifier = names.machine_of(given)
    row = current(tx, machine_arn)
    found, created_at, description = revision(tx, row["revision"]), row["created_at"], None
    if qualifier is not None:
        version = tx.one("SELECT * FROM states_versions WHERE arn = :arn", arn=given)
        if version is None:
            raise does_not_exist(given)
        found, created_at, description = (
            revision(tx, version["revision"]),
            version["created_at"],
            version["description"],
        )
    answer: Answer = {
        "stateMachineArn": given,
        "name": row["name"],
        "status": "ACTIVE",
        "definition": found.definition,
        "roleArn": found.role_arn,
        "type": row["type"],
        "creationDate": created_at,
        **shown_settings(found),
    }
    if description is not None:
        answer["description"] = description
    return _without_data(answer, request)


def shown_settings(found: Revision) -> Answer:
    """What every description of a revision shows."""
    answer: Answer = {**found.settings}
    answer.setdefault("encryptionConfiguration", {"type": "AWS_OWNED_KEY"})
    if found.shown_id is not None:
        answer["revisionId"] = found.shown_id
    express = False  # callbacks are checked at creation; here any machine compiles
    references = compiled(found.definition, express=express).variable_references
    if references:
        answer["variableReferences"] = dict(references)
    return answer


def _without_data(answer: Answer, request: Request) -> Answer:
    if request.get("includedData") == "METADATA_ONLY":
        answer.pop("definition", None)
    return answer


def listed(tx: Transaction, request: Request) -> Answer:
    """ListStateMachines, by name."""
    size, after = pages.size(request), pages.place("machines", request)
    rows = tx.all(
        "SELECT * FROM states_machines WHERE name > :after ORDER BY name LIMIT :most", after=after or "", most=size + 1
    )
    answer: Answer = {
        "stateMachines": [
            {
                "stateMachineArn": row["arn"],
                "name": row["name"],
                "type": row["type"],
                "creationDate": row["created_at"],
            }
            for row in rows[:size]
        ]
    }
    if len(rows) > size:
        answer["nextToken"] = pages.token("machines", rows[size - 1]["name"])
    return answer


def delete(tx: Transaction, request: Request) -> Answer:
    """DeleteStateMachine: gone at once; its executions keep their revision and run on."""
    machine_arn = request["stateMachineArn"]
    names.parse(machine_arn, "stateMachine")
    tx.run("DELETE FROM states_machines WHERE arn = :arn", arn=machine_arn)
    tx.run("DELETE FROM states_versions WHERE machine_arn = :arn", arn=machine_arn)
    tx.run("DELETE FROM states_aliases WHERE machine_arn = :arn", arn=machine_arn)
    tx.run("DELETE FROM states_tags WHERE arn = :arn", arn=machine_arn)
    return {}


def validate(tx: Transaction, request: Request) -> Answer:
    """ValidateStateMachineDefinition."""
    _, found = asl.examine(request["definition"], express=request.get("type") == "EXPRESS")
    if request.get("severity", "ERROR") not in ("ERROR", "WARNING"):
        raise ServiceError("ValidationException", "severity must be ERROR or WARNING")
    most = int(request.get("maxResults") or 100)
    diagnostics = [
        {
            "severity": one.severity,
            "code": one.code,
            "message": one.message,
            **({"location": one.location} if one.location is not None else {}),
        }
        for one in found[:most]
    ]
    return {"result": "FAIL" if found else "OK", "diagnostics": diagnostics, "truncated": len(found) > most}
