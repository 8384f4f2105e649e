"""SQS's API over queues and messages: AWS's shapes in and out, and nothing else."""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from muster.errors import ServiceError
from muster.operation import Answer, Operation, Request, Wait
from muster.services.sqs import attributes as message_attributes
from muster.services.sqs import listeners, messages, moves, permissions, queues
from muster.services.sqs.refusals import invalid_value, missing
from muster.transaction import Row, Transaction

BATCH_MAX = 10
BATCH_BYTES_MAX = 1048576
BATCH_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
PURGE_SECONDS = 60
# Around a message in a batch for a function: its names, its system attributes, its handle.
BATCH_RECORD_BYTES = 2048


def md5_hex(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def operations(endpoint: str) -> Mapping[str, Operation]:
    """The table, for a server whose queue URLs begin with `endpoint`."""

    def url(tx: Transaction, name: str) -> str:
        return f"{endpoint}/{tx.account}/{name}"

    def create_queue(tx: Transaction, request: Request) -> Answer:
        name = queues.create(tx, request.get("QueueName"), request.get("Attributes") or {}, request.get("tags") or {})
        return {"QueueUrl": url(tx, name)}

    def get_queue_url(tx: Transaction, request: Request) -> Answer:
        owner = request.get("QueueOwnerAWSAccountId")
        return {
            "QueueUrl": url(tx, queues.at(tx, request["QueueName"] if not owner or owner == tx.account else "/").name)
        }

    def list_queues(tx: Transaction, request: Request) -> Answer:
        return _page(
            tx, request, [url(tx, name) for name in _names(tx, request.get("QueueNamePrefix") or "")], "QueueUrls"
        )

    def list_sources(tx: Transaction, request: Request) -> Answer:
        names = moves.sources(tx, queues.at(tx, request.get("QueueUrl")))
        return {"queueUrls": [], **_page(tx, request, [url(tx, name) for name in names], "queueUrls")}

    return {
        "CreateQueue": Operation(create_queue, frozenset({"QueueName", "Attributes", "tags"})),
        "GetQueueUrl": Operation(get_queue_url, frozenset({"QueueName", "QueueOwnerAWSAccountId"}), reads=True),
        "ListQueues": Operation(list_queues, frozenset({"QueueNamePrefix", "NextToken", "MaxResults"}), reads=True),
        "ListDeadLetterSourceQueues": Operation(
            list_sources, frozenset({"QueueUrl", "NextToken", "MaxResults"}), reads=True
        ),
        **OPERATIONS,
    }


def _names(tx: Transaction, prefix: str) -> list[str]:
    rows = tx.all("SELECT name FROM sqs_queues ORDER BY name")
    return [row["name"] for row in rows if row["name"].startswith(prefix)]


def _page(tx: Transaction, request: Request, listed: list[str], member: str) -> Answer:
    """The part of a listing asked for; without MaxResults, the first thousand and no token, as AWS does."""
    size = request.get("MaxResults")
    if size is not None and not 1 <= size <= 1000:
        raise invalid_value(size, "MaxResults", "MaxResults must be between 1 and 1000.")
    after = base64.b64decode(request["NextToken"]).decode() if request.get("NextToken") else ""
    rest = [one for one in listed if one > after]
    shown = rest[: size or 1000]
    answer: Answer = {member: shown} if shown else {}
    if size is not None and len(rest) > size:
        answer["NextToken"] = base64.b64encode(shown[-1].encode()).decode()
    return answer


def delete_queue(tx: Transaction, request: Request) -> Answer:
    queue = queues.at(tx, request.get("QueueUrl"))
    queues.delete(tx, queue)
    listeners.queue_deleted(tx, queue.name)
    return {}


def get_queue_attributes(tx: Transaction, request: Request) -> Answer:
    queue = queues.at(tx, request.get("QueueUrl"))
    shown = queues.describe(tx, queue, request.get("AttributeNames") or [])
    return {"Attributes": shown} if shown else {}


def set_queue_attributes(tx: Transaction, request: Request) -> Answer:
    queues.set_attributes(tx, queues.at(tx, request.get("QueueUrl")), request["Attributes"])
    return {}


def purge_queue(tx: Transaction, request: Request) -> Answer:
    queue = queues.at(tx, request.get("QueueUrl"))
    if queue.purged_at is not None and tx.now - queue.purged_at < PURGE_SECONDS:
        raise ServiceError(
            "PurgeQueueInProgress",
            f"Only one PurgeQueue operation on {queue.name} is allowed every 60 seconds.",
            status=403,
        )
    tx.run("DELETE FROM sqs_messages WHERE queue = :queue", queue=queue.name)
    tx.run("UPDATE sqs_queues SET purged_at = :now WHERE name = :queue", now=tx.now, queue=queue.name)
    return {}


def _tags(tx: Transaction, request: Request, edit: Callable[[dict[str, str]], None]) -> Answer:
    queue = queues.at(tx, request.get("QueueUrl"))
    tags = dict(queue.tags)
    edit(tags)
    tx.run("UPDATE sqs_queues SET tags = :tags WHERE name = :name", tags=orjson.dumps(tags).decode(), name=queue.name)
    return {}


def tag_queue(tx: Transaction, request: Request) -> Answer:
    return _tags(tx, request, lambda tags: tags.update(request["Tags"]))


def untag_queue(tx: Transaction, request: Request) -> Answer:
    return _tags(tx, request, lambda tags: _drop(tags, request["TagKeys"]))


def _drop(tags: dict[str, str], keys: list[str]) -> None:
    for key in keys:
        tags.pop(key, None)


def list_queue_tags(tx: Transaction, request: Request) -> Answer:
    tags = queues.at(tx, request.get("QueueUrl")).tags
    return {"Tags": dict(tags)} if tags else {}


def add_permission(tx: Transaction, request: Request) -> Answer:
    permissions.add(tx, queues.at(tx, request.get("QueueUrl")), request)
    return {}


def remove_permission(tx: Transaction, request: Request) -> Answer:
    permissions.remove(tx, queues.at(tx, request.get("QueueUrl")), request["Label"])
    return {}


def send_message(tx: Transaction, request: Request) -> Answer:
    queue = queues.at(tx, request.get("QueueUrl"))
    return _sent(tx, queue, messages.draft(queue, request))


def _sent(tx: Transaction, queue: queues.Queue, draft: messages.Draft) -> Answer:
    sent = messages.send(tx, queue, draft)
    answer: Answer = {"MessageId": sent.id, "MD5OfMessageBody": md5_hex(draft.body.encode())}
    if draft.attributes:
        answer["MD5OfMessageAttributes"] = message_attributes.digest(draft.attributes)
    if draft.system:
        answer["MD5OfMessageSystemAttributes"] = message_attributes.digest(draft.system)
    if sent.sequence_number:
        answer["SequenceNumber"] = sent.sequence_number
    return answer


def _entries(request: Request) -> list[Mapping[str, Any]]:
    """A batch's entries, once they are few enough, named, and named differently."""
    entries: list[Mapping[str, Any]] = request.get("Entries") or []
    if not entries:
        raise ServiceError(
            "EmptyBatchRequest", "There should be at least one SendMessageBatchRequestEntry in the request.", status=400
        )
    if len(entries) > BATCH_MAX:
        raise ServiceError(
            "TooManyEntriesInBatchRequest",
            f"Maximum number of entries per request are {BATCH_MAX}. You have sent {len(entries)}.",
            status=400,
        )
    seen: set[str] = set()
    for entry in entries:
        id_ = entry.get("Id") or ""
        if not BATCH_ID.fullmatch(id_):
            raise ServiceError(
                "InvalidBatchEntryId",
                "A batch entry id can only contain alphanumeric characters, hyphens and underscores."
                " It can be at most 80 letters long.",
                status=400,
            )
        if id_ in seen:
            raise ServiceError("BatchEntryIdsNotDistinct", f"Id {id_} repeated.", status=400)
        seen.add(id_)
    return entries


def _batch(tx: Transaction, request: Request, act: Callable[[Mapping[str, Any]], Answer]) -> Answer:
    """Each entry by itself: what fails does not take the others with it."""
    answer: dict[str, list[Answer]] = {"Successful": [], "Failed": []}
    for entry in _entries(request):
        try:
            with tx.savepoint():
                answer["Successful"].append({"Id": entry["Id"], **act(entry)})
        except ServiceError as error:
            failed = {"Id": entry["Id"], "SenderFault": True, "Code": error.code, "Message": error.message}
            answer["Failed"].append(failed)
    return {member: listed for member, listed in answer.items() if listed}


def send_message_batch(tx: Transaction, request: Request) -> Answer:
    queue = queues.at(tx, request.get("QueueUrl"))
    entries = _entries(request)
    if queue.fifo:
        # What a FIFO queue asks of every message is asked before any is sent (observed, recorded answers).
        for entry in entries:
            if entry.get("MessageGroupId") is None:
                raise missing("MessageGroupId")
            if entry.get("MessageDeduplicationId") is None:
                messages.draft(queue, entry)
    # Counted without regard to what each message may be by itself, which is answered entry by entry.
    size = sum(
        len((entry.get("MessageBody") or "").encode())
        + message_attributes.size(message_attributes.checked(entry.get("MessageAttributes")))
        for entry in entries
    )
    if size > BATCH_BYTES_MAX:
        raise ServiceError(
            "BatchRequestTooLong",
            f"Batch requests cannot be longer than {BATCH_BYTES_MAX} bytes. You have sent {size} bytes.",
            status=400,
        )
    return _batch(tx, request, lambda entry: _sent(tx, queue, messages.draft(queue, entry)))


def receive_message(tx: Transaction, request: Request) -> Answer | Wait:
    queue = queues.at(tx, request.get("QueueUrl"))
    count = request.get("MaxNumberOfMessages", 1)
    if not 1 <= count <= 10:
        raise invalid_value(count, "MaxNumberOfMessages", "Must be between 1 and 10, if provided.")
    visibility = request.get("VisibilityTimeout", queue.number("VisibilityTimeout"))
    if not 0 <= visibility <= messages.VISIBILITY_SECONDS_MAX:
        raise invalid_value(visibility, "VisibilityTimeout", "Must be between 0 and 43200, if provided.")
    wait = request.get("WaitTimeSeconds", queue.number("ReceiveMessageWaitTimeSeconds"))
    if not 0 <= wait <= 20:
        raise invalid_value(wait, "WaitTimeSeconds", "Must be >= 0 and <= 20, if provided.")
    until = tx.now + wait

    def look(tx: Transaction) -> Answer | Wait:
        asked = queues.at(tx, request.get("QueueUrl"))
        rows = messages.receive(tx, asked, count, visibility)
        if rows:
            return {"Messages": [_received(asked, request, row) for row in rows]}
        if tx.now >= until:
            return {}
        # A delayed or leased message may become visible before the wait is over.
        hidden = listeners.hidden_until(tx, asked)
        return Wait(messages.topic(asked.name), min(until, hidden) if hidden is not None else until, look)

    return look(tx)


def _received(queue: queues.Queue, request: Request, row: Row) -> Answer:
    answer: Answer = {
        "MessageId": row["id"],
        "ReceiptHandle": messages.handle(queue, row),
        "MD5OfBody": md5_hex(row["body"].encode()),
        "Body": row["body"],
    }
    wanted = {*(request.get("AttributeNames") or []), *(request.get("MessageSystemAttributeNames") or [])}
    if wanted:
        system = messages.system_attributes(row)
        shown = {name: value for name, value in system.items() if "All" in wanted or name in wanted}
        if shown:
            answer["Attributes"] = shown
    names = request.get("MessageAttributeNames") or []
    if row["attributes"] and names:
        selected = message_attributes.selected(orjson.loads(row["attributes"]), names)
        if selected:
            answer["MessageAttributes"] = message_attributes.shown(selected)
            answer["MD5OfMessageAttributes"] = message_attributes.digest(selected)
    return answer


def receive_batch(tx: Transaction, request: Request) -> Answer:
    """For siblings: one batch of messages with all their attributes, whose content as JSON stays within `BytesMax`."""
    queue = queues.at(tx, request["QueueUrl"])
    room = request["BytesMax"]

    def fits(row: Row) -> bool:
        nonlocal room
        room -= len(orjson.dumps(row["body"])) + len(row["attributes"] or "") + BATCH_RECORD_BYTES
        return bool(room >= 0)

    rows = messages.receive(tx, queue, request["MaxNumberOfMessages"], queue.number("VisibilityTimeout"), fits)
    wanted = {"MessageSystemAttributeNames": ["All"], "MessageAttributeNames": ["All"]}
    return {"Messages": [_received(queue, wanted, row) for row in rows]}


def listen(tx: Transaction, request: Request) -> Answer:
    """For siblings: have one delivery of `Kind` and `Subject` posted for when a message is or becomes visible."""
    queue = queues.at(tx, request["QueueUrl"])
    listeners.listen(
        tx,
        queue,
        request["Kind"],
        request["Subject"],
        not_before=request.get("NotBefore", 0.0),
        new=request.get("New", False),
    )
    return {}


def unlisten(tx: Transaction, request: Request) -> Answer:
    listeners.unlisten(tx, queues.at(tx, request["QueueUrl"]).name, request["Kind"], request["Subject"])
    return {}


def count_visible(tx: Transaction, request: Request) -> Answer:
    return dict(listeners.visible(tx, queues.at(tx, request["QueueUrl"]), request["Max"]))


def oldest_message(tx: Transaction, request: Request) -> Answer:
    """For siblings: when the oldest message that is kept was sent; nothing when there is none."""
    queue = queues.at(tx, request["QueueUrl"])
    row = tx.one(
        "SELECT MIN(sent_at) AS at FROM sqs_messages WHERE queue = :queue AND sent_at > :oldest",
        queue=queue.name,
        oldest=tx.now - queue.number("MessageRetentionPeriod"),
    )
    return {} if row is None or row["at"] is None else {"SentAt": row["at"]}


def delete_message(tx: Transaction, request: Request) -> Answer:
    messages.delete(tx, queues.at(tx, request.get("QueueUrl")), request.get("ReceiptHandle"))
    return {}


def delete_message_batch(tx: Transaction, request: Request) -> Answer:
    queue = queues.at(tx, request.get("QueueUrl"))

    def act(entry: Mapping[str, Any]) -> Answer:
        messages.delete(tx, queue, entry.get("ReceiptHandle"))
        return {}

    return _batch(tx, request, act)


def change_message_visibility(tx: Transaction, request: Request) -> Answer:
    queue = queues.at(tx, request.get("QueueUrl"))
    messages.change_visibility(tx, queue, request.get("ReceiptHandle"), request.get("VisibilityTimeout"))
    return {}


def change_message_visibility_batch(tx: Transaction, request: Request) -> Answer:
    queue = queues.at(tx, request.get("QueueUrl"))

    def act(entry: Mapping[str, Any]) -> Answer:
        messages.change_visibility(tx, queue, entry.get("ReceiptHandle"), entry.get("VisibilityTimeout"))
        return {}

    return _batch(tx, request, act)


def start_message_move_task(tx: Transaction, request: Request) -> Answer:
    return {"TaskHandle": moves.start(tx, request)}


def cancel_message_move_task(tx: Transaction, request: Request) -> Answer:
    return {"ApproximateNumberOfMessagesMoved": moves.cancel(tx, request.get("TaskHandle"))}


def list_message_move_tasks(tx: Transaction, request: Request) -> Answer:
    return {"Results": moves.listed(tx, request)}


MESSAGE = {
    "MessageBody",
    "DelaySeconds",
    "MessageAttributes",
    "MessageSystemAttributes",
    "MessageDeduplicationId",
    "MessageGroupId",
}
OPERATIONS: Mapping[str, Operation] = {
    "DeleteQueue": Operation(delete_queue, frozenset({"QueueUrl"})),
    "GetQueueAttributes": Operation(get_queue_attributes, frozenset({"QueueUrl", "AttributeNames"}), reads=True),
    "SetQueueAttributes": Operation(set_queue_attributes, frozenset({"QueueUrl", "Attributes"})),
    "PurgeQueue": Operation(purge_queue, frozenset({"QueueUrl"})),
    "TagQueue": Operation(tag_queue, frozenset({"QueueUrl", "Tags"})),
    "UntagQueue": Operation(untag_queue, frozenset({"QueueUrl", "TagKeys"})),
    "ListQueueTags": Operation(list_queue_tags, frozenset({"QueueUrl"}), reads=True),
    "AddPermission": Operation(add_permission, frozenset({"QueueUrl", "Label", "AWSAccountIds", "Actions"})),
    "RemovePermission": Operation(remove_permission, frozenset({"QueueUrl", "Label"})),
    "SendMessage": Operation(send_message, frozenset({"QueueUrl", *MESSAGE})),
    "SendMessageBatch": Operation(send_message_batch, frozenset({"QueueUrl", "Entries"})),
    "ReceiveMessage": Operation(
        receive_message,
        frozenset(
            {
                "QueueUrl",
                "AttributeNames",
                "MessageSystemAttributeNames",
                "MessageAttributeNames",
                "MaxNumberOfMessages",
                "VisibilityTimeout",
                "WaitTimeSeconds",
            }
        ),
    ),
    "DeleteMessage": Operation(delete_message, frozenset({"QueueUrl", "ReceiptHandle"})),
    "DeleteMessageBatch": Operation(delete_message_batch, frozenset({"QueueUrl", "Entries"})),
    "ChangeMessageVisibility": Operation(
        change_message_visibility, frozenset({"QueueUrl", "ReceiptHandle", "VisibilityTimeout"})
    ),
    "ChangeMessageVisibilityBatch": Operation(change_message_visibility_batch, frozenset({"QueueUrl", "Entries"})),
    "ReceiveBatch": Operation(receive_batch, frozenset({"QueueUrl", "MaxNumberOfMessages", "BytesMax"}), internal=True),
    "Listen": Operation(listen, frozenset({"QueueUrl", "Kind", "Subject", "NotBefore", "New"}), internal=True),
    "Unlisten": Operation(unlisten, frozenset({"QueueUrl", "Kind", "Subject"}), internal=True),
    "CountVisible": Operation(count_visible, frozenset({"QueueUrl", "Max"}), reads=True, internal=True),
    "OldestMessage": Operation(oldest_message, frozenset({"QueueUrl"}), reads=True, internal=True),
    "StartMessageMoveTask": Operation(
        start_message_move_task, frozenset({"SourceArn", "DestinationArn", "MaxNumberOfMessagesPerSecond"})
    ),
    "CancelMessageMoveTask": Operation(cancel_message_move_task, frozenset({"TaskHandle"})),
    "ListMessageMoveTasks": Operation(list_message_move_tasks, frozenset({"SourceArn", "MaxResults"}), reads=True),
}
