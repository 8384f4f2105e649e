"""Measures of the States Language: the stepper by itself, machines on disk, and executions that wait.

Times are of this process's CPU where the figure is about work, so that a busy machine does not falsify them, and of the
clock where somebody waits.
"""

import asyncio
import gc
import random
import statistics
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

from muster.clock import SystemClock
from muster.engine import Dispatcher, Engine
from muster.ids import SeededIds, SystemIds
from muster.languages import asl
from muster.languages.asl.messages import Cause, Continued, Started
from muster.operation import Answer, Operations
from muster.services import sqs, stepfunctions
from muster.store.port import Committed, Realm
from muster.store.sqlite import SqliteStore
from muster.transaction import Transaction

ROLE = "arn:aws:iam::000000000000:role/bench"
DOCUMENT = {"n": 7, "lines": [{"price": price, "quantity": price % 4} for price in range(40)]}


def chain(states: int = 100) -> dict[str, Any]:
    """Pass and Choice states in turn."""
    made: dict[str, Any] = {}
    for number in range(0, states, 2):
        made[f"S{number}"] = {
            "Type": "Pass",
            "Parameters": {"n.$": "$.n", "at": number, "lines.$": "$.lines"},
            "Next": f"S{number + 1}",
        }
        rule = {"Variable": "$.n", "NumericGreaterThan": 5, "Next": f"S{number + 2}" if number + 2 < states else "End"}
        made[f"S{number + 1}"] = {"Type": "Choice", "Choices": [rule], "Default": "End"}
    return {"StartAt": "S0", "States": {**made, "End": {"Type": "Succeed"}}}


def jsonata(states: int = 20) -> dict[str, Any]:
    """Pass states that sum, filter and sort in JSONata."""
    output = {
        "n": "{% $states.input.n + 1 %}",
        "lines": "{% $states.input.lines[quantity >= 0] %}",
        "total": "{% $sum($states.input.lines.(price * quantity)) %}",
        "dearest": "{% $sort($states.input.lines, function($l, $r) { $l.price < $r.price })[0].price %}",
    }
    made: dict[str, Any] = {
        f"S{number}": {"Type": "Pass", "Output": output, "Next": f"S{number + 1}" if number + 1 < states else "End"}
        for number in range(states)
    }
    return {"QueryLanguage": "JSONata", "StartAt": "S0", "States": {**made, "End": {"Type": "Succeed"}}}


def inline_map(items: int = 1000) -> dict[str, Any]:
    """An inline Map of one Pass state over so many items."""
    states = {"Each": {"Type": "Pass", "End": True}}
    over = {
        "Type": "Map",
        "QueryLanguage": "JSONata",
        "Items": f"{{% [1..{items}] %}}",
        "ItemProcessor": {"StartAt": "Each", "States": states},
        "End": True,
    }
    return {"StartAt": "All", "States": {"All": over}}


def stepped(machine: asl.Machine) -> tuple[int, int]:
    """Run the pure stepper to the end; how many transitions and history events that took."""
    execution = {"Id": "e", "Input": DOCUMENT, "Name": "e", "RoleArn": ROLE, "StartTime": "then"}
    context = {"Execution": execution, "StateMachine": {"Id": "m", "Name": "m"}}
    world = asl.World(1_735_000_000.0, SeededIds(1), "us-east-1", "000000000000", context)
    state = asl.beginning(machine, DOCUMENT)
    cause: Cause = Started({})
    transitions = 0
    while True:
        decision = asl.step(machine, state, cause, world)
        transitions += decision.transitions
        if decision.outcome is not None:
            assert decision.outcome.status == "SUCCEEDED", decision.outcome
            return transitions, decision.state["next"] - 1
        state, cause = decision.state, Continued()


def stepper(folder: Path) -> dict[str, Any]:
    """The three machines of issue size in the pure stepper, and through the durable engine on disk."""
    figures: dict[str, Any] = {}
    for name, definition, times in (
        ("chain of 100 Pass and Choice", chain(), 50),
        ("20 JSONata states", jsonata(), 10),
        ("inline Map of 1,000", inline_map(), 5),
    ):
        text = orjson.dumps(definition).decode()
        began = time.process_time()
        machine = asl.parse(text)
        figures[f"{name}: compiled in ms"] = round((time.process_time() - began) * 1000, 1)
        began = time.process_time()
        transitions = sum(stepped(machine)[0] for _ in range(times))
        figures[f"{name}: pure, transitions per CPU second"] = round(transitions / (time.process_time() - began))
        clock, cpu = asyncio.run(durable(folder / f"{len(figures)}.db", text, times))
        figures[f"{name}: on disk, transitions per CPU second"] = round(transitions / cpu)
        figures[f"{name}: on disk, transitions per second"] = round(transitions / clock)
    return figures


