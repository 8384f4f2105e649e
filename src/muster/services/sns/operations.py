"""SNS's API over topics and subscriptions: AWS's shapes in and out, and nothing else."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any

from muster.errors import ServiceError
from muster.operation import Answer, Operation, Request
from muster.services.sns import messages, subscriptions, topics
from muster.services.sns.delivering import RECORD, Delivering
from muster.services.sns.refusals import invalid, no_such_resource
from muster.services.sns.subscriptions import Subscription, arn_of
from muster.services.sns.topics import Topic
from muster.transaction import Transaction

PAGE = 100
BATCH_MAX = 10
BATCH_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


def operations(delivering: Delivering) -> Mapping[str, Operation]:
    """The table, for a server that delivers in this way."""

    def subscribe(tx: Transaction, request: Request) -> Answer:
        topic = topics.at(tx, request["TopicArn"])
        made = subscriptions.subscribe(
            tx, topic, request["Protocol"], request.get("Endpoint") or "", request.get("Attributes") or {}
        )
        if made.confirmed:
            return {"SubscriptionArn": arn_of(topic.arn, made.id)}
        delivering.ask_to_confirm(tx, topic, made)
        told = arn_of(topic.arn, made.id) if request.get("ReturnSubscriptionArn") else subscriptions.PENDING
        return {"SubscriptionArn": told}

    def unsubscribe(tx: Transaction, request: Request) -> Answer:
        text = request["SubscriptionArn"]
        id_ = topics.parsed(text, "SubscriptionArn").resource.partition(":")[2]
        found = subscriptions.find(tx, id_)
        if found is not None:
            delivering.forget(tx, subscriptions.at(tx, text)[1])
        return {}

    def delete_topic(tx: Transaction, request: Request) -> Answer:
        name = topics.parsed(request["TopicArn"], "TopicArn").resource
        topic = topics.find(tx, name)
        if topic is not None and topic.arn == request["TopicArn"]:
            for subscription in subscriptions.of_topic(tx, name):
                delivering.forget(tx, subscription)
            tx.run("DELETE FROM sns_deduplications WHERE topic = :name", name=name)
            tx.run("DELETE FROM sns_topics WHERE name = :name", name=name)
        return {}

    def publish(tx: Transaction, request: Request) -> Answer:
        target = request.get("TopicArn") or request.get("TargetArn")
        if not target:
            raise invalid("TopicArn or TargetArn Reason: no value for required parameter")
        topic = topics.at(tx, target, "TopicArn" if request.get("TopicArn") else "TargetArn")
        return published(tx, topic, messages.draft(topic, request))

    def published(tx: Transaction, topic: Topic, draft: messages.Draft) -> Answer:
        made = messages.number(tx, topic, draft)
        if made.new:
            delivering.publish(tx, topic, draft, made)
        answer: Answer = {"MessageId": made.id}
        if made.sequence_number:
            answer["SequenceNumber"] = made.sequence_number
        return answer

    def publish_batch(tx: Transaction, request: Request) -> Answer:
        topic = topics.at(tx, request["TopicArn"])
        answer: Answer = {"Successful": [], "Failed": []}
        drafts: list[tuple[str, messages.Draft]] = []
        size = 0
        for entry in _entries(request):
            try:
                draft = messages.draft(topic, entry)
            except ServiceError as refusal:
                failed = {"Id": entry["Id"], "Code": refusal.code, "Message": refusal.message, "SenderFault": True}
                answer["Failed"].append(failed)
            else:
                size += draft.size_bytes
                drafts.append((entry["Id"], draft))
        if size > messages.BYTES_MAX:
            raise _batch_refused(
                "BatchRequestTooLong", "The length of all the messages put together is more than the limit."
            )
        for id_, draft in drafts:
            answer["Successful"].append({"Id": id_, **published(tx, topic, draft)})
        return answer

    def record_delivery(tx: Transaction, request: Request) -> Answer:
        delivering.record(tx, request["About"], request.get("Status"), request.get("Error"))
        return {}

    return {
        **OPERATIONS,
        "DeleteTopic": Operation(delete_topic, frozenset({"TopicArn"})),
        "Subscribe": Operation(
            subscribe, frozenset({"TopicArn", "Protocol", "Endpoint", "Attributes", "ReturnSubscriptionArn"})
        ),
        "Unsubscribe": Operation(unsubscribe, frozenset({"SubscriptionArn"})),
        "Publish": Operation(
            publish,
            frozenset(
                {
                    "TopicArn",
                    "TargetArn",
                    "Message",
                    "Subject",
                    "MessageStructure",
                    "MessageAttributes",
                    "MessageDeduplicationId",
                    "MessageGroupId",
                }
            ),
        ),
        "PublishBatch": Operation(publish_batch, frozenset({"TopicArn", "PublishBatchRequestEntries"})),
        RECORD: Operation(record_delivery, frozenset({"About", "Status", "Error"}), internal=True),
    }


def _batch_refused(code: str, message: str) -> ServiceError:
    return ServiceError(code, message, status=400)


def _entries(request: Request) -> Sequence[Mapping[str, Any]]:
    """A batch's entries, once they are few enough, named, and named differently."""
    entries: Sequence[Mapping[str, Any]] = request.get("PublishBatchRequestEntries") or []
    if not entries:
        raise _batch_refused("EmptyBatchRequest", "The batch request doesn't contain any entries.")
    if len(entries) > BATCH_MAX:
        raise _batch_refused(
            "TooManyEntriesInBatchRequest", "The batch request contains more entries than permissible."
        )
    ids = [entry.get("Id") or "" for entry in entries]
    if not all(BATCH_ID.fullmatch(id_) for id_ in ids):
        raise _batch_refused(
            "InvalidBatchEntryId", "The Id of a batch entry in a batch request doesn't abide by the specification."
        )
    if len(set(ids)) != len(ids):
        raise _batch_refused("BatchEntryIdsNotDistinct", "Two or more batch entries in the request have the same Id.")
    return entries


