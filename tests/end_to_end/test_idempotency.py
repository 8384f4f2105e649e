"""Handlers that survive a second delivery, as real functions on a real server that is killed while they work; our own
record and that of AWS Lambda Powertools."""

import io
import json
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from muster.cli.client import Clients, clients
from muster.idempotency import InProgress, Records
from muster.testing import ServerProcess

Until = Callable[[Callable[[], Any]], Any]

# Each run of a record leaves a trace in a table; the third record's first run stays there until the power fails.
SHARED = """
import json, os, time, uuid
import boto3

dynamodb = boto3.client("dynamodb")

def trace(number):
    item = {"id": {"S": str(uuid.uuid4())}, "number": {"N": str(number)}}
    dynamodb.put_item(TableName="runs", Item=item)

def stuck(number):
    if number == 3:
        try:
            dynamodb.put_item(TableName="once", Item={"id": {"S": "third"}},
                              ConditionExpression="attribute_not_exists(id)")
        except dynamodb.exceptions.ConditionalCheckFailedException:
            return
        time.sleep(60)
"""

OURS = (
    SHARED
    + """
from muster.idempotency import Records, each_record, idempotent

@idempotent(Records("seen"))
def work(record, *, idempotency_key):
    order = json.loads(record["body"])
    trace(order["number"])
    stuck(order["number"])
    return {"charged": order["number"], "key": idempotency_key}

def handler(event, context):
    return each_record(event, work, context)
"""
)

POWERTOOLS = (
    SHARED
    + """
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer, IdempotencyConfig, idempotent, idempotent_function)

layer = DynamoDBPersistenceLayer(table_name="seen")
config = IdempotencyConfig(event_key_jmespath="body", expires_after_seconds=3600)
processor = BatchProcessor(event_type=EventType.SQS)

@idempotent_function(data_keyword_argument="record", config=config, persistence_store=layer)
def work(record: SQSRecord):
    order = json.loads(record.body)
    trace(order["number"])
    stuck(order["number"])
    if order["number"] == 13:
        raise ValueError("an unlucky number")
    return {"charged": order["number"]}

def handler(event, context):
    config.register_lambda_context(context)
    return process_partial_response(event=event, record_handler=work, processor=processor, context=context)

whole = IdempotencyConfig(event_key_jmespath="order", payload_validation_jmespath="amount")

@idempotent(persistence_store=DynamoDBPersistenceLayer(table_name="seen"), config=whole)
def single(event, context):
    trace(event["amount"])
    return {"charged": event["amount"], "run": context.aws_request_id}
"""
)


def install(aws: Clients, source: str, handler: str = "handler", seconds: int = 8) -> str:
    """A function with this source, and the tables that it uses; its name."""
    dynamodb, lambda_ = aws("dynamodb"), aws("lambda")
    for table in ("runs", "once", "seen"):
        if table not in dynamodb.list_tables()["TableNames"]:
            dynamodb.create_table(
                TableName=table,
                KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("app.py"), source)
    lambda_.create_function(
        FunctionName=handler,
        Runtime="python3.11",
        Role="arn:aws:iam::000000000000:role/function",
        Handler=f"app.{handler}",
        Code={"ZipFile": buffer.getvalue()},
        Timeout=seconds,
        MemorySize=256,
    )
    lambda_.get_waiter("function_active_v2").wait(FunctionName=handler)
    return handler


def invoke(aws: Clients, function: str, event: Any) -> Any:
    """The function's answer; AssertionError when it failed."""
    answer = aws("lambda").invoke(FunctionName=function, Payload=json.dumps(event).encode())
    payload = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, payload
    return payload


def batch(*numbers: int) -> dict[str, Any]:
    """What a mapping hands to a function for messages with these numbers."""
    records = [
        {
            "messageId": f"m{number}",
            "receiptHandle": "r",
            "body": json.dumps({"event_id": f"e{number}", "number": number}),
            "attributes": {},
            "messageAttributes": {},
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:orders",
            "awsRegion": "us-east-1",
        }
        for number in numbers
    ]
    return {"Records": records}


