"""Event source mappings of templates: made by SAM's events, changed in place, taken away; case sam-02, its SQS part."""

from typing import Any

import orjson
import pytest

from muster.services import dynamodb, lambda_, sqs
from muster.stacks import SERVICE
from muster.stacks.package import CAPABILITIES
from muster.testing import World

TEMPLATE = """
Transform: AWS::Serverless-2016-10-31
Resources:
  Queue: {Type: AWS::SQS::Queue}
  Function:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: python3.11
      Handler: index.handler
      InlineCode: 'def handler(event, context): pass'
      Events:
        Message:
          Type: SQS
          Properties:
            Queue: !GetAtt Queue.Arn
SETTINGS
"""

STREAM = """
Transform: AWS::Serverless-2016-10-31
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: k, AttributeType: S}]
      KeySchema: [{AttributeName: k, KeyType: HASH}]
      BillingMode: PAY_PER_REQUEST
      StreamSpecification: {StreamViewType: NEW_IMAGE}
  Function:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: python3.11
      Handler: index.handler
      InlineCode: 'def handler(event, context): pass'
      Events:
        Change:
          Type: DynamoDB
          Properties:
            Stream: !GetAtt Table.StreamArn
            StartingPosition: TRIM_HORIZON
SETTINGS
"""


def with_settings(template: str, **settings: Any) -> str:
    lines = "\n".join(f"            {name}: {orjson.dumps(value).decode()}" for name, value in settings.items())
    return template.replace("SETTINGS", lines)


@pytest.fixture
def world() -> World:
    return World([sqs.SERVICE, dynamodb.SERVICE, dynamodb.STREAMS, lambda_.SERVICE, SERVICE])


def ask(world: World, operation: str, body: str) -> dict[str, Any]:
    world.call("cloudformation", operation, StackName="demo", TemplateBody=body, Capabilities=CAPABILITIES)
    stack: dict[str, Any] = world.call("cloudformation", "DescribeStacks", StackName="demo")["Stacks"][0]
    assert stack["StackStatus"] in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), stack.get("StackStatusReason")
    return stack


def mapping(world: World) -> dict[str, Any]:
    [found] = world.call("lambda", "ListEventSourceMappings")["EventSourceMappings"]
    return dict(found)


def test_an_sqs_event_becomes_a_mapping_with_all_its_properties(world: World) -> None:
    settings: dict[str, Any] = {
        "BatchSize": 20,
        "MaximumBatchingWindowInSeconds": 5,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "ScalingConfig": {"MaximumConcurrency": 20},
        "FilterCriteria": {"Filters": [{"Pattern": '{"body": {"a": [1]}}'}]},
    }
    ask(world, "CreateStack", with_settings(TEMPLATE, **settings))
    found = mapping(world)
    assert {name: found[name] for name in settings} == settings
    assert found["State"] == "Enabled"


def test_a_changed_event_changes_its_mapping_and_a_removed_setting_goes_back(world: World) -> None:
    ask(world, "CreateStack", with_settings(TEMPLATE, BatchSize=5, ScalingConfig={"MaximumConcurrency": 3}))
    before = mapping(world)
    ask(world, "UpdateStack", with_settings(TEMPLATE, Enabled=False))
    after = mapping(world)
    assert after["UUID"] == before["UUID"]
    assert (after["State"], after["BatchSize"]) == ("Disabled", 10)
    assert "ScalingConfig" not in after
    world.call("cloudformation", "DeleteStack", StackName="demo")
    assert world.call("lambda", "ListEventSourceMappings") == {"EventSourceMappings": []}


def test_a_stream_event_becomes_a_mapping_and_goes_back_to_defaults(world: World) -> None:
    ask(
        world,
        "CreateStack",
        with_settings(
            STREAM,
            BatchSize=5,
            BisectBatchOnFunctionError=True,
            MaximumRetryAttempts=3,
            MaximumRecordAgeInSeconds=60,
            ParallelizationFactor=2,
        ),
    )
    found = mapping(world)
    assert (found["BatchSize"], found["MaximumRetryAttempts"], found["ParallelizationFactor"]) == (5, 3, 2)
    ask(world, "UpdateStack", with_settings(STREAM))
    found = mapping(world)
    assert (found["BatchSize"], found["MaximumRetryAttempts"], found["ParallelizationFactor"]) == (100, -1, 1)
    assert found["BisectBatchOnFunctionError"] is False
    assert found["MaximumRecordAgeInSeconds"] == -1
