"""What happened to an object, told: to EventBridge, and to the queues, topics and functions of the configuration.

Keeps true: an event is written in the transaction of its cause, once; in EventBridge the key is raw, in a classic
notification form-URL-encoded, as AWS has it. A destination that refuses does not undo the object: the notification is
then posted, tried again, and after a day given up with an error in the log.
Sources: "EventBridge event message structure" and "Event message structure" in the Amazon S3 user guide.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote_plus

import orjson

from muster.arn import Arn
from muster.clock import Instant
from muster.errors import ServiceError
from muster.services.s3 import buckets, notifications
from muster.services.s3.buckets import Bucket
from muster.services.s3.notifications import Entry
from muster.services.s3.objects import Deletion, Version, sequencer
from muster.services.s3.refusals import refusal
from muster.transaction import Carried, Delivery, Transaction

log = logging.getLogger(__name__)

NOTIFY = "s3.notify"
GIVE_UP_SECONDS = 24 * 3600.0
# Reason in EventBridge → name of the classic event
CREATED = {
    "PutObject": "ObjectCreated:Put",
    "POST Object": "ObjectCreated:Post",
    "CopyObject": "ObjectCreated:Copy",
    "CompleteMultipartUpload": "ObjectCreated:CompleteMultipartUpload",
}


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened to one object version, in the words of both kinds of event."""

    name: str
    detail_type: str
    key: str
    object: Mapping[str, Any]
    rest: Mapping[str, Any]


def created(tx: Transaction, bucket: Bucket, version: Version, reason: str) -> None:
    """Tell that `version` was created by `reason` (a key of CREATED)."""
    known = {"key": version.key, "size": version.size, "etag": version.etag}
    if bucket.versioned:
        known["version-id"] = version.version_id
    known["sequencer"] = version.sequencer
    _tell(tx, bucket, Happening(CREATED[reason], "Object Created", version.key, known, {"reason": reason}))


def deleted(tx: Transaction, bucket: Bucket, deletion: Deletion) -> None:
    """Tell of a deletion, if there was anything to delete."""
    gone = deletion.marker or deletion.removed
    if gone is None:
        return
    known: dict[str, Any] = {"key": gone.key}
    if deletion.marker is not None:
        known["etag"] = gone.etag
    if bucket.versioned:
        known["version-id"] = gone.version_id
    known["sequencer"] = gone.sequencer if deletion.marker is not None else sequencer(deletion.sequence)
    name, kind = (
        ("ObjectRemoved:DeleteMarkerCreated", "Delete Marker Created")
        if deletion.marker is not None
        else ("ObjectRemoved:Delete", "Permanently Deleted")
    )
    rest = {"reason": "DeleteObject", "deletion-type": kind}
    _tell(tx, bucket, Happening(name, "Object Deleted", gone.key, known, rest))


def _tell(tx: Transaction, bucket: Bucket, happening: Happening) -> None:
    configuration = buckets.setting(tx, bucket, notifications.SETTING)
    if configuration is None:
        return
    if "EventBridgeConfiguration" in configuration:
        _publish(tx, bucket, happening)
    for entry in notifications.entries(configuration):
        if entry.wants(f"s3:{happening.name}", happening.key):
            _notify(tx, entry, {"Records": [_record(tx, bucket, entry, happening)]})


def request_id(tx: Transaction) -> str:
    return tx.caller.request_id or tx.token(8).upper()


def _publish(tx: Transaction, bucket: Bucket, happening: Happening) -> None:
    detail = {
        "version": "0",
        "bucket": {"name": bucket.name},
        "object": happening.object,
        "request-id": request_id(tx),
        "requester": tx.account,
        "source-ip-address": tx.caller.source_ip,
        **happening.rest,
    }
    tx.call(
        "events",
        "PublishServiceEvent",
        {
            "Source": "aws.s3",
            "DetailType": happening.detail_type,
            "Detail": orjson.dumps(detail).decode(),
            "Resources": [bucket.arn],
            "Time": tx.now,
        },
    )


def _record(tx: Transaction, bucket: Bucket, entry: Entry, happening: Happening) -> dict[str, Any]:
    known = happening.object
    described: dict[str, Any] = {"key": quote_plus(happening.key, safe="/")}
    if "size" in known:
        described["size"] = known["size"]
    if "etag" in known:
        described["eTag"] = known["etag"]
    if "version-id" in known:
        described["versionId"] = known["version-id"]
    described["sequencer"] = known["sequencer"]
    asked = request_id(tx)
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": tx.region,
        "eventTime": iso_time(tx.now),
        "eventName": happening.name,
        "userIdentity": {"principalId": f"AWS:{tx.caller.access_key or tx.account}"},
        "requestParameters": {"sourceIPAddress": tx.caller.source_ip},
        "responseElements": {"x-amz-request-id": asked, "x-amz-id-2": host_id(asked)},
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": entry.id,
            "bucket": {
                "name": bucket.name,
                "ownerIdentity": {"principalId": tx.account},
                "arn": bucket.arn,
            },
            "object": described,
        },
    }


def host_id(asked: str) -> str:
    """The second id that S3 gives a request; here a function of the first."""
    return f"muster/{asked}"


def iso_time(at: Instant) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _notify(tx: Transaction, entry: Entry, message: Mapping[str, Any]) -> None:
    try:
        _send(tx, entry.service, entry.arn, message)
    except ServiceError as error:
        log.warning("the notification %s to %s was refused and will be tried again: %s", entry.id, entry.arn, error)
        payload = {"service": entry.service, "arn": entry.arn, "message": message}
        tx.post(Delivery(NOTIFY, entry.arn, payload, due_at=tx.now + 1.0))


def carry_notification(tx: Transaction, delivery: Carried) -> None:
    """Try once more; give up after a day, loudly."""
    payload = delivery.payload
    try:
        with tx.savepoint():
            _send(tx, payload["service"], payload["arn"], payload["message"])
    except ServiceError as error:
        if tx.now - delivery.posted_at < GIVE_UP_SECONDS:
            raise
        log.error("a notification to %s was given up after a day: %s; %s", payload["arn"], error, payload["message"])


def _send(tx: Transaction, service: str, arn: str, message: Mapping[str, Any]) -> None:
    text = orjson.dumps(message).decode()
    if service == "sqs":
        queue = tx.call("sqs", "GetQueueUrl", {"QueueName": Arn.parse(arn).resource})
        tx.call("sqs", "SendMessage", {"QueueUrl": queue["QueueUrl"], "MessageBody": text})
    elif service == "sns":
        tx.call("sns", "Publish", {"TopicArn": arn, "Message": text, "Subject": "Amazon S3 Notification"})
    else:
        tx.call("lambda", "Invoke", {"FunctionName": arn, "InvocationType": "Event", "Payload": text.encode()})


def send_test(tx: Transaction, bucket: Bucket, entry: Entry) -> None:
    """Send the s3:TestEvent to a queue or topic, or see that the function exists; InvalidArgument when it does not."""
    asked = request_id(tx)
    message = {
        "Service": "Amazon S3",
        "Event": "s3:TestEvent",
        "Time": iso_time(tx.now),
        "Bucket": bucket.name,
        "RequestId": asked,
        "HostId": host_id(asked),
    }
    try:
        if entry.service == "lambda":
            tx.call("lambda", "GetFunctionConfiguration", {"FunctionName": entry.arn})
        else:
            _send(tx, entry.service, entry.arn, message)
    except ServiceError as error:
        raise refusal(
            "InvalidArgument",
            "Unable to validate the following destination configurations",
            ArgumentName1=entry.arn,
            ArgumentValue1=str(error),
        ) from error
