"""The readers' side of streams: which there are, and their records from an iterator on.

Keeps true: an iterator names a place in a stream, so reading from it again answers the same records while they are
kept. A stream is one shard; it closes when the stream ends.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import orjson

from muster.errors import ServiceError
from muster.operation import Answer, Operation, Request, Service
from muster.services.dynamodb import definition as definitions
from muster.services.dynamodb import stream_listeners
from muster.services.dynamodb import table as tables
from muster.services.dynamodb.refusal import invalid
from muster.services.dynamodb.stream import KEPT_SECONDS, sequence_text
from muster.services.dynamodb.written import with_binaries
from muster.transaction import Row, Transaction

# API reference: an iterator expires fifteen minutes after it was handed out; a page has at most 1000 records.
ITERATOR_SECONDS = 900
RECORDS_MAX = 1000
STREAMS_MAX = 100


def _stream(tx: Transaction, arn: str) -> Row:
    row = tx.one("SELECT * FROM dynamodb_streams WHERE arn = :arn", arn=arn)
    if row is None:
        raise ServiceError("ResourceNotFoundException", f"Requested resource not found: Stream: {arn} not found")
    return row


def _shard_id(stream: Row) -> str:
    return f"shardId-{int(stream['started_at'] * 1000):020d}-00000001"


def list_streams(tx: Transaction, request: Request) -> Answer:
    """ListStreams."""
    limit = min(request.get("Limit", STREAMS_MAX), STREAMS_MAX)
    rows = tx.all(
        "SELECT arn, definition FROM dynamodb_streams WHERE arn > :after AND (ended_at IS NULL OR ended_at > :before)"
        " ORDER BY arn",
        after=request.get("ExclusiveStartStreamArn", ""),
        before=tx.now - KEPT_SECONDS,
    )
    wanted = request.get("TableName")
    streams: list[dict[str, Any]] = []
    for row in rows:
        definition = definitions.read(row["definition"])
        if wanted is not None and definition.name != tables.name_of(wanted):
            continue
        if len(streams) == limit:
            return {"Streams": streams, "LastEvaluatedStreamArn": streams[-1]["StreamArn"]}
        streams.append({"StreamArn": row["arn"], "TableName": definition.name, "StreamLabel": definition.stream_label})
    return {"Streams": streams}


def describe_stream(tx: Transaction, request: Request) -> Answer:
    """DescribeStream."""
    stream = _stream(tx, request["StreamArn"])
    definition = definitions.read(stream["definition"])
    shard = _shard_id(stream)
    assert definition.stream is not None
    numbers = {"StartingSequenceNumber": sequence_text(1)}
    if stream["ended_at"] is not None:
        numbers["EndingSequenceNumber"] = sequence_text(max(1, stream["last_sequence"]))
    after = request.get("ExclusiveStartShardId")
    shards = [{"ShardId": shard, "SequenceNumberRange": numbers}] if after is None or after < shard else []
    return {
        "StreamDescription": {
            "StreamArn": stream["arn"],
            "StreamLabel": definition.stream_label,
            "StreamStatus": "ENABLED" if stream["ended_at"] is None else "DISABLED",
            "StreamViewType": definition.stream["StreamViewType"],
            "CreationRequestDateTime": stream["started_at"],
            "TableName": definition.name,
            "KeySchema": [
                {"AttributeName": name, "KeyType": kind}
                for name, kind in zip(definition.schema.names(), ("HASH", "RANGE"), strict=False)
            ],
            "Shards": shards,
        }
    }


def get_shard_iterator(tx: Transaction, request: Request) -> Answer:
    """GetShardIterator."""
    stream = _stream(tx, request["StreamArn"])
    if request["ShardId"] != _shard_id(stream):
        raise ServiceError(
            "ResourceNotFoundException",
            f"Requested resource not found: Shard: {request['ShardId']} in Stream: {stream['arn']} not found",
        )
    kind, sequence = request["ShardIteratorType"], request.get("SequenceNumber")
    if kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"):
        if sequence is None or not sequence.isdigit():
            raise invalid("SequenceNumber must be specified and be a number for this type of iterator")
        after = int(sequence) - (kind == "AT_SEQUENCE_NUMBER")
        kept = _first_kept(tx, stream)
        if after + 1 < kept:
            raise ServiceError(
                "TrimmedDataAccessException", "The operation attempted to read past the oldest stream record in a shard"
            )
    elif kind == "TRIM_HORIZON":
        after = _first_kept(tx, stream) - 1
    elif kind == "LATEST":
        after = stream["last_sequence"]
    else:
        row = tx.one(
            "SELECT MIN(sequence) AS sequence FROM dynamodb_stream_records WHERE arn = :arn AND written_at >= :at",
            arn=stream["arn"],
            at=float(request.get("Timestamp", 0)),
        )
        after = row["sequence"] - 1 if row is not None and row["sequence"] is not None else stream["last_sequence"]
    return {"ShardIterator": _iterator(tx, stream, after)}


def _first_kept(tx: Transaction, stream: Row) -> int:
    row = tx.one(
        "SELECT MIN(sequence) AS sequence FROM dynamodb_stream_records WHERE arn = :arn AND written_at >= :before",
        arn=stream["arn"],
        before=tx.now - KEPT_SECONDS,
    )
    first: int = row["sequence"] if row is not None and row["sequence"] is not None else stream["last_sequence"] + 1
    return first


def _iterator(tx: Transaction, stream: Row, after: int) -> str:
    content = base64.urlsafe_b64encode(orjson.dumps([after, tx.now])).decode()
    return f"{stream['arn']}|1|{content}"


def _read_iterator(text: str) -> tuple[str, int, float]:
    try:
        arn, _, content = text.split("|")
        after, handed_out_at = orjson.loads(base64.urlsafe_b64decode(content))
    except (ValueError, binascii.Error):
        raise invalid("Invalid ShardIterator") from None
    return arn, after, handed_out_at


def get_records(tx: Transaction, request: Request) -> Answer:
    """GetRecords; no next iterator once a stream that has ended is read to its end."""
    arn, after, handed_out_at = _read_iterator(request["ShardIterator"])
    stream = _stream(tx, arn)
    if handed_out_at + ITERATOR_SECONDS < tx.now:
        raise ServiceError("ExpiredIteratorException", "Shard iterator expired.")
    rows = tx.all(
        "SELECT sequence, record FROM dynamodb_stream_records"
        " WHERE arn = :arn AND sequence > :after AND written_at >= :before ORDER BY sequence LIMIT :many",
        arn=arn,
        after=after,
        before=tx.now - KEPT_SECONDS,
        many=min(request.get("Limit", RECORDS_MAX), RECORDS_MAX),
    )
    last = rows[-1]["sequence"] if rows else after
    answer: Answer = {"Records": [_record(row["record"]) for row in rows]}
    if stream["ended_at"] is None or last < stream["last_sequence"]:
        answer["NextShardIterator"] = _iterator(tx, stream, last)
    return answer


def read_stream(tx: Transaction, request: Request) -> Answer:
    """For siblings: the records after a sequence number, as the JSON they are kept in (binaries in base64)."""
    stream = _stream(tx, request["StreamArn"])
    rows = tx.all(
        "SELECT record FROM dynamodb_stream_records WHERE arn = :arn AND sequence > :after AND sequence <= :through"
        " AND written_at >= :before ORDER BY sequence LIMIT :many",
        arn=stream["arn"],
        after=request["After"],
        through=request.get("Through", stream["last_sequence"]),
        before=tx.now - KEPT_SECONDS,
        many=min(request.get("Limit", RECORDS_MAX), RECORDS_MAX),
    )
    return {
        "Records": [orjson.loads(row["record"]) for row in rows],
        "FirstKept": _first_kept(tx, stream),
        "Last": stream["last_sequence"],
        "ShardId": _shard_id(stream),
    }


def listen(tx: Transaction, request: Request) -> Answer:
    """For siblings: have one delivery of `Kind` and `Subject` posted once there is a record after `After`."""
    arn = _stream(tx, request["StreamArn"])["arn"]
    stream_listeners.listen(
        tx, arn, request["Kind"], request["Subject"], request["After"], request.get("NotBefore", 0.0)
    )
    return {}


def unlisten(tx: Transaction, request: Request) -> Answer:
    stream_listeners.unlisten(tx, request["StreamArn"], request["Kind"], request["Subject"])
    return {}


def _record(text: str) -> Mapping[str, Any]:
    record: dict[str, Any] = orjson.loads(text)
    for name in ("Keys", "NewImage", "OldImage"):
        if name in record["dynamodb"]:
            image = record["dynamodb"][name]
            record["dynamodb"][name] = {each: with_binaries(value) for each, value in image.items()}
    return record


STREAMS = Service(
    "dynamodbstreams",
    {
        "ListStreams": Operation(
            list_streams, frozenset({"TableName", "Limit", "ExclusiveStartStreamArn"}), reads=True
        ),
        "DescribeStream": Operation(
            describe_stream, frozenset({"StreamArn", "Limit", "ExclusiveStartShardId"}), reads=True
        ),
        "GetShardIterator": Operation(
            get_shard_iterator,
            frozenset({"StreamArn", "ShardId", "ShardIteratorType", "SequenceNumber", "Timestamp"}),
            reads=True,
        ),
        "ReadStream": Operation(
            read_stream, frozenset({"StreamArn", "After", "Through", "Limit"}), reads=True, internal=True
        ),
        "Listen": Operation(listen, frozenset({"StreamArn", "After", "Kind", "Subject", "NotBefore"}), internal=True),
        "Unlisten": Operation(unlisten, frozenset({"StreamArn", "Kind", "Subject"}), internal=True),
        "GetRecords": Operation(get_records, frozenset({"ShardIterator", "Limit"}), reads=True),
    },
)
