"""CloudFormation's operations: AWS's shapes in and out, the rest elsewhere.

Of a stack's ways, what Muster has no use for is refused by name: stack policies, rollback triggers, notification topics,
imports of resources. `RoleARN` is taken, since Muster checks no permissions between its own parts.
https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson

from muster.errors import ServiceError, unsupported
from muster.operation import Answer, Operation, Request
from muster.stacks import change_sets, document, lifecycle, parameters, records, serverless
from muster.stacks import template as templates
from muster.stacks.change_sets import ChangeSet
from muster.stacks.lifecycle import Given, Wanted
from muster.stacks.parameters import HIDDEN, Parameter
from muster.stacks.problem import Problem
from muster.stacks.records import Kept, Stack, refused
from muster.stacks.resources.kind import read_object
from muster.stacks.template import SERVERLESS, Template
from muster.transaction import Transaction

PAGE = 100
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,127}")


# --- requests --------------------------------------------------------------------------------------------------------


def _fetched(tx: Transaction, request: Request) -> str | None:
    """The template in a bucket of this server that a URL names, addressed by path or by host."""
    url = request.get("TemplateURL")
    if url is None:
        return None
    parts = urlsplit(url)
    path = unquote(parts.path).lstrip("/")
    host = re.fullmatch(r"(.+)\.s3[.-].*amazonaws\.com", parts.hostname or "")
    bucket, key = (host[1], path) if host else path.partition("/")[::2]
    if not bucket or not key:
        raise refused(f"TemplateURL must be a supported URL: {url} names no object in a bucket.")
    try:
        return read_object(tx, bucket, key).decode()
    except (ServiceError, UnicodeDecodeError) as error:
        raise refused(f"The template at {url} cannot be read: {error}") from error


def _given(tx: Transaction, request: Request, stack: Stack | None) -> Given:
    for member in ("NotificationARNs", "ResourceTypes"):
        if request.get(member):
            raise unsupported(f"the parameter {member} of cloudformation")
    if request.get("DisableRollback"):
        raise unsupported("the parameter DisableRollback of cloudformation: a failed deployment leaves nothing behind")
    if request.get("UsePreviousTemplate"):
        if stack is None:
            raise refused("UsePreviousTemplate needs a stack that has a template.")
        body: str | None = stack.template
    else:
        body = request.get("TemplateBody") or _fetched(tx, request)
    if body is None:
        raise refused("Either Template URL or Template Body must be specified.")
    values, previous = {}, set()
    for item in request.get("Parameters") or []:
        key = item.get("ParameterKey", "")
        if item.get("UsePreviousValue"):
            previous.add(key)
        elif "ParameterValue" in item:
            values[key] = item["ParameterValue"]
        else:
            raise refused(f"Parameter '{key}' has neither ParameterValue nor UsePreviousValue.")
    tags = None
    if "Tags" in request:
        tags = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
    return Given(body, values, frozenset(previous), tags, list(request.get("Capabilities") or []))


def _valid_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise refused(
            f"1 validation error detected: Value '{name}' at 'stackName' failed to satisfy constraint: Member must satisfy"
            " regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*"
        )
    return name


def _page(items: Sequence[Any], request: Request, member: str, shown: Callable[[Any], Any]) -> Answer:
    """One page of a listing; the token is the position of the next item."""
    token = request.get("NextToken", "0")
    if not token.isdigit():
        raise refused("The NextToken is not one that this operation has answered.")
    start = int(token)
    answer: Answer = {member: [shown(item) for item in items[start : start + PAGE]]}
    if start + PAGE < len(items):
        answer["NextToken"] = str(start + PAGE)
    return answer


# --- stacks ----------------------------------------------------------------------------------------------------------


def create_stack(tx: Transaction, request: Request) -> Answer:
    """Make a stack, or record that it could not be made; the answer comes when either is done."""
    name = _valid_name(request["StackName"])
    if records.find(tx, name) is not None:
        raise ServiceError("AlreadyExistsException", f"Stack [{name}] already exists", status=400)
    on_failure = request.get("OnFailure", "ROLLBACK")
    if on_failure == "DO_NOTHING":
        raise unsupported(
            "OnFailure DO_NOTHING of cloudformation:CreateStack: a failed deployment leaves nothing behind"
        )
    wanted = lifecycle.understand(tx, _given(tx, request, None), name, None)
    lifecycle.demand_capabilities(wanted, at_once=True)
    stack = lifecycle.begin(tx, name, wanted)
    stack.is_protected = bool(request.get("EnableTerminationProtection", False))
    return {"StackId": lifecycle.create(tx, stack, wanted, on_failure).id}


def update_stack(tx: Transaction, request: Request) -> Answer:
    """Bring a stack up to date; a failure is recorded and leaves its resources as they were."""
    stack = _existing(tx, request["StackName"])
    lifecycle.demand_updatable(stack)
    wanted = lifecycle.understand(tx, _given(tx, request, stack), stack.name, stack)
    lifecycle.demand_capabilities(wanted, at_once=True)
    return {"StackId": lifecycle.update(tx, stack, wanted).id}


def _existing(tx: Transaction, name: str) -> Stack:
    stack = records.find(tx, name)
    if stack is None or not stack.is_live:
        raise refused(f"Stack [{name}] does not exist")
    return stack


def delete_stack(tx: Transaction, request: Request) -> Answer:
    """Delete a stack and what it owns; one that is not there is deleted already."""
    stack = records.find(tx, request["StackName"])
    if stack is None or not stack.is_live:
        return {}
    retain = frozenset(request.get("RetainResources") or ())
    if retain and stack.status != "DELETE_FAILED":
        raise refused(
            "Invalid operation on stack. Specify the RetainResources parameter only for stacks in the DELETE_FAILED state."
        )
    owned = {one.logical_id for one in records.resources(tx, stack.id)}
    if retain - owned:
        raise refused(f"The resources {sorted(retain - owned)} do not exist in the stack.")
    lifecycle.delete(tx, stack, retain)
    return {}


def _of_processed(stack: Stack) -> Template:
    return templates.check(document.read(stack.processed))


def _parameters(template: Template, values: Mapping[str, str]) -> list[dict[str, str]]:
    hidden = {name for name, parameter in template.parameters.items() if parameter.is_hidden}
    return [
        {"ParameterKey": key, "ParameterValue": HIDDEN if key in hidden else value} for key, value in values.items()
    ]


def _tags(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _with(answer: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The answer with those members that have a value."""
    return answer | {key: value for key, value in more.items() if value not in (None, "", [])}


