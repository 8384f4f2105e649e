"""Batches under way: a function runs on some records of a source, and its end finds here what they were.

Keeps true: a batch is a row exactly while its invocation has not ended. Does not know what the records are.
"""

from typing import Any

import orjson

from muster.errors import ServiceError
from muster.services.lambda_ import invoking, mappings
from muster.services.lambda_.mappings import Mapping
from muster.transaction import Transaction

# What the records of a batch may take, as JSON.
BYTES_MAX = invoking.SYNCHRONOUS_BYTES_MAX - 1024


def running(tx: Transaction, mapping: Mapping) -> int:
    """How many batches of the mapping are under way."""
    row = tx.one("SELECT COUNT(*) AS count FROM lambda_batches WHERE mapping = :id", id=mapping.id)
    assert row is not None, "a count is always answered"
    return int(row["count"])


def begin(tx: Transaction, mapping: Mapping, lane: int, payload: bytes, records: Any) -> bool:
    """Start the function on a batch; `records` is what its end has to know. False when its reserved concurrency turns
    the batch away."""
    id_ = tx.new_id()
    request = {
        "FunctionName": mapping.function.function,
        **({"Qualifier": mapping.function.qualifier} if mapping.function.qualifier else {}),
        "Payload": payload,
        "Reply": {"Kind": mappings.BATCH, "Subject": id_},
    }
    try:
        with tx.savepoint():
            invoking.begin_invocation(tx, request)
    except ServiceError as refusal:
        if refusal.code != "TooManyRequestsException":
            raise
        return False
    tx.run(
        "INSERT INTO lambda_batches (id, mapping, source_arn, lane, records, partial, begun_at)"
        " VALUES (:id, :mapping, :source, :lane, :records, :partial, :now)",
        id=id_,
        mapping=mapping.id,
        source=mapping.source_arn,
        lane=lane,
        records=orjson.dumps(records).decode(),
        partial=int(mapping.partial),
        now=tx.now,
    )
    return True