def create_topic(tx: Transaction, request: Request) -> Answer:
    made = topics.create(tx, request["Name"], request.get("Attributes") or {}, request.get("Tags") or [])
    return {"TopicArn": made}


def list_topics(tx: Transaction, request: Request) -> Answer:
    rows = tx.all(
        "SELECT name FROM sns_topics WHERE name > :after ORDER BY name LIMIT :limit",
        after=_after(request),
        limit=PAGE + 1,
    )
    found = [topics.find(tx, row["name"]) for row in rows]
    return _page("Topics", [(topic.name, {"TopicArn": topic.arn}) for topic in found if topic is not None])


def get_topic_attributes(tx: Transaction, request: Request) -> Answer:
    return {"Attributes": topics.describe(tx, topics.at(tx, request["TopicArn"]))}


def set_topic_attributes(tx: Transaction, request: Request) -> Answer:
    topic = topics.at(tx, request["TopicArn"])
    topics.set_attribute(tx, topic, request["AttributeName"], request.get("AttributeValue") or "")
    return {}


def confirm_subscription(tx: Transaction, request: Request) -> Answer:
    authenticated = (request.get("AuthenticateOnUnsubscribe") or "false").lower() == "true"
    confirmed = subscriptions.confirm(tx, request["TopicArn"], request["Token"], authenticated=authenticated)
    return {"SubscriptionArn": arn_of(request["TopicArn"], confirmed.id)}


def list_subscriptions(tx: Transaction, request: Request) -> Answer:
    return _listed(tx, request, subscriptions.everything(tx))


def list_subscriptions_by_topic(tx: Transaction, request: Request) -> Answer:
    topic = topics.at(tx, request["TopicArn"])
    return _listed(tx, request, subscriptions.of_topic(tx, topic.name))


def _listed(tx: Transaction, request: Request, found: Sequence[Subscription]) -> Answer:
    after = _after(request)
    shown = []
    for subscription in found:
        topic = topics.find(tx, subscription.topic) if subscription.id > after else None
        if topic is None:
            continue
        told = arn_of(topic.arn, subscription.id) if subscription.confirmed else "PendingConfirmation"
        summary = {
            "SubscriptionArn": told,
            "Owner": tx.account,
            "Protocol": subscription.protocol,
            "Endpoint": subscription.endpoint,
            "TopicArn": topic.arn,
        }
        shown.append((subscription.id, summary))
    return _page("Subscriptions", shown)


