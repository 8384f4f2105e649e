"""The thin face of the logs service: AWS's operations and shapes, in and out."""

import itertools
from collections.abc import Callable
from typing import Any

import orjson

from muster.arn import arn
from muster.errors import ServiceError
from muster.operation import Answer, Operation, Request, Service
from muster.services.logs import streams
from muster.services.logs.filtering import compiled
from muster.services.logs.schema import MIGRATIONS
from muster.services.logs.streams import LogEvent
from muster.transaction import Row, Transaction

# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html
EVENTS_MAX = 10_000
BATCH_BYTES_MAX = 1_048_576
# The service's page of events: 10,000, or 1 MB.
PAGE_EVENTS_MAX = 10_000
PAGE_BYTES_MAX = 1_048_576
DESCRIBE_MAX = 50
# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
RETENTION_DAYS = frozenset(
    {1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}
)


def _group_name(request: Request) -> str:
    """The group's name, given as such or by its ARN."""
    name = request.get("logGroupName")
    identifier = request.get("logGroupIdentifier")
    if (name is None) == (identifier is None):
        raise ServiceError(
            "InvalidParameterException", "Exactly one of logGroupName and logGroupIdentifier must be given."
        )
    if name is not None:
        return str(name)
    return _named_by_arn(str(identifier))


def _named_by_arn(identifier: str) -> str:
    return identifier.split(":log-group:", 1)[1].removesuffix(":*") if ":log-group:" in identifier else identifier


def _start(request: Request, member: str = "nextToken") -> int:
    token = request.get(member)
    if token is None:
        return 0
    if not token.isdigit():
        raise ServiceError("InvalidParameterException", "The specified nextToken is invalid.")
    return int(token)


def create_log_group(tx: Transaction, request: Request) -> Answer:
    streams.create_group(tx, request["logGroupName"], orjson.dumps(request.get("tags") or {}).decode())
    return {}


def delete_log_group(tx: Transaction, request: Request) -> Answer:
    streams.delete_group(tx, request["logGroupName"])
    return {}


def create_log_stream(tx: Transaction, request: Request) -> Answer:
    streams.create_stream(tx, request["logGroupName"], request["logStreamName"])
    return {}


def delete_log_stream(tx: Transaction, request: Request) -> Answer:
    streams.delete_stream(tx, request["logGroupName"], request["logStreamName"])
    return {}


def _events(request: Request) -> list[LogEvent]:
    return [LogEvent(event["timestamp"], event["message"]) for event in request["logEvents"]]


def put_log_events(tx: Transaction, request: Request) -> Answer:
    events = _events(request)
    size = sum(streams.size_bytes(event.message) for event in events)
    if len(events) > EVENTS_MAX or size > BATCH_BYTES_MAX:
        raise ServiceError(
            "InvalidParameterException", f"Upload too large: {size} bytes exceeds limit of {BATCH_BYTES_MAX}"
        )
    if any(later.at_ms < earlier.at_ms for earlier, later in itertools.pairwise(events)):
        raise ServiceError(
            "InvalidParameterException", "Log events in a single PutLogEvents request must be in chronological order."
        )
    streams.put(tx, request["logGroupName"], request["logStreamName"], events)
    return {"nextSequenceToken": tx.new_id()}


def record_events(tx: Transaction, request: Request) -> Answer:
    """For siblings: append events, creating the group and the stream if need be."""
    streams.ensure(tx, request["logGroupName"], request["logStreamName"])
    streams.put(tx, request["logGroupName"], request["logStreamName"], _events(request))
    return {}


def describe_log_groups(tx: Transaction, request: Request) -> Answer:
    prefix = request.get("logGroupNamePrefix", "")
    infix = request.get("logGroupNamePattern", "").lower()
    start = _start(request)
    limit = min(request.get("limit", DESCRIBE_MAX), DESCRIBE_MAX)
    rows = [
        row
        for row in tx.all("SELECT * FROM logs_groups ORDER BY name")
        if row["name"].startswith(prefix) and infix in row["name"].lower()
    ]
    answer: Answer = {"logGroups": [_group_shown(tx, row) for row in rows[start : start + limit]]}
    if start + limit < len(rows):
        answer["nextToken"] = str(start + limit)
    return answer


def _group_shown(tx: Transaction, row: Row) -> dict[str, Any]:
    name = arn(tx, "logs", f"log-group:{row['name']}")
    size = tx.one("SELECT SUM(stored_bytes) AS size FROM logs_streams WHERE group_name = :name", name=row["name"])
    shown: dict[str, Any] = {
        "logGroupName": row["name"],
        "creationTime": row["created_at_ms"],
        "metricFilterCount": 0,
        "arn": f"{name}:*",
        "logGroupArn": name,
        "storedBytes": (size["size"] if size is not None else None) or 0,
        "logGroupClass": "STANDARD",
    }
    if row["retention_days"] is not None:
        shown["retentionInDays"] = row["retention_days"]
    return shown


