"""The project speaks of itself alone, and its lock file names no package host."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.stdout.split("\0") if name]


def test_the_lock_file_names_no_host() -> None:
    assert not re.search(r"https?://|index-url|find-links", (ROOT / "requirements.lock").read_text())


def test_no_file_leaves_work_undone() -> None:
    unfinished = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b|NotImplemented" + "Error")
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in tracked()
        if file.suffix in {".py", ".md", ".mjs", ".yaml", ".json"} and file.is_file()
        for number, line in enumerate(file.read_text("utf-8", "replace").splitlines(), 1)
        if unfinished.search(line)
    ]
    assert found == []
