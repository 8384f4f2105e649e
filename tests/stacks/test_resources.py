"""Each resource type is made, changed and taken away through its service."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from muster.services import dynamodb, lambda_, logs, s3, sns, sqs, stepfunctions
from muster.services import events as events_service
from muster.stacks import SERVICE
from muster.stacks.package import CAPABILITIES
from muster.stacks.resources import KINDS
from muster.store import blobs as blob_rows
from muster.store.blobs import Blobs
from muster.testing import World

ROLE = "arn:aws:iam::000000000000:role/any"
DEFINITION = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}


class Stack:
    """One stack, brought to what a dictionary of resources says."""

    def __init__(self, world: World) -> None:
        self.world = world

    def bring(self, **resources: Any) -> dict[str, Any]:
        exists = bool(self.world.call("cloudformation", "DescribeStacks")["Stacks"])
        self.world.call(
            "cloudformation",
            "UpdateStack" if exists else "CreateStack",
            StackName="demo",
            TemplateBody=orjson.dumps({"Resources": resources}).decode(),
            Capabilities=CAPABILITIES,
        )
        stack: dict[str, Any] = self.world.call("cloudformation", "DescribeStacks", StackName="demo")["Stacks"][0]
        return stack

    def good(self, **resources: Any) -> None:
        stack = self.bring(**resources)
        assert stack["StackStatus"] in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), stack["StackStatusReason"]

    def id(self, logical_id: str) -> str:
        found = self.world.call(
            "cloudformation", "DescribeStackResource", StackName="demo", LogicalResourceId=logical_id
        )
        return str(found["StackResourceDetail"]["PhysicalResourceId"])

    def gone(self) -> None:
        self.world.call("cloudformation", "DeleteStack", StackName="demo")
        left = self.world.call("cloudformation", "DescribeStacks")["Stacks"]
        assert left == [], left[0].get("StackStatusReason")


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    blobs = Blobs(tmp_path)
    return Stack(
        World(
            [
                s3.service(blobs),
                events_service.SERVICE,
                sns.SERVICE,
                sqs.SERVICE,
                dynamodb.SERVICE,
                lambda_.SERVICE,
                logs.SERVICE,
                stepfunctions.SERVICE,
                SERVICE,
            ],
            parts={blob_rows.PART: blob_rows.MIGRATIONS},
        )
    )


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties}


def ref(name: str) -> dict[str, str]:
    return {"Ref": name}


def att(name: str, attribute: str) -> dict[str, list[str]]:
    return {"Fn::GetAtt": [name, attribute]}


def test_bucket_with_its_settings(stack: Stack) -> None:
    settings: dict[str, Any] = {
        "VersioningConfiguration": {"Status": "Enabled"},
        "PublicAccessBlockConfiguration": {"BlockPublicAcls": True, "IgnorePublicAcls": True},
        "BucketEncryption": {
            "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
        },
        "Tags": [{"Key": "a", "Value": "b"}],
    }
    stack.good(B=resource("AWS::S3::Bucket", **settings))
    bucket = stack.id("B")
    assert bucket.startswith("demo-b-")
    assert bucket == bucket.lower()
    call = stack.world.call
    assert call("s3", "GetBucketVersioning", Bucket=bucket)["Status"] == "Enabled"
    assert call("s3", "GetBucketTagging", Bucket=bucket)["TagSet"] == [{"Key": "a", "Value": "b"}]
    rule = call("s3", "GetBucketEncryption", Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"][0]
    assert rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    stack.good(B=resource("AWS::S3::Bucket", NotificationConfiguration={"EventBridgeConfiguration": {}}))
    assert stack.id("B") == bucket
    assert call("s3", "GetBucketVersioning", Bucket=bucket)["Status"] == "Suspended"
    assert "EventBridgeConfiguration" in call("s3", "GetBucketNotificationConfiguration", Bucket=bucket)
    stack.gone()


@pytest.mark.parametrize(
    ("kind", "name", "service", "operation", "request_"),
    [
        ("AWS::S3::Bucket", {"BucketName": "taken"}, "s3", "CreateBucket", {"Bucket": "taken"}),
        ("AWS::SQS::Queue", {"QueueName": "taken"}, "sqs", "CreateQueue", {"QueueName": "taken"}),
        ("AWS::SNS::Topic", {"TopicName": "taken"}, "sns", "CreateTopic", {"Name": "taken"}),
        (
            "AWS::Events::Rule",
            {"Name": "taken", "EventPattern": {"source": ["a"]}},
            "events",
            "PutRule",
            {"Name": "taken", "EventPattern": '{"source": ["a"]}'},
        ),
    ],
)
def test_a_name_that_somebody_else_has_is_not_taken_over(
    stack: Stack, kind: str, name: dict[str, Any], service: str, operation: str, request_: dict[str, Any]
) -> None:
    stack.world.call(service, operation, **request_)
    brought = stack.bring(R=resource(kind, **name))
    assert brought["StackStatus"] == "ROLLBACK_COMPLETE"
    assert "taken already exists" in brought["StackStatusReason"]


def test_bucket_tells_a_queue_about_objects(stack: Stack) -> None:
    notice = {
        "Event": "s3:ObjectCreated:*",
        "Queue": att("Q", "Arn"),
        "Filter": {"S3Key": {"Rules": [{"Name": "suffix", "Value": ".csv"}]}},
    }
    stack.good(
        B=resource("AWS::S3::Bucket", NotificationConfiguration={"QueueConfigurations": [notice]}),
        Q=resource("AWS::SQS::Queue"),
    )
    told = stack.world.call("s3", "GetBucketNotificationConfiguration", Bucket=stack.id("B"))
    (queue,) = told["QueueConfigurations"]
    assert queue["Events"] == ["s3:ObjectCreated:*"]
    assert queue["QueueArn"].endswith(stack.id("Q").rsplit("/", 1)[1])
    assert queue["Filter"]["Key"]["FilterRules"][0]["Value"] == ".csv"


def test_bucket_policy_is_put_on_its_bucket(stack: Stack) -> None:
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:*"}]}
    stack.good(
        B=resource("AWS::S3::Bucket"), P=resource("AWS::S3::BucketPolicy", Bucket=ref("B"), PolicyDocument=policy)
    )
    assert orjson.loads(stack.world.call("s3", "GetBucketPolicy", Bucket=stack.id("B"))["Policy"]) == policy
    stack.gone()


def test_bucket_that_misses_uploads_in_parts_is_pointed_out(stack: Stack) -> None:
    notice = {"Event": "s3:ObjectCreated:Put", "Queue": att("Q", "Arn")}
    stack.good(
        B=resource("AWS::S3::Bucket", NotificationConfiguration={"QueueConfigurations": [notice]}),
        Q=resource("AWS::SQS::Queue"),
    )
    told = stack.world.call("cloudformation", "DescribeStackEvents", StackName="demo")["StackEvents"]
    warnings = [e["ResourceStatusReason"] for e in told if "Warning" in e.get("ResourceStatusReason", "")]
    assert len(warnings) == 1
    assert "CompleteMultipartUpload" in warnings[0]


@pytest.mark.parametrize(
    ("configuration", "told"),
    [
        ({"EventBridge": True}, "NotificationConfiguration has an unknown property EventBridge"),
        (
            {"QueueConfigurations": [{"Events": ["x"], "Queue": "q"}]},
            "QueueConfigurations takes Event, Filter and Queue",
        ),
    ],
)
def test_wrong_notification_is_named(stack: Stack, configuration: Any, told: str) -> None:
    made = stack.bring(B=resource("AWS::S3::Bucket", NotificationConfiguration=configuration))
    assert told in made["StackStatusReason"]
    assert "property NotificationConfiguration" in made["StackStatusReason"]


def test_function_is_changed_in_place(stack: Stack) -> None:
    def function(code: str, **more: Any) -> dict[str, Any]:
        given = {"Code": {"ZipFile": code}, "Handler": "index.h", "Runtime": "python3.11", "Role": ROLE}
        return resource("AWS::Lambda::Function", **given, **more)

    stack.good(F=function("a = 1", Timeout=20, ReservedConcurrentExecutions=3, Tags=[{"Key": "k", "Value": "v"}]))
    name = stack.id("F")
    call = stack.world.call
    first = call("lambda", "GetFunctionConfiguration", FunctionName=name)
    assert first["Timeout"] == 20
    assert call("lambda", "GetFunctionConcurrency", FunctionName=name)["ReservedConcurrentExecutions"] == 3
    stack.good(F=function("a = 2", Environment={"Variables": {"AB": 1}}))
    second = call("lambda", "GetFunctionConfiguration", FunctionName=name)
    assert second["CodeSha256"] != first["CodeSha256"]
    assert (second["Timeout"], second["Environment"]["Variables"]) == (3, {"AB": "1"})
    assert "ReservedConcurrentExecutions" not in call("lambda", "GetFunctionConcurrency", FunctionName=name)
    assert call("lambda", "ListTags", Resource=first["FunctionArn"])["Tags"] == {}
    stack.gone()


def test_what_stands_around_a_function(stack: Stack) -> None:
    def around(attempts: int) -> dict[str, Any]:
        return {
            "F": resource(
                "AWS::Lambda::Function", Code={"ZipFile": "x"}, Handler="index.h", Runtime="python3.11", Role=ROLE
            ),
            "V": resource("AWS::Lambda::Version", FunctionName=ref("F")),
            "A": resource(
                "AWS::Lambda::Alias", FunctionName=ref("F"), FunctionVersion=att("V", "Version"), Name="live"
            ),
            "P": resource(
                "AWS::Lambda::Permission",
                FunctionName=ref("A"),
                Action="lambda:InvokeFunction",
                Principal="events.amazonaws.com",
            ),
            "I": resource(
                "AWS::Lambda::EventInvokeConfig",
                FunctionName=ref("F"),
                Qualifier="live",
                MaximumRetryAttempts=attempts,
            )
            | {"DependsOn": "A"},
        }

    stack.good(**around(1))
    stack.good(**around(0))
    name = stack.id("F")
    config = stack.world.call("lambda", "GetFunctionEventInvokeConfig", FunctionName=name, Qualifier="live")
    assert config["MaximumRetryAttempts"] == 0
    assert stack.id("V").endswith(":1")
    assert stack.id("A").endswith(":live")
    stack.gone()
    assert stack.world.call("lambda", "ListFunctions")["Functions"] == []


def test_state_machine_with_version_alias_and_activity(stack: Stack) -> None:
    def machine(comment: str) -> dict[str, Any]:
        return {
            "M": resource(
                "AWS::StepFunctions::StateMachine", RoleArn=ROLE, Definition={"Comment": comment, **DEFINITION}
            ),
            "V": resource("AWS::StepFunctions::StateMachineVersion", StateMachineArn=ref("M")),
            "A": resource(
                "AWS::StepFunctions::StateMachineAlias",
                Name="live",
                RoutingConfiguration=[{"StateMachineVersionArn": ref("V"), "Weight": 100}],
            ),
            "W": resource("AWS::StepFunctions::Activity", Name="work"),
        }

    stack.good(**machine("one"))
    arn = stack.id("M")
    assert stack.id("V") == f"{arn}:1"
    assert stack.id("A") == f"{arn}:live"
    stack.good(**machine("two"))
    assert stack.id("M") == arn
    described = stack.world.call("stepfunctions", "DescribeStateMachine", stateMachineArn=arn)
    assert orjson.loads(described["definition"])["Comment"] == "two"
    stack.gone()
    assert stack.world.call("stepfunctions", "ListActivities")["activities"] == []


def test_bad_definition_names_the_machine_and_its_property(stack: Stack) -> None:
    made = stack.bring(M=resource("AWS::StepFunctions::StateMachine", RoleArn=ROLE, DefinitionString="{}"))
    assert made["StackStatus"] == "ROLLBACK_COMPLETE"
    assert "M (AWS::StepFunctions::StateMachine), property DefinitionString: " in made["StackStatusReason"]
    assert "InvalidDefinition" in made["StackStatusReason"]


def test_rule_on_a_bus_of_its_own_with_an_archive(stack: Stack) -> None:
    def rule(source: str, *targets: str) -> dict[str, Any]:
        return {
            "Bus": resource("AWS::Events::EventBus", Name="own"),
            "Rule": resource(
                "AWS::Events::Rule",
                Name="rule",
                EventBusName=ref("Bus"),
                EventPattern={"source": [source]},
                Targets=[{"Id": target, "Arn": att("Q", "Arn")} for target in targets],
            ),
            "Archive": resource("AWS::Events::Archive", SourceArn=att("Bus", "Arn"), RetentionDays=3),
            "Policy": resource("AWS::Events::EventBusPolicy", StatementId="s", EventBusName=ref("Bus"), Action="a"),
            "Q": resource("AWS::SQS::Queue"),
        }

    call = stack.world.call
    stack.good(**rule("one", "a", "b"))
    assert stack.id("Rule") == "own|rule"
    stack.good(**rule("two", "b", "c"))
    found = call("events", "DescribeRule", Name="rule", EventBusName="own")
    assert orjson.loads(found["EventPattern"]) == {"source": ["two"]}
    targets = call("events", "ListTargetsByRule", Rule="rule", EventBusName="own")["Targets"]
    assert sorted(target["Id"] for target in targets) == ["b", "c"]
    assert call("events", "DescribeArchive", ArchiveName=stack.id("Archive"))["RetentionDays"] == 3
    stack.gone()
    assert [bus["Name"] for bus in call("events", "ListEventBuses")["EventBuses"]] == ["default"]


def test_bad_pattern_names_the_rule_and_its_property(stack: Stack) -> None:
    made = stack.bring(R=resource("AWS::Events::Rule", EventPattern={"source": "aws.s3"}))
    assert "R (AWS::Events::Rule), property EventPattern: " in made["StackStatusReason"]


def test_topic_with_subscriptions(stack: Stack) -> None:
    def topic(raw: bool) -> dict[str, Any]:
        return {
            "T": resource("AWS::SNS::Topic", DisplayName="files", Tags=[{"Key": "a", "Value": "b"}]),
            "Q": resource("AWS::SQS::Queue"),
            "S": resource(
                "AWS::SNS::Subscription",
                TopicArn=ref("T"),
                Protocol="sqs",
                Endpoint=att("Q", "Arn"),
                RawMessageDelivery=raw,
                FilterPolicy={"kind": ["sales"]},
            ),
            "P": resource("AWS::SNS::TopicPolicy", Topics=[ref("T")], PolicyDocument={"Statement": []}),
        }

    stack.good(**topic(False))
    stack.good(**topic(True))
    attributes = stack.world.call("sns", "GetSubscriptionAttributes", SubscriptionArn=stack.id("S"))["Attributes"]
    assert attributes["RawMessageDelivery"] == "true"
    assert orjson.loads(attributes["FilterPolicy"]) == {"kind": ["sales"]}
    stack.gone()
    assert stack.world.call("sns", "ListTopics")["Topics"] == []


def test_log_group_with_its_retention(stack: Stack) -> None:
    stack.good(G=resource("AWS::Logs::LogGroup", LogGroupName="/my/group"))
    groups = stack.world.call("logs", "DescribeLogGroups", logGroupNamePrefix="/my")["logGroups"]
    assert [group["logGroupName"] for group in groups] == ["/my/group"]
    stack.gone()


def test_identities_are_recorded_with_real_looking_names(stack: Stack) -> None:
    document = {"Version": "2012-10-17", "Statement": []}
    stack.good(
        Role=resource("AWS::IAM::Role", AssumeRolePolicyDocument=document, Path="/p/"),
        Policy=resource("AWS::IAM::Policy", PolicyName="p", PolicyDocument=document, Roles=[ref("Role")]),
        Managed=resource("AWS::IAM::ManagedPolicy", PolicyDocument=document),
        Profile=resource("AWS::IAM::InstanceProfile", Roles=[ref("Role")]),
        Handle={"Type": "AWS::CloudFormation::WaitConditionHandle"},
        Queue=resource("AWS::SQS::Queue", QueueName=att("Role", "RoleId")),
        Other=resource("AWS::SQS::Queue", Tags=[{"Key": "arn", "Value": att("Role", "Arn")}]),
    )
    assert stack.id("Role").startswith("demo-Role-")
    assert stack.id("Managed").startswith("arn:aws:iam::000000000000:policy/demo-Managed-")
    assert "/AROA" in stack.id("Queue")
    tags = stack.world.call("sqs", "ListQueueTags", QueueUrl=stack.id("Other"))["Tags"]
    assert tags["arn"] == f"arn:aws:iam::000000000000:role/p/{stack.id('Role')}"
    stack.gone()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_required_property_and_name_is_among_the_properties(kind: str) -> None:
    found = KINDS[kind]
    assert set(found.required) <= found.properties.keys()
    assert found.name is None or found.name in found.properties
    assert found.type == kind


ODD = ["x", [1], {"a": 1}, [{"a": 1}], {"a": [{}]}]


SOUND: dict[str, dict[str, Any]] = {
    "AWS::DynamoDB::Table": {
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    },
    "AWS::Events::Rule": {"EventPattern": {"source": ["a"]}},
    "AWS::Lambda::Function": {
        "Code": {"ZipFile": "x"},
        "Handler": "index.h",
        "Runtime": "python3.11",
        "Role": ROLE,
    },
    "AWS::StepFunctions::StateMachine": {"RoleArn": ROLE, "DefinitionString": orjson.dumps(DEFINITION).decode()},
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_odd_values_are_refused_or_taken_but_never_break_the_deployment(stack: Stack, kind: str) -> None:
    found = KINDS[kind]
    for name in found.properties:
        for odd in ODD:
            given = dict.fromkeys(found.required, "x") | SOUND.get(kind, {}) | {name: odd}
            status = stack.bring(R=resource(kind, **given))["StackStatus"]
            assert status in ("CREATE_COMPLETE", "ROLLBACK_COMPLETE"), (name, odd)
            stack.gone()
