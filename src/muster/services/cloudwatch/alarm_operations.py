"""CloudWatch's API over alarms: AWS's shapes in and out, and nothing else."""

from collections.abc import Mapping
from typing import Any

import orjson

from muster.arn import Arn
from muster.errors import ServiceError, unsupported
from muster.operation import Answer, Operation, Request
from muster.services.cloudwatch import alarms, points, transitions, watching
from muster.services.cloudwatch.alarms import Alarm
from muster.services.cloudwatch.pages import instant, page
from muster.services.cloudwatch.refusals import invalid_combination, no_such_alarm, validation
from muster.transaction import Transaction

DELETED_MAX = 100
TAGS_MAX = 50


def put_metric_alarm(tx: Transaction, request: Request) -> Answer:
    name = request["AlarmName"]
    definition = alarms.checked(request)
    before = alarms.find(tx, name)
    if before is not None:
        watching.end(tx, before)
    tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags") or ()}
    enabled = request.get("ActionsEnabled")
    new = alarms.store(tx, name, definition, enabled=enabled if enabled is not None else True, tags=tags)
    shown = {"AlarmName": name, **definition}
    data = {"version": "1.0", "type": "Create", "createdAlarm": shown}
    if not new:
        data = {"version": "1.0", "type": "Update", "updatedAlarm": shown}
    transitions.record(tx, name, "ConfigurationUpdate", f'Alarm "{name}" {"created" if new else "updated"}', data)
    watching.begin(tx, name)
    return {}


def delete_alarms(tx: Transaction, request: Request) -> Answer:
    names = list(dict.fromkeys(request["AlarmNames"]))
    if len(names) > DELETED_MAX:
        raise validation(f"At most {DELETED_MAX} alarms can be deleted at a time.")
    found = {name: alarms.find(tx, name) for name in names}
    # AWS deletes what there is of several, and says so when the only one is not there.
    if len(names) == 1 and found[names[0]] is None:
        raise no_such_alarm(f"Alarms [{names[0]}] do not exist")
    for name, alarm in found.items():
        if alarm is None:
            continue
        watching.end(tx, alarm)
        alarms.delete(tx, name)
        data = {"version": "1.0", "type": "Delete", "deletedAlarm": {"AlarmName": name, **alarm.definition}}
        transitions.record(tx, name, "ConfigurationUpdate", f'Alarm "{name}" deleted', data)
    return {}


def describe_alarms(tx: Transaction, request: Request) -> Answer:
    if request.get("AlarmNames") and request.get("AlarmNamePrefix"):
        raise validation("AlarmNames and AlarmNamePrefix cannot be specified together.")
    for member in ("ChildrenOfAlarmName", "ParentsOfAlarmName"):
        if request.get(member):
            raise unsupported(f"composite alarms ({member})")
    types = request.get("AlarmTypes")
    found = alarms.everything(tx) if not types or "MetricAlarm" in types else []
    shown, token = page(
        [alarm for alarm in found if _wanted(alarm, request)], request.get("NextToken"), request.get("MaxRecords") or 50
    )
    answer: Answer = {"MetricAlarms": [alarms.describe(tx, alarm) for alarm in shown], "CompositeAlarms": []}
    return {**answer, "NextToken": token} if token else answer


def _wanted(alarm: Alarm, request: Request) -> bool:
    names, state, prefix = request.get("AlarmNames"), request.get("StateValue"), request.get("ActionPrefix")
    if (names and alarm.name not in names) or (state and alarm.state != state):
        return False
    if not alarm.name.startswith(request.get("AlarmNamePrefix") or ""):
        return False
    actions = [action for kind in alarms.ACTION_MEMBERS for action in alarm.actions(kind)]
    return not prefix or any(action.startswith(prefix) for action in actions)


def describe_alarms_for_metric(tx: Transaction, request: Request) -> Answer:
    if request.get("ExtendedStatistic"):
        raise unsupported("alarms on percentiles (ExtendedStatistic)")
    metric = points.metric_of(request)
    told = {member: request[member] for member in ("Statistic", "Period", "Unit") if request.get(member) is not None}
    found = [
        alarms.describe(tx, alarm)
        for alarm in alarms.everything(tx)
        if alarm.metric == metric and all(alarm.definition.get(member) == value for member, value in told.items())
    ]
    return {"MetricAlarms": found}


