"""SAM templates: what each part becomes, and mistakes named with the right word."""

from typing import Any

import orjson
import pytest

from muster.errors import ServiceError
from muster.services import events as events_service
from muster.services import lambda_, sqs, stepfunctions
from muster.stacks import SERVICE
from muster.stacks.document import read
from muster.stacks.package import CAPABILITIES
from muster.stacks.resources import KINDS
from muster.stacks.serverless import translate
from muster.testing import World

Deployer = Any  # the fixture's own class, which lives in conftest

SAM = "Transform: AWS::Serverless-2016-10-31\n"
DEFINITION = '{"StartAt":"A","States":{"A":{"Type":"Pass","End":true}}}'


def template(resources: str) -> str:
    lines = "\n".join(f"  {line}" for line in resources.strip("\n").splitlines())
    return f"{SAM}Resources:\n{lines}\n"


def processed(stacks: Deployer, name: str = "demo") -> Any:
    return read(stacks("GetTemplate", StackName=name, TemplateStage="Processed")["TemplateBody"])["Resources"]


@pytest.fixture
def bus_world() -> World:
    return World([events_service.SERVICE, sqs.SERVICE, lambda_.SERVICE, stepfunctions.SERVICE, SERVICE])


def deployed(world: World, body: str) -> dict[str, Any]:
    world.call("cloudformation", "CreateStack", StackName="demo", TemplateBody=body, Capabilities=CAPABILITIES)
    stack: dict[str, Any] = world.call("cloudformation", "DescribeStacks", StackName="demo")["Stacks"][0]
    return stack


MACHINE = f"""
Machine:
  Type: AWS::Serverless::StateMachine
  Properties:
    Role: arn:aws:iam::000000000000:role/any
    DefinitionString: '{DEFINITION}'
"""


def test_state_machine_exists_with_its_tags_and_its_rule(bus_world: World) -> None:
    body = template(
        MACHINE
        + """
    Tags: {team: files}
    Events:
      Uploaded:
        Type: EventBridgeRule
        Properties:
          RuleName: uploaded
          Pattern: {source: [my.app]}
"""
    )
    body += "Outputs: {Arn: {Value: !Ref Machine}}\n"
    stack = deployed(bus_world, body)
    assert stack["StackStatus"] == "CREATE_COMPLETE", stack
    arn = stack["Outputs"][0]["OutputValue"]
    assert bus_world.call("stepfunctions", "DescribeStateMachine", stateMachineArn=arn)["definition"] == DEFINITION
    tags = bus_world.call("stepfunctions", "ListTagsForResource", resourceArn=arn)["tags"]
    assert {tag["key"]: tag["value"] for tag in tags} == {"team": "files", "stateMachine:createdBy": "SAM"}
    targets = bus_world.call("events", "ListTargetsByRule", Rule="uploaded")["Targets"]
    assert [target["Arn"] for target in targets] == [arn]


def test_event_of_the_rule_starts_the_machine(bus_world: World) -> None:
    stack = deployed(
        bus_world,
        template(
            MACHINE
            + """
    Events:
      Any: {Type: EventBridgeRule, Properties: {Pattern: {source: [my.app]}}}
"""
        )
        + "Outputs: {Arn: {Value: !Ref Machine}}\n",
    )
    entry = {"Source": "my.app", "DetailType": "t", "Detail": "{}"}
    bus_world.call("events", "PutEvents", Entries=[entry])
    bus_world.settle()
    arn = stack["Outputs"][0]["OutputValue"]
    executions = bus_world.call("stepfunctions", "ListExecutions", stateMachineArn=arn)["executions"]
    assert [one["status"] for one in executions] == ["SUCCEEDED"]


FUNCTION = """
Function:
  Type: AWS::Serverless::Function
  Properties:
    InlineCode: "def handler(event, context): return event"
    Handler: index.handler
    Runtime: python3.11
"""


