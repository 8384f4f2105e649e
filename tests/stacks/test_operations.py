"""CloudFormation's answers and refusals, and change sets as the aws CLI uses them."""

from typing import Any

import orjson
import pytest

from muster.errors import ServiceError

Deployer = Any  # the fixture's own class, which lives in conftest

QUEUE = {"Resources": {"Q": {"Type": "AWS::SQS::Queue"}}}
ROLE: dict[str, Any] = {
    "Type": "AWS::IAM::Role",
    "Properties": {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": []}},
}
SECRET: dict[str, Any] = {
    "Parameters": {
        "Secret": {"Type": "String", "NoEcho": True},
        "Size": {"Type": "Number", "Default": 3, "AllowedValues": [3, 4], "Description": "how long"},
    },
    "Resources": {"Q": {"Type": "AWS::SQS::Queue", "Properties": {"DelaySeconds": {"Ref": "Size"}}}},
}


def given(**values: str) -> list[dict[str, str]]:
    return [{"ParameterKey": key, "ParameterValue": value} for key, value in values.items()]


def refused(stacks: Deployer, operation: str, **request: Any) -> ServiceError:
    with pytest.raises(ServiceError) as error:
        stacks(operation, **request)
    return error.value


def body(template: Any) -> str:
    return orjson.dumps(template).decode()


def test_hidden_parameters_are_not_shown(stacks: Deployer) -> None:
    shown = stacks.create(SECRET, Parameters=given(Secret="x"))["Parameters"]
    assert shown == given(Secret="****", Size="3")


def test_hidden_values_appear_in_no_event(stacks: Deployer) -> None:
    secret = {
        "Parameters": {"Secret": {"Type": "String", "NoEcho": True}},
        "Resources": {
            "Q": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Fn::Sub": "q-${Secret}"}}},
            "Bad": {"Type": "AWS::SQS::Queue", "Properties": {"DelaySeconds": {"Ref": "Secret"}}},
        },
    }
    stacks.create(secret, Parameters=given(Secret="hush"))
    events = stacks("DescribeStackEvents", StackName="demo")["StackEvents"]
    shown = orjson.dumps([[event.get("ResourceProperties") for event in events], stacks.stack()]).decode()
    assert "hush" not in shown
    assert "q-****" in shown


def test_deeply_nested_template_is_refused(stacks: Deployer) -> None:
    name = '{"Fn::Join": ["", [' * 100 + '"x"' + "]]}" * 100
    text = '{"Resources": {"Q": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": ' + name + "}}}}"
    assert "nested too deeply" in refused(stacks, "CreateStack", StackName="demo", TemplateBody=text).message


def test_parameters_keep_their_values_only_on_wish(stacks: Deployer) -> None:
    stacks.create(SECRET, Parameters=given(Secret="x", Size="4"))
    keep = [{"ParameterKey": "Secret", "UsePreviousValue": True}, {"ParameterKey": "Size", "UsePreviousValue": True}]
    error = refused(stacks, "UpdateStack", StackName="demo", UsePreviousTemplate=True, Parameters=keep)
    assert error.message == "No updates are to be performed."
    stacks("UpdateStack", StackName="demo", UsePreviousTemplate=True, Parameters=keep[:1])
    assert stacks.stack()["Parameters"] == given(Secret="****", Size="3")


def test_names_and_existence_are_checked(stacks: Deployer) -> None:
    stacks.create(QUEUE)
    again = refused(stacks, "CreateStack", StackName="demo", TemplateBody=body(QUEUE))
    assert (again.code, again.message) == ("AlreadyExistsException", "Stack [demo] already exists")
    assert refused(stacks, "CreateStack", StackName="1st", TemplateBody=body(QUEUE)).code == "ValidationError"
    for operation in ("UpdateStack", "DescribeStacks", "DescribeStackResources", "ListStackResources"):
        more = {"TemplateBody": body(QUEUE)} if operation == "UpdateStack" else {}
        assert "does not exist" in refused(stacks, operation, StackName="nowhere", **more).message


def test_iam_resources_need_their_capability(stacks: Deployer) -> None:
    template = {"Resources": {"R": ROLE}}
    error = refused(stacks, "CreateStack", StackName="demo", TemplateBody=body(template))
    assert error.code == "InsufficientCapabilitiesException"
    assert error.message == "Requires capabilities : [CAPABILITY_IAM]"
    named = {"Resources": {"R": {**ROLE, "Properties": {**ROLE["Properties"], "RoleName": "n"}}}}
    request = {"StackName": "demo", "TemplateBody": body(named), "Capabilities": ["CAPABILITY_IAM"]}
    assert "CAPABILITY_NAMED_IAM" in refused(stacks, "CreateStack", **request).message
    stacks("CreateStack", **{**request, "Capabilities": ["CAPABILITY_NAMED_IAM"]})
    assert stacks.physical("R") == "n"


@pytest.mark.parametrize(
    "more",
    [
        {"DisableRollback": True},
        {"OnFailure": "DO_NOTHING"},
        {"NotificationARNs": ["arn:aws:sns:us-east-1:000000000000:t"]},
        {"ResourceTypes": ["AWS::SQS::*"]},
        {"StackPolicyBody": "{}"},
    ],
)
def test_what_is_not_supported_is_refused_by_name(stacks: Deployer, more: dict[str, Any]) -> None:
    error = refused(stacks, "CreateStack", StackName="demo", TemplateBody=body(QUEUE), **more)
    assert error.code == "NotImplemented"
    assert next(iter(more)) in error.message


def test_template_over_a_megabyte_is_refused(stacks: Deployer) -> None:
    template = {**QUEUE, "Description": "x" * 1_048_576}
    assert "at most 1048576" in refused(stacks, "CreateStack", StackName="demo", TemplateBody=body(template)).message


def test_templates_are_kept_as_they_were_given(stacks: Deployer) -> None:
    text = "Resources:\n  Q: {Type: AWS::SQS::Queue}  # as it was\n"
    stacks.create(text)
    assert stacks("GetTemplate", StackName="demo")["TemplateBody"] == text


def test_validation_tells_parameters_and_capabilities(stacks: Deployer) -> None:
    template = {**SECRET, "Description": "d", "Resources": {**SECRET["Resources"], "R": ROLE}}
    answer = stacks("ValidateTemplate", TemplateBody=body(template))
    assert answer["Description"] == "d"
    assert answer["Capabilities"] == ["CAPABILITY_IAM"]
    assert answer["Parameters"] == [
        {"ParameterKey": "Secret", "NoEcho": True},
        {"ParameterKey": "Size", "NoEcho": False, "DefaultValue": "3", "Description": "how long"},
    ]
    summary = stacks("GetTemplateSummary", TemplateBody=body(template))
    assert summary["ResourceTypes"] == ["AWS::IAM::Role", "AWS::SQS::Queue"]
    assert summary["Parameters"][1]["ParameterConstraints"] == {"AllowedValues": ["3", "4"]}
    assert "Template format error" in refused(stacks, "ValidateTemplate", TemplateBody="{}").message


def test_resources_are_described_and_found_by_physical_id(stacks: Deployer) -> None:
    stacks.create({"Resources": {"Q": {"Type": "AWS::SQS::Queue", "Metadata": {"a": 1}}}})
    (one,) = stacks("DescribeStackResources", StackName="demo")["StackResources"]
    assert (one["LogicalResourceId"], one["ResourceType"], one["ResourceStatus"]) == (
        "Q",
        "AWS::SQS::Queue",
        "CREATE_COMPLETE",
    )
    assert stacks("DescribeStackResources", PhysicalResourceId=one["PhysicalResourceId"])["StackResources"] == [one]
    detail = stacks("DescribeStackResource", StackName="demo", LogicalResourceId="Q")["StackResourceDetail"]
    assert detail["Metadata"] == '{"a":1}'
    assert refused(stacks, "DescribeStackResource", StackName="demo", LogicalResourceId="X").code == "ValidationError"


def test_events_come_in_pages_the_newest_first(stacks: Deployer) -> None:
    many = {"Resources": {f"Q{n}": {"Type": "AWS::SQS::Queue"} for n in range(60)}}
    stacks.create(many)
    first = stacks("DescribeStackEvents", StackName="demo")
    assert first["StackEvents"][0]["ResourceStatus"] == "CREATE_COMPLETE"
    assert first["StackEvents"][0]["LogicalResourceId"] == "demo"
    second = stacks("DescribeStackEvents", StackName="demo", NextToken=first["NextToken"])
    assert "NextToken" not in second
    everything = first["StackEvents"] + second["StackEvents"]
    assert len(everything) == 60 * 3 + 2
    assert everything[-1]["ResourceStatusReason"] == "User Initiated"
    assert len({event["EventId"] for event in everything}) == len(everything)


def test_stacks_are_listed_by_status(stacks: Deployer) -> None:
    stacks.create(QUEUE, name="one")
    stacks.create(QUEUE, name="two")
    stacks("DeleteStack", StackName="one")
    listed = stacks("ListStacks", StackStatusFilter=["DELETE_COMPLETE"])["StackSummaries"]
    assert [one["StackName"] for one in listed] == ["one"]
    assert {one["StackName"] for one in stacks("ListStacks")["StackSummaries"]} == {"one", "two"}


# --- change sets -----------------------------------------------------------------------------------------------------


def test_change_set_creates_a_stack_once_it_is_executed(stacks: Deployer) -> None:
    made = stacks(
        "CreateChangeSet", StackName="demo", ChangeSetName="first", ChangeSetType="CREATE", TemplateBody=body(QUEUE)
    )
    assert stacks.stack()["StackStatus"] == "REVIEW_IN_PROGRESS"
    assert stacks.queues() == []
    described = stacks("DescribeChangeSet", ChangeSetName=made["Id"])
    assert (described["Status"], described["ExecutionStatus"]) == ("CREATE_COMPLETE", "AVAILABLE")
    change = described["Changes"][0]["ResourceChange"]
    assert (change["Action"], change["LogicalResourceId"]) == ("Add", "Q")
    stacks("ExecuteChangeSet", ChangeSetName="first", StackName="demo")
    assert stacks.stack()["StackStatus"] == "CREATE_COMPLETE"
    assert len(stacks.queues()) == 1
    again = refused(stacks, "ExecuteChangeSet", ChangeSetName="first", StackName="demo")
    assert again.code == "InvalidChangeSetStatus"


def test_change_set_tells_what_an_update_would_do(stacks: Deployer) -> None:
    stacks.create({"Resources": {name: {"Type": "AWS::SQS::Queue"} for name in ("Stays", "Changes", "Goes", "Moves")}})
    wanted = {
        "Resources": {
            "Stays": {"Type": "AWS::SQS::Queue"},
            "Changes": {"Type": "AWS::SQS::Queue", "Properties": {"DelaySeconds": 3}},
            "Moves": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "moved"}},
            "Comes": {"Type": "AWS::SQS::Queue"},
        }
    }
    before = sorted(stacks.queues())
    stacks("CreateChangeSet", StackName="demo", ChangeSetName="look", TemplateBody=body(wanted))
    changes = stacks("DescribeChangeSet", ChangeSetName="look", StackName="demo")["Changes"]
    told = {
        change["ResourceChange"]["LogicalResourceId"]: (
            change["ResourceChange"]["Action"],
            change["ResourceChange"].get("Replacement"),
        )
        for change in changes
    }
    assert told == {
        "Changes": ("Modify", "False"),
        "Moves": ("Modify", "True"),
        "Comes": ("Add", None),
        "Goes": ("Remove", None),
    }
    assert sorted(stacks.queues()) == before
    stacks("ExecuteChangeSet", ChangeSetName="look", StackName="demo")
    assert stacks.stack()["StackStatus"] == "UPDATE_COMPLETE"


