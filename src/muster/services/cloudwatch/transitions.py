"""A change of an alarm's state: recorded, announced on the event bus, and told to whom the alarm acts on.

Keeps true: the new state, its history, the event and what goes to topics and functions are one commit. An action that
is refused is recorded in the history and harms nothing else. Does not know why the state changes.

Sources: "Alarm events and EventBridge", "Invoke a Lambda function from an alarm" and "Notifying users on alarm
changes" in the CloudWatch user guide.
"""

import uuid
from datetime import UTC, datetime
from typing import Any

import orjson

from muster.arn import Arn
from muster.clock import Instant
from muster.errors import ServiceError
from muster.services.cloudwatch import alarms, points
from muster.services.cloudwatch.alarms import Alarm
from muster.transaction import Transaction

# How messages to people name the region; any other is named by its code.
REGION_NAMES = {
    "us-east-1": "US East (N. Virginia)",
    "us-east-2": "US East (Ohio)",
    "us-west-1": "US West (N. California)",
    "us-west-2": "US West (Oregon)",
    "eu-central-1": "EU (Frankfurt)",
    "eu-west-1": "EU (Ireland)",
    "eu-west-2": "EU (London)",
    "eu-west-3": "EU (Paris)",
    "eu-north-1": "EU (Stockholm)",
    "ap-northeast-1": "Asia Pacific (Tokyo)",
    "ap-southeast-1": "Asia Pacific (Singapore)",
    "ap-southeast-2": "Asia Pacific (Sydney)",
    "ap-south-1": "Asia Pacific (Mumbai)",
    "sa-east-1": "South America (Sao Paulo)",
    "ca-central-1": "Canada (Central)",
}
# The name-based id of an alarm's only metric in what is told to functions and the bus.
NAMESPACE = uuid.UUID("3b0d5a5e-62b6-4a0b-9f2b-4b7a6d9c1f10")


def stamp(instant: Instant) -> str:
    """An instant as alarms write it: to the millisecond, with an offset."""
    moment = datetime.fromtimestamp(instant, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}+0000"


def change(tx: Transaction, alarm: Alarm, state: str, reason: str, reason_data: str | None) -> None:
    """Give the alarm a state, and act when it is another than before."""
    transitioned_at = alarm.transitioned_at if state == alarm.state else tx.now
    tx.run(
        "UPDATE cloudwatch_alarms SET state = :state, reason = :reason, reason_data = :reason_data, updated_at = :now,"
        " transitioned_at = :transitioned_at WHERE name = :name",
        state=state,
        reason=reason,
        reason_data=reason_data,
        now=tx.now,
        transitioned_at=transitioned_at,
        name=alarm.name,
    )
    if state == alarm.state:
        return
    _record_update(tx, alarm, state, reason, reason_data)
    _announce(tx, alarm, state, reason, reason_data)
    if alarm.enabled:
        for action in alarm.actions(state):
            _act(tx, alarm, action, state, reason, reason_data)


def record(tx: Transaction, alarm: str, type_: str, summary: str, data: dict[str, Any]) -> None:
    """Write an entry of an alarm's history."""
    row = tx.one("SELECT MAX(number) AS last FROM cloudwatch_history WHERE alarm = :alarm", alarm=alarm)
    number = 1 + ((row["last"] if row is not None else None) or 0)
    tx.run(
        "INSERT INTO cloudwatch_history (alarm, number, at, type, summary, data)"
        " VALUES (:alarm, :number, :now, :type, :summary, :data)",
        alarm=alarm,
        number=number,
        now=tx.now,
        type=type_,
        summary=summary,
        data=orjson.dumps(data).decode(),
    )
    if number == 1:
        points.schedule_expiry(tx)


def _record_update(tx: Transaction, alarm: Alarm, state: str, reason: str, reason_data: str | None) -> None:
    data = {
        "version": "1.0",
        "oldState": _recorded(alarm.state, alarm.reason, alarm.reason_data),
        "newState": _recorded(state, reason, reason_data),
    }
    record(tx, alarm.name, "StateUpdate", f"Alarm updated from {alarm.state} to {state}", data)


def _recorded(state: str, reason: str, reason_data: str | None) -> dict[str, Any]:
    shown: dict[str, Any] = {"stateValue": state, "stateReason": reason}
    if reason_data is not None:
        shown["stateReasonData"] = orjson.loads(reason_data)
    return shown


