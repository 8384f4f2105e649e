"""How a task's request reaches a service, and how its refusal is named.

Keeps true: a service of Muster is called inside the machine's own transaction, so its effect and the transition are one
commit; functions and child executions answer later, to the attempt that asked. Does not know the States Language's
history.

Sources: "Service integration patterns"; error names and causes as recorded from AWS.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from muster import models
from muster.errors import ServiceError
from muster.languages.asl import timestamps
from muster.languages.asl.integrations import Integration, Kind
from muster.languages.asl.messages import Call, Cause, Failed, Submitted, Succeeded, Unusable
from muster.services.stepfunctions import activities, shapes, starting
from muster.services.stepfunctions.names import subject
from muster.services.stepfunctions.starting import Parent
from muster.transaction import Transaction

# Optimised integrations: (prefix of error names, the service as AWS's Java SDK names it in causes).
_OPTIMISED = {
    "dynamodb": ("DynamoDB", "AmazonDynamoDBv2"),
    "events": ("EventBridge", "AmazonEventBridge"),
    "lambda": ("Lambda", "AWSLambda"),
    "sns": ("SNS", "AmazonSNS"),
    "sqs": ("SQS", "AmazonSQS"),
    "stepfunctions": ("StepFunctions", "AWSStepFunctions"),
}
# AWS SDK integrations: prefix of error names, by the name in the ARN where its capitals are not the first letter's.
_SDK = {
    "cloudformation": "CloudFormation",
    "cloudwatch": "CloudWatch",
    "cloudwatchlogs": "CloudWatchLogs",
    "dynamodb": "DynamoDb",
    "eventbridge": "EventBridge",
}


@dataclass(frozen=True, slots=True)
class Errand:
    """Something outside that works for an attempt, and would have to be called back: a function's invocation, a child
    execution."""

    kind: str
    name: str


def perform(tx: Transaction, call: Call, execution_arn: str) -> tuple[Cause | None, Errand | None]:
    """Ask; the answer if there is one now, and the errand if one goes on outside."""
    integration = call.integration
    at = (call.frame, call.attempt)
    try:
        if integration.kind is Kind.FUNCTION:
            return None, _invoke(
                tx, {"FunctionName": integration.resource, "Payload": call.parameters}, call, execution_arn
            )
        if not isinstance(call.parameters, dict):
            return Unusable(*at, _could_not(call.parameters, ["The Parameters must be an OBJECT"])), None
        model = shapes.operation(integration.service, integration.operation) if integration.service else None
        if model is None:
            return Unusable(*at, f"Muster does not support the resource {integration.resource}."), None
        if (integration.service, integration.operation) == ("lambda", "Invoke"):
            return _invocation(tx, call, execution_arn)
        request = shapes.to_request(
            model, call.parameters, lenient=integration.optimised and integration.service == "dynamodb"
        )
        if (integration.service, integration.operation) == ("stepfunctions", "GetActivityTask"):
            found = activities.poll(tx, request, execution_arn, *at)
            return (
                (Succeeded(*at, found), None)
                if found is not None
                else (None, Errand("poll", subject(execution_arn, *at)))
            )
        if integration.is_sync:
            started = starting.start(tx, request, parent=Parent(execution_arn, call.frame, call.attempt))
            return Submitted(*at, _dressed(tx, model, started)), Errand("execution", started["executionArn"])
        # An object's body is a stream over HTTP; inside a transaction it is read whole.
        reads_object = (integration.service, integration.operation) == ("s3", "GetObject")
        answer = tx.call(integration.service, "ReadObject" if reads_object else integration.operation, request)
        output = _dressed(tx, model, answer) if integration.optimised else shapes.from_answer(model, answer)
        return (Submitted if integration.waits_for_token else Succeeded)(*at, output), None
    except shapes.Unfit as why:
        return Unusable(*at, _could_not(call.parameters, why.remarks)), None
    except ServiceError as refusal:
        return refused(tx, call, refusal), None


def _could_not(parameters: Any, remarks: list[str]) -> str:
    text = orjson.dumps(parameters).decode()
    return f"The Parameters '{text}' could not be used to start the Task: [{', '.join(remarks)}]"


def refused(tx: Transaction, call: Call, refusal: ServiceError) -> Failed:
    """A service's refusal as the task's failure."""
    error, cause = named(tx, call.integration, refusal)
    return Failed(call.frame, call.attempt, error, cause)


def named(tx: Transaction, integration: Integration, refusal: ServiceError) -> tuple[str, str]:
    """The error's name and cause, as AWS writes them for this integration."""
    code = refusal.code.rsplit(".", 1)[-1]
    name = code if code.endswith("Exception") else f"{code}Exception"
    status = refusal.status or _status(integration.service, code)
    request_id = tx.new_id()
    if integration.optimised or integration.kind is Kind.FUNCTION:
        prefix, service = _OPTIMISED[integration.service]
        cause = (
            f"{refusal.message} (Service: {service}; Status Code: {status}; Error Code: {code}; "
            f"Request ID: {request_id}; Proxy: null)"
        )
        return f"{prefix}.{name}", cause
    written = integration.resource_type.removeprefix("aws-sdk:")
    prefix = _SDK.get(written, written[:1].upper() + written[1:])
    return f"{prefix}.{name}", f"{refusal.message} (Service: {prefix}, Status Code: {status}, Request ID: {request_id})"


@lru_cache(maxsize=512)
def _status(service: str, code: str) -> int:
    """The HTTP status the service's model gives the error."""
    shape = models.service(service).shape_for_error_code(code)
    found: int = (shape.metadata.get("error") or {}).get("httpStatusCode", 400) if shape is not None else 400
    return found


