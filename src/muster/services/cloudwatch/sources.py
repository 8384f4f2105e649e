"""The metrics that Muster's services give: read from their rows when somebody asks, never written on a call's way.

Keeps true: a metric in an `AWS/` namespace is one listed here, and is what the service's rows say. A gauge says what is
now; what it was is known only for minutes in which an alarm looked. Does not know who asks.

Sources: "Available CloudWatch metrics for Amazon SQS" in the SQS developer guide, "Types of metrics for Lambda functions"
in Lambda's, "Monitoring Step Functions metrics using Amazon CloudWatch" in the one of Step Functions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muster.clock import Instant
from muster.errors import ServiceError, unsupported
from muster.services.cloudwatch import points
from muster.services.cloudwatch.points import Metric, Statistics, gauge
from muster.transaction import Transaction

# What the service's rows say of the time from one instant to before another; None: nothing.
Look = Callable[[Transaction, Mapping[str, str], Instant, Instant], Statistics | None]


@dataclass(frozen=True, slots=True)
class Source:
    """How a metric is read: by which dimensions, in which unit, and whether it is what is now or what has happened.

    `prompt`: a message that becomes visible in the queue is a reason to look at once.
    """

    dimensions: frozenset[str]
    unit: str
    look: Look
    gauge: bool = False
    prompt: bool = False
    # Of a count: how far back the rows still tell; what is older is known only where an alarm looked.
    kept_seconds: int = 120


def _queue_attribute(attribute: str) -> Look:
    def look(tx: Transaction, dimensions: Mapping[str, str], start: Instant, end: Instant) -> Statistics | None:
        url = queue_url(tx, dimensions["QueueName"])
        if url is None:
            return None
        asked = {"QueueUrl": url, "AttributeNames": [attribute]}
        return gauge(float(tx.call("sqs", "GetQueueAttributes", asked)["Attributes"][attribute]))

    return look


def _age(tx: Transaction, dimensions: Mapping[str, str], start: Instant, end: Instant) -> Statistics | None:
    url = queue_url(tx, dimensions["QueueName"])
    if url is None or not tx.offers("sqs", "OldestMessage"):
        return None
    sent_at = tx.call("sqs", "OldestMessage", {"QueueUrl": url}).get("SentAt")
    return gauge(0.0 if sent_at is None else float(int(tx.now - sent_at)))


def _invocations(member: str) -> Look:
    def look(tx: Transaction, dimensions: Mapping[str, str], start: Instant, end: Instant) -> Statistics | None:
        if not tx.offers("lambda", "CountInvocations"):
            return None
        asked = {"FunctionName": dimensions["FunctionName"], "Start": start, "End": end}
        counted = tx.call("lambda", "CountInvocations", asked)
        runs, told = counted["Invocations"], counted[member]
        if not runs:
            return None
        return Statistics(float(runs), float(told), float(told == runs), float(told > 0))

    return look


def _executions(event: str) -> Look:
    def look(tx: Transaction, dimensions: Mapping[str, str], start: Instant, end: Instant) -> Statistics | None:
        if not tx.offers("stepfunctions", "CountExecutions"):
            return None
        asked = {"StateMachineArn": dimensions["StateMachineArn"], "Event": event, "Start": start, "End": end}
        found = float(tx.call("stepfunctions", "CountExecutions", asked)["Count"])
        return Statistics(found, found, 1.0, 1.0) if found else None

    return look


def queue_url(tx: Transaction, name: str) -> str | None:
    """The address of a queue, unless there is none of that name."""
    if not tx.offers("sqs", "GetQueueUrl"):
        return None
    try:
        return str(tx.call("sqs", "GetQueueUrl", {"QueueName": name})["QueueUrl"])
    except ServiceError:
        return None


def _depth(attribute: str, *, prompt: bool = False) -> Source:
    return Source(frozenset({"QueueName"}), "Count", _queue_attribute(attribute), gauge=True, prompt=prompt)


def _happened(event: str) -> Source:
    return Source(frozenset({"StateMachineArn"}), "Count", _executions(event), kept_seconds=3600)


SOURCES: Mapping[tuple[str, str], Source] = {
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): _depth("ApproximateNumberOfMessages", prompt=True),
    ("AWS/SQS", "ApproximateNumberOfMessagesNotVisible"): _depth("ApproximateNumberOfMessagesNotVisible"),
    ("AWS/SQS", "ApproximateNumberOfMessagesDelayed"): _depth("ApproximateNumberOfMessagesDelayed"),
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"): Source(frozenset({"QueueName"}), "Seconds", _age, gauge=True),
    ("AWS/Lambda", "Invocations"): Source(frozenset({"FunctionName"}), "Count", _invocations("Invocations")),
    ("AWS/Lambda", "Errors"): Source(frozenset({"FunctionName"}), "Count", _invocations("Errors")),
    ("AWS/States", "ExecutionsStarted"): _happened("STARTED"),
    ("AWS/States", "ExecutionsFailed"): _happened("FAILED"),
    ("AWS/States", "ExecutionsTimedOut"): _happened("TIMED_OUT"),
    ("AWS/States", "ExecutionsAborted"): _happened("ABORTED"),
}


def source_of(metric: Metric) -> Source | None:
    """How the metric is read, unless it is one that users put."""
    return SOURCES.get((metric.namespace, metric.name)) if metric.service else None


def check(metric: Metric) -> None:
    """Refuse a service's metric that Muster does not measure: an alarm on it would never go off."""
    if not metric.service:
        return
    source = source_of(metric)
    if source is None:
        raise unsupported(f"the metric {metric.name} of {metric.namespace}")
    given = frozenset(name for name, _ in metric.dimensions)
    if given != source.dimensions:
        wanted = ", ".join(sorted(source.dimensions)) or "none"
        found = ", ".join(sorted(given)) or "none"
        raise unsupported(
            f"the metric {metric.name} of {metric.namespace} by the dimensions {found}; its dimensions are {wanted}"
        )


