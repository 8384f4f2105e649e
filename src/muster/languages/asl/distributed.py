"""Distributed Map states: items read and batched, a Map Run opened, children counted, results gathered.

Keeps true: the execution's state holds counters only; items and results lie with the Map Run, however many there are.
Does not read, start or write anything: those are commands.

Source: "Map state in Distributed mode"; the order of events and their predecessors as recorded from AWS.
"""

import math
from typing import Any

from muster.languages.asl.definition import Batcher, Map
from muster.languages.asl.environment import Environment
from muster.languages.asl.expressions import dumps
from muster.languages.asl.failures import ITEM_READER_FAILED, RESULT_WRITER_FAILED, RUNTIME, THRESHOLD, Failure, Refused
from muster.languages.asl.flow import effective_input, fail, finish
from muster.languages.asl.messages import CloseMapRun, Gather, Item, OpenMapRun, ReadItems, Spawn, Tuned
from muster.languages.asl.run import Frame, Run

CONCURRENCY_MAX = 10_000  # child executions at once when MaxConcurrency is 0 or not written


def start(run: Run, frame: Frame, state: Map) -> None:
    """Open a Map Run and, unless its items are still to be read, start as many children as may run at once."""
    document = frame["input"] if state.jsonata else effective_input(run, frame, state)
    env = run.environment(frame, document)
    concurrency = int(state.concurrency(env)) if state.concurrency is not None else 0
    items: list[Any] | None = None
    if state.reader is None:
        items = state.items(env) if state.items is not None else document
        if not isinstance(items, list):
            raise Refused(RUNTIME, 'Reference path "$" must point to array.')
    run.record(frame, "MapStateStarted", {"length": len(items) if items is not None else 0})
    count = int(state.tolerated_count(env)) if state.tolerated_count is not None else 0
    percentage = float(state.tolerated_percentage(env)) if state.tolerated_percentage is not None else 0.0
    frame["began"] = True
    machine = str(run.world.context["StateMachine"]["Name"])
    label = state.label or state.name.replace(" ", "")[:40]
    arn = f"arn:aws:states:{run.world.region}:{run.world.account}:mapRun:{machine}/{label}:{run.world.chance.new_id()}"
    frame["fan"] = {
        "map_run": arn,
        "most": min(concurrency or CONCURRENCY_MAX, CONCURRENCY_MAX),
        "first": frame["event"] == 2,
        "opened": run.record(frame, "MapRunStarted", {"mapRunArn": arn}),
        "failed": 0,
        "count": count,
        "percentage": percentage,
    }
    frame["attempt"] = run.number()
    frame["armed"] = True
    run.commands.append(
        OpenMapRun(frame["n"], frame["attempt"], arn, frame["fan"]["most"], count, percentage, label, state.express)
    )
    if items is not None:
        iterate(run, frame, state, items)
        return
    assert state.reader is not None
    parameters = state.reader.parameters(env) if state.reader.parameters is not None else {}
    most = state.reader.items_max(env) if state.reader.items_max is not None else None
    run.commands.append(
        ReadItems(frame["n"], frame["attempt"], state.reader.operation, parameters, state.reader.format, most)
    )


def iterate(run: Run, frame: Frame, state: Map, items: list[Any]) -> None:
    """The items are known: hand them to the Map Run and start the first children."""
    env = run.environment(frame, frame["input"] if state.jsonata else effective_input(run, frame, state))
    chosen = [
        Item(_selected(state, env, index, value), {"Index": index, "Value": value}) for index, value in enumerate(items)
    ]
    weights = None
    if state.batcher is not None:
        batches = _batches(state.batcher, env, chosen)
        weights = [len(batch) for batch in batches]
        batch_input = state.batcher.input(env) if state.batcher.input is not None else None
        chosen = [
            Item(
                {
                    **({"BatchInput": batch_input} if batch_input is not None else {}),
                    "Items": [one.input for one in batch],
                },
                {"Index": index, "Value": {"Items": [one.input for one in batch]}},
            )
            for index, batch in enumerate(batches)
        ]
    fan = frame["fan"]
    fan.update(total=len(items), children=len(chosen), left=len(chosen), next=0, weights=weights)
    run.commands.append(Spawn(frame["n"], frame["attempt"], fan["map_run"], state.processor, tuple(chosen), 0, 0))
    if not chosen:
        _gather(run, frame, state)
        return
    _start_more(run, frame, state)


def _selected(state: Map, env: Environment, index: int, value: Any) -> Any:
    if state.item_selector is None:
        return value
    seen = env.seeing(env.document)
    context = {**seen.context(), "Map": {"Item": {"Index": index, "Value": value}}}
    return state.item_selector(Environment(env.document, env.variables, env.chance, lambda: context, env.states))