def test_change_set_without_changes_fails_with_the_words_that_clients_look_for(stacks: Deployer) -> None:
    stacks.create(QUEUE)
    stacks("CreateChangeSet", StackName="demo", ChangeSetName="none", TemplateBody=body(QUEUE))
    described = stacks("DescribeChangeSet", ChangeSetName="none", StackName="demo")
    assert (described["Status"], described["ExecutionStatus"]) == ("FAILED", "UNAVAILABLE")
    assert described["StatusReason"].startswith("The submitted information didn't contain changes")


def test_execution_makes_the_other_change_sets_obsolete(stacks: Deployer) -> None:
    stacks.create(QUEUE)
    for name, seconds in (("a", 1), ("b", 2)):
        wanted = {"Resources": {"Q": {"Type": "AWS::SQS::Queue", "Properties": {"DelaySeconds": seconds}}}}
        stacks("CreateChangeSet", StackName="demo", ChangeSetName=name, TemplateBody=body(wanted))
    stacks("ExecuteChangeSet", ChangeSetName="a", StackName="demo")
    found = {
        one["ChangeSetName"]: one["ExecutionStatus"] for one in stacks("ListChangeSets", StackName="demo")["Summaries"]
    }
    assert found == {"a": "EXECUTE_COMPLETE", "b": "OBSOLETE"}
    assert refused(stacks, "ExecuteChangeSet", ChangeSetName="b", StackName="demo").code == "InvalidChangeSetStatus"


