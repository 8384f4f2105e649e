"""Queues: their names, their attributes with limits and defaults, and where one's dead letters go.

Keeps true: a queue's attributes are within AWS's limits; a dead-letter queue exists, is of the same type, and lets the
source use it. Does not know messages.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from muster.arn import Arn, arn
from muster.errors import ServiceError
from muster.services.sqs.refusals import invalid, invalid_value, missing, no_such_queue
from muster.transaction import Row, Transaction

NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
NUMBERS: Mapping[str, tuple[int, int, int]] = {  # attribute: (least, most, default)
    "DelaySeconds": (0, 900, 0),
    "MaximumMessageSize": (1024, 1048576, 1048576),
    "MessageRetentionPeriod": (60, 1209600, 345600),
    "ReceiveMessageWaitTimeSeconds": (0, 20, 0),
    "VisibilityTimeout": (0, 43200, 30),
}
REUSE = (60, 86400)
CHOICES: Mapping[str, tuple[str, ...]] = {
    "FifoQueue": ("true", "false"),
    "ContentBasedDeduplication": ("true", "false"),
    "SqsManagedSseEnabled": ("true", "false"),
    "DeduplicationScope": ("messageGroup", "queue"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
}
FIFO_ONLY = {"FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"}
SETTABLE = {
    *NUMBERS,
    *CHOICES,
    "Policy",
    "RedrivePolicy",
    "RedriveAllowPolicy",
    "KmsMasterKeyId",
    "KmsDataKeyReusePeriodSeconds",
}
ATTRIBUTES = {
    *SETTABLE,
    "QueueArn",
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
    "CreatedTimestamp",
    "LastModifiedTimestamp",
    "All",
}
MAX_RECEIVE_COUNT_MAX = 1000


@dataclass(frozen=True, slots=True)
class Redrive:
    """Where a queue's dead letters go, and after how many receives."""

    target: str
    receive_count_max: int


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue with its attributes, defaults filled in."""

    name: str
    attributes: Mapping[str, str]
    tags: Mapping[str, str]
    fifo: bool
    created_at: float
    modified_at: float
    purged_at: float | None

    def number(self, attribute: str) -> int:
        """The value of one of the numeric attributes."""
        return int(self.attributes.get(attribute, NUMBERS[attribute][2]))

    def is_on(self, attribute: str) -> bool:
        return self.attributes.get(attribute) == "true"

    @property
    def per_group(self) -> bool:
        """Whether deduplication ids count per message group."""
        return self.attributes.get("DeduplicationScope") == "messageGroup"

    @property
    def redrive(self) -> Redrive | None:
        text = self.attributes.get("RedrivePolicy")
        if not text:
            return None
        policy = orjson.loads(text)
        return Redrive(name_in(policy["deadLetterTargetArn"]), int(policy["maxReceiveCount"]))


def name_in(queue_arn: str) -> str:
    """The queue name in an ARN."""
    return queue_arn.rsplit(":", 1)[-1]


def from_row(row: Row) -> Queue:
    return Queue(
        name=row["name"],
        attributes=orjson.loads(row["attributes"]),
        tags=orjson.loads(row["tags"]),
        fifo=bool(row["fifo"]),
        created_at=row["created_at"],
        modified_at=row["modified_at"],
        purged_at=row["purged_at"],
    )


def find(tx: Transaction, name: str) -> Queue | None:
    row = tx.one("SELECT * FROM sqs_queues WHERE name = :name", name=name)
    return from_row(row) if row else None


def at(tx: Transaction, url: Any) -> Queue:
    """The queue at a URL (any host; the last two parts count), or by its bare name; QueueDoesNotExist otherwise."""
    if not isinstance(url, str) or not url:
        raise missing("QueueUrl")
    parts = url.split("?", 1)[0].rstrip("/").rsplit("/", 2)
    queue = find(tx, parts[-1])
    if queue is None or (len(parts) == 3 and "://" in url and parts[-2] != tx.account):
        raise no_such_queue()
    return queue


def by_arn(tx: Transaction, text: str) -> Queue | None:
    """The queue of an ARN in this account and region, if there is one."""
    try:
        parsed = Arn.parse(text)
    except ValueError:
        return None
    if (parsed.service, parsed.region, parsed.account) != ("sqs", tx.region, tx.account):
        return None
    return find(tx, parsed.resource)


def arn_of(tx: Transaction, name: str) -> str:
    return arn(tx, "sqs", name)


def create(tx: Transaction, name: Any, attributes: Mapping[str, str], tags: Mapping[str, str]) -> str:
    """Make a queue; the same request again answers the same queue, other attributes are QueueAlreadyExists."""
    if not isinstance(name, str) or not name:
        raise missing("QueueName")
    fifo = str(attributes.get("FifoQueue", "false")).lower() == "true"
    plain = name.removesuffix(".fifo") if fifo else name
    if not NAME.fullmatch(plain) or len(name) > 80 or (fifo and plain == name):
        limits = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
        if name.endswith(".fifo") or fifo:
            raise invalid(
                "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores,"
                " must end with .fifo suffix and be 1 to 80 in length."
            )
        raise invalid(limits + ".")
    checked = check(tx, name, attributes, fifo)
    existing = find(tx, name)
    if existing is not None:
        for attribute, value in checked.items():
            if (existing.attributes.get(attribute) or default(attribute)) != value:
                raise ServiceError(
                    "QueueNameExists",
                    f"A queue already exists with the same name and a different value for attribute {attribute}",
                )
        return name
    tx.run(
        "INSERT INTO sqs_queues (name, attributes, tags, fifo, next_sequence, created_at, modified_at)"
        " VALUES (:name, :attributes, :tags, :fifo, 1, :now, :now)",
        name=name,
        attributes=orjson.dumps(checked).decode(),
        tags=orjson.dumps(dict(tags)).decode(),
        fifo=int(fifo),
        now=tx.now,
    )
    return name


def set_attributes(tx: Transaction, queue: Queue, attributes: Mapping[str, str]) -> None:
    """Change some attributes; an empty text takes one away."""
    if "FifoQueue" in attributes and (attributes["FifoQueue"].lower() == "true") != queue.fifo:
        raise ServiceError(
            "InvalidAttributeValue",
            "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.",
        )
    kept = {**queue.attributes, **check(tx, queue.name, attributes, queue.fifo)}
    if attributes.get("KmsMasterKeyId"):
        kept.setdefault("SqsManagedSseEnabled", "false")
    store(tx, queue.name, {name: value for name, value in kept.items() if value != ""})


def store(tx: Transaction, name: str, attributes: Mapping[str, str]) -> None:
    tx.run(
        "UPDATE sqs_queues SET attributes = :attributes, modified_at = :now WHERE name = :name",
        attributes=orjson.dumps(dict(attributes)).decode(),
        now=tx.now,
        name=name,
    )


def default(attribute: str) -> str | None:
    """What an attribute is when it was never set."""
    if attribute in NUMBERS:
        return str(NUMBERS[attribute][2])
    return {
        "SqsManagedSseEnabled": "true",
        "ContentBasedDeduplication": "false",
        "DeduplicationScope": "queue",
        "FifoThroughputLimit": "perQueue",
        "FifoQueue": "false",
        "KmsDataKeyReusePeriodSeconds": "300",
    }.get(attribute)


def check(tx: Transaction, name: str, attributes: Mapping[str, str], fifo: bool) -> dict[str, str]:
    """The attributes in their stored form, once they are known to be allowed."""
    checked: dict[str, str] = {}
    for attribute, value in attributes.items():
        if attribute not in SETTABLE or (attribute in FIFO_ONLY and not fifo and str(value).lower() != "false"):
            raise ServiceError("InvalidAttributeName", f"Unknown Attribute {attribute}.", status=400)
        if attribute in FIFO_ONLY and not fifo:
            continue
        rule = CHECKS.get(attribute)
        checked[attribute] = rule(tx, name, attribute, value) if rule and value != "" else str(value)
    return checked


def invalid_attribute(attribute: str, detail: str = "") -> ServiceError:
    return ServiceError("InvalidAttributeValue", f"Invalid value for the parameter {attribute}.{detail}", status=400)


def _number(tx: Transaction, name: str, attribute: str, value: str) -> str:
    least, most = NUMBERS[attribute][:2] if attribute in NUMBERS else REUSE
    if not re.fullmatch(r"\d{1,9}", str(value)) or not least <= int(value) <= most:
        raise invalid_attribute(attribute)
    return str(int(value))


def _choice(tx: Transaction, name: str, attribute: str, value: str) -> str:
    for choice in CHOICES[attribute]:
        if str(value).lower() == choice.lower():
            return choice
    raise invalid_attribute(attribute)


def _policy(tx: Transaction, name: str, attribute: str, value: str) -> str:
    try:
        if not isinstance(orjson.loads(value), dict):
            raise invalid_attribute(attribute)
    except orjson.JSONDecodeError:
        raise invalid_attribute(attribute) from None
    return value


def _redrive(tx: Transaction, name: str, attribute: str, value: str) -> str:
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html"""

    def wrong(reason: str) -> ServiceError:
        return invalid_value(value, "RedrivePolicy", reason)

    try:
        policy = orjson.loads(value)
    except orjson.JSONDecodeError:
        raise wrong("Redrive policy is not a valid JSON map.") from None
    if not isinstance(policy, dict):
        raise wrong("Redrive policy is not a valid JSON map.")
    for needed in ("maxReceiveCount", "deadLetterTargetArn"):
        if needed not in policy:
            raise wrong(f"Redrive policy does not contain mandatory attribute: {needed}.")
    extra = policy.keys() - {"maxReceiveCount", "deadLetterTargetArn"}
    if extra:
        raise wrong(f"Redrive policy contains unknown attribute: {min(extra)}.")
    count = str(policy["maxReceiveCount"])
    if not count.isdigit() or not 1 <= int(count) <= MAX_RECEIVE_COUNT_MAX:
        raise wrong(f"Invalid value for maxReceiveCount: {count}, valid values are from 1 to 1000 both inclusive.")
    target = by_arn(tx, str(policy["deadLetterTargetArn"]))
    if target is None:
        raise wrong(f"Dead letter target does not exist: {policy['deadLetterTargetArn']}")
    if target.fifo != name.endswith(".fifo"):
        raise wrong("Dead-letter queue must be same type of queue as the source.")
    if not allows(tx, target, name):
        raise wrong(f"Dead letter target {policy['deadLetterTargetArn']} does not allow this source queue.")
    return value


