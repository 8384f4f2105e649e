"""Queues and streams run functions on a real server: deployed from a SAM template, under a burst, and through kills."""

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muster.cli.client import Clients, clients
from muster.stacks.package import deploy
from muster.testing import ServerProcess

Until = Callable[[Callable[[], Any]], Any]

# MUSTER_BURST=10000 MUSTER_BURST_KILLS=5 is the whole story; the defaults keep the suite short.
BURST = int(os.environ.get("MUSTER_BURST", "300"))
KILLS = int(os.environ.get("MUSTER_BURST_KILLS", "1"))
LIMIT = int(os.environ.get("MUSTER_BURST_LIMIT", "2"))
VISIBILITY = 15 if KILLS > 1 else 5

TEMPLATE = """
Transform: AWS::Serverless-2016-10-31
Resources:
  Dead: {Type: AWS::SQS::Queue}
  Orders:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: 30
      RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 3}
  Done:
    Type: AWS::Serverless::SimpleTable
  Charge:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: python3.11
      Handler: app.handler
      CodeUri: charge
      Environment: {Variables: {DONE: !Ref Done}}
      Policies: [{DynamoDBCrudPolicy: {TableName: !Ref Done}}]
      Events:
        Order:
          Type: SQS
          Properties:
            Queue: !GetAtt Orders.Arn
            BatchSize: 5
            FunctionResponseTypes: [ReportBatchItemFailures]
            ScalingConfig: {MaximumConcurrency: 3}
            FilterCriteria: {Filters: [{Pattern: '{"body": {"kind": ["order"]}}'}]}
Outputs:
  Orders: {Value: !Ref Orders}
  Dead: {Value: !Ref Dead}
  Done: {Value: !Ref Done}
  Charge: {Value: !Ref Charge}
"""

CHARGE = """
import json, os
import boto3

table = boto3.resource("dynamodb").Table(os.environ["DONE"])


def handler(event, context):
    failures = []
    for record in event["Records"]:
        order = json.loads(record["body"])
        if order.get("bad"):
            failures.append({"itemIdentifier": record["messageId"]})
        else:
            table.put_item(Item={"id": order["id"]})
    return {"batchItemFailures": failures}
"""


def test_an_sqs_event_of_a_sam_function_delivers_and_reports(tmp_path: Path, aws: Clients, until: Until) -> None:
    """Cases sam-02 (its SQS part) and sqs-partial-batch-01."""
    application = tmp_path / "application"
    (application / "charge").mkdir(parents=True)
    (application / "charge" / "app.py").write_text(CHARGE)
    (application / "template.yaml").write_text(TEMPLATE)
    outputs = deploy(application / "template.yaml", aws, name="orders", parameters={}).outputs
    [mapping] = aws("lambda").list_event_source_mappings(FunctionName=outputs["Charge"])["EventSourceMappings"]
    assert (mapping["State"], mapping["BatchSize"]) == ("Enabled", 5)
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 3}
    sqs, table = aws("sqs"), aws("dynamodb")
    bodies: list[dict[str, Any]] = [{"kind": "order", "id": str(number)} for number in range(20)]
    bodies += [{"kind": "order", "id": "x", "bad": True}, {"kind": "other", "id": "y"}]
    for body in bodies:
        sqs.send_message(QueueUrl=outputs["Orders"], MessageBody=json.dumps(body))
    until(lambda: table.scan(TableName=outputs["Done"], ConsistentRead=True)["Count"] == 20)

    def left() -> tuple[int, int]:
        found = sqs.get_queue_attributes(QueueUrl=outputs["Orders"], AttributeNames=["All"])["Attributes"]
        return int(found["ApproximateNumberOfMessages"]), int(found["ApproximateNumberOfMessagesNotVisible"])

    until(lambda: left() == (0, 1))


