"""`muster executions`: list, show with history, stop."""

from typing import Annotated, Any

import typer

from muster.cli import show
from muster.cli.app import Endpoint, Json, app, server
from muster.cli.client import Client, pages
from muster.errors import MusterError

executions = typer.Typer(help="Look at executions of state machines, and stop them.", no_args_is_help=False)
app.add_typer(executions, name="executions")

STATUSES = ("RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED", "PENDING_REDRIVE")


@executions.callback(invoke_without_command=True)
def default(context: typer.Context, endpoint: Endpoint = None, json: Json = False) -> None:
    """Without a subcommand: list them."""
    if context.invoked_subcommand is None:
        listed(None, None, 50, endpoint, json)


@executions.command("list")
def listed(
    machine: Annotated[
        str | None, typer.Argument(metavar="[MACHINE]", help="A state machine's name, or part of it.")
    ] = None,
    status: Annotated[str | None, typer.Option(help="One of RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED.")] = None,
    limit: Annotated[int, typer.Option(help="How many to show.", min=1)] = 50,
    endpoint: Endpoint = None,
    json: Json = False,
) -> None:
    """List executions, newest first."""
    states = server(endpoint).clients("stepfunctions")
    if status is not None and status.upper() not in STATUSES:
        raise MusterError(f"There is no status {status}; the statuses are {', '.join(STATUSES)}.")
    found = newest(states, machine, status.upper() if status else None, limit)
    if json:
        show.as_json(found)
        return
    show.table(
        ("machine", "execution", "status", "started", "stopped"),
        [
            (
                one["stateMachineArn"].rsplit(":", 1)[1],
                one["name"],
                one["status"],
                one["startDate"],
                one.get("stopDate"),
            )
            for one in found
        ],
        empty="No executions. One starts when a file arrives that a rule matches.",
    )


@executions.command("show")
def shown(
    execution: Annotated[str, typer.Argument(help="An execution's ARN, or its name or the beginning of it.")],
    endpoint: Endpoint = None,
    json: Json = False,
) -> None:
    """Show one execution: its status, input, output or error, and its history."""
    aws = server(endpoint).clients
    states = aws("stepfunctions")
    arn = find(states, execution)
    described = states.describe_execution(executionArn=arn)
    described.pop("ResponseMetadata", None)
    history = pages(states, "get_execution_history", "events", executionArn=arn)
    warnings = warned(aws("logs"), arn)
    if json:
        show.as_json({**described, "events": history, "warnings": warnings})
        return
    facts = ("status", "startDate", "stopDate", "input", "output", "error", "cause")
    show.out.print(f"[bold]{described['name']}[/bold]", soft_wrap=True)
    for fact in facts:
        if described.get(fact) is not None:
            show.out.print(f"  {fact:<10}", end="")
            show.out.print(show.cell(described[fact]), markup=False, soft_wrap=True)
    for warning in warnings:
        show.out.print(f"  warning    {warning}", markup=False, soft_wrap=True)
    show.table(
        ("id", "after", "at", "event", "details"),
        [
            (event["id"], event["previousEventId"], event["timestamp"], event["type"], details(event))
            for event in history
        ],
        empty="No history.",
    )


@executions.command("stop")
def stopped(
    execution: Annotated[str, typer.Argument(help="An execution's ARN, or its name or the beginning of it.")],
    error: Annotated[str | None, typer.Option(help="The error to record.")] = None,
    cause: Annotated[str | None, typer.Option(help="The cause to record.")] = None,
    endpoint: Endpoint = None,
    json: Json = False,
) -> None:
    """Stop an execution; it ends ABORTED."""
    states = server(endpoint).clients("stepfunctions")
    arn = find(states, execution)
    reasons = {name: value for name, value in (("error", error), ("cause", cause)) if value is not None}
    answer = states.stop_execution(executionArn=arn, **reasons)
    if json:
        show.as_json({"executionArn": arn, "stopDate": answer["stopDate"]})
    else:
        show.out.print(f"Stopped {arn.rsplit(':', 1)[1]}.")


def machines(states: Client, like: str | None) -> list[dict[str, Any]]:
    """The state machines whose names contain `like`."""
    found = pages(states, "list_state_machines", "stateMachines")
    return [one for one in found if like is None or like in one["name"] or like == one["stateMachineArn"]]


def newest(states: Client, machine: str | None, status: str | None, limit: int) -> list[dict[str, Any]]:
    """The newest executions of the machines named so, over all of them."""
    found: list[dict[str, Any]] = []
    for one in machines(states, machine):
        wanted: dict[str, Any] = {"stateMachineArn": one["stateMachineArn"], "maxResults": min(limit, 1000)}
        if status:
            wanted["statusFilter"] = status
        while True:
            page = states.list_executions(**wanted)
            found.extend(page["executions"])
            if len(found) >= limit or "nextToken" not in page:
                break
            wanted["nextToken"] = page["nextToken"]
    found.sort(key=lambda one: one["startDate"], reverse=True)
    return found[:limit]


def find(states: Client, execution: str) -> str:
    """The ARN of the one execution that `execution` names."""
    if execution.startswith("arn:"):
        return execution
    found = [one["executionArn"] for one in newest(states, None, None, 100_000) if one["name"].startswith(execution)]
    exact = [arn for arn in found if arn.rsplit(":", 1)[1] == execution]
    if len(exact or found) != 1:
        what = f"{len(found)} executions begin with" if found else "There is no execution named"
        raise MusterError(f"{what} {execution!r}; `muster executions list` shows them.")
    return str((exact or found)[0])


def warned(logs: Client, arn: str) -> list[str]:
    """What the server warned of: limits the execution has come close to."""
    stream = "/".join(arn.split(":")[6:])
    try:
        found = logs.get_log_events(logGroupName="/muster/executions", logStreamName=stream, startFromHead=True)
    except logs.exceptions.ResourceNotFoundException:
        return []
    return [event["message"] for event in found["events"]]


def details(event: dict[str, Any]) -> str:
    """What a history event says, in a line."""
    inside: dict[str, Any] = next(
        (value for name, value in event.items() if name.endswith("EventDetails") and value), {}
    )
    said = [
        str(inside[name])
        for name in ("name", "resourceType", "resource", "error", "cause", "output", "input")
        if inside.get(name) not in (None, "")
    ]
    text = "  ".join(said)
    return text if len(text) <= 160 else text[:157] + "…"
