"""The operations on event source mappings: AWS's shapes in and out."""

import logging

from muster.arn import Arn
from muster.errors import ServiceError
from muster.operation import Answer, Operation, Request
from muster.services.lambda_ import functions, mapping_settings, mappings, sources
from muster.services.lambda_.functions import Version
from muster.services.lambda_.mapping_settings import Settings, invalid
from muster.services.lambda_.names import Name, parse
from muster.transaction import Transaction

log = logging.getLogger(__name__)

PAGE_MAX = 100


def create_event_source_mapping(tx: Transaction, request: Request) -> Answer:
    source = mapping_settings.source(tx, request.get("EventSourceArn"))
    settings = mapping_settings.initial(source, request)
    name = parse(tx, request["FunctionName"])
    version = _version(tx, name)
    sources.check(tx, source, version)
    mapping = mappings.create(
        tx,
        name,
        str(source),
        settings,
        enabled=request.get("Enabled", True),
        tags=request.get("Tags") or {},
    )
    _advise(tx, source, version, settings)
    sources.start(tx, mapping)
    return mappings.described(tx, mapping, "Creating")


def _version(tx: Transaction, name: Name) -> Version:
    if not functions.exists(tx, name.function):
        raise invalid("Function does not exist")
    return functions.resolved(tx, name)


def _advise(tx: Transaction, source: Arn, version: Version, settings: Settings) -> None:
    """AWS's advice, which it does not enforce: six times the function's timeout, and the window on top.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    if source.service != "sqs":
        return
    request = {"QueueUrl": source.resource, "AttributeNames": ["VisibilityTimeout"]}
    visibility = int(tx.call("sqs", "GetQueueAttributes", request)["Attributes"]["VisibilityTimeout"])
    advised = 6 * version.timeout_seconds + settings["MaximumBatchingWindowInSeconds"]
    if visibility < advised:
        log.warning(
            "queue %s gives messages back after %d seconds; for function %s (timeout %d seconds, batching window %d) "
            "AWS advises %d, so that a batch is not delivered again while it is being worked on",
            source.resource,
            visibility,
            version.function,
            version.timeout_seconds,
            settings["MaximumBatchingWindowInSeconds"],
            advised,
        )


def update_event_source_mapping(tx: Transaction, request: Request) -> Answer:
    mapping = mappings.get(tx, request["UUID"])
    source = Arn.parse(mapping.source_arn)
    settings = mapping_settings.changed(source, mapping.settings, request)
    name = parse(tx, request["FunctionName"]) if request.get("FunctionName") else mapping.function
    version = _version(tx, name)
    sources.check(tx, source, version)
    mappings.refuse_twin(tx, name, mapping.source_arn, but=mapping.id)
    sources.stop(tx, mapping)
    mapping = mappings.change(tx, mapping, name, settings, enabled=request.get("Enabled", mapping.enabled))
    _advise(tx, source, version, settings)
    sources.start(tx, mapping)
    return mappings.described(tx, mapping, "Updating")


def get_event_source_mapping(tx: Transaction, request: Request) -> Answer:
    return mappings.described(tx, mappings.get(tx, request["UUID"]))


def delete_event_source_mapping(tx: Transaction, request: Request) -> Answer:
    mapping = mappings.get(tx, request["UUID"])
    sources.stop(tx, mapping)
    mappings.remove(tx, mapping)
    return mappings.described(tx, mapping, "Deleting")


def list_event_source_mappings(tx: Transaction, request: Request) -> Answer:
    name = request.get("FunctionName")
    found = mappings.listed(tx, request.get("EventSourceArn"), parse(tx, name) if name else None)
    marker = request.get("Marker") or "0"
    if not marker.isdigit():
        raise ServiceError("InvalidParameterValueException", f"Invalid Marker: {marker}")
    start = int(marker)
    end = start + min(request.get("MaxItems", PAGE_MAX), PAGE_MAX)
    answer: Answer = {"EventSourceMappings": [mappings.described(tx, each) for each in found[start:end]]}
    if end < len(found):
        answer["NextMarker"] = str(end)
    return answer


def tagged(tx: Transaction, resource: str) -> mappings.Mapping | None:
    """The mapping that an ARN names; None when it is none of a mapping."""
    _, found, id_ = resource.partition(":event-source-mapping:")
    return mappings.get(tx, id_) if found else None


_SETTINGS = frozenset({"FunctionName", "Enabled", *mapping_settings.MEMBERS})

OPERATIONS: dict[str, Operation] = {
    "CreateEventSourceMapping": Operation(
        create_event_source_mapping,
        _SETTINGS | {"EventSourceArn", "Tags", "StartingPosition", "StartingPositionTimestamp"},
    ),
    "UpdateEventSourceMapping": Operation(update_event_source_mapping, _SETTINGS | {"UUID"}),
    "GetEventSourceMapping": Operation(get_event_source_mapping, frozenset({"UUID"}), reads=True),
    "DeleteEventSourceMapping": Operation(delete_event_source_mapping, frozenset({"UUID"})),
    "ListEventSourceMappings": Operation(
        list_event_source_mappings, frozenset({"EventSourceArn", "FunctionName", "Marker", "MaxItems"}), reads=True
    ),
}
