"""Subscriptions: who wants a topic's messages, in which form, and whether an HTTP(S) endpoint has said yes.

Keeps true: an endpoint is subscribed to a topic once; nothing but a confirmation is sent to an HTTP(S) endpoint before
it has confirmed with its token. Does not deliver.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson

from muster.arn import Arn
from muster.errors import ServiceError, unsupported
from muster.services.sns import backoff, filters, topics
from muster.services.sns.refusals import invalid, no_such_subscription
from muster.services.sns.topics import Topic
from muster.transaction import Row, Transaction

PROTOCOLS = ("sqs", "lambda", "http", "https")
# What AWS offers and Muster refuses by name.
REFUSED_PROTOCOLS = ("email", "email-json", "sms", "application", "firehose")
ATTRIBUTES = ("RawMessageDelivery", "FilterPolicy", "FilterPolicyScope", "RedrivePolicy", "DeliveryPolicy")
UNSUPPORTED_ATTRIBUTES = ("SubscriptionRoleArn", "ReplayPolicy", "ReplayStatus")
TOKEN = re.compile(r"[0-9a-f]{64,}")
TOKEN_BYTES = 144
# A token is good for so long (API reference, ConfirmSubscription).
TOKEN_SECONDS = 3 * 86_400
PENDING = "pending confirmation"


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription as stored."""

    id: str
    topic: str
    protocol: str
    endpoint: str
    attributes: Mapping[str, str]
    confirmed: bool
    authenticated: bool
    token: str | None

    @property
    def raw(self) -> bool:
        return self.attributes.get("RawMessageDelivery") == "true"

    @property
    def scope(self) -> str:
        return self.attributes.get("FilterPolicyScope", filters.ATTRIBUTES)

    @property
    def dead_letters(self) -> str | None:
        """The ARN of the dead-letter queue."""
        policy = self.attributes.get("RedrivePolicy")
        return str(orjson.loads(policy)["deadLetterTargetArn"]) if policy else None

    def retries(self, topic: Topic) -> Mapping[str, Any]:
        """The retry policy in force."""
        if self.protocol in ("sqs", "lambda"):
            return backoff.MANAGED_RETRIES
        default = topic.delivery_policy["http"]
        own = orjson.loads(self.attributes.get("DeliveryPolicy") or "{}").get("healthyRetryPolicy")
        if own is None or default["disableSubscriptionOverrides"]:
            found: dict[str, Any] = default["defaultHealthyRetryPolicy"]
            return found
        return {**backoff.HTTP_RETRIES, **own}

    def content_type(self, topic: Topic) -> str:
        """What an HTTP(S) endpoint is told about the body."""
        default = topic.delivery_policy["http"]
        own = orjson.loads(self.attributes.get("DeliveryPolicy") or "{}").get("requestPolicy") or {}
        if default["disableSubscriptionOverrides"]:
            own = {}
        return str(own.get("headerContentType", default["defaultRequestPolicy"]["headerContentType"]))


_COLUMNS = "id, topic, protocol, endpoint, attributes, confirmed, authenticated, token"


def _stored(row: Row) -> Subscription:
    return Subscription(
        row["id"],
        row["topic"],
        row["protocol"],
        row["endpoint"],
        orjson.loads(row["attributes"]),
        bool(row["confirmed"]),
        bool(row["authenticated"]),
        row["token"],
    )


def arn_of(topic_arn: str, id_: str) -> str:
    return f"{topic_arn}:{id_}"


def find(tx: Transaction, id_: str) -> Subscription | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM sns_subscriptions WHERE id = :id", id=id_)
    return _stored(row) if row else None


def of_topic(tx: Transaction, topic: str) -> list[Subscription]:
    """A topic's subscriptions in order of their ids."""
    rows = tx.all(f"SELECT {_COLUMNS} FROM sns_subscriptions WHERE topic = :topic ORDER BY id", topic=topic)
    return [_stored(row) for row in rows]