def allows(tx: Transaction, target: Queue, source: str) -> bool:
    """Whether a dead-letter queue's allow policy lets the source use it."""
    text = target.attributes.get("RedriveAllowPolicy")
    policy = orjson.loads(text) if text else {}
    match policy.get("redrivePermission", "allowAll"):
        case "denyAll":
            return False
        case "byQueue":
            return arn_of(tx, source) in policy.get("sourceQueueArns", [])
        case _:
            return True


def _allow(tx: Transaction, name: str, attribute: str, value: str) -> str:
    def wrong(reason: str) -> ServiceError:
        return invalid_value(value, "RedriveAllowPolicy", reason)

    try:
        policy = orjson.loads(value)
    except orjson.JSONDecodeError:
        raise wrong("Amazon SQS can't create the redrive allow policy, as it’s not a valid JSON.") from None
    if not isinstance(policy, dict) or policy.get("redrivePermission") not in ("allowAll", "denyAll", "byQueue"):
        raise wrong("The permission must be allowAll, denyAll or byQueue.")
    arns = policy.get("sourceQueueArns")
    if (policy["redrivePermission"] == "byQueue") != (arns is not None):
        raise wrong("sourceQueueArns goes with byQueue, and only with it.")
    if arns is not None and (not isinstance(arns, list) or not 1 <= len(arns) <= 10):
        raise wrong("sourceQueueArns must name 1 to 10 queues.")
    return value


