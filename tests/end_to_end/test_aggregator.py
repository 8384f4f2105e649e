"""A template of scenario 1 as people write it for AWS, deployed and run as it is: Node.js parser, bucket names from the
stack's id, bare strings for attribute values, children that succeed at once, a token handed on by the SDK integration."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muster.cli.client import Clients
from muster.stacks.package import deploy

TEMPLATE = Path(__file__).parent / "aggregator"

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js here: apt-get install nodejs")

Until = Callable[[Callable[[], Any]], Any]


class Application:
    """The deployed stack as a user sees it."""

    def __init__(self, aws: Clients) -> None:
        self.outputs = deploy(TEMPLATE / "template.yaml", aws, name="aggregator", parameters={}).outputs
        self.aws = aws

    def upload(self, kind: str, month: str) -> None:
        bucket = self.outputs["SalesBucket" if kind == "sales" else "WarehouseBucket"]
        self.aws("s3").put_object(Bucket=bucket, Key=f"{kind}_{month}.parquet", Body=b"x" * 512)

    def record(self, kind: str, month: str) -> dict[str, Any]:
        key = {"pk": {"S": month}, "sk": {"S": kind}}
        found = self.aws("dynamodb").get_item(TableName="aggregator", Key=key, ConsistentRead=True)
        return {name: value["S"] for name, value in found.get("Item", {}).items()}

    def status(self, kind: str, month: str) -> str | None:
        return self.record(kind, month).get("processingStatus")

    def executions(self, status: str) -> int:
        states = self.aws("stepfunctions")
        return len(states.list_executions(stateMachineArn=self.outputs["Machine"], statusFilter=status)["executions"])


def test_the_aggregator_runs_in_both_orders(aws: Clients, until: Until) -> None:
    application = Application(aws)
    assert len(application.outputs["SalesBucket"].split("-")[2]) == 8, "a part of the stack id's UUID"

    application.upload("sales", "2023_10")
    until(lambda: application.status("sales", "2023_10") == "Pending")
    assert application.record("sales", "2023_10")["taskToken"]
    assert application.executions("RUNNING") == 1
    application.upload("warehouse", "2023_10")
    until(lambda: application.status("sales", "2023_10") == "Completed")
    assert application.status("warehouse", "2023_10") == "Completed"
    until(lambda: application.executions("SUCCEEDED") == 2)

    application.upload("warehouse", "2023_11")
    until(lambda: application.status("warehouse", "2023_11") == "Completed")
    application.upload("sales", "2023_11")
    until(lambda: application.status("sales", "2023_11") == "Completed")
    until(lambda: application.executions("SUCCEEDED") == 4)
    assert application.executions("FAILED") == 0

    application.upload("nonsense", "2023_12")
    until(lambda: application.executions("FAILED") == 1)
