"""Streams: what was written to a table, in order, for a day.

Keeps true: the record of a change is written with the change, and records of one table are numbered in the order of
their commits. A stream here is one shard. Does not know who reads.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from muster.languages.expressions import Item
from muster.languages.expressions.value import size_of_item
from muster.services.dynamodb import stream_listeners
from muster.services.dynamodb import table as tables
from muster.services.dynamodb.definition import Definition, relabelled
from muster.services.dynamodb.table import Table
from muster.services.dynamodb.written import binary_written
from muster.transaction import Carried, Delivery, Transaction

# "Change data capture for DynamoDB Streams": records are there for 24 hours.
KEPT_SECONDS = 86_400

FORGET = "dynamodb.forget_stream"
FORGOTTEN_AT_ONCE = 1000
# More than the one that is written, so that what is too old shrinks.
DROPPED_WITH_EACH = 20


def begin(tx: Transaction, table: Table) -> Table:
    """Begin the stream that the table's definition names, under a label of its own."""
    while tx.one("SELECT arn FROM dynamodb_streams WHERE arn = :arn", arn=tables.stream_arn_of(tx, table.definition)):
        table = tables.store(tx, table, relabelled(table.definition))
    tx.run(
        "INSERT INTO dynamodb_streams (arn, table_id, definition, started_at) VALUES (:arn, :table, :definition, :now)",
        arn=tables.stream_arn_of(tx, table.definition),
        table=table.id,
        definition=table.definition.text(),
        now=tx.now,
    )
    return table


def end(tx: Transaction, definition: Definition) -> None:
    """End the stream that the definition names; what is in it can still be read."""
    arn = tables.stream_arn_of(tx, definition)
    tx.run(
        "UPDATE dynamodb_streams SET ended_at = :now WHERE arn = :arn AND ended_at IS NULL",
        arn=arn,
        now=tx.now,
    )
    tx.post(Delivery(FORGET, arn, {"arn": arn}, due_at=tx.now + KEPT_SECONDS))


def forget(tx: Transaction, carried: Carried) -> None:
    """Remove some of a stream that ended a day ago, and come again while there is more."""
    arn = carried.payload["arn"]
    if _drop(tx, arn, tx.now, FORGOTTEN_AT_ONCE):
        tx.post(Delivery(FORGET, arn, carried.payload))
    else:
        tx.run("DELETE FROM dynamodb_streams WHERE arn = :arn AND ended_at IS NOT NULL", arn=arn)
        tx.run("DELETE FROM dynamodb_stream_listeners WHERE arn = :arn", arn=arn)


def _drop(tx: Transaction, arn: str, before: float, many: int) -> int:
    return tx.run(
        "DELETE FROM dynamodb_stream_records WHERE arn = :arn AND sequence IN"
        " (SELECT sequence FROM dynamodb_stream_records WHERE arn = :arn AND written_at < :before"
        " ORDER BY written_at LIMIT :many)",
        arn=arn,
        before=before,
        many=many,
    )


def topic(arn: str) -> str:
    """What is woken when the stream has a new record."""
    return f"dynamodb.stream/{arn}"


def record(tx: Transaction, table: Table, old: Item | None, new: Item | None, *, expired: bool = False) -> None:
    """Write down a change; one that changes nothing leaves no record."""
    if old == new:
        return
    there = new if new is not None else old
    assert there is not None
    arn = tables.stream_arn_of(tx, table.definition)
    row = tx.one(
        "UPDATE dynamodb_streams SET last_sequence = last_sequence + 1 WHERE arn = :arn RETURNING last_sequence",
        arn=arn,
    )
    assert row is not None, "a table with a stream has begun it"
    sequence: int = row["last_sequence"]
    assert table.definition.stream is not None
    view = table.definition.stream["StreamViewType"]
    keys = table.schema.cut(there)
    body: dict[str, Any] = {
        "ApproximateCreationDateTime": int(tx.now),
        "Keys": keys,
        "SequenceNumber": sequence_text(sequence),
        "StreamViewType": view,
    }
    size = size_of_item(keys)
    for image, name, shown in (
        (new, "NewImage", view in ("NEW_IMAGE", "NEW_AND_OLD_IMAGES")),
        (old, "OldImage", view in ("OLD_IMAGE", "NEW_AND_OLD_IMAGES")),
    ):
        if image is not None and shown:
            body[name] = image
            size += size_of_item(image)
    body["SizeBytes"] = size
    written: Mapping[str, Any] = {
        "eventID": tx.new_id().replace("-", ""),
        "eventName": "INSERT" if old is None else "REMOVE" if new is None else "MODIFY",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": tx.region,
        "dynamodb": body,
        **({"userIdentity": {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}} if expired else {}),
    }
    tx.run(
        "INSERT INTO dynamodb_stream_records (arn, sequence, written_at, record)"
        " VALUES (:arn, :sequence, :now, :record)",
        arn=arn,
        sequence=sequence,
        now=tx.now,
        record=orjson.dumps(written, default=binary_written).decode(),
    )
    _drop(tx, arn, tx.now - KEPT_SECONDS, DROPPED_WITH_EACH)
    tx.wake(topic(arn))
    stream_listeners.heard(tx, arn)


def sequence_text(sequence: int) -> str:
    """A sequence number as AWS writes it: at least 21 digits."""
    return f"{sequence:021d}"
