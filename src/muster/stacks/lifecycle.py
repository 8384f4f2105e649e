"""Creating, updating and deleting stacks: what is asked for, the deployment in its savepoint, and the record of it.

Keeps true: a failed creation, update or deletion leaves every resource as it was before; what remains is the stack's
record, which says which resource failed and why. Does not know requests and answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.errors import ServiceError
from muster.stacks import document, parameters, records, serverless
from muster.stacks import template as templates
from muster.stacks.deployment import Changed, Deployment, Failed, checked, masked, names_of
from muster.stacks.problem import Problem
from muster.stacks.records import STACK, Event, Kept, Stack, refused
from muster.stacks.resources import KINDS
from muster.stacks.template import SERVERLESS, Template
from muster.transaction import Transaction

TEMPLATE_BYTES_MAX = 1_048_576  # CloudFormation's limit for a template in a bucket; here for a body as well
NO_CHANGE = "No updates are to be performed."
_UPDATABLE = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a stack shall become."""

    body: str
    processed: str
    template: Template
    values: dict[str, str]
    tags: dict[str, str]
    capabilities: list[str]


@dataclass(frozen=True, slots=True)
class Given:
    """What a request gives for a stack's sake. `previous` names the parameters that keep their values."""

    body: str
    parameters: Mapping[str, str]
    previous: frozenset[str]
    tags: dict[str, str] | None
    capabilities: list[str]


def read(body: str) -> dict[str, Any]:
    """The document in a template's text; Problem when it is none or too long."""
    size = len(body.encode())
    if size > TEMPLATE_BYTES_MAX:
        raise Problem(f"The template has {size} bytes; at most {TEMPLATE_BYTES_MAX} are allowed.")
    return document.read(body)


def understand(tx: Transaction, given: Given, name: str, stack: Stack | None) -> Wanted:
    """Parse, translate and check a template with its parameters; ValidationError tells what is wrong with it."""
    try:
        source = read(given.body)
        outline = templates.check(source)
        values = dict(given.parameters)
        for key in given.previous:
            if stack is None or key not in stack.parameters:
                raise Problem(f"Parameter '{key}' has no previous value.")
            values[key] = stack.parameters[key]
        values = parameters.settle(outline.parameters, values)
        processed = source
        if SERVERLESS in outline.transforms:
            processed = serverless.translate(source, values, tx.region)
        template = templates.check(processed) if processed is not source else outline
        stack_id = stack.id if stack is not None else records.new_id(tx, name)
        checked(template, names_of(tx, template, values, name, stack_id))
    except Problem as problem:
        raise refused(str(problem)) from problem
    except RecursionError:
        raise refused("Template format error: the template is nested too deeply.") from None
    tags = given.tags if given.tags is not None else (stack.tags if stack is not None else {})
    return Wanted(given.body, document.write(processed), template, values, tags, given.capabilities)


def capabilities_of(template: Template) -> tuple[list[str], str]:
    """The acknowledgements that a template's resources ask for, and which resources those are.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/control-access-with-iam.html#using-iam-capabilities
    """
    found = [resource for resource in template.resources.values() if resource.type.startswith("AWS::IAM::")]
    if not found:
        return [], ""
    named = any((kind := KINDS.get(one.type)) is not None and kind.name in one.properties for one in found)
    types = ", ".join(sorted({one.type for one in found}))
    return [
        "CAPABILITY_NAMED_IAM" if named else "CAPABILITY_IAM"
    ], f"The following resource(s) require capabilities: [{types}]"