def runs(aws: Clients) -> list[int]:
    items = aws("dynamodb").scan(TableName="runs", ConsistentRead=True)["Items"]
    return sorted(int(item["number"]["N"]) for item in items)


def invoke_until_the_power_fails(server: ServerProcess, aws: Clients, function: str, until: Until) -> Clients:
    """Kill the server while the function is in its third record, and start it again; clients for the new one."""

    def deliver() -> None:
        impatient = Config(retries={"total_max_attempts": 1}, read_timeout=60)
        client = boto3.client(
            "lambda",
            endpoint_url=server.endpoint,
            region_name="us-east-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",
            config=impatient,
        )
        try:
            client.invoke(FunctionName=function, Payload=json.dumps(batch(1, 2, 3, 4, 5)).encode())
        except BotoCoreError:
            return

    delivery = threading.Thread(target=deliver)
    delivery.start()
    until(lambda: runs(aws) == [1, 2, 3])
    until(lambda: aws("dynamodb").scan(TableName="once", ConsistentRead=True)["Items"])
    server.kill()
    delivery.join(30)
    server.start()
    return clients(server.endpoint)


@pytest.mark.slow
def test_batch_killed_in_its_third_record_charges_the_others_once(
    server: ServerProcess, aws: Clients, until: Until
) -> None:
    function = install(aws, OURS)
    aws = invoke_until_the_power_fails(server, aws, function, until)
    until(lambda: invoke(aws, function, batch(1, 2, 3, 4, 5)) == {"batchItemFailures": []})
    assert runs(aws) == [1, 2, 3, 3, 4, 5]
    proof = Records("seen", client=aws("dynamodb")).claim("e3", 1, unfinished="repeat")
    assert proof["result"] == {"charged": 3, "key": "e3"}  # type: ignore[index]


@pytest.mark.slow
def test_powertools_batch_killed_in_its_third_record_charges_the_others_once(
    server: ServerProcess, aws: Clients, until: Until
) -> None:
    function = install(aws, POWERTOOLS)
    aws = invoke_until_the_power_fails(server, aws, function, until)
    until(lambda: invoke(aws, function, batch(1, 2, 3, 4, 5)) == {"batchItemFailures": []})
    assert runs(aws) == [1, 2, 3, 3, 4, 5]
    assert invoke(aws, function, batch(5, 13)) == {"batchItemFailures": [{"itemIdentifier": "m13"}]}


def test_powertools_answers_a_repeat_with_the_first_result_and_refuses_another_payload(
    server: ServerProcess, aws: Clients
) -> None:
    function = install(aws, POWERTOOLS, "single", 10)
    first = invoke(aws, function, {"order": "o1", "amount": 7})
    assert invoke(aws, function, {"order": "o1", "amount": 7}) == first
    answer = aws("lambda").invoke(FunctionName=function, Payload=b'{"order": "o1", "amount": 8}')
    assert json.loads(answer["Payload"].read())["errorType"] == "IdempotencyValidationError"
    assert runs(aws) == [7]


def test_of_many_deliveries_at_once_exactly_one_holds_the_event(server: ServerProcess, aws: Clients) -> None:
    install(aws, SHARED, "unused")
    records = Records("seen", client=aws("dynamodb"))
    for number in range(10):
        won: list[Any] = []
        lost: list[Exception] = []
        gate = threading.Barrier(12)

        def deliver(
            event: str = f"crowd-{number}",
            won: list[Any] = won,
            lost: list[Exception] = lost,
            gate: threading.Barrier = gate,
        ) -> None:
            gate.wait()
            try:
                won.append(records.claim(event, 30, unfinished="repeat"))
            except InProgress as error:
                lost.append(error)

        crowd = [threading.Thread(target=deliver) for _ in range(12)]
        for one in crowd:
            one.start()
        for one in crowd:
            one.join()
        assert (len(won), len(lost)) == (1, 11)


def test_the_file_runs_with_boto3_alone() -> None:
    source = (Path(__file__).parents[2] / "src" / "muster" / "idempotency.py").read_text()
    assert "from muster" not in source.replace("    from muster", "")
    assert "import muster" not in source
