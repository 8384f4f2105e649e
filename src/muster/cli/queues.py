"""Queues as an operator sees them: how deep, how much in flight, where dead letters go, and what lies there.

Keeps true: messages that were looked at are visible again afterwards. SQS has no way to look at a message without
receiving it, and a receive counts; that is harmless in a dead-letter queue, whose count begins anew when a message is
sent back, unless the queue has dead letters of its own: those messages are not received. Does not ask or print.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from muster.cli.client import Client, Clients, pages
from muster.errors import MusterError

# While they are looked at, nobody else gets the messages; if this process dies, they come back after so long.
LOOK_SECONDS = 60
COUNTS = {
    "visible": "ApproximateNumberOfMessages",
    "in_flight": "ApproximateNumberOfMessagesNotVisible",
    "delayed": "ApproximateNumberOfMessagesDelayed",
}


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue with its attributes as SQS describes them."""

    name: str
    url: str
    attributes: dict[str, str]

    @property
    def arn(self) -> str:
        return self.attributes["QueueArn"]

    @property
    def counts(self) -> dict[str, int]:
        """Messages waiting, in flight and delayed."""
        return {name: int(self.attributes[attribute]) for name, attribute in COUNTS.items()}

    @property
    def policy(self) -> dict[str, Any] | None:
        """The redrive policy: deadLetterTargetArn and maxReceiveCount."""
        text = self.attributes.get("RedrivePolicy")
        return json.loads(text) if text else None

    @property
    def dead_letter_target(self) -> str | None:
        """The name of the queue that its dead letters go to."""
        return name_in(self.policy["deadLetterTargetArn"]) if self.policy else None


def name_in(arn_or_url: str) -> str:
    """The queue's name in its ARN or URL."""
    return arn_or_url.replace("/", ":").rsplit(":", 1)[-1]


def described(sqs: Client, url: str) -> Queue:
    return Queue(
        name_in(url), url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"]).get("Attributes", {})
    )


def all_queues(sqs: Client) -> list[Queue]:
    """Every queue, by name."""
    found = []
    for url in pages(sqs, "list_queues", "QueueUrls"):
        try:
            found.append(described(sqs, url))
        except sqs.exceptions.QueueDoesNotExist:
            continue  # Deleted since it was listed.
    return sorted(found, key=lambda queue: queue.name)


def named(sqs: Client, name: str) -> Queue:
    """The queue of that name, ARN or URL; MusterError when there is none."""
    try:
        return described(sqs, sqs.get_queue_url(QueueName=name_in(name))["QueueUrl"])
    except sqs.exceptions.QueueDoesNotExist:
        raise MusterError(f"There is no queue {name_in(name)!r}; `muster queues` lists them.") from None


def sources(clients: Clients, queues: list[Queue]) -> dict[str, list[str]]:
    """Of each dead-letter queue, what sends to it: queues, functions, rules and subscriptions that name it."""
    found: dict[str, list[str]] = {}
    for source, target in _dead_letter_targets(clients, queues):
        if target.split(":")[2:3] == ["sqs"] and source not in found.setdefault(name_in(target), []):
            found[name_in(target)].append(source)
    return found


def _dead_letter_targets(clients: Clients, queues: list[Queue]) -> Iterator[tuple[str, str]]:
    """Every source, and the ARN that its dead letters go to."""
    for queue in queues:
        if queue.policy:
            yield queue.name, queue.policy["deadLetterTargetArn"]
    for function in pages(clients("lambda"), "list_functions", "Functions"):
        yield f"function {function['FunctionName']}", function.get("DeadLetterConfig", {}).get("TargetArn", "")
    events = clients("events")
    for bus in events.list_event_buses()["EventBuses"]:
        for rule in pages(events, "list_rules", "Rules", EventBusName=bus["Name"]):
            place = {"Rule": rule["Name"], "EventBusName": bus["Name"]}
            for target in pages(events, "list_targets_by_rule", "Targets", **place):
                yield f"rule {rule['Name']}", target.get("DeadLetterConfig", {}).get("Arn", "")
    sns = clients("sns")
    for subscription in pages(sns, "list_subscriptions", "Subscriptions"):
        arn = subscription["SubscriptionArn"]
        if arn.startswith("arn:"):  # Until it is confirmed, a subscription has no ARN.
            policy = sns.get_subscription_attributes(SubscriptionArn=arn)["Attributes"].get("RedrivePolicy")
            yield (
                f"topic {name_in(subscription['TopicArn'])}",
                json.loads(policy or "{}").get("deadLetterTargetArn", ""),
            )


@contextmanager
def looking(sqs: Client, queue: Queue, limit: int) -> Iterator[list[dict[str, Any]]]:
    """Up to `limit` of the queue's messages, out of sight for others meanwhile; those that are not deleted are visible
    again at the end. Of a FIFO queue's group, at most the first ten."""
    if queue.policy:
        raise MusterError(
            f"The queue {queue.name} has a dead-letter queue of its own, and to look at its messages would count as"
            " receiving them; they stay untouched."
        )
    held: list[dict[str, Any]] = []
    try:
        while len(held) < limit:
            found = sqs.receive_message(
                QueueUrl=queue.url,
                MaxNumberOfMessages=min(10, limit - len(held)),
                VisibilityTimeout=LOOK_SECONDS,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            ).get("Messages", [])
            if not found:
                break
            held.extend(found)
        yield held
    finally:
        for start in range(0, len(held), 10):
            entries = [
                {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": 0}
                for number, message in enumerate(held[start : start + 10])
            ]
            sqs.change_message_visibility_batch(QueueUrl=queue.url, Entries=entries)


def consumers(clients: Clients, queue_arn: str) -> list[str]:
    """The functions that a mapping hands this queue's messages to."""
    found = pages(clients("lambda"), "list_event_source_mappings", "EventSourceMappings", EventSourceArn=queue_arn)
    return sorted({mapping["FunctionArn"].split(":")[6] for mapping in found})


def attempts(clients: Clients, function: str, message: dict[str, Any]) -> list[dict[str, Any]]:
    """Of each invocation of the function whose log names the message: when it began, and what was printed. An invocation
    that printed nothing of the message cannot be told from the others, and is not here."""
    id_ = message["MessageId"]
    asked = {"logGroupName": f"/aws/lambda/{function}", "startTime": int(message["Attributes"]["SentTimestamp"])}
    logs = clients("logs")
    try:
        named_in = pages(logs, "filter_log_events", "events", filterPattern=f'"{id_}"', **asked)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        return []  # It has not logged anything.
    found: list[dict[str, Any]] = []
    for stream in sorted({event["logStreamName"] for event in named_in}):
        runs: list[dict[str, Any]] = []
        for event in pages(logs, "filter_log_events", "events", logStreamNames=[stream], **asked):
            text = event["message"].rstrip()
            # An instance works on one event after the other, so its stream has them one after the other.
            if not runs or text.startswith("START RequestId:"):
                at = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
                runs.append({"at": at, "function": function, "lines": []})
            if not text.startswith(("START RequestId:", "END RequestId:", "REPORT RequestId:")):
                runs[-1]["lines"].append(text)
        found.extend(run for run in runs if any(id_ in line for line in run["lines"]))
    return sorted(found, key=lambda run: run["at"])
