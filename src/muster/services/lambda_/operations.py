"""The thin face of the Lambda service: AWS's operations and shapes, in and out.

Does not know how anything is done; the modules beside it do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from muster.errors import ServiceError
from muster.operation import Answer, Operation, Request, Service
from muster.services.lambda_ import (
    aftermath,
    aliases,
    counting,
    event_sources,
    functions,
    invocations,
    invoke_configs,
    invoking,
    mappings,
    permissions,
    settings,
    sources,
)
from muster.services.lambda_.code import ReadBlob, no_blobs
from muster.services.lambda_.names import LATEST, Name, not_found, parse
from muster.services.lambda_.schema import MIGRATIONS
from muster.store.blobs import Blobs
from muster.transaction import Transaction

# AWS caps a page of functions or versions at 50, of the rest at 10,000 or 50; one cap serves them all.
PAGE_MAX = 50


def _name(tx: Transaction, request: Request) -> Name:
    return parse(tx, request["FunctionName"], request.get("Qualifier"))


def _unqualified(tx: Transaction, request: Request) -> str:
    name = _name(tx, request)
    if name.qualifier not in (None, LATEST):
        raise ServiceError(
            "InvalidParameterValueException",
            "This operation does not permit qualified function names.",
            fields={"Type": "User"},
        )
    return name.function


def _page(items: Sequence[dict[str, Any]], request: Request, member: str) -> Answer:
    """One page of `items`; the marker is the number of those already shown."""
    marker = request.get("Marker") or "0"
    if not marker.isdigit():
        raise ServiceError("InvalidParameterValueException", f"Invalid Marker: {marker}")
    start = int(marker)
    end = start + min(request.get("MaxItems", PAGE_MAX), PAGE_MAX)
    answer: Answer = {member: list(items[start:end])}
    if end < len(items):
        answer["NextMarker"] = str(end)
    return answer


def create_function(tx: Transaction, request: Request, read_blob: ReadBlob = no_blobs) -> Answer:
    version = functions.create(tx, request, _unqualified(tx, request), read_blob)
    if request.get("Publish"):
        version = functions.publish(tx, version.function, {})
    return functions.described(tx, version, None)


def update_function_code(tx: Transaction, request: Request, read_blob: ReadBlob = no_blobs) -> Answer:
    name = _unqualified(tx, request)
    version = functions.update_code(tx, name, request, read_blob, dry_run=bool(request.get("DryRun")))
    if request.get("Publish") and not request.get("DryRun"):
        version = functions.publish(tx, name, {})
    return functions.described(tx, version, None)


def update_function_configuration(tx: Transaction, request: Request) -> Answer:
    return functions.described(tx, functions.update_settings(tx, _unqualified(tx, request), request), None)


def get_function(tx: Transaction, request: Request) -> Answer:
    name = _name(tx, request)
    version = functions.resolved(tx, name)
    answer: Answer = {
        "Configuration": functions.described(tx, version, name.qualifier),
        "Code": {"RepositoryType": "S3"},
    }
    tags = functions.tags(tx, name.function)
    if tags:
        answer["Tags"] = tags
    concurrency = get_function_concurrency(tx, {"FunctionName": name.function})
    if concurrency:
        answer["Concurrency"] = concurrency
    return answer


def get_function_configuration(tx: Transaction, request: Request) -> Answer:
    name = _name(tx, request)
    return functions.described(tx, functions.resolved(tx, name), name.qualifier)


def list_functions(tx: Transaction, request: Request) -> Answer:
    count = min(request.get("MaxItems", PAGE_MAX), PAGE_MAX)
    found = functions.listed(tx, request.get("Marker", ""), count + 1)
    shown: list[dict[str, Any]] = []
    for version in found[:count]:
        if request.get("FunctionVersion") == "ALL":
            shown.extend(
                functions.described(tx, each, each.version) for each in functions.versions(tx, version.function)
            )
        else:
            shown.append(functions.described(tx, version, None))
    answer: Answer = {"Functions": shown}
    if len(found) > count:
        answer["NextMarker"] = found[count - 1].function
    return answer


def delete_function(tx: Transaction, request: Request) -> Answer:
    name = _name(tx, request)
    functions.delete(tx, name.function, name.qualifier)
    if name.qualifier is None:
        aftermath.function_deleted(tx, name.function)
    return {"StatusCode": 204}


def publish_version(tx: Transaction, request: Request) -> Answer:
    return functions.described(tx, functions.publish(tx, _unqualified(tx, request), request), None)


def list_versions_by_function(tx: Transaction, request: Request) -> Answer:
    found = functions.versions(tx, _name(tx, request).function)
    return _page([functions.described(tx, version, version.version) for version in found], request, "Versions")


def create_alias(tx: Transaction, request: Request) -> Answer:
    return aliases.create(tx, _name(tx, request).function, request)


def get_alias(tx: Transaction, request: Request) -> Answer:
    return aliases.get(tx, _name(tx, request).function, request["Name"])


def update_alias(tx: Transaction, request: Request) -> Answer:
    return aliases.update(tx, _name(tx, request).function, request["Name"], request)


def delete_alias(tx: Transaction, request: Request) -> Answer:
    aliases.delete(tx, _name(tx, request).function, request["Name"])
    return {}


def list_aliases(tx: Transaction, request: Request) -> Answer:
    found = aliases.listed(tx, _name(tx, request).function, request.get("FunctionVersion"))
    return _page(found, request, "Aliases")


def add_permission(tx: Transaction, request: Request) -> Answer:
    return {"Statement": orjson.dumps(permissions.add(tx, _name(tx, request), request)).decode()}


def remove_permission(tx: Transaction, request: Request) -> Answer:
    permissions.remove(tx, _name(tx, request), request["StatementId"])
    return {}


def get_policy(tx: Transaction, request: Request) -> Answer:
    return permissions.policy(tx, _name(tx, request))


def _tagged(tx: Transaction, request: Request) -> str:
    name = parse(tx, request["Resource"])
    functions.require(tx, name.function)
    return name.function


def tag_resource(tx: Transaction, request: Request) -> Answer:
    mapping = event_sources.tagged(tx, request["Resource"])
    if mapping is not None:
        mappings.set_tags(tx, mapping, {**mapping.tags, **request["Tags"]})
        return {}
    name = _tagged(tx, request)
    functions.set_tags(tx, name, {**functions.tags(tx, name), **request["Tags"]})
    return {}


def untag_resource(tx: Transaction, request: Request) -> Answer:
    gone = set(request["TagKeys"])
    mapping = event_sources.tagged(tx, request["Resource"])
    if mapping is not None:
        mappings.set_tags(tx, mapping, {key: value for key, value in mapping.tags.items() if key not in gone})
        return {}
    name = _tagged(tx, request)
    functions.set_tags(tx, name, {key: value for key, value in functions.tags(tx, name).items() if key not in gone})
    return {}


def list_tags(tx: Transaction, request: Request) -> Answer:
    mapping = event_sources.tagged(tx, request["Resource"])
    if mapping is not None:
        return {"Tags": dict(mapping.tags)}
    return {"Tags": functions.tags(tx, _tagged(tx, request))}


def put_function_concurrency(tx: Transaction, request: Request) -> Answer:
    name = _unqualified(tx, request)
    functions.require(tx, name)
    wanted = request["ReservedConcurrentExecutions"]
    others = tx.one("SELECT SUM(reserved) AS reserved FROM lambda_functions WHERE name <> :name", name=name)
    taken = (others["reserved"] if others is not None else None) or 0
    if wanted + taken > settings.RESERVED_MAX:
        raise ServiceError(
            "InvalidParameterValueException",
            "Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below its "
            "minimum value of [100].",
            fields={"Type": "User"},
        )
    tx.run("UPDATE lambda_functions SET reserved = :reserved WHERE name = :name", reserved=wanted, name=name)
    invocations.admit(tx)
    return {"ReservedConcurrentExecutions": wanted}


def get_function_concurrency(tx: Transaction, request: Request) -> Answer:
    name = _name(tx, request).function
    row = tx.one("SELECT reserved FROM lambda_functions WHERE name = :name", name=name)
    if row is None:
        raise not_found(tx, name)
    return {} if row["reserved"] is None else {"ReservedConcurrentExecutions": row["reserved"]}


def delete_function_concurrency(tx: Transaction, request: Request) -> Answer:
    name = _unqualified(tx, request)
    functions.require(tx, name)
    tx.run("UPDATE lambda_functions SET reserved = NULL WHERE name = :name", name=name)
    invocations.admit(tx)
    return {}


def put_function_event_invoke_config(tx: Transaction, request: Request) -> Answer:
    return invoke_configs.put(tx, _name(tx, request), request)


def update_function_event_invoke_config(tx: Transaction, request: Request) -> Answer:
    return invoke_configs.update(tx, _name(tx, request), request)


def get_function_event_invoke_config(tx: Transaction, request: Request) -> Answer:
    return invoke_configs.get(tx, _name(tx, request))


def delete_function_event_invoke_config(tx: Transaction, request: Request) -> Answer:
    invoke_configs.delete(tx, _name(tx, request))
    return {}


def list_function_event_invoke_configs(tx: Transaction, request: Request) -> Answer:
    found = invoke_configs.listed(tx, _name(tx, request).function)
    return _page(found, request, "FunctionEventInvokeConfigs")


def get_account_settings(tx: Transaction, request: Request) -> Answer:
    [functions_] = tx.all("SELECT COUNT(*) AS count, SUM(reserved) AS reserved FROM lambda_functions")
    [versions] = tx.all("SELECT SUM(code_size) AS size FROM lambda_versions")
    return {
        "AccountLimit": {
            "TotalCodeSize": 80_530_636_800,
            "CodeSizeUnzipped": 262_144_000,
            "CodeSizeZipped": 52_428_800,
            "ConcurrentExecutions": 1000,
            "UnreservedConcurrentExecutions": 1000 - (functions_["reserved"] or 0),
        },
        "AccountUsage": {"TotalCodeSize": versions["size"] or 0, "FunctionCount": functions_["count"]},
    }


def _row(
    run: Callable[[Transaction, Mapping[str, Any]], Any], accepts: str, *, reads: bool = False, internal: bool = False
) -> Operation:
    return Operation(run, frozenset(accepts.split()), reads=reads, internal=internal)


_SETTINGS = " ".join(sorted(settings.CHANGEABLE))
_PAGE = "Marker MaxItems"
_INVOKE_CONFIG = "FunctionName Qualifier MaximumRetryAttempts MaximumEventAgeInSeconds DestinationConfig"

OPERATIONS: dict[str, Operation] = {
    "CreateFunction": _row(create_function, f"FunctionName Code Publish PackageType Architectures Tags {_SETTINGS}"),
    "UpdateFunctionCode": _row(
        update_function_code,
        "FunctionName ZipFile S3Bucket S3Key S3ObjectVersion S3ObjectStorageMode Architectures Publish DryRun RevisionId",
    ),
    "UpdateFunctionConfiguration": _row(update_function_configuration, f"FunctionName RevisionId {_SETTINGS}"),
    "GetFunction": _row(get_function, "FunctionName Qualifier", reads=True),
    "GetFunctionConfiguration": _row(get_function_configuration, "FunctionName Qualifier", reads=True),
    "ListFunctions": _row(list_functions, f"FunctionVersion {_PAGE}", reads=True),
    "DeleteFunction": _row(delete_function, "FunctionName Qualifier"),
    "PublishVersion": _row(publish_version, "FunctionName CodeSha256 Description RevisionId"),
    "ListVersionsByFunction": _row(list_versions_by_function, f"FunctionName {_PAGE}", reads=True),
    "CreateAlias": _row(create_alias, "FunctionName Name FunctionVersion Description RoutingConfig"),
    "GetAlias": _row(get_alias, "FunctionName Name", reads=True),
    "UpdateAlias": _row(update_alias, "FunctionName Name FunctionVersion Description RoutingConfig RevisionId"),
    "DeleteAlias": _row(delete_alias, "FunctionName Name"),
    "ListAliases": _row(list_aliases, f"FunctionName FunctionVersion {_PAGE}", reads=True),
    "AddPermission": _row(
        add_permission,
        "FunctionName StatementId Action Principal SourceArn SourceAccount Qualifier RevisionId PrincipalOrgID",
    ),
    "RemovePermission": _row(remove_permission, "FunctionName StatementId Qualifier RevisionId"),
    "GetPolicy": _row(get_policy, "FunctionName Qualifier", reads=True),
    "TagResource": _row(tag_resource, "Resource Tags"),
    "UntagResource": _row(untag_resource, "Resource TagKeys"),
    "ListTags": _row(list_tags, "Resource", reads=True),
    "PutFunctionConcurrency": _row(put_function_concurrency, "FunctionName ReservedConcurrentExecutions"),
    "GetFunctionConcurrency": _row(get_function_concurrency, "FunctionName", reads=True),
    "DeleteFunctionConcurrency": _row(delete_function_concurrency, "FunctionName"),
    "PutFunctionEventInvokeConfig": _row(put_function_event_invoke_config, _INVOKE_CONFIG),
    "UpdateFunctionEventInvokeConfig": _row(update_function_event_invoke_config, _INVOKE_CONFIG),
    "GetFunctionEventInvokeConfig": _row(get_function_event_invoke_config, "FunctionName Qualifier", reads=True),
    "DeleteFunctionEventInvokeConfig": _row(delete_function_event_invoke_config, "FunctionName Qualifier"),
    "ListFunctionEventInvokeConfigs": _row(list_function_event_invoke_configs, f"FunctionName {_PAGE}", reads=True),
    **event_sources.OPERATIONS,
    "GetAccountSettings": _row(get_account_settings, "", reads=True),
    "Invoke": _row(invoking.invoke, "FunctionName InvocationType LogType ClientContext Payload Qualifier"),
    "BeginInvocation": _row(
        invoking.begin_invocation, "FunctionName Qualifier Payload ClientContext Reply", internal=True
    ),
    "CancelInvocation": _row(invoking.cancel_invocation, "InvocationId", internal=True),
    "TakeInvocation": _row(invoking.take_invocation, "InvocationId Attempt", reads=True, internal=True),
    "FinishInvocation": _row(
        invoking.finish_invocation, "InvocationId Payload FunctionError LogTail LogStream Error", internal=True
    ),
    "CountInvocations": _row(counting.count, "FunctionName Start End", reads=True, internal=True),
    "RecoverInvocations": _row(invoking.recover, "", internal=True),
    "GetCode": _row(invoking.get_code, "CodeSha256", reads=True, internal=True),
}


def service(blobs: Blobs) -> Service:
    """The Lambda service; `blobs` is where large objects of S3 lie, from which code may come."""
    return replace(
        SERVICE,
        operations={
            **OPERATIONS,
            "CreateFunction": replace(OPERATIONS["CreateFunction"], run=partial(create_function, read_blob=blobs.read)),
            "UpdateFunctionCode": replace(
                OPERATIONS["UpdateFunctionCode"], run=partial(update_function_code, read_blob=blobs.read)
            ),
        },
    )


SERVICE = Service(
    name="lambda",
    operations=OPERATIONS,
    migrations=MIGRATIONS,
    carriers={
        **sources.CARRIERS,
        aftermath.RETRY: aftermath.carry_retry,
        aftermath.DESTINATION: aftermath.carry_to_destination,
        invocations.EXPIRE: aftermath.carry_expiry,
    },
)
