"""What a table is: its keys, its indexes and its settings, as one value that is stored as JSON.

Keeps true: a definition that was built by `defined` has keys with types, indexes with distinct names and numbers, and
settings that go together. Does not know the items.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

from muster.errors import unsupported
from muster.services.dynamodb.key import Schema
from muster.services.dynamodb.refusal import invalid, invalid_values

# "Quotas": indexes per table.
GLOBAL_INDEXES_MAX = 20
LOCAL_INDEXES_MAX = 5

NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index. `number` is never used twice in a table; `ready` once all items are in it."""

    name: str
    number: int
    schema: Schema
    is_global: bool
    projection: Mapping[str, Any]
    throughput: Mapping[str, Any] | None = None
    ready: bool = True

    def projects_all(self) -> bool:
        """Whether whole items are read through it."""
        return bool(self.projection["ProjectionType"] == "ALL")


@dataclass(frozen=True, slots=True)
class Definition:
    """A table's definition. Settings that are only accepted and shown are kept in AWS's own form in `shown`;
    `recovery` are the days of point-in-time recovery."""

    name: str
    uuid: str
    created_at: float
    attributes: Mapping[str, str]
    schema: Schema
    indexes: tuple[Index, ...]
    billing_mode: str
    throughput: Mapping[str, Any] | None
    stream: Mapping[str, Any] | None = None
    stream_label: str | None = None
    stream_started_at: float | None = None
    ttl_attribute: str | None = None
    ttl_changed_at: float | None = None
    deletion_protection: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)
    next_index_number: int = 0
    recovery: int = 0

    def index(self, name: str) -> Index | None:
        """The index of that name."""
        return next((index for index in self.indexes if index.name == name), None)

    def key_attributes(self) -> frozenset[str]:
        """The attributes of the table's own key and of its indexes' keys."""
        return frozenset(self.schema.names()).union(*(index.schema.names() for index in self.indexes))

    def text(self) -> str:
        """The definition as it is stored."""
        return orjson.dumps(self).decode()


@lru_cache(maxsize=1024)
def read(text: str) -> Definition:
    """The definition that was stored as `text`."""
    content = orjson.loads(text)
    content["schema"] = Schema(**content["schema"])
    content["indexes"] = tuple(Index(**{**index, "schema": Schema(**index["schema"])}) for index in content["indexes"])
    return Definition(**content)


def defined(request: Mapping[str, Any], uuid: str, now: float) -> Definition:
    """The definition that a CreateTable asks for; ValidationException when its parts do not go together."""
    name = request["TableName"]
    if not 3 <= len(name) <= 255:
        raise invalid("TableName must be at least 3 characters long and at most 255 characters long")
    if not NAME_CHARACTERS.issuperset(name):
        raise invalid(
            f"1 validation error detected: Value '{name}' at 'tableName' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
        )
    attributes = attribute_types(request.get("AttributeDefinitions") or ())
    if not request.get("KeySchema"):
        raise invalid_values("KeySchema must be specified")
    local = request.get("LocalSecondaryIndexes")
    global_ = request.get("GlobalSecondaryIndexes")
    for parameter, given in (("LocalSecondaryIndexes", local), ("GlobalSecondaryIndexes", global_)):
        if given is not None and not given:
            raise invalid_values(f"List of {parameter} is empty")
    schema = _schema(request["KeySchema"], attributes)
    billing_mode = request.get("BillingMode", "PROVISIONED")
    throughput = request.get("ProvisionedThroughput")
    check_throughput(billing_mode, throughput)
    indexes: list[Index] = []
    for is_global, given in ((False, local), (True, global_)):
        for wanted in given or ():
            indexes.append(_index(wanted, len(indexes), is_global, attributes, schema, billing_mode))
    _check_indexes(indexes, schema)
    _check_attributes_used(attributes, schema, indexes)
    definition = Definition(
        name,
        uuid,
        now,
        attributes,
        schema,
        tuple(indexes),
        billing_mode,
        throughput if billing_mode == "PROVISIONED" else None,
        deletion_protection=bool(request.get("DeletionProtectionEnabled")),
        tags={tag["Key"]: tag["Value"] for tag in request.get("Tags") or ()},
        shown=settings_shown(request),
        next_index_number=len(indexes),
    )
    return with_stream(definition, request.get("StreamSpecification"), now)


