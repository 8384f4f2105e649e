"""A mapping's settings: what each kind of source takes, within which limits, and what holds when nothing is said.

Keeps true: stored settings are complete and allowed for their source, so that a poll need not check again. Sources:
https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html and
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-parameters.html. Does not know who reads them.
"""

from collections.abc import Mapping
from typing import Any

from muster.arn import Arn
from muster.errors import ServiceError, unsupported
from muster.languages.patterns import InvalidPattern, Pattern
from muster.transaction import Transaction

Settings = dict[str, Any]

# What a source that Muster does not read is called.
OTHERS: Mapping[str, str] = {
    "kinesis": "Kinesis streams",
    "kafka": "Kafka",
    "mq": "Amazon MQ",
    "rds": "DocumentDB",
}
FILTERS_MAX = 5
DESTINATIONS = frozenset({"sqs", "sns"})

# A setting: (least, most).
LIMITS: Mapping[str, tuple[int, int]] = {
    "BatchSize": (1, 10_000),
    "MaximumBatchingWindowInSeconds": (0, 300),
    "ParallelizationFactor": (1, 10),
    "MaximumRecordAgeInSeconds": (-1, 604_800),
    "MaximumRetryAttempts": (-1, 10_000),
}
CONCURRENCY = (2, 1000)

QUEUE: Settings = {"BatchSize": 10, "MaximumBatchingWindowInSeconds": 0, "FunctionResponseTypes": []}
STREAM: Settings = {
    "BatchSize": 100,
    "MaximumBatchingWindowInSeconds": 0,
    "FunctionResponseTypes": [],
    "ParallelizationFactor": 1,
    "BisectBatchOnFunctionError": False,
    "MaximumRecordAgeInSeconds": -1,
    "MaximumRetryAttempts": -1,
    "TumblingWindowInSeconds": 0,
    "DestinationConfig": {"OnFailure": {}},
}
COMMON = ("BatchSize", "MaximumBatchingWindowInSeconds", "FunctionResponseTypes", "FilterCriteria")
# Members of a request that are settings, whichever the source.
MEMBERS = (*STREAM, "FilterCriteria", "ScalingConfig")


def invalid(message: str) -> ServiceError:
    return ServiceError("InvalidParameterValueException", message, fields={"Type": "User"})


def source(tx: Transaction, source_arn: Any) -> Arn:
    """The source of an ARN, once it is known to be one that Muster reads."""
    if not source_arn:
        raise unsupported("event source mappings without an EventSourceArn (self-managed Kafka)")
    try:
        parsed = Arn.parse(source_arn)
    except ValueError:
        raise invalid("Unrecognized event source.") from None
    if parsed.service in OTHERS:
        raise unsupported(f"{OTHERS[parsed.service]} as the event source of a function")
    if parsed.service not in ("sqs", "dynamodb"):
        raise invalid("Unrecognized event source.")
    if parsed.service == "dynamodb" and "/stream/" not in parsed.resource:
        raise invalid("Unrecognized event source. A DynamoDB event source is the stream of a table.")
    if (parsed.account, parsed.region) != (tx.account, tx.region):
        raise unsupported("event sources of other accounts or regions")
    return parsed


def initial(source: Arn, request: Mapping[str, Any]) -> Settings:
    """The settings of a new mapping."""
    if source.service == "sqs":
        if "StartingPosition" in request or "StartingPositionTimestamp" in request:
            raise invalid("StartingPosition is not valid for SQS event sources.")
        return changed(source, QUEUE, request)
    if "StartingPosition" not in request:
        raise invalid(
            "1 validation error detected: Value null at 'startingPosition' failed to satisfy constraint: "
            "Member must not be null."
        )
    if request["StartingPosition"] == "AT_TIMESTAMP" or "StartingPositionTimestamp" in request:
        # "AT_TIMESTAMP is supported only for Amazon Kinesis streams, Amazon DocumentDB, Amazon MSK, and self-managed
        # Apache Kafka."
        raise invalid(f"Unsupported starting position for arn type: {source}")
    return {**changed(source, STREAM, request), "StartingPosition": request["StartingPosition"]}


def changed(source: Arn, current: Mapping[str, Any], request: Mapping[str, Any]) -> Settings:
    """The settings after a request has changed some of them."""
    queue = source.service == "sqs"
    allowed = (*COMMON, "ScalingConfig") if queue else (*STREAM, "FilterCriteria")
    settings = dict(current)
    for name in MEMBERS:
        if name not in request:
            continue
        value = request[name]
        if name not in allowed:
            if value in (None, {}, [], 0, False) or value == STREAM.get(name):
                continue
            raise invalid(f"{name} is not supported for {'SQS' if queue else 'DynamoDB'} event sources.")
        settings[name] = value
    for name, (least, most) in LIMITS.items():
        if name in settings and not least <= settings[name] <= most:
            raise _outside(name, settings[name], least, most)
    if queue:
        _check_queue(source, settings)
    else:
        _check_stream(settings)
    _check_filters(settings)
    return settings


def _outside(name: str, value: Any, least: int, most: int) -> ServiceError:
    member = name[0].lower() + name[1:]
    bound = f"greater than or equal to {least}" if value < least else f"less than or equal to {most}"
    return ServiceError(
        "ValidationException",
        f"1 validation error detected: Value '{value}' at '{member}' failed to satisfy constraint: "
        f"Member must have value {bound}",
        status=400,
    )


def _check_queue(source: Arn, settings: Settings) -> None:
    if source.resource.endswith(".fifo"):
        if settings["MaximumBatchingWindowInSeconds"]:
            raise invalid("Batching window is not supported for FIFO queues")
        if settings["BatchSize"] > 10:
            raise invalid("Batch size must be less than or equal to 10 for FIFO queues")
    elif settings["BatchSize"] > 10 and not settings["MaximumBatchingWindowInSeconds"]:
        raise invalid("Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than 10")
    limit = (settings.get("ScalingConfig") or {}).get("MaximumConcurrency")
    if limit is None:
        settings.pop("ScalingConfig", None)
    elif not CONCURRENCY[0] <= limit <= CONCURRENCY[1]:
        raise _outside("ScalingConfig.MaximumConcurrency", limit, *CONCURRENCY)


def _check_stream(settings: Settings) -> None:
    if settings["TumblingWindowInSeconds"]:
        raise unsupported("TumblingWindowInSeconds of event source mappings")
    age = settings["MaximumRecordAgeInSeconds"]
    if age != -1 and age < 60:
        raise invalid("MaximumRecordAgeInSeconds must be -1 or between 60 and 604800")
    destinations = settings["DestinationConfig"] or {}
    if (destinations.get("OnSuccess") or {}).get("Destination"):
        raise invalid("Unsupported DestinationConfig parameter for given event source mapping type.")
    target = (destinations.get("OnFailure") or {}).get("Destination")
    if not target:
        settings["DestinationConfig"] = {"OnFailure": {}}
    elif not target.startswith("arn:") or Arn.parse(target).service not in DESTINATIONS:
        raise unsupported(f"the destination {target} of an event source mapping; a queue or a topic is")


def _check_filters(settings: Settings) -> None:
    filters = (settings.get("FilterCriteria") or {}).get("Filters") or []
    if not filters:
        settings.pop("FilterCriteria", None)
        return
    if len(filters) > FILTERS_MAX:
        raise invalid(f"Filter criteria can have at most {FILTERS_MAX} filters.")
    for each in filters:
        try:
            Pattern(each.get("Pattern", ""))
        except InvalidPattern:
            raise invalid("Invalid filter pattern definition.") from None