WORK = """
import os, time


def handler(event, context):
    running = os.path.join(os.environ["HERE"], "running", context.aws_request_id)
    open(running, "w").close()
    try:
        now = time.time()
        beside = [each for each in os.scandir(os.path.dirname(running)) if now - each.stat().st_mtime < 3]
        open(os.path.join(os.environ["HERE"], "most", str(len(beside))), "w").close()
        failures = []
        for record in event["Records"]:
            with open(os.path.join(os.environ["HERE"], "done", record["body"]), "a") as file:
                file.write("x")
            if record["body"].startswith("bad"):
                failures.append({"itemIdentifier": record["messageId"]})
        return {"batchItemFailures": failures}
    finally:
        os.remove(running)
"""


def test_nothing_of_a_burst_is_lost_when_the_server_is_killed(tmp_path: Path, until: Until) -> None:
    for name in ("running", "most", "done"):
        (tmp_path / name).mkdir()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("app.py", WORK)
    with ServerProcess(tmp_path / "data") as server:
        aws = clients(server.endpoint)
        sqs = aws("sqs")

        def arn(url: str) -> str:
            found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
            return str(found["Attributes"]["QueueArn"])

        dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
        redrive = json.dumps({"deadLetterTargetArn": arn(dead), "maxReceiveCount": 3})
        attributes = {"VisibilityTimeout": str(VISIBILITY), "RedrivePolicy": redrive}
        url = sqs.create_queue(QueueName="burst", Attributes=attributes)["QueueUrl"]
        aws("lambda").create_function(
            FunctionName="f",
            Runtime="python3.11",
            Handler="app.handler",
            Role="arn:aws:iam::000000000000:role/any",
            Code={"ZipFile": buffer.getvalue()},
            Environment={"Variables": {"HERE": str(tmp_path)}},
        )
        aws("lambda").create_event_source_mapping(
            FunctionName="f",
            EventSourceArn=arn(url),
            FunctionResponseTypes=["ReportBatchItemFailures"],
            ScalingConfig={"MaximumConcurrency": LIMIT},
        )
        bodies = [f"bad{number}" if number % 100 == 7 else f"good{number}" for number in range(BURST)]
        kill_at = {(number + 1) * BURST // (KILLS + 1) // 10 * 10 for number in range(KILLS)}
        for start in range(0, BURST, 10):
            entries = [{"Id": str(number), "MessageBody": bodies[start + number]} for number in range(10)]
            assert not sqs.send_message_batch(QueueUrl=url, Entries=entries).get("Failed")
            if start in kill_at:
                server.kill()
                server.start()

        def counts(queue: str) -> dict[str, int]:
            found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
            return {name: int(value) for name, value in found.items() if name.startswith("Approximate")}

        until(lambda: not any(counts(url).values()))
        assert set(os.listdir(tmp_path / "done")) == set(bodies), "each has been worked on"
        bad = {body for body in bodies if body.startswith("bad")}
        letters: set[str] = set()
        while found := sqs.receive_message(QueueUrl=dead, MaxNumberOfMessages=10).get("Messages"):
            letters |= {message["Body"] for message in found}
        assert letters == bad, "dead letters are those that failed three times"
        assert all(len((tmp_path / "done" / body).read_text()) >= 3 for body in bad)
        assert max(map(int, os.listdir(tmp_path / "most"))) <= LIMIT


def test_a_change_of_an_item_runs_the_function(tmp_path: Path, aws: Clients, until: Until) -> None:
    here = tmp_path / "seen"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(
            "app.py",
            "import json, os\n\n\ndef handler(event, context):\n    open(os.environ['HERE'], 'w').write(json.dumps(event))\n",
        )
    table = aws("dynamodb").create_table(
        TableName="table",
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )["TableDescription"]
    aws("lambda").create_function(
        FunctionName="f",
        Runtime="python3.11",
        Handler="app.handler",
        Role="arn:aws:iam::000000000000:role/any",
        Code={"ZipFile": buffer.getvalue()},
        Environment={"Variables": {"HERE": str(here)}},
    )
    aws("lambda").create_event_source_mapping(
        FunctionName="f", EventSourceArn=table["LatestStreamArn"], StartingPosition="TRIM_HORIZON"
    )
    aws("dynamodb").put_item(TableName="table", Item={"k": {"S": "a"}})
    [record] = json.loads(until(lambda: here.exists() and here.read_text()))["Records"]
    assert record["dynamodb"]["NewImage"] == {"k": {"S": "a"}}
