"""One real server for the commands' tests, and `muster` run as a process, in a pipe."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from muster.cli.client import Clients, clients
from muster.testing import ServerProcess

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder: Path = tmp_path_factory.mktemp("server")
    with ServerProcess(folder / "data") as process:
        yield process


@pytest.fixture
def aws(server: ServerProcess) -> Clients:
    return clients(server.endpoint)


@pytest.fixture
def muster(server: ServerProcess) -> Run:
    """Run a command against the server, with nobody at a terminal."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "muster", *arguments],
            env={**os.environ, "AWS_ENDPOINT_URL": server.endpoint},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run
