"""Stacks are created, updated and deleted altogether, or not at all."""

from typing import Any

import pytest

from muster.errors import ServiceError

Deployer = Any  # the fixture's own class, which lives in conftest


def queue(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::SQS::Queue", "Properties": properties}


def table(**properties: Any) -> dict[str, Any]:
    return {
        "Type": "AWS::DynamoDB::Table",
        "Properties": {
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            **properties,
        },
    }


def resources(**declared: Any) -> dict[str, Any]:
    return {"Resources": declared}


# --- creation --------------------------------------------------------------------------------------------------------


def test_resources_are_made_in_the_order_of_their_references(stacks: Deployer) -> None:
    redrive = {"deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}, "maxReceiveCount": 3}
    template = resources(Queue=queue(VisibilityTimeout="60", RedrivePolicy=redrive), Dead=queue())
    template["Outputs"] = {"Url": {"Value": {"Ref": "Queue"}, "Description": "where"}}
    made = stacks.create(template)
    assert made["StackStatus"] == "CREATE_COMPLETE"
    assert made["Outputs"] == [{"OutputKey": "Url", "OutputValue": stacks.physical("Queue"), "Description": "where"}]
    completed = [name for name, status in stacks.events() if status == "CREATE_COMPLETE"]
    assert completed == ["Dead", "Queue", "demo"]
    attributes = stacks.world.call(
        "sqs", "GetQueueAttributes", QueueUrl=stacks.physical("Queue"), AttributeNames=["All"]
    )["Attributes"]
    assert attributes["VisibilityTimeout"] == "60"
    assert stacks.physical("Dead").rsplit("/", 1)[1] in attributes["RedrivePolicy"]


def test_generated_names_hold_stack_and_logical_id(stacks: Deployer) -> None:
    stacks.create(resources(Queue=queue(), Ordered=queue(FifoQueue=True)))
    assert "/demo-Queue-" in stacks.physical("Queue")
    assert stacks.physical("Ordered").endswith(".fifo")


def test_long_stack_names_leave_room_for_chance(stacks: Deployer) -> None:
    stacks.create(resources(Queue=queue()), name="s" * 128)
    name = stacks.physical("Queue", "s" * 128).rsplit("/", 1)[1]
    assert len(name) <= 80


def test_failed_creation_leaves_nothing_but_its_record(stacks: Deployer) -> None:
    made = stacks.create(resources(Good=queue(), Bad=queue(VisibilityTimeout="never"), Later=table()))
    assert made["StackStatus"] == "ROLLBACK_COMPLETE"
    reason = made["StackStatusReason"]
    assert "Bad (AWS::SQS::Queue), property VisibilityTimeout: " in reason
    assert stacks.queues() == []
    assert stacks("DescribeStackResources", StackName="demo")["StackResources"] == []
    assert ("Bad", "CREATE_FAILED") in stacks.events()
    assert stacks.events()[-1] == ("demo", "ROLLBACK_COMPLETE")
    stacks("DeleteStack", StackName="demo")
    assert stacks.create(resources(Good=queue()))["StackStatus"] == "CREATE_COMPLETE"


def test_failed_creation_is_deleted_on_wish(stacks: Deployer) -> None:
    made = stacks.create(resources(Bad=queue(VisibilityTimeout="never")), OnFailure="DELETE")
    assert made["StackStatus"] == "DELETE_COMPLETE"
    assert stacks("DescribeStacks")["Stacks"] == []


def test_service_that_is_not_there_fails_by_name(stacks: Deployer) -> None:
    made = stacks.create(resources(Topic={"Type": "AWS::SNS::Topic"}, Queue=queue()))
    assert made["StackStatus"] == "ROLLBACK_COMPLETE"
    assert "Topic (AWS::SNS::Topic): Muster does not support sns:CreateTopic" in made["StackStatusReason"]
    assert stacks.queues() == []


@pytest.mark.parametrize(
    ("template", "told"),
    [
        (
            resources(Api={"Type": "AWS::ApiGateway::RestApi"}),
            "does not support the resource type AWS::ApiGateway::RestApi of resource Api",
        ),
        (
            resources(Queue=queue(VisibilityTimout=3)),
            r"property VisibilityTimout of resource Queue \(AWS::SQS::Queue\)\. Did you mean VisibilityTimeout\?",
        ),
        (resources(Queue=queue(QueueName={"Ref": "Nowhere"})), r"Unresolved resource dependencies \[Nowhere\]"),
        (
            resources(A=queue(), B=queue(QueueName={"Fn::GetAtt": ["A", "Name"]})),
            r"resource A \(AWS::SQS::Queue\) does not support attribute type Name .* Did you mean QueueName\?",
        ),
        (
            {**resources(A=queue()), "Outputs": {"O": {"Value": {"Fn::GetAtt": ["B", "Arn"]}}}},
            r"references undefined resource B \(output O\)",
        ),
    ],
)
def test_template_that_cannot_be_deployed_is_refused_before_anything_is_made(
    stacks: Deployer, template: Any, told: str
) -> None:
    with pytest.raises(ServiceError, match=told) as refused:
        stacks.create(template)
    assert refused.value.code == "ValidationError"
    assert stacks("ListStacks")["StackSummaries"] == []


def test_reference_to_a_resource_whose_condition_does_not_hold_is_refused(stacks: Deployer) -> None:
    template = resources(A={**queue(), "Condition": "No"}, B=queue(QueueName={"Fn::GetAtt": ["A", "QueueName"]}))
    template["Conditions"] = {"No": {"Fn::Equals": [1, 2]}}
    with pytest.raises(ServiceError, match=r"Unresolved resource dependencies \[A\]"):
        stacks.create(template)


def test_dependence_on_a_resource_whose_condition_does_not_hold_is_left_out(stacks: Deployer) -> None:
    template = resources(A={**queue(), "Condition": "No"}, B={**queue(), "DependsOn": "A"})
    template["Conditions"] = {"No": {"Fn::Equals": [1, 2]}}
    assert stacks.create(template)["StackStatus"] == "CREATE_COMPLETE"
    assert len(stacks.queues()) == 1


def test_stack_id_looks_real(stacks: Deployer) -> None:
    parts = {
        "Fn::Select": [0, {"Fn::Split": ["-", {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}]}]
    }
    name = {"Fn::Join": ["-", ["sales", parts]]}
    made = stacks.create(resources(Queue=queue(QueueName=name)))
    uuid = made["StackId"].rsplit("/", 1)[1]
    assert made["StackId"] == f"arn:aws:cloudformation:us-east-1:000000000000:stack/demo/{uuid}"
    assert stacks.physical("Queue").endswith(f"/sales-{uuid.split('-')[0]}")


def test_stack_tags_reach_the_resources(stacks: Deployer) -> None:
    own = [{"Key": "team", "Value": "own"}]
    stacks.create(
        resources(Plain=queue(), Own=queue(Tags=own)),
        Tags=[{"Key": "team", "Value": "a"}, {"Key": "stage", "Value": "b"}],
    )
    tags = {
        name: stacks.world.call("sqs", "ListQueueTags", QueueUrl=stacks.physical(name))["Tags"]
        for name in ("Plain", "Own")
    }
    assert tags == {"Plain": {"team": "a", "stage": "b"}, "Own": {"team": "own", "stage": "b"}}


# --- updates ---------------------------------------------------------------------------------------------------------


def test_update_changes_in_place_adds_and_removes(stacks: Deployer) -> None:
    stacks.create(resources(Stays=queue(), Changes=queue(VisibilityTimeout=10), Goes=queue()))
    stays, changes, goes = (stacks.physical(name) for name in ("Stays", "Changes", "Goes"))
    updated = stacks.update(resources(Stays=queue(), Changes=queue(VisibilityTimeout=20), Comes=queue()))
    assert updated["StackStatus"] == "UPDATE_COMPLETE"
    assert (stacks.physical("Stays"), stacks.physical("Changes")) == (stays, changes)
    attributes = stacks.world.call("sqs", "GetQueueAttributes", QueueUrl=changes, AttributeNames=["All"])
    assert attributes["Attributes"]["VisibilityTimeout"] == "20"
    assert goes not in stacks.queues()
    assert stacks.physical("Comes") in stacks.queues()
    assert ("Stays", "UPDATE_COMPLETE") not in stacks.events()


def test_update_goes_back_to_the_default_of_what_is_no_longer_given(stacks: Deployer) -> None:
    stacks.create(resources(Queue=queue(VisibilityTimeout=10), Other=queue()))
    stacks.update(resources(Queue=queue(), Other=queue()))
    attributes = stacks.world.call(
        "sqs", "GetQueueAttributes", QueueUrl=stacks.physical("Queue"), AttributeNames=["VisibilityTimeout"]
    )
    assert attributes["Attributes"]["VisibilityTimeout"] == "30"


def test_replacement_makes_the_new_before_it_deletes_the_old_and_carries_on_to_those_who_refer(
    stacks: Deployer,
) -> None:
    def template(name: str) -> dict[str, Any]:
        redrive = {"deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}, "maxReceiveCount": 3}
        return resources(Dead=queue(QueueName=name), Queue=queue(RedrivePolicy=redrive))

    stacks.create(template("first"))
    stacks.update(template("second"))
    assert stacks.physical("Dead").endswith("/second")
    assert not any(url.endswith("/first") for url in stacks.queues())
    attributes = stacks.world.call(
        "sqs", "GetQueueAttributes", QueueUrl=stacks.physical("Queue"), AttributeNames=["RedrivePolicy"]
    )
    assert ":second" in attributes["Attributes"]["RedrivePolicy"]
    events = stacks.events()
    cleanup = events.index(("demo", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"))
    assert events.index(("Dead", "UPDATE_COMPLETE")) < cleanup < events.index(("Dead", "DELETE_COMPLETE"))


def test_custom_named_resource_is_not_replaced_under_its_own_name(stacks: Deployer) -> None:
    key = [{"AttributeName": "sk", "KeyType": "HASH"}]
    attributes = [{"AttributeName": "sk", "AttributeType": "S"}]
    stacks.create(resources(Table=table(TableName="files")))
    updated = stacks.update(resources(Table=table(TableName="files", KeySchema=key, AttributeDefinitions=attributes)))
    assert updated["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert "custom-named resource requires replacing. Rename files" in updated["StackStatusReason"]


def test_failed_update_leaves_everything_as_it_was(stacks: Deployer) -> None:
    before = resources(A=queue(VisibilityTimeout=10), B=queue())
    stacks.create(before)
    queues = stacks.queues()
    updated = stacks.update(
        resources(A=queue(VisibilityTimeout=20), C=queue(), D=queue(DelaySeconds="long")), name="demo"
    )
    assert updated["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert "D (AWS::SQS::Queue), property DelaySeconds" in updated["StackStatusReason"]
    assert stacks.queues() == queues
    attributes = stacks.world.call(
        "sqs", "GetQueueAttributes", QueueUrl=stacks.physical("A"), AttributeNames=["VisibilityTimeout"]
    )
    assert attributes["Attributes"]["VisibilityTimeout"] == "10"
    assert stacks.update(resources(A=queue(VisibilityTimeout=30)))["StackStatus"] == "UPDATE_COMPLETE"


def test_update_without_a_change_is_refused(stacks: Deployer) -> None:
    stacks.create(resources(A=queue()))
    with pytest.raises(ServiceError, match="No updates are to be performed") as refused:
        stacks.update({"Description": "only words", **resources(A=queue())})
    assert refused.value.code == "ValidationError"


def test_retained_resources_stay_when_they_leave_the_stack(stacks: Deployer) -> None:
    stacks.create(resources(Kept={**queue(), "DeletionPolicy": "Retain"}, Other=queue()))
    kept = stacks.physical("Kept")
    stacks.update(resources(Other=queue()))
    assert kept in stacks.queues()
    assert ("Kept", "DELETE_SKIPPED") in stacks.events()


def test_replaced_resource_stays_when_its_policy_says_so(stacks: Deployer) -> None:
    def template(name: str) -> dict[str, Any]:
        return resources(Queue={**queue(QueueName=name), "UpdateReplacePolicy": "Retain"})

    stacks.create(template("first"))
    stacks.update(template("second"))
    assert {url.rsplit("/", 1)[1] for url in stacks.queues()} == {"first", "second"}


def test_table_follows_its_template(stacks: Deployer) -> None:
    stacks.create(resources(Table=table(StreamSpecification={"StreamViewType": "NEW_IMAGE"})))
    name = stacks.physical("Table")
    described = stacks.world.call("dynamodb", "DescribeTable", TableName=name)["Table"]
    assert described["StreamSpecification"]["StreamViewType"] == "NEW_IMAGE"
    index = {
        "IndexName": "by_sk",
        "KeySchema": [{"AttributeName": "sk", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    wanted = table(
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        GlobalSecondaryIndexes=[index],
        TimeToLiveSpecification={"AttributeName": "ends_at", "Enabled": True},
        Tags=[{"Key": "a", "Value": "b"}],
        StreamSpecification={"StreamViewType": "NEW_IMAGE"},
    )
    assert stacks.update(resources(Table=wanted))["StackStatus"] == "UPDATE_COMPLETE"
    described = stacks.world.call("dynamodb", "DescribeTable", TableName=name)["Table"]
    assert [one["IndexName"] for one in described["GlobalSecondaryIndexes"]] == ["by_sk"]
    time_to_live = stacks.world.call("dynamodb", "DescribeTimeToLive", TableName=name)
    assert time_to_live["TimeToLiveDescription"]["AttributeName"] == "ends_at"


# --- deletion --------------------------------------------------------------------------------------------------------


def test_deletion_takes_all_away_in_reverse(stacks: Deployer) -> None:
    made = stacks.create(resources(A=queue(), B={**queue(), "DependsOn": "A"}))
    stacks("DeleteStack", StackName="demo")
    assert stacks.queues() == []
    with pytest.raises(ServiceError, match="Stack with id demo does not exist"):
        stacks.stack()
    deleted = [name for name, status in stacks.events(made["StackId"]) if status == "DELETE_COMPLETE"]
    assert deleted == ["B", "A", "demo"]
    assert stacks.stack(made["StackId"])["StackStatus"] == "DELETE_COMPLETE"
    stacks("DeleteStack", StackName="demo")


def test_resource_that_somebody_deleted_already_is_as_good_as_deleted(stacks: Deployer) -> None:
    stacks.create(resources(A=queue(), B=table()))
    stacks.world.call("sqs", "DeleteQueue", QueueUrl=stacks.physical("A"))
    stacks.world.call("dynamodb", "DeleteTable", TableName=stacks.physical("B"))
    stacks("DeleteStack", StackName="demo")
    assert stacks("DescribeStacks")["Stacks"] == []


def test_protected_stack_is_not_deleted(stacks: Deployer) -> None:
    stacks.create(resources(A=queue()), EnableTerminationProtection=True)
    with pytest.raises(ServiceError, match="cannot be deleted while TerminationProtection is enabled"):
        stacks("DeleteStack", StackName="demo")
    stacks("UpdateTerminationProtection", StackName="demo", EnableTerminationProtection=False)
    stacks("DeleteStack", StackName="demo")
    assert stacks.queues() == []


def test_deletion_that_fails_leaves_everything_and_can_leave_a_resource_behind_on_wish(stacks: Deployer) -> None:
    stacks.create(resources(A=queue(), B=table(DeletionProtectionEnabled=True)))
    stacks("DeleteStack", StackName="demo")
    stack = stacks.stack()
    assert stack["StackStatus"] == "DELETE_FAILED"
    assert "B (AWS::DynamoDB::Table)" in stack["StackStatusReason"]
    assert len(stacks.queues()) == 1
    stacks("DeleteStack", StackName="demo", RetainResources=["B"])
    assert stacks("DescribeStacks")["Stacks"] == []
    assert stacks.queues() == []
    assert len(stacks.world.call("dynamodb", "ListTables")["TableNames"]) == 1


# --- between stacks --------------------------------------------------------------------------------------------------


def exporting(value: str) -> dict[str, Any]:
    return {
        **resources(A=queue(QueueName=value)),
        "Outputs": {"O": {"Value": {"Fn::GetAtt": ["A", "QueueName"]}, "Export": {"Name": "shared"}}},
    }


def test_export_is_imported_and_guarded(stacks: Deployer) -> None:
    stacks.create(exporting("one"), name="giver")
    taking = resources(B=queue(QueueName={"Fn::Sub": ["${n}-taker", {"n": {"Fn::ImportValue": "shared"}}]}))
    stacks.create(taking, name="taker")
    assert stacks.physical("B", "taker").endswith("/one-taker")
    assert [one["Name"] for one in stacks("ListExports")["Exports"]] == ["shared"]
    assert stacks("ListImports", ExportName="shared")["Imports"] == ["taker"]
    changed = stacks.update(exporting("two"), name="giver")
    assert changed["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert changed["StackStatusReason"] == "Export shared cannot be updated as it is in use by taker"
    stacks("DeleteStack", StackName="giver")
    assert stacks.stack("giver")["StackStatusReason"] == "Export shared cannot be deleted as it is in use by taker"
    stacks("DeleteStack", StackName="taker")
    stacks("DeleteStack", StackName="giver")
    assert stacks("DescribeStacks")["Stacks"] == []
    assert stacks("ListExports")["Exports"] == []


def test_import_of_nothing_fails_by_name(stacks: Deployer) -> None:
    made = stacks.create(resources(A=queue(QueueName={"Fn::ImportValue": "absent"})))
    assert "No export named absent found" in made["StackStatusReason"]


def test_export_name_belongs_to_one_stack(stacks: Deployer) -> None:
    stacks.create(exporting("one"), name="giver")
    second = stacks.create(exporting("two"), name="second")
    assert second["StackStatus"] == "ROLLBACK_COMPLETE"
    assert second["StackStatusReason"] == "Export with name shared is already exported by stack giver."
