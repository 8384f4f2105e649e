"""`muster doctor`: what is wrong with this installation or data folder."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from muster import __version__
from muster.cli import show
from muster.cli.app import Json, app

Verdict = Literal["ok", "warning", "wrong"]
Finding = tuple[Verdict, str, str]

# The oldest SQLite that has all that the store's SQL uses (RETURNING came with 3.35; the tests run from 3.40 on).
SQLITE_MIN = (3, 40, 0)
FREE_BYTES_MIN = 1024**3


@app.command("doctor")
def doctor(
    data: Annotated[Path, typer.Option(help="The data folder to look at.")] = Path(".muster"),
    json: Json = False,
) -> None:
    """Say what is wrong with this installation or data folder; exit code 1 when something is."""
    findings = [*installation(), *folder(data)]
    if json:
        show.as_json([{"verdict": verdict, "what": what, "detail": detail} for verdict, what, detail in findings])
    else:
        marks = {"ok": "[green]✓[/green]", "warning": "[yellow]![/yellow]", "wrong": "[red]✗[/red]"}
        for verdict, what, detail in findings:
            show.out.print(f"{marks[verdict]} {what}: {detail}", soft_wrap=True)
    if any(verdict == "wrong" for verdict, _, _ in findings):
        raise typer.Exit(1)


def installation() -> Iterator[Finding]:
    """What this machine has and lacks."""
    yield "ok", "muster", __version__
    python = ".".join(map(str, sys.version_info[:3]))
    known = (3, 11) <= sys.version_info[:2] <= (3, 13)
    yield ("ok" if known else "warning"), "python", python if known else f"{python}; tested on 3.11 to 3.13"
    if sqlite3.sqlite_version_info >= SQLITE_MIN:
        yield "ok", "sqlite", sqlite3.sqlite_version
    else:
        yield "wrong", "sqlite", f"{sqlite3.sqlite_version} is too old; 3.40 is the least"
    node = shutil.which("node")
    if node:
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
        yield "ok", "node", f"{version} at {node}"
    else:
        yield "warning", "node", "not found: functions with a Node.js runtime cannot run; install Node.js"
    if find_spec("pyarrow"):
        yield "ok", "pyarrow", "found: the forecast example can run"
    else:
        yield "warning", "pyarrow", "not found: the forecast example needs it; pip install 'muster[demo]'"


def folder(path: Path) -> Iterator[Finding]:
    """What there is to say of a data folder."""
    if not path.exists():
        yield "ok", "data", f"{path} is not there yet; `muster up` makes it"
        return
    free = shutil.disk_usage(path).free
    room = f"{free / 1024**3:.1f} GiB free at {path}"
    yield ("ok" if free >= FREE_BYTES_MIN else "warning"), "space", room
    database = path / "muster.db"
    if not database.exists():
        yield (
            "wrong",
            "database",
            f"{path} has no muster.db: it is no data folder of Muster's, or its database was lost",
        )
        return
    try:
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        try:
            broken = [row[0] for row in connection.execute("PRAGMA quick_check(10)") if row[0] != "ok"]
            stuck = connection.execute(
                "SELECT kind, COUNT(*), MAX(last_error) FROM deliveries WHERE last_error IS NOT NULL GROUP BY kind"
            ).fetchall()
            lost = [
                id_ for (id_,) in connection.execute("SELECT id FROM blobs") if not any((path / "blobs").rglob(id_))
            ]
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        yield "wrong", "database", f"{database} cannot be read ({error}); put a backup in its place"
        return
    if broken:
        yield "wrong", "database", f"{database} is damaged: {'; '.join(broken)}; put a backup in its place"
    else:
        yield "ok", "database", f"{database}, {database.stat().st_size / 1024**2:.1f} MiB, sound"
    if lost:
        yield (
            "wrong",
            "blobs",
            f"{len(lost)} objects' contents are missing from {path / 'blobs'}; put a backup in place",
        )
    for kind, count, reason in stuck:
        yield "warning", f"deliveries {kind}", f"{count} failed at least once and will be tried again; last: {reason}"
