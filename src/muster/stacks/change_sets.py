"""Change sets: a deployment that is looked at before it is executed.

Keeps true: a change set is executed at most once, and only on the stack as it was looked at (an execution makes the
others of its stack obsolete).
"""

from dataclasses import dataclass
from typing import Any

import orjson

from muster.clock import Instant
from muster.errors import ServiceError
from muster.stacks import lifecycle, records
from muster.stacks.deployment import Changed
from muster.stacks.lifecycle import Given, Wanted
from muster.stacks.records import Stack, refused, text
from muster.transaction import Row, Transaction

NOTHING = "The submitted information didn't contain changes. Submit different information to create a change set."


@dataclass(slots=True)
class ChangeSet:
    """A change set as it is recorded."""

    id: str
    stack_id: str
    name: str
    type: str
    status: str
    execution_status: str
    reason: str | None
    description: str | None
    template: str
    parameters: dict[str, str]
    capabilities: list[str]
    tags: dict[str, str]
    changes: list[dict[str, Any]]
    created_at: Instant


def _change_set(row: Row) -> ChangeSet:
    return ChangeSet(
        row["id"],
        row["stack_id"],
        row["name"],
        row["type"],
        row["status"],
        row["execution_status"],
        row["reason"],
        row["description"],
        row["template"],
        orjson.loads(row["parameters"]),
        orjson.loads(row["capabilities"]),
        orjson.loads(row["tags"]),
        orjson.loads(row["changes"]),
        row["created_at"],
    )


def find(tx: Transaction, name_or_id: str, stack_name: str | None) -> ChangeSet | None:
    """The change set of that id, or of that name on a stack."""
    if name_or_id.startswith("arn:"):
        row = tx.one("SELECT * FROM cloudformation_change_sets WHERE id = :id", id=name_or_id)
        return _change_set(row) if row is not None else None
    if stack_name is None:
        raise refused("StackName must be specified if ChangeSetName is not specified as an ARN.")
    stack = records.named(tx, stack_name)
    row = tx.one(
        "SELECT * FROM cloudformation_change_sets WHERE stack_id = :stack_id AND name = :name",
        stack_id=stack.id,
        name=name_or_id,
    )
    return _change_set(row) if row is not None else None


def named(tx: Transaction, name_or_id: str, stack_name: str | None) -> ChangeSet:
    """The change set; ChangeSetNotFound when there is none."""
    found = find(tx, name_or_id, stack_name)
    if found is None:
        raise ServiceError("ChangeSetNotFound", f"ChangeSet [{name_or_id}] does not exist", status=404)
    return found


def of(tx: Transaction, stack: Stack) -> list[ChangeSet]:
    """The stack's change sets, the newest first."""
    rows = tx.all(
        "SELECT * FROM cloudformation_change_sets WHERE stack_id = :id ORDER BY created_at DESC, name", id=stack.id
    )
    return [_change_set(row) for row in rows]


def _shown(change: Changed) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "Action": change.action,
        "LogicalResourceId": change.logical_id,
        "ResourceType": change.type,
        "Scope": ["Properties"] if change.properties else [],
        "Details": [
            {
                "Target": {
                    "Attribute": "Properties",
                    "Name": name,
                    "RequiresRecreation": "Always" if replaces else "Never",
                },
                "Evaluation": "Static",
                "ChangeSource": "DirectModification",
            }
            for name, replaces in change.properties
        ],
    }
    if change.physical_id is not None:
        shown["PhysicalResourceId"] = change.physical_id
    if change.action == "Modify":
        shown["Replacement"] = "True" if change.replacement else "False"
    return {"Type": "Resource", "ResourceChange": shown}


def create(tx: Transaction, stack: Stack, name: str, type_: str, wanted: Wanted, description: str | None) -> ChangeSet:
    """Look at what a deployment would do and keep it under a name."""
    if find(tx, name, stack.id) is not None:
        raise ServiceError("AlreadyExistsException", f"ChangeSet {name} already exists", status=400)
    changes, matters = lifecycle.rehearse(tx, stack, wanted)
    status, execution, reason = "CREATE_COMPLETE", "AVAILABLE", None
    if not matters:
        status, execution, reason = "FAILED", "UNAVAILABLE", NOTHING
    made = ChangeSet(
        f"arn:aws:cloudformation:{tx.region}:{tx.account}:changeSet/{name}/{tx.new_id()}",
        stack.id,
        name,
        type_,
        status,
        execution,
        reason,
        description,
        wanted.body,
        wanted.values,
        wanted.capabilities,
        wanted.tags,
        [_shown(change) for change in changes],
        tx.now,
    )
    tx.run(
        "INSERT INTO cloudformation_change_sets (id, stack_id, name, type, status, execution_status, reason, description,"
        " template, parameters, capabilities, tags, changes, created_at) VALUES (:id, :stack_id, :name, :type, :status,"
        " :execution_status, :reason, :description, :template, :parameters, :capabilities, :tags, :changes, :created_at)",
        id=made.id,
        stack_id=made.stack_id,
        name=made.name,
        type=made.type,
        status=made.status,
        execution_status=made.execution_status,
        reason=made.reason,
        description=made.description,
        template=made.template,
        parameters=text(made.parameters),
        capabilities=text(made.capabilities),
        tags=text(made.tags),
        changes=text(made.changes),
        created_at=made.created_at,
    )
    return made


def execute(tx: Transaction, change_set: ChangeSet, on_failure: str = "ROLLBACK") -> Stack:
    """Do what the change set describes."""
    if change_set.execution_status != "AVAILABLE":
        raise ServiceError(
            "InvalidChangeSetStatus",
            f"ChangeSet [{change_set.id}] cannot be executed in its current status of [{change_set.status}]",
            status=400,
        )
    stack = records.named(tx, change_set.stack_id)
    given = Given(change_set.template, change_set.parameters, frozenset(), change_set.tags, change_set.capabilities)
    wanted = lifecycle.understand(tx, given, stack.name, stack)
    stack.change_set_id = change_set.id
    if change_set.type == "CREATE":
        stack = lifecycle.create(tx, stack, wanted, on_failure)
    else:
        stack = lifecycle.update(tx, stack, wanted)
    done = "EXECUTE_COMPLETE" if stack.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE") else "EXECUTE_FAILED"
    tx.run(
        "UPDATE cloudformation_change_sets SET execution_status = CASE WHEN id = :id THEN :done ELSE 'OBSOLETE' END"
        " WHERE stack_id = :stack_id AND execution_status = 'AVAILABLE'",
        id=change_set.id,
        done=done,
        stack_id=stack.id,
    )
    return stack


def delete(tx: Transaction, change_set: ChangeSet) -> None:
    """Forget a change set; what it has done stays."""
    tx.run("DELETE FROM cloudformation_change_sets WHERE id = :id", id=change_set.id)
