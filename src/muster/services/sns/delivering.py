"""Brings a published message to each subscription that wants it, tries again, and gives up in the open.

Keeps true: a queue or a function has the message exactly when its delivery is done, in one commit; in a FIFO topic a
group's messages reach a subscription in their order, a failing one holding back those behind it; what cannot be
delivered ends in the subscription's dead-letter queue or, without one, as a row of `sns_failed_deliveries`. HTTP(S)
endpoints are reached by a runner, which reports to `record`.

Sources: the SNS developer guide, "Message delivery retries" and "Dead-letter queues": errors on the sender's side are
not retried, errors on the receiver's are, by the protocol's policy.
"""

import base64
import logging
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from muster.arn import Arn
from muster.errors import ServiceError
from muster.services.sns import backoff, envelope, filters, subscriptions, topics
from muster.services.sns.envelope import Place
from muster.services.sns.messages import Draft, Published
from muster.services.sns.subscriptions import Subscription
from muster.services.sns.topics import Topic
from muster.transaction import Carried, Delivery, Transaction

log = logging.getLogger(__name__)

DELIVER = "sns.deliver"
GROUP = "sns.group"
# Carried outside: a request to an HTTP(S) endpoint, whose outcome is told to this operation of ours.
POST = "http.post"
RECORD = "RecordDelivery"
POST_SECONDS = 15.0
# One commit brings so many of a group's messages on their way.
GROUP_BATCH = 20

# What a sibling refuses for now: the receiver's side, to be tried again. All else is refused for good.
_PASSING = frozenset(
    {
        "TooManyRequestsException",
        "ThrottlingException",
        "Throttling",
        "RequestThrottled",
        "OverLimit",
        "ServiceException",
        "InternalFailure",
        "InternalError",
        "ServiceUnavailable",
        "ResourceConflictException",
        "ResourceNotReadyException",
    }
)

Message = Mapping[str, Any]


