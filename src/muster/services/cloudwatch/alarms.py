"""An alarm: what it watches, when it goes off, whom it tells; and the check of its definition.

Keeps true: a stored alarm is one that can be evaluated: of one metric, one of the five statistics, a fixed threshold.
Anything else that AWS offers is refused by name. Does not evaluate.

Source: PutMetricAlarm in the CloudWatch API reference.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from muster.arn import Arn, arn
from muster.clock import Instant
from muster.errors import unsupported
from muster.services.cloudwatch import points, sources
from muster.services.cloudwatch.judgement import COMPARISONS, Rule
from muster.services.cloudwatch.points import Metric
from muster.services.cloudwatch.refusals import no_such_alarm, validation
from muster.transaction import Row, Transaction, Value

STATISTICS = ("SampleCount", "Average", "Sum", "Minimum", "Maximum")
TREATMENTS = ("breaching", "notBreaching", "ignore", "missing")
ACTION_MEMBERS = {"OK": "OKActions", "ALARM": "AlarmActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}
ACTIONS_MAX = 5
DAY_SECONDS, WEEK_SECONDS = 86400, 604800
# What is stored of a request, in the order in which it is shown.
MEMBERS = (
    "AlarmDescription",
    "OKActions",
    "AlarmActions",
    "InsufficientDataActions",
    "MetricName",
    "Namespace",
    "Statistic",
    "Dimensions",
    "Period",
    "Unit",
    "EvaluationPeriods",
    "DatapointsToAlarm",
    "Threshold",
    "ComparisonOperator",
    "TreatMissingData",
)


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm as stored."""

    name: str
    definition: Mapping[str, Any]
    enabled: bool
    tags: Mapping[str, str]
    state: str
    reason: str
    reason_data: str | None
    updated_at: Instant
    transitioned_at: Instant
    configured_at: Instant

    @property
    def metric(self) -> Metric:
        return points.metric_of(self.definition)

    @property
    def period(self) -> int:
        return int(self.definition["Period"])

    @property
    def rule(self) -> Rule:
        periods = self.definition["EvaluationPeriods"]
        return Rule(
            self.definition["ComparisonOperator"],
            float(self.definition["Threshold"]),
            periods,
            self.definition.get("DatapointsToAlarm") or periods,
            self.definition.get("TreatMissingData") or "missing",
        )

    def actions(self, state: str) -> list[str]:
        """Whom to tell of a change to this state."""
        return list(self.definition.get(ACTION_MEMBERS[state]) or ())


def arn_of(tx: Transaction, name: str) -> str:
    return arn(tx, "cloudwatch", f"alarm:{name}")


def find(tx: Transaction, name: str) -> Alarm | None:
    row = tx.one("SELECT * FROM cloudwatch_alarms WHERE name = :name", name=name)
    return None if row is None else _alarm(row)


def at(tx: Transaction, name: str) -> Alarm:
    """The alarm of that name; ResourceNotFound when there is none."""
    found = find(tx, name)
    if found is None:
        raise no_such_alarm()
    return found


def everything(tx: Transaction) -> list[Alarm]:
    """All alarms by name."""
    return [_alarm(row) for row in tx.all("SELECT * FROM cloudwatch_alarms ORDER BY name")]


def _alarm(row: Row) -> Alarm:
    return Alarm(
        row["name"],
        orjson.loads(row["definition"]),
        bool(row["actions_enabled"]),
        orjson.loads(row["tags"]),
        row["state"],
        row["reason"],
        row["reason_data"],
        row["updated_at"],
        row["transitioned_at"],
        row["configured_at"],
    )


def describe(tx: Transaction, alarm: Alarm) -> dict[str, Any]:
    """A MetricAlarm as the API shows it."""
    shown: dict[str, Any] = {
        "AlarmName": alarm.name,
        "AlarmArn": arn_of(tx, alarm.name),
        "AlarmConfigurationUpdatedTimestamp": alarm.configured_at,
        "ActionsEnabled": alarm.enabled,
        "StateValue": alarm.state,
        "StateReason": alarm.reason,
        "StateUpdatedTimestamp": alarm.updated_at,
        "StateTransitionedTimestamp": alarm.transitioned_at,
        "OKActions": [],
        "AlarmActions": [],
        "InsufficientDataActions": [],
        "Dimensions": [],
        **alarm.definition,
    }
    if alarm.reason_data is not None:
        shown["StateReasonData"] = alarm.reason_data
    return shown