Check = Callable[[Transaction, str, str, str], str]
CHECKS: Mapping[str, Check] = {
    **dict.fromkeys((*NUMBERS, "KmsDataKeyReusePeriodSeconds"), _number),
    **dict.fromkeys(CHOICES, _choice),
    "Policy": _policy,
    "RedrivePolicy": _redrive,
    "RedriveAllowPolicy": _allow,
}


def describe(tx: Transaction, queue: Queue, wanted: list[str]) -> dict[str, str]:
    """The attributes asked for, as the API shows them."""
    for attribute in wanted:
        if attribute not in ATTRIBUTES:
            raise ServiceError("InvalidAttributeName", f"Unknown Attribute {attribute}.", status=400)
    shown = {attribute: str(rule[2]) for attribute, rule in NUMBERS.items()}
    shown["SqsManagedSseEnabled"] = "true"
    if queue.fifo:
        shown.update(
            FifoQueue="true",
            ContentBasedDeduplication="false",
            DeduplicationScope="queue",
            FifoThroughputLimit="perQueue",
        )
    if queue.attributes.get("KmsMasterKeyId"):
        shown["KmsDataKeyReusePeriodSeconds"] = "300"
    shown.update(queue.attributes)
    shown["QueueArn"] = arn_of(tx, queue.name)
    shown["CreatedTimestamp"] = str(int(queue.created_at))
    shown["LastModifiedTimestamp"] = str(int(queue.modified_at))
    everything = "All" in wanted
    if everything or any(attribute.startswith("ApproximateNumber") for attribute in wanted):
        shown.update(counts(tx, queue))
    return {attribute: value for attribute, value in shown.items() if everything or attribute in wanted}


def counts(tx: Transaction, queue: Queue) -> dict[str, str]:
    """How many messages are visible, in flight, and delayed; exact, though AWS promises only an approximation."""
    row = tx.one(
        "SELECT COUNT(*) AS total, SUM(CASE WHEN visible_at > :now AND receive_count > 0 THEN 1 ELSE 0 END) AS flying,"
        " SUM(CASE WHEN visible_at > :now AND receive_count = 0 THEN 1 ELSE 0 END) AS delayed"
        " FROM sqs_messages WHERE queue = :queue AND sent_at > :oldest",
        now=tx.now,
        queue=queue.name,
        oldest=tx.now - queue.number("MessageRetentionPeriod"),
    )
    assert row is not None
    flying, delayed = row["flying"] or 0, row["delayed"] or 0
    return {
        "ApproximateNumberOfMessages": str(row["total"] - flying - delayed),
        "ApproximateNumberOfMessagesNotVisible": str(flying),
        "ApproximateNumberOfMessagesDelayed": str(delayed),
    }


def delete(tx: Transaction, queue: Queue) -> None:
    """Take a queue away with all it holds."""
    for table in ("sqs_messages", "sqs_deduplications"):
        tx.run(f"DELETE FROM {table} WHERE queue = :queue", queue=queue.name)
    tx.run("DELETE FROM sqs_queues WHERE name = :name", name=queue.name)
    tx.wake(f"sqs:{queue.name}")
