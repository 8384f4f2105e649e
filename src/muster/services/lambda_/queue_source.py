"""A queue as a function's event source: messages are received when the function can run, and deleted when it has.

Keeps true: a batch is received only when there is a place for it, so that waiting never spends a receive; what a
function failed on stays in the queue and comes back after its visibility timeout; what it did is deleted in the commit
that records so. The window of a batch passes before its messages are received, so that it takes nothing from their
visibility timeout. Does not know how a source is woken, beyond asking the queue to tell.
"""

import base64
from collections.abc import Mapping as Dict
from typing import Any

import orjson

from muster.arn import Arn
from muster.errors import ServiceError
from muster.services.lambda_ import batch_response, batches, filters, invocations, mappings
from muster.services.lambda_.functions import Version
from muster.services.lambda_.mapping_settings import invalid
from muster.services.lambda_.mappings import Mapping
from muster.transaction import Row, Transaction

# Without MaximumConcurrency a mapping takes half of the places that there are for invocations nobody waits for.
BATCHES_MAX = invocations.PLACES // 2
# A change is short: after so many messages the next poll goes on.
MESSAGES_AT_ONCE = 500
# While a window is open, new messages are counted this often.
COUNT_SECONDS = 0.25
# After the function's reserved concurrency has turned a batch away.
THROTTLED_SECONDS = 1.0


def url(mapping_source: str) -> str:
    """What the queue's operations take for a URL: its name."""
    return Arn.parse(mapping_source).resource


def check(tx: Transaction, source_arn: str, version: Version) -> None:
    """Refuse a queue that is not there, and one that would give a message back while the function still works on it."""
    try:
        answer = tx.call(
            "sqs", "GetQueueAttributes", {"QueueUrl": url(source_arn), "AttributeNames": ["VisibilityTimeout"]}
        )
    except ServiceError as refusal:
        raise invalid(
            "Error occurred while ReceiveMessage. SQS Error Code: AWS.SimpleQueueService.NonExistentQueue. "
            f"SQS Error Message: {refusal.message}"
        ) from None
    visibility = int(answer["Attributes"]["VisibilityTimeout"])
    if visibility < version.timeout_seconds:
        raise invalid(
            f"Queue visibility timeout: {visibility} seconds is less than "
            f"Function timeout: {version.timeout_seconds} seconds"
        )


def poll(tx: Transaction, mapping: Mapping, version: Version) -> None:
    """Begin as many batches as there are messages and places; ask to be woken when there are more of what was short."""
    received = 0
    while _has_place(tx, mapping, version):
        if received >= MESSAGES_AT_ONCE:
            mappings.schedule(tx, mapping, tx.now)
            return
        if mapping.window_seconds and not _window_is_over(tx, mapping):
            return
        request = {
            "QueueUrl": url(mapping.source_arn),
            "MaxNumberOfMessages": mapping.batch_size,
            "BytesMax": batches.BYTES_MAX,
        }
        messages = tx.call("sqs", "ReceiveBatch", request)["Messages"]
        if not messages:
            _listen(tx, mapping)
            return
        received += len(messages)
        wanted = _wanted(tx, mapping, messages)
        if wanted and not _begin(tx, mapping, wanted):
            mappings.schedule(tx, mapping, tx.now + THROTTLED_SECONDS)
            return


def _has_place(tx: Transaction, mapping: Mapping, version: Version) -> bool:
    limit = (mapping.settings.get("ScalingConfig") or {}).get("MaximumConcurrency")
    if batches.running(tx, mapping) >= (limit or BATCHES_MAX):
        # The end of a batch polls again.
        return False
    # With a limit of its own the mapping waits for reserved concurrency, too; without, it is turned away, as by AWS.
    if invocations.free_places(tx) > 0 and (limit is None or invocations.has_room(tx, version.function)):
        return True
    invocations.seek_place(tx, mappings.POLL, mapping.id)
    return False


def _listen(tx: Transaction, mapping: Mapping, **more: Any) -> None:
    request = {"QueueUrl": url(mapping.source_arn), "Kind": mappings.POLL, "Subject": mapping.id, **more}
    tx.call("sqs", "Listen", request)


def stop(tx: Transaction, mapping: Mapping) -> None:
    """Be woken by the queue no more."""
    request = {"QueueUrl": url(mapping.source_arn), "Kind": mappings.POLL, "Subject": mapping.id}
    try:
        tx.call("sqs", "Unlisten", request)
    except ServiceError as refusal:
        if refusal.code != "QueueDoesNotExist":
            raise


