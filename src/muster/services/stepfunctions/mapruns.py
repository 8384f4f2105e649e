"""Map Runs: a distributed Map's child executions, counted from their rows.

Keeps true: a child execution is an execution like any other, of the machine's own revision, in the processor's scope.
Does not keep counters: they are read from the children.

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
from muster.transaction import Row, Transaction


def opened(tx: Transaction, row: Row, begun: OpenMapRun) -> None:
    """A Map Run has begun."""
    tx.run(
        "INSERT INTO states_map_runs (arn, execution_arn, machine_arn, status, started_at, items, concurrency,"
        " tolerated_count, tolerated_percentage) VALUES (:arn, :execution, :machine, 'RUNNING', :now, :items,"
        " :concurrency, :count, :percentage)",
        arn=begun.map_run,
        execution=row["arn"],
        machine=row["machine_arn"],
        now=tx.now,
        items=begun.items,
        concurrency=begun.concurrency,
        count=begun.tolerated_count,
        percentage=begun.tolerated_percentage,
    )


def closed(tx: Transaction, map_run: str, status: str) -> list[str]:
    """A Map Run has ended; the children that still run."""
    tx.run(
        "UPDATE states_map_runs SET status = :status, stopped_at = :now WHERE arn = :arn AND status = 'RUNNING'",
        status=status,
        now=tx.now,
        arn=map_run,
    )
    rows = tx.all("SELECT arn FROM states_executions WHERE map_run = :run AND status = 'RUNNING'", run=map_run)
    return [row["arn"] for row in rows]


def spawn(tx: Transaction, row: Row, machine: asl.Machine, state: dict[str, Any], child: Spawn) -> None:
    """Start a child execution on one item."""
    variables: dict[str, Any] = {}
    frame = state["frames"].get(str(child.frame))
    chain = []
    while frame is not None:
        chain.append(frame["vars"])
        frame = state["frames"].get(str(frame["up"])) if frame["up"] is not None else None
    for level in reversed(chain):
        variables.update(level)
    beginning = asl.beginning(machine, child.input, scope=child.scope, variables=variables)
    beginning["frames"]["0"]["item"] = child.item
    parts = Arn.parse(child.map_run).resource.split(":")  # mapRun:machine/label:uuid
    name = tx.new_id()
    arn = f"arn:aws:states:{tx.region}:{tx.account}:execution:{parts[1]}:{name}"
    starting.insert(
        tx,
        arn,
        f"{row['machine_arn']}/{parts[1].split('/', 1)[1]}",
        name,
        row["revision"],
        orjson.dumps(child.input).decode(),
        beginning,
        scope=child.scope,
        parent=Parent(row["arn"], child.frame, child.attempt, child.index),
        map_run=child.map_run,
    )


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
    counts = {
        "pending": row["items"] - started if row["status"] == "RUNNING" else 0,
        "running": counted.get("RUNNING", 0),
        "succeeded": counted.get("SUCCEEDED", 0),
        "failed": counted.get("FAILED", 0),
        "timedOut": counted.get("TIMED_OUT", 0),
        "aborted": counted.get("ABORTED", 0) + (row["items"] - started if row["status"] != "RUNNING" else 0),
        "total": row["items"],
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
