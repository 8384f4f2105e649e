"""A deployment: the resources that a stack has become the ones that a template asks for.

Everything happens in the transaction it is given, through the operations table. Keeps true: it is done altogether or
raises Failed, and then its caller's savepoint leaves nothing behind; what is new is made after all that it refers to,
and what is no longer wanted is taken away last, in the reverse order of its making. Does not know who asked.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.errors import ServiceError
from muster.stacks import intrinsics, records
from muster.stacks import template as templates
from muster.stacks.intrinsics import resolve
from muster.stacks.names import Names
from muster.stacks.parameters import HIDDEN, text_of
from muster.stacks.problem import Problem, suggestion
from muster.stacks.records import Event, Kept
from muster.stacks.resources import KINDS, Change, Kind, Made, Work
from muster.stacks.resources.kind import objects_in, text_in
from muster.stacks.template import Resource, Template
from muster.transaction import Transaction


class Failed(Exception):
    """A resource could not be made, changed or taken away; `told` is the whole sentence."""

    def __init__(self, logical_id: str, type_: str, property_: str | None, reason: str, verb: str) -> None:
        place = f", property {property_}" if property_ else ""
        self.logical_id = logical_id
        self.type = type_
        self.property = property_
        self.reason = reason
        self.verb = verb
        self.told = f"{logical_id} ({type_}){place}: {reason}"
        super().__init__(self.told)


@dataclass(frozen=True, slots=True)
class Changed:
    """What a deployment did to one resource, in a change set's words."""

    action: str  # Add, Modify, Remove
    logical_id: str
    type: str
    physical_id: str | None = None
    replacement: bool = False
    properties: tuple[tuple[str, bool], ...] = ()  # which changed, and whether it asks for replacement


