"""Measures without HTTP: the engine and the services on a database on disk, fully synchronous."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from muster.clock import SystemClock
from muster.engine import Dispatcher, Engine
from muster.ids import SystemIds
from muster.operation import Operations
from muster.services import stepfunctions
from muster.store.port import Realm
from muster.store.sqlite import SqliteStore
from muster.transaction import Transaction

EXECUTIONS = 1000
STATES = 10


def pass_machine(states: int) -> str:
    """A chain of Pass states."""
    return orjson.dumps(
        {
            "StartAt": "S0",
            "States": {
                f"S{n}": {"Type": "Pass", **({"Next": f"S{n + 1}"} if n + 1 < states else {"End": True})}
                for n in range(states)
            },
        }
    ).decode()


def transitions(folder: Path) -> dict[str, Any]:
    """Executions of ten Pass states, history kept, from StartExecution to SUCCEEDED."""

    async def main() -> tuple[float, float]:
        operations = Operations({"stepfunctions": stepfunctions.SERVICE})
        store = SqliteStore(folder / "muster.db", SystemClock(), SystemIds(), operations, Realm())
        await store.open({"stepfunctions": stepfunctions.SERVICE.migrations})
        engine = Engine(store, operations, SystemClock())
        dispatcher = Dispatcher(store, SystemClock(), SystemIds(), stepfunctions.SERVICE.carriers, {})
        machine = await engine.operate(
            "stepfunctions",
            "CreateStateMachine",
            {"name": "chain", "definition": pass_machine(STATES), "roleArn": "arn:aws:iam::000000000000:role/chain"},
        )
        running = asyncio.create_task(dispatcher.run())
        began, cpu = time.perf_counter(), time.process_time()
        request = {"stateMachineArn": machine["stateMachineArn"], "input": '{"n":1}'}

        async def client(count: int) -> None:
            for _ in range(count):
                await engine.operate("stepfunctions", "StartExecution", request)

        await asyncio.gather(*(client(EXECUTIONS // 20) for _ in range(20)))
        listing = {"stateMachineArn": machine["stateMachineArn"], "statusFilter": "RUNNING", "maxResults": 1}
        while (await engine.operate("stepfunctions", "ListExecutions", listing))["executions"]:
            await asyncio.sleep(0.005)
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await store.close()
        return seconds, cpu_seconds

    seconds, cpu_seconds = asyncio.run(main())
    return {
        "executions": EXECUTIONS,
        "states in each": STATES,
        "executions per second": round(EXECUTIONS / seconds),
        "state transitions per second": round(EXECUTIONS * STATES / seconds),
        "state transitions per CPU second": round(EXECUTIONS * STATES / cpu_seconds),
    }


def changes(folder: Path) -> dict[str, Any]:
    """Small durable changes, by how many wait at a time: what group commit is worth."""
    table = {"bench": ("CREATE TABLE bench (id TEXT PRIMARY KEY, text TEXT NOT NULL);",)}

    def change(tx: Transaction) -> None:
        tx.run("INSERT INTO bench (id, text) VALUES (:id, :text)", id=tx.new_id(), text="x" * 100)

    async def main(at_once: int, count: int) -> float:
        store = SqliteStore(folder / f"{at_once}.db", SystemClock(), SystemIds(), Operations({}), Realm())
        await store.open(table)

        async def client() -> None:
            for _ in range(count // at_once):
                await store.change(change)

        began = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(at_once)))
        seconds = time.perf_counter() - began
        await store.close()
        return count / seconds

    figures: dict[str, Any] = {}
    run: Callable[[int, int], float] = lambda at_once, count: asyncio.run(main(at_once, count))  # noqa: E731
    alone = run(1, 500)
    figures["changes per second, one at a time"] = round(alone)
    for at_once in (8, 64):
        rate = run(at_once, 6400)
        figures[f"changes per second, {at_once} at a time"] = f"{rate:.0f} ({rate / alone:.1f} ×)"
    return figures
