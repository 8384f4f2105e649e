"""TestState: one state tried by itself, with its data flow shown and its task's answer mocked if the caller likes.

Keeps true: nothing is written; a mock that the service could not have answered is refused. Does not run functions: a
task that waits for something outside needs a mock.

Source: TestState in the API reference; "Using TestState API to test a state"; wording as recorded from AWS.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from botocore.model import ListShape, MapShape, Shape, StructureShape

from muster.errors import ServiceError, unsupported
from muster.languages import asl
from muster.languages.asl import timestamps
from muster.languages.asl.definition import Map, Parallel, State, Task, Wait, Working
from muster.languages.asl.expressions import dumps
from muster.languages.asl.integrations import Kind
from muster.languages.asl.messages import (
    Call,
    Cause,
    Command,
    Decision,
    Failed,
    Fired,
    Started,
    Submitted,
    Succeeded,
    Timer,
)
from muster.operation import Answer, Request
from muster.services.stepfunctions import calling, shapes
from muster.transaction import Transaction

# What a caller may say of the context object: field -> the JSON type of each member.
_CONTEXT: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "Execution": {
        "Id": str,
        "Input": object,
        "Name": str,
        "RoleArn": str,
        "StartTime": str,
        "RedriveCount": int,
        "RedriveTime": str,
    },
    "State": {"EnteredTime": str, "Name": str, "RetryCount": int},
    "StateMachine": {"Id": str, "Name": str},
    "Task": {"Token": str},
}


def test_state(tx: Transaction, request: Request) -> Answer:
    """Try the state once."""
    machine, name = _machine(request)
    scope, state = _located(machine, name)
    mock = request.get("mock")
    if isinstance(state, Task) and mock is None and request.get("roleArn") is None:
        raise ServiceError("ValidationException", "RoleArn must be specified when testing a Task state")
    override = _context(request.get("context"))
    answer = _mocked(state, mock) if mock is not None else None
    variables = _json(request["variables"], "variables") if request.get("variables") else {}
    text = request.get("input") or "{}"
    document = _json(text, "input")
    context = {
        "Execution": {
            "Id": f"arn:aws:states:{tx.region}:{tx.account}:execution:TestState:{tx.new_id()}",
            "Input": document,
            "Name": "TestState",
            "RoleArn": request.get("roleArn", ""),
            "StartTime": timestamps.text(tx.now),
        },
        "StateMachine": {
            "Id": f"arn:aws:states:{tx.region}:{tx.account}:stateMachine:TestState",
            "Name": "TestState",
        },
    }
    world = asl.World(tx.now, tx, tx.region, tx.account, context, override=override)
    beginning = asl.beginning(machine, document, scope=scope, variables=variables)
    beginning["frames"]["0"]["at"] = name
    _configure(state, beginning["frames"]["0"], request.get("stateConfiguration") or {})
    trace: dict[str, Any] = {}
    whole: Any = None
    if isinstance(state, Map | Parallel):
        if mock is None:
            raise unsupported(f"TestState of a {state.kind} state without a mock")
        whole = asl.Failure(answer.error, answer.cause) if isinstance(answer, Failed) else (answer,)
    decision = asl.inspect(machine, beginning, Started({}), world, trace, mock=whole)
    cause = _answered(tx, state, decision.commands, answer)
    while cause is not None:
        decision = asl.inspect(machine, decision.state, cause, world, trace, budget=0)
        cause = _answered(tx, state, decision.commands, answer)
    result = _result(name, decision)
    if request.get("inspectionLevel", "INFO") != "INFO":
        shown = {stage: value if stage in _VALUES else dumps(value) for stage, value in trace.items()}
        result["inspectionData"] = {"input": text, **shown}
    return result


# Inspection data that is not JSON text.
_VALUES = frozenset({"errorDetails", "maxConcurrency", "toleratedFailureCount", "toleratedFailurePercentage"})


def _configure(state: State, frame: dict[str, Any], given: Mapping[str, Any]) -> None:
    """`stateConfiguration`: how often the retriers have been used already."""
    for name in given:
        if name != "retrierRetryCount":
            raise unsupported(f"stateConfiguration.{name} of TestState")
    if given.get("retrierRetryCount") and isinstance(state, Working):
        frame["tries"] = [int(given["retrierRetryCount"])] * len(state.retriers)


def _machine(request: Request) -> tuple[asl.Machine, str]:
    name = request.get("stateName")
    if name is None:
        machine, found = asl.examine_state(request["definition"])
        name = "StateName"
    else:
        machine, found = asl.examine(request["definition"])
    if machine is None:
        raise ServiceError("InvalidDefinition", asl.InvalidDefinition(found).sentence())
    return machine, name


def _located(machine: asl.Machine, name: str) -> tuple[int, State]:
    for number, scope in enumerate(machine.scopes):
        if name in scope.states:
            return number, scope.states[name]
    raise ServiceError("ValidationException", f"State not found in the definition: {name}")


def _json(text: str, what: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as why:
        raise ServiceError("InvalidExecutionInput", f"Invalid State Machine Execution Input: '{what}: {why}'") from why


def _context(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        given = orjson.loads(text)
    except orjson.JSONDecodeError:
        given = None
    if not isinstance(given, dict):
        raise _no_context("must be a valid JSON object")
    for field, members in given.items():
        if field == "Map":
            raise _no_context("'Map' field is not supported when mocking a Context object")
        known = _CONTEXT.get(field)
        if known is None:
            raise _no_context(f"Field '{field}' is not allowed")
        if not isinstance(members, dict):
            raise _no_context(f"{field} must be an object")
        for name, value in members.items():
            if name not in known:
                raise _no_context(f"Field '{name}' is not allowed")
            if not isinstance(value, known[name]):
                raise _no_context(f"{field}.{name} must be a {'string' if known[name] is str else 'number'}")
    return given


def _no_context(why: str) -> ServiceError:
    return ServiceError("ValidationException", f"Invalid Context object provided: {why}")


def _mocked(state: State, mock: Mapping[str, Any]) -> Any:
    """What the mock answers: a value, or a Failed without its attempt."""
    error = mock.get("errorOutput")
    if error is not None:
        if mock.get("result") is not None:
            raise ServiceError(
                "ValidationException",
                "A test mock should have only one of the following fields: [result, errorOutput].",
            )
        return Failed(0, 0, error.get("error"), error.get("cause"))
    if mock.get("result") is None:
        raise ServiceError(
            "ValidationException",
            "A test mock should have at least one of the following fields: [result, errorOutput].",
        )
    try:
        value = orjson.loads(mock["result"])
    except orjson.JSONDecodeError as why:
        raise ServiceError("ValidationException", "Mocked result must be valid JSON") from why
    if isinstance(state, Map | Parallel) and not isinstance(value, list):
        raise ServiceError("ValidationException", "Mocked result must be an array.")
    if not isinstance(state, Task | Map | Parallel):
        raise ServiceError(
            "ValidationException", f"State type '{state.kind}' is not supported when a mock is specified"
        )
    if isinstance(state, Task) and mock.get("fieldValidationMode", "STRICT") != "NONE":
        _check_result(state, value)
    return value


def _check_result(state: Task, value: Any) -> None:
    """The mock has the types of the service's own answer."""
    integration = state.integration
    if integration.kind is not Kind.SERVICE:
        return
    service = integration.service or integration.resource_type.removeprefix("aws-sdk:")
    operation = shapes.operation(service, integration.operation)
    if operation is None or operation.output_shape is None:
        return
    payload_is_free = (service, integration.operation) == ("lambda", "Invoke")
    _check_shape(value, operation.output_shape, "", frozenset({"Payload"}) if payload_is_free else frozenset())


