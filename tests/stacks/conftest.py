"""A world in which stacks are made of real services, without HTTP."""

from typing import Any

import pytest

from muster.services import dynamodb, lambda_, logs, sqs, stepfunctions
from muster.stacks import SERVICE
from muster.stacks import document as documents
from muster.stacks.package import CAPABILITIES
from muster.testing import World


class Deployer:
    """CloudFormation as a client uses it."""

    def __init__(self, world: World) -> None:
        self.world = world

    def __call__(self, operation: str, **request: Any) -> dict[str, Any]:
        return self.world.call("cloudformation", operation, **request)

    def create(self, template: Any, name: str = "demo", **more: Any) -> dict[str, Any]:
        """Create a stack and describe it."""
        request = {"Capabilities": CAPABILITIES, **more}
        made = self("CreateStack", StackName=name, TemplateBody=body(template), **request)
        return self.stack(made["StackId"])

    def update(self, template: Any, name: str = "demo", **more: Any) -> dict[str, Any]:
        """Update a stack and describe it."""
        self("UpdateStack", StackName=name, TemplateBody=body(template), Capabilities=CAPABILITIES, **more)
        return self.stack(name)

    def stack(self, name: str = "demo") -> dict[str, Any]:
        found: dict[str, Any] = self("DescribeStacks", StackName=name)["Stacks"][0]
        return found

    def outputs(self, name: str = "demo") -> dict[str, str]:
        return {one["OutputKey"]: one["OutputValue"] for one in self.stack(name).get("Outputs", [])}

    def physical(self, logical_id: str, name: str = "demo") -> str:
        found = self("DescribeStackResource", StackName=name, LogicalResourceId=logical_id)
        return str(found["StackResourceDetail"]["PhysicalResourceId"])

    def events(self, name: str = "demo") -> list[tuple[str, str]]:
        """Logical ids and statuses, the oldest first."""
        found = self("DescribeStackEvents", StackName=name)["StackEvents"]
        return [(event["LogicalResourceId"], event["ResourceStatus"]) for event in reversed(found)]

    def queues(self) -> list[str]:
        return list(self.world.call("sqs", "ListQueues").get("QueueUrls", []))


def body(template: Any) -> str:
    return template if isinstance(template, str) else documents.write(template)


@pytest.fixture
def stacks() -> Deployer:
    return Deployer(
        World([sqs.SERVICE, dynamodb.SERVICE, lambda_.SERVICE, logs.SERVICE, stepfunctions.SERVICE, SERVICE])
    )
