"""Carries a matched event to its target, tries again as the target's retry policy says, and gives up in the open.

Keeps true: an event that cannot be delivered ends in the target's dead-letter queue or, without one, as a row of
`events_failed_deliveries`; it is never gone without a trace. The retry policy is about delivery only: what a function
does with an event it has accepted is the function's own retry.

Sources: the EventBridge user guide, "Retrying event delivery" and "Using dead-letter queues": 24 hours and 185 retries
unless the target says otherwise; a target that is gone or may not be called is not tried again; the attributes of a
dead letter.
"""

import logging
from collections.abc import Mapping
from typing import Any

from muster.arn import Arn
from muster.errors import ServiceError
from muster.services.events import destinations, inputs, occurrence, publishing, routes, rules
from muster.transaction import Carried, Delivery, Transaction

log = logging.getLogger(__name__)

RETRIES = 185
AGE_SECONDS = 86_400
# Back-off doubles from a second to ten minutes, which spreads 185 retries over about a day, with some jitter.
_BACKOFF_SECONDS_MAX = 600.0

# Buses that send to each other: an event is passed on so often and no further.
HOPS_MAX = 5

_GONE = frozenset(
    {
        "ResourceNotFoundException",
        "QueueDoesNotExist",
        "AWS.SimpleQueueService.NonExistentQueue",
        "StateMachineDoesNotExist",
        "StateMachineDeleting",
        "NotFound",
        "NotFoundException",
    }
)
# What trying again cannot mend: the target is not there, or cannot be reached from here at all.
_HOPELESS = _GONE | frozenset(
    {
        "InvalidArn",
        "NotImplemented",
        "UnknownOperationException",
        "InvalidExecutionInput",
        "InvalidRequestContentException",
        "LoopDetected",
    }
)


def carry(tx: Transaction, delivery: Carried) -> None:
    """Try once."""
    attempt = delivery.payload
    try:
        _send(tx, attempt)
    except ServiceError as refusal:
        _failed(tx, attempt, refusal)


def _send(tx: Transaction, attempt: Mapping[str, Any]) -> None:
    target, event = attempt["target"], attempt["event"]
    arn = destinations.parsed(target["Arn"])
    kind = destinations.kind_of(arn)
    if kind is None:
        _pass_on(tx, arn, attempt)
        return
    rule_arn = rules.rule_arn(tx, attempt["bus"], attempt["rule"])
    matched = inputs.Matched(rule_arn, attempt["rule"], occurrence.iso(attempt["since"]))
    sending = destinations.Sending(
        target=target,
        arn=arn,
        body=inputs.render(target, event, matched),
        event_id=event["id"],
        rule_arn=rule_arn,
        replay=event.get("replay-name", ""),
        trace=attempt["trace"],
        now=tx.now,
    )
    with tx.savepoint():
        kind.send(tx, sending)


def _pass_on(tx: Transaction, bus: Arn, attempt: Mapping[str, Any]) -> None:
    hops = attempt["hops"] + 1
    if hops > HOPS_MAX:
        raise ServiceError("LoopDetected", f"The event has been passed from bus to bus {HOPS_MAX} times.")
    name = bus.resource.removeprefix("event-bus/")
    if not publishing.publish(tx, name, attempt["event"], trace=attempt["trace"], hops=hops):
        raise ServiceError("ResourceNotFoundException", f"Event bus {name} does not exist.")


def _failed(tx: Transaction, attempt: Mapping[str, Any], refusal: ServiceError) -> None:
    policy = attempt["target"].get("RetryPolicy") or {}
    retries = policy.get("MaximumRetryAttempts", RETRIES)
    age = policy.get("MaximumEventAgeInSeconds", AGE_SECONDS)
    attempts = attempt["attempts"] + 1
    exhausted = None
    if refusal.code not in _HOPELESS:
        again_at = tx.now + min(2.0 ** min(attempts - 1, 16), _BACKOFF_SECONDS_MAX) * (1 + tx.random() / 4)
        if attempts > retries:
            exhausted = "MaximumRetryAttempts"
        elif again_at > attempt["since"] + age:
            exhausted = "MaximumEventAgeInSeconds"
        else:
            again = {**attempt, "attempts": attempts}
            tx.post(Delivery(routes.KIND, attempt["event"]["id"], again, again_at))
            return
    _give_up(tx, attempt, refusal, exhausted, attempts)


def _give_up(
    tx: Transaction, attempt: Mapping[str, Any], refusal: ServiceError, exhausted: str | None, attempts: int
) -> None:
    target = attempt["target"]
    code = "NO_RESOURCE" if refusal.code in _GONE else "SDK_CLIENT_ERROR"
    message = f"{refusal.code}: {refusal.message}"
    dead_letters = (target.get("DeadLetterConfig") or {}).get("Arn")
    if dead_letters:
        attributes = {
            "RULE_ARN": rules.rule_arn(tx, attempt["bus"], attempt["rule"]),
            "TARGET_ARN": target["Arn"],
            "ERROR_CODE": code,
            "ERROR_MESSAGE": message,
            "RETRY_ATTEMPTS": str(attempts - 1),
        }
        if exhausted:
            attributes["EXHAUSTED_RETRY_CONDITION"] = exhausted
        try:
            _dead_letter(tx, destinations.parsed(dead_letters), occurrence.text(attempt["event"]), attributes)
        except ServiceError as unreachable:
            message += f" (and its dead-letter queue refused it: {unreachable.code}: {unreachable.message})"
        else:
            return
    log.warning("event %s was not delivered to %s: %s", attempt["event"]["id"], target["Arn"], message)
    publishing.record_failure(
        tx,
        attempt["event"],
        attempt["bus"],
        code=code,
        message=message,
        rule=attempt["rule"],
        target=target,
        exhausted=exhausted,
        attempts=attempts,
    )


def _dead_letter(tx: Transaction, queue: Arn, body: str, attributes: Mapping[str, str]) -> None:
    with tx.savepoint():
        request = {
            "QueueUrl": destinations.queue_url(tx, queue),
            "MessageBody": body,
            "MessageAttributes": {
                name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
            },
        }
        tx.call("sqs", "SendMessage", request)
