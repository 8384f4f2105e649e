"""AWS::Lambda: functions, versions, aliases, permissions, asynchronous settings and event source mappings."""

import io
import zipfile
from collections.abc import Mapping
from typing import Any

from muster.stacks.problem import Problem
from muster.stacks.resources.kind import (
    Kind,
    Made,
    Properties,
    Work,
    changed,
    properties,
    set_tags,
    tag_map,
)

_SETTINGS = [
    "Role",
    "Handler",
    "Description",
    "Timeout",
    "MemorySize",
    "VpcConfig",
    "Environment",
    "Runtime",
    "DeadLetterConfig",
    "KMSKeyArn",
    "TracingConfig",
    "Layers",
    "FileSystemConfigs",
    "ImageConfig",
    "EphemeralStorage",
    "SnapStart",
    "LoggingConfig",
]


def _spelled(properties: Properties) -> dict[str, Any]:
    """The template's names as the API's."""
    given = {("KMSKeyArn" if name == "KmsKeyArn" else name): value for name, value in properties.items()}
    return {name: given.get(name) for name in _SETTINGS}


def _inline(source: str, runtime: str) -> bytes:
    """CloudFormation's ZipFile is source text: it becomes `index` in the runtime's language."""
    suffix = "py" if runtime.startswith("python") else "js" if runtime.startswith("nodejs") else None
    if suffix is None:
        raise Problem(f"The property Code.ZipFile works for Python and Node.js only, not for {runtime}.")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        entry = zipfile.ZipInfo(f"index.{suffix}", (1980, 1, 1, 0, 0, 0))
        entry.external_attr = 0o644 << 16
        archive.writestr(entry, source)
    return packed.getvalue()


def _code(new: Properties) -> dict[str, Any]:
    code = new.get("Code")
    if not isinstance(code, dict):
        raise Problem("The property Code must be an object: package the template first, so that code lies in a bucket.")
    if "ZipFile" in code:
        return {"ZipFile": _inline(str(code["ZipFile"]), str(new.get("Runtime", "")))}
    return dict(code)


def _create_function(work: Work, new: Properties) -> Made:
    name = new.get("FunctionName") or work.name(64)
    answer = work.call(
        "lambda",
        "CreateFunction",
        FunctionName=name,
        Code=_code(new),
        Architectures=new.get("Architectures"),
        PackageType=new.get("PackageType"),
        Tags=tag_map(new),
        **_spelled(new),
    )
    _set_concurrency(work, name, {}, new)
    return Made(name, {"Arn": answer["FunctionArn"]})


def _set_concurrency(work: Work, name: str, old: Properties, new: Properties) -> None:
    if not changed(old, new, "ReservedConcurrentExecutions"):
        return
    limit = new.get("ReservedConcurrentExecutions")
    if limit is None:
        work.call("lambda", "DeleteFunctionConcurrency", FunctionName=name)
    else:
        work.call("lambda", "PutFunctionConcurrency", FunctionName=name, ReservedConcurrentExecutions=limit)


# What a setting goes back to when the template no longer gives it.
# https://docs.aws.amazon.com/lambda/latest/api/API_UpdateFunctionConfiguration.html
_DEFAULTS: Mapping[str, Any] = {
    "Description": "",
    "Timeout": 3,
    "MemorySize": 128,
    "Environment": {"Variables": {}},
    "DeadLetterConfig": {"TargetArn": ""},
    "TracingConfig": {"Mode": "PassThrough"},
    "Layers": [],
    "KMSKeyArn": "",
    "EphemeralStorage": {"Size": 512},
    "LoggingConfig": {"LogFormat": "Text"},
    "SnapStart": {"ApplyOn": "None"},
    "FileSystemConfigs": [],
}


