"""Starting a server, deploying to it, looking at it: what a person gets, in a pipe and in JSON, and when it goes wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from muster.cli.client import Clients
from muster.testing import ServerProcess
from tests.cli.conftest import Run

TEMPLATE = """
Resources:
  Inbox:
    Type: AWS::S3::Bucket
    Properties: {BucketName: cli-inbox}
  Machine:
    Type: AWS::StepFunctions::StateMachine
    Properties:
      StateMachineName: cli-machine
      RoleArn: arn:aws:iam::000000000000:role/any
      DefinitionString: '{"StartAt":"W","States":{"W":{"Type":"Wait","Seconds":9999,"End":true}}}'
Outputs:
  Inbox: {Value: !Ref Inbox}
"""


def up(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "muster", "up", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_second_server_on_the_same_folder_is_refused(server: ServerProcess) -> None:
    second = up("--port", "0", "--data", str(server.data))
    assert second.returncode == 1
    assert "Another Muster works on the data folder" in second.stderr


def test_an_address_beyond_this_machine_is_refused(tmp_path: Path) -> None:
    refused = up("--host", "0.0.0.0", "--data", str(tmp_path / "data"))
    assert refused.returncode == 1
    assert "does not listen on 0.0.0.0" in refused.stderr
    assert not (tmp_path / "data").exists()


def test_a_taken_port_is_told_with_what_to_do(server: ServerProcess, tmp_path: Path) -> None:
    refused = up("--port", str(server.port), "--data", str(tmp_path / "data"))
    assert refused.returncode == 1
    assert "--port" in refused.stderr


def test_a_folder_keeps_its_region(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", arguments=["--region", "eu-central-1"]):
        pass
    refused = up("--port", "0", "--region", "us-west-2", "--data", str(tmp_path / "data"))
    assert refused.returncode == 1
    assert "belongs to account 000000000000 in eu-central-1" in refused.stderr


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    refused = up("--port", "0", "--data", str(tmp_path / "data"))
    assert refused.returncode == 1
    assert "cannot be used" in refused.stderr


def test_without_a_server_commands_say_how_to_start_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "muster", "status", "--endpoint", "http://127.0.0.1:9"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "muster up" in done.stderr
    assert "Traceback" not in done.stderr


def test_env_points_tools_at_the_server(server: ServerProcess, muster: Run) -> None:
    assert f"export AWS_ENDPOINT_URL={server.endpoint}" in muster("env").stdout
    assert json.loads(muster("env", "--json").stdout)["AWS_ENDPOINT_URL"] == server.endpoint


def test_a_stack_lives_from_deploy_to_delete(muster: Run, aws: Clients, tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    deployed = json.loads(muster("deploy", str(tmp_path), "--name", "cli", "--json").stdout)
    assert (deployed["action"], deployed["outputs"]) == ("created", {"Inbox": "cli-inbox"})
    assert "cli\tCREATE_COMPLETE" in muster("stacks").stdout
    again = json.loads(muster("deploy", str(tmp_path), "--name", "cli", "--json").stdout)
    assert again["action"] == "unchanged"

    machine = "arn:aws:states:us-east-1:000000000000:stateMachine:cli-machine"
    aws("stepfunctions").start_execution(stateMachineArn=machine, name="one", input='{"file": "a"}')
    assert json.loads(muster("status", "cli", "--json").stdout)["executions"] == {"cli-machine": {"RUNNING": 1}}
    (listed,) = json.loads(muster("executions", "list", "cli-machine", "--json").stdout)
    assert (listed["name"], listed["status"]) == ("one", "RUNNING")
    shown = muster("executions", "show", "one").stdout
    assert "WaitStateEntered" in shown
    assert '"file": "a"' in shown
    assert muster("executions", "stop", "one", "--error", "Enough").returncode == 0
    stopped = json.loads(muster("executions", "show", "one", "--json").stdout)
    assert (stopped["status"], stopped["error"]) == ("ABORTED", "Enough")

    assert muster("delete", "cli").returncode == 0
    assert "cli\t" not in muster("stacks").stdout
    assert "does not exist" in muster("delete", "cli").stderr


def test_a_template_with_something_unsupported_fails_by_name_and_leaves_nothing(
    muster: Run, aws: Clients, tmp_path: Path
) -> None:
    (tmp_path / "template.yaml").write_text(
        "Resources:\n"
        "  Kept: {Type: 'AWS::S3::Bucket', Properties: {BucketName: never-made}}\n"
        "  Cluster: {Type: 'AWS::ECS::Cluster'}\n"
    )
    failed = muster("deploy", str(tmp_path), "--name", "bad")
    assert failed.returncode == 1
    assert "Cluster" in failed.stderr
    assert "AWS::ECS::Cluster" in failed.stderr
    assert "never-made" not in [bucket["Name"] for bucket in aws("s3").list_buckets()["Buckets"]]


def test_doctor_finds_a_damaged_folder(tmp_path: Path) -> None:
    def doctor() -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "muster", "doctor", "--data", str(tmp_path / "data"), "--json"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    with ServerProcess(tmp_path / "data"):
        pass
    sound = doctor()
    assert sound.returncode == 0
    assert "wrong" not in {finding["verdict"] for finding in json.loads(sound.stdout)}
    with (tmp_path / "data" / "muster.db").open("r+b") as database:
        database.write(os.urandom(4096))
    damaged = doctor()
    assert damaged.returncode == 1
    assert [finding["what"] for finding in json.loads(damaged.stdout) if finding["verdict"] == "wrong"] == ["database"]


@pytest.mark.parametrize("arguments", [["up", "--port", "99999"], ["deploy"], ["executions", "show"], ["frobnicate"]])
def test_a_wrong_command_line_is_explained_without_a_traceback(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "muster", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "Usage" in done.stderr
    assert "Traceback" not in done.stderr
