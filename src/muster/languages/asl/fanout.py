"""Parallel and inline Map states: frames inside a frame, started, gathered, and cut short when one of them fails.

Keeps true: results stand in the order of branches and items, whatever the order of ending; no more iterations run at
once than MaxConcurrency allows. Does not know what happens inside a branch.

The predecessors of these events are as recorded from AWS: an iteration's end is a leaf, and the next iteration follows
what the ended one did last.
"""

from typing import Any

from muster.languages.asl.definition import Map, Parallel
from muster.languages.asl.failures import RUNTIME, Failure, Refused
from muster.languages.asl.flow import effective_input, fail, finish
from muster.languages.asl.run import Frame, Run

CONCURRENCY_MAX = 40  # iterations at once of an inline Map, "Map state in Inline mode"


def start_parallel(run: Run, frame: Frame, state: Parallel) -> None:
    """Start every branch on the same input."""
    document = frame["input"] if state.jsonata else effective_input(run, frame, state)
    env = run.environment(frame, document)
    if state.parameters is not None:
        document = state.parameters(env)
    started = run.record(frame, "ParallelStateStarted")
    frame["began"] = True
    frame["fan"] = {"results": [None] * len(state.branches), "left": len(state.branches)}
    for index, scope in enumerate(state.branches):
        run.branch(frame, scope, index, document, started)


def start_map(run: Run, frame: Frame, state: Map) -> None:
    """Start as many iterations as may run at once."""
    document = frame["input"] if state.jsonata else effective_input(run, frame, state)
    env = run.environment(frame, document)
    concurrency = int(state.concurrency(env)) if state.concurrency is not None else 0
    items = state.items(env) if state.items is not None else document
    if not isinstance(items, list):
        raise Refused(RUNTIME, 'Reference path "$" must point to array.')
    run.record(frame, "MapStateStarted", {"length": len(items)})
    for setting in (state.tolerated_count, state.tolerated_percentage):
        if setting is not None:
            setting(env)  # only checked: thresholds are for distributed Maps
    frame["began"] = True
    frame["fan"] = {
        "items": items,
        "input": document,
        "results": [None] * len(items),
        "left": len(items),
        "next": 0,
        "most": min(concurrency or CONCURRENCY_MAX, CONCURRENCY_MAX),
    }
    if not items:
        _complete_map(run, frame, state)
        return
    for _ in range(min(frame["fan"]["most"], len(items))):
        start_iteration(run, frame, state, frame["last"])


def start_iteration(run: Run, frame: Frame, state: Map, last: int) -> None:
    """Start the next iteration after the event `last`."""
    fan = dict(frame["fan"])
    frame["fan"] = fan
    index = fan["next"]
    fan["next"] = index + 1
    item = {"Index": index, "Value": fan["items"][index]}
    document = item["Value"]
    if state.item_selector is not None:
        seen = run.environment(frame, fan["input"])
        seen.context()["Map"] = {"Item": item}
        document = state.item_selector(seen)
    child = run.branch(frame, state.processor, index, document, last)
    child["item"] = item
    run.record(child, "MapIterationStarted", {"name": state.name, "index": index})


def mocked(run: Run, frame: Frame, state: Parallel | Map) -> None:
    """Do all but run the branches or iterations: their results are given (TestState)."""
    trace = run.trace if run.trace is not None else {}
    document = frame["input"] if state.jsonata else effective_input(run, frame, state)
    env = run.environment(frame, document)
    if state.parameters is not None:
        trace["afterArguments" if state.jsonata else "afterParameters"] = state.parameters(env)
    if isinstance(state, Map):
        items = state.items(env) if state.items is not None else document
        trace["afterItemsPath"] = items
        if state.item_selector is not None and isinstance(items, list):
            selected = []
            for index, value in enumerate(items):
                seen = run.environment(frame, document)
                seen.context()["Map"] = {"Item": {"Index": index, "Value": value}}
                selected.append(state.item_selector(seen))
            trace["afterItemSelector"] = selected
        for name, setting in (
            ("maxConcurrency", state.concurrency),
            ("toleratedFailureCount", state.tolerated_count),
            ("toleratedFailurePercentage", state.tolerated_percentage),
        ):
            if setting is not None:
                trace[name] = setting(env)
    if isinstance(run.mock, Failure):
        fail(run, frame, run.mock)
        return
    trace["result"] = run.mock[0]
    finish(run, frame, state, run.mock[0])


def branch_ended(run: Run, child: Frame, result: Any) -> None:
    """A branch or an iteration has ended, with its output or with a Failure."""
    parent = run.frames[str(child["up"])]
    state = run.state_of(parent)
    if isinstance(state, Map):
        _iteration_ended(run, parent, state, child, result)
        return
    assert isinstance(state, Parallel)
    run.drop(child)
    parent["last"] = child["last"]
    if isinstance(result, Failure):
        abort_children(run, parent)
        fail(run, parent, result)
        return
    fan = parent["fan"]
    fan["results"][child["index"]] = result
    fan["left"] -= 1
    if not fan["left"]:
        run.record(parent, "ParallelStateSucceeded", leaf=True)
        finish(run, parent, state, fan["results"])


def _iteration_ended(run: Run, parent: Frame, state: Map, child: Frame, result: Any) -> None:
    about = {"name": state.name, "index": child["index"]}
    failed = isinstance(result, Failure)
    number = run.record(child, "MapIterationFailed" if failed else "MapIterationSucceeded", about, leaf=True)
    run.drop(child)
    if failed:
        parent["last"] = child["last"]
        abort_children(run, parent, about=state.name)
        fail(run, parent, result)
        return
    parent["last"] = number
    parent["fan"]["results"][child["index"]] = result
    _one_less(run, parent, state, child["last"])


def _one_less(run: Run, frame: Frame, state: Map, last: int) -> None:
    fan = frame["fan"]
    fan["left"] -= 1
    if fan["next"] < len(fan["items"]):
        start_iteration(run, frame, state, last)
    elif not fan["left"]:
        _complete_map(run, frame, state)


def _complete_map(run: Run, frame: Frame, state: Map) -> None:
    run.record(frame, "MapStateSucceeded", leaf=True)
    finish(run, frame, state, frame["fan"]["results"])


def abort_children(run: Run, frame: Frame, about: str | None = None) -> None:
    """Stop everything inside a frame; a Map's iterations and whatever waits have an event for it."""
    for child in run.children(frame):
        if "event" in child:
            state = run.state_of(child)
            if "fan" in child:
                abort_children(run, child, state.name if state.kind == "Map" else None)
            if state.kind in ("Task", "Wait", "Map", "Parallel"):
                run.record(child, f"{state.kind}StateAborted")
        if about is not None:
            run.record(child, "MapIterationAborted", {"name": about, "index": child["index"]})
        run.drop(child)
