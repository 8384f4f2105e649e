"""The application over real HTTP: boto3 as a client, and raw bytes that no client of AWS's would send."""

import asyncio
import gzip
import json
import logging
import socket
from typing import Any

import pytest
from botocore.exceptions import ClientError

from muster.errors import ServiceError
from muster.wire import cbor
from muster.wire.app import application
from tests.wire.conftest import WAIT_FOR_EVER, Wire

JSON_1_0 = {"Content-Type": "application/x-amz-json-1.0"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def target(operation: str, **more: str) -> dict[str, str]:
    return {**JSON_1_0, "X-Amz-Target": operation, **more}


def refuse(code: str, message: str, **more: Any) -> Any:
    def told(*_: Any) -> Any:
        raise ServiceError(code, message, **more)

    return told


def test_request_reaches_the_engine_with_its_caller(wire: Wire) -> None:
    wire.engine.tell = lambda *_: {"Item": {"a": {"B": b"\x00"}}}
    answer = wire.client("dynamodb").get_item(TableName="orders", Key={"id": {"S": "1"}})
    assert answer["Item"] == {"a": {"B": b"\x00"}}
    ((service, operation, request, caller),) = wire.engine.asked
    assert (service, operation) == ("dynamodb", "GetItem")
    assert request == {"TableName": "orders", "Key": {"id": {"S": "1"}}}
    assert (caller.access_key, caller.source_ip) == ("AKID", "127.0.0.1")
    assert answer["ResponseMetadata"]["RequestId"] == caller.request_id


def test_every_protocol_is_spoken(wire: Wire) -> None:
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("cloudformation", "describe_stacks", {"StackName": "s"}),
        ("cloudwatch", "list_metrics", {"Namespace": "n"}),
        ("events", "put_events", {"Entries": [{"Source": "s", "DetailType": "d", "Detail": "{}"}]}),
        ("lambda", "list_functions", {"MaxItems": 3}),
        ("logs", "describe_log_groups", {"limit": 2}),
        ("sns", "publish", {"TopicArn": "arn:aws:sns:us-east-1:000000000000:t", "Message": "m"}),
        ("sqs", "send_message", {"QueueUrl": "http://localhost/q", "MessageBody": "m"}),
        ("stepfunctions", "start_execution", {"stateMachineArn": "arn:x", "input": "{}"}),
    ]
    for service, method, request in calls:
        getattr(wire.client(service), method)(**request)
        assert wire.engine.asked[-1][0] == service
        assert wire.engine.asked[-1][2] == request


def test_error_is_the_exception_that_the_client_knows(wire: Wire) -> None:
    sqs = wire.client("sqs")
    wire.engine.tell = refuse("QueueDoesNotExist", "The specified queue does not exist.")
    with pytest.raises(sqs.exceptions.QueueDoesNotExist) as refused:
        sqs.get_queue_url(QueueName="q")
    assert refused.value.response["Error"]["Code"] == "AWS.SimpleQueueService.NonExistentQueue"
    function = wire.client("lambda")
    wire.engine.tell = refuse("ResourceNotFoundException", "Function not found")
    with pytest.raises(function.exceptions.ResourceNotFoundException) as missing:
        function.get_function(FunctionName="f")
    assert missing.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404


