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

DEMOS = ("forecast",)
# The examples lie beside the sources.
EXAMPLES = Path(__file__).parents[4] / "examples"


@app.command("demo")
def demo(
    name: Annotated[str, typer.Argument(help="Which scenario: forecast.")] = "forecast",
    keep: Annotated[bool, typer.Option("--keep", help="Leave the server running at the end, until Ctrl-C.")] = False,
) -> None:
    """Run a scenario start to finish on a server of its own, and verify every step."""
    if name not in DEMOS:
        raise MusterError(f"There is no demo {name}; there is: {', '.join(DEMOS)}.")
    example = EXAMPLES / name
    if not example.is_dir():
        raise MusterError(f"The example is not at {example}: run the demo from a copy of Muster's repository.")
    try:
        from muster.cli.demos import forecast
    except ImportError as error:
        raise MusterError(f"The demo reads Parquet files: pip install 'muster[demo]' ({error}).") from error
    with tempfile.TemporaryDirectory(prefix="muster-demo-") as folder:
        server = forecast.tell(Story(show.out), example, Path(folder), keep=keep)
        if keep:
            show.out.print(f"\nThe server goes on at [bold]{server.endpoint}[/bold]; Ctrl-C ends it. Try, elsewhere:")
            show.out.print(f"  export AWS_ENDPOINT_URL={server.endpoint}; muster status")
            try:
                signal.pause()
            except KeyboardInterrupt:
                show.out.print()
            finally:
                server.stop()
