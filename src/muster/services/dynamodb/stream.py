"""Streams: what was written to a table, in order, for a day.

Keeps true: the record of a change is written with the change, and records of one table are numbered in the order of
their commits. A stream here is one shard. Does not know who reads.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from muster.languages.expressions import Item
from muster.languages.expressions.value import size_of_item
from muster.services.dynamodb import table as tables
from muster.services.dynamodb.definition import Definition
from muster.services.dynamodb.table import Table
from muster.services.dynamodb.written import binary_written
from muster.transaction import Transaction

# "Change data capture for DynamoDB Streams": records are there for 24 hours.
KEPT_SECONDS = 86_400


def begin(tx: Transaction, table: Table) -> None:
    """Begin the stream that the table's definition names."""
    tx.run(
        "INSERT INTO dynamodb_streams (arn, table_id, definition, started_at) VALUES (:arn, :table, :definition, :now)",
        arn=tables.stream_arn_of(tx, table.definition),
        table=table.id,
        definition=table.definition.text(),
        now=tx.now,
    )


def end(tx: Transaction, definition: Definition) -> None:
    """End the stream that the definition names; what is in it can still be read."""
    tx.run(
        "UPDATE dynamodb_streams SET ended_at = :now WHERE arn = :arn AND ended_at IS NULL",
        arn=tables.stream_arn_of(tx, definition),
        now=tx.now,
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
    tx.run(
        "DELETE FROM dynamodb_stream_records WHERE arn = :arn AND written_at < :before",
        arn=arn,
        before=tx.now - KEPT_SECONDS,
    )
    tx.wake(topic(arn))


def sequence_text(sequence: int) -> str:
    """A sequence number as AWS writes it: at least 21 digits."""
    return f"{sequence:021d}"