def _dressed(tx: Transaction, model: Any, answer: dict[str, Any]) -> dict[str, Any]:
    """An optimised integration's result carries the response's metadata."""
    output = shapes.from_answer(model, answer)
    body = orjson.dumps(output)
    return {**output, **metadata(tx, len(body))}


def metadata(tx: Transaction, length: int) -> dict[str, Any]:
    """`SdkHttpMetadata` and `SdkResponseMetadata`, as recorded from AWS."""
    request_id = tx.new_id()
    headers = {
        "connection": "keep-alive",
        "Content-Length": str(length),
        "Content-Type": "application/x-amz-json-1.0",
        "Date": timestamps.text(tx.now),
        "x-amzn-RequestId": request_id,
    }
    return {
        "SdkHttpMetadata": {
            "AllHttpHeaders": {name: [value] for name, value in headers.items()},
            "HttpHeaders": headers,
            "HttpStatusCode": 200,
        },
        "SdkResponseMetadata": {"RequestId": request_id},
    }


def _invocation(tx: Transaction, call: Call, execution_arn: str) -> tuple[Cause | None, Errand | None]:
    """lambda:invoke and aws-sdk:lambda:invoke."""
    known = {"FunctionName", "Payload", "InvocationType", "LogType", "ClientContext", "Qualifier"}
    strange = [
        f'The field "{name}" is not supported by Step Functions' for name in call.parameters if name not in known
    ]
    if "FunctionName" not in call.parameters:
        strange.append('The field "FunctionName" is required but was missing')
    if strange:
        raise shapes.Unfit(strange)
    if call.parameters.get("InvocationType", "RequestResponse") != "RequestResponse":
        model = shapes.operation("lambda", "Invoke")
        assert model is not None
        request = shapes.to_request(model, call.parameters, lenient=False)
        answer = tx.call("lambda", "Invoke", request)
        output = {"StatusCode": answer.get("StatusCode", 202), "Payload": "", **metadata(tx, 0)}
        at = (call.frame, call.attempt)
        return (Submitted if call.integration.waits_for_token else Succeeded)(*at, output), None
    return None, _invoke(tx, call.parameters, call, execution_arn)


def _invoke(tx: Transaction, parameters: dict[str, Any], call: Call, execution_arn: str) -> Errand:
    payload = parameters.get("Payload", {})
    as_text = call.integration.kind is Kind.SERVICE and not call.integration.optimised and isinstance(payload, str)
    request: dict[str, Any] = {
        "FunctionName": parameters["FunctionName"],
        "Payload": payload.encode() if as_text else orjson.dumps(payload),
        "Reply": {"Kind": "states.reply", "Subject": subject(execution_arn, call.frame, call.attempt)},
    }
    for name in ("ClientContext", "Qualifier"):
        if parameters.get(name) is not None:
            value = parameters[name]
            request[name] = value if isinstance(value, str) else orjson.dumps(value).decode()
    return Errand("invocation", tx.call("lambda", "BeginInvocation", request)["InvocationId"])


def function_answer(
    tx: Transaction, integration: Integration, frame: int, attempt: int, payload: dict[str, Any]
) -> Cause:
    """A function's reply as the task's answer."""
    if "Error" in payload:
        refusal = ServiceError(payload["Error"]["Code"], payload["Error"]["Message"])
        error, cause = named(tx, integration, refusal)
        return Failed(frame, attempt, error, cause)
    text = payload.get("Payload") or "null"
    sdk = integration.kind is Kind.SERVICE and not integration.optimised
    if payload.get("FunctionError") and not sdk:
        return Failed(frame, attempt, *_function_error(text))
    if integration.kind is Kind.FUNCTION:
        return Succeeded(frame, attempt, _parsed(text))
    output: dict[str, Any] = {
        "ExecutedVersion": payload.get("ExecutedVersion", "$LATEST"),
        "Payload": text if sdk else _parsed(text),
        "StatusCode": payload.get("StatusCode", 200),
    }
    if sdk and payload.get("FunctionError"):
        output["FunctionError"] = payload["FunctionError"]
    if not sdk:
        output.update(metadata(tx, len(text)))
    return (Submitted if integration.waits_for_token else Succeeded)(frame, attempt, output)


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _function_error(text: str) -> tuple[str, str]:
    """Error and cause of a function that failed: its own error's type, or Lambda.Unknown where it gave none (what
    Lambda says of a function that ran out of memory or time, in the runtimes that name no type)."""
    found = _parsed(text)
    kind = found.get("errorType") if isinstance(found, dict) else None
    if isinstance(kind, str) and kind:
        return kind, text
    return "Lambda.Unknown", (
        "The cause could not be determined because Lambda did not return an error type. Returned payload: " + text
    )


def execution_answer(integration: Integration, frame: int, attempt: int, ended: dict[str, Any]) -> Cause:
    """A child execution's end as the task's answer: `.sync` has texts where `.sync:2` has values."""
    if ended["Status"] != "SUCCEEDED":
        shown = orjson.dumps(_result(ended, parsed=False)).decode()
        return Failed(frame, attempt, "States.TaskFailed", shown)
    return Succeeded(frame, attempt, _result(ended, parsed=integration.pattern == ".sync:2"))


def _result(ended: dict[str, Any], *, parsed: bool) -> dict[str, Any]:
    result = dict(ended)
    if parsed:
        for name in ("Input", "Output"):
            if name in result:
                result[name] = orjson.loads(result[name])
    return result
