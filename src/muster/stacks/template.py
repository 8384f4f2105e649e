"""A checked template: its sections as values, every unknown word in them refused where it stands.

Keeps true: what a Template holds is of the right form, and its order of resources has every resource after those it
refers to. Does not know resource types (their table is handed in as names) nor how values are computed.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-anatomy.html
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.stacks import intrinsics, parameters
from muster.stacks.intrinsics import Scope
from muster.stacks.parameters import Parameter
from muster.stacks.problem import Problem, suggestion

SERVERLESS = "AWS::Serverless-2016-10-31"
EXTENSIONS = "AWS::LanguageExtensions"
RESOURCES_MAX = 500  # CloudFormation's quota per template

_SECTIONS = frozenset(
    [
        "AWSTemplateFormatVersion",
        "Description",
        "Metadata",
        "Parameters",
        "Rules",
        "Mappings",
        "Conditions",
        "Transform",
        "Resources",
        "Outputs",
        "Globals",
        "Hooks",
    ]
)
_REFUSED_SECTIONS = ("Rules", "Hooks")
_ATTRIBUTES = frozenset(
    ["Type", "Properties", "DependsOn", "Condition", "DeletionPolicy", "UpdateReplacePolicy", "Metadata"]
)
_REFUSED_ATTRIBUTES = frozenset(("CreationPolicy", "UpdatePolicy"))
_SERVERLESS_ATTRIBUTES = frozenset(("Connectors", "IgnoreGlobals"))
_POLICIES = frozenset(("Delete", "Retain", "RetainExceptOnCreate"))
_REFUSED_TYPES = {
    "AWS::CloudFormation::Stack": "nested stacks",
    "AWS::Serverless::Application": "nested applications",
    "AWS::CloudFormation::CustomResource": "custom resources",
}


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource as it is declared."""

    logical_id: str
    type: str
    properties: Mapping[str, Any]
    depends_on: tuple[str, ...] = ()
    condition: str | None = None
    deletion_policy: str = "Delete"
    replace_policy: str = "Delete"

    @property
    def is_kept(self) -> bool:
        return self.deletion_policy != "Delete"


@dataclass(frozen=True, slots=True)
class Output:
    """One declared output."""

    name: str
    value: Any
    description: str | None
    condition: str | None
    export: Any


@dataclass(frozen=True, slots=True)
class Template:
    """A template taken apart."""

    description: str
    parameters: Mapping[str, Parameter]
    mappings: Mapping[str, Any]
    conditions: Mapping[str, Any]
    resources: Mapping[str, Resource]
    outputs: Mapping[str, Output]
    transforms: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)


EMPTY = Template("", {}, {}, {}, {}, {}, ())


