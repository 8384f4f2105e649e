"""CloudWatch's API over metrics: AWS's shapes in and out, and nothing else."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from muster.clock import Instant
from muster.errors import unsupported
from muster.operation import Answer, Operation, Request
from muster.services.cloudwatch import alarm_operations, alarms, points, sources
from muster.services.cloudwatch.pages import instant, page
from muster.services.cloudwatch.points import Metric, Statistics
from muster.services.cloudwatch.refusals import invalid_combination, invalid_value, missing, validation
from muster.transaction import Transaction

DATA_MAX = 1000
VALUES_MAX = 150
DIMENSIONS_MAX = 30
VALUE_MAX = 2.0**360
POINTS_MAX = 1440
QUERIES_MAX = 500
DATA_POINTS_MAX = 100_800
LISTED_MAX = 500
PAST_SECONDS, FUTURE_SECONDS = 14 * 86400, 2 * 3600
RECENT_SECONDS = 3 * 3600


def put_metric_data(tx: Transaction, request: Request) -> Answer:
    namespace = request["Namespace"]
    if namespace.startswith("AWS/"):
        raise invalid_value(f"The value {namespace} for parameter Namespace is invalid.")
    data = request.get("MetricData")
    if not data:
        raise missing("The parameter MetricData is required.")
    if len(data) > DATA_MAX:
        raise validation(
            "1 validation error detected: Value at 'metricData' failed to satisfy constraint: Member must have length"
            f" less than or equal to {DATA_MAX}"
        )
    for number, datum in enumerate(data, 1):
        place = f"MetricData.member.{number}"
        statistics = _statistics(place, datum)
        at = instant(datum["Timestamp"]) if datum.get("Timestamp") is not None else tx.now
        if not tx.now - PAST_SECONDS <= at <= tx.now + FUTURE_SECONDS:
            raise invalid_value(
                f"The parameter {place}.Timestamp must specify a time within the past two weeks and no more than two"
                " hours in the future."
            )
        resolution = datum.get("StorageResolution") or 60
        if resolution not in (1, 60):
            raise invalid_value(f"The parameter {place}.StorageResolution must be 1 or 60.")
        metric = points.metric_of({"Namespace": namespace, **datum})
        if len(metric.dimensions) > DIMENSIONS_MAX:
            raise invalid_value(
                f"The collection {place}.Dimensions must not have a size greater than {DIMENSIONS_MAX}."
            )
        if statistics is not None:
            points.put(tx, metric, at, statistics, unit=datum.get("Unit") or points.NO_UNIT, resolution=resolution)
    return {}


def _statistics(place: str, datum: Mapping[str, Any]) -> Statistics | None:
    """What a datum says, in whichever of the three ways; None for a set of no samples."""
    given = [name for name in ("Value", "Values", "StatisticValues") if datum.get(name) not in (None, [])]
    if not given:
        raise missing(f"At least one of the parameters {place}.Value, Values or StatisticValues must be specified.")
    if len(given) > 1:
        raise invalid_combination(
            f"The parameters {place}.{given[0]} and {place}.{given[1]} are mutually exclusive and you have specified"
            " both."
        )
    if given == ["StatisticValues"]:
        told = datum["StatisticValues"]
        for name, number in told.items():
            _check_number(f"{place}.StatisticValues.{name}", number)
        if told["SampleCount"] < 0:
            raise invalid_value(f"The value {told['SampleCount']} for parameter {place}.SampleCount is invalid.")
        if told["SampleCount"] == 0:
            return None
        if told["Minimum"] > told["Maximum"]:
            raise invalid_combination(f"{place}.StatisticValues.Minimum must not be greater than Maximum.")
        return Statistics(told["SampleCount"], told["Sum"], told["Minimum"], told["Maximum"])
    values: Sequence[float] = datum["Values"] if given == ["Values"] else [datum["Value"]]
    counts: Sequence[float] = datum.get("Counts") or [1.0] * len(values)
    if len(values) > VALUES_MAX:
        raise invalid_value(f"The collection {place}.Values must not have a size greater than {VALUES_MAX}.")
    if len(counts) != len(values):
        raise invalid_combination(f"The parameters {place}.Values and {place}.Counts must be of the same size.")
    for number in values:
        _check_number(f"{place}.{given[0]}", number)
    if any(not math.isfinite(count) or count < 0 for count in counts) or sum(counts) == 0:
        raise invalid_value(f"The values of parameter {place}.Counts are invalid.")
    occurring = [(value, count) for value, count in zip(values, counts, strict=True) if count]
    return points.of_values([value for value, _ in occurring], [count for _, count in occurring])


def _check_number(parameter: str, value: float) -> None:
    if not math.isfinite(value) or abs(value) > VALUE_MAX:
        told = "NaN" if math.isnan(value) else value
        raise invalid_value(f"The value {told} for parameter {parameter} is invalid.")


def get_metric_statistics(tx: Transaction, request: Request) -> Answer:
    if request.get("ExtendedStatistics"):
        raise unsupported("percentiles (ExtendedStatistics)")
    statistics = request.get("Statistics")
    if not statistics:
        raise missing("At least one of the parameters Statistics or ExtendedStatistics must be specified.")
    start, end, period = instant(request["StartTime"]), instant(request["EndTime"]), request["Period"]
    if start >= end:
        raise invalid_combination("The parameter StartTime must be less than the parameter EndTime.")
    _check_period(period)
    asked = math.ceil((end - start) / period)
    if asked > POINTS_MAX:
        raise invalid_combination(
            f"You have requested up to {asked:,} datapoints, which exceeds the limit of {POINTS_MAX:,}. You may reduce"
            " the datapoints requested by increasing Period, or decreasing the time range."
        )
    found = _read(tx, points.metric_of(request), start, end, period, request.get("Unit"))
    shown = [
        {"Timestamp": at, "Unit": unit, **{name: told.value(name) for name in statistics}}
        for (at, unit), told in found.items()
    ]
    return {"Label": request["MetricName"], "Datapoints": shown}


def _check_period(period: int) -> None:
    if period not in (1, 5, 10, 20, 30) and period % 60 != 0:
        raise invalid_value("The parameter Period must be 1, 5, 10, 20, 30 or a multiple of 60.")


def _read(
    tx: Transaction, metric: Metric, start: Instant, end: Instant, period: int, unit: str | None
) -> dict[tuple[Instant, str], Statistics]:
    sources.check(metric)
    return points.periods(sources.buckets(tx, metric, points.start_of(start, period), end, unit), period)


def get_metric_data(tx: Transaction, request: Request) -> Answer:
    queries = request["MetricDataQueries"]
    start, end = instant(request["StartTime"]), instant(request["EndTime"])
    if start >= end:
        raise validation("The parameter StartTime must be less than the parameter EndTime.")
    if len(queries) > QUERIES_MAX:
        raise validation(f"The collection MetricDataQueries must not have a size greater than {QUERIES_MAX}.")
    if len({query["Id"] for query in queries}) != len(queries):
        raise validation("The values for parameter id in MetricDataQueries are not unique.")
    ascending = request.get("ScanBy") == "TimestampAscending"
    results = [_answered(tx, query, start, end, ascending) for query in queries if query.get("ReturnData") is not False]
    # A page holds so many points of all queries together; the token says how many came before.
    size = request.get("MaxDatapoints") or DATA_POINTS_MAX
    if not 1 <= size <= DATA_POINTS_MAX:
        raise validation(f"MaxDatapoints must be between 1 and {DATA_POINTS_MAX}.")
    every = [(result["Id"], at, value) for result in results for at, value in result.pop("points")]
    shown, token = page(every, request.get("NextToken"), size)
    for result in results:
        result["Timestamps"] = [at for id_, at, _ in shown if id_ == result["Id"]]
        result["Values"] = [value for id_, _, value in shown if id_ == result["Id"]]
        result["StatusCode"] = "PartialData" if token else "Complete"
    answer: Answer = {"MetricDataResults": results, "Messages": []}
    return {**answer, "NextToken": token} if token else answer


def _answered(
    tx: Transaction, query: Mapping[str, Any], start: Instant, end: Instant, ascending: bool
) -> dict[str, Any]:
    id_ = query["Id"]
    if not (id_[:1].isascii() and id_[:1].islower()):
        raise validation(f"The value {id_} for parameter id is invalid: it must begin with a lowercase letter.")
    if query.get("Expression"):
        raise unsupported(f"metric math and queries (the Expression of {id_})")
    if query.get("AccountId"):
        raise unsupported(f"metrics of other accounts (the AccountId of {id_})")
    stat = query.get("MetricStat")
    if stat is None:
        raise validation(f"Exactly one of MetricStat and Expression is required in the query {id_}.")
    statistic, period = stat["Stat"], stat["Period"]
    if statistic not in alarms.STATISTICS:
        raise unsupported(f"the statistic {statistic}")
    _check_period(period)
    named = {"Namespace", "MetricName"} - stat["Metric"].keys()
    if named:
        raise validation(f"The parameter {sorted(named)[0]} is required in the metric of the query {id_}.")
    metric = points.metric_of(stat["Metric"])
    joined: dict[Instant, Statistics] = {}
    for (at, _), told in _read(tx, metric, start, end, period, stat.get("Unit")).items():
        joined[at] = joined[at].joined(told) if at in joined else told
    series = sorted(((at, told.value(statistic)) for at, told in joined.items()), reverse=not ascending)
    return {"Id": id_, "Label": query.get("Label") or metric.name, "points": series}


def list_metrics(tx: Transaction, request: Request) -> Answer:
    since = tx.now - (RECENT_SECONDS if request.get("RecentlyActive") else points.KEPT_SECONDS)
    put = [metric for metric in points.listed(tx, since) if not metric.service]
    wanted = [metric for metric in (*put, *sources.listed(tx)) if _listed(metric, request)]
    shown, token = page(wanted, request.get("NextToken"), LISTED_MAX)
    answer: Answer = {
        "Metrics": [
            {"Namespace": metric.namespace, "MetricName": metric.name, "Dimensions": metric.shown} for metric in shown
        ]
    }
    return {**answer, "NextToken": token} if token else answer


def _listed(metric: Metric, request: Request) -> bool:
    if request.get("Namespace") not in (None, metric.namespace) or request.get("MetricName") not in (None, metric.name):
        return False
    dimensions = dict(metric.dimensions)
    return all(
        one["Name"] in dimensions and one.get("Value") in (None, dimensions[one["Name"]])
        for one in request.get("Dimensions") or ()
    )


def _row(run: Any, members: str, *, reads: bool = False) -> Operation:
    return Operation(run, frozenset(members.split()), reads=reads)


OPERATIONS: Mapping[str, Operation] = {
    "PutMetricData": _row(put_metric_data, "Namespace MetricData"),
    "GetMetricStatistics": _row(
        get_metric_statistics,
        "Namespace MetricName Dimensions StartTime EndTime Period Statistics ExtendedStatistics Unit",
        reads=True,
    ),
    "GetMetricData": _row(
        get_metric_data, "MetricDataQueries StartTime EndTime NextToken ScanBy MaxDatapoints", reads=True
    ),
    "ListMetrics": _row(list_metrics, "Namespace MetricName Dimensions NextToken RecentlyActive", reads=True),
    **alarm_operations.OPERATIONS,
}
