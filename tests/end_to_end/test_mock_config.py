"""A server with a mock configuration, as a user starts it: test cases chosen by the ARN, over the wire."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muster.cli.client import clients
from muster.testing import ServerProcess

FILE = {
    "StateMachines": {"Orders": {"TestCases": {"Happy": {"Charge": "Charged"}}}},
    "MockedResponses": {"Charged": {"0": {"Return": {"paid": "x" * 220_000}}}},
}
CHARGE = {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:000000000000:function:charge", "End": True}
ROLE = "arn:aws:iam::000000000000:role/orders"


def test_case_is_chosen_by_the_arn_and_a_large_payload_is_warned_of(
    tmp_path: Path, until: Callable[[Callable[[], Any]], Any]
) -> None:
    file = tmp_path / "mocks.json"
    file.write_text(json.dumps(FILE))
    with ServerProcess(tmp_path / "data", arguments=["--mock-config", str(file)]) as server:
        states = clients(server.endpoint)("stepfunctions")
        definition = json.dumps({"StartAt": "Charge", "States": {"Charge": CHARGE}})
        arn = states.create_state_machine(name="Orders", definition=definition, roleArn=ROLE)["stateMachineArn"]
        execution = states.start_execution(stateMachineArn=f"{arn}#Happy", name="one")["executionArn"]
        until(lambda: states.describe_execution(executionArn=execution)["status"] == "SUCCEEDED")
        failing = states.start_execution(stateMachineArn=arn, name="two")["executionArn"]
        until(lambda: states.describe_execution(executionArn=failing)["status"] == "FAILED")
        show = [sys.executable, "-m", "muster", "executions", "show", "one", "--endpoint", server.endpoint, "--json"]
        shown = subprocess.run(show, check=True, capture_output=True, text=True)
        assert json.loads(shown.stdout)["warnings"][0].startswith("payload: the output")
        assert "payload: the output" in server.log
