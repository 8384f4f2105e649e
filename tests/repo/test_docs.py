"""The documentation is about this code: generated pages are current, links lead somewhere, commands are explained."""

import re
from pathlib import Path

import pytest
import typer

import muster.cli.commands  # noqa: F401 - adds the commands
from muster.cli.app import app
from muster.cli.reference import PAGES

ROOT = Path(__file__).parents[2]
PAGES_WRITTEN = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_current(name: str) -> None:
    written = (ROOT / "docs" / "reference" / name).read_text()
    assert written == PAGES[name](), "run `make docs`"


@pytest.mark.parametrize("page", PAGES_WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://|#|mailto:)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_readme_names_every_command() -> None:
    readme = (ROOT / "README.md").read_text()
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert [name for name in commands if not re.search(rf"`(muster )?{name}\b", readme)] == []
