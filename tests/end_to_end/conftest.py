"""Real servers in processes of their own, and clients for them."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from muster.cli.client import Clients, clients
from muster.testing import ServerProcess

T = TypeVar("T")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path / "data") as process:
        yield process


@pytest.fixture
def aws(server: ServerProcess) -> Clients:
    return clients(server.endpoint)


@pytest.fixture
def until() -> Callable[[Callable[[], Any]], Any]:
    """Ask again until there is an answer; another process gives no signal to wait for."""

    def wait(look: Callable[[], T | None]) -> T:
        end = time.monotonic() + 60
        while not (found := look()):
            assert time.monotonic() < end, "it did not come"
            time.sleep(0.02)
        return found

    return wait