def _after(request: Request) -> str:
    token = request.get("NextToken")
    if not token:
        return ""
    try:
        return base64.b64decode(token, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise invalid("NextToken") from None


def _page(member: str, listed: Sequence[tuple[str, Answer]]) -> Answer:
    answer: Answer = {member: [shown for _, shown in listed[:PAGE]]}
    if len(listed) > PAGE:
        answer["NextToken"] = base64.b64encode(listed[PAGE - 1][0].encode()).decode()
    return answer


def get_subscription_attributes(tx: Transaction, request: Request) -> Answer:
    topic, subscription = subscriptions.at(tx, request["SubscriptionArn"])
    return {"Attributes": subscriptions.describe(tx, topic, subscription)}


def set_subscription_attributes(tx: Transaction, request: Request) -> Answer:
    topic, subscription = subscriptions.at(tx, request["SubscriptionArn"])
    value = request.get("AttributeValue") or ""
    subscriptions.set_attribute(tx, topic, subscription, request["AttributeName"], value)
    return {}


def add_permission(tx: Transaction, request: Request) -> Answer:
    topic = topics.at(tx, request["TopicArn"])
    topics.add_permission(tx, topic, request["Label"], request["AWSAccountId"], request["ActionName"])
    return {}


def remove_permission(tx: Transaction, request: Request) -> Answer:
    topics.remove_permission(tx, topics.at(tx, request["TopicArn"]), request["Label"])
    return {}


def _tagged_topic(tx: Transaction, request: Request) -> Topic:
    try:
        return topics.at(tx, request["ResourceArn"], "ResourceArn")
    except ServiceError as refusal:
        if refusal.code == "NotFound":
            raise no_such_resource() from None
        raise


def tag_resource(tx: Transaction, request: Request) -> Answer:
    topic = _tagged_topic(tx, request)
    topics.retag(tx, topic, topics.tagged(topic.tags, request["Tags"]))
    return {}


def untag_resource(tx: Transaction, request: Request) -> Answer:
    topic = _tagged_topic(tx, request)
    topics.retag(tx, topic, {key: value for key, value in topic.tags.items() if key not in request["TagKeys"]})
    return {}


def list_tags_for_resource(tx: Transaction, request: Request) -> Answer:
    return {"Tags": [{"Key": key, "Value": value} for key, value in _tagged_topic(tx, request).tags.items()]}


OPERATIONS: Mapping[str, Operation] = {
    "CreateTopic": Operation(create_topic, frozenset({"Name", "Attributes", "Tags"})),
    "ListTopics": Operation(list_topics, frozenset({"NextToken"}), reads=True),
    "GetTopicAttributes": Operation(get_topic_attributes, frozenset({"TopicArn"}), reads=True),
    "SetTopicAttributes": Operation(set_topic_attributes, frozenset({"TopicArn", "AttributeName", "AttributeValue"})),
    "ConfirmSubscription": Operation(
        confirm_subscription, frozenset({"TopicArn", "Token", "AuthenticateOnUnsubscribe"})
    ),
    "ListSubscriptions": Operation(list_subscriptions, frozenset({"NextToken"}), reads=True),
    "ListSubscriptionsByTopic": Operation(
        list_subscriptions_by_topic, frozenset({"TopicArn", "NextToken"}), reads=True
    ),
    "GetSubscriptionAttributes": Operation(get_subscription_attributes, frozenset({"SubscriptionArn"}), reads=True),
    "SetSubscriptionAttributes": Operation(
        set_subscription_attributes, frozenset({"SubscriptionArn", "AttributeName", "AttributeValue"})
    ),
    "AddPermission": Operation(add_permission, frozenset({"TopicArn", "Label", "AWSAccountId", "ActionName"})),
    "RemovePermission": Operation(remove_permission, frozenset({"TopicArn", "Label"})),
    "TagResource": Operation(tag_resource, frozenset({"ResourceArn", "Tags"})),
    "UntagResource": Operation(untag_resource, frozenset({"ResourceArn", "TagKeys"})),
    "ListTagsForResource": Operation(list_tags_for_resource, frozenset({"ResourceArn"}), reads=True),
}