def settings_shown(request: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are only accepted and shown again, as DescribeTable shows them."""
    shown: dict[str, Any] = {}
    if "TableClass" in request:
        shown["TableClassSummary"] = {"TableClass": request["TableClass"]}
    if "OnDemandThroughput" in request:
        shown["OnDemandThroughput"] = dict(request["OnDemandThroughput"])
    encryption = request.get("SSESpecification")
    if encryption is not None and encryption.get("Enabled"):
        shown["SSEDescription"] = {
            "Status": "ENABLED",
            "SSEType": encryption.get("SSEType", "KMS"),
            **({"KMSMasterKeyArn": encryption["KMSMasterKeyId"]} if "KMSMasterKeyId" in encryption else {}),
        }
    return shown


def attribute_types(given: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """AttributeDefinitions as types by name."""
    types: dict[str, str] = {}
    for attribute in given:
        name = attribute["AttributeName"]
        if name in types:
            raise invalid_values(f"Duplicate AttributeName in AttributeDefinitions: {name}")
        types[name] = attribute["AttributeType"]
    return types


def check_throughput(billing_mode: str, throughput: Mapping[str, Any] | None) -> None:
    """ValidationException when the billing mode and the throughput do not go together."""
    if billing_mode == "PAY_PER_REQUEST" and throughput and any(throughput.values()):
        raise invalid_values(
            "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
        )
    if billing_mode == "PROVISIONED" and throughput is None:
        raise invalid_values(
            "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"
        )


def _schema(given: Sequence[Mapping[str, Any]], attributes: Mapping[str, str]) -> Schema:
    if given[0]["KeyType"] != "HASH":
        raise invalid("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
    if len(given) > 1 and given[1]["KeyType"] != "RANGE":
        raise invalid("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
    if len(given) > 2:
        raise unsupported("key schemas of more than two attributes")
    names = [element["AttributeName"] for element in given]
    if len(set(names)) != len(names):
        raise invalid_values("Both the Hash Key and the Range Key element in the KeySchema have the same name")
    undefined = [name for name in names if name not in attributes]
    if undefined:
        raise invalid_values(
            "Some index key attributes are not defined in AttributeDefinitions. "
            f"Keys: [{', '.join(undefined)}], AttributeDefinitions: [{', '.join(sorted(attributes))}]"
        )
    types = [attributes[name] for name in names]
    if len(names) == 1:
        return Schema(names[0], types[0])
    return Schema(names[0], types[0], names[1], types[1])


def _index(
    wanted: Mapping[str, Any],
    number: int,
    is_global: bool,
    attributes: Mapping[str, str],
    table: Schema,
    billing_mode: str,
) -> Index:
    name = wanted["IndexName"]
    strange = wanted.keys() - {"IndexName", "KeySchema", "Projection", "ProvisionedThroughput"}
    if strange:
        raise unsupported(f"the parameter {', '.join(sorted(strange))} of an index")
    schema = _schema(wanted["KeySchema"], attributes)
    projection = dict(wanted.get("Projection") or {})
    kind = projection.get("ProjectionType")
    if kind is None:
        raise invalid_values("Unknown ProjectionType: null")
    if kind != "INCLUDE" and "NonKeyAttributes" in projection:
        raise invalid_values(f"ProjectionType is {kind}, but NonKeyAttributes is specified")
    if kind == "INCLUDE" and not projection.get("NonKeyAttributes"):
        raise invalid_values("ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
    if not is_global:
        if table.range_name is None:
            raise invalid_values(
                "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"
            )
        if schema.range_name is None:
            raise invalid_values(f"Index KeySchema does not have a range key for index: {name}")
        if schema.hash_name != table.hash_name:
            raise invalid_values(
                f"Index KeySchema does not have the same leading hash key as table KeySchema for index: {name}. "
                f"index hash key: {schema.hash_name}, table hash key: {table.hash_name}"
            )
        return Index(name, number, schema, False, projection)
    throughput = wanted.get("ProvisionedThroughput")
    if billing_mode == "PROVISIONED" and throughput is None:
        raise invalid_values(f"ProvisionedThroughput is not specified for index: {name}")
    return Index(name, number, schema, True, projection, throughput if billing_mode == "PROVISIONED" else None)


def _check_indexes(indexes: Sequence[Index], schema: Schema) -> None:
    names: set[str] = set()
    for index in indexes:
        if index.name in names:
            raise invalid_values(f"Duplicate index name: {index.name}")
        names.add(index.name)
    if sum(index.is_global for index in indexes) > GLOBAL_INDEXES_MAX:
        raise invalid_values(f"GlobalSecondaryIndex count exceeds the per-table limit of {GLOBAL_INDEXES_MAX}")
    if sum(not index.is_global for index in indexes) > LOCAL_INDEXES_MAX:
        raise invalid_values(f"Number of LocalSecondaryIndexes exceeds per-table limit of {LOCAL_INDEXES_MAX}")


def _check_attributes_used(attributes: Mapping[str, str], schema: Schema, indexes: Sequence[Index]) -> None:
    """ValidationException when an attribute is defined that is part of no key."""
    used = set(schema.names()).union(*(index.schema.names() for index in indexes))
    if attributes.keys() == used:
        return
    if not indexes:
        raise invalid_values(
            "Number of attributes in KeySchema does not exactly match number of attributes defined in "
            "AttributeDefinitions"
        )
    raise invalid_values(
        f"Some AttributeDefinitions are not used. AttributeDefinitions: [{', '.join(sorted(attributes))}], "
        f"keys used: [{', '.join(sorted(used))}]"
    )


def with_stream(definition: Definition, specification: Mapping[str, Any] | None, now: float) -> Definition:
    """The definition with its stream switched on or off."""
    if specification is None:
        return definition
    if not specification["StreamEnabled"]:
        if "StreamViewType" in specification:
            raise invalid_values("StreamViewType cannot be specified when StreamEnabled is false")
        return replace(definition, stream=None)
    if "StreamViewType" not in specification:
        raise invalid_values("StreamViewType must be specified when StreamEnabled is true")
    return replace(
        definition,
        stream={"StreamEnabled": True, "StreamViewType": specification["StreamViewType"]},
        stream_label=_label(now),
        stream_started_at=now,
    )


def relabelled(definition: Definition) -> Definition:
    """The definition with its stream's label a millisecond later."""
    assert definition.stream_started_at is not None
    later = definition.stream_started_at + 0.001
    return replace(definition, stream_label=_label(later), stream_started_at=later)


def _label(now: float) -> str:
    milliseconds = round(now * 1000)
    return datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + (
        f"{milliseconds % 1000:03d}"
    )


def with_index(definition: Definition, wanted: Mapping[str, Any]) -> tuple[Definition, Index]:
    """The definition with one more global index, which is not ready yet."""
    index = _index(
        wanted, definition.next_index_number, True, definition.attributes, definition.schema, definition.billing_mode
    )
    index = replace(index, ready=False)
    indexes = (*definition.indexes, index)
    _check_indexes(indexes, definition.schema)
    return replace(definition, indexes=indexes, next_index_number=index.number + 1), index
