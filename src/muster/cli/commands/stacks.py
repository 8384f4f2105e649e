"""`muster deploy`, `delete`, `stacks`: applications from templates."""

from pathlib import Path
from typing import Annotated

import typer
from botocore.exceptions import ClientError

from muster.cli import show
from muster.cli.app import Endpoint, Json, app, server
from muster.cli.client import Clients, pages
from muster.errors import MusterError
from muster.stacks.package import deploy as deploy_stack

Parameter = Annotated[
    list[str] | None, typer.Option("--parameter", "-p", metavar="KEY=VALUE", help="A template parameter; repeatable.")
]


def parameters_of(given: list[str] | None) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping."""
    pairs = [text.partition("=") for text in given or []]
    wrong = [key for key, equals, _ in pairs if not equals or not key]
    if wrong:
        raise MusterError(f"A parameter is given as KEY=VALUE, not as {wrong[0]!r}.")
    return {key: value for key, _, value in pairs}


def deploy_and_tell(
    application: Path, clients: Clients, name: str | None, parameters: dict[str, str], json: bool
) -> None:
    """Deploy and print what came of it."""
    deployed = deploy_stack(application, clients, name=name, parameters=parameters)
    if json:
        show.as_json(
            {
                "stack": deployed.name,
                "action": deployed.action,
                "outputs": deployed.outputs,
                "warnings": deployed.warnings,
            }
        )
        return
    show.out.print(f"Stack [bold]{deployed.name}[/bold] {deployed.action}.")
    for warning in deployed.warnings:
        show.out.print(f"[yellow]Warning:[/yellow] {warning}")
    for key, value in deployed.outputs.items():
        show.out.print(f"  {key} = ", end="")
        show.out.print(value, markup=False, soft_wrap=True)


@app.command("deploy")
def deploy(
    application: Annotated[Path, typer.Argument(metavar="APP", help="A template (.yaml, .json) or a folder with one.")],
    name: Annotated[
        str | None, typer.Option("--name", help="The stack's name; the folder's or file's when not given.")
    ] = None,
    parameter: Parameter = None,
    endpoint: Endpoint = None,
    json: Json = False,
) -> None:
    """Create or update a stack from a SAM or CloudFormation template, all or nothing."""
    deploy_and_tell(application, server(endpoint).clients, name, parameters_of(parameter), json)


@app.command("delete")
def delete(
    stack: Annotated[str, typer.Argument(help="The stack's name.")],
    endpoint: Endpoint = None,
    json: Json = False,
) -> None:
    """Delete a stack and what belongs to it."""
    cloudformation = server(endpoint).clients("cloudformation")
    described = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
    cloudformation.delete_stack(StackName=stack)
    try:
        after = cloudformation.describe_stacks(StackName=described["StackId"])["Stacks"][0]
    except ClientError:
        after = {"StackStatus": "DELETE_COMPLETE"}
    if after["StackStatus"] != "DELETE_COMPLETE":
        raise MusterError(f"The stack {stack} is not deleted: {after.get('StackStatusReason') or after['StackStatus']}")
    if json:
        show.as_json({"stack": stack, "status": "DELETE_COMPLETE"})
    else:
        show.out.print(f"Stack {stack} deleted.")


@app.command("stacks")
def stacks(endpoint: Endpoint = None, json: Json = False) -> None:
    """List the stacks."""
    found = pages(server(endpoint).clients("cloudformation"), "describe_stacks", "Stacks")
    if json:
        show.as_json(found)
        return
    show.table(
        ("stack", "status", "since", "description"),
        [
            (
                one["StackName"],
                one["StackStatus"],
                one.get("LastUpdatedTime") or one["CreationTime"],
                one.get("Description"),
            )
            for one in found
        ],
        empty="No stacks. Deploy one with `muster deploy FOLDER`.",
    )