@dataclass(slots=True)
class Deployment:
    """One deployment's course: its results, and its events as they happen (kept also when it fails)."""

    tx: Transaction
    stack_name: str
    stack_id: str
    tags: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()  # values of parameters with NoEcho, which no event may show
    events: list[Event] = field(default_factory=list)
    changes: list[Changed] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    exports: dict[str, str] = field(default_factory=dict)
    imports: frozenset[str] = frozenset()

    def run(self, template: Template, values: Mapping[str, str], before: list[Kept]) -> None:
        """Make the stack's resources those of the template. Problem: the template is wrong; Failed: a resource is."""
        names = names_of(self.tx, template, values, self.stack_name, self.stack_id)
        hidden = [values[name] for name, parameter in template.parameters.items() if parameter.is_hidden]
        self.secrets = tuple(value for value in hidden if value)
        ordered = checked(template, names)
        had = {one.logical_id: one for one in before}
        replaced: dict[str, Kept] = {}
        for resource in ordered:
            old = had.get(resource.logical_id)
            kept = self._bring_about(resource, old, names)
            if old is None or old.made.physical_id == kept.made.physical_id:
                pass
            elif resource.replace_policy == "Delete":
                replaced[resource.logical_id] = old
            names.made[resource.logical_id] = kept.made
            self.kept.append(kept)
        self._declare(template, names)
        wanted = {resource.logical_id for resource in ordered}
        gone = [one for one in before if one.logical_id not in wanted]
        if gone or replaced:
            self.events.append(self._of_stack("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"))
        for one in reversed(before):
            if one.logical_id in replaced:
                self._take_away(one, one.logical_id)
            elif one in gone:
                self.changes.append(Changed("Remove", one.logical_id, one.type, one.made.physical_id))
                self.remove(one)

    def remove(self, one: Kept) -> None:
        """Take a resource away, or let go of it when its deletion policy says so."""
        if one.deletion_policy == "Delete":
            self._take_away(one, one.logical_id)
        else:
            self._happened(one.logical_id, one.type, one.made.physical_id, "DELETE_SKIPPED")

    # --- one resource -------------------------------------------------------------------------------------------------

    def _bring_about(self, resource: Resource, old: Kept | None, names: Names) -> Kept:
        kind = KINDS[resource.type]
        verb = "create" if old is None else "update"
        physical_id = "" if old is None else old.made.physical_id
        work = Work(self.tx, self.stack_name, self.stack_id, resource.logical_id)
        try:
            wanted = self._properties(resource, kind, names)
            if old is None:
                made = self._create(kind, work, wanted)
            elif old.type != resource.type:
                raise Problem(f"Update of resource type is not permitted: it was {old.type}.")
            else:
                made = self._update(kind, work, old, wanted)
        except (Problem, ServiceError) as error:
            failed = _failed(resource, kind, error, verb)
            self._happened(resource.logical_id, resource.type, physical_id, f"{verb.upper()}_FAILED", failed.told)
            raise failed from error
        untouched = old is not None and made == old.made and wanted == old.properties
        if not untouched:
            warning = " ".join(work.warnings) or None
            self._happened(resource.logical_id, resource.type, made.physical_id, f"{verb.upper()}_COMPLETE", warning)
        return Kept(
            resource.logical_id,
            resource.type,
            made,
            wanted,
            resource.deletion_policy,
            old.status if old is not None and untouched else f"{verb.upper()}_COMPLETE",
            old.updated_at if old is not None and untouched else self.tx.now,
        )

    def _properties(self, resource: Resource, kind: Kind, names: Names) -> dict[str, Any]:
        wanted: dict[str, Any] = resolve(resource.properties, names)
        for name in kind.required:
            if name not in wanted:
                raise Problem(f"The property {name} is required.")
        if kind.name is not None:
            text_in(wanted, kind.name)
        if self.tags and "Tags" in kind.properties:
            own = wanted.get("Tags", [])
            if isinstance(own, dict):
                wanted["Tags"] = {**self.tags, **own}
            else:
                keys = {tag["Key"] for tag in objects_in(wanted, "Tags", "Key")}
                wanted["Tags"] = own + [{"Key": k, "Value": v} for k, v in self.tags.items() if k not in keys]
        return wanted

    def _create(self, kind: Kind, work: Work, wanted: dict[str, Any]) -> Made:
        self._happened(work.logical_id, kind.type, "", "CREATE_IN_PROGRESS", properties=wanted)
        made = kind.create(work, wanted)
        self._happened(
            work.logical_id, kind.type, made.physical_id, "CREATE_IN_PROGRESS", "Resource creation Initiated", wanted
        )
        self.changes.append(Changed("Add", work.logical_id, kind.type))
        return made

    def _update(self, kind: Kind, work: Work, old: Kept, wanted: dict[str, Any]) -> Made:
        names = sorted(old.properties.keys() | wanted.keys())
        differ = [name for name in names if old.properties.get(name) != wanted.get(name)]
        if not differ:
            return old.made
        replacing = [name for name in differ if kind.properties.get(name) is Change.REPLACE]
        self.changes.append(
            Changed(
                "Modify",
                work.logical_id,
                kind.type,
                old.made.physical_id,
                bool(replacing),
                tuple((name, name in replacing) for name in differ),
            )
        )
        physical_id = old.made.physical_id
        if not replacing:
            self._happened(work.logical_id, kind.type, physical_id, "UPDATE_IN_PROGRESS", properties=wanted)
            return kind.update(work, old.made, old.properties, wanted)
        if kind.name in wanted and old.properties.get(kind.name) == wanted.get(kind.name):
            raise Problem(
                "CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename"
                f" {wanted[kind.name]} and update the stack again. (The property {replacing[0]} requires it.)"
            )
        reason = "Requested update requires the creation of a new physical resource; hence creating one."
        self._happened(work.logical_id, kind.type, physical_id, "UPDATE_IN_PROGRESS", reason, wanted)
        return kind.create(work, wanted)

    def _take_away(self, one: Kept, logical_id: str) -> None:
        kind = KINDS[one.type]
        self._happened(logical_id, one.type, one.made.physical_id, "DELETE_IN_PROGRESS")
        work = Work(self.tx, self.stack_name, self.stack_id, logical_id)
        try:
            kind.delete(work, one.made, one.properties)
        except ServiceError as error:
            if not _is_gone(error):
                failed = Failed(logical_id, one.type, None, f"{error.message} ({error.code})", "delete")
                self._happened(logical_id, one.type, one.made.physical_id, "DELETE_FAILED", failed.told)
                raise failed from error
        except Problem as error:
            failed = Failed(logical_id, one.type, None, str(error), "delete")
            self._happened(logical_id, one.type, one.made.physical_id, "DELETE_FAILED", failed.told)
            raise failed from error
        self._happened(logical_id, one.type, one.made.physical_id, "DELETE_COMPLETE")

    # --- what is said of it -------------------------------------------------------------------------------------------

    def _declare(self, template: Template, names: Names) -> None:
        """Compute the outputs and exports."""
        for output in template.outputs.values():
            if output.condition is not None and not names.condition(output.condition):
                continue
            try:
                value = resolve(output.value, names)
                if isinstance(value, dict) or value is intrinsics.NO_VALUE:
                    raise Problem("its value must be a text.")
                made: dict[str, Any] = {"OutputKey": output.name, "OutputValue": text_of(value)}
                if output.description:
                    made["Description"] = output.description
                if output.export is not None:
                    export = text_of(resolve(output.export, names))
                    made["ExportName"] = export
                    self.exports[export] = made["OutputValue"]
            except Problem as error:
                raise Problem(f"Output {output.name}: {error}") from None
            self.outputs.append(made)
        self.imports = frozenset(names.imports)

    def _happened(
        self,
        logical_id: str,
        type_: str,
        physical_id: str,
        status: str,
        reason: str | None = None,
        properties: Any = None,
    ) -> None:
        shown = None if properties is None else records.text(masked(properties, self.secrets))
        self.events.append(Event(logical_id, physical_id, type_, status, masked(reason, self.secrets), shown))

    def _of_stack(self, status: str, reason: str | None = None) -> Event:
        return Event(self.stack_name, self.stack_id, records.STACK, status, reason)