def test_function_gets_a_role_with_its_policies(stacks: Deployer) -> None:
    made = stacks.create(
        template(
            """
Table: {Type: AWS::Serverless::SimpleTable}
"""
            + FUNCTION
            + """
    Policies:
      - DynamoDBCrudPolicy: {TableName: !Ref Table}
    Environment: {Variables: {TABLE: !Ref Table}}
"""
        )
    )
    assert made["StackStatus"] == "CREATE_COMPLETE", made
    role = processed(stacks)["FunctionRole"]["Properties"]
    assert "dynamodb:PutItem" in role["Policies"][0]["PolicyDocument"]["Statement"][0]["Action"]
    name = stacks.physical("Function")
    configuration = stacks.world.call("lambda", "GetFunctionConfiguration", FunctionName=name)
    assert configuration["Role"] == f"arn:aws:iam::000000000000:role/{stacks.physical('FunctionRole')}"
    assert configuration["Environment"]["Variables"] == {"TABLE": stacks.physical("Table")}


def test_published_alias_moves_with_the_code(stacks: Deployer) -> None:
    body = template(FUNCTION + "    AutoPublishAlias: live\n")
    assert stacks.create(body)["StackStatus"] == "CREATE_COMPLETE", stacks.stack()
    name = stacks.physical("Function")
    alias = stacks.world.call("lambda", "GetAlias", FunctionName=name, Name="live")
    assert alias["FunctionVersion"] == "1"
    assert stacks.update(body.replace("return event", "return 2"))["StackStatus"] == "UPDATE_COMPLETE", stacks.stack()
    alias = stacks.world.call("lambda", "GetAlias", FunctionName=name, Name="live")
    assert alias["FunctionVersion"] == "2"


def test_retry_policy_and_dead_letters_of_an_event_reach_the_target(bus_world: World) -> None:
    stack = deployed(
        bus_world,
        template(
            MACHINE
            + """
    Events:
      Own:
        Type: EventBridgeRule
        Properties:
          RuleName: own
          Pattern: {source: [a]}
          RetryPolicy: {MaximumRetryAttempts: 3, MaximumEventAgeInSeconds: 600}
          DeadLetterConfig: {Arn: !GetAtt Dead.Arn}
      Made:
        Type: EventBridgeRule
        Properties:
          RuleName: made
          Pattern: {source: [b]}
          DeadLetterConfig: {Type: SQS}
Dead: {Type: AWS::SQS::Queue, Properties: {QueueName: dead}}
"""
        ),
    )
    assert stack["StackStatus"] == "CREATE_COMPLETE", stack
    (own,) = bus_world.call("events", "ListTargetsByRule", Rule="own")["Targets"]
    assert own["RetryPolicy"] == {"MaximumRetryAttempts": 3, "MaximumEventAgeInSeconds": 600}
    assert own["DeadLetterConfig"] == {"Arn": "arn:aws:sqs:us-east-1:000000000000:dead"}
    (made,) = bus_world.call("events", "ListTargetsByRule", Rule="made")["Targets"]
    generated = made["DeadLetterConfig"]["Arn"].rsplit(":", 1)[1]
    assert any(url.endswith(generated) for url in bus_world.call("sqs", "ListQueues")["QueueUrls"])
    resources = bus_world.call("cloudformation", "DescribeStackResources", StackName="demo")["StackResources"]
    assert "AWS::SQS::QueuePolicy" in {one["ResourceType"] for one in resources}


