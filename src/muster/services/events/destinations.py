"""How each kind of target is reached: an ARN's service and resource choose the operation that is called.

Keeps true: a call is made inside the transaction that carries the delivery, so that a target has the event exactly
when the delivery is done. Does not retry and does not know rules.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.arn import Arn
from muster.errors import ServiceError, unsupported
from muster.services.events.refusals import invalid_parameter
from muster.transaction import Transaction

# Parameters of a target that no supported kind of target reads, or that need what Muster does not have.
UNSUPPORTED = (
    "KinesisParameters",
    "RunCommandParameters",
    "EcsParameters",
    "BatchParameters",
    "HttpParameters",
    "RedshiftDataParameters",
    "SageMakerPipelineParameters",
    "AppSyncParameters",
)


@dataclass(frozen=True, slots=True)
class Sending:
    """One event on its way to one target."""

    target: Mapping[str, Any]
    arn: Arn
    body: str
    event_id: str
    rule_arn: str
    replay: str
    trace: str | None
    now: float

    @property
    def way(self) -> str:
        """A name for the way from this rule to this target, the same for all events that take it."""
        way = f"{self.rule_arn}\n{self.target['Id']}\n{self.replay}"
        return hashlib.sha256(way.encode()).hexdigest()[:32]

    @property
    def name(self) -> str:
        """A name that is the same whenever this event takes this way."""
        return f"{self.event_id}_{self.way}"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of target: what has to be offered for it, and how it is called."""

    service: str
    operation: str
    send: Callable[[Transaction, Sending], None]


def parsed(text: str, parameter: str = "TargetArn") -> Arn:
    """The ARN of a target; ValidationException when it is none."""
    try:
        return Arn.parse(text)
    except ValueError:
        raise invalid_parameter(parameter, "Provided Arn is not in correct format.") from None


def kind_of(arn: Arn) -> Kind | None:
    """The kind of target, or None for an event bus, which is no sibling."""
    if arn.service == "events" and arn.resource.startswith("event-bus/"):
        return None
    for service, prefix, kind in _KINDS:
        if arn.service == service and arn.resource.startswith(prefix):
            return kind
    raise unsupported(f"targets of the kind {arn.service}:{arn.resource.partition('/')[0].partition(':')[0]}")


def queue_url(tx: Transaction, queue: Arn) -> str:
    """The address of the queue of an ARN; the queue service's refusal when there is none."""
    answer = tx.call("sqs", "GetQueueUrl", {"QueueName": queue.resource, "QueueOwnerAWSAccountId": queue.account})
    return str(answer["QueueUrl"])


def _start_execution(tx: Transaction, sending: Sending) -> None:
    request: dict[str, Any] = {"stateMachineArn": str(sending.arn), "input": sending.body, "name": sending.name}
    if sending.trace:
        request["traceHeader"] = sending.trace
    try:
        tx.call("stepfunctions", "StartExecution", request)
    except ServiceError as refusal:
        # The name says that this very event has started its execution before: nothing is left to do.
        if refusal.code != "ExecutionAlreadyExists":
            raise


def _invoke(tx: Transaction, sending: Sending) -> None:
    request = {
        "FunctionName": str(sending.arn),
        "InvocationType": "Event",
        "Payload": sending.body.encode(),
    }
    tx.call("lambda", "Invoke", request)


def _send_message(tx: Transaction, sending: Sending) -> None:
    request: dict[str, Any] = {"QueueUrl": queue_url(tx, sending.arn), "MessageBody": sending.body}
    group = (sending.target.get("SqsParameters") or {}).get("MessageGroupId")
    if group:
        request["MessageGroupId"] = group
    if sending.trace:
        request["MessageSystemAttributes"] = {
            "AWSTraceHeader": {"DataType": "String", "StringValue": sending.trace},
        }
    tx.call("sqs", "SendMessage", request)


def _publish(tx: Transaction, sending: Sending) -> None:
    tx.call("sns", "Publish", {"TopicArn": str(sending.arn), "Message": sending.body})


def _log(tx: Transaction, sending: Sending) -> None:
    group = sending.arn.resource.removeprefix("log-group:").removesuffix(":*")
    stream = sending.way
    try:
        tx.call("logs", "CreateLogStream", {"logGroupName": group, "logStreamName": stream})
    except ServiceError as refusal:
        if refusal.code != "ResourceAlreadyExistsException":
            raise
    event = {"timestamp": int(sending.now * 1000), "message": sending.body}
    tx.call("logs", "PutLogEvents", {"logGroupName": group, "logStreamName": stream, "logEvents": [event]})


_KINDS = (
    ("states", "stateMachine:", Kind("stepfunctions", "StartExecution", _start_execution)),
    ("lambda", "function:", Kind("lambda", "Invoke", _invoke)),
    ("sqs", "", Kind("sqs", "SendMessage", _send_message)),
    ("sns", "", Kind("sns", "Publish", _publish)),
    ("logs", "log-group:", Kind("logs", "PutLogEvents", _log)),
)
