"""The step: a machine, an execution's state and a cause give a decision.

Keeps true: no I/O, no clock, no chance but what it is handed; the same arguments give the same decision. A step goes
through every state it can take without an answer from outside, or until its budget of transitions is spent.
"""

from typing import Any, assert_never

from muster.languages.asl import distributed, fanout, tasks
from muster.languages.asl.definition import Choice, Fail, Machine, Map, Parallel, Pass, State, Succeed, Task, Wait
from muster.languages.asl.failures import NO_CHOICE, RUNTIME, TIMEOUT, Failure, Refused, StateFailed
from muster.languages.asl.flow import conclude, effective_input, enter, fail, failure_of, finish, pass_on
from muster.languages.asl.messages import (
    Aborted,
    Cause,
    ChildEnded,
    Continued,
    Decision,
    Failed,
    Fired,
    Gathered,
    Items,
    Outcome,
    Picked,
    Redriven,
    Started,
    Submitted,
    Succeeded,
    Taken,
    TimedOut,
    Timer,
    Tuned,
    Unusable,
)
from muster.languages.asl.run import Frame, HistoryFull, Run, World

BUDGET = 500  # transitions a step makes before it is cut, so that an endless loop lets others pass


def step(machine: Machine, state: dict[str, Any], cause: Cause, world: World, *, budget: int = BUDGET) -> Decision:
    """Decide what follows from `cause`. The state handed in is used up; the decision holds the new one."""
    run = Run(machine, state, world)
    try:
        _take(run, cause)
        _go_on(run, budget)
    except HistoryFull:
        _out_of_history(run)
    return _decision(run)


def inspect(
    machine: Machine,
    state: dict[str, Any],
    cause: Cause,
    world: World,
    trace: dict[str, Any],
    *,
    budget: int = 1,
    mock: Any = None,
) -> Decision:
    """A step that notes the stages of the data flow in `trace` (TestState's inspection data). `mock` is what a Map or
    Parallel state answers without running: a Failure, or a tuple of one value."""
    run = Run(machine, state, world)
    run.trace = trace
    run.mock = mock
    _take(run, cause)
    _go_on(run, budget)
    return _decision(run)


def _decision(run: Run) -> Decision:
    if run.outcome is not None:
        if run.outcome.status == "SUCCEEDED":
            run.stopped = {}
        run.keep()
        for frame in run.frames.values():
            run.release(frame, abandoned=True)
        run.frames = run.stopped or {}
        run.queue.clear()
    return Decision(run.state(), run.entries, run.first, run.commands, run.outcome, bool(run.queue), run.transitions)


def _take(run: Run, cause: Cause) -> None:
    """Let the cause do what it does at once."""
    match cause:
        case Started(details):
            run.entries.append(("ExecutionStarted", 0, details))
            run.next += 1
        case Continued():
            pass
        case Redriven(count):
            _redrive(run, count)
        case Aborted(error, reason):
            _end(run, "ABORTED", "ExecutionAborted", error, reason)
        case TimedOut():
            _end(run, "TIMED_OUT", "ExecutionTimedOut", TIMEOUT, None)
        case (
            Taken()
            | Picked()
            | Submitted()
            | Succeeded()
            | Failed()
            | Unusable()
            | Items()
            | ChildEnded()
            | Tuned()
            | Gathered()
            | Fired()
        ):
            frame = run.frame(cause.frame, cause.attempt)
            if frame is not None:
                _guarded(run, frame, cause)
        case _:
            assert_never(cause)


def _redrive(run: Run, count: int) -> None:
    """Every frame with no frames inside it goes on: into its state again, without a second StateEntered event."""
    run.entries.append(("ExecutionRedriven", run.next - 1, {"redriveCount": count}))
    run.next += 1
    for frame in run.frames.values():
        for member in ("attempt", "armed", "token", "asked", "tries"):
            frame.pop(member, None)
        if not run.children(frame):
            frame.pop("fan", None)
            run.queue.append(frame["n"])


def _end(run: Run, status: str, kind: str, error: str | None, cause: str | None) -> None:
    details = {name: value for name, value in (("error", error), ("cause", cause)) if value is not None}
    run.entries.append((kind, 0, details))
    run.next += 1
    # Observed: the event of a timeout names States.Timeout, the execution's description nothing.
    run.outcome = Outcome(status, failure=Failure(error, cause) if status == "ABORTED" else None)


def _go_on(run: Run, budget: int) -> None:
    """Move frames until none can move by itself, or the budget is spent."""
    while run.outcome is None and run.queue:
        if run.transitions < budget:
            turn = run.queue.popleft()
        else:
            ended = next((one for one in run.queue if isinstance(one, tuple)), None)
            if ended is None:
                return
            run.queue.remove(ended)
            turn = ended
        if isinstance(turn, int):
            _guarded(run, run.frames[str(turn)], None)
        elif turn[0]["up"] is None:
            conclude(run, *turn)
        elif str(turn[0]["n"]) in run.frames:
            _guarded(run, run.frames[str(turn[0]["up"])], turn)


def _guarded(run: Run, frame: Frame, what: Any) -> None:
    """Work on the frame; a refused field or a failure in it is the state's failure."""
    try:
        if what is None:
            if "event" not in frame:
                enter(run, frame)
            _work(run, frame, run.state_of(frame))
        elif isinstance(what, tuple):
            fanout.branch_ended(run, *what)
        else:
            _answer(run, frame, run.state_of(frame), what)
    except Refused as refused:
        _failed(run, frame, failure_of(frame, refused))
    except StateFailed as why:
        _failed(run, frame, why.failure)