def _update_function(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    name = made.physical_id
    if changed(old, new, "Code", "Architectures"):
        work.call(
            "lambda", "UpdateFunctionCode", FunctionName=name, Architectures=new.get("Architectures"), **_code(new)
        )
    before, after = _spelled(old), _spelled(new)
    settings = {
        setting: _DEFAULTS.get(setting) if after[setting] is None else after[setting]
        for setting in _SETTINGS
        if before[setting] != after[setting]
    }
    if settings:
        work.call("lambda", "UpdateFunctionConfiguration", FunctionName=name, **settings)
    _set_concurrency(work, name, old, new)
    set_tags(work, "lambda", "Resource", made.attributes["Arn"], old, new, keys="TagKeys")
    return made


def _delete_function(work: Work, made: Made, old: Properties) -> None:
    work.call("lambda", "DeleteFunction", FunctionName=made.physical_id)


FUNCTION = Kind(
    "AWS::Lambda::Function",
    properties(
        "Code Architectures ReservedConcurrentExecutions Tags KmsKeyArn "
        + " ".join(name for name in _SETTINGS if name != "KMSKeyArn"),
        replace="FunctionName PackageType",
    ),
    _create_function,
    _update_function,
    _delete_function,
    frozenset(("Arn",)),
    required=("Code", "Role"),
    name="FunctionName",
)


def _publish(work: Work, new: Properties) -> Made:
    answer = work.call(
        "lambda",
        "PublishVersion",
        FunctionName=new.get("FunctionName"),
        Description=new.get("Description"),
        CodeSha256=new.get("CodeSha256"),
    )
    arn = answer["FunctionArn"]
    if not arn.endswith(f":{answer['Version']}"):
        arn = f"{arn}:{answer['Version']}"
    return Made(arn, {"Version": answer["Version"], "FunctionArn": arn})


def _delete_version(work: Work, made: Made, old: Properties) -> None:
    work.call("lambda", "DeleteFunction", FunctionName=old["FunctionName"], Qualifier=str(made.attributes["Version"]))


VERSION = Kind(
    "AWS::Lambda::Version",
    properties(replace="FunctionName Description CodeSha256"),
    _publish,
    delete=_delete_version,
    attributes=frozenset(("Version", "FunctionArn")),
    required=("FunctionName",),
)


def _routing(new: Properties) -> dict[str, Any] | None:
    routing = new.get("RoutingConfig")
    if routing is None:
        return None
    try:
        weights = {item["FunctionVersion"]: item["FunctionWeight"] for item in routing["AdditionalVersionWeights"]}
    except (TypeError, KeyError):
        raise Problem(
            "The property RoutingConfig takes AdditionalVersionWeights: a list of FunctionVersion and FunctionWeight."
        ) from None
    return {"AdditionalVersionWeights": weights}


def _create_alias(work: Work, new: Properties) -> Made:
    answer = work.call(
        "lambda",
        "CreateAlias",
        FunctionName=new.get("FunctionName"),
        Name=new.get("Name"),
        FunctionVersion=new.get("FunctionVersion"),
        Description=new.get("Description"),
        RoutingConfig=_routing(new),
    )
    return Made(answer["AliasArn"], {"AliasArn": answer["AliasArn"]})


def _update_alias(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    work.call(
        "lambda",
        "UpdateAlias",
        FunctionName=new["FunctionName"],
        Name=new["Name"],
        FunctionVersion=new.get("FunctionVersion"),
        Description=new.get("Description", ""),
        RoutingConfig=_routing(new) or ({"AdditionalVersionWeights": {}} if "RoutingConfig" in old else None),
    )
    return made


def _delete_alias(work: Work, made: Made, old: Properties) -> None:
    work.call("lambda", "DeleteAlias", FunctionName=old["FunctionName"], Name=old["Name"])


ALIAS = Kind(
    "AWS::Lambda::Alias",
    properties("FunctionVersion Description RoutingConfig", replace="FunctionName Name"),
    _create_alias,
    _update_alias,
    _delete_alias,
    frozenset(("AliasArn",)),
    required=("FunctionName", "FunctionVersion", "Name"),
)

_PERMISSION = (
    "FunctionName Action Principal SourceArn SourceAccount EventSourceToken FunctionUrlAuthType PrincipalOrgID"
)


def _permit(work: Work, new: Properties) -> Made:
    statement = work.name(100)
    if work.offers("lambda", "AddPermission"):
        work.call("lambda", "AddPermission", StatementId=statement, **dict(new))
    return Made(statement, {"Id": statement})


def _forbid(work: Work, made: Made, old: Properties) -> None:
    if work.offers("lambda", "RemovePermission"):
        work.call("lambda", "RemovePermission", FunctionName=old["FunctionName"], StatementId=made.physical_id)


PERMISSION = Kind(
    "AWS::Lambda::Permission",
    properties(replace=_PERMISSION),
    _permit,
    delete=_forbid,
    attributes=frozenset(("Id",)),
    required=("FunctionName", "Action", "Principal"),
)


def _asynchronous(new: Properties) -> dict[str, Any]:
    return {
        "FunctionName": new.get("FunctionName"),
        "Qualifier": new.get("Qualifier"),
        "MaximumRetryAttempts": new.get("MaximumRetryAttempts"),
        "MaximumEventAgeInSeconds": new.get("MaximumEventAgeInSeconds"),
        "DestinationConfig": new.get("DestinationConfig"),
    }


def _put_invoke_config(work: Work, new: Properties) -> Made:
    work.call("lambda", "PutFunctionEventInvokeConfig", **_asynchronous(new))
    return Made(work.name(100))


def _update_invoke_config(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    work.call("lambda", "PutFunctionEventInvokeConfig", **_asynchronous(new))
    return made


def _delete_invoke_config(work: Work, made: Made, old: Properties) -> None:
    work.call(
        "lambda", "DeleteFunctionEventInvokeConfig", FunctionName=old["FunctionName"], Qualifier=old.get("Qualifier")
    )


INVOKE_CONFIG = Kind(
    "AWS::Lambda::EventInvokeConfig",
    properties("MaximumRetryAttempts MaximumEventAgeInSeconds DestinationConfig", replace="FunctionName Qualifier"),
    _put_invoke_config,
    _update_invoke_config,
    _delete_invoke_config,
    required=("FunctionName", "Qualifier"),
)

_MAPPING_IN_PLACE = (
    "FunctionName BatchSize BisectBatchOnFunctionError DestinationConfig Enabled FilterCriteria FunctionResponseTypes"
    " MaximumBatchingWindowInSeconds MaximumRecordAgeInSeconds MaximumRetryAttempts ParallelizationFactor"
    " ScalingConfig TumblingWindowInSeconds"
)


def _create_mapping(work: Work, new: Properties) -> Made:
    given = {name: value for name, value in new.items() if name != "Tags"}
    answer = work.call("lambda", "CreateEventSourceMapping", Tags=tag_map(new), **given)
    arn = answer.get("EventSourceMappingArn") or work.arn("lambda", f"event-source-mapping:{answer['UUID']}")
    return Made(answer["UUID"], {"Id": answer["UUID"], "EventSourceMappingArn": arn})


# What a mapping's setting goes back to. https://docs.aws.amazon.com/lambda/latest/api/API_UpdateEventSourceMapping.html
_MAPPING_DEFAULTS: Mapping[str, Any] = {
    "BatchSize": 10,
    "Enabled": True,
    "FilterCriteria": {"Filters": []},
    "FunctionResponseTypes": [],
    "MaximumBatchingWindowInSeconds": 0,
    "ScalingConfig": {},
    "BisectBatchOnFunctionError": False,
    "DestinationConfig": {},
    "MaximumRecordAgeInSeconds": -1,
    "MaximumRetryAttempts": -1,
    "ParallelizationFactor": 1,
    "TumblingWindowInSeconds": 0,
}
_STREAM_DEFAULTS = {**_MAPPING_DEFAULTS, "BatchSize": 100}


def _update_mapping(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    defaults = _STREAM_DEFAULTS if "StartingPosition" in new else _MAPPING_DEFAULTS
    request = {name: new.get(name, defaults.get(name)) for name in _MAPPING_IN_PLACE.split() if changed(old, new, name)}
    if request:
        work.call("lambda", "UpdateEventSourceMapping", UUID=made.physical_id, **request)
    set_tags(work, "lambda", "Resource", made.attributes["EventSourceMappingArn"], old, new, keys="TagKeys")
    return made


def _delete_mapping(work: Work, made: Made, old: Properties) -> None:
    work.call("lambda", "DeleteEventSourceMapping", UUID=made.physical_id)


MAPPING = Kind(
    "AWS::Lambda::EventSourceMapping",
    properties(f"{_MAPPING_IN_PLACE} Tags", replace="EventSourceArn StartingPosition StartingPositionTimestamp"),
    _create_mapping,
    _update_mapping,
    _delete_mapping,
    frozenset(("Id", "EventSourceMappingArn")),
    required=("FunctionName",),
)

KINDS = (FUNCTION, VERSION, ALIAS, PERMISSION, INVOKE_CONFIG, MAPPING)
