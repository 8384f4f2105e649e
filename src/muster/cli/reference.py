"""The reference pages, printed from the code: commands with their options, operations with their parameters.

`python -m muster.cli.reference FOLDER` writes them; a test checks that they are current.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import muster.cli.commands  # noqa: F401 - each of its modules adds its commands to `app`
from muster.cli.app import app
from muster.server import all_services
from muster.store.blobs import Blobs


def command_page() -> str:
    """Every command, with its arguments and options."""
    lines = ["# Commands", "", "Printed from the code by `make docs`.", ""]
    for path, command in _commands(typer.main.get_command(app), "muster"):
        lines += [f"## `{path}`", "", (command.help or "").strip(), ""]
        for parameter in command.params:
            if parameter.name in ("help", "version"):
                continue
            names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
            if parameter.param_type_name == "argument":
                names = f"`{parameter.metavar or parameter.name.upper()}`"
            default = parameter.default
            shown = (
                f" Default: `{default}`."
                if isinstance(default, (str, int, float, Path)) and default is not False
                else ""
            )
            lines.append(f"- {names}: {getattr(parameter, 'help', None) or ''}{shown}")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
        return
    for name, child in sorted(children.items()):
        yield from _commands(child, f"{path} {name}")


def operation_page() -> str:
    """Every operation of every service that a client can ask for, and the parameters it supports."""
    lines = [
        "# Operations",
        "",
        "Printed from the code by `make docs`. An operation or parameter that is not listed is refused by name.",
        "",
    ]
    with tempfile.TemporaryDirectory() as folder:
        services = all_services("http://127.0.0.1:4566", Blobs(Path(folder)))
    for service in sorted(services, key=lambda service: service.name):
        lines += [f"## {service.name}", "", "| operation | parameters |", "|---|---|"]
        for name, operation in sorted(service.operations.items()):
            if not operation.internal:
                lines.append(f"| {name} | {', '.join(sorted(operation.accepts)) or '–'} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


PAGES = {"commands.md": command_page, "operations.md": operation_page}


def main(folder: Path) -> None:
    """Write the pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (folder / name).write_text(page())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
