"""The form in which each kind of endpoint gets a message: SNS's JSON envelope, Lambda's record, or the message alone.

Members, their names and their order are AWS's ("Parsing message formats" in the SNS developer guide, and what it sends
to queues and functions). The signature is a digest of the text that AWS signs, since AWS's key is AWS's: a receiver
that verifies signatures refuses it.
"""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import orjson

from muster.clock import Instant


@dataclass(frozen=True, slots=True)
class Place:
    """Where messages come from: the topic, its signature's version, the endpoint of this server."""

    endpoint: str
    topic_arn: str
    signature_version: str

    @property
    def certificate(self) -> str:
        return f"{self.endpoint}/SimpleNotificationService-{'0' * 32}.pem"

    def unsubscribe(self, subscription_arn: str) -> str:
        return f"{self.endpoint}/?Action=Unsubscribe&SubscriptionArn={subscription_arn}"

    def subscribe(self, token: str) -> str:
        asked = urlencode({"Action": "ConfirmSubscription", "TopicArn": self.topic_arn, "Token": token})
        return f"{self.endpoint}/?{asked}"

    def signature(self, signed: Mapping[str, Any]) -> str:
        text = "".join(f"{name}\n{signed[name]}\n" for name in sorted(signed) if signed[name] is not None)
        digest = hashlib.sha512(text.encode()).digest()
        return base64.b64encode(digest * 4).decode()


def iso(at: Instant) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def notification(place: Place, subscription_arn: str, message: Mapping[str, Any]) -> str:
    """The envelope of queues and HTTP(S) endpoints. A FIFO topic's has a sequence number and is not signed."""
    body: dict[str, Any] = {"Type": "Notification", "MessageId": message["id"]}
    if message.get("sequence"):
        body["SequenceNumber"] = message["sequence"]
    body["TopicArn"] = place.topic_arn
    if message.get("subject"):
        body["Subject"] = message["subject"]
    body["Message"] = message["text"]
    body["Timestamp"] = iso(message["at"])
    if not message.get("sequence"):
        body["SignatureVersion"] = place.signature_version
        signed = ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type")
        body["Signature"] = place.signature({name: body.get(name) for name in signed})
        body["SigningCertURL"] = place.certificate
    body["UnsubscribeURL"] = place.unsubscribe(subscription_arn)
    if message.get("attributes"):
        body["MessageAttributes"] = _shown(message["attributes"])
    return orjson.dumps(body).decode()


def record(place: Place, subscription_arn: str, message: Mapping[str, Any]) -> str:
    """The event that a function is called with."""
    text = notification(place, subscription_arn, {**message, "sequence": None})
    signed = orjson.loads(text)
    sns = {
        "Type": "Notification",
        "MessageId": message["id"],
        "TopicArn": place.topic_arn,
        "Subject": message.get("subject"),
        "Message": message["text"],
        "Timestamp": signed["Timestamp"],
        "SignatureVersion": place.signature_version,
        "Signature": signed["Signature"],
        "SigningCertUrl": place.certificate,
        "UnsubscribeUrl": signed["UnsubscribeURL"],
        "MessageAttributes": _shown(message.get("attributes") or {}),
    }
    event = {
        "EventSource": "aws:sns",
        "EventVersion": "1.0",
        "EventSubscriptionArn": subscription_arn,
        "Sns": sns,
    }
    return orjson.dumps({"Records": [event]}).decode()


def confirmation(place: Place, id_: str, token: str, at: Instant) -> str:
    """What asks an HTTP(S) endpoint to confirm."""
    body = {
        "Type": "SubscriptionConfirmation",
        "MessageId": id_,
        "Token": token,
        "TopicArn": place.topic_arn,
        "Message": f"You have chosen to subscribe to the topic {place.topic_arn}.\n"
        "To confirm the subscription, visit the SubscribeURL included in this message.",
        "SubscribeURL": place.subscribe(token),
        "Timestamp": iso(at),
        "SignatureVersion": place.signature_version,
    }
    signed = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
    body["Signature"] = place.signature({name: body[name] for name in signed})
    body["SigningCertURL"] = place.certificate
    return orjson.dumps(body).decode()


def _shown(attributes: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        name: {"Type": attribute["DataType"], "Value": attribute.get("StringValue", attribute.get("BinaryValue"))}
        for name, attribute in attributes.items()
    }
