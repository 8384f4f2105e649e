"""Map Runs: a distributed Map's child executions, counted from their rows.

Keeps true: a child execution is an execution like any other, of the machine's own revision, in the processor's scope;
an item waits in a row of its own until its child is started. Does not keep counters: they are read from the children.

Source: "Map state in Distributed mode"; DescribeMapRun in the API reference.
"""

from typing import Any

import orjson

from muster.arn import Arn
from muster.errors import ServiceError
from muster.languages import asl
from muster.languages.asl.messages import OpenMapRun, Spawn
from muster.operation import Answer, Request
from muster.services.stepfunctions import names, pages, starting
from muster.services.stepfunctions.starting import Parent
from muster.transaction import Delivery, Row, Transaction


def opened(tx: Transaction, row: Row, begun: OpenMapRun) -> None:
    """A Map Run has begun."""
    tx.run(
        "INSERT INTO states_map_runs (arn, execution_arn, machine_arn, label, express, status, started_at, concurrency,"
        " tolerated_count, tolerated_percentage) VALUES (:arn, :execution, :machine, :label, :express, 'RUNNING', :now,"
        " :concurrency, :count, :percentage)",
        arn=begun.map_run,
        execution=row["arn"],
        machine=row["machine_arn"],
        label=begun.label,
        express=int(begun.express),
        now=tx.now,
        concurrency=begun.concurrency,
        count=begun.tolerated_count,
        percentage=begun.tolerated_percentage,
    )


def closed(tx: Transaction, map_run: str, status: str) -> list[str]:
    """A Map Run has ended, if it had not yet; the children that still run."""
    touched = tx.run(
        "UPDATE states_map_runs SET status = :status, stopped_at = :now WHERE arn = :arn AND status = 'RUNNING'",
        status=status,
        now=tx.now,
        arn=map_run,
    )
    if not touched:
        return []
    rows = tx.all("SELECT arn FROM states_executions WHERE map_run = :run AND status = 'RUNNING'", run=map_run)
    return [row["arn"] for row in rows]


def spawn(tx: Transaction, row: Row, machine: asl.Machine, state: dict[str, Any], command: Spawn) -> None:
    """Keep the items that came, and start children on those whose turn it is."""
    for place, item in enumerate(command.items):
        tx.run(
            "INSERT INTO states_items (map_run, place, input, shown) VALUES (:run, :place, :input, :shown)",
            run=command.map_run,
            place=place,
            input=orjson.dumps(item.input).decode(),
            shown=orjson.dumps(item.shown).decode(),
        )
    if command.first == command.end:
        return
    variables = _variables(state, command.frame)
    parts = Arn.parse(command.map_run).resource.split(":")  # mapRun:machine/label:uuid
    opened = tx.one("SELECT express FROM states_map_runs WHERE arn = :arn", arn=command.map_run)
    express = opened is not None and bool(opened["express"])
    waiting = tx.all(
        "SELECT * FROM states_items WHERE map_run = :run AND place >= :first AND place < :end ORDER BY place",
        run=command.map_run,
        first=command.first,
        end=command.end,
    )
    for row_of_item in waiting:
        beginning = asl.beginning(machine, orjson.loads(row_of_item["input"]), scope=command.scope, variables=variables)
        beginning["frames"]["0"]["item"] = orjson.loads(row_of_item["shown"])
        name = tx.new_id()
        resource = f"express:{parts[1]}:{name}:{tx.new_id()}" if express else f"execution:{parts[1]}:{name}"
        arn = f"arn:aws:states:{tx.region}:{tx.account}:{resource}"
        starting.insert(
            tx,
            arn,
            f"{row['machine_arn']}/{parts[1].split('/', 1)[1]}",
            name,
            row["revision"],
            row_of_item["input"],
            beginning,
            express=express,
            scope=command.scope,
            parent=Parent(row["arn"], command.frame, command.attempt, row_of_item["place"]),
            map_run=command.map_run,
        )
        if express:
            tx.post(Delivery("states.timeout", arn, {}, tx.now + starting.EXPRESS_SECONDS_MAX))
        tx.run(
            "UPDATE states_items SET execution_arn = :arn WHERE map_run = :run AND place = :place",
            arn=arn,
            run=command.map_run,
            place=row_of_item["place"],
        )


