"""The commands and what they have in common: where the server is, JSON or not, and how an error is told."""

import sys
from dataclasses import dataclass
from typing import Annotated

import typer
from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, EndpointConnectionError

from muster import __version__
from muster.cli import show
from muster.cli.client import Clients, clients, endpoint_of
from muster.errors import MusterError

app = typer.Typer(
    name="muster",
    help="Pipelines for files that depend on each other, on a durable runtime that speaks AWS's own protocols.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)

Endpoint = Annotated[
    str | None, typer.Option(help="The server's address; AWS_ENDPOINT_URL or http://127.0.0.1:4566 when not given.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True, slots=True)
class Server:
    """A running server as commands see it."""

    endpoint: str
    clients: Clients


def server(endpoint: str | None) -> Server:
    """The server that a command's options name."""
    address = endpoint_of(endpoint)
    return Server(address, clients(address))


def version(wanted: bool) -> None:
    if wanted:
        print(f"muster {__version__}")
        raise typer.Exit


@app.callback()
def muster(
    version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Pipelines for files that depend on each other, on a durable runtime that speaks AWS's own protocols."""


def main() -> None:
    """Run the command line; the exit code is 0 only when all went well."""
    if not __debug__:
        print("Muster relies on its assertions: run it without -O and PYTHONOPTIMIZE.", file=sys.stderr)
        raise SystemExit(2)
    import muster.cli.commands  # noqa: F401 - each of its modules adds its commands to `app`

    try:
        app()
    except (EndpointConnectionError, ConnectionError) as error:
        show.fail(
            f"no server answers at {error.kwargs.get('endpoint_url', 'the endpoint')}. Start one with `muster up`."
        )
    except ClientError as error:
        details = error.response.get("Error", {})
        show.fail(f"{details.get('Message') or error} ({details.get('Code', 'unknown')})")
    except (BotoCoreError, MusterError, OSError) as error:
        show.fail(str(error))
    raise SystemExit(1)