def demand_capabilities(wanted: Wanted, *, at_once: bool) -> None:
    """InsufficientCapabilitiesException unless the request acknowledges what the template does.

    `at_once`: nobody looks at a change set first, so that macros need their own acknowledgement.
    """
    needed, _ = capabilities_of(wanted.template)
    if at_once and SERVERLESS in templates.transforms_of(document.read(wanted.body)):
        needed = [*needed, "CAPABILITY_AUTO_EXPAND"]
    given = set(wanted.capabilities)
    if "CAPABILITY_NAMED_IAM" in given:
        given.add("CAPABILITY_IAM")
    missing = [one for one in needed if one not in given]
    if missing:
        raise ServiceError(
            "InsufficientCapabilitiesException", f"Requires capabilities : [{', '.join(missing)}]", status=400
        )


def begin(tx: Transaction, name: str, wanted: Wanted) -> Stack:
    """A stack without resources."""
    stack = Stack(records.new_id(tx, name), name, "REVIEW_IN_PROGRESS", wanted.body, wanted.processed, tx.now)
    records.save(tx, stack)
    return stack


def _settle(stack: Stack, wanted: Wanted, deployment: Deployment) -> None:
    stack.template, stack.processed = wanted.body, wanted.processed
    stack.description = wanted.template.description
    stack.parameters, stack.tags, stack.capabilities = wanted.values, wanted.tags, wanted.capabilities
    stack.outputs = deployment.outputs


def _event(stack: Stack, status: str, reason: str | None = None) -> Event:
    return Event(stack.name, stack.id, STACK, status, reason)


def _deployed(tx: Transaction, stack: Stack, wanted: Wanted, before: list[Kept], deployment: Deployment) -> None:
    deployment.run(wanted.template, wanted.values, before)
    records.save_imports(tx, stack, deployment.imports)
    records.save_exports(tx, stack, deployment.exports)
    records.save_resources(tx, stack.id, deployment.kept)


def _told(error: Failed | Problem) -> str:
    if isinstance(error, Failed):
        return f"The following resource(s) failed to {error.verb}: [{error.logical_id}]. {error.told}"
    return str(error)


def create(tx: Transaction, stack: Stack, wanted: Wanted, on_failure: str = "ROLLBACK") -> Stack:
    """Make the stack's resources, or none of them."""
    deployment = Deployment(tx, stack.name, stack.id, wanted.tags)
    records.append(tx, stack, [_event(stack, "CREATE_IN_PROGRESS", "User Initiated")])
    try:
        with tx.savepoint():
            _deployed(tx, stack, wanted, [], deployment)
    except (Failed, Problem) as error:
        reason = masked(_told(error), deployment.secrets)
        deployment.outputs = []
        undone = [
            Event(one.logical_id, one.physical_id, one.type, "DELETE_COMPLETE") for one in _made(deployment.events)
        ]
        _settle(stack, wanted, deployment)
        ends = ["ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE"]
        if on_failure == "DELETE":
            ends = ["DELETE_IN_PROGRESS", "DELETE_COMPLETE"]
            stack.deleted_at = tx.now
        records.append(
            tx,
            stack,
            [*deployment.events, _event(stack, ends[0], reason), *undone, _event(stack, ends[1])],
        )
        stack.status, stack.reason = ends[1], reason
    else:
        _settle(stack, wanted, deployment)
        stack.status, stack.reason = "CREATE_COMPLETE", None
        records.append(tx, stack, [*deployment.events, _event(stack, "CREATE_COMPLETE")])
    records.save(tx, stack)
    return stack


