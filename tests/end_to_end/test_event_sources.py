"""Queues and streams run functions on a real server: deployed from a SAM template, under a burst, and through kills."""

import io
import json
import os
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muster.cli.client import Clients, clients
from muster.stacks.package import deploy
from muster.testing import ServerProcess

Until = Callable[[Callable[[], Any]], Any]

BURST = int(os.environ.get("MUSTER_BURST", "300"))

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


SLOW = """
import os, time


def handler(event, context):
    for record in event["Records"]:
        path = os.path.join(os.environ["HERE"], record["body"])
        with open(path, "a") as file:
            file.write("x")
"""


def test_nothing_of_a_burst_is_lost_when_the_server_is_killed(tmp_path: Path, until: Until) -> None:
    here = tmp_path / "done"
    here.mkdir()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("app.py", SLOW)
    with ServerProcess(tmp_path / "data") as server:
        aws = clients(server.endpoint)
        url = aws("sqs").create_queue(QueueName="burst", Attributes={"VisibilityTimeout": "5"})["QueueUrl"]
        arn = aws("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        aws("lambda").create_function(
            FunctionName="f",
            Runtime="python3.11",
            Handler="app.handler",
            Role="arn:aws:iam::000000000000:role/any",
            Code={"ZipFile": buffer.getvalue()},
            Environment={"Variables": {"HERE": str(here)}},
        )
        aws("lambda").create_event_source_mapping(
            FunctionName="f", EventSourceArn=arn, ScalingConfig={"MaximumConcurrency": 2}
        )
        for start in range(0, BURST, 10):
            entries = [{"Id": str(number), "MessageBody": f"m{start + number}"} for number in range(10)]
            assert not aws("sqs").send_message_batch(QueueUrl=url, Entries=entries).get("Failed")
            if start == BURST // 20 * 10:
                server.kill()
                server.start()
        until(lambda: len(os.listdir(here)) == BURST)

        def rest() -> Counter[str]:
            found = aws("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
            return Counter({name: int(value) for name, value in found.items() if name.startswith("Approximate")})

        until(lambda: not any(rest().values()))


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
