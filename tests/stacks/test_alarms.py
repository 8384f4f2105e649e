"""A queue, its dead-letter queue and an alarm on it, from a template."""

from typing import Any

import pytest

from muster.services import cloudwatch, sns, sqs
from muster.stacks import SERVICE
from muster.testing import World

TEMPLATE = """
Resources:
  Dead: {Type: AWS::SQS::Queue}
  Orders:
    Type: AWS::SQS::Queue
    Properties:
      RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 1}
  Alerts: {Type: AWS::SNS::Topic}
  Alarm:
    Type: AWS::CloudWatch::Alarm
    Properties:
      AlarmDescription: Orders failed
      Namespace: AWS/SQS
      MetricName: ApproximateNumberOfMessagesVisible
      Dimensions: [{Name: QueueName, Value: !GetAtt Dead.QueueName}]
      Statistic: Maximum
      Period: 60
      EvaluationPeriods: 1
      Threshold: THRESHOLD
      ComparisonOperator: GreaterThanThreshold
      TreatMissingData: notBreaching
      AlarmActions: [!Ref Alerts]
      OKActions: [!Ref Alerts]
Outputs:
  Orders: {Value: !Ref Orders}
  Alarm: {Value: !Ref Alarm}
"""


@pytest.fixture
def world() -> World:
    return World([cloudwatch.SERVICE, sns.SERVICE, sqs.SERVICE, SERVICE])


def deploy(world: World, operation: str, threshold: int) -> dict[str, str]:
    body = TEMPLATE.replace("THRESHOLD", str(threshold))
    world.call("cloudformation", operation, StackName="shop", TemplateBody=body)
    [stack] = world.call("cloudformation", "DescribeStacks", StackName="shop")["Stacks"]
    assert stack["StackStatus"].endswith("E_COMPLETE"), stack.get("StackStatusReason")
    world.settle()
    return {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}


def alarm(world: World, name: str) -> dict[str, Any]:
    [found] = world.call("cloudwatch", "DescribeAlarms", AlarmNames=[name])["MetricAlarms"]
    return dict(found)


def test_an_alarm_of_a_template_goes_off_on_a_dead_letter_and_is_clear_after_its_redrive(world: World) -> None:
    made = deploy(world, "CreateStack", 0)
    assert alarm(world, made["Alarm"])["StateValue"] == "OK"
    world.call("sqs", "SendMessage", QueueUrl=made["Orders"], MessageBody="poison")
    for _ in range(2):
        world.call("sqs", "ReceiveMessage", QueueUrl=made["Orders"], VisibilityTimeout=0)
    world.pass_time(1)
    assert alarm(world, made["Alarm"])["StateValue"] == "ALARM"
    dead = next(url for url in world.call("sqs", "ListQueues")["QueueUrls"] if "Dead" in url)
    asked = {"QueueUrl": dead, "AttributeNames": ["QueueArn"]}
    source = world.call("sqs", "GetQueueAttributes", **asked)["Attributes"]["QueueArn"]
    world.call("sqs", "StartMessageMoveTask", SourceArn=source)
    world.pass_time(60)
    assert alarm(world, made["Alarm"])["StateValue"] == "OK"


def test_an_alarm_is_changed_in_place_and_goes_with_its_stack(world: World) -> None:
    made = deploy(world, "CreateStack", 0)
    assert deploy(world, "UpdateStack", 5) == made
    assert alarm(world, made["Alarm"])["Threshold"] == 5
    world.call("cloudformation", "DeleteStack", StackName="shop")
    assert world.call("cloudwatch", "DescribeAlarms")["MetricAlarms"] == []
    assert world.rows("SELECT 1 FROM deliveries WHERE kind LIKE 'cloudwatch.%' AND kind <> 'cloudwatch.expire'") == []
