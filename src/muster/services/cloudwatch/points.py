"""Data points: what was measured, summed up per minute, or per second at high resolution.

Keeps true: a bucket's count, sum, minimum and maximum are those of all samples put into it; what is older than the
retention is forgotten by a timer, which exists exactly while there are points. Does not know where samples come from.

Sources: PutMetricData and GetMetricStatistics in the CloudWatch API reference; "Metrics retention" (points of one
minute are kept for 15 days) in the CloudWatch user guide.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from muster.clock import Instant
from muster.transaction import Delivery, Row, Transaction

MINUTE_SECONDS = 60
KEPT_SECONDS = 15 * 24 * 3600
HISTORY_KEPT_SECONDS = 30 * 24 * 3600
EXPIRE = "cloudwatch.expire"
EXPIRE_SECONDS = 3600
NO_UNIT = "None"


@dataclass(frozen=True, slots=True)
class Metric:
    """What is measured: namespace, name, and the values of its dimensions; another set of them is another metric."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """The dimensions as one text."""
        return orjson.dumps(dict(self.dimensions)).decode()

    @property
    def shown(self) -> list[dict[str, str]]:
        return [{"Name": name, "Value": value} for name, value in self.dimensions]

    @property
    def service(self) -> bool:
        """Whether a service of AWS measures it, not the user."""
        return self.namespace.startswith("AWS/")


def metric_of(request: Mapping[str, Any]) -> Metric:
    """The metric that Namespace, MetricName and Dimensions of a request name."""
    return Metric(request["Namespace"], request["MetricName"], dimensions_of(request.get("Dimensions") or ()))


def dimensions_of(listed: Iterable[Mapping[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((one["Name"], one["Value"]) for one in listed))


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of a set of samples."""

    samples: float
    total: float
    least: float
    most: float

    def joined(self, other: "Statistics") -> "Statistics":
        """Of both sets together."""
        return Statistics(
            self.samples + other.samples,
            self.total + other.total,
            min(self.least, other.least),
            max(self.most, other.most),
        )

    def value(self, statistic: str) -> float:
        """One of SampleCount, Average, Sum, Minimum and Maximum."""
        match statistic:
            case "SampleCount":
                return self.samples
            case "Average":
                return self.total / self.samples
            case "Sum":
                return self.total
            case "Minimum":
                return self.least
        assert statistic == "Maximum", f"no statistic: {statistic}"
        return self.most


def of_values(values: Sequence[float], counts: Sequence[float]) -> Statistics:
    """Of values that each occurred so many times."""
    return Statistics(
        sum(counts), math.fsum(v * n for v, n in zip(values, counts, strict=True)), min(values), max(values)
    )


def gauge(value: float) -> Statistics:
    """Of one sample."""
    return Statistics(1.0, value, value, value)


def put(
    tx: Transaction, metric: Metric, at: Instant, statistics: Statistics, *, unit: str = NO_UNIT, resolution: int = 60
) -> None:
    """Add samples to the bucket of their instant."""
    _put(
        tx,
        metric,
        at,
        statistics,
        unit,
        resolution,
        "samples = cloudwatch_points.samples + excluded.samples, total = cloudwatch_points.total + excluded.total,"
        " least = CASE WHEN excluded.least < cloudwatch_points.least THEN excluded.least"
        " ELSE cloudwatch_points.least END,"
        " most = CASE WHEN excluded.most > cloudwatch_points.most THEN excluded.most ELSE cloudwatch_points.most END",
    )


def replace(tx: Transaction, metric: Metric, at: Instant, statistics: Statistics, *, unit: str) -> None:
    """Let the minute's bucket hold these samples alone: a gauge is measured once a minute, the last look counts."""
    _put(
        tx,
        metric,
        at,
        statistics,
        unit,
        MINUTE_SECONDS,
        "samples = excluded.samples, total = excluded.total, least = excluded.least, most = excluded.most",
    )


def _put(
    tx: Transaction,
    metric: Metric,
    at: Instant,
    statistics: Statistics,
    unit: str,
    resolution: int,
    conflict: str,
) -> None:
    first = tx.one("SELECT 1 AS found FROM cloudwatch_points LIMIT 1") is None
    tx.run(
        "INSERT INTO cloudwatch_points (namespace, metric, dimensions, unit, at, samples, total, least, most)"
        " VALUES (:namespace, :metric, :dimensions, :unit, :at, :samples, :total, :least, :most)"
        " ON CONFLICT (namespace, metric, dimensions, unit, at) DO UPDATE SET " + conflict,
        namespace=metric.namespace,
        metric=metric.name,
        dimensions=metric.key,
        unit=unit,
        at=float(math.floor(at / resolution) * resolution),
        samples=statistics.samples,
        total=statistics.total,
        least=statistics.least,
        most=statistics.most,
    )
    if first:
        schedule_expiry(tx)


def between(
    tx: Transaction, metric: Metric, start: Instant, end: Instant, unit: str | None = None
) -> list[tuple[Instant, str, Statistics]]:
    """The buckets that begin at `start` or later and before `end`, the oldest first."""
    rows = tx.all(
        "SELECT * FROM cloudwatch_points WHERE namespace = :namespace AND metric = :metric AND dimensions = :dimensions"
        " AND at >= :start AND at < :end ORDER BY at",
        namespace=metric.namespace,
        metric=metric.name,
        dimensions=metric.key,
        start=start,
        end=end,
    )
    return [(row["at"], row["unit"], _statistics(row)) for row in rows if unit is None or row["unit"] == unit]


def _statistics(row: Row) -> Statistics:
    return Statistics(row["samples"], row["total"], row["least"], row["most"])


def periods(buckets: Iterable[tuple[Instant, str, Statistics]], period: int) -> dict[tuple[Instant, str], Statistics]:
    """The buckets joined into whole periods, by each period's start and unit."""
    found: dict[tuple[Instant, str], Statistics] = {}
    for at, unit, statistics in buckets:
        key = (start_of(at, period), unit)
        found[key] = found[key].joined(statistics) if key in found else statistics
    return found


def start_of(at: Instant, period: int) -> Instant:
    """The start of the period in which an instant lies."""
    return float(math.floor(at / period) * period)


def listed(tx: Transaction, since: Instant) -> list[Metric]:
    """The metrics that have a point at or after an instant."""
    rows = tx.all(
        "SELECT DISTINCT namespace, metric, dimensions FROM cloudwatch_points WHERE at >= :since"
        " ORDER BY namespace, metric, dimensions",
        since=since,
    )
    return [Metric(row["namespace"], row["metric"], tuple(orjson.loads(row["dimensions"]).items())) for row in rows]


def schedule_expiry(tx: Transaction) -> None:
    """Look for what is too old in a while; one timer, however often it is asked for."""
    tx.cancel(EXPIRE, "")
    tx.post(Delivery(EXPIRE, "", {}, due_at=tx.now + EXPIRE_SECONDS))


def expire(tx: Transaction, _: object) -> None:
    """Forget points and history that are too old; come again while there is something to forget."""
    tx.run("DELETE FROM cloudwatch_points WHERE at < :limit", limit=tx.now - KEPT_SECONDS)
    tx.run("DELETE FROM cloudwatch_history WHERE at < :limit", limit=tx.now - HISTORY_KEPT_SECONDS)
    tables = ("cloudwatch_points", "cloudwatch_history")
    if any(tx.one(f"SELECT 1 AS found FROM {table} LIMIT 1") is not None for table in tables):
        schedule_expiry(tx)