def _shown_stack(stack: Stack) -> dict[str, Any]:
    return _with(
        {
            "StackId": stack.id,
            "StackName": stack.name,
            "CreationTime": stack.created_at,
            "StackStatus": stack.status,
            "DisableRollback": False,
            "RollbackConfiguration": {},
            "NotificationARNs": [],
            "Tags": _tags(stack.tags),
            "EnableTerminationProtection": stack.is_protected,
            "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
        },
        ChangeSetId=stack.change_set_id,
        Description=stack.description,
        Parameters=_parameters(_of_processed(stack), stack.parameters),
        LastUpdatedTime=stack.updated_at,
        DeletionTime=stack.deleted_at,
        StackStatusReason=stack.reason,
        Capabilities=stack.capabilities,
        Outputs=stack.outputs,
    )


def describe_stacks(tx: Transaction, request: Request) -> Answer:
    """One stack, or all live ones."""
    if "StackName" in request:
        return {"Stacks": [_shown_stack(records.named(tx, request["StackName"]))]}
    return _page([stack for stack in records.stacks(tx) if stack.is_live], request, "Stacks", _shown_stack)


def list_stacks(tx: Transaction, request: Request) -> Answer:
    """Every stack, deleted ones too, of the statuses asked for."""
    wanted = request.get("StackStatusFilter")
    found = [stack for stack in records.stacks(tx) if not wanted or stack.status in wanted]

    def shown(stack: Stack) -> dict[str, Any]:
        return _with(
            {
                "StackId": stack.id,
                "StackName": stack.name,
                "CreationTime": stack.created_at,
                "StackStatus": stack.status,
                "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
            },
            TemplateDescription=stack.description,
            LastUpdatedTime=stack.updated_at,
            DeletionTime=stack.deleted_at,
            StackStatusReason=stack.reason,
        )

    return _page(found, request, "StackSummaries", shown)


def update_termination_protection(tx: Transaction, request: Request) -> Answer:
    """Guard a stack against deletion, or no longer."""
    stack = _existing(tx, request["StackName"])
    stack.is_protected = request["EnableTerminationProtection"]
    records.save(tx, stack)
    return {"StackId": stack.id}


# --- what a stack has ------------------------------------------------------------------------------------------------


def _shown_resource(one: Kept, timestamp: str = "LastUpdatedTimestamp") -> dict[str, Any]:
    return {
        "LogicalResourceId": one.logical_id,
        "PhysicalResourceId": one.made.physical_id,
        "ResourceType": one.type,
        timestamp: one.updated_at,
        "ResourceStatus": one.status,
        "DriftInformation": {"StackResourceDriftStatus": "NOT_CHECKED"},
    }


