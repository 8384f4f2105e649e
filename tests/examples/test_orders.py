"""The orders example in a small world: the real services, its own handler on the real table, and its payment service."""

import asyncio
import importlib.util
import io
import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import ModuleType, SimpleNamespace
from typing import Any

import boto3
import orjson
import pytest
from botocore.exceptions import ClientError

from muster.errors import ServiceError
from muster.idempotency import Records
from muster.operation import Answer
from muster.services import cloudwatch, dynamodb, events, lambda_, logs, s3, sns, sqs
from muster.stacks import SERVICE as CLOUDFORMATION
from muster.stacks.package import CAPABILITIES, package
from muster.store import blobs as blob_rows
from muster.store.blobs import Blobs
from muster.testing import World
from muster.transaction import Carried, Transaction

EXAMPLE = Path(__file__).parents[2] / "examples" / "orders"
ARTIFACTS = "muster-artifacts-000000000000-us-east-1"
BUCKET = "orders-000000000000"
ATTEMPTS = 3


def program(name: str, path: Path) -> ModuleType:
    """A module of the example."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


payments = program("orders_payments", EXAMPLE / "payments.py")


class TableClient:
    """What boto3's client does, for a handler in a thread beside the world's own."""

    def __init__(self, orders: "Orders") -> None:
        self.orders = orders

    def _call(self, operation: str, request: dict[str, Any]) -> Any:
        store = self.orders.world.store
        change = store.change(lambda tx: tx.call("dynamodb", operation, request))
        try:
            return asyncio.run_coroutine_threadsafe(change, self.orders.loop).result()
        except ServiceError as error:
            response = {"Error": {"Code": error.code, "Message": error.message}, **error.fields}
            raise ClientError(response, operation) from error

    def put_item(self, **request: Any) -> Any:
        return self._call("PutItem", request)

    def update_item(self, **request: Any) -> Any:
        return self._call("UpdateItem", request)

    def get_item(self, **request: Any) -> Any:
        return self._call("GetItem", request)


class Context:
    def get_remaining_time_in_millis(self) -> int:
        return 10_000


class Orders:
    """The deployed example. `ask` in the handler reaches the payment service without HTTP."""

    world: World
    loop: asyncio.AbstractEventLoop

    def __init__(self, file: Path, handler: ModuleType) -> None:
        self.service = payments.Payments(file, 20, 0.0)
        self.uploads: dict[str, bytes] = {}
        self.handler = handler
        self.answers_lost = 0
        self.handler.s3 = SimpleNamespace(get_object=self._get_object)  # type: ignore[attr-defined]
        self.handler.ask = self._ask  # type: ignore[attr-defined]
        self.handler.seen._client = TableClient(self)

    def _get_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        assert Bucket == BUCKET
        return {"Body": io.BytesIO(self.uploads[Key])}

    def _ask(self, path: str, body: dict[str, Any], *, idempotency_key: str, attempt: str) -> Any:
        try:
            if path == "/charges":
                return self.service.charge(body, idempotency_key, int(attempt))
            return self.service.receipt(body, idempotency_key)
        except payments.Refused as refused:
            raise self.handler.PaymentRefused(str(refused)) from None

    async def carry(self, delivery: Carried) -> Callable[[Transaction], None]:
        """Stands for the workers: runs the handler in a thread; some answers never arrive."""
        asked = {"InvocationId": delivery.subject, "Attempt": delivery.attempts}
        job: Answer = await self.world.store.read(lambda tx: tx.call("lambda", "TakeInvocation", asked))
        self.loop = asyncio.get_running_loop()
        answer = await asyncio.to_thread(self.handler.handler, orjson.loads(job["Payload"]), Context())
        outcome: dict[str, Any] = {"Payload": orjson.dumps(answer)}
        if self.answers_lost:
            self.answers_lost -= 1
            outcome = {"Payload": b'{"errorType": "Runtime.ExitError"}', "FunctionError": "Unhandled"}
        return lambda tx: _finish(tx, delivery.subject, outcome)

    def upload(self, customer: str, currency: str = "EUR") -> None:
        key = f"{customer}.json"
        order = {"order": customer, "customer": customer, "amount": 100, "currency": currency}
        self.uploads[key] = json.dumps(order).encode()
        self.world.call("s3", "PutObject", Bucket=BUCKET, Key=key, Body=self.uploads[key])

    def output(self, key: str) -> str:
        stack = self.world.call("cloudformation", "DescribeStacks", StackName="orders")["Stacks"][0]
        return next(str(one["OutputValue"]) for one in stack["Outputs"] if one["OutputKey"] == key)

    def depth(self, queue: str) -> int:
        found = self.world.call(
            "sqs", "GetQueueAttributes", QueueUrl=self.output(queue), AttributeNames=["ApproximateNumberOfMessages"]
        )
        return int(found["Attributes"]["ApproximateNumberOfMessages"])

    def alarm(self) -> str:
        name = self.output("DeadOrdersAlarmName")
        return str(self.world.call("cloudwatch", "DescribeAlarms", AlarmNames=[name])["MetricAlarms"][0]["StateValue"])

    def alerts(self) -> list[str]:
        """The states that the topic has told of since the last time."""
        url = self.output("AlertQueueUrl")
        found = self.world.call("sqs", "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        for message in found:
            self.world.call("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return [json.loads(message["Body"])["NewStateValue"] for message in found]

    def charged(self) -> Counter[str]:
        return Counter(one["customer"] for one in self.service.listed("charges"))

    def receipts(self) -> Counter[str]:
        return Counter(one["customer"] for one in self.service.listed("receipts"))

    def wait(self) -> None:
        """Until what failed is visible again, and has been worked on."""
        self.world.pass_time(61)


def _finish(tx: Transaction, invocation: str, outcome: dict[str, Any]) -> None:
    tx.call("lambda", "FinishInvocation", {"InvocationId": invocation, **outcome})


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Orders:
    monkeypatch.setenv("PAYMENT_URL", "http://payments")
    monkeypatch.setenv("SEEN_TABLE", "seen")
    monkeypatch.setattr(boto3, "client", lambda service: None)
    deployed = Orders(
        tmp_path / "payments.sqlite", program("orders_app", EXAMPLE / "functions" / "consumer" / "app.py")
    )
    blobs = Blobs(tmp_path / "blobs")

    async def killed(delivery: Carried) -> Callable[[Transaction], None]:
        return lambda tx: None

    world = deployed.world = World(
        [
            s3.service(blobs),
            events.SERVICE,
            sqs.SERVICE,
            sns.SERVICE,
            cloudwatch.SERVICE,
            dynamodb.SERVICE,
            lambda_.service(blobs),
            logs.SERVICE,
            CLOUDFORMATION,
        ],
        parts={blob_rows.PART: blob_rows.MIGRATIONS},
        runners={
            "lambda.invoke": deployed.carry,
            "lambda.kill": killed,
            blob_rows.REMOVE: blobs.carry_removal,
            **s3.runners(blobs),
        },
    )
    packaged = package(EXAMPLE, ARTIFACTS)
    world.call("s3", "CreateBucket", Bucket=ARTIFACTS)
    for artifact in packaged.artifacts:
        world.call("s3", "PutObject", Bucket=ARTIFACTS, Key=artifact.key, Body=artifact.content)
    world.call(
        "cloudformation", "CreateStack", StackName="orders", TemplateBody=packaged.body, Capabilities=CAPABILITIES
    )
    stack = world.call("cloudformation", "DescribeStacks", StackName="orders")["Stacks"][0]
    assert stack["StackStatus"] == "CREATE_COMPLETE", stack.get("StackStatusReason")
    records: Records = deployed.handler.seen
    records.table, records.clock = deployed.output("SeenTableName"), world.clock.now
    world.settle()
    return deployed


def test_an_uploaded_order_is_charged_and_receives_its_receipt(orders: Orders) -> None:
    orders.upload("Ada")
    orders.world.settle()
    assert (orders.charged(), orders.receipts()) == ({"Ada": 1}, {"Ada": 1})
    assert orders.depth("OrderQueueUrl") == 0


def test_an_event_that_two_rules_deliver_is_charged_once(orders: Orders) -> None:
    world = orders.world
    pattern = json.dumps({"source": ["aws.s3"]})
    world.call("events", "PutRule", Name="once-more", EventPattern=pattern)
    target = {"Id": "queue", "Arn": orders.output("OrderQueueArn")}
    world.call("events", "PutTargets", Rule="once-more", Targets=[target])
    for number in range(30):
        orders.upload(f"customer {number}")
    world.settle()
    orders.wait()
    once = Counter(f"customer {number}" for number in range(30))
    assert (orders.charged(), orders.receipts()) == (once, once)
    assert orders.service.figures()["calls"] == 60, "a second delivery does not even ask"


def test_work_whose_answer_was_lost_is_not_done_again(orders: Orders) -> None:
    orders.answers_lost = 1
    orders.upload("Ada")
    orders.world.settle()
    assert orders.service.figures()["calls"] == 2
    orders.wait()
    assert orders.service.figures()["calls"] == 2
    assert (orders.charged(), orders.depth("OrderQueueUrl")) == ({"Ada": 1}, 0)


def test_an_order_uploaded_again_is_another_event(orders: Orders) -> None:
    for _ in range(2):
        orders.upload("Ada")
        orders.world.settle()
    assert orders.charged() == {"Ada": 2}


def test_a_poisonous_order_is_put_aside_heard_of_sent_back_and_charged(orders: Orders) -> None:
    orders.upload("Ada")
    orders.upload("Max", "CHF")
    orders.world.settle()
    for _ in range(ATTEMPTS):
        assert orders.depth("DeadOrdersUrl") == 0
        assert orders.alarm() != "ALARM"
        orders.wait()
    assert [one["attempt"] for one in orders.service.listed("refusals")] == [1, 2, 3]
    assert orders.depth("DeadOrdersUrl") == 1
    assert orders.alarm() == "ALARM"
    assert "ALARM" in orders.alerts()
    orders.service.learn("CHF")
    orders.world.call("sqs", "StartMessageMoveTask", SourceArn=orders.output("DeadOrdersArn"))
    orders.world.settle()
    orders.wait()
    assert (orders.charged(), orders.receipts()) == ({"Ada": 1, "Max": 1}, {"Ada": 1, "Max": 1})
    assert orders.alarm() == "OK"
    assert orders.alerts() == ["OK"]


def test_the_mapping_reads_no_more_than_the_service_takes(orders: Orders) -> None:
    found = orders.world.call("lambda", "ListEventSourceMappings", EventSourceArn=orders.output("OrderQueueArn"))
    [mapping] = found["EventSourceMappings"]
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 20}
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_the_payment_service_turns_away_what_is_beyond_its_limit(tmp_path: Path) -> None:
    service = payments.Payments(tmp_path / "books.sqlite", 2, 0.0)
    inside = Barrier(3)

    def occupy(_: int) -> None:
        with service.place():
            inside.wait()
            inside.wait()

    with ThreadPoolExecutor(2) as pool:
        occupied = pool.map(occupy, range(2))
        inside.wait()
        with pytest.raises(payments.Refused, match="2 calls are being worked on"):
            service.charge({"order": "1", "customer": "Ada", "amount": 1, "currency": "EUR"}, "key", 1)
        inside.wait()
        list(occupied)
    figures = service.figures()
    assert (figures["throttled"], figures["at_once_max"], figures["at_once"], figures["charges"]) == (1, 3, 0, 0)


def test_the_payment_service_makes_one_charge_of_a_key_and_one_of_each_call_without(tmp_path: Path) -> None:
    service = payments.Payments(tmp_path / "books.sqlite", 2, 0.0)
    order = {"order": "1", "customer": "Ada", "amount": 1, "currency": "EUR"}
    first = service.charge(order, "key", 1)
    assert service.charge(order, "key", 2) == {"id": first["id"], "repeated": True}
    assert len({service.charge(order, None, 1)["id"] for _ in range(2)}) == 2
    reopened = payments.Payments(tmp_path / "books.sqlite", 2, 0.0)
    assert reopened.charge(order, "key", 3) == {"id": first["id"], "repeated": True}
