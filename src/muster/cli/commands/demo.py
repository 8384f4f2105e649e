"""`muster demo`: the scenarios, start to finish, narrated; exit code 0 only when all of it held."""

import signal
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from muster.cli import show
from muster.cli.app import app
from muster.cli.demos.story import Story
from muster.errors import MusterError
from muster.testing import ServerProcess

DEMOS = ("forecast", "orders")
# The examples lie beside the sources.
EXAMPLES = Path(__file__).parents[4] / "examples"


@app.command("demo")
def demo(
    name: Annotated[str, typer.Argument(help="Which scenario: forecast or orders.")] = "forecast",
    orders: Annotated[int, typer.Option("--orders", help="Of the scenario orders: how many, from 100 on.")] = 1000,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the server running at the end, until Ctrl-C.")] = False,
) -> None:
    """Run a scenario start to finish on a server of its own, and verify every step."""
    if name not in DEMOS:
        raise MusterError(f"There is no demo {name}; there is: {', '.join(DEMOS)}.")
    example = EXAMPLES / name
    if not example.is_dir():
        raise MusterError(f"The example is not at {example}: run the demo from a copy of Muster's repository.")
    with tempfile.TemporaryDirectory(prefix="muster-demo-") as folder:
        server = _told(name, example, Path(folder), orders, keep)
        if keep:
            show.out.print(f"\nThe server goes on at [bold]{server.endpoint}[/bold]; Ctrl-C ends it. Try, elsewhere:")
            show.out.print(f"  export AWS_ENDPOINT_URL={server.endpoint}; muster status")
            try:
                signal.pause()
            except KeyboardInterrupt:
                show.out.print()
            finally:
                server.stop()


def _told(name: str, example: Path, data: Path, orders: int, keep: bool) -> ServerProcess:
    """The demo's server, once the demo has been told."""
    story = Story(show.out)
    if name == "orders":
        from muster.cli.demos import orders as burst

        return burst.tell(story, example, data, orders=orders, keep=keep)
    try:
        from muster.cli.demos import forecast
    except ImportError as error:
        raise MusterError(f"The demo reads Parquet files: pip install 'muster[demo]' ({error}).") from error
    return forecast.tell(story, example, data, keep=keep)