def transforms_of(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The macros that a template asks for; Problem when Muster has one of them not."""
    wanted = document.get("Transform", [])
    names = tuple(wanted) if isinstance(wanted, list) else (wanted,)
    for name in names:
        if name not in (SERVERLESS, EXTENSIONS):
            raise Problem(f"Muster does not support the transform {name if isinstance(name, str) else 'AWS::Include'}.")
    return names


def check(document: Mapping[str, Any]) -> Template:
    """The template that a document is; Problem names what in it is wrong and where."""
    for name in document:
        if name not in _SECTIONS:
            raise Problem(
                f"Template format error: Invalid template property or properties [{name}].{suggestion(str(name), _SECTIONS)}"
            )
        if name in _REFUSED_SECTIONS:
            raise Problem(f"Muster does not support the section {name}.")
    transforms = transforms_of(document)
    serverless = SERVERLESS in transforms
    if "Globals" in document and not serverless:
        raise Problem(f"Template format error: Globals needs Transform: {SERVERLESS}.")
    resources = _section(document, "Resources")
    if not resources:
        raise Problem("Template format error: At least one Resources member must be defined.")
    if len(resources) > RESOURCES_MAX:
        raise Problem(f"Template format error: Number of resources, {len(resources)}, is greater than {RESOURCES_MAX}.")
    conditions = _section(document, "Conditions")
    declared = parameters.declared(_section(document, "Parameters"))
    for logical_id in resources.keys() & declared.keys():
        raise Problem(f"Template format error: {logical_id} is both a parameter and a resource.")
    template = Template(
        str(document.get("Description", "")),
        declared,
        _section(document, "Mappings"),
        conditions,
        {name: _resource(name, body, serverless) for name, body in resources.items()},
        {name: _output(name, body) for name, body in _section(document, "Outputs").items()},
        transforms,
        _section(document, "Metadata"),
    )
    for place, wanted in [(f"resource {r.logical_id}", r.condition) for r in template.resources.values()] + [
        (f"output {o.name}", o.condition) for o in template.outputs.values()
    ]:
        if wanted is not None and wanted not in conditions:
            raise Problem(f"Template format error: Condition {wanted} of {place} is not defined.")
    return template


def _section(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = document.get(name)
    if section is None:
        return {}
    if not isinstance(section, dict):
        raise Problem(f"Template format error: {name} must be an object.")
    return section


def _resource(name: str, body: Any, serverless: bool) -> Resource:
    place = f"resource {name}"
    if name.startswith("Fn::ForEach"):
        raise Problem(f"Muster does not support the function Fn::ForEach among resources: {name}.")
    if not name.isalnum() or not name.isascii():
        raise Problem(f"Template format error: Resource name {name} is non alphanumeric.")
    if not isinstance(body, dict) or not isinstance(body.get("Type"), str):
        raise Problem(f"Template format error: [/Resources/{name}] every resource must have a Type.")
    kind = body["Type"]
    known = _ATTRIBUTES | (_SERVERLESS_ATTRIBUTES if serverless else frozenset())
    for attribute in body:
        if attribute in _REFUSED_ATTRIBUTES:
            raise Problem(f"Muster does not support the attribute {attribute} of {place}.")
        if attribute not in known:
            raise Problem(
                f"Invalid template: unknown attribute {attribute} on {place} ({kind})."
                + (_misplaced(attribute) or suggestion(str(attribute), known))
            )
    if kind in _REFUSED_TYPES or kind.startswith("Custom::"):
        raise Problem(f"Muster does not support {_REFUSED_TYPES.get(kind, 'custom resources')}: {place} is {kind}.")
    properties = body.get("Properties")
    if properties is not None and not isinstance(properties, dict):
        raise Problem(f"Template format error: Properties of {place} must be an object.")
    after = body.get("DependsOn", [])
    after = after if isinstance(after, list) else [after]
    if not all(isinstance(one, str) for one in after):
        raise Problem(f"Template format error: DependsOn of {place} must be a name or a list of names.")
    policies = [str(body.get(attribute, "Delete")) for attribute in ("DeletionPolicy", "UpdateReplacePolicy")]
    for policy in policies:
        if policy not in _POLICIES:
            raise Problem(f"Muster does not support the deletion policy {policy} of {place}.")
    return Resource(
        name,
        kind,
        properties or {},
        tuple(after),
        _condition(body, place),
        policies[0],
        policies[1],
    )


def _condition(body: dict[str, Any], place: str) -> str | None:
    name = body.get("Condition")
    if name is not None and not isinstance(name, str):
        raise Problem(f"Template format error: Condition of {place} must be the name of a condition.")
    return name


def _misplaced(attribute: str) -> str:
    words = [
        "Events",
        "Policies",
        "CodeUri",
        "DefinitionUri",
        "Handler",
        "Runtime",
        "Environment",
        "Tags",
        "Role",
        "DefinitionSubstitutions",
    ]
    return " It belongs under Properties." if attribute in words else ""


def _output(name: str, body: Any) -> Output:
    if not isinstance(body, dict) or "Value" not in body:
        raise Problem(f"Template format error: Output {name} must have a Value.")
    strange = body.keys() - {"Value", "Description", "Condition", "Export"}
    if strange:
        raise Problem(f"Template format error: Output {name} has an unknown attribute {sorted(strange)[0]}.")
    export = body.get("Export")
    if export is not None and (not isinstance(export, dict) or set(export) != {"Name"}):
        raise Problem(f"Template format error: Export of output {name} must have a Name and nothing else.")
    return Output(
        name, body["Value"], body.get("Description"), _condition(body, f"output {name}"), export and export["Name"]
    )


def wanted(template: Template, scope: Scope) -> dict[str, Resource]:
    """The resources whose conditions hold."""
    return {
        name: resource
        for name, resource in template.resources.items()
        if resource.condition is None or scope.condition(resource.condition)
    }


def needs(resource: Resource, scope: Scope) -> frozenset[str]:
    """The names (resources, parameters) that a resource refers to or depends on."""
    return frozenset(name for name, _ in intrinsics.references(resource.properties, scope)) | set(resource.depends_on)


def order(resources: Mapping[str, Resource], scope: Scope, known: frozenset[str]) -> list[Resource]:
    """The resources, each after all that it refers to; Problem on a cycle or a name that means nothing.

    `known` are the names that are not resources: parameters and pseudo parameters.
    """
    edges: dict[str, list[str]] = {}
    missing: set[str] = set()
    for name, resource in resources.items():
        found = needs(resource, scope)
        missing |= {one for one in found if one not in resources and one not in known}
        edges[name] = [one for one in resources if one in found and one != name]
        if name in found:
            raise Problem(f"Circular dependency between resources: [{name}]")
    if missing:
        names = ", ".join(sorted(missing))
        raise Problem(
            f"Template format error: Unresolved resource dependencies [{names}] in the Resources block of the template"
        )
    done: dict[str, Resource] = {}
    while len(done) < len(resources):
        ready = [name for name in resources if name not in done and all(one in done for one in edges[name])]
        if not ready:
            raise Problem(f"Circular dependency between resources: [{', '.join(_ring(edges, done))}]")
        done.update((name, resources[name]) for name in ready)
    return list(done.values())


def _ring(edges: Mapping[str, list[str]], done: Mapping[str, Any]) -> list[str]:
    """The resources of one cycle among those that are not done."""
    path: list[str] = []
    name = next(name for name in edges if name not in done)
    while name not in path:
        path.append(name)
        name = next(one for one in edges[name] if one not in done)
    return path[path.index(name) :]