def _batches(batcher: Batcher, env: Environment, items: list[Item]) -> list[list[Item]]:
    most = int(batcher.items_max(env)) if batcher.items_max is not None else None
    size = int(batcher.bytes_max(env)) if batcher.bytes_max is not None else None
    batches: list[list[Item]] = []
    used = 0
    for item in items:
        length = len(dumps(item.input).encode()) + 1 if size is not None else 0
        full = (
            not batches
            or (most is not None and len(batches[-1]) >= most)
            or (size is not None and used + length > size and batches[-1])
        )
        if full:
            batches.append([])
            used = 0
        batches[-1].append(item)
        used += length
    return batches


def _start_more(run: Run, frame: Frame, state: Map) -> None:
    """Start as many children as there is room for."""
    fan = frame["fan"]
    running = fan["next"] - (fan["children"] - fan["left"])
    how_many = min(fan["most"] - running, fan["children"] - fan["next"])
    if how_many <= 0:
        return
    run.commands.append(
        Spawn(frame["n"], frame["attempt"], fan["map_run"], state.processor, (), fan["next"], fan["next"] + how_many)
    )
    fan["next"] += how_many


def reading_failed(run: Run, frame: Frame, cause: str) -> None:
    """The items could not be read."""
    _failed(run, frame, Failure(ITEM_READER_FAILED, cause))


def writing_failed(run: Run, frame: Frame, cause: str) -> None:
    """The results could not be written."""
    _failed(run, frame, Failure(RESULT_WRITER_FAILED, cause))


def child_ended(run: Run, frame: Frame, state: Map, index: int, succeeded: bool) -> None:
    """A child execution has ended."""
    frame["fan"] = fan = dict(frame["fan"])
    if not succeeded:
        fan["failed"] += fan["weights"][index] if fan["weights"] is not None else 1
        if _intolerable(fan):
            _failed(run, frame, Failure(THRESHOLD, "The specified tolerated failure threshold was exceeded"))
            return
    fan["left"] -= 1
    if fan["next"] < fan["children"]:
        _start_more(run, frame, state)
    elif not fan["left"]:
        _gather(run, frame, state)


def tuned(run: Run, frame: Frame, state: Map, limits: Tuned) -> None:
    """The limits have changed: more children start if there is room now; running ones run on."""
    most = min(limits.concurrency or CONCURRENCY_MAX, CONCURRENCY_MAX)
    frame["fan"] = fan = {**frame["fan"], "most": most, "count": limits.count, "percentage": limits.percentage}
    if "children" in fan and fan["left"]:
        _start_more(run, frame, state)


def _intolerable(fan: dict[str, Any]) -> bool:
    """More failures than a threshold allows; with none written, one failure is too many."""
    if not fan["count"] and not fan["percentage"]:
        return bool(fan["failed"])
    too_many = fan["count"] and fan["failed"] > fan["count"]
    too_large = fan["percentage"] and fan["failed"] > math.floor(fan["total"] * fan["percentage"] / 100)
    return bool(too_many or too_large)


def _failed(run: Run, frame: Frame, failure: Failure) -> None:
    run.commands.append(CloseMapRun(frame["fan"]["map_run"], "FAILED"))
    run.record(frame, "MapRunFailed", {"error": failure.error, "cause": failure.cause})
    run.release(frame)
    fail(run, frame, failure)


def _gather(run: Run, frame: Frame, state: Map) -> None:
    """All children have ended: ask for their results, or have them written."""
    target = None
    if state.writer is not None and state.writer.parameters is not None:
        document = frame["input"] if state.jsonata else effective_input(run, frame, state)
        target = state.writer.parameters(run.environment(frame, document))
    transformation = state.writer.transformation if state.writer is not None else "NONE"
    lines = state.writer is not None and state.writer.lines
    run.commands.append(Gather(frame["n"], frame["attempt"], frame["fan"]["map_run"], target, transformation, lines))


def gathered(run: Run, frame: Frame, state: Map, output: Any) -> None:
    """The Map Run has succeeded."""
    fan = frame["fan"]
    run.commands.append(CloseMapRun(fan["map_run"], "SUCCEEDED"))
    run.release(frame)
    run.record(frame, "MapRunSucceeded")
    run.record(frame, "MapStateSucceeded", leaf=True)
    if not fan["first"]:
        frame["last"] = fan["opened"]  # observed: unless the Map is the machine's first state
    finish(run, frame, state, output)