_EXPECTED = {"structure": "an object", "map": "an object", "list": "an array", "boolean": "a boolean"}


def _check_shape(value: Any, shape: Shape, name: str, free: frozenset[str]) -> None:
    if isinstance(shape, StructureShape):
        if isinstance(value, dict):
            known = {shapes.pascal(member): inner for member, inner in shape.members.items()}
            for key, one in value.items():
                if key in known and key not in free:
                    _check_shape(one, known[key], key, frozenset())
            return
    elif isinstance(shape, ListShape):
        if isinstance(value, list):
            for one in value:
                _check_shape(one, shape.member, name, frozenset())
            return
    elif isinstance(shape, MapShape):
        if isinstance(value, dict):
            for key, one in value.items():
                _check_shape(one, shape.value, key, frozenset())
            return
    elif shape.type_name == "boolean":
        if isinstance(value, bool):
            return
    elif shape.type_name in ("integer", "long", "float", "double"):
        if isinstance(value, int | float) and not isinstance(value, bool):
            return
        raise _bad_mock(name, "a number")
    elif isinstance(value, str):
        return
    raise _bad_mock(name, _EXPECTED.get(shape.type_name, "a string"))


def _bad_mock(name: str, expected: str) -> ServiceError:
    return ServiceError(
        "ValidationException", f"Mock result schema validation error: Field '{name}' must be {expected}"
    )


def _answered(tx: Transaction, state: State, commands: list[Command], mock: Any) -> Cause | None:
    """What the state hears in answer to what it asks."""
    for command in commands:
        if isinstance(command, Timer) and command.purpose == "wake" and isinstance(state, Wait):
            return Fired(command.frame, command.attempt, "wake")
        if isinstance(command, Call):
            at = (command.frame, command.attempt)
            if isinstance(mock, Failed):
                return Failed(*at, mock.error, mock.cause)
            if mock is not None:
                return Succeeded(*at, mock)
            if command.integration.service == "lambda" or command.integration.pattern:
                raise unsupported(f"TestState of {command.integration.resource} without a mock")
            answer, _ = calling.perform(tx, command, "")
            return Succeeded(*at, answer.output) if isinstance(answer, Submitted) else answer
    return None


def _result(name: str, decision: Decision) -> Answer:
    failure: dict[str, Any] = next(
        (details for kind, _, details in reversed(decision.entries) if kind.endswith("Failed")), {}
    )
    frame = decision.state["frames"].get("0")
    if decision.outcome is not None:
        if decision.outcome.status == "SUCCEEDED":
            return {"status": "SUCCEEDED", "output": decision.outcome.output}
        failed = decision.outcome.failure
        assert failed is not None
        shown = {"error": failed.error, "cause": failed.cause}
        return {"status": "FAILED", **{key: value for key, value in shown.items() if value is not None}}
    reasons: Answer = {key: failure[key] for key in ("error", "cause") if key in failure}
    if frame["at"] == name and "event" in frame:
        if any(isinstance(command, Timer) and command.purpose == "wake" for command in decision.commands):
            return {"status": "RETRIABLE", **reasons}
        raise unsupported("TestState of a state that waits for something outside, without a mock")
    status: Answer = {"status": "CAUGHT_ERROR", **reasons} if failure else {"status": "SUCCEEDED"}
    return {**status, "output": dumps(frame["input"]), "nextState": frame["at"]}
