"""What follows the end of an attempt: an answer, another attempt, a dead letter, a destination.

Keeps true: an asynchronous invocation that failed is tried again after one minute, then after two, within its retries
and age; then its event goes to the dead-letter queue and an envelope to the OnFailure destination, in the commit that
records the failure. Sources: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html and
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html. Does not know how functions run.
"""

import datetime
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from muster.arn import Arn
from muster.errors import ServiceError
from muster.services.lambda_ import functions, invocations, invoke_configs
from muster.services.lambda_.invoke_configs import Policy
from muster.services.lambda_.names import LATEST, Name, function_arn
from muster.transaction import Carried, Delivery, Row, Transaction

log = logging.getLogger(__name__)

RETRY = "lambda.retry"
DESTINATION = "lambda.destination"

RETRY_SECONDS = (60.0, 120.0)
# A destination that keeps refusing is given up after so many attempts (with the dispatcher's back-off, some minutes).
DESTINATION_ATTEMPTS_MAX = 8
# A dead letter's ErrorMessage is the first kilobyte of the message.
ERROR_MESSAGE_BYTES_MAX = 1024


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended: a payload, perhaps as an error of the function; or no run at all."""

    payload: bytes = b"null"
    function_error: str | None = None
    log_tail: str | None = None
    log_stream: str | None = None
    not_run: ServiceError | None = None

    @property
    def failed(self) -> bool:
        return self.function_error is not None or self.not_run is not None


def finish(tx: Transaction, id_: str, outcome: Outcome) -> None:
    """Record the end of an attempt and start whatever waits for the place that is free now."""
    row = invocations.find(tx, id_)
    if row is None or row["status"] != "running":
        return
    if row["type"] == "Event":
        _finish_event(tx, row, outcome)
    else:
        _close(tx, row, outcome, keep=row["type"] == "RequestResponse")
        if row["type"] == "Reply":
            _reply(tx, row, outcome)
    if outcome.log_stream is not None:
        tx.run("UPDATE lambda_invocations SET log_stream = :stream WHERE id = :id", stream=outcome.log_stream, id=id_)
    invocations.prune(tx)
    invocations.admit(tx)


def _close(tx: Transaction, row: Row, outcome: Outcome, *, keep: bool) -> None:
    invocations.close(
        tx,
        row["id"],
        "failed" if outcome.failed else "succeeded",
        result=outcome.payload if keep or outcome.failed else None,
        function_error=outcome.function_error,
        error=outcome.not_run,
        log_tail=outcome.log_tail if keep else None,
    )


def _reply(tx: Transaction, row: Row, outcome: Outcome) -> None:
    answer: dict[str, Any] = {"InvocationId": row["id"], "RequestId": row["id"], "ExecutedVersion": row["version"]}
    if outcome.not_run is not None:
        answer["Error"] = {"Code": outcome.not_run.code, "Message": outcome.not_run.message}
    else:
        answer["StatusCode"] = 200
        answer["Payload"] = outcome.payload.decode("utf-8", "replace")
        answer["FunctionError"] = outcome.function_error
    tx.post(Delivery(row["reply_kind"], row["reply_subject"], answer))


def _finish_event(tx: Transaction, row: Row, outcome: Outcome) -> None:
    policy = invoke_configs.policy(tx, Name(row["function"], row["qualifier"]))
    if not outcome.failed:
        if policy.on_success:
            _to_destination(tx, row, outcome, policy.on_success, "Success")
        _close(tx, row, outcome, keep=False)
        return
    if row["attempts"] <= policy.retries:
        again_at = tx.now + RETRY_SECONDS[min(row["attempts"], len(RETRY_SECONDS)) - 1]
        if again_at <= row["created_at"] + policy.age_seconds:
            invocations.requeue(tx, row["id"], again_at, RETRY)
            return
        _give_up(tx, row, outcome, policy, "EventAgeExceeded")
    else:
        _give_up(tx, row, outcome, policy, "RetriesExhausted")


def _give_up(tx: Transaction, row: Row, outcome: Outcome, policy: Policy, condition: str) -> None:
    if policy.on_failure:
        _to_destination(tx, row, outcome, policy.on_failure, condition)
    dead_letters = _dead_letter_target(tx, row)
    if dead_letters:
        tx.post(Delivery(DESTINATION, row["id"], _dead_letter(row, outcome, dead_letters)))
    _close(tx, row, outcome, keep=False)


def _dead_letter_target(tx: Transaction, row: Row) -> str | None:
    try:
        version = functions.exact(tx, row["function"], row["version"])
    except ServiceError:
        return None
    target: str | None = (version.settings.get("DeadLetterConfig") or {}).get("TargetArn")
    return target or None


def _dead_letter(row: Row, outcome: Outcome, target: str) -> dict[str, Any]:
    message = outcome.not_run.message if outcome.not_run else _error_message(outcome.payload)
    cut = message.encode()[:ERROR_MESSAGE_BYTES_MAX].decode("utf-8", "ignore")
    return {
        "Target": target,
        "Body": bytes(row["payload"]).decode("utf-8", "replace"),
        "Attributes": {
            "RequestID": {"DataType": "String", "StringValue": row["id"]},
            "ErrorCode": {"DataType": "Number", "StringValue": "200" if outcome.not_run is None else "500"},
            # An attribute's value may not be empty.
            "ErrorMessage": {"DataType": "String", "StringValue": cut or "null"},
        },
    }


def _error_message(payload: bytes) -> str:
    try:
        document = orjson.loads(payload)
    except ValueError:
        return payload.decode("utf-8", "replace")
    message = document.get("errorMessage") if isinstance(document, dict) else None
    return str(message) if message is not None else payload.decode("utf-8", "replace")


def _to_destination(tx: Transaction, row: Row, outcome: Outcome, target: str, condition: str) -> None:
    function = function_arn(tx, row["function"], row["qualifier"] or LATEST)
    envelope: dict[str, Any] = {
        "version": "1.0",
        "timestamp": datetime.datetime.fromtimestamp(tx.now, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.")
        + f"{int(tx.now * 1000) % 1000:03d}Z",
        "requestContext": {
            "requestId": row["id"],
            "functionArn": function,
            "condition": condition,
            "approximateInvokeCount": row["attempts"],
        },
        "requestPayload": _parsed(bytes(row["payload"])),
    }
    if row["attempts"] > 0 and outcome.not_run is None:
        envelope["responseContext"] = {"statusCode": 200, "executedVersion": row["version"]}
        if outcome.function_error:
            envelope["responseContext"]["functionError"] = outcome.function_error
        envelope["responsePayload"] = _parsed(outcome.payload)
    tx.post(Delivery(DESTINATION, row["id"], {"Target": target, "Body": envelope, "Function": function}))


def _parsed(payload: bytes) -> Any:
    try:
        return orjson.loads(payload)
    except ValueError:
        return payload.decode("utf-8", "replace")


def carry_retry(tx: Transaction, delivery: Carried) -> None:
    """The pause before another attempt is over; it may have to wait for a place, but not beyond its age."""
    id_ = delivery.subject
    invocations.queue_again(tx, id_)
    row = invocations.find(tx, id_)
    if row is not None and row["status"] == "queued":
        policy = invoke_configs.policy(tx, Name(row["function"], row["qualifier"]))
        tx.post(Delivery(invocations.EXPIRE, id_, {}, due_at=row["created_at"] + policy.age_seconds))


def carry_expiry(tx: Transaction, delivery: Carried) -> None:
    """An event that has waited for a place as long as it may is given up."""
    row = invocations.find(tx, delivery.subject)
    if row is None or row["status"] != "queued":
        return
    policy = invoke_configs.policy(tx, Name(row["function"], row["qualifier"]))
    _give_up(
        tx, row, Outcome(not_run=ServiceError("TooManyRequestsException", "Rate Exceeded.")), policy, "EventAgeExceeded"
    )


def carry_to_destination(tx: Transaction, delivery: Carried) -> None:
    """Hand a dead letter or an envelope to its target; one that refuses for good is noted on the invocation."""
    try:
        with tx.savepoint():
            _hand_over(tx, delivery.payload)
    except ServiceError as refusal:
        if delivery.attempts < DESTINATION_ATTEMPTS_MAX:
            raise
        log.error(
            "invocation %s: %s did not take its outcome: %s", delivery.subject, delivery.payload["Target"], refusal
        )
        tx.run(
            "UPDATE lambda_invocations SET undelivered = :reason WHERE id = :id",
            reason=f"{delivery.payload['Target']}: {refusal}",
            id=delivery.subject,
        )


def _hand_over(tx: Transaction, payload: Mapping[str, Any]) -> None:
    target = Arn.parse(payload["Target"])
    body = payload["Body"]
    text = body if isinstance(body, str) else orjson.dumps(body).decode()
    attributes = payload.get("Attributes", {})
    match target.service:
        case "sqs":
            url = tx.call("sqs", "GetQueueUrl", {"QueueName": target.resource})["QueueUrl"]
            request = {"QueueUrl": url, "MessageBody": text}
            tx.call("sqs", "SendMessage", {**request, "MessageAttributes": attributes} if attributes else request)
        case "sns":
            request = {"TopicArn": payload["Target"], "Message": text}
            tx.call("sns", "Publish", {**request, "MessageAttributes": attributes} if attributes else request)
        case "lambda":
            tx.call(
                "lambda",
                "Invoke",
                {"FunctionName": payload["Target"], "InvocationType": "Event", "Payload": text.encode()},
            )
        case "events":
            outcome = "Success" if body["requestContext"]["condition"] == "Success" else "Failure"
            entry = {
                "Source": "lambda",
                "DetailType": f"Lambda Function Invocation Result - {outcome}",
                "Resources": [payload["Function"], payload["Target"]],
                "Detail": text,
                "EventBusName": payload["Target"],
            }
            answer = tx.call("events", "PutEvents", {"Entries": [entry]})
            if answer.get("FailedEntryCount"):
                failed = answer["Entries"][0]
                raise ServiceError(failed.get("ErrorCode", "InternalFailure"), failed.get("ErrorMessage", ""))
        case other:
            raise AssertionError(f"a target of {other} is refused when it is configured")


def function_deleted(tx: Transaction, function: str) -> None:
    """What waits for a function that is gone ends: whoever asked is told, events are dropped as AWS drops them."""
    gone = ServiceError("ResourceNotFoundException", f"Function not found: {function_arn(tx, function)}")
    for row in tx.all(
        "SELECT * FROM lambda_invocations WHERE function = :function AND status IN ('queued', 'retrying')",
        function=function,
    ):
        tx.cancel(invocations.EXPIRE, row["id"])
        tx.cancel(RETRY, row["id"])
        outcome = Outcome(not_run=gone)
        _close(tx, row, outcome, keep=False)
        if row["type"] == "Reply":
            _reply(tx, row, outcome)