def _act(tx: Transaction, alarm: Alarm, action: str, state: str, reason: str, reason_data: str | None) -> None:
    target = Arn.parse(action)
    try:
        if target.service == "sns":
            message = orjson.dumps(_message(tx, alarm, state, reason)).decode()
            subject = f'{state}: "{alarm.name}" in {REGION_NAMES.get(tx.region, tx.region)}'
            # A subject of SNS is at most 100 characters.
            tx.call("sns", "Publish", {"TopicArn": action, "Subject": subject[:100], "Message": message})
        else:
            message = orjson.dumps(_payload(tx, alarm, state, reason, reason_data)).decode()
            request = {"FunctionName": action, "InvocationType": "Event", "Payload": message.encode()}
            tx.call("lambda", "Invoke", request)
    except ServiceError as error:
        data = _outcome(alarm, action, "Failed", tx.now, error=error.message)
        record(tx, alarm.name, "Action", f"Failed to execute action {action}", data)
    else:
        data = _outcome(alarm, action, "Succeeded", tx.now, publishedMessage=message)
        record(tx, alarm.name, "Action", f"Successfully executed action {action}", data)


def _outcome(alarm: Alarm, action: str, state: str, at: Instant, **more: Any) -> dict[str, Any]:
    return {"actionState": state, "stateUpdateTimestamp": int(at * 1000), "notificationResource": action, **more}


def _message(tx: Transaction, alarm: Alarm, state: str, reason: str) -> dict[str, Any]:
    """What a topic is told."""
    definition = alarm.definition
    return {
        "AlarmName": alarm.name,
        "AlarmDescription": definition.get("AlarmDescription"),
        "AWSAccountId": tx.account,
        "AlarmConfigurationUpdatedTimestamp": stamp(alarm.configured_at),
        "NewStateValue": state,
        "NewStateReason": reason,
        "StateChangeTime": stamp(tx.now),
        "Region": REGION_NAMES.get(tx.region, tx.region),
        "AlarmArn": alarms.arn_of(tx, alarm.name),
        "OldStateValue": alarm.state,
        "OKActions": alarm.actions("OK"),
        "AlarmActions": alarm.actions("ALARM"),
        "InsufficientDataActions": alarm.actions("INSUFFICIENT_DATA"),
        "Trigger": {
            "MetricName": definition["MetricName"],
            "Namespace": definition["Namespace"],
            "StatisticType": "Statistic",
            "Statistic": _statistic(definition["Statistic"]),
            "Unit": definition.get("Unit"),
            "Dimensions": [{"value": value, "name": name} for name, value in alarm.metric.dimensions],
            "Period": alarm.period,
            "EvaluationPeriods": alarm.rule.periods,
            "DatapointsToAlarm": alarm.rule.needed,
            "ComparisonOperator": alarm.rule.comparison,
            "Threshold": alarm.rule.threshold,
            "TreatMissingData": alarm.rule.missing,
            "EvaluateLowSampleCountPercentile": "",
        },
    }


def _statistic(name: str) -> str:
    return "SAMPLE_COUNT" if name == "SampleCount" else name.upper()


def _payload(tx: Transaction, alarm: Alarm, state: str, reason: str, reason_data: str | None) -> dict[str, Any]:
    """What a function is told."""
    return {
        "source": "aws.cloudwatch",
        "alarmArn": alarms.arn_of(tx, alarm.name),
        "accountId": tx.account,
        "time": stamp(tx.now),
        "region": tx.region,
        "alarmData": _detail(tx, alarm, state, reason, reason_data),
    }


def _detail(tx: Transaction, alarm: Alarm, state: str, reason: str, reason_data: str | None) -> dict[str, Any]:
    metric = alarm.metric
    return {
        "alarmName": alarm.name,
        "state": _told(state, reason, reason_data, tx.now),
        "previousState": _told(alarm.state, alarm.reason, alarm.reason_data, alarm.updated_at),
        "configuration": {
            "description": alarm.definition.get("AlarmDescription"),
            "metrics": [
                {
                    "id": str(uuid.uuid5(NAMESPACE, alarm.name)),
                    "metricStat": {
                        "metric": {
                            "namespace": metric.namespace,
                            "name": metric.name,
                            "dimensions": dict(metric.dimensions),
                        },
                        "period": alarm.period,
                        "stat": alarm.definition["Statistic"],
                    },
                    "returnData": True,
                }
            ],
        },
    }


def _told(state: str, reason: str, reason_data: str | None, at: Instant) -> dict[str, Any]:
    told = {"value": state, "reason": reason, "timestamp": stamp(at)}
    if reason_data is not None:
        told["reasonData"] = reason_data
    return told


def _announce(tx: Transaction, alarm: Alarm, state: str, reason: str, reason_data: str | None) -> None:
    if not tx.offers("events", "PublishServiceEvent"):
        return
    event = {
        "Source": "aws.cloudwatch",
        "DetailType": "CloudWatch Alarm State Change",
        "Detail": orjson.dumps(_detail(tx, alarm, state, reason, reason_data)).decode(),
        "Resources": [alarms.arn_of(tx, alarm.name)],
    }
    tx.call("events", "PublishServiceEvent", event)