def everything(tx: Transaction) -> list[Subscription]:
    return [_stored(row) for row in tx.all(f"SELECT {_COLUMNS} FROM sns_subscriptions ORDER BY id")]


def at(tx: Transaction, text: str) -> tuple[Topic, Subscription]:
    """The subscription of an ARN, with its topic; NotFound when there is none."""
    resource = topics.parsed(text, "SubscriptionArn").resource
    name, _, id_ = resource.partition(":")
    if not id_:
        raise invalid("SubscriptionArn Reason: An ARN must have at least 6 elements, not 6")
    topic, subscription = topics.find(tx, name), find(tx, id_)
    if topic is None or subscription is None or arn_of(topic.arn, id_) != text or subscription.topic != name:
        raise no_such_subscription()
    return topic, subscription


def subscribe(
    tx: Transaction, topic: Topic, protocol: str, endpoint: str, attributes: Mapping[str, str]
) -> Subscription:
    """Subscribe an endpoint, or find its subscription when nothing asked for differs."""
    if protocol in REFUSED_PROTOCOLS:
        raise unsupported(f"subscriptions with the protocol {protocol}")
    if protocol not in PROTOCOLS:
        raise invalid(f"Amazon SNS does not support this protocol string: {protocol}")
    _check_endpoint(topic, protocol, endpoint)
    checked = _all_checked(topic, protocol, attributes)
    row = tx.one(
        f"SELECT {_COLUMNS} FROM sns_subscriptions"
        " WHERE topic = :topic AND protocol = :protocol AND endpoint = :endpoint",
        topic=topic.name,
        protocol=protocol,
        endpoint=endpoint,
    )
    if row is not None:
        known = _stored(row)
        effective = {"RawMessageDelivery": "false", "FilterPolicyScope": filters.ATTRIBUTES, **known.attributes}
        if any(not _same(effective.get(attribute), value) for attribute, value in checked.items()):
            raise invalid("Attributes Reason: Subscription already exists with different attributes")
        if not known.confirmed:
            tx.run("UPDATE sns_subscriptions SET asked_at = :now WHERE id = :id", now=tx.now, id=known.id)
        return known
    confirmed = protocol in ("sqs", "lambda")
    made = Subscription(
        tx.new_id(),
        topic.name,
        protocol,
        endpoint,
        checked,
        confirmed,
        confirmed,
        None if confirmed else tx.token(TOKEN_BYTES),
    )
    tx.run(
        "INSERT INTO sns_subscriptions"
        " (id, topic, protocol, endpoint, attributes, confirmed, authenticated, token, asked_at)"
        " VALUES (:id, :topic, :protocol, :endpoint, :attributes, :confirmed, :authenticated, :token, :now)",
        id=made.id,
        topic=topic.name,
        protocol=protocol,
        endpoint=endpoint,
        attributes=orjson.dumps(checked).decode(),
        confirmed=int(confirmed),
        authenticated=int(confirmed),
        token=made.token,
        now=tx.now,
    )
    return made


def _same(known: str | None, asked: str) -> bool:
    """Whether two values say the same; policies are compared as JSON."""
    if known is None or known == asked:
        return known == asked
    return known.startswith("{") and asked.startswith("{") and bool(orjson.loads(known) == orjson.loads(asked))


def _check_endpoint(topic: Topic, protocol: str, endpoint: str) -> None:
    match protocol:
        case "sqs":
            queue = _arn(endpoint, "sqs")
            if queue is None:
                raise invalid("SQS endpoint ARN")
            if queue.resource.endswith(".fifo") and not topic.fifo:
                raise invalid(
                    "Invalid parameter: Endpoint Reason: FIFO SQS Queues can not be subscribed to standard SNS topics"
                )
        case "lambda":
            function = _arn(endpoint, "lambda")
            if function is None or not function.resource.startswith("function:"):
                raise invalid("Lambda endpoint ARN")
        case _:
            try:
                url = urlsplit(endpoint)
                fits = url.scheme == protocol and bool(url.hostname) and url.port != 0
            except ValueError:
                fits = False
            if not fits or re.search(r"[\x00-\x20\x7f]", endpoint):
                raise invalid("Endpoint must match the specified protocol")
    if topic.fifo and protocol != "sqs":
        raise invalid(f"Invalid parameter: Endpoint Reason: {protocol} can not be subscribed to FIFO SNS topics")


