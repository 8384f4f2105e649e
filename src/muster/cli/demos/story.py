"""How a demo is told: steps with what was verified in each, and how long each took.

Keeps true: a demo goes on only while every check holds, and its end is reached only when all of them did.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from muster.errors import MusterError

T = TypeVar("T")

PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.02


@dataclass(slots=True)
class Story:
    """A demo under way."""

    console: Console
    timings: list[tuple[str, float]] = field(default_factory=list)
    checks: int = 0

    def title(self, text: str) -> None:
        """Say what the demo is about."""
        self.console.print()
        self.console.rule(f"[bold]{text}[/bold]", align="left")

    def say(self, text: str) -> None:
        """Narrate."""
        self.console.print(f"  {text}")

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """A step of the demo, timed."""
        self.console.print(f"\n[bold cyan]▶[/bold cyan] [bold]{text}[/bold]")
        began = time.perf_counter()
        yield
        self.timings.append((text, time.perf_counter() - began))

    def now(self) -> float:
        """A reading of a clock that only goes forward, in seconds."""
        return time.perf_counter()

    def check(self, holds: object, text: str) -> None:
        """Verify; the demo ends here when it does not hold."""
        if not holds:
            self.console.print(f"  [bold red]✗ {text}[/bold red]")
            raise MusterError(f"The demo stopped: this does not hold: {text}")
        self.checks += 1
        self.console.print(f"  [green]✓[/green] {text}")

    def until(self, look: Callable[[], T | None], what: str) -> T:
        """Look again and again until there is something; the demo ends when it does not come."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            found = look()
            if found:
                return found
            if time.monotonic() > end:
                raise MusterError(f"The demo stopped: this did not come within {PATIENCE_SECONDS:.0f} s: {what}")
            time.sleep(LOOK_SECONDS)

    def end(self, figures: list[tuple[str, str]]) -> None:
        """Sum up: the timings of the steps, and figures of the demo's own."""
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        for text, seconds in self.timings:
            table.add_row(text, f"{seconds:.2f} s")
        for text, figure in figures:
            table.add_row(text, figure)
        self.console.print()
        self.console.print(table)
        self.console.print(f"\n[bold green]All {self.checks} checks held.[/bold green]")
