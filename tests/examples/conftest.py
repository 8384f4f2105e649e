"""The forecast example deployed into a small world: the real services, and functions that run in this process."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from muster.operation import Answer
from muster.services import dynamodb, events, lambda_, logs, s3, sqs, stepfunctions
from muster.stacks import SERVICE as CLOUDFORMATION
from muster.stacks.package import CAPABILITIES, package
from muster.store import blobs as blob_rows
from muster.store.blobs import Blobs
from muster.testing import World
from muster.transaction import Carried, Transaction

EXAMPLE = Path(__file__).parents[2] / "examples" / "forecast"
ARTIFACTS = "muster-artifacts-000000000000-us-east-1"


def parser() -> Callable[[Any, Any], Any]:
    """The example's own parser."""
    spec = importlib.util.spec_from_file_location("forecast_parser", EXAMPLE / "functions" / "parser" / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Callable[[Any, Any], Any] = module.handler
    return handler


class Functions:
    """Stands for the workers. `calls` tells what was processed; a file whose key is in `failing` fails."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.failing: set[str] = set()
        self.world: World
        self._parse = parser()

    async def carry(self, delivery: Carried) -> Callable[[Transaction], None]:
        asked = {"InvocationId": delivery.subject, "Attempt": delivery.attempts}
        job: Answer = await self.world.store.read(lambda tx: tx.call("lambda", "TakeInvocation", asked))
        if job["Verdict"] != "Run":
            return lambda tx: None
        outcome = self._outcome(job["FunctionName"], orjson.loads(job["Payload"]))

        def record(tx: Transaction) -> None:
            tx.call("lambda", "FinishInvocation", {"InvocationId": delivery.subject, **outcome})

        return record

    def _outcome(self, function: str, event: Any) -> dict[str, Any]:
        try:
            return {"Payload": orjson.dumps(self._run(function, event))}
        except Exception as error:  # noqa: BLE001 - whatever a function raises is its answer
            told = {"errorMessage": str(error), "errorType": type(error).__name__}
            return {"Payload": orjson.dumps(told), "FunctionError": "Unhandled"}

    def _run(self, function: str, event: Any) -> Any:
        if "Parser" in function:
            return self._parse(event, None)
        kind = "warehouse" if "Warehouse" in function else "sales"
        self.calls.append((kind, event["correlation_id"]))
        if event["key"] in self.failing:
            raise ValueError(f"{event['key']} is no good")
        return {"key": f"{kind}_{event['correlation_id']}.parquet", "rows": 3}


class Forecast:
    """The deployed example as its users see it."""

    def __init__(self, world: World, functions: Functions) -> None:
        self.world = world
        self.functions = functions

    def upload(self, file: str, body: bytes = b"PAR1", *, settle: bool = True) -> None:
        """A team uploads a file into its bucket."""
        self.world.call("s3", "PutObject", Bucket=f"{file.split('_')[0]}-000000000000", Key=file, Body=body)
        if settle:
            self.world.settle()

    def record(self, file_type: str, correlation_id: str = "2023_10") -> dict[str, str]:
        """Where a file stands."""
        key = {"correlation_id": {"S": correlation_id}, "file_type": {"S": file_type}}
        item = self.world.call("dynamodb", "GetItem", TableName=self.output("TableName"), Key=key).get("Item", {})
        return {name: value["S"] for name, value in item.items()}

    def status(self, file_type: str, correlation_id: str = "2023_10") -> str | None:
        return self.record(file_type, correlation_id).get("status")

    def output(self, key: str) -> str:
        stack = self.world.call("cloudformation", "DescribeStacks", StackName="forecast")["Stacks"][0]
        return next(str(one["OutputValue"]) for one in stack["Outputs"] if one["OutputKey"] == key)

    def executions(self) -> list[str]:
        """The statuses of the main machine's executions, the oldest first."""
        answer = self.world.call("stepfunctions", "ListExecutions", stateMachineArn=self.output("StateMachineArn"))
        return [one["status"] for one in reversed(answer["executions"])]


@pytest.fixture
def functions() -> Functions:
    return Functions()


@pytest.fixture
def forecast(functions: Functions, tmp_path: Path) -> Forecast:
    blobs = Blobs(tmp_path / "blobs")

    async def killed(delivery: Carried) -> Callable[[Transaction], None]:
        return lambda tx: None

    world = World(
        [
            s3.service(blobs),
            events.SERVICE,
            sqs.SERVICE,
            dynamodb.SERVICE,
            lambda_.service(blobs),
            logs.SERVICE,
            stepfunctions.SERVICE,
            CLOUDFORMATION,
        ],
        parts={blob_rows.PART: blob_rows.MIGRATIONS},
        runners={
            "lambda.invoke": functions.carry,
            "lambda.kill": killed,
            blob_rows.REMOVE: blobs.carry_removal,
            **s3.runners(blobs),
        },
    )
    functions.world = world
    packaged = package(EXAMPLE, ARTIFACTS)
    world.call("s3", "CreateBucket", Bucket=ARTIFACTS)
    for artifact in packaged.artifacts:
        world.call("s3", "PutObject", Bucket=ARTIFACTS, Key=artifact.key, Body=artifact.content)
    world.call(
        "cloudformation",
        "CreateStack",
        StackName="forecast",
        TemplateBody=packaged.body,
        Capabilities=CAPABILITIES,
    )
    deployed = Forecast(world, functions)
    stack = world.call("cloudformation", "DescribeStacks", StackName="forecast")["Stacks"][0]
    assert stack["StackStatus"] == "CREATE_COMPLETE", stack.get("StackStatusReason")
    return deployed