def _arn(text: str, service: str) -> Arn | None:
    try:
        found = Arn.parse(text)
    except ValueError:
        return None
    return found if found.service == service else None


def _all_checked(topic: Topic, protocol: str, attributes: Mapping[str, str]) -> dict[str, str]:
    scope = attributes.get("FilterPolicyScope", filters.ATTRIBUTES)
    checked = {}
    for attribute, value in attributes.items():
        text = _checked(topic, protocol, scope, attribute, value, prefix="Attributes Reason: ")
        if text:
            checked[attribute] = text
    return checked


def _checked(topic: Topic, protocol: str, scope: str, attribute: str, value: str, *, prefix: str = "") -> str:
    """An attribute's value as it is kept; '' for none."""
    if attribute in UNSUPPORTED_ATTRIBUTES:
        raise unsupported(f"the subscription attribute {attribute}")
    match attribute:
        case "RawMessageDelivery":
            if value.lower() not in ("true", "false"):
                raise invalid(f"{prefix}RawMessageDelivery: Invalid value [{value}]. Must be true or false.")
            if protocol == "lambda" and value.lower() == "true":
                raise invalid(f"{prefix}Delivery protocol [lambda] does not support raw message delivery.")
            return value.lower()
        case "FilterPolicyScope":
            if value not in filters.SCOPES:
                raise invalid(
                    f"{prefix}FilterPolicyScope: Invalid value [{value}]. Please use either MessageBody or MessageAttributes"
                )
        case "FilterPolicy":
            if value:
                filters.checked(value, scope, prefix)
            return "" if value.strip() in ("", "{}") else value
        case "RedrivePolicy":
            if value:
                _check_redrive(topic, value, prefix)
        case "DeliveryPolicy":
            if value:
                _check_delivery(protocol, value, prefix)
        case _:
            raise invalid("AttributeName" if not prefix else f"{prefix}Unknown attribute {attribute}")
    return value


def _check_redrive(topic: Topic, value: str, prefix: str) -> None:
    try:
        policy = orjson.loads(value)
    except orjson.JSONDecodeError:
        raise invalid(f"{prefix}RedrivePolicy: failed to parse JSON.") from None
    if not isinstance(policy, dict) or not isinstance(policy.get("deadLetterTargetArn"), str):
        raise invalid(f"{prefix}RedrivePolicy: missing deadLetterTargetArn")
    if policy.keys() != {"deadLetterTargetArn"}:
        raise invalid(f"{prefix}RedrivePolicy: unexpected JSON member")
    queue = _arn(policy["deadLetterTargetArn"], "sqs")
    if queue is None:
        raise invalid(f"{prefix}RedrivePolicy: deadLetterTargetArn is an invalid arn")
    if queue.resource.endswith(".fifo") and not topic.fifo:
        raise invalid(f"{prefix}RedrivePolicy: must use a standard queue as DLQ for a subscription to a standard topic")