class Bench:
    """An engine on disk with Step Functions, carrying."""

    def __init__(self, engine: Engine, store: SqliteStore) -> None:
        self.engine = engine
        self.store = store
        self.hear: Callable[[Committed], None] = lambda committed: None
        store.subscribe(lambda committed: self.hear(committed))

    async def call(self, operation: str, **request: Any) -> Answer:
        return await self.engine.operate("stepfunctions", operation, request)

    async def machine(self, text: str) -> str:
        made = await self.call("CreateStateMachine", name="bench", definition=text, roleArn=ROLE)
        arn: str = made["stateMachineArn"]
        return arn

    async def left(self, kind: str) -> int:
        """How many deliveries of the kind are still to be carried."""

        def count(tx: Transaction) -> int:
            row = tx.one("SELECT COUNT(*) AS n FROM deliveries WHERE kind = :kind", kind=kind)
            return int(row["n"]) if row is not None else 0

        return await self.store.read(count)


@asynccontextmanager
async def bench(database: Path) -> AsyncIterator[Bench]:
    services = {"stepfunctions": stepfunctions.SERVICE, "sqs": sqs.service("http://localhost")}
    operations = Operations(services)
    store = SqliteStore(database, SystemClock(), SystemIds(), operations, Realm())
    await store.open({name: service.migrations for name, service in services.items()})
    carriers = {kind: carry for service in services.values() for kind, carry in service.carriers.items()}
    dispatcher = Dispatcher(store, SystemClock(), SystemIds(), carriers, {})
    running = asyncio.create_task(dispatcher.run())
    try:
        yield Bench(Engine(store, operations, SystemClock()), store)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await store.close()


async def durable(database: Path, text: str, times: int) -> tuple[float, float]:
    """Seconds by the clock and of CPU for so many executions."""
    async with bench(database) as world:
        machine = await world.machine(text)
        document = orjson.dumps(DOCUMENT).decode()
        began, cpu = time.perf_counter(), time.process_time()
        for _ in range(times):
            await world.call("StartExecution", stateMachineArn=machine, input=document)
        while await world.left("states.run"):
            await asyncio.sleep(0.002)
        return time.perf_counter() - began, time.process_time() - cpu


def resident() -> int:
    """This process's resident memory in bytes (Linux)."""
    gc.collect()
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def waiting(folder: Path, count: int = 10_000) -> dict[str, Any]:
    """So many executions that wait for tokens: what they cost in memory, and how soon one of them goes on."""
    database = folder / "muster.db"
    figures = asyncio.run(_waiting(database, count))
    return {**figures, "bytes on disk per execution": round(database.stat().st_size / count)}


async def _waiting(database: Path, count: int) -> dict[str, Any]:
    async with bench(database) as world:
        queue = (await world.engine.operate("sqs", "CreateQueue", {"QueueName": "waiting"}))["QueueUrl"]
        ask = {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
            "Parameters": {"QueueUrl": queue, "MessageBody.$": "$$.Task.Token"},
            "End": True,
        }
        machine = await world.machine(orjson.dumps({"StartAt": "Ask", "States": {"Ask": ask}}).decode())
        before = resident()
        began = time.perf_counter()

        async def client(numbers: Iterator[int]) -> None:
            for number in numbers:
                await world.call("StartExecution", stateMachineArn=machine, input=orjson.dumps({"n": number}).decode())

        numbers = iter(range(count))
        await asyncio.gather(*(client(numbers) for _ in range(64)))
        while await world.left("states.run"):
            await asyncio.sleep(0.01)
        seconds = time.perf_counter() - began
        added = resident() - before
        chosen = await world.store.read(lambda tx: _some(tx, count))
        times = [await _resumed(world, *one) for one in chosen]
    times.sort()
    return {
        "executions waiting": count,
        "seconds to start them": round(seconds, 1),
        "resident memory added, MB": round(added / 1e6, 1),
        "bytes of memory per execution": round(added / count),
        "median ms from token to ended": round(statistics.median(times) * 1000, 2),
        "99th percentile ms": round(times[int(len(times) * 0.99)] * 1000, 2),
    }


def _some(tx: Transaction, count: int) -> list[tuple[str, str]]:
    """Tokens and their executions, from anywhere in the table."""
    rows = tx.all("SELECT token, execution_arn FROM states_tokens WHERE status = 'OPEN'")
    assert len(rows) == count, f"{len(rows)} of {count} wait"
    picked = random.Random(1).sample(rows, min(200, count))
    return [(row["token"], row["execution_arn"]) for row in picked]


async def _resumed(world: Bench, token: str, execution: str) -> float:
    """Seconds from the token's answer to the commit of the execution's end."""
    ended = asyncio.Event()
    topic = f"states.execution {execution}"
    world.hear = lambda committed: ended.set() if topic in committed.topics else None
    began = time.perf_counter()
    await world.call("SendTaskSuccess", taskToken=token, output="{}")
    await ended.wait()
    return time.perf_counter() - began
