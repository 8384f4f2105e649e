"""What a change of state leads to: a function that is run, an event on the bus, entries of the history; and tags."""

from typing import Any

import orjson
import pytest

from muster.errors import ServiceError
from muster.operation import Answer, Operation, Request, Service
from muster.services import cloudwatch, events, sns, sqs
from muster.testing import World
from muster.transaction import Transaction

ALARM = "arn:aws:cloudwatch:us-east-1:000000000000:alarm:slow"
FUNCTION = "arn:aws:lambda:us-east-1:000000000000:function:f"
TOPIC = "arn:aws:sns:us-east-1:000000000000:gone"

invoked: list[Request] = []


def invoke(tx: Transaction, request: Request) -> Answer:
    invoked.append(request)
    return {"StatusCode": 202}


FUNCTIONS = Service("lambda", {"Invoke": Operation(invoke, frozenset({"FunctionName", "InvocationType", "Payload"}))})


@pytest.fixture
def world() -> World:
    invoked.clear()
    made = World([cloudwatch.SERVICE, events.SERVICE, sns.SERVICE, sqs.SERVICE, FUNCTIONS])
    made.call(
        "cloudwatch",
        "PutMetricAlarm",
        AlarmName="slow",
        Namespace="Shop",
        MetricName="Latency",
        Dimensions=[{"Name": "Team", "Value": "a"}],
        Statistic="Average",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1.0,
        ComparisonOperator="GreaterThanThreshold",
        AlarmActions=[FUNCTION, TOPIC],
        Tags=[{"Key": "team", "Value": "a"}],
    )
    made.settle()
    return made


def sound(world: World) -> None:
    world.call("cloudwatch", "SetAlarmState", AlarmName="slow", StateValue="ALARM", StateReason="a drill")
    world.settle()


def test_a_function_is_run_with_the_state_and_the_one_before(world: World) -> None:
    sound(world)
    [request] = invoked
    assert (request["FunctionName"], request["InvocationType"]) == (FUNCTION, "Event")
    told = orjson.loads(request["Payload"])
    assert (told["source"], told["alarmArn"]) == ("aws.cloudwatch", ALARM)
    data = told["alarmData"]
    assert (data["previousState"]["value"], data["state"]["value"]) == ("INSUFFICIENT_DATA", "ALARM")
    assert data["state"]["reason"] == "a drill"
    [metric] = data["configuration"]["metrics"]
    assert metric["metricStat"]["metric"] == {"namespace": "Shop", "name": "Latency", "dimensions": {"Team": "a"}}


def test_the_bus_hears_of_it(world: World) -> None:
    world.call("sqs", "CreateQueue", QueueName="heard")
    pattern = {"source": ["aws.cloudwatch"], "detail-type": ["CloudWatch Alarm State Change"]}
    world.call("events", "PutRule", Name="r", EventPattern=orjson.dumps(pattern).decode())
    queue = "arn:aws:sqs:us-east-1:000000000000:heard"
    world.call("events", "PutTargets", Rule="r", Targets=[{"Id": "q", "Arn": queue}])
    sound(world)
    url = world.call("sqs", "GetQueueUrl", QueueName="heard")["QueueUrl"]
    [message] = world.call("sqs", "ReceiveMessage", QueueUrl=url)["Messages"]
    event = orjson.loads(message["Body"])
    assert (event["resources"], event["detail"]["state"]["value"]) == ([ALARM], "ALARM")


def history(world: World, **more: Any) -> list[str]:
    items = world.call("cloudwatch", "DescribeAlarmHistory", AlarmName="slow", **more)["AlarmHistoryItems"]
    return [item["HistorySummary"] for item in items]


def test_the_history_tells_everything_also_of_an_action_that_failed(world: World) -> None:
    sound(world)
    assert history(world, ScanBy="TimestampAscending") == [
        'Alarm "slow" created',
        "Alarm updated from INSUFFICIENT_DATA to ALARM",
        f"Successfully executed action {FUNCTION}",
        f"Failed to execute action {TOPIC}",
    ]
    assert len(history(world, HistoryItemType="Action")) == 2
    world.call("cloudwatch", "DeleteAlarms", AlarmNames=["slow"])
    assert history(world)[0] == 'Alarm "slow" deleted'


def test_an_alarm_that_is_not_there_cannot_be_deleted(world: World) -> None:
    with pytest.raises(ServiceError) as refusal:
        world.call("cloudwatch", "DeleteAlarms", AlarmNames=["none"])
    assert refusal.value.code == "ResourceNotFound"


def test_an_alarm_is_found_by_its_metric(world: World) -> None:
    asked: dict[str, Any] = {"Namespace": "Shop", "MetricName": "Latency"}
    assert world.call("cloudwatch", "DescribeAlarmsForMetric", **asked)["MetricAlarms"] == []
    dimensions = [{"Name": "Team", "Value": "a"}]
    [found] = world.call("cloudwatch", "DescribeAlarmsForMetric", **asked, Dimensions=dimensions)["MetricAlarms"]
    assert found["AlarmArn"] == ALARM


def test_tags_are_kept_changed_and_taken_away(world: World) -> None:
    world.call("cloudwatch", "TagResource", ResourceARN=ALARM, Tags=[{"Key": "level", "Value": "1"}])
    world.call("cloudwatch", "UntagResource", ResourceARN=ALARM, TagKeys=["team"])
    tags = world.call("cloudwatch", "ListTagsForResource", ResourceARN=ALARM)["Tags"]
    assert tags == [{"Key": "level", "Value": "1"}]
    with pytest.raises(ServiceError) as refusal:
        world.call("cloudwatch", "ListTagsForResource", ResourceARN=f"{ALARM}er")
    assert refusal.value.code == "ResourceNotFoundException"