def _made(events: list[Event]) -> list[Event]:
    """The events of completed resources, the last first."""
    return [event for event in reversed(events) if event.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE")]


def demand_updatable(stack: Stack) -> None:
    """ValidationError when the stack's status allows no update."""
    if stack.status not in _UPDATABLE:
        raise refused(f"Stack:{stack.id} is in {stack.status} state and can not be updated.")


def update(tx: Transaction, stack: Stack, wanted: Wanted) -> Stack:
    """Bring the stack's resources to what is wanted, or leave all as they are; ValidationError when nothing changes."""
    demand_updatable(stack)
    deployment = Deployment(tx, stack.name, stack.id, wanted.tags)
    before = records.resources(tx, stack.id)
    try:
        with tx.savepoint():
            _deployed(tx, stack, wanted, before, deployment)
    except (Failed, Problem) as error:
        reason = masked(_told(error), deployment.secrets)
        back = [Event(one.logical_id, one.physical_id, one.type, "UPDATE_COMPLETE") for one in _made(deployment.events)]
        records.append(
            tx,
            stack,
            [
                _event(stack, "UPDATE_IN_PROGRESS", "User Initiated"),
                *deployment.events,
                _event(stack, "UPDATE_ROLLBACK_IN_PROGRESS", reason),
                *back,
                _event(stack, "UPDATE_ROLLBACK_COMPLETE"),
            ],
        )
        stack.status, stack.reason = "UPDATE_ROLLBACK_COMPLETE", reason
    else:
        if not deployment.changes and deployment.outputs == stack.outputs and wanted.tags == stack.tags:
            raise refused(NO_CHANGE)
        _settle(stack, wanted, deployment)
        stack.status, stack.reason = "UPDATE_COMPLETE", None
        records.append(
            tx,
            stack,
            [
                _event(stack, "UPDATE_IN_PROGRESS", "User Initiated"),
                *deployment.events,
                _event(stack, "UPDATE_COMPLETE"),
            ],
        )
    stack.updated_at = tx.now
    records.save(tx, stack)
    return stack


class _Undone(Exception):
    """A rehearsal is over."""


def rehearse(tx: Transaction, stack: Stack, wanted: Wanted) -> tuple[list[Changed], bool]:
    """What a deployment would change, and whether it would change anything: it is done, looked at, and undone.

    When it would fail, what the template alone tells is answered: the failure belongs to the real run.
    """
    before = records.resources(tx, stack.id)
    deployment = Deployment(tx, stack.name, stack.id, wanted.tags)
    try:
        with tx.savepoint():
            _deployed(tx, stack, wanted, before, deployment)
            raise _Undone
    except _Undone:
        same = deployment.outputs == stack.outputs and wanted.tags == stack.tags
        return deployment.changes, bool(deployment.changes) or not same
    except (Failed, Problem):
        had = {one.logical_id: one for one in before}
        ordered = checked(wanted.template, names_of(tx, wanted.template, wanted.values, stack.name, stack.id))
        names = {one.logical_id for one in ordered}
        changes = [
            Changed("Modify", one.logical_id, one.type, had[one.logical_id].made.physical_id)
            if one.logical_id in had
            else Changed("Add", one.logical_id, one.type)
            for one in ordered
        ]
        gone = [one for one in before if one.logical_id not in names]
        return changes + [Changed("Remove", one.logical_id, one.type, one.made.physical_id) for one in gone], True


def delete(tx: Transaction, stack: Stack, retain: frozenset[str]) -> Stack:
    """Take all the stack's resources away, or none of them."""
    if stack.is_protected:
        raise refused(f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled")
    deployment = Deployment(tx, stack.name, stack.id)
    before = records.resources(tx, stack.id)
    records.append(tx, stack, [_event(stack, "DELETE_IN_PROGRESS", "User Initiated")])
    try:
        with tx.savepoint():
            records.save_exports(tx, stack, {})
            records.save_imports(tx, stack, frozenset())
            for one in reversed(before):
                if one.logical_id not in retain:
                    deployment.remove(one)
            records.save_resources(tx, stack.id, [])
    except (Failed, Problem) as error:
        reason = _told(error)
        records.append(tx, stack, [*deployment.events, _event(stack, "DELETE_FAILED", reason)])
        stack.status, stack.reason = "DELETE_FAILED", reason
    else:
        records.append(tx, stack, [*deployment.events, _event(stack, "DELETE_COMPLETE")])
        stack.status, stack.reason, stack.deleted_at = "DELETE_COMPLETE", None, tx.now
    records.save(tx, stack)
    return stack
