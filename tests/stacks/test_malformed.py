"""Whatever stands in a template, the answer is a stack or a refusal, never a breakdown."""

import contextlib
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.errors import ServiceError
from muster.services import sqs
from muster.stacks import SERVICE
from muster.stacks.package import CAPABILITIES
from muster.testing import World

WORDS = st.sampled_from(
    [
        "Ref",
        "Fn::Sub",
        "Fn::GetAtt",
        "Fn::If",
        "Fn::Join",
        "Fn::Select",
        "Fn::FindInMap",
        "Condition",
        "Q",
        "P",
        "C",
        "Arn",
    ]
)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | WORDS | st.sampled_from(["${Q}", "${P", "x", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=6,
)
QUEUE = {"Type": "AWS::SQS::Queue"}
SAM = {"Transform": "AWS::Serverless-2016-10-31"}

TEMPLATE = st.one_of(
    st.fixed_dictionaries({"Resources": VALUE}),
    st.builds(lambda v: {"Resources": {"Q": v}}, VALUE),
    st.builds(lambda v: {"Resources": {"Q": {**QUEUE, "Properties": v}}}, VALUE),
    st.builds(lambda v: {"Resources": {"Q": {**QUEUE, "Properties": {"QueueName": v}}}}, VALUE),
    st.builds(lambda v: {"Resources": {"Q": {**QUEUE, "DependsOn": v}}}, VALUE),
    st.builds(lambda v: {"Resources": {"Q": {**QUEUE, "Condition": v}}}, VALUE),
    st.builds(lambda v: {"Resources": {"Q": QUEUE}, "Outputs": {"O": {"Value": v, "Export": {"Name": v}}}}, VALUE),
    st.builds(
        lambda name, v: {"Resources": {"Q": QUEUE}, name: v},
        st.sampled_from(["Parameters", "Conditions", "Mappings", "Outputs", "Metadata", "Transform", "Description"]),
        VALUE,
    ),
    st.builds(
        lambda name, v: {"Resources": {"Q": QUEUE}, name: {"P": v}},
        st.sampled_from(["Parameters", "Conditions", "Mappings", "Outputs"]),
        VALUE,
    ),
    st.builds(
        lambda name, v: {"Resources": {"Q": QUEUE}, "Parameters": {"P": {"Type": "String", name: v}}},
        st.sampled_from(["Default", "AllowedValues", "AllowedPattern", "MinLength", "MaxLength", "NoEcho"]),
        VALUE,
    ),
    st.builds(
        lambda v, c: {
            "Resources": {"Q": {**QUEUE, "Condition": "C", "Properties": {"QueueName": v}}},
            "Conditions": {"C": c},
            "Mappings": {"P": {"Q": {"x": "y"}}},
        },
        VALUE,
        VALUE,
    ),
    st.builds(lambda v: {**SAM, "Resources": {"F": {"Type": "AWS::Serverless::Function", "Properties": v}}}, VALUE),
    st.builds(
        lambda v: {**SAM, "Resources": {"F": {"Type": "AWS::Serverless::StateMachine", "Properties": {"Events": v}}}},
        VALUE,
    ),
    st.builds(lambda v: {**SAM, "Globals": v, "Resources": {"F": {"Type": "AWS::Serverless::SimpleTable"}}}, VALUE),
)


@pytest.fixture(scope="module")
def world() -> World:
    return World([sqs.SERVICE, SERVICE])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(template=TEMPLATE)
def test_any_template_is_made_or_refused(world: World, template: Any) -> None:
    body = orjson.dumps(template).decode()
    for operation, more in (
        ("ValidateTemplate", {}),
        ("GetTemplateSummary", {}),
        ("CreateStack", {"StackName": "s", "Capabilities": CAPABILITIES}),
    ):
        with contextlib.suppress(ServiceError):
            world.call("cloudformation", operation, TemplateBody=body, **more)
    for stack in world.call("cloudformation", "DescribeStacks")["Stacks"]:
        world.call("cloudformation", "DeleteStack", StackName=stack["StackName"])
    assert world.call("cloudformation", "DescribeStacks")["Stacks"] == []
