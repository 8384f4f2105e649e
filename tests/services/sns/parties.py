"""Topics, queues, and functions and endpoints that do as a test says."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from muster.errors import ServiceError
from muster.operation import Operation, Outcome, Service
from muster.runners.http import POST
from muster.services import sns, sqs
from muster.testing import World
from muster.transaction import Carried

ACCOUNT = "000000000000"
FUNCTION = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:f"


class Parties:
    """A world with SNS, queues that refuse `queue_refusals` times, a function that fails with each of `refusals`, and an
    HTTP endpoint that answers with each of `answers`, and from then on well."""

    def __init__(self, path: Path | None = None) -> None:
        self.events: list[Any] = []
        self.refusals: list[ServiceError] = []
        self.posts: list[dict[str, Any]] = []
        self.answers: list[int | str] = []
        invoke = Operation(self._invoke, frozenset({"FunctionName", "InvocationType", "Payload"}))
        function = Service("lambda", {"Invoke": invoke})
        send = sqs.SERVICE.operations["SendMessage"]
        queues = replace(
            sqs.SERVICE, operations={**sqs.SERVICE.operations, "SendMessage": replace(send, run=self._send)}
        )
        self.queue_refusals = 0
        self.world = World([sns.SERVICE, queues, function], runners={POST: self._post}, path=path)

    def _send(self, tx: Any, request: Any) -> Any:
        if self.queue_refusals:
            self.queue_refusals -= 1
            raise ServiceError("ServiceUnavailable", "not now")
        return sqs.SERVICE.operations["SendMessage"].run(tx, request)

    def _invoke(self, tx: Any, request: Any) -> dict[str, Any]:
        assert request["InvocationType"] == "Event"
        if self.refusals:
            raise self.refusals.pop(0)
        self.events.append(orjson.loads(request["Payload"]))
        return {"StatusCode": 202}

    async def _post(self, delivery: Carried) -> Outcome:
        self.posts.append({**delivery.payload, "at": self.world.clock.now()})
        answer = self.answers.pop(0) if self.answers else 200
        told: dict[str, Any] = {"About": delivery.payload["tell"]["about"]}
        told["Error" if isinstance(answer, str) else "Status"] = answer

        def record(tx: Any) -> None:
            tx.call(delivery.payload["tell"]["service"], delivery.payload["tell"]["operation"], told)

        return record

    def __call__(self, operation: str, **request: Any) -> dict[str, Any]:
        answer = self.world.call("sns", operation, **request)
        self.world.settle()
        return answer

    def refused(self, operation: str, **request: Any) -> tuple[str, str]:
        try:
            self(operation, **request)
        except ServiceError as refusal:
            return refusal.code, refusal.message
        raise AssertionError(f"{operation} was not refused")

    def topic(self, name: str = "t", **attributes: str) -> str:
        return str(self("CreateTopic", Name=name, Attributes=attributes)["TopicArn"])

    def queue(self, name: str = "q", **attributes: str) -> str:
        """Make a queue; its ARN."""
        self.world.call("sqs", "CreateQueue", QueueName=name, Attributes=attributes)
        return f"arn:aws:sqs:us-east-1:{ACCOUNT}:{name}"

    def subscribe(self, topic: str, endpoint: str, protocol: str = "sqs", **attributes: str) -> str:
        answer = self(
            "Subscribe",
            TopicArn=topic,
            Protocol=protocol,
            Endpoint=endpoint,
            Attributes=attributes,
            ReturnSubscriptionArn=True,
        )
        return str(answer["SubscriptionArn"])

    def received(self, queue: str = "q") -> list[dict[str, Any]]:
        """Take all messages out of a queue."""
        url = self.world.call("sqs", "GetQueueUrl", QueueName=queue)["QueueUrl"]
        taken: list[dict[str, Any]] = []
        asked = {"MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"], "AttributeNames": ["All"]}
        while messages := self.world.call("sqs", "ReceiveMessage", QueueUrl=url, **asked).get("Messages"):
            for message in messages:
                self.world.call("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            taken += messages
        return taken

    def bodies(self, queue: str = "q") -> list[str]:
        return [message["Body"] for message in self.received(queue)]