def describe_log_streams(tx: Transaction, request: Request) -> Answer:
    group_name = _group_name(request)
    streams.group(tx, group_name)
    prefix = request.get("logStreamNamePrefix", "")
    by_time = request.get("orderBy", "LogStreamName") == "LastEventTime"
    if by_time and prefix:
        raise ServiceError("InvalidParameterException", "Cannot order by LastEventTime with a logStreamNamePrefix.")
    rows = [
        row
        for row in tx.all("SELECT * FROM logs_streams WHERE group_name = :group ORDER BY name", group=group_name)
        if row["name"].startswith(prefix)
    ]
    if by_time:
        rows.sort(key=lambda row: row["last_event_ms"] or 0)
    if request.get("descending"):
        rows.reverse()
    start = _start(request)
    limit = min(request.get("limit", DESCRIBE_MAX), DESCRIBE_MAX)
    answer: Answer = {"logStreams": [_stream_shown(tx, row) for row in rows[start : start + limit]]}
    if start + limit < len(rows):
        answer["nextToken"] = str(start + limit)
    return answer


def _stream_shown(tx: Transaction, row: Row) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "logStreamName": row["name"],
        "creationTime": row["created_at_ms"],
        "arn": arn(tx, "logs", f"log-group:{row['group_name']}:log-stream:{row['name']}"),
        "storedBytes": 0,
    }
    for member, column in (
        ("firstEventTimestamp", "first_event_ms"),
        ("lastEventTimestamp", "last_event_ms"),
        ("lastIngestionTime", "last_ingestion_ms"),
    ):
        if row[column] is not None:
            shown[member] = row[column]
    return shown


def get_log_events(tx: Transaction, request: Request) -> Answer:
    """Events of one stream. A token says where to go on: `f/n` from position n, `b/n` before position n."""
    group_name = _group_name(request)
    row = streams.stream(tx, group_name, request["logStreamName"])
    limit = min(request.get("limit", PAGE_EVENTS_MAX), PAGE_EVENTS_MAX)
    forward, bound = _direction(request, row["events"])
    compare, order = (">=", "ASC") if forward else ("<", "DESC")
    found = tx.all(
        "SELECT * FROM logs_events WHERE group_name = :group AND stream_name = :stream"
        f" AND position {compare} :bound AND at_ms >= :start AND at_ms < :end ORDER BY position {order} LIMIT :limit",
        group=group_name,
        stream=row["name"],
        bound=bound,
        start=request.get("startTime", 0),
        end=request.get("endTime", 1 << 62),
        limit=limit,
    )
    if not forward:
        found = found[::-1]
    first = found[0]["position"] if found else bound
    after = found[-1]["position"] + 1 if found else bound
    return {
        "events": [
            {"timestamp": each["at_ms"], "message": each["message"], "ingestionTime": each["ingested_ms"]}
            for each in found
        ],
        "nextForwardToken": f"f/{after}",
        "nextBackwardToken": f"b/{first}",
    }


def _direction(request: Request, count: int) -> tuple[bool, int]:
    token = request.get("nextToken")
    if token is None:
        return (True, 0) if request.get("startFromHead") else (False, count)
    way, _, position = token.partition("/")
    if way not in ("f", "b") or not position.isdigit():
        raise ServiceError("InvalidParameterException", "The specified nextToken is invalid.")
    return way == "f", int(position)


def filter_log_events(tx: Transaction, request: Request) -> Answer:
    """Events of a group, oldest first, that fit a pattern; the token is the number of events looked at."""
    group_name = _group_name(request)
    streams.group(tx, group_name)
    fits = compiled(request.get("filterPattern", "")).matches
    names = request.get("logStreamNames")
    if names and "logStreamNamePrefix" in request:
        raise ServiceError("InvalidParameterException", "logStreamNames and logStreamNamePrefix exclude each other.")
    prefix = request.get("logStreamNamePrefix", "")
    wanted = set(names or ())
    start = _start(request)
    limit = min(request.get("limit", PAGE_EVENTS_MAX), PAGE_EVENTS_MAX)
    rows = tx.all(
        "SELECT * FROM logs_events WHERE group_name = :group AND at_ms >= :start AND at_ms <= :end"
        " ORDER BY at_ms, stream_name, position LIMIT :count OFFSET :offset",
        group=group_name,
        start=request.get("startTime", 0),
        end=request.get("endTime", 1 << 62),
        count=PAGE_EVENTS_MAX,
        offset=start,
    )
    shown: list[dict[str, Any]] = []
    looked_at = 0
    size = 0
    for row in rows:
        if len(shown) == limit or size > PAGE_BYTES_MAX:
            break
        looked_at += 1
        name = row["stream_name"]
        if (wanted and name not in wanted) or not name.startswith(prefix) or not fits(row["message"]):
            continue
        size += len(row["message"])
        shown.append(
            {
                "logStreamName": name,
                "timestamp": row["at_ms"],
                "message": row["message"],
                "ingestionTime": row["ingested_ms"],
                "eventId": f"{row['at_ms']:014d}{row['position']:010d}{abs(hash_text(name)):020d}",
            }
        )
    answer: Answer = {"events": shown, "searchedLogStreams": []}
    if looked_at < len(rows) or len(rows) == PAGE_EVENTS_MAX:
        answer["nextToken"] = str(start + looked_at)
    return answer


