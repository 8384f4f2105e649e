"""Topics: their names, attributes, policies and tags.

Keeps true: a name is FIFO exactly when it ends in `.fifo`; creating a topic again answers the one that is there, if
nothing asked for differs. Does not know who subscribes.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from muster.arn import Arn, arn
from muster.errors import unsupported
from muster.services.sns import backoff
from muster.services.sns.refusals import invalid, no_such_topic
from muster.transaction import Transaction

NAME = re.compile(r"[A-Za-z0-9_-]{1,256}")
FIFO_NAME = re.compile(r"[A-Za-z0-9_-]{1,251}\.fifo")
CONTENT_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+( *; *[\w-]+=[\w.+-]+)?", re.ASCII)
DISPLAY_NAME_MAX = 100
TAGS_MAX = 50

FLAGS = ("FifoTopic", "ContentBasedDeduplication")
CHOICES: Mapping[str, tuple[str, ...]] = {
    "FifoTopic": ("true", "false"),
    "ContentBasedDeduplication": ("true", "false"),
    "SignatureVersion": ("1", "2"),
    "FifoThroughputScope": ("Topic", "MessageGroup"),
    "TracingConfig": ("PassThrough", "Active"),
}
TEXTS = ("DisplayName", "Policy", "DeliveryPolicy", "KmsMasterKeyId")
FIFO_ONLY = ("ContentBasedDeduplication", "FifoThroughputScope")
# Attributes of AWS's that ask for what is not offered here.
UNSUPPORTED = re.compile(r"ArchivePolicy|DataProtectionPolicy|\w+(Success|Failure)Feedback(RoleArn|SampleRate)")

ACTIONS = (
    "GetTopicAttributes",
    "SetTopicAttributes",
    "AddPermission",
    "RemovePermission",
    "DeleteTopic",
    "Subscribe",
    "ListSubscriptionsByTopic",
    "Publish",
)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as stored."""

    name: str
    arn: str
    attributes: Mapping[str, str]
    tags: Mapping[str, str]
    fifo: bool
    unsubscribed: int

    @property
    def deduplicates_by_content(self) -> bool:
        return self.attributes.get("ContentBasedDeduplication") == "true"

    @property
    def deduplicates_by_group(self) -> bool:
        return self.attributes.get("FifoThroughputScope") == "MessageGroup"

    @property
    def signature_version(self) -> str:
        return self.attributes.get("SignatureVersion", "1")

    @property
    def delivery_policy(self) -> dict[str, Any]:
        """The policy of HTTP(S) deliveries in force, as EffectiveDeliveryPolicy shows it."""
        set_ = orjson.loads(self.attributes.get("DeliveryPolicy") or "{}").get("http") or {}
        return {
            "http": {
                "defaultHealthyRetryPolicy": {**backoff.HTTP_RETRIES, **set_.get("defaultHealthyRetryPolicy", {})},
                "disableSubscriptionOverrides": bool(set_.get("disableSubscriptionOverrides", False)),
                "defaultRequestPolicy": {
                    "headerContentType": "text/plain; charset=UTF-8",
                    **set_.get("defaultRequestPolicy", {}),
                },
            }
        }


def parsed(text: str, parameter: str) -> Arn:
    """The parts of an ARN of SNS; InvalidParameter when it is none."""
    elements = text.count(":") + 1
    if elements < 6:
        raise invalid(f"{parameter} Reason: An ARN must have at least 6 elements, not {elements}")
    try:
        found = Arn.parse(text)
    except ValueError:
        raise invalid(parameter) from None
    if found.service != "sns":
        raise invalid(parameter)
    return found


def find(tx: Transaction, name: str) -> Topic | None:
    row = tx.one("SELECT name, attributes, tags, fifo, unsubscribed FROM sns_topics WHERE name = :name", name=name)
    if row is None:
        return None
    return Topic(
        row["name"],
        arn(tx, "sns", row["name"]),
        orjson.loads(row["attributes"]),
        orjson.loads(row["tags"]),
        bool(row["fifo"]),
        row["unsubscribed"],
    )


def at(tx: Transaction, text: str, parameter: str = "TopicArn") -> Topic:
    """The topic of an ARN; NotFound when there is none."""
    topic = find(tx, parsed(text, parameter).resource)
    if topic is None or topic.arn != text:
        raise no_such_topic()
    return topic