def masked(value: Any, secrets: tuple[str, ...]) -> Any:
    """The value with every secret in its texts covered."""
    if not secrets:
        return value
    if isinstance(value, dict):
        return {key: masked(item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item, secrets) for item in value]
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, HIDDEN)
    return value


def names_of(tx: Transaction, template: Template, values: Mapping[str, str], stack_name: str, stack_id: str) -> Names:
    """The scope in which a stack's template is read."""

    def exported(name: str) -> Any:
        row = records.export_of(tx, name)
        return None if row is None else row["value"]

    return Names(template, values, tx, stack_name, stack_id, exported)


def checked(template: Template, names: Names) -> list[Resource]:
    """The resources to be made, in order; Problem names the first that no kind or property fits, before any is made."""
    for resource in template.resources.values():
        kind = KINDS.get(resource.type)
        if kind is None:
            raise Problem(
                f"Muster does not support the resource type {resource.type} of resource {resource.logical_id}."
                + suggestion(resource.type, KINDS)
            )
        for name in resource.properties:
            if name not in kind.properties:
                raise Problem(
                    f"Muster does not support the property {name} of resource {resource.logical_id} ({resource.type})."
                    + suggestion(str(name), kind.properties)
                )
    wanted = {
        name: _after_wanted(resource, template, names) for name, resource in templates.wanted(template, names).items()
    }
    ordered = templates.order(wanted, names, names.known)
    for place, value in [(f"resource {r.logical_id}", r.properties) for r in ordered] + [
        (f"output {o.name}", o.value)
        for o in template.outputs.values()
        if o.condition is None or names.condition(o.condition)
    ]:
        _check_references(place, value, template, wanted, names)
    return ordered


def _after_wanted(resource: Resource, template: Template, names: Names) -> Resource:
    """The resource without what it depends on but whose condition does not hold."""
    after = []
    for name in resource.depends_on:
        other = template.resources.get(name)
        if other is None or other.condition is None or names.condition(other.condition):
            after.append(name)
    return Resource(
        resource.logical_id,
        resource.type,
        resource.properties,
        tuple(after),
        resource.condition,
        resource.deletion_policy,
        resource.replace_policy,
    )


def _check_references(place: str, value: Any, template: Template, wanted: Mapping[str, Resource], names: Names) -> None:
    for name, attribute in intrinsics.references(value, names):
        if attribute is None:
            if name not in wanted and name not in names.known:
                raise Problem(
                    f"Template format error: Unresolved resource dependencies [{name}] of {place}."
                    + suggestion(name, names.known | wanted.keys())
                )
            continue
        target = wanted.get(name)
        if target is None:
            raise Problem(f"Template error: instance of Fn::GetAtt references undefined resource {name} ({place}).")
        known = KINDS[target.type].attributes
        if attribute != "*" and attribute not in known:
            raise Problem(
                f"Template error: resource {name} ({target.type}) does not support attribute type {attribute} in"
                f" Fn::GetAtt ({place}).{suggestion(attribute, known)}"
            )


def _failed(resource: Resource, kind: Kind, error: Problem | ServiceError, verb: str) -> Failed:
    reason = str(error) if isinstance(error, Problem) else f"{error.message} ({error.code})"
    return Failed(resource.logical_id, resource.type, _blamed(kind, resource, reason), reason, verb)


def _blamed(kind: Kind, resource: Resource, reason: str) -> str | None:
    """The property that a reason speaks of: the one it calls a property; else one whose name stands in it, as a word or
    as several; else one that the error's own name begins ("InvalidDefinition", DefinitionString)."""
    found = re.search(r"[Pp]roperty (\w+)", reason)
    if found and found[1] in kind.properties:
        return found[1]
    words = {word.lower() for word in re.findall(r"\w+", reason)}
    squeezed = re.sub(r"\W", "", reason).lower()
    humps = tuple(hump for hump in re.findall(r"[A-Z][a-z]+", reason) if len(hump) > 6)
    given = list(resource.properties)
    several = [name for name in given if re.search(r"[a-z][A-Z]", name)]
    return next(
        iter(
            [name for name in given if name.lower() in words]
            + [name for name in several if name.lower() in squeezed]
            + [name for name in given if name.startswith(humps)]
            + [name for name in kind.properties if name.lower() in words]
        ),
        None,
    )


def _is_gone(error: ServiceError) -> bool:
    """Whether a deletion was refused because somebody has deleted the resource already, which is as good."""
    gone = ("NotFound", "NoSuchBucket", "DoesNotExist", "NonExistentQueue", "ResourceNotFound")
    return any(word in error.code for word in gone)
