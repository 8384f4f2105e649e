"""Task states: what is asked of a service, a function or an activity's workers, and what its answers mean.

Keeps true: an attempt is scheduled once and ends once, by an answer, a timeout or a missed heartbeat. Does not know how
services are asked.

Source: "Service integration patterns"; event types as "HistoryEvent" in the API reference.
"""

from typing import Any

from muster.languages.asl.definition import Task
from muster.languages.asl.expressions import dumps
from muster.languages.asl.failures import DATA_LIMIT, HEARTBEAT_TIMEOUT, PAYLOAD_MAX, TIMEOUT, Failure, Refused
from muster.languages.asl.flow import effective_input, fail, finish, too_large
from muster.languages.asl.integrations import Integration, Kind
from muster.languages.asl.messages import Call, Offer, Timer
from muster.languages.asl.run import Frame, Run

# What each kind of worker calls its events.
_NAMES = {Kind.SERVICE: "Task", Kind.FUNCTION: "LambdaFunction", Kind.ACTIVITY: "Activity"}


def schedule(run: Run, frame: Frame, state: Task) -> None:
    """Ask for the work."""
    integration = state.integration
    document = frame["input"] if state.jsonata else effective_input(run, frame, state)
    frame["attempt"] = run.number()
    if integration.waits_for_token or integration.kind is Kind.ACTIVITY:
        frame["token"] = run.world.chance.token(64)
    env = run.environment(frame, document)
    parameters = state.parameters(env) if state.parameters is not None else document
    if run.trace is not None:
        run.trace["afterArguments" if state.jsonata else "afterParameters"] = parameters
    timeout = state.timeout(env) if state.timeout is not None else None
    heartbeat = state.heartbeat(env) if state.heartbeat is not None else None
    role = state.credentials(env) if state.credentials is not None else None
    text = dumps(parameters)
    if len(text) * 4 > PAYLOAD_MAX and len(text.encode()) > PAYLOAD_MAX:
        raise Refused(DATA_LIMIT, too_large(state.name))
    details: dict[str, Any] = {}
    if timeout is not None:
        details["timeoutInSeconds"] = int(timeout)
    if heartbeat is not None and integration.kind is not Kind.FUNCTION:
        details["heartbeatInSeconds"] = int(heartbeat)
    if role is not None:
        details["taskCredentials"] = {"roleArn": role.get("RoleArn")}
    number, attempt, token = frame["n"], frame["attempt"], frame.get("token")
    if integration.kind is Kind.SERVICE:
        frame["asked"] = {"parameters": text, "region": run.world.region, **_about(integration), **details}
    else:
        frame["asked"] = {"input": text, "resource": integration.resource, **details}
    if integration.kind is Kind.ACTIVITY:
        run.commands.append(Offer(number, attempt, integration.resource, text, token or "", heartbeat))
    else:
        run.commands.append(Call(number, attempt, integration, parameters, token, heartbeat if token else None))
    for purpose, seconds in (("timeout", timeout), ("heartbeat", heartbeat if token else None)):
        if seconds is not None:
            frame["armed"] = True
            run.commands.append(Timer(number, attempt, purpose, run.world.now + seconds))


def _about(integration: Integration) -> dict[str, Any]:
    if integration.kind is not Kind.SERVICE:
        return {}
    return {"resource": integration.action, "resourceType": integration.resource_type}


def taken(run: Run, frame: Frame, state: Task) -> None:
    """Write that the work is scheduled, once someone has taken the request: one that cannot be made leaves no trace."""
    asked = frame.pop("asked", None)
    if asked is None:
        return
    kind = state.integration.kind
    run.record(frame, f"{_NAMES[kind]}Scheduled", asked)
    if kind is not Kind.ACTIVITY:
        run.record(frame, f"{_NAMES[kind]}Started", _about(state.integration))


def submitted(run: Run, frame: Frame, state: Task, output: Any) -> None:
    """The service has taken the request; the task goes on waiting."""
    taken(run, frame, state)
    run.record(frame, "TaskSubmitted", {"output": dumps(output), **_about(state.integration)})


def picked(run: Run, frame: Frame, worker: str | None) -> None:
    """A worker has taken the activity's task."""
    run.record(frame, "ActivityStarted", {"workerName": worker} if worker is not None else {})


def succeeded(run: Run, frame: Frame, state: Task, output: Any) -> None:
    """The work is done."""
    taken(run, frame, state)
    text = dumps(output)
    if len(text) * 4 > PAYLOAD_MAX and len(text.encode()) > PAYLOAD_MAX:
        failed(run, frame, state, DATA_LIMIT, too_large(state.integration.resource))
        return
    run.record(frame, f"{_NAMES[state.integration.kind]}Succeeded", {"output": text, **_about(state.integration)})
    run.release(frame)
    if run.trace is not None:
        run.trace["result"] = output
    finish(run, frame, state, output)


def failed(
    run: Run, frame: Frame, state: Task, error: str | None, cause: str | None, *, heartbeat: bool = False
) -> None:
    """The work failed, or could not be asked for."""
    taken(run, frame, state)
    details: dict[str, Any] = {}
    if error is not None:
        details["error"] = error
    if cause is not None:
        details["cause"] = cause
    timed_out = error in (TIMEOUT, HEARTBEAT_TIMEOUT)
    run.record(
        frame,
        f"{_NAMES[state.integration.kind]}{'TimedOut' if timed_out else 'Failed'}",
        {**details, **_about(state.integration)},
    )
    fail(run, frame, Failure(error, cause, heartbeat=heartbeat))


def overdue(run: Run, frame: Frame, state: Task, purpose: str) -> None:
    """No answer in time."""
    failed(run, frame, state, TIMEOUT, None, heartbeat=purpose == "heartbeat")