def _variables(state: dict[str, Any], number: int) -> dict[str, Any]:
    """What the children see of the variables around the Map."""
    chain = []
    frame = state["frames"][str(number)]
    while True:
        chain.append(frame["vars"])
        if frame["up"] is None:
            break
        frame = state["frames"][str(frame["up"])]
    return {name: value for level in reversed(chain) for name, value in level.items()}


def _existing(tx: Transaction, arn: str) -> Row:
    names.parse(arn, "mapRun")
    row = tx.one("SELECT * FROM states_map_runs WHERE arn = :arn", arn=arn)
    if row is None:
        raise ServiceError("ResourceNotFound", f"Resource not found: '{arn}'", fields={"resourceName": arn})
    return row


def describe(tx: Transaction, request: Request) -> Answer:
    """DescribeMapRun."""
    row = _existing(tx, request["mapRunArn"])
    counted = {
        one["status"]: one["n"]
        for one in tx.all(
            "SELECT status, COUNT(*) AS n FROM states_executions WHERE map_run = :run GROUP BY status", run=row["arn"]
        )
    }
    started = sum(counted.values())
    known = tx.one("SELECT COUNT(*) AS n FROM states_items WHERE map_run = :run", run=row["arn"])
    items = known["n"] if known is not None else 0
    counts = {
        "pending": items - started if row["status"] == "RUNNING" else 0,
        "running": counted.get("RUNNING", 0),
        "succeeded": counted.get("SUCCEEDED", 0),
        "failed": counted.get("FAILED", 0),
        "timedOut": counted.get("TIMED_OUT", 0),
        "aborted": counted.get("ABORTED", 0) + (items - started if row["status"] != "RUNNING" else 0),
        "total": items,
        "resultsWritten": 0,
        "failuresNotRedrivable": 0,
        "pendingRedrive": 0,
    }
    answer: Answer = {
        "mapRunArn": row["arn"],
        "executionArn": row["execution_arn"],
        "status": row["status"],
        "startDate": row["started_at"],
        "maxConcurrency": row["concurrency"],
        "toleratedFailureCount": row["tolerated_count"],
        "toleratedFailurePercentage": row["tolerated_percentage"],
        "itemCounts": counts,
        "executionCounts": counts,
        "redriveCount": 0,
    }
    if row["stopped_at"] is not None:
        answer["stopDate"] = row["stopped_at"]
    return answer


def changed(tx: Transaction, request: Request) -> Row:
    """Write a running Map Run's new limits; its row as it is then."""
    row = _existing(tx, request["mapRunArn"])
    if row["status"] != "RUNNING":
        raise ServiceError("ValidationException", f"Map Run is not running: '{row['arn']}'")
    tx.run(
        "UPDATE states_map_runs SET concurrency = :concurrency, tolerated_count = :count,"
        " tolerated_percentage = :percentage WHERE arn = :arn",
        concurrency=request.get("maxConcurrency", row["concurrency"]),
        count=request.get("toleratedFailureCount", row["tolerated_count"]),
        percentage=request.get("toleratedFailurePercentage", row["tolerated_percentage"]),
        arn=row["arn"],
    )
    return _existing(tx, row["arn"])


def listed(tx: Transaction, request: Request) -> Answer:
    """ListMapRuns, of one execution."""
    execution_arn = request["executionArn"]
    if tx.one("SELECT arn FROM states_executions WHERE arn = :arn", arn=execution_arn) is None:
        raise ServiceError("ExecutionDoesNotExist", f"Execution Does Not Exist: '{execution_arn}'")
    size, after = pages.size(request), pages.place(f"map runs {execution_arn}", request)
    rows = tx.all(
        "SELECT * FROM states_map_runs WHERE execution_arn = :arn AND arn > :after ORDER BY arn LIMIT :most",
        arn=execution_arn,
        after=after or "",
        most=size + 1,
    )
    answer: Answer = {
        "mapRuns": [
            {
                "executionArn": row["execution_arn"],
                "mapRunArn": row["arn"],
                "stateMachineArn": row["machine_arn"],
                "startDate": row["started_at"],
                **({"stopDate": row["stopped_at"]} if row["stopped_at"] is not None else {}),
            }
            for row in rows[:size]
        ]
    }
    if len(rows) > size:
        answer["nextToken"] = pages.token(f"map runs {execution_arn}", rows[size - 1]["arn"])
    return answer
