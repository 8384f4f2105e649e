"""What all tests share: where AWS's recorded answers lie, when they lie anywhere."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def conformance() -> Path:
    """The folder with AWS's recorded answers; the test is skipped where there is none."""
    folder = Path(os.environ.get("MUSTER_CONFORMANCE") or Path(__file__).parents[2] / "shared" / "conformance")
    if not folder.is_dir():
        pytest.skip("no recorded answers: set MUSTER_CONFORMANCE to their folder")
    return folder