@pytest.mark.parametrize("listed", [["PutObject"], ["PutObject", "CopyObject"]])
def test_rule_that_misses_uploads_in_parts_is_pointed_out(bus_world: World, listed: list[str]) -> None:
    rule = {
        "Type": "AWS::Events::Rule",
        "Properties": {"EventPattern": {"source": ["aws.s3"], "detail": {"reason": listed}}},
    }
    stack = deployed(bus_world, orjson.dumps({"Resources": {"Rule": rule}}).decode())
    assert stack["StackStatus"] == "CREATE_COMPLETE"
    told = bus_world.call("cloudformation", "DescribeStackEvents", StackName="demo")["StackEvents"]
    warnings = [e["ResourceStatusReason"] for e in told if "Warning" in e.get("ResourceStatusReason", "")]
    assert len(warnings) == 1
    assert "the rule Rule listens to the reason PutObject but not to CompleteMultipartUpload" in warnings[0]


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        (
            MACHINE + "    Events: {Up: {Type: EventBridgeRule, Properties: {Name: x, Pattern: {source: [a]}}}}",
            r"Event Up of resource Machine \(EventBridgeRule\) has an unknown property Name\. Did you mean RuleName\?",
        ),
        (
            MACHINE + "  Events: {Up: {Type: EventBridgeRule}}",
            "unknown attribute Events on resource Machine .* It belongs under Properties",
        ),
        (
            MACHINE + "    Events: {Up: {Type: EventBridgeRule, Pattern: {}}}",
            "Event Up of resource Machine has an unknown attribute Pattern",
        ),
        (MACHINE + "    Events: {Up: {Type: S3}}", "Event Up of resource Machine has a type S3"),
        (
            MACHINE + "    DefinitionSubstitution: {A: b}",
            "unknown property DefinitionSubstitution. Did you mean DefinitionSubstitutions",
        ),
        (MACHINE + "    Definition: {}", "DefinitionString beside Definition"),
        (FUNCTION + "    Memory: 3", "has an unknown property Memory. Did you mean MemorySize"),
        ("Api: {Type: AWS::Serverless::Api, Properties: {StageName: x}}", "AWS::ApiGateway::"),
        ("Nested: {Type: AWS::Serverless::Application, Properties: {Location: x}}", "nested applications"),
        ("Odd: {Type: AWS::Serverless::Odd}", "does not support the resource type AWS::Serverless::Odd"),
        (
            "F: {Type: AWS::Serverless::Function, Properties: {Handler: a.b, Runtime: python3.11, CodeUri: ./src}}",
            "'CodeUri' is not a valid S3 Uri",
        ),
    ],
)
def test_mistake_is_named_with_its_place(stacks: Deployer, resources: str, told: str) -> None:
    with pytest.raises(ServiceError, match=told) as refused:
        stacks.create(template(resources))
    assert refused.value.code == "ValidationError"


SUBSTITUTED = """
Machine:
  Type: AWS::Serverless::StateMachine
  Properties:
    Role: arn:aws:iam::000000000000:role/any
    DefinitionString: '{"StartAt":"A","States":{"A":{"Type":"Pass","Comment":"${Url} and x${Url}x","Result":${N},"End":true}}}'
    DefinitionSubstitutions: {N: 3, Url: !Ref Queue}
Queue: {Type: AWS::SQS::Queue}
"""


def test_definition_substitutions_are_applied_wherever_they_stand(stacks: Deployer) -> None:
    made = stacks.create(template(SUBSTITUTED))
    assert made["StackStatus"] == "CREATE_COMPLETE", made
    url = stacks.physical("Queue")
    arn = stacks.physical("Machine")
    definition = stacks.world.call("stepfunctions", "DescribeStateMachine", stateMachineArn=arn)["definition"]
    state = orjson.loads(definition)["States"]["A"]
    assert state == {"Type": "Pass", "Comment": f"{url} and x{url}x", "Result": 3, "End": True}


def test_token_without_a_value_is_reported_by_its_name(stacks: Deployer) -> None:
    made = stacks.create(template(SUBSTITUTED.replace("{N: 3, Url", "{Url")))
    assert made["StackStatus"] == "ROLLBACK_COMPLETE"
    assert "The definition has ${N} without a value in DefinitionSubstitutions" in made["StackStatusReason"]
    assert stacks.queues() == []


def test_definition_in_yaml_becomes_json(stacks: Deployer) -> None:
    body = template(
        """
Machine:
  Type: AWS::StepFunctions::StateMachine
  Properties:
    RoleArn: arn:aws:iam::000000000000:role/any
    DefinitionString: "StartAt: A\\nStates:\\n  A: {Type: Pass, End: true}\\n"
"""
    )
    assert stacks.create(body)["StackStatus"] == "CREATE_COMPLETE", stacks.stack()
    described = stacks.world.call("stepfunctions", "DescribeStateMachine", stateMachineArn=stacks.physical("Machine"))
    assert orjson.loads(described["definition"]) == orjson.loads(DEFINITION)


