"""`muster up`: serve until Ctrl-C."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli import show
from muster.cli.app import app
from muster.cli.client import clients
from muster.cli.commands.stacks import Parameter, deploy_and_tell, parameters_of
from muster.errors import MusterError
from muster.store.port import Realm

if TYPE_CHECKING:
    from muster.services.stepfunctions import Cases


@app.command("up")
def up(
    application: Annotated[
        Path | None,
        typer.Argument(metavar="[APP]", help="A template (.yaml, .json) or a folder with one, deployed at start."),
    ] = None,
    port: Annotated[int, typer.Option(help="Where to listen; 0 takes a free port.", min=0, max=65535)] = 4566,
    host: Annotated[str, typer.Option(help="The address to listen on; a loopback address.")] = "127.0.0.1",
    data: Annotated[Path, typer.Option(help="The data folder; made when it is not there.")] = Path(".muster"),
    region: Annotated[str | None, typer.Option(help="The region of a new data folder (us-east-1).")] = None,
    account: Annotated[str | None, typer.Option(help="The account id of a new data folder (000000000000).")] = None,
    parameter: Parameter = None,
    mock_config: Annotated[
        Path | None,
        typer.Option("--mock-config", metavar="FILE", help="Test cases of state machines, as in docs/guides/mocks.md."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Serve until Ctrl-C; with APP, deploy it once the server is ready."""
    from muster.server import Server, Settings

    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    parameters = parameters_of(parameter)
    if application is not None and not application.exists():
        raise MusterError(f"There is no {application} to deploy.")
    wished = {name: value for name, value in (("account", account), ("region", region)) if value}
    realm = replace(Realm(), **wished) if wished else None
    settings = Settings(data=data, host=host, port=port, realm=realm, mocks=mocks_of(mock_config))

    async def main() -> None:
        server = Server(settings)

        async def ready() -> None:
            show.out.print(f"Muster is ready at [bold]{server.endpoint}[/bold] (data in {data}). Ctrl-C stops it.")
            if application is not None:
                made = clients(server.endpoint, server.realm.region)
                await asyncio.to_thread(deploy_and_tell, application, made, None, parameters, False)

        await server.serve(ready)

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(main())


def mocks_of(file: Path | None) -> "Cases | None":
    """The test cases of a mock configuration file."""
    if file is None:
        return None
    from muster.services.stepfunctions.mocking import parse

    try:
        return parse(file.read_text(encoding="utf-8"))
    except OSError as why:
        raise MusterError(f"The mock configuration {file} cannot be read: {why.strerror}.") from why


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The faster event loop where there is one (not on Windows)."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
