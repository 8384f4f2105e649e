"""A world with one function, whose runner does as the test says; for what calls functions by itself."""

import asyncio
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from muster.operation import Answer, Service
from muster.services import dynamodb, lambda_, sqs
from muster.testing import World
from muster.transaction import Carried, Transaction

SERVICES = (lambda_.SERVICE, sqs.SERVICE, dynamodb.SERVICE, dynamodb.STREAMS)


def package() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("app.py", "")
    return buffer.getvalue()


class Consumer:
    """A function `f` and what it was called with."""

    def __init__(self, path: Path | None = None, services: tuple[Service, ...] = SERVICES) -> None:
        self.events: list[Any] = []
        self.answer: Callable[[Any], Any] = lambda event: None
        self.running = 0
        self.running_most = 0
        self.world = World(services, runners={"lambda.invoke": self.carry}, path=path)
        self.make_function("f")

    def make_function(self, name: str, **more: Any) -> None:
        self.world.call(
            "lambda",
            "CreateFunction",
            FunctionName=name,
            Runtime="python3.11",
            Handler="app.handler",
            Role="arn:aws:iam::000000000000:role/any",
            Code={"ZipFile": package()},
            **more,
        )

    async def carry(self, delivery: Carried) -> Callable[[Transaction], None]:
        asked = {"InvocationId": delivery.subject, "Attempt": delivery.attempts}
        job: Answer = await self.world.store.read(lambda tx: tx.call("lambda", "TakeInvocation", asked))
        assert job["Verdict"] == "Run"
        event = orjson.loads(job["Payload"])
        self.events.append(event)
        self.running += 1
        self.running_most = max(self.running_most, self.running)
        outcome: dict[str, Any]
        try:
            # Those that are to run beside this one get their turn.
            await asyncio.sleep(0)
            outcome = {"Payload": orjson.dumps(self.answer(event))}
        except ValueError as error:
            payload = orjson.dumps({"errorType": "ValueError", "errorMessage": str(error)})
            outcome = {"Payload": payload, "FunctionError": "Unhandled"}
        self.running -= 1

        def record(tx: Transaction) -> None:
            tx.call("lambda", "FinishInvocation", {"InvocationId": delivery.subject, **outcome})

        return record

    def queue(self, name: str = "q", **attributes: str) -> str:
        self.world.call("sqs", "CreateQueue", QueueName=name, Attributes=attributes)
        return f"arn:aws:sqs:us-east-1:000000000000:{name}"

    def send(self, body: str, queue: str = "q", **more: Any) -> str:
        answer = self.world.call("sqs", "SendMessage", QueueUrl=queue, MessageBody=body, **more)
        return str(answer["MessageId"])

    def depth(self, queue: str = "q") -> tuple[int, int]:
        """How many messages are visible, and how many are in flight."""
        found = self.world.call("sqs", "GetQueueAttributes", QueueUrl=queue, AttributeNames=["All"])["Attributes"]
        return int(found["ApproximateNumberOfMessages"]), int(found["ApproximateNumberOfMessagesNotVisible"])

    def map(self, source: str, **settings: Any) -> dict[str, Any]:
        request = {"FunctionName": "f", "EventSourceArn": source, **settings}
        return self.world.call("lambda", "CreateEventSourceMapping", **request)

    @property
    def bodies(self) -> list[list[str]]:
        return [[record["body"] for record in event["Records"]] for event in self.events]


@pytest.fixture
def consumer() -> Consumer:
    return Consumer()


@pytest.fixture
def reopened(tmp_path: Path) -> Consumer:
    """One whose world can be restarted."""
    return Consumer(tmp_path / "muster.db")


@pytest.fixture(scope="session")
def make_consumer() -> Callable[[], Consumer]:
    """One for each example of a property."""
    return Consumer