def _check_delivery(protocol: str, value: str, prefix: str) -> None:
    if protocol not in ("http", "https"):
        raise invalid(f"{prefix}DeliveryPolicy: is only valid for HTTP/S subscriptions")
    try:
        policy = orjson.loads(value)
    except orjson.JSONDecodeError:
        raise invalid(f"{prefix}DeliveryPolicy: failed to parse JSON.") from None
    if not isinstance(policy, dict):
        raise invalid(f"{prefix}DeliveryPolicy: failed to parse JSON.")
    beyond = policy.keys() - {"healthyRetryPolicy", "requestPolicy"}
    if beyond:
        raise unsupported(f"{min(beyond)} in a subscription's DeliveryPolicy")
    backoff.checked(policy.get("healthyRetryPolicy", {}), f"{prefix}DeliveryPolicy: healthyRetryPolicy")
    topics.check_request_policy(policy.get("requestPolicy", {}), f"{prefix}DeliveryPolicy: requestPolicy")


def set_attribute(tx: Transaction, topic: Topic, subscription: Subscription, attribute: str, value: str) -> None:
    """Set an attribute; an empty text, or an empty filter policy, takes it back."""
    text = _checked(topic, subscription.protocol, subscription.scope, attribute, value)
    attributes = dict(subscription.attributes)
    if text:
        attributes[attribute] = text
    else:
        attributes.pop(attribute, None)
    policy = attributes.get("FilterPolicy")
    if attribute == "FilterPolicyScope" and policy:
        # A policy that nests cannot come to be about attributes.
        filters.checked(policy, value)
    tx.run(
        "UPDATE sns_subscriptions SET attributes = :attributes WHERE id = :id",
        attributes=orjson.dumps(attributes).decode(),
        id=subscription.id,
    )


def describe(tx: Transaction, topic: Topic, subscription: Subscription) -> dict[str, str]:
    """A subscription's attributes, as the API shows them."""
    shown = {
        "ConfirmationWasAuthenticated": "true" if subscription.authenticated else "false",
        "Endpoint": subscription.endpoint,
        "Owner": tx.account,
        "PendingConfirmation": "false" if subscription.confirmed else "true",
        "Protocol": subscription.protocol,
        "RawMessageDelivery": "false",
        "SubscriptionArn": arn_of(topic.arn, subscription.id),
        "SubscriptionPrincipal": f"arn:aws:iam::{tx.account}:user/muster",
        "TopicArn": topic.arn,
        **subscription.attributes,
    }
    if "FilterPolicy" in shown:
        shown["FilterPolicyScope"] = subscription.scope
    if subscription.protocol in ("http", "https"):
        shown["EffectiveDeliveryPolicy"] = orjson.dumps(
            {
                "healthyRetryPolicy": subscription.retries(topic),
                "requestPolicy": {"headerContentType": subscription.content_type(topic)},
            }
        ).decode()
    return shown


def confirm(tx: Transaction, topic_arn: str, token: str, *, authenticated: bool) -> Subscription:
    """An endpoint's yes; the subscription. Saying it again changes nothing."""
    topics.parsed(topic_arn, "TopicArn")
    if not TOKEN.fullmatch(token):
        raise ServiceError("InvalidParameter", "Invalid token", status=400)
    row = tx.one(f"SELECT {_COLUMNS}, asked_at FROM sns_subscriptions WHERE token = :token", token=token)
    topic = topics.find(tx, row["topic"]) if row else None
    if row is None or topic is None or topic.arn != topic_arn:
        raise invalid("Token")
    if not row["confirmed"]:
        if tx.now > row["asked_at"] + TOKEN_SECONDS:
            raise invalid("Token")
        tx.run(
            "UPDATE sns_subscriptions SET confirmed = 1, authenticated = :authenticated WHERE id = :id",
            authenticated=int(authenticated),
            id=row["id"],
        )
    return _stored(row)


def remove(tx: Transaction, subscription: Subscription) -> None:
    """Take a subscription away with what waits for it."""
    tx.run("DELETE FROM sns_waiting WHERE subscription = :id", id=subscription.id)
    tx.run("DELETE FROM sns_subscriptions WHERE id = :id", id=subscription.id)
    tx.run("UPDATE sns_topics SET unsubscribed = unsubscribed + 1 WHERE name = :name", name=subscription.topic)