def _window_is_over(tx: Transaction, mapping: Mapping) -> bool:
    """Whether the batch is full or has gathered long enough; it begins with the first message seen."""
    request = {"QueueUrl": url(mapping.source_arn), "Max": mapping.batch_size}
    seen = tx.call("sqs", "CountVisible", request)
    if not seen["Count"]:
        _set_window(tx, mapping, None)
        _listen(tx, mapping)
        return False
    row = tx.one("SELECT window_began_at FROM lambda_mappings WHERE id = :id", id=mapping.id)
    began_at = tx.now if row is None or row["window_began_at"] is None else row["window_began_at"]
    ends_at = began_at + mapping.window_seconds
    if seen["Count"] >= mapping.batch_size or seen["Characters"] >= batches.BYTES_MAX or tx.now >= ends_at:
        _set_window(tx, mapping, None)
        return True
    _set_window(tx, mapping, began_at)
    mappings.schedule(tx, mapping, ends_at)
    _listen(tx, mapping, NotBefore=min(ends_at, tx.now + COUNT_SECONDS), New=True)
    return False


def _set_window(tx: Transaction, mapping: Mapping, began_at: float | None) -> None:
    tx.run("UPDATE lambda_mappings SET window_began_at = :at WHERE id = :id", at=began_at, id=mapping.id)


def _wanted(tx: Transaction, mapping: Mapping, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages' records; those that no filter wants are deleted."""
    records = [record(mapping.source_arn, tx.region, message) for message in messages]
    patterns = mapping.patterns
    if not patterns:
        return records
    passes = filters.passes(patterns)
    kept: list[dict[str, Any]] = []
    dropped: list[dict[str, Any]] = []
    for each in records:
        (kept if passes(filters.with_parsed_body(each)) else dropped).append(each)
    _delete(tx, mapping.source_arn, [each["receiptHandle"] for each in dropped])
    return kept


def record(source_arn: str, region: str, message: Dict[str, Any]) -> dict[str, Any]:
    """A message as a function gets it: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html."""
    made: dict[str, Any] = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {name: _attribute(value) for name, value in message.get("MessageAttributes", {}).items()},
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": source_arn,
        "awsRegion": region,
    }
    if "MD5OfMessageAttributes" in message:
        made["md5OfMessageAttributes"] = message["MD5OfMessageAttributes"]
    return made


def _attribute(value: Dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {"stringListValues": [], "binaryListValues": [], "dataType": value["DataType"]}
    if "BinaryValue" in value:
        shown["binaryValue"] = base64.b64encode(value["BinaryValue"]).decode()
    else:
        shown["stringValue"] = value["StringValue"]
    return shown


def _begin(tx: Transaction, mapping: Mapping, records: list[dict[str, Any]]) -> bool:
    """Start the function on a batch; False when its reserved concurrency turns the batch away."""
    handles = [[each["messageId"], each["receiptHandle"]] for each in records]
    return batches.begin(tx, mapping, 0, orjson.dumps({"Records": records}), handles)


def finish(tx: Transaction, batch: Row, mapping: Mapping | None, answer: Dict[str, Any]) -> None:
    """Delete what the function has done; the rest comes back by itself."""
    handles: list[list[str]] = orjson.loads(batch["records"])
    failed = batch_response.failures(answer, {id_ for id_, _ in handles}, partial=bool(batch["partial"]))
    if failed is not None:
        _delete(tx, batch["source_arn"], [handle for id_, handle in handles if id_ not in failed])
    if mapping is not None:
        mappings.note_result(tx, mapping, mappings.OK if failed is not None else mappings.FAILED)


def _delete(tx: Transaction, source_arn: str, handles: list[str]) -> None:
    """Delete messages, as far as the queue is there and the handles still hold."""
    for start in range(0, len(handles), 10):
        entries = [
            {"Id": str(number), "ReceiptHandle": handle} for number, handle in enumerate(handles[start : start + 10])
        ]
        try:
            tx.call("sqs", "DeleteMessageBatch", {"QueueUrl": url(source_arn), "Entries": entries})
        except ServiceError as refusal:
            if refusal.code != "QueueDoesNotExist":
                raise
            return