def describe_alarm_history(tx: Transaction, request: Request) -> Answer:
    types = request.get("AlarmTypes")
    if types and "MetricAlarm" not in types:
        return {"AlarmHistoryItems": []}
    ascending = request.get("ScanBy") == "TimestampAscending"
    start, end = request.get("StartDate"), request.get("EndDate")
    rows = tx.all(
        "SELECT * FROM cloudwatch_history WHERE at >= :start AND at <= :end"
        + (" AND alarm = :alarm" if request.get("AlarmName") else "")
        + (" AND type = :type" if request.get("HistoryItemType") else "")
        + (" ORDER BY at, alarm, number" if ascending else " ORDER BY at DESC, alarm DESC, number DESC"),
        start=instant(start) if start is not None else 0.0,
        end=instant(end) if end is not None else tx.now,
        **({"alarm": request["AlarmName"]} if request.get("AlarmName") else {}),
        **({"type": request["HistoryItemType"]} if request.get("HistoryItemType") else {}),
    )
    shown, token = page(rows, request.get("NextToken"), request.get("MaxRecords") or 100)
    answer: Answer = {
        "AlarmHistoryItems": [
            {
                "AlarmName": row["alarm"],
                "AlarmType": "MetricAlarm",
                "Timestamp": row["at"],
                "HistoryItemType": row["type"],
                "HistorySummary": row["summary"][:255],
                "HistoryData": row["data"],
            }
            for row in shown
        ]
    }
    return {**answer, "NextToken": token} if token else answer


def _enable(tx: Transaction, request: Request, enabled: int) -> Answer:
    for name in request["AlarmNames"]:
        tx.run(
            "UPDATE cloudwatch_alarms SET actions_enabled = :enabled, configured_at = :now WHERE name = :name",
            enabled=enabled,
            now=tx.now,
            name=name,
        )
    return {}


def enable_alarm_actions(tx: Transaction, request: Request) -> Answer:
    return _enable(tx, request, 1)


def disable_alarm_actions(tx: Transaction, request: Request) -> Answer:
    return _enable(tx, request, 0)


def set_alarm_state(tx: Transaction, request: Request) -> Answer:
    alarm = alarms.at(tx, request["AlarmName"])
    data = request.get("StateReasonData")
    if data is not None:
        try:
            orjson.loads(data)
        except orjson.JSONDecodeError:
            raise ServiceError("InvalidFormat", "StateReasonData must be valid JSON.", status=400) from None
    transitions.change(tx, alarm, request["StateValue"], request["StateReason"], data)
    return {}


def _tagged(tx: Transaction, request: Request) -> Alarm:
    try:
        resource = Arn.parse(request["ResourceARN"]).resource
    except ValueError:
        raise ServiceError("InvalidParameterValue", "The ARN is not valid.", status=400) from None
    kind, _, name = resource.partition(":")
    if kind != "alarm":
        raise unsupported(f"tags of {request['ResourceARN']}; those of alarms are supported")
    found = alarms.find(tx, name)
    if found is None:
        raise ServiceError(
            "ResourceNotFoundException", "Unknown", fields={"ResourceType": "MetricAlarm", "ResourceId": name}
        )
    return found


def tag_resource(tx: Transaction, request: Request) -> Answer:
    alarm = _tagged(tx, request)
    tags = {**alarm.tags, **{tag["Key"]: tag["Value"] for tag in request["Tags"]}}
    if len(tags) > TAGS_MAX:
        raise invalid_combination(f"An alarm has at most {TAGS_MAX} tags.")
    alarms.retag(tx, alarm, tags)
    return {}


def untag_resource(tx: Transaction, request: Request) -> Answer:
    alarm = _tagged(tx, request)
    alarms.retag(tx, alarm, {key: value for key, value in alarm.tags.items() if key not in request["TagKeys"]})
    return {}


def list_tags_for_resource(tx: Transaction, request: Request) -> Answer:
    return {"Tags": [{"Key": key, "Value": value} for key, value in _tagged(tx, request).tags.items()]}


def _row(run: Any, members: str, *, reads: bool = False) -> Operation:
    return Operation(run, frozenset(members.split()), reads=reads)


OPERATIONS: Mapping[str, Operation] = {
    "PutMetricAlarm": _row(
        put_metric_alarm,
        f"AlarmName ActionsEnabled Tags Metrics ExtendedStatistic EvaluateLowSampleCountPercentile ThresholdMetricId"
        f" {' '.join(alarms.MEMBERS)}",
    ),
    "DeleteAlarms": _row(delete_alarms, "AlarmNames"),
    "DescribeAlarms": _row(
        describe_alarms,
        "AlarmNames AlarmNamePrefix AlarmTypes StateValue ActionPrefix MaxRecords NextToken ChildrenOfAlarmName"
        " ParentsOfAlarmName",
        reads=True,
    ),
    "DescribeAlarmsForMetric": _row(
        describe_alarms_for_metric,
        "MetricName Namespace Statistic ExtendedStatistic Dimensions Period Unit",
        reads=True,
    ),
    "DescribeAlarmHistory": _row(
        describe_alarm_history,
        "AlarmName AlarmTypes HistoryItemType StartDate EndDate MaxRecords NextToken ScanBy",
        reads=True,
    ),
    "EnableAlarmActions": _row(enable_alarm_actions, "AlarmNames"),
    "DisableAlarmActions": _row(disable_alarm_actions, "AlarmNames"),
    "SetAlarmState": _row(set_alarm_state, "AlarmName StateValue StateReason StateReasonData"),
    "TagResource": _row(tag_resource, "ResourceARN Tags"),
    "UntagResource": _row(untag_resource, "ResourceARN TagKeys"),
    "ListTagsForResource": _row(list_tags_for_resource, "ResourceARN", reads=True),
}