def describe_stack_resources(tx: Transaction, request: Request) -> Answer:
    """The resources of a stack, or of the stack that owns a physical resource."""
    name = request.get("StackName")
    if name is None:
        physical = request.get("PhysicalResourceId")
        if physical is None:
            raise refused("Either StackName or PhysicalResourceId must be specified.")
        name = records.owner_of(tx, physical)
        if name is None:
            raise refused(f"Stack for {physical} does not exist")
    stack = records.named(tx, name)
    logical = request.get("LogicalResourceId")
    return {
        "StackResources": [
            {"StackId": stack.id, "StackName": stack.name, **_shown_resource(one, "Timestamp")}
            for one in records.resources(tx, stack.id)
            if logical in (None, one.logical_id)
        ]
    }


def describe_stack_resource(tx: Transaction, request: Request) -> Answer:
    """One resource, with its metadata."""
    stack = records.named(tx, request["StackName"])
    logical = request["LogicalResourceId"]
    one = next((one for one in records.resources(tx, stack.id) if one.logical_id == logical), None)
    if one is None:
        raise refused(f"Resource {logical} does not exist for stack {stack.name}")
    declared = document.read(stack.processed)["Resources"].get(logical, {})
    detail = {"StackId": stack.id, "StackName": stack.name, **_shown_resource(one)}
    if "Metadata" in declared:
        detail["Metadata"] = records.text(declared["Metadata"])
    return {"StackResourceDetail": detail}


def list_stack_resources(tx: Transaction, request: Request) -> Answer:
    """A stack's resources in the order of their making."""
    stack = records.named(tx, request["StackName"])
    return _page(records.resources(tx, stack.id), request, "StackResourceSummaries", _shown_resource)


def describe_stack_events(tx: Transaction, request: Request) -> Answer:
    """What happened to a stack, the newest first. Warnings are reasons that begin with "Warning:"."""
    if "StackName" not in request:
        raise refused("StackName must be specified.")
    stack = records.named(tx, request["StackName"])
    rows = tx.all("SELECT * FROM cloudformation_events WHERE stack_id = :id ORDER BY number DESC", id=stack.id)

    def shown(row: Any) -> dict[str, Any]:
        return _with(
            {
                "StackId": stack.id,
                "EventId": row["id"],
                "StackName": stack.name,
                "LogicalResourceId": row["logical_id"],
                "PhysicalResourceId": row["physical_id"],
                "ResourceType": row["type"],
                "Timestamp": row["happened_at"],
                "ResourceStatus": row["status"],
            },
            ResourceStatusReason=row["reason"],
            ResourceProperties=row["properties"],
        )

    return _page(rows, request, "StackEvents", shown)


def list_exports(tx: Transaction, request: Request) -> Answer:
    """What all stacks export."""
    rows = tx.all("SELECT * FROM cloudformation_exports ORDER BY name")
    return _page(
        rows,
        request,
        "Exports",
        lambda row: {"ExportingStackId": row["stack_id"], "Name": row["name"], "Value": row["value"]},
    )


def list_imports(tx: Transaction, request: Request) -> Answer:
    """The stacks that use an export."""
    name = request["ExportName"]
    rows = tx.all(
        "SELECT s.name AS name FROM cloudformation_imports i JOIN cloudformation_stacks s ON s.id = i.stack_id"
        " WHERE i.name = :name ORDER BY s.name",
        name=name,
    )
    if not rows:
        raise refused(f"Export '{name}' is not imported by any stack.")
    return _page(rows, request, "Imports", lambda row: row["name"])


# --- templates -------------------------------------------------------------------------------------------------------


def get_template(tx: Transaction, request: Request) -> Answer:
    """The template of a stack or change set: as translated, unless the original is asked for."""
    if "ChangeSetName" in request:
        body = change_sets.named(tx, request["ChangeSetName"], request.get("StackName")).template
        return {"TemplateBody": body, "StagesAvailable": ["Original"]}
    if "StackName" not in request:
        raise refused("StackName or ChangeSetName must be specified.")
    stack = records.named(tx, request["StackName"])
    translated = SERVERLESS in templates.transforms_of(document.read(stack.template))
    processed = translated and request.get("TemplateStage", "Processed") == "Processed"
    return {
        "TemplateBody": stack.processed if processed else stack.template,
        "StagesAvailable": ["Original", "Processed"],
    }


def _body(tx: Transaction, request: Request) -> str:
    if "TemplateBody" in request:
        return str(request["TemplateBody"])
    fetched = _fetched(tx, request)
    if fetched is not None:
        return fetched
    if "StackName" in request:
        return records.named(tx, request["StackName"]).template
    raise refused("Either Template URL or Template Body must be specified.")


