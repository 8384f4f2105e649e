"""How a frame moves: data in, data out, on to the next state, or into its Retry and Catch.

Keeps true: the data flow of each query language in AWS's order; a state's output is within the payload limit; variables
take their new values only when the state is left. Does not know what states do in between.

Sources: "Processing input and output", "Passing data between states with variables", States Language "Retrying after
error" and "Fallback states".
"""

from typing import Any

from muster.languages.asl.definition import Catcher, Evaluator, Retrier, State, Working
from muster.languages.asl.environment import Environment
from muster.languages.asl.expressions import dumps
from muster.languages.asl.failures import DATA_LIMIT, PAYLOAD_MAX, RUNTIME, Failure, Refused, StateFailed, matches
from muster.languages.asl.messages import Outcome, Timer
from muster.languages.asl.run import Frame, Run

_IS_TERMINAL = frozenset({RUNTIME})


def enter(run: Run, frame: Frame) -> None:
    """Write that the state is entered."""
    state = run.state_of(frame)
    kind = f"{state.kind}StateEntered"
    details: dict[str, Any] = {"name": state.name}
    follows = run.entries and frame["last"] == run.next - 1 and run.entries[-1][0].endswith("StateExited")
    if not follows:
        details["input"] = dumps(frame["input"])
    number = run.record(frame, kind, details)
    frame["since"] = run.world.now
    frame["event"] = number
    run.transitions += 1


def effective_input(run: Run, frame: Frame, state: State) -> Any:
    """The input after InputPath."""
    document = frame["input"]
    if state.input is not None:
        document = state.input(run.environment(frame, document))
    if run.trace is not None and not state.jsonata:
        run.trace["afterInputPath"] = document
    return document


def finish(run: Run, frame: Frame, state: Working, result: Any) -> None:
    """A state with a result is done: select, assign, combine, and leave."""
    trace = run.trace
    env = run.environment(frame, result, result=result)
    if state.jsonata:
        output = state.output(env) if state.output is not None else result
        leave(run, frame, state, output, state.assign(env) if state.assign is not None else None, state.next)
        return
    if state.result_selector is not None:
        result = state.result_selector(env)
        env = env.seeing(result)
    if trace is not None:
        trace["afterResultSelector"] = result
    assigned = state.assign(env) if state.assign is not None else None
    output = result if state.result_path is None else state.result_path(frame["input"], result)
    if trace is not None:
        trace["afterResultPath"] = output
    if state.output_path is not None:
        output = state.output_path(env.seeing(output))
    leave(run, frame, state, output, assigned, state.next)


def pass_on(
    run: Run,
    frame: Frame,
    state: State,
    document: Any,
    target: str | None,
    *,
    assign: Evaluator | None = None,
    output: Evaluator | None = None,
) -> None:
    """A state without a result is done: its (effective) input goes on."""
    env = run.environment(frame, document)
    assigned = assign(env) if assign is not None else None
    if state.jsonata:
        result = output(env) if output is not None else document
    else:
        result = state.output_path(env) if state.output_path is not None else document
    leave(run, frame, state, result, assigned, target)


def leave(
    run: Run, frame: Frame, state: State, output: Any, assigned: dict[str, Any] | None, target: str | None
) -> None:
    """Write that the state is left, and go on to `target`, or end the frame's scope."""
    text = dumps(output)
    if len(text) * 4 > PAYLOAD_MAX and len(text.encode()) > PAYLOAD_MAX:
        raise StateFailed(Failure(DATA_LIMIT, too_large(state.name), terminal=True))
    details: dict[str, Any] = {"name": state.name, "output": text}
    if assigned:
        details["assignedVariables"] = {name: dumps(value) for name, value in assigned.items()}
        frame["vars"] = {**frame["vars"], **assigned}
        if run.trace is not None:
            run.trace["variables"] = frame["vars"]
    run.record(frame, f"{state.kind}StateExited", details)
    for member in ("since", "event", "tries", "fan"):
        frame.pop(member, None)
    if target is None:
        run.queue.append((frame, output))
    else:
        frame["at"], frame["input"] = target, output
        run.queue.append(frame["n"])


def too_large(name: str) -> str:
    """AWS's cause of States.DataLimitExceeded."""
    return f"The state/task '{name}' returned a result with a size exceeding the maximum number of bytes service limit."