def test_definition_given_as_an_object_keeps_its_substitutions(stacks: Deployer) -> None:
    body = template(
        """
Machine:
  Type: AWS::Serverless::StateMachine
  Properties:
    Role: arn:aws:iam::000000000000:role/any
    Definition: {StartAt: A, States: {A: {Type: Pass, Comment: "${Name}", End: true}}}
    DefinitionSubstitutions: {Name: !GetAtt Queue.QueueName}
Queue: {Type: AWS::SQS::Queue}
"""
    )
    assert stacks.create(body)["StackStatus"] == "CREATE_COMPLETE", stacks.stack()
    arn = stacks.physical("Machine")
    described = stacks.world.call("stepfunctions", "DescribeStateMachine", stateMachineArn=arn)
    name = stacks.physical("Queue").rsplit("/", 1)[1]
    assert orjson.loads(described["definition"])["States"]["A"]["Comment"] == name


def test_globals_and_parameters_reach_the_functions(stacks: Deployer) -> None:
    body = "Globals: {Function: {Timeout: !Ref Seconds}}\nParameters: {Seconds: {Type: Number, Default: 7}}\n"
    assert stacks.create(body + template(FUNCTION))["StackStatus"] == "CREATE_COMPLETE", stacks.stack()
    name = stacks.physical("Function")
    assert stacks.world.call("lambda", "GetFunctionConfiguration", FunctionName=name)["Timeout"] == 7
    updated = stacks.update(body + template(FUNCTION), Parameters=[{"ParameterKey": "Seconds", "ParameterValue": "8"}])
    assert updated["StackStatus"] == "UPDATE_COMPLETE"
    assert stacks.world.call("lambda", "GetFunctionConfiguration", FunctionName=name)["Timeout"] == 8


def test_every_event_of_a_function_becomes_its_trigger_with_all_properties() -> None:
    body = template(
        """
Bucket: {Type: AWS::S3::Bucket}
Queue: {Type: AWS::SQS::Queue}
Topic: {Type: AWS::SNS::Topic}
"""
        + FUNCTION
        + """
    Policies: [{SQSSendMessagePolicy: {QueueName: !GetAtt Queue.QueueName}}]
    Events:
      File: {Type: S3, Properties: {Bucket: !Ref Bucket, Events: "s3:ObjectCreated:*"}}
      Message:
        Type: SQS
        Properties:
          Queue: !GetAtt Queue.Arn
          BatchSize: 5
          FunctionResponseTypes: [ReportBatchItemFailures]
          ScalingConfig: {MaximumConcurrency: 20}
      Notice: {Type: SNS, Properties: {Topic: !Ref Topic}}
      Hourly: {Type: Schedule, Properties: {Schedule: rate(1 hour)}}
      Rule: {Type: EventBridgeRule, Properties: {Pattern: {source: [a]}, RetryPolicy: {MaximumRetryAttempts: 1}}}
"""
    )
    made = translate(read(body), {}, "us-east-1")["Resources"]
    mapping = made["FunctionMessage"]["Properties"]
    assert mapping["BatchSize"] == 5
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 20}
    assert made["Bucket"]["Properties"]["NotificationConfiguration"]["LambdaConfigurations"][0]["Event"]
    assert made["FunctionNotice"]["Type"] == "AWS::SNS::Subscription"
    assert made["FunctionHourly"]["Properties"]["ScheduleExpression"] == "rate(1 hour)"
    assert made["FunctionRule"]["Properties"]["Targets"][0]["RetryPolicy"] == {"MaximumRetryAttempts": 1}
    assert made["FunctionRole"]["Properties"]["Policies"]
    kinds = {resource["Type"] for resource in made.values()}
    assert kinds <= KINDS.keys()
    for name, resource in made.items():
        assert resource.get("Properties", {}).keys() <= KINDS[resource["Type"]].properties.keys(), name