def buckets(
    tx: Transaction, metric: Metric, start: Instant, end: Instant, unit: str | None = None
) -> list[tuple[Instant, str, Statistics]]:
    """A metric's points between two instants, whoever measures it: put ones, remembered gauges, rows counted."""
    source = source_of(metric)
    if source is None or source.gauge:
        found = points.between(tx, metric, start, end, unit)
        if source is None or not start <= tx.now < end or unit not in (None, source.unit):
            return found
        measured = source.look(tx, dict(metric.dimensions), start, tx.now)
        minute = points.start_of(tx.now, points.MINUTE_SECONDS)
        found = [one for one in found if one[0] != minute]
        return found if measured is None else [*found, (minute, source.unit, measured)]
    kept = first_kept(tx, source)
    remembered = points.between(tx, metric, start, min(end, kept), unit)
    return [*remembered, *counted(tx, metric, source, max(start, kept), end)] if unit in (None, source.unit) else []


def first_kept(tx: Transaction, source: Source) -> Instant:
    """The first minute that the rows still tell in full."""
    return _next_minute(tx.now - source.kept_seconds)


def _next_minute(at: Instant) -> Instant:
    """The first minute that begins at this instant or later."""
    return -points.start_of(-at, points.MINUTE_SECONDS)


def counted(
    tx: Transaction, metric: Metric, source: Source, start: Instant, end: Instant
) -> list[tuple[Instant, str, Statistics]]:
    """What the rows say of each minute that began between two instants."""
    found = []
    at = _next_minute(start)
    while at < min(end, tx.now):
        measured = source.look(tx, dict(metric.dimensions), at, at + points.MINUTE_SECONDS)
        if measured is not None:
            found.append((at, source.unit, measured))
        at += points.MINUTE_SECONDS
    return found


def listed(tx: Transaction) -> list[Metric]:
    """The metrics of what there is: each queue's."""
    if not tx.offers("sqs", "ListQueues"):
        return []
    names = [url.rpartition("/")[2] for url in tx.call("sqs", "ListQueues", {}).get("QueueUrls", [])]
    return [
        Metric(namespace, name, (("QueueName", queue),))
        for (namespace, name), source in SOURCES.items()
        for queue in names
        if source.dimensions == {"QueueName"}
    ]
