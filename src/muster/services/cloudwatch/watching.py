"""Looking at an alarm's metric: once per period by a timer, and at once when a message comes into a watched queue.

Keeps true: every alarm has exactly one timer, due at the end of its period. A metric that users put is judged by whole
periods; a gauge of a service is measured at the look and counts from then on. While a gauge holds an alarm in ALARM it
is looked at every few seconds, so that the all-clear does not wait for the period. Does not know what follows from a
state.
"""

from typing import Any

import orjson

from muster.clock import Instant
from muster.services.cloudwatch import alarms, points, sources, transitions
from muster.services.cloudwatch.alarms import Alarm
from muster.services.cloudwatch.judgement import ALARM, EXTRA, Point, Verdict, judge
from muster.services.cloudwatch.points import Statistics
from muster.transaction import Carried, Delivery, Transaction

EVALUATE = "cloudwatch.evaluate"
DEPTH = "cloudwatch.depth"
# A busy queue costs a look no more often than this.
PROMPT_SECONDS = 1
# A gauge in ALARM is looked at this often, for the all-clear.
CLEARING_SECONDS = 5


def begin(tx: Transaction, name: str) -> None:
    """Look at once, and from then on."""
    tx.cancel(EVALUATE, name)
    tx.post(Delivery(EVALUATE, name, {}))


def end(tx: Transaction, alarm: Alarm) -> None:
    """Look no more."""
    tx.cancel(EVALUATE, alarm.name)
    _listen(tx, alarm, "Unlisten")


def carry(tx: Transaction, delivery: Carried) -> None:
    """The timer is due."""
    alarm = alarms.find(tx, delivery.subject)
    if alarm is None:
        return
    state = evaluate(tx, alarm)
    # What services measure is remembered minute by minute, however long the period.
    pace = min(alarm.period, points.MINUTE_SECONDS) if alarm.metric.service else alarm.period
    due_at = points.start_of(tx.now, pace) + pace
    if state == ALARM and _gauge(alarm):
        due_at = min(due_at, tx.now + CLEARING_SECONDS)
    tx.post(Delivery(EVALUATE, alarm.name, {}, due_at=due_at))


def carry_depth(tx: Transaction, delivery: Carried) -> None:
    """A message is in the queue that the alarm watches."""
    alarm = alarms.find(tx, delivery.subject)
    if alarm is not None and evaluate(tx, alarm) == ALARM:
        begin_clearing(tx, alarm)


def begin_clearing(tx: Transaction, alarm: Alarm) -> None:
    """Have the timer look sooner than at the end of the period."""
    tx.cancel(EVALUATE, alarm.name)
    tx.post(Delivery(EVALUATE, alarm.name, {}, due_at=tx.now + CLEARING_SECONDS))


def evaluate(tx: Transaction, alarm: Alarm) -> str:
    """Look, judge, and change the state when the points call for it; the state afterwards."""
    found = seen(tx, alarm)
    rule = alarm.rule
    values = [None if one is None else Point(one[0], one[1].value(alarm.definition["Statistic"])) for one in found]
    verdict = judge(rule, values, alarm.state)
    state = verdict.state or alarm.state
    if state != alarm.state:
        transitions.change(tx, alarm, state, verdict.reason, reason_data(tx, alarm, verdict, found))
    if state != ALARM:
        _listen(tx, alarm, "Listen", NotBefore=tx.now + PROMPT_SECONDS, New=True)
    return state


def seen(tx: Transaction, alarm: Alarm) -> list[tuple[Instant, Statistics] | None]:
    """What each period that the alarm looks at says, the oldest first."""
    metric, period = alarm.metric, alarm.period
    source = sources.source_of(metric)
    end = points.start_of(tx.now, period)
    if source is not None and source.gauge:
        measured = source.look(tx, dict(metric.dimensions), end, tx.now)
        if measured is not None:
            points.replace(tx, metric, tx.now, measured, unit=source.unit)
        end += period
    elif source is not None:
        minute = points.start_of(tx.now, points.MINUTE_SECONDS)
        for at, unit, told in sources.counted(
            tx, metric, source, max(minute - 120, sources.first_kept(tx, source)), minute
        ):
            points.replace(tx, metric, at, told, unit=unit)
    count = alarm.rule.periods + EXTRA
    start = end - count * period
    buckets = sources.buckets(tx, metric, start, end, alarm.definition.get("Unit"))
    joined: dict[Instant, Statistics] = {}
    for (at, _), statistics in points.periods(buckets, period).items():
        joined[at] = joined[at].joined(statistics) if at in joined else statistics
    starts = [start + number * period for number in range(count)]
    return [(at, joined[at]) if at in joined else None for at in starts]


def reason_data(tx: Transaction, alarm: Alarm, verdict: Verdict, found: list[tuple[Instant, Statistics] | None]) -> str:
    """What was looked at, as JSON."""
    samples = {one[0]: one[1].samples for one in found if one is not None}
    data: dict[str, Any] = {
        "version": "1.0",
        "queryDate": transitions.stamp(tx.now),
        "statistic": alarm.definition["Statistic"],
        "period": alarm.period,
        "recentDatapoints": [point.value for point in verdict.evaluated],
        "threshold": alarm.rule.threshold,
        "evaluatedDatapoints": [
            {"timestamp": transitions.stamp(point.at), "sampleCount": samples[point.at], "value": point.value}
            for point in reversed(verdict.evaluated)
        ],
    }
    if verdict.evaluated:
        data["startDate"] = transitions.stamp(verdict.evaluated[0].at)
    if alarm.definition.get("Unit"):
        data["unit"] = alarm.definition["Unit"]
    text = orjson.dumps(data).decode()
    if len(text) > 4000:
        # The member holds 4,000 characters: long rows of points are left out.
        text = orjson.dumps({**data, "recentDatapoints": [], "evaluatedDatapoints": []}).decode()
    return text


def _gauge(alarm: Alarm) -> bool:
    source = sources.source_of(alarm.metric)
    return source is not None and source.gauge


def _listen(tx: Transaction, alarm: Alarm, operation: str, **more: Any) -> None:
    """Be told, or no longer, of messages in the queue whose depth the alarm watches."""
    source = sources.source_of(alarm.metric)
    if source is None or not source.prompt or not tx.offers("sqs", operation):
        return
    url = sources.queue_url(tx, dict(alarm.metric.dimensions)["QueueName"])
    if url is None:
        return
    tx.call("sqs", operation, {"QueueUrl": url, "Kind": DEPTH, "Subject": alarm.name, **more})
