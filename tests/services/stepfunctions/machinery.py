"""A small world with state machines: start them, look at how they end and at what they wrote down."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from muster.clock import SimulatedClock
from muster.operation import Service
from muster.services.stepfunctions import SERVICE
from muster.testing import World

ROLE = "arn:aws:iam::000000000000:role/machine"


class Machinery(World):
    """A world with Step Functions and whatever else a test needs."""

    def __init__(self, services: Iterable[Service] = (), **options: Any) -> None:
        super().__init__([SERVICE, *services], clock=SimulatedClock(1_735_000_000.0), **options)
        self.count = 0

    def create(self, definition: Mapping[str, Any], **more: Any) -> str:
        """A state machine of that definition; its ARN."""
        self.count += 1
        request = {"name": f"machine-{self.count}", "roleArn": ROLE, **more}
        text = orjson.dumps(definition).decode()
        arn: str = self.call("stepfunctions", "CreateStateMachine", definition=text, **request)["stateMachineArn"]
        return arn

    def begin(self, definition: Mapping[str, Any], document: Any = None, **more: Any) -> str:
        """Start a machine of that definition and let it go as far as it can; the execution's ARN."""
        machine = self.create(definition, **more)
        return self.start(machine, document)

    def start(self, machine: str, document: Any = None, **more: Any) -> str:
        """Start an execution and let it go as far as it can."""
        text = orjson.dumps({} if document is None else document).decode()
        arn: str = self.call("stepfunctions", "StartExecution", stateMachineArn=machine, input=text, **more)[
            "executionArn"
        ]
        self.settle()
        return arn

    def status(self, execution: str) -> str:
        status: str = self.described(execution)["status"]
        return status

    def described(self, execution: str) -> dict[str, Any]:
        return self.call("stepfunctions", "DescribeExecution", executionArn=execution)

    def output(self, execution: str) -> Any:
        """The output of an execution that has succeeded."""
        described = self.described(execution)
        assert described["status"] == "SUCCEEDED", described
        return orjson.loads(described["output"])

    def failure(self, execution: str) -> tuple[str | None, str | None]:
        """Error and cause of an execution that has failed."""
        described = self.described(execution)
        assert described["status"] == "FAILED", described
        return described.get("error"), described.get("cause")

    def history(self, execution: str, **more: Any) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = self.call(
            "stepfunctions", "GetExecutionHistory", executionArn=execution, maxResults=1000, **more
        )["events"]
        return events

    def types(self, execution: str) -> list[str]:
        return [event["type"] for event in self.history(execution)]

    def tokens(self) -> list[str]:
        """The open task tokens, oldest first."""
        rows = self.rows("SELECT token FROM states_tokens WHERE status = 'OPEN' ORDER BY beat_at, attempt")
        return [row["token"] for row in rows]


def one(name: str, state: Mapping[str, Any], **others: Mapping[str, Any]) -> dict[str, Any]:
    """A machine that starts at `state`."""
    return {"StartAt": name, "States": {name: state, **others}}


def passing(**members: Any) -> dict[str, Any]:
    return {"Type": "Pass", "End": True, **members}


def task(resource: str, **members: Any) -> dict[str, Any]:
    """A Task with a resource of `arn:aws:states:::`."""
    end = {} if "Next" in members else {"End": True}
    return {"Type": "Task", "Resource": f"arn:aws:states:::{resource}", **end, **members}
