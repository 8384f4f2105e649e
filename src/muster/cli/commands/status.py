"""`muster status`: what is deployed, what runs, and where every file stands."""

from collections import Counter
from typing import Annotated, Any

import typer
from boto3.dynamodb.types import TypeDeserializer

from muster.cli import show
from muster.cli.app import Endpoint, Json, app, server
from muster.cli.client import Client, pages
from muster.cli.commands.executions import STATUSES, machines

# A table is one of file records when its keys are these (scenario 1: partition key correlation id, sort key file type).
FILE_KEYS = ["correlation_id", "file_type"]


@app.command("status")
def status(
    stack: Annotated[str | None, typer.Argument(metavar="[STACK]", help="Only what belongs to this stack.")] = None,
    endpoint: Endpoint = None,
    json: Json = False,
) -> None:
    """Show stacks, executions by status, and the records of the files."""
    clients = server(endpoint).clients
    cloudformation = clients("cloudformation")
    stacks = pages(cloudformation, "describe_stacks", "Stacks", **({"StackName": stack} if stack else {}))
    owned = _owned(cloudformation, stack) if stack else None
    counts = _executions(clients("stepfunctions"), owned)
    files = _files(clients("dynamodb"), owned)
    if json:
        show.as_json(
            {
                "stacks": [{"name": one["StackName"], "status": one["StackStatus"]} for one in stacks],
                "executions": counts,
                "files": files,
            }
        )
        return
    show.table(
        ("stack", "status", "since"),
        [(one["StackName"], one["StackStatus"], one.get("LastUpdatedTime") or one["CreationTime"]) for one in stacks],
        empty="No stacks. Deploy one with `muster deploy FOLDER`.",
    )
    show.out.print()
    used = [one for one in STATUSES if any(row.get(one) for row in counts.values())]
    show.table(
        ("machine", *used),
        [(name, *(row.get(one, 0) or "" for one in used)) for name, row in counts.items()],
        empty="No state machines.",
    )
    show.out.print()
    show.table(
        ("correlation id", "file", "status", "detail", "updated"),
        [
            (one["correlation_id"], one["file_type"], one.get("status"), explained(one), one.get("updated_at"))
            for one in files
        ],
        empty="No files have arrived. Upload one with `muster put FILE --to BUCKET`.",
    )


def explained(record: dict[str, Any]) -> str:
    """What a record says beyond its status: what it waits for, or why it failed."""
    return str(record.get("waits_for") or record.get("detail") or record.get("error") or "")


def _owned(cloudformation: Client, stack: str) -> set[str]:
    resources = pages(cloudformation, "list_stack_resources", "StackResourceSummaries", StackName=stack)
    return {resource.get("PhysicalResourceId", "") for resource in resources}


def _executions(states: Client, owned: set[str] | None) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for machine in machines(states, None):
        if owned is not None and machine["stateMachineArn"] not in owned:
            continue
        arn = machine["stateMachineArn"]
        counts[machine["name"]] = dict(
            Counter(one["status"] for one in pages(states, "list_executions", "executions", stateMachineArn=arn))
        )
    return counts


def _files(dynamodb: Client, owned: set[str] | None) -> list[dict[str, Any]]:
    deserialize = TypeDeserializer().deserialize
    files: list[dict[str, Any]] = []
    for name in pages(dynamodb, "list_tables", "TableNames"):
        if owned is not None and name not in owned:
            continue
        keys = [key["AttributeName"] for key in dynamodb.describe_table(TableName=name)["Table"]["KeySchema"]]
        if keys != FILE_KEYS:
            continue
        for item in pages(dynamodb, "scan", "Items", TableName=name):
            record = {attribute: deserialize(value) for attribute, value in item.items()}
            record.pop("task_token", None)
            files.append(record)
    files.sort(key=lambda one: (one["correlation_id"], one["file_type"]), reverse=True)
    return files
