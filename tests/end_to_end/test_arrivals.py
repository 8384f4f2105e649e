"""From an upload to an execution, through every door: awkward keys, large files in parts, copies, forms of the command."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from boto3.s3.transfer import TransferConfig

from muster.cli.client import Clients
from muster.testing import ServerProcess

Until = Callable[[Callable[[], Any]], Any]

ROLE = "arn:aws:iam::000000000000:role/any"
MACHINE = json.dumps({"StartAt": "Seen", "States": {"Seen": {"Type": "Succeed"}}})
KEYS = [
    "plain.parquet",
    "a b.csv",
    "a%20b.csv",
    "in/ventas año 2023+10 (a).csv",
    "files/2023-10-15 14:22:21_sales.csv",
    "year=2023/month=10/part:0.parquet",
    "//double//slash",
    "../dots/../and/./more",
    "日本語/ファイル.txt",
    'quote\'s "and" <tags> & co?x=1#frag',
    "tab\tand;semi,comma",
]


@pytest.fixture
def machine(aws: Clients) -> str:
    """A state machine that is started by every object created in the bucket `inbox`."""
    aws("s3").create_bucket(Bucket="inbox")
    aws("s3").put_bucket_notification_configuration(
        Bucket="inbox", NotificationConfiguration={"EventBridgeConfiguration": {}}
    )
    arn: str = aws("stepfunctions").create_state_machine(name="seen", definition=MACHINE, roleArn=ROLE)[
        "stateMachineArn"
    ]
    pattern = {"source": ["aws.s3"], "detail-type": ["Object Created"], "detail": {"bucket": {"name": ["inbox"]}}}
    aws("events").put_rule(Name="inbox", EventPattern=json.dumps(pattern))
    aws("events").put_targets(Rule="inbox", Targets=[{"Id": "1", "Arn": arn, "RoleArn": ROLE}])
    return arn


def details(aws: Clients, machine: str, count: int) -> list[dict[str, Any]] | None:
    """The event details with which executions were started, once there are `count` that have succeeded."""
    states = aws("stepfunctions")
    found = states.list_executions(stateMachineArn=machine, statusFilter="SUCCEEDED")["executions"]
    if len(found) < count:
        return None
    inputs = [states.describe_execution(executionArn=one["executionArn"])["input"] for one in found]
    return [json.loads(text)["detail"] for text in inputs]


def test_each_awkward_key_arrives_once_as_it_was_written(aws: Clients, machine: str, until: Until) -> None:
    for key in KEYS:
        aws("s3").put_object(Bucket="inbox", Key=key, Body=key.encode())
    found = until(lambda: details(aws, machine, len(KEYS)))
    assert sorted(one["object"]["key"] for one in found) == sorted(KEYS)
    for key in KEYS:
        assert aws("s3").get_object(Bucket="inbox", Key=key)["Body"].read() == key.encode()


def test_a_large_file_in_parts_arrives_once_and_whole(aws: Clients, machine: str, until: Until, tmp_path: Path) -> None:
    """s3-multipart-04: thirty megabytes in six parts at once."""
    file = tmp_path / "large"
    file.write_bytes(os.urandom(30 * 1024 * 1024))
    parts = TransferConfig(multipart_threshold=5 * 1024 * 1024, multipart_chunksize=5 * 1024 * 1024, max_concurrency=6)
    aws("s3").upload_file(str(file), "inbox", "warehouse_2023_10.parquet", Config=parts)
    (detail,) = until(lambda: details(aws, machine, 1))
    assert detail["reason"] == "CompleteMultipartUpload"
    assert detail["object"]["size"] == file.stat().st_size
    head = aws("s3").head_object(Bucket="inbox", Key="warehouse_2023_10.parquet")
    assert head["ETag"].strip('"') == detail["object"]["etag"]
    aws("s3").download_file("inbox", "warehouse_2023_10.parquet", str(tmp_path / "back"))
    assert hashlib.sha256((tmp_path / "back").read_bytes()).digest() == hashlib.sha256(file.read_bytes()).digest()


def test_muster_put_uploads_and_says_so_in_json(
    server: ServerProcess, aws: Clients, machine: str, until: Until, tmp_path: Path
) -> None:
    file = tmp_path / "sales 2023+10.csv"
    file.write_text("a,b\n")
    command = [
        sys.executable,
        "-m",
        "muster",
        "put",
        str(file),
        "--to",
        "inbox/in",
        "--endpoint",
        server.endpoint,
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [{"file": str(file), "bucket": "inbox", "key": "in/sales 2023+10.csv", "size": 4}]
    (detail,) = until(lambda: details(aws, machine, 1))
    assert (detail["object"]["key"], detail["reason"]) == ("in/sales 2023+10.csv", "PutObject")


def test_a_copy_arrives_as_a_copy(aws: Clients, machine: str, until: Until) -> None:
    aws("s3").create_bucket(Bucket="elsewhere")
    aws("s3").put_object(Bucket="elsewhere", Key="a", Body=b"x")
    aws("s3").copy_object(Bucket="inbox", Key="b", CopySource={"Bucket": "elsewhere", "Key": "a"})
    (detail,) = until(lambda: details(aws, machine, 1))
    assert (detail["object"]["key"], detail["reason"]) == ("b", "CopyObject")
