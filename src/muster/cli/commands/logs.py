"""`muster logs`: what functions printed."""

import time
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from muster.cli import show
from muster.cli.app import Endpoint, Json, app, server
from muster.cli.client import Client, pages
from muster.errors import MusterError


@app.command("logs")
def logs(
    function: Annotated[
        str | None, typer.Argument(metavar="[FUNCTION]", help="A function's name, or part of it; all when not given.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on printing what comes, until Ctrl-C.")] = False,
    since: Annotated[float, typer.Option(help="How many minutes back to begin.")] = 60.0,
    endpoint: Endpoint = None,
    json: Json = False,
) -> None:
    """Print the logs of functions, oldest first."""
    client = server(endpoint).clients("logs")
    start = int((time.time() - since * 60) * 1000)
    groups = _groups(client, function)
    if function and not groups and not follow:
        raise MusterError(f"No function named like {function!r} has logged anything.")
    seen: set[tuple[str, str]] = set()
    while True:
        lines = [
            (event["timestamp"], event["eventId"], group, event["message"])
            for group in groups
            for event in pages(client, "filter_log_events", "events", logGroupName=group, startTime=start)
            if (group, event["eventId"]) not in seen
        ]
        lines.sort(key=lambda line: (line[0], line[1]))
        for timestamp, id_, group, message in lines:
            seen.add((group, id_))
            _tell(timestamp, group.removeprefix("/aws/lambda/"), message.rstrip("\n"), json)
        if not follow:
            return
        time.sleep(0.5)
        groups = _groups(client, function)


def _groups(client: Client, function: str | None) -> list[str]:
    groups: list[dict[str, Any]] = pages(client, "describe_log_groups", "logGroups", logGroupNamePrefix="/aws/lambda/")
    names = [group["logGroupName"] for group in groups]
    return [name for name in names if function is None or function in name]


def _tell(timestamp: int, function: str, message: str, json: bool) -> None:
    at = datetime.fromtimestamp(timestamp / 1000, UTC)
    if json:
        show.as_json({"at": at, "function": function, "message": message})
        return
    local = at.astimezone().strftime("%H:%M:%S.%f")[:-3]
    if show.out.is_terminal:
        show.out.print(f"[dim]{local}[/dim] [cyan]{function}[/cyan] ", end="")
        show.out.print(message, markup=False)
    else:
        print(f"{local} {function} {message}")