def _summary(tx: Transaction, request: Request) -> tuple[Template, dict[str, Any], dict[str, Any]]:
    """The template, its document, and what both summaries answer."""
    try:
        source = lifecycle.read(_body(tx, request))
        template = templates.check(source)
        if SERVERLESS in template.transforms:
            processed = templates.check(serverless.translate(source, _stand_ins(template.parameters), tx.region))
        else:
            processed = template
    except Problem as problem:
        raise refused(str(problem)) from problem
    capabilities, why = lifecycle.capabilities_of(processed)
    answer = _with(
        {},
        Description=template.description,
        Capabilities=capabilities,
        CapabilitiesReason=why,
        DeclaredTransforms=list(template.transforms),
    )
    return template, source, answer


def _stand_ins(declared: Mapping[str, Parameter]) -> dict[str, str]:
    """Values for a look at a template without any: the defaults, and the name where there is none."""
    return {name: name if parameter.default is None else parameter.default for name, parameter in declared.items()}


def validate_template(tx: Transaction, request: Request) -> Answer:
    """Check a template and tell its parameters."""
    template, _, answer = _summary(tx, request)
    shown = [
        _with(
            {"ParameterKey": name, "NoEcho": parameter.is_hidden},
            DefaultValue=parameter.default,
            Description=parameter.declared.get("Description"),
        )
        for name, parameter in template.parameters.items()
    ]
    return {"Parameters": shown, **answer}


def get_template_summary(tx: Transaction, request: Request) -> Answer:
    """What a template declares."""
    template, source, answer = _summary(tx, request)
    shown = []
    for name, parameter in template.parameters.items():
        allowed = parameter.declared.get("AllowedValues")
        limits = {"AllowedValues": [parameters.text_of(one) for one in allowed]} if allowed else {}
        shown.append(
            _with(
                {
                    "ParameterKey": name,
                    "ParameterType": parameter.type,
                    "NoEcho": parameter.is_hidden,
                    "ParameterConstraints": limits,
                },
                DefaultValue=parameter.default,
                Description=parameter.declared.get("Description"),
            )
        )
    more = {"ResourceTypes": sorted({one.type for one in template.resources.values()})}
    if template.metadata:
        more["Metadata"] = orjson.dumps(template.metadata, option=orjson.OPT_NON_STR_KEYS).decode()  # type: ignore[assignment]
    version = source.get("AWSTemplateFormatVersion")
    return _with({"Parameters": shown, **answer, **more}, Version=version and str(version))


# --- change sets -----------------------------------------------------------------------------------------------------


def create_change_set(tx: Transaction, request: Request) -> Answer:
    """Look at what a deployment would do. A new stack is under review until its change set is executed."""
    name, type_ = request["StackName"], request.get("ChangeSetType", "UPDATE")
    if type_ not in ("CREATE", "UPDATE"):
        raise unsupported(f"ChangeSetType {type_} of cloudformation:CreateChangeSet")
    if request.get("OnStackFailure", "ROLLBACK") != "ROLLBACK":
        raise unsupported(f"OnStackFailure {request['OnStackFailure']} of cloudformation:CreateChangeSet")
    stack = records.find(tx, name)
    if type_ == "CREATE":
        if stack is not None and stack.status != "REVIEW_IN_PROGRESS":
            raise ServiceError("AlreadyExistsException", f"Stack [{name}] already exists", status=400)
        wanted = lifecycle.understand(
            tx, _given(tx, request, None), _valid_name(name) if stack is None else stack.name, stack
        )
        lifecycle.demand_capabilities(wanted, at_once=False)
        if stack is None:
            stack = _under_review(tx, name, wanted)
    else:
        stack = _existing(tx, name)
        lifecycle.demand_updatable(stack)
        wanted = lifecycle.understand(tx, _given(tx, request, stack), stack.name, stack)
        lifecycle.demand_capabilities(wanted, at_once=False)
    made = change_sets.create(tx, stack, request["ChangeSetName"], type_, wanted, request.get("Description"))
    return {"Id": made.id, "StackId": stack.id}


def _under_review(tx: Transaction, name: str, wanted: Wanted) -> Stack:
    stack = lifecycle.begin(tx, name, wanted)
    event = records.Event(name, stack.id, records.STACK, "REVIEW_IN_PROGRESS", "User Initiated")
    records.append(tx, stack, [event])
    records.save(tx, stack)
    return stack