def create(tx: Transaction, name: str, attributes: Mapping[str, str], tags: Sequence[Mapping[str, str]]) -> str:
    """Create a topic, or find the one that is the same; its ARN."""
    fifo = attributes.get("FifoTopic", "false").lower() == "true"
    if fifo and not FIFO_NAME.fullmatch(name):
        raise invalid(
            "Fifo Topic names must end with .fifo and must be made up of only uppercase and lowercase ASCII letters,"
            " numbers, underscores, and hyphens, and must be between 1 and 256 characters long."
        )
    if not fifo and not NAME.fullmatch(name):
        raise invalid("Topic Name")
    checked = {
        attribute: _checked(attribute, value, fifo, unknown=f"Attributes Reason: Unknown attribute {attribute}")
        for attribute, value in attributes.items()
    }
    known = find(tx, name)
    if known is not None:
        effective = {"DisplayName": "", "ContentBasedDeduplication": "false", "FifoTopic": "false", **known.attributes}
        if any(effective.get(attribute) != value for attribute, value in checked.items()):
            raise invalid("Attributes Reason: Topic already exists with different attributes")
        if tags and tagged({}, tags) != known.tags:
            raise invalid("Tags Reason: Topic already exists with different tags")
        return known.arn
    tx.run(
        "INSERT INTO sns_topics (name, attributes, tags, fifo, next_sequence, created_at)"
        " VALUES (:name, :attributes, :tags, :fifo, 0, :now)",
        name=name,
        attributes=orjson.dumps(checked).decode(),
        tags=orjson.dumps(tagged({}, tags)).decode(),
        fifo=int(fifo),
        now=tx.now,
    )
    return arn(tx, "sns", name)