def failure_of(frame: Frame, refused: Refused) -> Failure:
    """A refused field as a failure of the state the frame is in."""
    cause = (
        f"An error occurred while executing the state '{frame['at']}' (entered at the event id #{frame['event']}). "
        f"{refused.sentence}"
    )
    return Failure(refused.error, cause, terminal=refused.error in _IS_TERMINAL, location=refused.location)


def fail(run: Run, frame: Frame, failure: Failure) -> None:
    """The frame's state failed: retry, catch, or end the frame with the failure."""
    state = run.state_of(frame)
    if failure.location is not None:
        if state.kind == "Map" and "fan" not in frame:
            frame["last"] -= 1  # observed: this event's predecessor is the one before MapStateEntered
        run.record(
            frame,
            "EvaluationFailed",
            {"error": failure.error, "cause": failure.cause, "location": failure.location, "state": state.name},
        )
    run.keep()
    if failure.terminal:
        conclude(run, frame, failure)  # observed: without a word from the Parallel and Map states around it
        return
    run.release(frame, abandoned=True)
    if isinstance(state, Working):
        if retry(run, frame, state, failure):
            run.stopped = None
            return
        _note_failed(run, frame, state, failure)
        for place, catcher in enumerate(state.catchers):
            if matches(failure, catcher.errors):
                if run.trace is not None:
                    run.trace["errorDetails"] = {"catchIndex": place}
                caught(run, frame, state, catcher, failure)
                run.stopped = None
                return
    run.queue.append((frame, failure))


def _note_failed(run: Run, frame: Frame, state: Working, failure: Failure) -> None:
    """Map and Parallel states have an event for their failure, unless they failed before they began."""
    if state.kind in ("Map", "Parallel") and (frame.pop("began", False) or failure.location is not None):
        run.record(frame, f"{state.kind}StateFailed")


def retry(run: Run, frame: Frame, state: Working, failure: Failure) -> bool:
    """Set a timer for another attempt, if a retrier says so; each retrier counts for itself."""
    for place, retrier in enumerate(state.retriers):
        if not matches(failure, retrier.errors):
            continue
        tries: list[int] = list(frame.get("tries") or [0] * len(state.retriers))
        if tries[place] >= retrier.attempts_max:
            return False
        delay = delay_seconds(retrier, tries[place], run.world.chance.random() if retrier.full_jitter else None)
        if run.trace is not None:
            run.trace["errorDetails"] = {"retryIndex": place, "retryBackoffIntervalSeconds": int(delay)}
        tries[place] += 1
        frame["tries"] = tries
        frame.pop("fan", None)
        frame["attempt"] = run.number()
        frame["armed"] = True
        run.commands.append(Timer(frame["n"], frame["attempt"], "wake", run.world.now + delay))
        return True
    return False


def delay_seconds(retrier: Retrier, tries: int, luck: float | None) -> float:
    """How long to wait before attempt `tries` + 1; `luck` in [0, 1) spreads it when there is full jitter."""
    delay = retrier.interval_seconds * retrier.backoff_rate ** min(tries, 1000) if tries else retrier.interval_seconds
    if retrier.delay_seconds_max is not None:
        delay = min(delay, retrier.delay_seconds_max)
    return delay if luck is None else delay * luck


def caught(run: Run, frame: Frame, state: Working, catcher: Catcher, failure: Failure) -> None:
    """Hand the error output on to the catcher's state."""
    error = failure.output()
    env: Environment = run.environment(frame, error, errorOutput=error)
    assigned = catcher.assign(env) if catcher.assign is not None else None
    if state.jsonata:
        output = catcher.output(env) if catcher.output is not None else error
    else:
        output = error if catcher.result_path is None else catcher.result_path(frame["input"], error)
    leave(run, frame, state, output, assigned, catcher.next)


def conclude(run: Run, frame: Frame, result: Any) -> None:
    """The outermost frame has ended, and with it the execution."""
    if isinstance(result, Failure):
        details = {}
        if result.error is not None:
            details["error"] = result.error
        if result.cause is not None:
            details["cause"] = result.cause
        run.record(frame, "ExecutionFailed", details)
        run.outcome = Outcome("FAILED", failure=result)
    else:
        text = dumps(result)
        run.record(frame, "ExecutionSucceeded", {"output": text})
        run.outcome = Outcome("SUCCEEDED", output=text)
