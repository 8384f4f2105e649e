"""Calling a function: the ways to ask for it, and what the one who runs it is told.

Keeps true: a synchronous caller gets exactly the outcome of its invocation; payloads are JSON within AWS's limits.
Does not know processes.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any

import orjson

from muster.errors import ServiceError
from muster.operation import Answer, Wait
from muster.services.lambda_ import aliases, code, functions, invocations, invoke_configs
from muster.services.lambda_.aftermath import Outcome, finish
from muster.services.lambda_.invocations import Reply
from muster.services.lambda_.names import function_arn, parse
from muster.transaction import Transaction

# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html; 1 MB for events since October 2025.
SYNCHRONOUS_BYTES_MAX = 6_291_456
EVENT_BYTES_MAX = 1_048_576
# A wake may be lost; then the answer is looked for this often.
LOOK_AGAIN_SECONDS = 5.0


def invoke(tx: Transaction, request: Mapping[str, Any]) -> Answer | Wait:
    """Invoke: waited for (RequestResponse), left to itself (Event), or only checked (DryRun)."""
    name = parse(tx, request["FunctionName"], request.get("Qualifier"))
    kind = request.get("InvocationType", "RequestResponse")
    version = aliases.chosen(tx, name)
    if kind == "DryRun":
        return {"StatusCode": 204}
    payload = _payload(request, kind)
    if kind == "Event":
        age = invoke_configs.policy(tx, name).age_seconds
        invocations.begin(tx, version, name.qualifier, payload, type="Event", event_age_seconds=age)
        return {"StatusCode": 202}
    id_ = invocations.begin(
        tx, version, name.qualifier, payload, type="RequestResponse", client_context=_client_context(request)
    )
    tail = request.get("LogType") == "Tail"

    def collect(tx: Transaction) -> Answer | Wait:
        return _collected(tx, id_, tail) or Wait(invocations.topic(id_), tx.now + LOOK_AGAIN_SECONDS, collect)

    return Wait(invocations.topic(id_), tx.now + LOOK_AGAIN_SECONDS, collect)


def _payload(request: Mapping[str, Any], kind: str) -> bytes:
    payload = bytes(request.get("Payload") or b"{}")
    if kind == "Event" and len(payload) > EVENT_BYTES_MAX:
        raise _too_large(
            f"{len(payload)} byte payload is too large for the Event invocation type (limit {EVENT_BYTES_MAX} bytes)"
        )
    if len(payload) > SYNCHRONOUS_BYTES_MAX:
        raise _too_large(f"Request must be smaller than {SYNCHRONOUS_BYTES_MAX} bytes for the InvokeFunction operation")
    try:
        orjson.loads(payload)
    except ValueError as fault:
        raise ServiceError(
            "InvalidRequestContentException",
            f"Could not parse request body into json: Could not parse payload into json: {fault}",
            fields={"Type": "User"},
        ) from fault
    return payload


def _client_context(request: Mapping[str, Any]) -> str | None:
    """The client's context as JSON in ASCII, which is what a runtime gets in a header; the request has it in base64."""
    given = request.get("ClientContext")
    if given is None:
        return None
    try:
        return json.dumps(orjson.loads(base64.b64decode(given, validate=True)))
    except ValueError as fault:
        raise ServiceError(
            "InvalidRequestContentException", "Client context must be a valid Base64-encoded JSON object."
        ) from fault


def _too_large(message: str) -> ServiceError:
    # The service's model says RequestTooLargeException; on the wire the service says this, as its users' reports show.
    return ServiceError("RequestEntityTooLargeException", message, status=413)


def _collected(tx: Transaction, id_: str, tail: bool) -> Answer | None:
    row = invocations.find(tx, id_)
    if row is None:
        raise ServiceError("ServiceException", "The invocation was given up.", status=500)
    if row["ended_at"] is None:
        return None
    if row["error_code"] is not None:
        raise ServiceError(row["error_code"], row["error_message"])
    if row["status"] == "cancelled":
        raise ServiceError("ServiceException", "The invocation was cancelled.", status=500)
    answer: Answer = {"StatusCode": 200, "ExecutedVersion": row["version"], "Payload": bytes(row["result"])}
    if row["function_error"]:
        answer["FunctionError"] = row["function_error"]
    if tail:
        answer["LogResult"] = row["log_tail"] or ""
    return answer


def begin_invocation(tx: Transaction, request: Mapping[str, Any]) -> Answer:
    """For siblings: start a call whose outcome comes back as a delivery (`Reply`)."""
    name = parse(tx, request["FunctionName"], request.get("Qualifier"))
    version = aliases.chosen(tx, name)
    payload = _payload(request, "RequestResponse")
    reply = Reply(request["Reply"]["Kind"], request["Reply"]["Subject"])
    id_ = invocations.begin(
        tx, version, name.qualifier, payload, type="Reply", client_context=_client_context(request), reply=reply
    )
    return {"InvocationId": id_}


def cancel_invocation(tx: Transaction, request: Mapping[str, Any]) -> Answer:
    """For siblings: nobody wants the outcome any more."""
    invocations.cancel(tx, request["InvocationId"])
    return {}


def take_invocation(tx: Transaction, request: Mapping[str, Any]) -> Answer:
    """For the runner: all it needs to run an invocation, or word that there is nothing to run.

    A synchronous call that is carried a second time has lost its caller with the process before; it is not run again.
    """
    row = invocations.find(tx, request["InvocationId"])
    if row is None or row["status"] != "running":
        return {"Verdict": "Gone"}
    if row["type"] == "RequestResponse" and request["Attempt"] > 1:
        return {"Verdict": "Abandoned"}
    try:
        version = functions.exact(tx, row["function"], row["version"])
    except ServiceError as refusal:
        return {"Verdict": "Refused", "Code": refusal.code, "Message": refusal.message}
    return {
        "Verdict": "Run",
        "FunctionName": version.function,
        "Version": version.version,
        "Revision": version.revision,
        "InvokedFunctionArn": function_arn(tx, version.function, row["qualifier"]),
        "Settings": version.settings,
        "CodeSha256": version.code.sha256,
        "Payload": bytes(row["payload"]),
        "ClientContext": row["client_context"],
    }


def finish_invocation(tx: Transaction, request: Mapping[str, Any]) -> Answer:
    """For the runner: how an attempt ended."""
    error = request.get("Error")
    finish(
        tx,
        request["InvocationId"],
        Outcome(
            payload=request.get("Payload", b"null"),
            function_error=request.get("FunctionError"),
            log_tail=request.get("LogTail"),
            log_stream=request.get("LogStream"),
            not_run=ServiceError(error["Code"], error["Message"]) if error else None,
        ),
    )
    return {}


def recover(tx: Transaction, request: Mapping[str, Any]) -> Answer:
    """For the runner, at start: close calls whose caller is gone, start what waits, and say which code is in use."""
    lost = Outcome(
        not_run=ServiceError("ServiceException", "The invocation was interrupted before the function had answered.")
    )
    for id_ in invocations.abandoned(tx):
        invocations.close(tx, id_, "failed", error=lost.not_run)
        tx.cancel(invocations.INVOKE, id_)
    invocations.admit(tx)
    return {"CodeSha256": code.hashes(tx)}


def get_code(tx: Transaction, request: Mapping[str, Any]) -> Answer:
    """For the runner: a deployment package by its hash."""
    body = code.read(tx, request["CodeSha256"])
    if body is None:
        raise ServiceError("ResourceNotFoundException", "The function's code is gone.")
    return {"ZipFile": body}
