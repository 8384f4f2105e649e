"""Tasks that run real functions on a real server: what they return, how they fail, and how they are given up."""

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muster.cli.client import Clients

Until = Callable[[Callable[[], Any]], Any]

CODE = """
import os, time


class Sold(Exception):
    pass


def handler(event, context):
    if event.get("raise"):
        raise Sold("out")
    if event.get("exit"):
        os._exit(3)
    if event.get("sleep"):
        with open(event["mark"], "w") as file:
            file.write(str(os.getpid()))
        time.sleep(event["sleep"])
    return {"got": event}
"""

ROLE = "arn:aws:iam::000000000000:role/any"


class Machine:
    """One Task that invokes the function, with whatever else a test writes into the state."""

    def __init__(self, aws: Clients, until: Until) -> None:
        self.aws, self.until = aws, until
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("app.py", CODE)
        made = aws("lambda").create_function(
            FunctionName="work",
            Runtime="python3.11",
            Role=ROLE,
            Handler="app.handler",
            Code={"ZipFile": packed.getvalue()},
            Timeout=30,
        )
        self.function = made["FunctionArn"]

    def run(self, document: dict[str, Any], resource: str | None = None, **members: Any) -> dict[str, Any]:
        """The ended execution's description, with its history's types."""
        states = self.aws("stepfunctions")
        work: dict[str, Any] = {"Type": "Task", "Resource": resource or self.function, "End": True, **members}
        if resource is not None:
            work["Parameters"] = {"FunctionName": "work", "Payload.$": "$", **members.get("Parameters", {})}
        machine = {"StartAt": "Work", "States": {"Work": work, "Caught": {"Type": "Pass", "End": True}}}
        name = f"m{len(states.list_state_machines()['stateMachines'])}"
        if "Catch" not in members:
            del machine["States"]["Caught"]  # type: ignore[attr-defined]
        arn = states.create_state_machine(name=name, definition=json.dumps(machine), roleArn=ROLE)["stateMachineArn"]
        execution = states.start_execution(stateMachineArn=arn, input=json.dumps(document))["executionArn"]
        self.until(lambda: states.describe_execution(executionArn=execution)["status"] != "RUNNING")
        found: dict[str, Any] = states.describe_execution(executionArn=execution)
        found["types"] = [one["type"] for one in states.get_execution_history(executionArn=execution)["events"]]
        return found


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    state = Path(f"/proc/{process}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_function_tasks_return_fail_and_are_given_up(aws: Clients, until: Until, tmp_path: Path) -> None:
    machine = Machine(aws, until)

    plain = machine.run({"n": 1})
    assert json.loads(plain["output"]) == {"got": {"n": 1}}
    assert plain["types"][2:5] == ["LambdaFunctionScheduled", "LambdaFunctionStarted", "LambdaFunctionSucceeded"]

    optimised = machine.run({"n": 2}, "arn:aws:states:::lambda:invoke", OutputPath="$.Payload")
    assert json.loads(optimised["output"]) == {"got": {"n": 2}}
    assert optimised["types"][2:5] == ["TaskScheduled", "TaskStarted", "TaskSucceeded"]

    raised = machine.run({"raise": True}, "arn:aws:states:::lambda:invoke")
    assert (raised["status"], raised["error"]) == ("FAILED", "Sold")
    assert json.loads(raised["cause"])["errorMessage"] == "out"

    catch = [{"ErrorEquals": ["States.TaskFailed"], "Next": "Caught"}]
    caught = machine.run({"raise": True}, Catch=catch)
    assert json.loads(caught["output"])["Error"] == "Sold"

    exited = machine.run({"exit": True}, Catch=[{"ErrorEquals": ["Runtime.ExitError"], "Next": "Caught"}])
    assert json.loads(exited["output"])["Error"] == "Runtime.ExitError"

    mark = tmp_path / "pid"
    catch = [{"ErrorEquals": ["States.Timeout"], "Next": "Caught"}]
    late = machine.run({"sleep": 25, "mark": str(mark)}, TimeoutSeconds=4, Catch=catch)
    assert json.loads(late["output"])["Error"] == "States.Timeout"
    assert "LambdaFunctionTimedOut" in late["types"]
    assert mark.exists()
    until(lambda: gone(int(mark.read_text())))

    aws("lambda").update_function_configuration(FunctionName="work", Timeout=1)
    until(lambda: aws("lambda").get_function(FunctionName="work")["Configuration"]["LastUpdateStatus"] == "Successful")
    slow = machine.run({"sleep": 25, "mark": str(mark)}, "arn:aws:states:::lambda:invoke")
    assert slow["error"] == "Sandbox.Timedout"

    aws("lambda").put_function_concurrency(FunctionName="work", ReservedConcurrentExecutions=0)
    throttled = machine.run({}, "arn:aws:states:::lambda:invoke")
    assert throttled["error"] == "Lambda.TooManyRequestsException"
    assert "Status Code: 429" in throttled["cause"]