class Delivering:
    """Deliveries of a server that is reached at `endpoint`."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._senders: Mapping[str, Callable[[Transaction, Topic, Subscription, Message], None]] = {
            "sqs": self._to_queue,
            "lambda": self._to_function,
        }

    def publish(self, tx: Transaction, topic: Topic, draft: Draft, published: Published) -> None:
        """Post the message to every subscription that wants it."""
        for subscription in subscriptions.of_topic(tx, topic.name):
            text = draft.texts.get(subscription.protocol, draft.texts["default"])
            policy = subscription.attributes.get("FilterPolicy")
            if not subscription.confirmed or not filters.wants(policy, subscription.scope, text, draft.attributes):
                continue
            message = {
                "id": published.id,
                "text": text,
                "subject": draft.subject,
                "attributes": draft.attributes,
                "at": tx.now,
                "group": draft.group_id,
                "deduplication": draft.deduplication_id,
                "sequence": published.sequence_number,
            }
            if topic.fifo:
                self._line_up(tx, subscription, message)
            else:
                self._post(tx, topic, subscription, message, attempts=0, due_at=None)

    def ask_to_confirm(self, tx: Transaction, topic: Topic, subscription: Subscription) -> None:
        """Post the token to an endpoint that has not confirmed."""
        message = {"confirm": subscription.token, "id": tx.new_id(), "at": tx.now}
        tx.cancel(POST, subscription.id)
        self._post(tx, topic, subscription, message, attempts=0, due_at=None)

    def forget(self, tx: Transaction, subscription: Subscription) -> None:
        """Nothing more goes to a subscription that ends."""
        for kind in (DELIVER, POST):
            tx.cancel(kind, subscription.id)
        subscriptions.remove(tx, subscription)

    def _post(
        self,
        tx: Transaction,
        topic: Topic,
        subscription: Subscription,
        message: Message,
        *,
        attempts: int,
        due_at: float | None,
    ) -> None:
        attempt = {"subscription": subscription.id, "message": message, "attempts": attempts}
        if subscription.protocol in self._senders:
            tx.post(Delivery(DELIVER, subscription.id, attempt, due_at))
            return
        request = {
            "url": subscription.endpoint,
            "headers": self._headers(topic, subscription, message),
            "body": self._body(topic, subscription, message),
            "seconds": POST_SECONDS,
            "tell": {"service": "sns", "operation": RECORD, "about": attempt},
        }
        tx.post(Delivery(POST, subscription.id, request, due_at))

    def carry(self, tx: Transaction, delivery: Carried) -> None:
        """Try once to bring a message to a queue or a function."""
        attempt = delivery.payload
        subscription = subscriptions.find(tx, attempt["subscription"])
        topic = topics.find(tx, subscription.topic) if subscription else None
        if subscription is None or topic is None:
            return
        try:
            self._senders[subscription.protocol](tx, topic, subscription, attempt["message"])
        except ServiceError as refusal:
            attempts = attempt["attempts"] + 1
            self._failed(tx, topic, subscription, attempt["message"], attempts, refusal)

    def record(self, tx: Transaction, attempt: Mapping[str, Any], status: int | None, error: str | None) -> None:
        """What came of a request to an HTTP(S) endpoint: a status, or why there is none."""
        subscription = subscriptions.find(tx, attempt["subscription"])
        topic = topics.find(tx, subscription.topic) if subscription else None
        if subscription is None or topic is None or (status is not None and 200 <= status < 300):
            return
        passing = status is None or status == 429 or status >= 500
        said = error or f"The endpoint answered with the status {status}"
        refusal = ServiceError("ServiceUnavailable" if passing else str(status), said)
        self._failed(tx, topic, subscription, attempt["message"], attempt["attempts"] + 1, refusal)

    def _failed(
        self,
        tx: Transaction,
        topic: Topic,
        subscription: Subscription,
        message: Message,
        attempts: int,
        refusal: ServiceError,
    ) -> None:
        delay = self._delay(topic, subscription, attempts, refusal)
        if delay is None:
            self._give_up(tx, topic, subscription, message, attempts, refusal)
        else:
            self._post(tx, topic, subscription, message, attempts=attempts, due_at=tx.now + delay)

    def _delay(self, topic: Topic, subscription: Subscription, attempts: int, refusal: ServiceError) -> float | None:
        if refusal.code not in _PASSING and (refusal.status or 400) < 500:
            return None
        if refusal.code == "NotImplemented":
            return None
        return backoff.delay_seconds(subscription.retries(topic), attempts)

    def _line_up(self, tx: Transaction, subscription: Subscription, message: Message) -> None:
        """Put a message behind those of its group; a delivery is on its way for whatever stands first."""
        group = message["group"]
        first = tx.one(
            "SELECT 1 AS one FROM sns_waiting WHERE subscription = :subscription AND group_id = :group_id",
            subscription=subscription.id,
            group_id=group,
        )
        tx.run(
            "INSERT INTO sns_waiting (subscription, group_id, sequence_number, message)"
            " VALUES (:subscription, :group_id, :sequence, :message)",
            subscription=subscription.id,
            group_id=group,
            sequence=message["sequence"],
            message=orjson.dumps(message).decode(),
        )
        if first is None:
            self._post_group(tx, subscription.id, group, 0, None)

    def _post_group(self, tx: Transaction, id_: str, group: str, attempts: int, due_at: float | None) -> None:
        payload = {"subscription": id_, "group": group, "attempts": attempts}
        tx.post(Delivery(GROUP, id_, payload, due_at))

    def carry_group(self, tx: Transaction, delivery: Carried) -> None:
        """Bring a group's waiting messages on their way, in order, until one fails."""
        id_, group = delivery.payload["subscription"], delivery.payload["group"]
        subscription = subscriptions.find(tx, id_)
        topic = topics.find(tx, subscription.topic) if subscription else None
        if subscription is None or topic is None:
            return
        attempts = delivery.payload["attempts"]
        for row in tx.all(
            "SELECT sequence_number, message FROM sns_waiting WHERE subscription = :subscription"
            " AND group_id = :group_id ORDER BY sequence_number LIMIT :limit",
            subscription=id_,
            group_id=group,
            limit=GROUP_BATCH,
        ):
            message = orjson.loads(row["message"])
            try:
                self._to_queue(tx, topic, subscription, message)
            except ServiceError as refusal:
                attempts += 1
                delay = self._delay(topic, subscription, attempts, refusal)
                if delay is not None:
                    self._post_group(tx, id_, group, attempts, tx.now + delay)
                    return
                self._give_up(tx, topic, subscription, message, attempts, refusal)
            attempts = 0
            tx.run(
                "DELETE FROM sns_waiting WHERE subscription = :subscription AND group_id = :group_id"
                " AND sequence_number = :sequence",
                subscription=id_,
                group_id=group,
                sequence=row["sequence_number"],
            )
        left = tx.one(
            "SELECT 1 AS one FROM sns_waiting WHERE subscription = :subscription AND group_id = :group_id",
            subscription=id_,
            group_id=group,
        )
        if left is not None:
            self._post_group(tx, id_, group, 0, None)

    def _give_up(
        self,
        tx: Transaction,
        topic: Topic,
        subscription: Subscription,
        message: Message,
        attempts: int,
        refusal: ServiceError,
    ) -> None:
        said = f"{refusal.code}: {refusal.message}"
        if subscription.dead_letters and "confirm" not in message:
            why = {
                "RequestID": tx.new_id(),
                "ErrorCode": refusal.code,
                "ErrorMessage": refusal.message or refusal.code,
            }
            attributes = {name: {"DataType": "String", "StringValue": text} for name, text in why.items()}
            try:
                body = self._body(topic, subscription, message)
                _send(tx, Arn.parse(subscription.dead_letters), body, message, attributes)
            except ServiceError as unreachable:
                said += f" (and its dead-letter queue refused it: {unreachable.code}: {unreachable.message})"
            else:
                return
        log.warning("message %s was not delivered to %s: %s", message["id"], subscription.endpoint, said)
        tx.run(
            "INSERT INTO sns_failed_deliveries (id, subscription_arn, endpoint, message, error_code, error_message,"
            " attempts, failed_at) VALUES (:id, :arn, :endpoint, :message, :code, :said, :attempts, :now)",
            id=tx.new_id(),
            arn=subscriptions.arn_of(topic.arn, subscription.id),
            endpoint=subscription.endpoint,
            message=orjson.dumps(message).decode(),
            code=refusal.code,
            said=said,
            attempts=attempts,
            now=tx.now,
        )

    def _place(self, topic: Topic) -> Place:
        return Place(self._endpoint, topic.arn, topic.signature_version)

    def _body(self, topic: Topic, subscription: Subscription, message: Message) -> str:
        place = self._place(topic)
        if "confirm" in message:
            return envelope.confirmation(place, message["id"], message["confirm"], message["at"])
        if subscription.raw:
            return str(message["text"])
        return envelope.notification(place, subscriptions.arn_of(topic.arn, subscription.id), message)

    def _headers(self, topic: Topic, subscription: Subscription, message: Message) -> dict[str, str]:
        headers = {
            "x-amz-sns-message-type": "SubscriptionConfirmation" if "confirm" in message else "Notification",
            "x-amz-sns-message-id": message["id"],
            "x-amz-sns-topic-arn": topic.arn,
            "content-type": subscription.content_type(topic),
            "user-agent": "Amazon Simple Notification Service Agent",
        }
        if "confirm" not in message:
            headers["x-amz-sns-subscription-arn"] = subscriptions.arn_of(topic.arn, subscription.id)
            if subscription.raw:
                headers["x-amz-sns-rawdelivery"] = "true"
        return headers

    def _to_queue(self, tx: Transaction, topic: Topic, subscription: Subscription, message: Message) -> None:
        attributes = _for_queue(message["attributes"]) if subscription.raw else {}
        _send(tx, Arn.parse(subscription.endpoint), self._body(topic, subscription, message), message, attributes)

    def _to_function(self, tx: Transaction, topic: Topic, subscription: Subscription, message: Message) -> None:
        event = envelope.record(self._place(topic), subscriptions.arn_of(topic.arn, subscription.id), message)
        request = {"FunctionName": subscription.endpoint, "InvocationType": "Event", "Payload": event.encode()}
        tx.call("lambda", "Invoke", request)


def _send(tx: Transaction, queue: Arn, body: str, message: Message, attributes: Mapping[str, Any]) -> None:
    url = tx.call("sqs", "GetQueueUrl", {"QueueName": queue.resource, "QueueOwnerAWSAccountId": queue.account})
    request: dict[str, Any] = {"QueueUrl": url["QueueUrl"], "MessageBody": body}
    if attributes:
        request["MessageAttributes"] = attributes
    if message["group"]:
        request["MessageGroupId"] = message["group"]
    if message["deduplication"] and queue.resource.endswith(".fifo"):
        request["MessageDeduplicationId"] = message["deduplication"]
    tx.call("sqs", "SendMessage", request)


def _for_queue(attributes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        name: {**value, "BinaryValue": base64.b64decode(value["BinaryValue"])} if "BinaryValue" in value else {**value}
        for name, value in attributes.items()
    }