def checked(request: Mapping[str, Any]) -> dict[str, Any]:
    """The definition that a PutMetricAlarm request makes, once it is one that Muster can evaluate."""
    _refuse_what_is_not_supported(request)
    for member in ("MetricName", "Namespace", "Period", "Threshold", "Statistic"):
        if request.get(member) is None:
            raise validation(
                f"The parameter {member} is required when the alarm watches one metric."
                if member != "Statistic"
                else "Exactly one of Statistic or ExtendedStatistic must be specified"
            )
    _check_periods(request)
    treatment = request.get("TreatMissingData")
    if treatment is not None and treatment not in TREATMENTS:
        raise validation(
            f"Value '{treatment}' for parameter TreatMissingData is invalid. It must be one of {list(TREATMENTS)}."
        )
    for member in ACTION_MEMBERS.values():
        _check_actions(member, request.get(member) or ())
    metric = points.metric_of(request)
    if len({name for name, _ in metric.dimensions}) != len(metric.dimensions):
        raise validation("No Metric may specify the same dimension more than once.")
    sources.check(metric)
    return {member: request[member] for member in MEMBERS if request.get(member) is not None}


def _refuse_what_is_not_supported(request: Mapping[str, Any]) -> None:
    for member, what in {
        "Metrics": "alarms on metric math (Metrics)",
        "ExtendedStatistic": "alarms on percentiles (ExtendedStatistic)",
        "EvaluateLowSampleCountPercentile": "alarms on percentiles (EvaluateLowSampleCountPercentile)",
        "ThresholdMetricId": "alarms on anomaly detection (ThresholdMetricId)",
    }.items():
        if request.get(member):
            raise unsupported(what)
    if request["ComparisonOperator"] not in COMPARISONS:
        raise unsupported(f"alarms on anomaly detection (ComparisonOperator {request['ComparisonOperator']})")


def _check_periods(request: Mapping[str, Any]) -> None:
    period, periods = request["Period"], request["EvaluationPeriods"]
    if period not in (10, 20, 30) and period % 60 != 0:
        raise validation("Period must be 10, 20, 30 or a multiple of 60")
    if request["Namespace"].startswith("AWS/") and period < 60:
        raise validation("Period must not be less than 60 seconds for metrics in namespaces that begin with AWS/")
    longest = DAY_SECONDS if period < 3600 else WEEK_SECONDS
    if period * periods > longest:
        span = "a day" if longest == DAY_SECONDS else "a week"
        raise validation(
            f"Metrics cannot be checked across more than {span} (EvaluationPeriods * Period must be <= {longest})."
        )
    if (request.get("DatapointsToAlarm") or 1) > periods:
        raise validation("DatapointsToAlarm must be less than or equal to EvaluationPeriods")


def _check_actions(member: str, actions: "list[str] | tuple[str, ...]") -> None:
    if len(actions) > ACTIONS_MAX:
        raise validation(
            f"1 validation error detected: Value '[{', '.join(actions)}]' at '{member[:1].lower()}{member[1:]}' failed"
            f" to satisfy constraint: Member must have length less than or equal to {ACTIONS_MAX}"
        )
    for action in actions:
        try:
            service = Arn.parse(action).service
        except ValueError:
            raise validation(f"Invalid arn syntax: {action}") from None
        if service not in ("sns", "lambda"):
            raise unsupported(f"alarm actions of {service} ({action}); SNS topics and Lambda functions are supported")


def store(tx: Transaction, name: str, definition: Mapping[str, Any], *, enabled: bool, tags: Mapping[str, str]) -> bool:
    """Create the alarm, or define it anew keeping its state and tags; whether it is new."""
    values: dict[str, Value] = {
        "name": name,
        "definition": orjson.dumps(definition).decode(),
        "enabled": int(enabled),
        "now": tx.now,
    }
    changed = tx.run(
        "UPDATE cloudwatch_alarms SET definition = :definition, actions_enabled = :enabled, configured_at = :now"
        " WHERE name = :name",
        **values,
    )
    if changed:
        return False
    tx.run(
        "INSERT INTO cloudwatch_alarms (name, definition, actions_enabled, tags, state, reason, updated_at,"
        " transitioned_at, configured_at) VALUES (:name, :definition, :enabled, :tags, 'INSUFFICIENT_DATA',"
        " 'Unchecked: Initial alarm creation', :now, :now, :now)",
        tags=orjson.dumps(dict(tags)).decode(),
        **values,
    )
    return True


def delete(tx: Transaction, name: str) -> None:
    tx.run("DELETE FROM cloudwatch_alarms WHERE name = :name", name=name)


def retag(tx: Transaction, alarm: Alarm, tags: Mapping[str, str]) -> None:
    tx.run(
        "UPDATE cloudwatch_alarms SET tags = :tags WHERE name = :name",
        tags=orjson.dumps(dict(tags)).decode(),
        name=alarm.name,
    )
