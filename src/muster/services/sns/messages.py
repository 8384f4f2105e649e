"""A message as it is published: its rules, its size, and what each protocol reads of it.

Keeps true: in a FIFO topic a deduplication id stands for one message for five minutes, and the sequence numbers grow
in the order of publishing. Does not know who subscribes.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from muster.services.sns.refusals import invalid, invalid_attribute_value
from muster.services.sns.topics import Topic
from muster.transaction import Transaction

# API reference, Publish and PublishBatch.
BYTES_MAX = 262_144
SUBJECT_MAX = 100
DEDUPLICATION_SECONDS = 300
SEQUENCE_BASE = 10_000_000_000_000_000_000

FIFO_ID = re.compile(r"""[A-Za-z0-9!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}""")
ATTRIBUTE_NAME = re.compile(r"(?!(?i:aws\.|amazon\.))[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
ATTRIBUTE_TYPE = re.compile(r"(String|Number|Binary)(\..+)?")
PROTOCOLS = ("sqs", "lambda", "http", "https")

Attributes = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Draft:
    """A message to be published, checked; `texts` by protocol, under "default" for all others."""

    texts: Mapping[str, str]
    subject: str | None
    attributes: Attributes
    group_id: str | None
    deduplication_id: str | None
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Published:
    """What publishing answers; `new` says whether it is to be delivered."""

    id: str
    sequence_number: str | None
    new: bool


def draft(topic: Topic, request: Mapping[str, Any]) -> Draft:
    """A message from a request's members, once it is known to be allowed."""
    message = request.get("Message")
    if not message:
        raise invalid("Empty message")
    subject = request.get("Subject")
    if subject is not None and not _is_subject(subject):
        raise invalid("Subject")
    group, deduplication = request.get("MessageGroupId"), request.get("MessageDeduplicationId")
    for name, value in (("MessageGroupId", group), ("MessageDeduplicationId", deduplication)):
        if value is not None and not FIFO_ID.fullmatch(value):
            raise invalid(f"{name} Reason: must be 1 to 128 alphanumeric and punctuation characters")
    if topic.fifo:
        if group is None:
            raise invalid("The MessageGroupId parameter is required for FIFO topics")
        if deduplication is None and not topic.deduplicates_by_content:
            raise invalid(
                "The topic should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided"
                " explicitly"
            )
    elif deduplication is not None:
        raise invalid(
            "MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter that is not valid"
            " for this topic type"
        )
    attributes = checked_attributes(request.get("MessageAttributes"))
    size = len(message.encode()) + _size(attributes)
    if size > BYTES_MAX:
        raise invalid("Message too long")
    if topic.fifo and deduplication is None:
        deduplication = hashlib.sha256(message.encode()).hexdigest()
    return Draft(_texts(message, request.get("MessageStructure")), subject, attributes, group, deduplication, size)


def _is_subject(text: str) -> bool:
    return 0 < len(text) <= SUBJECT_MAX and not re.search(r"[\x00-\x1f\x7f]", text) and not text[0].isspace()


def _texts(message: str, structure: str | None) -> dict[str, str]:
    if structure is None:
        return {"default": message}
    if structure != "json":
        raise invalid("MessageStructure")
    try:
        parts = orjson.loads(message)
    except orjson.JSONDecodeError:
        raise invalid("Message Structure - JSON message body failed to parse") from None
    if not isinstance(parts, dict):
        raise invalid("Message Structure - JSON message body failed to parse")
    if not isinstance(parts.get("default"), str):
        raise invalid("Message Structure - No default entry in JSON message body")
    return {protocol: parts[protocol] for protocol in ("default", *PROTOCOLS) if isinstance(parts.get(protocol), str)}


def checked_attributes(attributes: Mapping[str, Mapping[str, Any]] | None) -> Attributes:
    """Attributes in their stored form (binary in base64), once they are known to be allowed."""
    return {name: _checked(name, value) for name, value in (attributes or {}).items()}


def _checked(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    if len(name) > 256 or not ATTRIBUTE_NAME.fullmatch(name):
        raise invalid_attribute_value(f"The message attribute name '{name}' is invalid.")
    kind = value.get("DataType")
    if not kind:
        raise invalid_attribute_value(f"The message attribute '{name}' must contain non-empty message attribute type.")
    if not ATTRIBUTE_TYPE.fullmatch(kind):
        raise invalid_attribute_value(
            f"The message attribute '{name}' has an invalid message attribute type, the set of supported type"
            " prefixes is Binary, Number, and String."
        )
    member = "BinaryValue" if kind.startswith("Binary") else "StringValue"
    content = value.get(member)
    if not content:
        raise invalid_attribute_value(
            f"The message attribute '{name}' must contain non-empty message attribute value for message attribute"
            f" type '{kind}'."
        )
    if member == "BinaryValue":
        return {"DataType": kind, member: base64.b64encode(bytes(content)).decode()}
    if kind.startswith("Number"):
        try:
            float(content)
        except ValueError:
            raise invalid_attribute_value(f"Could not cast message attribute '{name}' value to number.") from None
    if kind == "String.Array":
        _check_array(name, content)
    return {"DataType": kind, member: content}


def _check_array(name: str, text: str) -> None:
    try:
        values = orjson.loads(text)
    except orjson.JSONDecodeError:
        values = None
    if not isinstance(values, list) or any(isinstance(value, dict | list) for value in values):
        raise invalid_attribute_value(f"The message attribute '{name}' is not a valid JSON array of values.")


def _size(attributes: Attributes) -> int:
    total = 0
    for name, value in attributes.items():
        content = base64.b64decode(value["BinaryValue"]) if "BinaryValue" in value else value["StringValue"].encode()
        total += len(name.encode()) + len(value["DataType"]) + len(content)
    return total


def number(tx: Transaction, topic: Topic, message: Draft) -> Published:
    """The message's id and, in a FIFO topic, its place in the sequence; those of the first where it repeats one."""
    if not topic.fifo:
        return Published(tx.new_id(), None, True)
    scope = (message.group_id or "") if topic.deduplicates_by_group else ""
    tx.run("DELETE FROM sns_deduplications WHERE topic = :topic AND expires_at <= :now", topic=topic.name, now=tx.now)
    known = tx.one(
        "SELECT message_id, sequence_number FROM sns_deduplications"
        " WHERE topic = :topic AND scope = :scope AND deduplication_id = :id",
        topic=topic.name,
        scope=scope,
        id=message.deduplication_id,
    )
    if known is not None:
        return Published(known["message_id"], known["sequence_number"], False)
    row = tx.one(
        "UPDATE sns_topics SET next_sequence = next_sequence + 1 WHERE name = :name RETURNING next_sequence",
        name=topic.name,
    )
    assert row is not None
    published = Published(tx.new_id(), str(SEQUENCE_BASE + row["next_sequence"] * 1000), True)
    tx.run(
        "INSERT INTO sns_deduplications (topic, scope, deduplication_id, message_id, sequence_number, expires_at)"
        " VALUES (:topic, :scope, :id, :message, :sequence, :expires)",
        topic=topic.name,
        scope=scope,
        id=message.deduplication_id,
        message=published.id,
        sequence=published.sequence_number,
        expires=tx.now + DEDUPLICATION_SECONDS,
    )
    return published