def test_function_answer_carries_its_error_and_status(wire: Wire) -> None:
    wire.engine.tell = lambda *_: {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": b'{"errorType":"E"}'}
    answer = wire.client("lambda").invoke(FunctionName="f", Payload=b"{}")
    assert answer["FunctionError"] == "Unhandled"
    assert json.load(answer["Payload"]) == {"errorType": "E"}
    wire.engine.tell = lambda *_: {"StatusCode": 202}
    assert wire.client("lambda").invoke(FunctionName="f", InvocationType="Event")["StatusCode"] == 202


def test_large_metric_body_arrives_compressed(wire: Wire) -> None:
    data = [{"MetricName": f"metric{number}", "Value": 1.0} for number in range(500)]
    wire.client("cloudwatch").put_metric_data(Namespace="n", MetricData=data)
    assert wire.engine.asked[-1][2]["MetricData"] == data


def test_cbor_is_answered_in_cbor(wire: Wire) -> None:
    wire.engine.tell = lambda *_: {"NextToken": "more"}
    path = "/service/GraniteServiceVersion20100801/operation/ListMetrics"
    headers = {"smithy-protocol": "rpc-v2-cbor", "Content-Type": "application/cbor"}
    status, answered, body = wire.raw("POST", path, cbor.dumps({"Namespace": "n"}), headers)
    assert (status, answered["smithy-protocol"]) == (200, "rpc-v2-cbor")
    assert cbor.loads(body) == {"NextToken": "more"}
    status, _, body = wire.raw("POST", path, b"\xff", headers)
    assert (status, cbor.loads(body)["__type"].rpartition("#")[2]) == (400, "SerializationException")


def test_older_clients_of_sqs_post_to_the_queue_itself(wire: Wire) -> None:
    body = b"Action=SendMessage&MessageBody=hi&MessageAttribute.1.Name=k&MessageAttribute.1.Value.DataType=String"
    status, _, answer = wire.raw("POST", "/000000000000/q", body + b"&Version=2012-11-05", FORM)
    assert (status, b"<SendMessageResponse" in answer) == (200, True)
    request = wire.engine.asked[-1][2]
    assert request["QueueUrl"].endswith(f":{wire.port}/000000000000/q")
    assert request["MessageAttributes"] == {"k": {"DataType": "String"}}


# Refusals ------------------------------------------------------------------------------------------------------------


def test_operation_that_only_aws_has_is_refused_by_name(wire: Wire) -> None:
    with pytest.raises(ClientError) as refused:
        wire.client("dynamodb").list_backups()
    assert refused.value.response["Error"]["Code"] == "NotImplemented"
    assert "dynamodb:ListBackups" in refused.value.response["Error"]["Message"]


@pytest.mark.parametrize(
    ("service", "method"),
    [
        ("ec2", "describe_vpcs"),
        ("kms", "list_keys"),
        ("batch", "describe_job_queues"),
        ("route53", "list_hosted_zones"),
    ],
)
def test_service_that_only_aws_has_is_refused_by_name(wire: Wire, service: str, method: str) -> None:
    with pytest.raises(ClientError) as refused:
        getattr(wire.client(service), method)()
    assert service in str(refused.value)
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 501


def test_operation_that_nobody_has_is_refused_in_each_protocol(wire: Wire) -> None:
    status, _, body = wire.raw(headers=target("DynamoDB_20120810.Sharpen"), body=b"{}")
    assert status == 400
    assert json.loads(body)["__type"] == "com.amazon.coral.service#UnknownOperationException"
    assert "Sharpen" in json.loads(body)["message"]
    status, _, body = wire.raw(body=b"Action=Sharpen&Version=2010-03-31", headers=FORM)
    assert (status, b"<Code>InvalidAction</Code>" in body) == (400, True)
    assert b"The action Sharpen is not valid for this web service." in body
    status, headers, body = wire.raw("DELETE", "/2015-03-31/sharpen")
    assert (status, headers["x-amzn-errortype"]) == (404, "UnknownOperationException")


def test_shape_is_checked_before_the_engine_is_asked(wire: Wire) -> None:
    status, _, body = wire.raw(headers=target("AmazonSQS.SendMessage"), body=b'{"QueueUrl":"q"}')
    assert status == 400
    assert json.loads(body) == {
        "__type": "com.amazonaws.sqs#MissingRequiredParameterException",
        "message": "The request must contain the parameter MessageBody.",
    }
    assert wire.engine.asked == []


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nonsense",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b'{"TableName":3,"Key":{}}',
        b'{"TableName":"t","Key":{"a":{"B":"not base64!"}}}',
        b'{"TableName":"t","Key":{"a":{"BOOL":"true"}}}',
        b'{"TableName":["t"],"Key":{}}',
        b'{"TableName":"t","Key":{"a":' + b'{"L":[' * 600 + b"]}" * 600 + b"}}",
        b"[" * 100_000,
    ],
)
def test_body_that_is_not_the_operations_json_is_refused(wire: Wire, body: bytes) -> None:
    status, _, answer = wire.raw(headers=target("DynamoDB_20120810.GetItem"), body=body)
    assert status == 400
    assert json.loads(answer)["__type"].rpartition("#")[2] in ("SerializationException", "ValidationException")
    assert wire.engine.asked == []


@pytest.mark.parametrize(
    "body",
    [
        b"Action=Publish&Message=%FF",
        b"Action=Publish&Message=\xff",
        b"Action=Publish&MessageAttributes.entry.x.Name=a",
        b"Action=Publish&MessageAttributes.entry.1.Name=a",
        b"Action=Publish&Message=m&MessageAttributes.entry.1.Name=a&MessageAttributes.entry.1.Value.BinaryValue=!",
        b"Action=Publish&" + b"&".join(b"A.%d=1" % number for number in range(30_000)),
        b"Action=Publish&Message.member.1=m",
    ],
)
def test_form_that_cannot_be_read_is_refused(wire: Wire, body: bytes) -> None:
    status, _, answer = wire.raw(headers=FORM, body=body + b"&Version=2010-03-31")
    assert (status, b"<Code>MalformedInput</Code>" in answer) == (400, True), answer
    assert wire.engine.asked == []


