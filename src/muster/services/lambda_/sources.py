"""Polling: a mapping's source is read when there is a cause, and its batches end where their records came from.

Keeps true: all that a mapping waits for is a row, so a restart changes nothing: a delivery when there is something to
read, one at the end of a batch, and one at a time of the mapping's own choosing. Does not know the sources' ways.
"""

import logging

from muster.arn import Arn
from muster.errors import ServiceError
from muster.services.lambda_ import functions, invocations, mappings, queue_source, stream_source
from muster.services.lambda_.functions import Version
from muster.services.lambda_.mappings import Mapping
from muster.transaction import Carried, Delivery, Transaction

log = logging.getLogger(__name__)

# A mapping whose function or source is gone looks again this often.
GONE_SECONDS = 60.0


def start(tx: Transaction, mapping: Mapping) -> None:
    """Begin to read, if the mapping is enabled."""
    if mapping.service != "sqs":
        stream_source.start(tx, mapping)
    if mapping.enabled:
        tx.post(Delivery(mappings.POLL, mapping.id, {}))


def stop(tx: Transaction, mapping: Mapping) -> None:
    """Read no more; batches under way end as they would have."""
    (queue_source if mapping.service == "sqs" else stream_source).stop(tx, mapping)
    invocations.seek_no_place(tx, mappings.POLL, mapping.id)
    tx.cancel(mappings.POLL, mapping.id)
    tx.cancel(mappings.POLL_LATER, mapping.id)


def check(tx: Transaction, source: Arn, version: Version) -> None:
    """Refuse a source that is not there or does not go with the function."""
    if source.service == "sqs":
        queue_source.check(tx, str(source), version)
    else:
        stream_source.check(tx, str(source))


def carry_poll(tx: Transaction, delivery: Carried) -> None:
    mapping = mappings.find(tx, delivery.subject)
    if mapping is not None:
        _poll(tx, mapping)


def _poll(tx: Transaction, mapping: Mapping) -> None:
    if not mapping.enabled:
        return
    try:
        with tx.savepoint():
            source = queue_source if mapping.service == "sqs" else stream_source
            source.poll(tx, mapping, functions.resolved(tx, mapping.function))
    except ServiceError as refusal:
        if refusal.code not in ("ResourceNotFoundException", "QueueDoesNotExist"):
            raise
        mappings.note_result(tx, mapping, f"PROBLEM: {refusal.message}")
        mappings.schedule(tx, mapping, tx.now + GONE_SECONDS)


def carry_batch(tx: Transaction, delivery: Carried) -> None:
    """A batch's invocation has ended: settle its records, and poll, since a place is free."""
    batch = tx.one("DELETE FROM lambda_batches WHERE id = :id RETURNING *", id=delivery.subject)
    if batch is None:
        return
    mapping = mappings.find(tx, batch["mapping"])
    source = queue_source if Arn.parse(batch["source_arn"]).service == "sqs" else stream_source
    source.finish(tx, batch, mapping, delivery.payload)
    if mapping is not None:
        _poll(tx, mapping)


CARRIERS = {mappings.POLL: carry_poll, mappings.POLL_LATER: carry_poll, mappings.BATCH: carry_batch}
