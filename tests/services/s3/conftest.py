"""A world with S3 and, in the place of its siblings, services that write down what they are told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from muster.errors import ServiceError
from muster.operation import Answer, Operation, Request, Service
from muster.services import s3
from muster.store import blobs as blob_rows
from muster.store.blobs import Blobs
from muster.testing import World
from muster.transaction import Transaction

TOLD = "CREATE TABLE {service}_told (id TEXT PRIMARY KEY, operation TEXT NOT NULL, request TEXT NOT NULL);"


def teller(service: str, members: dict[str, set[str]], answer: Callable[[str, Request], Answer]) -> Service:
    """A service whose operations write down their requests."""

    def operation(name: str) -> Operation:
        def run(tx: Transaction, request: Request) -> Answer:
            answered = answer(name, request)
            plain = {key: value.decode() if isinstance(value, bytes) else value for key, value in request.items()}
            count = len(tx.all(f"SELECT id FROM {service}_told"))
            tx.run(
                f"INSERT INTO {service}_told (id, operation, request) VALUES (:id, :name, :request)",
                id=f"{count:06}",
                name=name,
                request=orjson.dumps(plain).decode(),
            )
            return answered

        return Operation(run, frozenset(members[name]))

    return Service(service, {name: operation(name) for name in members}, migrations=(TOLD.format(service=service),))


def queue_answer(name: str, request: Request) -> Answer:
    if name == "GetQueueUrl":
        if request["QueueName"] == "missing":
            raise ServiceError("QueueDoesNotExist", "The specified queue does not exist.")
        return {"QueueUrl": f"http://localhost/000000000000/{request['QueueName']}"}
    return {}


EVENTS = teller(
    "events",
    {"PublishServiceEvent": {"Source", "DetailType", "Detail", "Resources", "Time"}},
    lambda name, request: {},
)
SQS = teller("sqs", {"GetQueueUrl": {"QueueName"}, "SendMessage": {"QueueUrl", "MessageBody"}}, queue_answer)
SNS = teller("sns", {"Publish": {"TopicArn", "Message", "Subject"}}, lambda name, request: {})
LAMBDA = teller(
    "lambda",
    {"Invoke": {"FunctionName", "InvocationType", "Payload"}, "GetFunctionConfiguration": {"FunctionName"}},
    lambda name, request: {},
)


class Bucketed:
    """The world, spoken to in the words of S3."""

    def __init__(self, world: World, blobs: Blobs) -> None:
        self.world = world
        self.blobs = blobs

    def __call__(self, operation: str, **request: Any) -> Answer:
        return self.world.call("s3", operation, **request)

    def put(self, key: str, body: Any = b"", bucket: str = "bucket", **more: Any) -> Answer:
        return self("PutObject", Bucket=bucket, Key=key, Body=body, **more)

    def get(self, key: str, bucket: str = "bucket", **more: Any) -> Answer:
        return self("GetObject", Bucket=bucket, Key=key, **more)

    def told(self, service: str, operation: str) -> list[dict[str, Any]]:
        rows = self.world.rows(
            f"SELECT request FROM {service}_told WHERE operation = :operation ORDER BY id", operation=operation
        )
        return [orjson.loads(row["request"]) for row in rows]

    def published(self) -> list[dict[str, Any]]:
        """The events on the bus: detail type and detail."""
        return [
            {"type": event["DetailType"], **orjson.loads(event["Detail"])}
            for event in self.told("events", "PublishServiceEvent")
        ]

    def sent(self) -> list[dict[str, Any]]:
        """The messages in queues, parsed."""
        return [orjson.loads(message["MessageBody"]) for message in self.told("sqs", "SendMessage")]

    def notify(self, **configuration: Any) -> Answer:
        return self("PutBucketNotificationConfiguration", Bucket="bucket", NotificationConfiguration=configuration)

    def refused(self, operation: str, **request: Any) -> ServiceError:
        with pytest.raises(ServiceError) as refused:
            self(operation, **request)
        return refused.value

    def blob_files(self) -> list[Path]:
        return [path for path in self.blobs.folder.rglob("*") if path.is_file()]


@pytest.fixture
def s3_world(tmp_path: Path) -> Bucketed:
    blobs = Blobs(tmp_path / "blobs")
    world = World(
        [s3.service(blobs), EVENTS, SQS, SNS, LAMBDA],
        parts={blob_rows.PART: blob_rows.MIGRATIONS},
        runners={blob_rows.REMOVE: blobs.carry_removal, **s3.runners(blobs)},
    )
    bucketed = Bucketed(world, blobs)
    bucketed("CreateBucket", Bucket="bucket")
    return bucketed