def _failed(run: Run, frame: Frame, failure: Failure) -> None:
    if "fan" in frame and not failure.terminal:
        fanout.abort_children(run, frame)
    try:
        fail(run, frame, failure)
    except Refused as refused:  # a catcher's own expressions
        run.queue.append((frame, failure_of(frame, refused)))
    except StateFailed as why:
        run.queue.append((frame, why.failure))


def _work(run: Run, frame: Frame, state: State) -> None:
    """Do what the state does on entry, or again after a retry's delay."""
    match state:
        case Pass():
            _pass(run, frame, state)
        case Task():
            tasks.schedule(run, frame, state)
        case Choice():
            _choose(run, frame, state)
        case Wait():
            _wait(run, frame, state)
        case Succeed():
            document = frame["input"] if state.jsonata else effective_input(run, frame, state)
            pass_on(run, frame, state, document, None, assign=state.assign, output=state.output)
        case Fail():
            env = run.environment(frame, frame["input"])
            if run.trace is not None:
                run.trace["afterInputPath"] = frame["input"]
            error = state.error(env) if state.error is not None else None
            cause = state.cause(env) if state.cause is not None else None
            run.keep()
            run.queue.append((frame, Failure(error, cause)))
        case Parallel() | Map() if run.mock is not None:
            fanout.mocked(run, frame, state)
        case Parallel():
            fanout.start_parallel(run, frame, state)
        case Map(distributed=True):
            distributed.start(run, frame, state)
        case Map():
            fanout.start_map(run, frame, state)


def _pass(run: Run, frame: Frame, state: Pass) -> None:
    if state.result is not None:
        if run.trace is not None:
            run.trace["result"] = state.result[0]
        finish(run, frame, state, state.result[0])
        return
    if state.jsonata:
        finish(run, frame, state, frame["input"])
        return
    document = effective_input(run, frame, state)
    if state.parameters is not None:
        document = state.parameters(run.environment(frame, document))
    if run.trace is not None:
        run.trace["afterParameters"] = document
    finish(run, frame, state, document)


def _choose(run: Run, frame: Frame, state: Choice) -> None:
    document = frame["input"] if state.jsonata else effective_input(run, frame, state)
    env = run.environment(frame, document)
    for rule in state.rules:
        if rule.holds(env):
            output = rule.output if rule.output is not None else None
            pass_on(run, frame, state, document, rule.next, assign=rule.assign, output=output)
            return
    if state.default is None:
        raise Refused(NO_CHOICE, "Failed to transition out of the state. The state does not point to a next state.")
    pass_on(run, frame, state, document, state.default, assign=state.assign, output=state.output)


def _wait(run: Run, frame: Frame, state: Wait) -> None:
    document = frame["input"] if state.jsonata else effective_input(run, frame, state)
    env = run.environment(frame, document)
    if state.seconds is not None:
        due_at = run.world.now + float(state.seconds(env))
    else:
        assert state.until is not None
        due_at = float(state.until(env))
    if due_at <= run.world.now:
        _woken(run, frame, state)
        return
    frame["attempt"] = run.number()
    frame["armed"] = True
    run.commands.append(Timer(frame["n"], frame["attempt"], "wake", due_at))


def _woken(run: Run, frame: Frame, state: Wait) -> None:
    document = frame["input"] if state.jsonata else effective_input(run, frame, state)
    pass_on(run, frame, state, document, state.next, assign=state.assign, output=state.output)


def _answer(run: Run, frame: Frame, state: State, cause: Cause) -> None:
    """An answer to what the frame waits for."""
    match cause:
        case Fired(purpose="wake"):
            for member in ("attempt", "armed"):
                frame.pop(member, None)
            if isinstance(state, Wait):
                _woken(run, frame, state)
            else:
                run.transitions += 1
                _work(run, frame, state)
        case Fired(purpose=purpose):
            assert isinstance(state, Task)
            tasks.overdue(run, frame, state, purpose)
        case Taken():
            assert isinstance(state, Task)
            tasks.taken(run, frame, state)
        case Picked(worker=worker):
            tasks.picked(run, frame, worker)
        case Submitted(output=output):
            assert isinstance(state, Task)
            tasks.submitted(run, frame, state, output)
        case Succeeded(output=output):
            assert isinstance(state, Task)
            tasks.succeeded(run, frame, state, output)
        case Failed(error=error, cause=reason):
            if isinstance(state, Map):
                reading = "children" not in frame["fan"]
                (distributed.reading_failed if reading else distributed.writing_failed)(run, frame, reason or "")
            else:
                assert isinstance(state, Task)
                tasks.failed(run, frame, state, error, reason)
        case Items(items=items):
            assert isinstance(state, Map)
            distributed.iterate(run, frame, state, items)
        case ChildEnded(index=index, succeeded=succeeded):
            assert isinstance(state, Map)
            distributed.child_ended(run, frame, state, index, succeeded)
        case Tuned():
            assert isinstance(state, Map)
            distributed.tuned(run, frame, state, cause)
        case Gathered(output=output):
            assert isinstance(state, Map)
            distributed.gathered(run, frame, state, output)
        case Unusable(sentence=sentence):
            frame.pop("asked", None)
            raise Refused(RUNTIME, sentence)


def _out_of_history(run: Run) -> None:
    """Event number 25,000 is the failure itself ("Quotas": maximum execution history size)."""
    failure = Failure(
        RUNTIME,
        f"The execution reached the maximum number of history events ({run.world.history_max}).",
        terminal=True,
    )
    run.entries.append(("ExecutionFailed", run.next - 1, {"error": failure.error, "cause": failure.cause}))
    run.next += 1
    run.outcome = Outcome("FAILED", failure=failure)
