"""`muster alerts`, as a process on a real server: an alarm on a dead-letter queue, from alert to all-clear."""

import json
import subprocess
import time
from collections.abc import Callable

from muster.cli.client import Clients

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def until(true: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something is true; the alarm is looked at by the server."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_alerts_names_an_alarm_while_it_is_in_alarm(aws: Clients, muster: Run) -> None:
    dead = aws("sqs").create_queue(QueueName="alerts-dead")["QueueUrl"]
    topic = aws("sns").create_topic(Name="alerts-people")["TopicArn"]
    cloudwatch = aws("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName="alerts-dead-letters",
        AlarmDescription="An order failed three times.",
        Namespace="AWS/SQS",
        MetricName="ApproximateNumberOfMessagesVisible",
        Dimensions=[{"Name": "QueueName", "Value": "alerts-dead"}],
        Statistic="Maximum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=0,
        ComparisonOperator="GreaterThanThreshold",
        AlarmActions=[topic],
    )

    def state() -> str:
        [alarm] = cloudwatch.describe_alarms(AlarmNames=["alerts-dead-letters"])["MetricAlarms"]
        return str(alarm["StateValue"])

    until(lambda: state() == "OK")
    assert muster("alerts").stdout == ""
    aws("sqs").send_message(QueueUrl=dead, MessageBody="poison")
    until(lambda: state() == "ALARM")
    [row] = json.loads(muster("alerts", "--json").stdout)
    assert (row["alarm"], row["acts_on"]) == ("alerts-dead-letters", [topic])
    assert row["description"] == "An order failed three times."
    assert row["why"].startswith("Threshold Crossed: 1 out of the last 1 datapoints [1.0 (")
    assert row["since"].endswith("Z")
    line = muster("alerts").stdout.rstrip("\n").split("\t")
    assert (line[0], line[-1]) == ("alerts-dead-letters", "alerts-people")
    aws("sqs").purge_queue(QueueUrl=dead)
    until(lambda: state() == "OK")
    assert json.loads(muster("alerts", "--json").stdout) == []
