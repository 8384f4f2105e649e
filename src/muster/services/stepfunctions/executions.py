"""Executions as their API shows them: descriptions, lists, histories, and stopping one.

Keeps true: what is shown is what the rows say; a history is put together from its rows and has no gaps. Does not move
executions.

Sources: DescribeExecution, ListExecutions, GetExecutionHistory, StopExecution in the API reference.
"""

from typing import Any

import orjson

from muster.errors import ServiceError
from muster.languages.asl.failures import HISTORY_MAX
from muster.languages.asl.history import expand
from muster.operation import Answer, Request, Wait
from muster.services.stepfunctions import machines, names, pages, running, starting, versions
from muster.services.stepfunctions.mocking import Cases
from muster.transaction import Row, Transaction

REDRIVE_SECONDS_MAX = 14 * 86_400  # "an execution can be redriven within 14 days of its completion"


def existing(tx: Transaction, execution_arn: str) -> Row:
    """The execution's row; ExecutionDoesNotExist, InvalidArn."""
    names.parse(execution_arn, "execution", "express")
    row = tx.one("SELECT * FROM states_executions WHERE arn = :arn", arn=execution_arn)
    if row is None:
        raise ServiceError("ExecutionDoesNotExist", f"Execution Does Not Exist: '{execution_arn}'")
    return row


def _standard(tx: Transaction, execution_arn: str) -> Row:
    row = existing(tx, execution_arn)
    if row["express"]:
        raise ServiceError("InvalidArn", "Invalid Arn: 'Resource type not valid in this context: express'")
    return row


def _brief(row: Row) -> Answer:
    answer: Answer = {
        "executionArn": row["arn"],
        "stateMachineArn": row["machine_arn"],
        "name": row["name"],
        "status": row["status"],
        "startDate": row["started_at"],
        "redriveCount": row["redrives"],
    }
    for column, member in (
        ("stopped_at", "stopDate"),
        ("version_arn", "stateMachineVersionArn"),
        ("alias_arn", "stateMachineAliasArn"),
        ("redriven_at", "redriveDate"),
        ("map_run", "mapRunArn"),
    ):
        if row[column] is not None:
            answer[member] = row[column]
    return answer


def describe(tx: Transaction, request: Request) -> Answer:
    """DescribeExecution."""
    row = _standard(tx, request["executionArn"])
    answer = {**_brief(row), **_redrivable(row, tx.now)}
    included = request.get("includedData") != "METADATA_ONLY"
    for column in ("input", "output"):
        if row[column] is not None:
            if included:
                answer[column] = row[column]
            answer[f"{column}Details"] = {"included": included}
    for column in ("error", "cause"):
        if row[column] is not None and included:
            answer[column] = row[column]
    if row["trace_header"] is not None:
        answer["traceHeader"] = row["trace_header"]
    return answer


def _not_redrivable(row: Row, now: float) -> str | None:
    """Why the execution cannot be redriven; None when it can."""
    if row["express"] or row["status"] not in ("FAILED", "TIMED_OUT", "ABORTED"):
        return f"Execution is {row['status']} and cannot be redriven"
    if row["map_run"] is not None:
        return "Child executions of a Map Run are redriven with the Map Run"
    if now - row["stopped_at"] > REDRIVE_SECONDS_MAX:
        return "Execution has exceeded the redrivable period and cannot be redriven"
    state = orjson.loads(row["state"])
    if state["next"] >= HISTORY_MAX - 1:
        return "Execution history is too long for a redrive"
    if any("map_run" in (frame.get("fan") or {}) for frame in state["frames"].values()):
        return "Muster does not support the redrive of a Map Run"
    return None


def _redrivable(row: Row, now: float) -> Answer:
    reason = _not_redrivable(row, now)
    if reason is None:
        return {"redriveStatus": "REDRIVABLE"}
    return {"redriveStatus": "NOT_REDRIVABLE", "redriveStatusReason": reason}


def redrive(tx: Transaction, request: Request) -> Answer:
    """RedriveExecution: the states that did not succeed run again, with the input and the revision they had."""
    row = _standard(tx, request["executionArn"])
    reason = _not_redrivable(row, tx.now)
    if reason is not None:
        raise ServiceError("ExecutionNotRedrivable", reason)
    tx.run(
        "UPDATE states_executions SET status = 'RUNNING', stopped_at = NULL, error = NULL, cause = NULL,"
        " redrives = redrives + 1, redriven_at = :now WHERE arn = :arn",
        now=tx.now,
        arn=row["arn"],
    )
    running.redrive(tx, row["arn"])
    return {"redriveDate": tx.now}


def describe_machine(tx: Transaction, request: Request) -> Answer:
    """DescribeStateMachineForExecution: the revision the execution began with."""
    row = existing(tx, request["executionArn"])
    found = machines.revision(tx, row["revision"])
    answer: Answer = {
        "stateMachineArn": found.machine_arn,
        "name": found.machine_arn.rsplit(":", 1)[1],
        "definition": found.definition,
        "roleArn": found.role_arn,
        "updateDate": found.created_at,
        **machines.shown_settings(found),
    }
    if row["map_run"] is not None:
        answer["mapRunArn"] = row["map_run"]
    if request.get("includedData") == "METADATA_ONLY":
        del answer["definition"]
    return answer