def test_wrong_content_type_is_refused(wire: Wire) -> None:
    headers = {"X-Amz-Target": "DynamoDB_20120810.GetItem", "Content-Type": "text/xml"}
    status, _, body = wire.raw(headers=headers, body=b"<x/>")
    assert status == 400
    assert "text/xml" in json.loads(body)["message"]


def test_length_beyond_the_limit_is_refused_before_it_is_read(wire: Wire) -> None:
    with socket.create_connection(("127.0.0.1", wire.port)) as client:
        head = "POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: DynamoDB_20120810.GetItem\r\nContent-Length: 99999999999\r\n\r\n"
        client.sendall(head.encode())
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")


def test_chunked_body_beyond_the_limit_is_refused(wire: Wire) -> None:
    with socket.create_connection(("127.0.0.1", wire.port)) as client:
        head = "POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: AWSEvents.PutEvents\r\nTransfer-Encoding: chunked\r\n\r\n"
        client.sendall(head.encode())
        client.settimeout(10)
        piece = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
        for _ in range(9):
            client.sendall(piece)
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")


def test_compressed_body_may_not_grow_beyond_the_limit(wire: Wire) -> None:
    headers = target("GraniteServiceVersion20100801.PutMetricData", **{"Content-Encoding": "gzip"})
    assert wire.raw(headers=headers, body=gzip.compress(b"0" * 100_000_000))[0] == 413
    assert wire.raw(headers=headers, body=b"not gzip")[0] == 400
    assert wire.raw(headers=headers, body=gzip.compress(b"{}")[:-9])[0] == 400


def test_broken_signature_is_refused_in_each_protocols_spelling(wire: Wire) -> None:
    broken = {"Authorization": "AWS4-HMAC-SHA256 Credential=AKID"}
    _, _, body = wire.raw(headers={**target("DynamoDB_20120810.GetItem"), **broken}, body=b"{}")
    assert json.loads(body)["__type"].endswith("#IncompleteSignatureException")
    status, _, body = wire.raw(headers={**FORM, **broken}, body=b"Action=ListTopics&Version=2010-03-31")
    assert (status, b"<Code>IncompleteSignature</Code>" in body) == (403, True)
    status, _, body = wire.raw("GET", "/bucket/key", headers=broken)
    assert (status, b"<Code>AuthorizationHeaderMalformed</Code>" in body) == (400, True)


def test_defect_is_told_to_the_log_and_not_to_the_client(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("secret detail")

    wire.engine.tell = broken
    with caplog.at_level(logging.ERROR, "muster.wire"):
        status, headers, body = wire.raw(headers=target("DynamoDB_20120810.DescribeTable"), body=b'{"TableName":"tab"}')
    assert status == 500
    assert json.loads(body)["__type"].endswith("#InternalServerError")
    assert b"secret" not in body
    assert headers["x-amzn-requestid"] in caplog.text
    assert "secret detail" in caplog.text


def test_client_that_goes_away_ends_its_wait(wire: Wire) -> None:
    wire.engine.tell = lambda *_: WAIT_FOR_EVER
    with socket.create_connection(("127.0.0.1", wire.port)) as client:
        body = b'{"QueueUrl":"q"}'
        head = "POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\nContent-Length: 16\r\n\r\n"
        client.sendall(head.encode() + body)
        assert wire.engine.waiting.wait(10)
    assert wire.engine.cancelled.wait(10)


def test_value_of_an_answer_cannot_break_out_of_its_header(wire: Wire) -> None:
    wire.engine.tell = lambda *_: {"StatusCode": 200, "FunctionError": "a\r\nX-Evil: 1"}
    _, headers, _ = wire.raw("POST", "/2015-03-31/functions/f/invocations", b"{}")
    assert "x-evil" not in headers
    assert headers["x-amz-function-error"] == "a  X-Evil: 1"


def test_further_routes_lie_beside_the_services(wire: Wire) -> None:
    assert wire.raw("GET", "/_muster/health")[::2] == (200, b'{"status":"ok"}')
    assert wire.raw("GET", "/_muster/nothing")[0] == 404
    status, _, body = wire.raw("GET", "/_muster/broken")
    assert (status, b"secret" in body) == (500, False)


def test_unsigned_request_from_elsewhere_is_refused() -> None:
    async def asked(client: str) -> list[Any]:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"{}"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/",
            "raw_path": b"/",
            "query_string": b"",
            "headers": [(b"x-amz-target", b"DynamoDB_20120810.ListTables")],
            "client": (client, 1),
        }
        await application(None, {}, {})(scope, receive, send)  # type: ignore[arg-type]
        return sent

    refused = json.loads(asyncio.run(asked("10.1.2.3"))[1]["body"])
    assert refused["__type"].endswith("#MissingAuthenticationTokenException")
    # From this machine it gets as far as there being no such service.
    assert json.loads(asyncio.run(asked("::1"))[1]["body"])["__type"].endswith("#NotImplemented")