def hash_text(text: str) -> int:
    """A number for a stream's name that is the same in every process."""
    return int.from_bytes(text.encode()[-8:], "big")


def put_retention_policy(tx: Transaction, request: Request) -> Answer:
    streams.group(tx, request["logGroupName"])
    days = request["retentionInDays"]
    if days not in RETENTION_DAYS:
        raise ServiceError(
            "InvalidParameterException",
            f"1 validation error detected: Value '{days}' at 'retentionInDays' failed to satisfy constraint: "
            f"Member must satisfy enum value set: {sorted(RETENTION_DAYS)}",
        )
    tx.run("UPDATE logs_groups SET retention_days = :days WHERE name = :name", days=days, name=request["logGroupName"])
    return {}


def delete_retention_policy(tx: Transaction, request: Request) -> Answer:
    streams.group(tx, request["logGroupName"])
    tx.run("UPDATE logs_groups SET retention_days = NULL WHERE name = :name", name=request["logGroupName"])
    return {}


def _tags(tx: Transaction, name: str) -> dict[str, str]:
    tags: dict[str, str] = orjson.loads(streams.group(tx, name)["tags"])
    return tags


def _set_tags(tx: Transaction, name: str, tags: dict[str, str]) -> None:
    tx.run("UPDATE logs_groups SET tags = :tags WHERE name = :name", tags=orjson.dumps(tags).decode(), name=name)


def tag_resource(tx: Transaction, request: Request) -> Answer:
    name = _named_by_arn(request["resourceArn"])
    _set_tags(tx, name, {**_tags(tx, name), **request["tags"]})
    return {}


def untag_resource(tx: Transaction, request: Request) -> Answer:
    name = _named_by_arn(request["resourceArn"])
    gone = set(request["tagKeys"])
    _set_tags(tx, name, {key: value for key, value in _tags(tx, name).items() if key not in gone})
    return {}


def list_tags_for_resource(tx: Transaction, request: Request) -> Answer:
    return {"tags": _tags(tx, _named_by_arn(request["resourceArn"]))}


def _row(
    run: Callable[[Transaction, Request], Answer], accepts: str, *, reads: bool = False, internal: bool = False
) -> Operation:
    return Operation(run, frozenset(accepts.split()), reads=reads, internal=internal)


OPERATIONS: dict[str, Operation] = {
    "CreateLogGroup": _row(create_log_group, "logGroupName tags"),
    "DeleteLogGroup": _row(delete_log_group, "logGroupName"),
    "CreateLogStream": _row(create_log_stream, "logGroupName logStreamName"),
    "DeleteLogStream": _row(delete_log_stream, "logGroupName logStreamName"),
    "PutLogEvents": _row(put_log_events, "logGroupName logStreamName logEvents sequenceToken"),
    "RecordEvents": _row(record_events, "logGroupName logStreamName logEvents", internal=True),
    "DescribeLogGroups": _row(
        describe_log_groups, "logGroupNamePrefix logGroupNamePattern nextToken limit", reads=True
    ),
    "DescribeLogStreams": _row(
        describe_log_streams,
        "logGroupName logGroupIdentifier logStreamNamePrefix orderBy descending nextToken limit",
        reads=True,
    ),
    "GetLogEvents": _row(
        get_log_events,
        "logGroupName logGroupIdentifier logStreamName startTime endTime nextToken limit startFromHead",
        reads=True,
    ),
    "FilterLogEvents": _row(
        filter_log_events,
        "logGroupName logGroupIdentifier logStreamNames logStreamNamePrefix startTime endTime filterPattern nextToken"
        " limit interleaved",
        reads=True,
    ),
    "PutRetentionPolicy": _row(put_retention_policy, "logGroupName retentionInDays"),
    "DeleteRetentionPolicy": _row(delete_retention_policy, "logGroupName"),
    "TagResource": _row(tag_resource, "resourceArn tags"),
    "UntagResource": _row(untag_resource, "resourceArn tagKeys"),
    "ListTagsForResource": _row(list_tags_for_resource, "resourceArn", reads=True),
}

SERVICE = Service(name="logs", operations=OPERATIONS, migrations=MIGRATIONS)