def tagged(tags: Mapping[str, str], more: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Tags with more of them; refused when a key comes twice or they are too many."""
    added = {tag["Key"]: tag["Value"] for tag in more}
    if len(added) != len(more):
        raise invalid("Duplicated keys are not allowed.")
    both = {**tags, **added}
    if len(both) > TAGS_MAX:
        raise invalid(f"Could not complete request: tag quota of per resource exceeded {TAGS_MAX}")
    return both


def _checked(attribute: str, value: str, fifo: bool, *, unknown: str) -> str:
    if UNSUPPORTED.fullmatch(attribute):
        raise unsupported(f"the topic attribute {attribute}")
    if attribute not in TEXTS and attribute not in CHOICES:
        raise invalid(unknown)
    if attribute in FIFO_ONLY and not fifo:
        raise invalid(f"Attributes Reason: {attribute} is only valid for FIFO topics")
    if attribute in FLAGS:
        value = value.lower()
    if attribute in CHOICES and value and value not in CHOICES[attribute]:
        raise invalid(f"{attribute} Reason: must be one of {', '.join(CHOICES[attribute])}")
    if attribute == "TracingConfig" and value == "Active":
        raise unsupported("active tracing of topics (TracingConfig Active)")
    if attribute == "DisplayName" and len(value) > DISPLAY_NAME_MAX:
        raise invalid("DisplayName")
    if attribute == "Policy" and value:
        _object(value, "Policy Error: null")
    if attribute == "DeliveryPolicy" and value:
        _delivery_policy(value)
    return value


def _object(text: str, wrong: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise invalid(wrong) from None
    if not isinstance(value, dict):
        raise invalid(wrong)
    return value


def _delivery_policy(text: str) -> None:
    policy = _object(text, "DeliveryPolicy: failed to parse JSON.")
    http = policy.get("http", {})
    known = {"defaultHealthyRetryPolicy", "disableSubscriptionOverrides", "defaultRequestPolicy"}
    if not isinstance(http, dict) or policy.keys() - {"http"}:
        raise invalid("DeliveryPolicy: unexpected JSON member")
    # Throttling and what else AWS takes here is not done, so it is not taken.
    if http.keys() - known:
        raise unsupported(f"{min(http.keys() - known)} in a topic's DeliveryPolicy")
    backoff.checked(http.get("defaultHealthyRetryPolicy", {}), "DeliveryPolicy: http.defaultHealthyRetryPolicy")
    check_request_policy(http.get("defaultRequestPolicy", {}), "DeliveryPolicy: http.defaultRequestPolicy")


def check_request_policy(policy: Any, where: str) -> None:
    """InvalidParameter unless it says nothing, or a content type that a header can hold."""
    if not isinstance(policy, dict) or policy.keys() - {"headerContentType"}:
        raise invalid(f"{where} Reason: unexpected JSON member")
    kind = policy.get("headerContentType", "text/plain")
    if not isinstance(kind, str) or not CONTENT_TYPE.fullmatch(kind):
        raise invalid(f"{where}.headerContentType Reason: must be a content type")


def set_attribute(tx: Transaction, topic: Topic, attribute: str, value: str) -> None:
    """Set an attribute; an empty text takes it back."""
    if attribute == "FifoTopic":
        raise invalid("AttributeName")
    attributes = {**topic.attributes, attribute: _checked(attribute, value, topic.fifo, unknown="AttributeName")}
    if not value and attribute != "DisplayName":
        del attributes[attribute]
    _store(tx, topic, attributes)


def _store(tx: Transaction, topic: Topic, attributes: Mapping[str, str]) -> None:
    tx.run(
        "UPDATE sns_topics SET attributes = :attributes WHERE name = :name",
        attributes=orjson.dumps(attributes).decode(),
        name=topic.name,
    )


def describe(tx: Transaction, topic: Topic) -> dict[str, str]:
    """A topic's attributes, as the API shows them."""
    counts = tx.one(
        "SELECT COUNT(*) AS total, SUM(confirmed) AS confirmed FROM sns_subscriptions WHERE topic = :topic",
        topic=topic.name,
    )
    assert counts is not None
    confirmed = counts["confirmed"] or 0
    shown = {
        "DisplayName": "",
        "EffectiveDeliveryPolicy": orjson.dumps(topic.delivery_policy).decode(),
        "Owner": tx.account,
        "Policy": orjson.dumps(policy_of(tx, topic)).decode(),
        "SubscriptionsConfirmed": str(confirmed),
        "SubscriptionsDeleted": str(topic.unsubscribed),
        "SubscriptionsPending": str(counts["total"] - confirmed),
        "TopicArn": topic.arn,
        **({"ContentBasedDeduplication": "false"} if topic.fifo else {}),
        **topic.attributes,
    }
    if not topic.fifo:
        shown.pop("FifoTopic", None)
    return shown


def policy_of(tx: Transaction, topic: Topic) -> dict[str, Any]:
    """The topic's policy: the one that was set, or AWS's default."""
    if topic.attributes.get("Policy"):
        policy: dict[str, Any] = orjson.loads(topic.attributes["Policy"])
        return policy
    return {
        "Version": "2008-10-17",
        "Id": "__default_policy_ID",
        "Statement": [
            {
                "Sid": "__default_statement_ID",
                "Effect": "Allow",
                "Principal": {"AWS": "*"},
                "Action": [f"SNS:{action}" for action in ACTIONS],
                "Resource": topic.arn,
                "Condition": {"StringEquals": {"AWS:SourceOwner": tx.account}},
            }
        ],
    }


def add_permission(tx: Transaction, topic: Topic, label: str, accounts: Sequence[str], actions: Sequence[str]) -> None:
    """Allow accounts some actions under a label."""
    policy = policy_of(tx, topic)
    if any(action not in (*ACTIONS, "Receive") for action in actions):
        raise invalid("Policy statement action out of service scope!")
    if any(statement.get("Sid") == label for statement in policy["Statement"]):
        raise invalid("Statement already exists")
    principals = [f"arn:aws:iam::{account}:root" for account in accounts]
    named = [f"SNS:{action}" for action in actions]
    statement = {
        "Sid": label,
        "Effect": "Allow",
        "Principal": {"AWS": principals if len(principals) > 1 else principals[0]},
        "Action": named if len(named) > 1 else named[0],
        "Resource": topic.arn,
    }
    policy["Statement"].append(statement)
    _store(tx, topic, {**topic.attributes, "Policy": orjson.dumps(policy).decode()})


def remove_permission(tx: Transaction, topic: Topic, label: str) -> None:
    """Take a label's statement away, if it is there."""
    policy = policy_of(tx, topic)
    left = [statement for statement in policy["Statement"] if statement.get("Sid") != label]
    if len(left) != len(policy["Statement"]):
        changed = {**policy, "Statement": left}
        _store(tx, topic, {**topic.attributes, "Policy": orjson.dumps(changed).decode()})


def retag(tx: Transaction, topic: Topic, tags: Mapping[str, str]) -> None:
    tx.run("UPDATE sns_topics SET tags = :tags WHERE name = :name", tags=orjson.dumps(tags).decode(), name=topic.name)
