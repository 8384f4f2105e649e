"""What a command prints: tables and colours for a person at a terminal, plain text in a pipe, JSON when asked.

Knows nothing of services; a command hands it rows.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

out = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
err = Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())

STATUS_STYLES = {
    "RUNNING": "cyan", "SUCCEEDED": "green", "FAILED": "red", "TIMED_OUT": "red", "ABORTED": "yellow",
    "Uploaded": "blue", "Pending": "yellow", "Started": "cyan", "Completed": "green", "Failed": "red",
}  # fmt: skip


def as_json(value: Any) -> None:
    """Print `value` as one JSON document; instants become ISO texts."""
    print(json.dumps(value, default=_plain, indent=2 if sys.stdout.isatty() else None))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def styled(text: str) -> Text:
    """A status in its colour, any other text as it is."""
    return Text(text, style=next((s for word, s in STATUS_STYLES.items() if text.startswith(word)), status_style(text)))


def status_style(text: str) -> str:
    """The colour of a CloudFormation-like status."""
    if text.endswith("_FAILED") or "ROLLBACK" in text:
        return "red"
    return "green" if text.endswith("_COMPLETE") else ""


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str, title: str | None = None) -> None:
    """Rows under their columns; `empty` says how to begin when there is none. Tab-separated in a pipe."""
    listed = [[cell(value) for value in row] for row in rows]
    if not out.is_terminal:
        for row in listed:
            print("\t".join(row))
        return
    if not listed:
        out.print(f"[dim]{empty}[/dim]")
        return
    grid = Table(title=title, title_justify="left", header_style="bold", box=None, padding=(0, 2, 0, 0))
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in listed:
        grid.add_row(*(styled(value) for value in row))
    out.print(grid)


def cell(value: Any) -> str:
    """One value as text: instants in the viewer's zone."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return str(value)


def fail(message: str) -> None:
    """Say what went wrong."""
    err.print(Text("Error: ", style="bold red") + Text(message))
