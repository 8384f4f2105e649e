"""Alarms in a small world: what is put or measured, judged, told."""

from typing import Any

import orjson
import pytest

from muster.errors import ServiceError
from muster.services import cloudwatch, events, sns, sqs
from muster.testing import World


@pytest.fixture
def world() -> World:
    made = World([cloudwatch.SERVICE, events.SERVICE, sns.SERVICE, sqs.SERVICE])
    made.clock.advance(60 - made.clock.now() % 60)
    return made


def put_alarm(world: World, **more: Any) -> None:
    asked = {
        "AlarmName": "errors",
        "Namespace": "Shop",
        "MetricName": "Errors",
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 2.0,
        "ComparisonOperator": "GreaterThanThreshold",
        **more,
    }
    world.call("cloudwatch", "PutMetricAlarm", **{name: value for name, value in asked.items() if value is not None})
    world.settle()


def put(world: World, value: float, **more: Any) -> None:
    datum = {"MetricName": "Errors", "Value": value, **more}
    world.call("cloudwatch", "PutMetricData", Namespace="Shop", MetricData=[datum])


def alarm(world: World, name: str = "errors") -> dict[str, Any]:
    [found] = world.call("cloudwatch", "DescribeAlarms", AlarmNames=[name])["MetricAlarms"]
    return dict(found)


def told(world: World, topic: str = "alerts") -> str:
    """A topic's ARN whose messages land in the queue `inbox`."""
    arn: str = world.call("sns", "CreateTopic", Name=topic)["TopicArn"]
    world.call("sqs", "CreateQueue", QueueName="inbox")
    world.call(
        "sns", "Subscribe", TopicArn=arn, Protocol="sqs", Endpoint=arn.replace(":sns:", ":sqs:").replace(topic, "inbox")
    )
    return arn


def messages(world: World) -> list[dict[str, Any]]:
    world.settle()
    url = world.call("sqs", "GetQueueUrl", QueueName="inbox")["QueueUrl"]
    found = world.call("sqs", "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    for message in found:
        world.call("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return [orjson.loads(message["Body"]) for message in found]


DEAD = {
    "AlarmName": "dead",
    "Namespace": "AWS/SQS",
    "MetricName": "ApproximateNumberOfMessagesVisible",
    "Dimensions": [{"Name": "QueueName", "Value": "orders-dead"}],
    "Statistic": "Maximum",
    "Threshold": 0.0,
    "TreatMissingData": "notBreaching",
}


def test_a_new_alarm_has_insufficient_data(world: World) -> None:
    put_alarm(world)
    found = alarm(world)
    assert (found["StateValue"], found["StateReason"]) == ("INSUFFICIENT_DATA", "Unchecked: Initial alarm creation")


def test_an_alarm_goes_off_at_the_end_of_the_period_that_exceeds_and_comes_back(world: World) -> None:
    put_alarm(world, TreatMissingData="notBreaching")
    world.pass_time(60)
    assert alarm(world)["StateValue"] == "OK"
    put(world, 2.0)
    put(world, 1.0)
    world.pass_time(59)
    assert alarm(world)["StateValue"] == "OK"
    world.pass_time(1)
    found = alarm(world)
    assert found["StateValue"] == "ALARM"
    assert found["StateReason"].startswith("Threshold Crossed: 1 out of the last 1 datapoints [3.0 (")
    assert found["StateReason"].endswith(
        "was greater than the threshold (2.0) (minimum 1 datapoint for OK -> ALARM transition)."
    )
    world.pass_time(240)
    assert alarm(world)["StateValue"] == "OK"


def test_a_message_in_a_dead_letter_queue_is_told_at_once_and_the_all_clear_follows_its_redrive(world: World) -> None:
    topic = told(world)
    url = world.call("sqs", "CreateQueue", QueueName="orders-dead")["QueueUrl"]
    put_alarm(world, **DEAD, AlarmActions=[topic], OKActions=[topic])
    assert alarm(world, "dead")["StateValue"] == "OK"
    assert len(messages(world)) == 1
    world.pass_time(20)
    world.call("sqs", "SendMessage", QueueUrl=url, MessageBody="poison")
    world.settle()
    assert alarm(world, "dead")["StateValue"] == "ALARM"
    [message] = messages(world)
    assert message["Subject"] == 'ALARM: "dead" in US East (N. Virginia)'
    text = orjson.loads(message["Message"])
    assert (text["OldStateValue"], text["NewStateValue"], text["AlarmName"]) == ("OK", "ALARM", "dead")
    assert text["Trigger"]["Dimensions"] == [{"value": "orders-dead", "name": "QueueName"}]
    world.call("sqs", "PurgeQueue", QueueUrl=url)
    world.pass_time(10)
    assert alarm(world, "dead")["StateValue"] == "OK"
    [message] = messages(world)
    assert message["Subject"].startswith("OK:")


def test_it_goes_off_again_after_the_all_clear(world: World) -> None:
    url = world.call("sqs", "CreateQueue", QueueName="orders-dead")["QueueUrl"]
    put_alarm(world, **DEAD)
    for _ in range(3):
        world.pass_time(70)
        world.call("sqs", "SendMessage", QueueUrl=url, MessageBody="poison")
        world.settle()
        assert alarm(world, "dead")["StateValue"] == "ALARM"
        world.call("sqs", "PurgeQueue", QueueUrl=url)
        world.pass_time(10)
        assert alarm(world, "dead")["StateValue"] == "OK"


def test_a_state_set_by_hand_acts_like_any_other(world: World) -> None:
    put_alarm(world, AlarmActions=[told(world)])
    world.call("cloudwatch", "SetAlarmState", AlarmName="errors", StateValue="ALARM", StateReason="a drill")
    [message] = messages(world)
    assert orjson.loads(message["Message"])["NewStateReason"] == "a drill"
    world.call("cloudwatch", "SetAlarmState", AlarmName="errors", StateValue="ALARM", StateReason="again")
    assert messages(world) == []


def test_an_alarm_whose_actions_are_disabled_changes_and_is_silent(world: World) -> None:
    put_alarm(world, AlarmActions=[told(world)])
    world.call("cloudwatch", "DisableAlarmActions", AlarmNames=["errors"])
    world.call("cloudwatch", "SetAlarmState", AlarmName="errors", StateValue="ALARM", StateReason="a drill")
    assert messages(world) == []
    assert alarm(world)["StateValue"] == "ALARM"
    world.call("cloudwatch", "EnableAlarmActions", AlarmNames=["errors"])
    assert alarm(world)["ActionsEnabled"] is True


def test_setting_the_state_of_no_alarm_is_refused(world: World) -> None:
    with pytest.raises(ServiceError) as refusal:
        world.call("cloudwatch", "SetAlarmState", AlarmName="none", StateValue="OK", StateReason="")
    assert refusal.value.code == "ResourceNotFound"
