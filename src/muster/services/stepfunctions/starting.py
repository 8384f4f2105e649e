"""Executions begin: the row, the name it may have, and the delivery that sets it going.

Keeps true: one name is one execution per machine; the same name and input again is the same execution; what was
acknowledged is a row and a delivery in one commit. Does not run anything.

Source: StartExecution in the API reference.
"""

from dataclasses import dataclass
from typing import Any

import orjson

from muster.arn import arn
from muster.errors import ServiceError
from muster.languages import asl
from muster.languages.asl.expressions import dumps
from muster.languages.asl.failures import PAYLOAD_MAX, Refused
from muster.operation import Answer, Request
from muster.services.stepfunctions import machines, mocking, names, versions
from muster.services.stepfunctions.mocking import Cases
from muster.transaction import Delivery, Transaction

EXPRESS_SECONDS_MAX = 300.0  # "Express workflows: maximum duration of five minutes"


@dataclass(frozen=True, slots=True)
class Parent:
    """The attempt of another execution that waits for this one."""

    execution_arn: str
    frame: int
    attempt: int
    index: int | None = None  # which item of a distributed Map


def checked_input(text: str) -> Any:
    """The input as a value; InvalidExecutionInput when it is no JSON, ValidationException when it is too long."""
    if len(text.encode()) > PAYLOAD_MAX:
        raise ServiceError(
            "ValidationException",
            f"1 validation error detected: Value at 'input' failed to satisfy constraint: Member must have length less "
            f"than or equal to {PAYLOAD_MAX}",
        )
    try:
        document = orjson.loads(text)
        dumps(document)
    except (orjson.JSONDecodeError, Refused) as why:
        raise ServiceError("InvalidExecutionInput", f"Invalid State Machine Execution Input: '{why}'") from why
    return document


def start(tx: Transaction, request: Request, *, parent: Parent | None = None, cases: Cases | None = None) -> Answer:
    """Start an execution of a machine, a version, or whatever an alias routes to. With `cases`, `ARN#CASE` is an
    execution whose tasks are answered as the case says."""
    given = request["stateMachineArn"]
    case = ""
    if cases is not None:
        given, _, case = given.partition("#")
    machine_arn, revision_id, version_arn, alias_arn = versions.routed(tx, given)
    row = machines.current(tx, machine_arn)
    express = row["type"] == "EXPRESS"
    text = request.get("input") or "{}"
    document = checked_input(text)
    name = request.get("name") or tx.new_id()
    names.check(name)
    if express:
        execution_arn = arn(tx, "states", f"express:{row['name']}:{name}:{tx.new_id()}")
    else:
        execution_arn = arn(tx, "states", f"execution:{row['name']}:{name}")
        repeated = _repeated(tx, execution_arn, text)
        if repeated is not None:
            return repeated
    machine = machines.machine(machines.revision(tx, revision_id), express=express)
    if cases is not None and case:
        mocking.keep(tx, execution_arn, cases.of(row["name"], case))
    insert(
        tx,
        execution_arn,
        machine_arn,
        name,
        revision_id,
        text,
        asl.beginning(machine, document),
        express=express,
        version_arn=version_arn,
        alias_arn=alias_arn,
        trace_header=request.get("traceHeader"),
        parent=parent,
    )
    seconds = machine.timeout_seconds
    if express:
        seconds = min(seconds or EXPRESS_SECONDS_MAX, EXPRESS_SECONDS_MAX)
    if seconds is not None:
        tx.post(Delivery("states.timeout", execution_arn, {}, tx.now + seconds))
    return {"executionArn": execution_arn, "startDate": tx.now}


def insert(
    tx: Transaction,
    execution_arn: str,
    machine_arn: str,
    name: str,
    revision_id: str,
    text: str,
    state: dict[str, Any],
    *,
    express: bool = False,
    scope: int = 0,
    version_arn: str | None = None,
    alias_arn: str | None = None,
    trace_header: str | None = None,
    parent: Parent | None = None,
    map_run: str | None = None,
) -> None:
    """Write the execution's row and set it going."""
    tx.run(
        "INSERT INTO states_executions (arn, machine_arn, name, revision, express, scope, status, input, started_at,"
        " state, errands, version_arn, alias_arn, trace_header, redrives, parent, map_run)"
        " VALUES (:arn, :machine, :name, :revision, :express, :scope, 'RUNNING', :input, :now, :state, '{}',"
        " :version, :alias, :trace, 0, :parent, :map_run)",
        arn=execution_arn,
        machine=machine_arn,
        name=name,
        revision=revision_id,
        express=int(express),
        scope=scope,
        input=text,
        now=tx.now,
        state=orjson.dumps(state).decode(),
        version=version_arn,
        alias=alias_arn,
        trace=trace_header,
        parent=None
        if parent is None
        else orjson.dumps([parent.execution_arn, parent.frame, parent.attempt, parent.index]).decode(),
        map_run=map_run,
    )
    tx.post(Delivery("states.run", execution_arn, {}))


def _repeated(tx: Transaction, execution_arn: str, text: str) -> Answer | None:
    """The answer to a repeated name: the running execution when the input is the same, else a refusal."""
    known = tx.one("SELECT status, input, started_at FROM states_executions WHERE arn = :arn", arn=execution_arn)
    if known is None:
        return None
    if known["status"] == "RUNNING" and known["input"] == text:
        return {"executionArn": execution_arn, "startDate": known["started_at"]}
    raise ServiceError("ExecutionAlreadyExists", f"Execution Already Exists: '{execution_arn}'")
