"""The metrics that Muster's services give: read from their rows when somebody asks, never written on a call's way.

Keeps true: a metric in an `AWS/` namespace is one listed here, and is what the service's rows say. A gauge says what is
now; what it was is known only for minutes in which an alarm looked. Does not know who asks.

Source: "Available CloudWatch metrics for Amazon SQS" in the SQS developer guide.
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


def _queue_attribute(attribute: str) -> Look:
    def look(tx: Transaction, dimensions: Mapping[str, str], start: Instant, end: Instant) -> Statistics | None:
        url = queue_url(tx, dimensions["QueueName"])
        if url is None:
            return None
        asked = {"QueueUrl": url, "AttributeNames": [attribute]}
        return gauge(float(tx.call("sqs", "GetQueueAttributes", asked)["Attributes"][attribute]))

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


SOURCES: Mapping[tuple[str, str], Source] = {
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): _depth("ApproximateNumberOfMessages", prompt=True),
    ("AWS/SQS", "ApproximateNumberOfMessagesNotVisible"): _depth("ApproximateNumberOfMessagesNotVisible"),
    ("AWS/SQS", "ApproximateNumberOfMessagesDelayed"): _depth("ApproximateNumberOfMessagesDelayed"),
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
    tx: Transaction, metric: Metric, start: Instant, end: Instant, period: int, unit: str | None = None
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
    if unit not in (None, source.unit):
        return []
    at, counted = points.start_of(start, period), []
    while at < min(end, tx.now):
        measured = source.look(tx, dict(metric.dimensions), at, at + period)
        if measured is not None:
            counted.append((at, source.unit, measured))
        at += period
    return counted


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