def describe_change_set(tx: Transaction, request: Request) -> Answer:
    """A change set with its changes."""
    found = change_sets.named(tx, request["ChangeSetName"], request.get("StackName"))
    stack = records.named(tx, found.stack_id)
    answer = _page(found.changes, request, "Changes", lambda change: change)
    template = templates.check(document.read(found.template))
    return _with(
        {**answer, **_shown_change_set(found, stack), "Capabilities": found.capabilities, "Tags": _tags(found.tags)},
        Parameters=_parameters(template, found.parameters),
        RollbackConfiguration={},
    )


def _shown_change_set(found: ChangeSet, stack: Stack) -> dict[str, Any]:
    return _with(
        {
            "ChangeSetName": found.name,
            "ChangeSetId": found.id,
            "StackId": stack.id,
            "StackName": stack.name,
            "CreationTime": found.created_at,
            "ExecutionStatus": found.execution_status,
            "Status": found.status,
            "IncludeNestedStacks": False,
        },
        StatusReason=found.reason,
        Description=found.description,
    )


def list_change_sets(tx: Transaction, request: Request) -> Answer:
    """A stack's change sets."""
    stack = records.named(tx, request["StackName"])
    return _page(change_sets.of(tx, stack), request, "Summaries", lambda found: _shown_change_set(found, stack))


def execute_change_set(tx: Transaction, request: Request) -> Answer:
    """Deploy what a change set describes."""
    if request.get("DisableRollback"):
        raise unsupported("the parameter DisableRollback of cloudformation: a failed deployment leaves nothing behind")
    change_sets.execute(tx, change_sets.named(tx, request["ChangeSetName"], request.get("StackName")))
    return {}


def delete_change_set(tx: Transaction, request: Request) -> Answer:
    """Forget a change set; one that is not there is forgotten already."""
    found = change_sets.find(tx, request["ChangeSetName"], request.get("StackName"))
    if found is not None:
        change_sets.delete(tx, found)
    return {}


def _operation(run: Callable[[Transaction, Request], Answer], accepts: str, *, reads: bool = False) -> Operation:
    return Operation(run, frozenset(accepts.split()), reads=reads)


_DEPLOY = "StackName TemplateBody TemplateURL Parameters Capabilities Tags RoleARN NotificationARNs ResourceTypes"

OPERATIONS: Mapping[str, Operation] = {
    "CreateStack": _operation(
        create_stack,
        f"{_DEPLOY} DisableRollback OnFailure TimeoutInMinutes EnableTerminationProtection ClientRequestToken",
    ),
    "UpdateStack": _operation(update_stack, f"{_DEPLOY} UsePreviousTemplate DisableRollback ClientRequestToken"),
    "DeleteStack": _operation(delete_stack, "StackName RetainResources RoleARN ClientRequestToken"),
    "DescribeStacks": _operation(describe_stacks, "StackName NextToken", reads=True),
    "ListStacks": _operation(list_stacks, "NextToken StackStatusFilter", reads=True),
    "UpdateTerminationProtection": _operation(update_termination_protection, "StackName EnableTerminationProtection"),
    "DescribeStackResources": _operation(
        describe_stack_resources, "StackName LogicalResourceId PhysicalResourceId", reads=True
    ),
    "DescribeStackResource": _operation(describe_stack_resource, "StackName LogicalResourceId", reads=True),
    "ListStackResources": _operation(list_stack_resources, "StackName NextToken", reads=True),
    "DescribeStackEvents": _operation(describe_stack_events, "StackName NextToken", reads=True),
    "ListExports": _operation(list_exports, "NextToken", reads=True),
    "ListImports": _operation(list_imports, "ExportName NextToken", reads=True),
    "GetTemplate": _operation(get_template, "StackName ChangeSetName TemplateStage", reads=True),
    "ValidateTemplate": _operation(validate_template, "TemplateBody TemplateURL", reads=True),
    "GetTemplateSummary": _operation(get_template_summary, "TemplateBody TemplateURL StackName", reads=True),
    "CreateChangeSet": _operation(
        create_change_set,
        f"{_DEPLOY} UsePreviousTemplate ChangeSetName ChangeSetType Description ClientToken OnStackFailure"
        " IncludeNestedStacks",
    ),
    "DescribeChangeSet": _operation(describe_change_set, "ChangeSetName StackName NextToken", reads=True),
    "ListChangeSets": _operation(list_change_sets, "StackName NextToken", reads=True),
    "ExecuteChangeSet": _operation(execute_change_set, "ChangeSetName StackName ClientRequestToken DisableRollback"),
    "DeleteChangeSet": _operation(delete_change_set, "ChangeSetName StackName"),
}