def listed(tx: Transaction, request: Request) -> Answer:
    """ListExecutions, newest first: of a machine, a version, an alias, or a Map Run."""
    given, map_run = request.get("stateMachineArn"), request.get("mapRunArn")
    if (given is None) == (map_run is None):
        raise ServiceError("ValidationException", "Exactly one of stateMachineArn and mapRunArn must be given")
    column, value = "map_run", map_run
    if given is not None:
        machine_arn, qualifier = names.machine_of(given)
        row = machines.current(tx, machine_arn)
        if row["type"] == "EXPRESS":
            raise ServiceError(
                "StateMachineTypeNotSupported", "This operation is not supported by this type of state machine"
            )
        column, value = "machine_arn", machine_arn
        if qualifier is not None:
            column, value = ("version_arn" if qualifier.isdigit() else "alias_arn"), given
    status = request.get("statusFilter")
    size, before = pages.size(request), pages.place(f"executions {value}", request)
    rows = tx.all(
        f"SELECT * FROM states_executions WHERE {column} = :value"
        + (" AND status = :status" if status else "")
        + (" AND (started_at < :at OR (started_at = :at AND arn < :arn))" if before else "")
        + " ORDER BY started_at DESC, arn DESC LIMIT :most",
        value=value,
        most=size + 1,
        **({"status": status} if status else {}),
        **({"at": before[0], "arn": before[1]} if before else {}),
    )
    answer: Answer = {"executions": [_brief(row) for row in rows[:size]]}
    if len(rows) > size:
        last = rows[size - 1]
        answer["nextToken"] = pages.token(f"executions {value}", [last["started_at"], last["arn"]])
    return answer


def history(tx: Transaction, request: Request) -> Answer:
    """GetExecutionHistory."""
    execution_arn = request["executionArn"]
    _standard(tx, execution_arn)
    include = request.get("includeExecutionData", True)
    backwards = bool(request.get("reverseOrder"))
    listing = f"history {execution_arn} {backwards}"
    size, after = pages.size(request), pages.place(listing, request)
    bound, order = ("first_id <= :bound", "DESC") if backwards else ("first_id + events > :bound", "ASC")
    start = after if after is not None else (2**62 if backwards else 1)
    events: list[dict[str, Any]] = []
    rows = tx.all(
        f"SELECT * FROM states_history WHERE execution_arn = :arn AND {bound} ORDER BY first_id {order} LIMIT :most",
        arn=execution_arn,
        bound=start,
        most=size + 1,
    )
    for row in rows:
        found = list(expand(orjson.loads(row["entries"]), row["first_id"], row["at"], include_data=include))
        if backwards:
            events += [event for event in reversed(found) if event["id"] <= start]
        else:
            events += [event for event in found if event["id"] >= start]
        if len(events) > size:
            break
    answer: Answer = {"events": events[:size]}
    if len(events) > size:
        answer["nextToken"] = pages.token(listing, events[size]["id"])
    return answer


def stop(tx: Transaction, request: Request) -> Answer:
    """StopExecution; one that has ended stays as it is."""
    execution_arn = request["executionArn"]
    row = _standard(tx, execution_arn)
    running.stop(tx, execution_arn, request.get("error"), request.get("cause"))
    return {"stopDate": row["stopped_at"] if row["stopped_at"] is not None else tx.now}


def start(tx: Transaction, request: Request, *, cases: Cases | None = None) -> Answer:
    """StartExecution."""
    return starting.start(tx, request, cases=cases)


def start_sync(tx: Transaction, request: Request, *, cases: Cases | None = None) -> Answer | Wait:
    """StartSyncExecution: an Express execution, answered when it has ended."""
    given = request["stateMachineArn"]
    machine_arn, _, _, _ = versions.routed(tx, given.partition("#")[0] if cases is not None else given)
    if machines.current(tx, machine_arn)["type"] != "EXPRESS":
        raise ServiceError(
            "StateMachineTypeNotSupported", "This operation is not supported by this type of state machine"
        )
    execution_arn = starting.start(tx, request, cases=cases)["executionArn"]
    tx.cancel("states.run", execution_arn)
    row = running.row_of(tx, execution_arn)
    assert row is not None
    running.begin(tx, row)
    until = tx.now + starting.EXPRESS_SECONDS_MAX

    def look(tx: Transaction) -> Answer | Wait:
        row = existing(tx, execution_arn)
        if row["status"] == "RUNNING" and tx.now < until:
            return Wait(f"states.execution {execution_arn}", until, look)
        if row["status"] == "RUNNING":
            running.time_out(tx, row)
            row = existing(tx, execution_arn)
        return _sync_answer(row, request)

    return look(tx)


def _sync_answer(row: Row, request: Request) -> Answer:
    included = request.get("includedData") != "METADATA_ONLY"
    stopped = row["stopped_at"] if row["stopped_at"] is not None else row["started_at"]
    milliseconds = max(1, round((stopped - row["started_at"]) * 1000))
    answer: Answer = {
        "executionArn": row["arn"],
        "stateMachineArn": row["machine_arn"],
        "name": row["name"],
        "status": row["status"] if row["status"] != "ABORTED" else "FAILED",
        "startDate": row["started_at"],
        "stopDate": stopped,
        "inputDetails": {"included": included},
        "billingDetails": {
            "billedDurationInMilliseconds": -(-milliseconds // 100) * 100,
            "billedMemoryUsedInMB": 64,
        },
    }
    if included:
        answer["input"] = row["input"]
    answer["outputDetails"] = {"included": included}
    if row["output"] is not None and included:
        answer["output"] = row["output"]
    for column in ("error", "cause"):
        if row[column] is not None:
            answer[column] = row[column]
    if row["trace_header"] is not None:
        answer["traceHeader"] = row["trace_header"]
    return answer
