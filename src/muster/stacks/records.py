"""Stacks as rows: the stack, its resources, its events, its exports and imports.

Keeps true: at most one live stack has a name; events are numbered without gaps in the order in which they happened;
an export that another stack imports stays. Does not know how resources are made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from muster.clock import Instant
from muster.errors import ServiceError
from muster.stacks.problem import Problem
from muster.stacks.resources import Made
from muster.transaction import Row, Transaction

STACK = "AWS::CloudFormation::Stack"


def refused(message: str) -> ServiceError:
    """CloudFormation's answer to most mistakes."""
    return ServiceError("ValidationError", message, status=400)


def text(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


@dataclass(slots=True)
class Stack:
    """A stack as it is recorded; `parameters` holds every parameter's text."""

    id: str
    name: str
    status: str
    template: str
    processed: str
    created_at: Instant
    parameters: dict[str, str] = field(default_factory=dict)
    capabilities: list[str] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    description: str = ""
    reason: str | None = None
    is_protected: bool = False
    change_set_id: str | None = None
    events: int = 0
    updated_at: Instant | None = None
    deleted_at: Instant | None = None

    @property
    def is_live(self) -> bool:
        return self.deleted_at is None


@dataclass(frozen=True, slots=True)
class Kept:
    """A resource that a stack owns."""

    logical_id: str
    type: str
    made: Made
    properties: dict[str, Any]
    deletion_policy: str
    status: str
    updated_at: Instant


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a stack or one of its resources."""

    logical_id: str
    physical_id: str
    type: str
    status: str
    reason: str | None = None
    properties: str | None = None


def new_id(tx: Transaction, name: str) -> str:
    """A stack's ARN, which ends in a UUID as the real service's does."""
    return f"arn:aws:cloudformation:{tx.region}:{tx.account}:stack/{name}/{tx.new_id()}"


def _stack(row: Row) -> Stack:
    return Stack(
        row["id"],
        row["name"],
        row["status"],
        row["template"],
        row["processed"],
        row["created_at"],
        orjson.loads(row["parameters"]),
        orjson.loads(row["capabilities"]),
        orjson.loads(row["tags"]),
        orjson.loads(row["outputs"]),
        row["description"],
        row["reason"],
        bool(row["is_protected"]),
        row["change_set_id"],
        row["events"],
        row["updated_at"],
        row["deleted_at"],
    )


def find(tx: Transaction, name_or_id: str) -> Stack | None:
    """The live stack of that name, or the stack of that id, live or deleted."""
    if name_or_id.startswith("arn:"):
        row = tx.one("SELECT * FROM cloudformation_stacks WHERE id = :id", id=name_or_id)
    else:
        row = tx.one("SELECT * FROM cloudformation_stacks WHERE name = :name AND deleted_at IS NULL", name=name_or_id)
    return _stack(row) if row is not None else None


def named(tx: Transaction, name_or_id: str) -> Stack:
    """The stack; ValidationError when there is none."""
    stack = find(tx, name_or_id)
    if stack is None:
        raise refused(f"Stack with id {name_or_id} does not exist")
    return stack


def stacks(tx: Transaction) -> list[Stack]:
    """Every stack, the newest first."""
    return [_stack(row) for row in tx.all("SELECT * FROM cloudformation_stacks ORDER BY created_at DESC, id")]


def save(tx: Transaction, stack: Stack) -> None:
    """Write the stack down as it now is."""
    tx.run(
        "INSERT INTO cloudformation_stacks (id, name, status, reason, template, processed, parameters, capabilities, tags,"
        " outputs, description, is_protected, change_set_id, events, created_at, updated_at, deleted_at)"
        " VALUES (:id, :name, :status, :reason, :template, :processed, :parameters, :capabilities, :tags, :outputs,"
        " :description, :is_protected, :change_set_id, :events, :created_at, :updated_at, :deleted_at)"
        " ON CONFLICT (id) DO UPDATE SET status = excluded.status, reason = excluded.reason,"
        " template = excluded.template, processed = excluded.processed, parameters = excluded.parameters,"
        " capabilities = excluded.capabilities, tags = excluded.tags, outputs = excluded.outputs,"
        " description = excluded.description, is_protected = excluded.is_protected,"
        " change_set_id = excluded.change_set_id, events = excluded.events, updated_at = excluded.updated_at,"
        " deleted_at = excluded.deleted_at",
        id=stack.id,
        name=stack.name,
        status=stack.status,
        reason=stack.reason,
        template=stack.template,
        processed=stack.processed,
        parameters=text(stack.parameters),
        capabilities=text(stack.capabilities),
        tags=text(stack.tags),
        outputs=text(stack.outputs),
        description=stack.description,
        is_protected=int(stack.is_protected),
        change_set_id=stack.change_set_id,
        events=stack.events,
        created_at=stack.created_at,
        updated_at=stack.updated_at,
        deleted_at=stack.deleted_at,
    )


def forget(tx: Transaction, stack: Stack) -> None:
    """Remove a stack that never came to be (a change set under review was its only trace)."""
    for table in ("change_sets", "events", "resources", "imports"):
        tx.run(f"DELETE FROM cloudformation_{table} WHERE stack_id = :id", id=stack.id)
    tx.run("DELETE FROM cloudformation_stacks WHERE id = :id", id=stack.id)


def _kept(row: Row) -> Kept:
    return Kept(
        row["logical_id"],
        row["type"],
        Made(row["physical_id"], orjson.loads(row["attributes"])),
        orjson.loads(row["properties"]),
        row["deletion_policy"],
        row["status"],
        row["updated_at"],
    )


def resources(tx: Transaction, stack_id: str) -> list[Kept]:
    """What the stack owns, in the order in which it was made."""
    rows = tx.all("SELECT * FROM cloudformation_resources WHERE stack_id = :id ORDER BY position", id=stack_id)
    return [_kept(row) for row in rows]


def owner_of(tx: Transaction, physical_id: str) -> str | None:
    """The id of the stack that owns a physical resource."""
    row = tx.one("SELECT stack_id FROM cloudformation_resources WHERE physical_id = :id", id=physical_id)
    return None if row is None else row["stack_id"]


def save_resources(tx: Transaction, stack_id: str, kept: list[Kept]) -> None:
    """Write down what the stack owns now."""
    tx.run("DELETE FROM cloudformation_resources WHERE stack_id = :id", id=stack_id)
    for position, one in enumerate(kept):
        tx.run(
            "INSERT INTO cloudformation_resources (stack_id, logical_id, type, physical_id, properties, attributes,"
            " deletion_policy, status, position, updated_at) VALUES (:stack_id, :logical_id, :type, :physical_id,"
            " :properties, :attributes, :deletion_policy, :status, :position, :updated_at)",
            stack_id=stack_id,
            logical_id=one.logical_id,
            type=one.type,
            physical_id=one.made.physical_id,
            properties=text(one.properties),
            attributes=text(one.made.attributes),
            deletion_policy=one.deletion_policy,
            status=one.status,
            position=position,
            updated_at=one.updated_at,
        )


def append(tx: Transaction, stack: Stack, events: list[Event]) -> None:
    """Add events to the stack's history; the stack's own counter moves with them, so save the stack afterwards."""
    for event in events:
        stack.events += 1
        tx.run(
            "INSERT INTO cloudformation_events (stack_id, number, id, logical_id, physical_id, type, status, reason,"
            " properties, happened_at) VALUES (:stack_id, :number, :id, :logical_id, :physical_id, :type, :status,"
            " :reason, :properties, :happened_at)",
            stack_id=stack.id,
            number=stack.events,
            id=tx.new_id() if event.type == STACK else f"{event.logical_id}-{event.status}-{tx.new_id()}",
            logical_id=event.logical_id,
            physical_id=event.physical_id,
            type=event.type,
            status=event.status,
            reason=event.reason,
            properties=event.properties,
            happened_at=tx.now,
        )


def export_of(tx: Transaction, name: str) -> Row | None:
    return tx.one("SELECT * FROM cloudformation_exports WHERE name = :name", name=name)


def save_exports(tx: Transaction, stack: Stack, exports: Mapping[str, str]) -> None:
    """Bring the stack's exports up to date; Problem when a name is taken, or one that is imported would change."""
    before = {
        row["name"]: row["value"]
        for row in tx.all("SELECT * FROM cloudformation_exports WHERE stack_id = :id", id=stack.id)
    }
    for name, value in before.items():
        if exports.get(name) == value:
            continue
        row = tx.one(
            "SELECT s.name FROM cloudformation_imports i JOIN cloudformation_stacks s ON s.id = i.stack_id"
            " WHERE i.name = :name",
            name=name,
        )
        if row is not None:
            verb = "updated" if name in exports else "deleted"
            raise Problem(f"Export {name} cannot be {verb} as it is in use by {row['name']}")
        tx.run("DELETE FROM cloudformation_exports WHERE name = :name", name=name)
    for name, value in exports.items():
        if before.get(name) == value:
            continue
        taken = export_of(tx, name)
        if taken is not None:
            owner = named(tx, taken["stack_id"])
            raise Problem(f"Export with name {name} is already exported by stack {owner.name}.")
        tx.run(
            "INSERT INTO cloudformation_exports (name, value, stack_id) VALUES (:name, :value, :id)",
            name=name,
            value=value,
            id=stack.id,
        )


def save_imports(tx: Transaction, stack: Stack, names: frozenset[str]) -> None:
    """Write down which exports the stack now uses."""
    tx.run("DELETE FROM cloudformation_imports WHERE stack_id = :id", id=stack.id)
    for name in sorted(names):
        tx.run("INSERT INTO cloudformation_imports (name, stack_id) VALUES (:name, :id)", name=name, id=stack.id)