def test_change_set_that_would_fail_fails_when_it_is_executed_and_leaves_its_record(stacks: Deployer) -> None:
    wanted = {"Resources": {"Q": {"Type": "AWS::SQS::Queue", "Properties": {"DelaySeconds": "long"}}}}
    stacks("CreateChangeSet", StackName="demo", ChangeSetName="bad", ChangeSetType="CREATE", TemplateBody=body(wanted))
    stacks("ExecuteChangeSet", ChangeSetName="bad", StackName="demo")
    assert stacks.stack()["StackStatus"] == "ROLLBACK_COMPLETE"
    assert "property DelaySeconds" in stacks.stack()["StackStatusReason"]


def test_change_sets_are_found_or_not(stacks: Deployer) -> None:
    stacks.create(QUEUE)
    error = refused(stacks, "DescribeChangeSet", ChangeSetName="nothing", StackName="demo")
    assert error.code == "ChangeSetNotFound"
    stacks("DeleteChangeSet", ChangeSetName="nothing", StackName="demo")
    wanted = {"Resources": {"Q": {"Type": "AWS::SQS::Queue", "Properties": {"DelaySeconds": 1}}}}
    request = {"StackName": "demo", "ChangeSetName": "c", "TemplateBody": body(wanted)}
    stacks("CreateChangeSet", **request)
    assert refused(stacks, "CreateChangeSet", **request).code == "AlreadyExistsException"
    stacks("DeleteChangeSet", ChangeSetName="c", StackName="demo")
    assert stacks("ListChangeSets", StackName="demo")["Summaries"] == []


def test_stack_under_review_is_deleted_with_its_change_set(stacks: Deployer) -> None:
    request = {"StackName": "demo", "ChangeSetType": "CREATE", "TemplateBody": body(QUEUE)}
    stacks("CreateChangeSet", ChangeSetName="a", **request)
    stacks("DeleteStack", StackName="demo")
    assert stacks("DescribeStacks")["Stacks"] == []
    stacks("CreateChangeSet", ChangeSetName="a", **request)
    stacks("ExecuteChangeSet", ChangeSetName="a", StackName="demo")
    assert stacks.stack()["StackStatus"] == "CREATE_COMPLETE"
