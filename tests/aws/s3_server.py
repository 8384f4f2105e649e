"""S3 behind a real HTTP server in this process, for clients that do not know the difference."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import boto3
import uvicorn
from botocore.config import Config

from muster.clock import SystemClock
from muster.engine import Dispatcher, Engine, Runner
from muster.ids import SystemIds
from muster.operation import Operations, Service
from muster.services import s3
from muster.store import blobs as blob_rows
from muster.store.blobs import Blobs
from muster.store.port import Realm
from muster.store.sqlite import SqliteStore
from muster.wire.app import application
from muster.wire.s3 import S3Wire


class S3Server:
    """A server on a free port, in a thread of its own."""

    def __init__(self, folder: Path, siblings: tuple[Service, ...] = ()) -> None:
        self.blobs = Blobs(folder / "blobs")
        services = {service.name: service for service in (s3.service(self.blobs), *siblings)}
        clock, ids, operations, realm = SystemClock(), SystemIds(), Operations(services), Realm()
        self.store = SqliteStore(folder / "muster.db", clock, ids, operations, realm)
        self.engine = Engine(self.store, operations, clock)
        self._services = services
        runners = {kind: Runner(carry) for kind, carry in s3.runners(self.blobs).items()}
        runners[blob_rows.REMOVE] = Runner(self.blobs.carry_removal)
        carriers = {kind: carry for service in services.values() for kind, carry in service.carriers.items()}
        self._make_dispatcher: Callable[[], Dispatcher] = lambda: Dispatcher(self.store, clock, ids, carriers, runners)
        # Named TCP, or asyncio does not switch Nagle off and every answer waits for an acknowledgement.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "S3Server":
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._http.should_exit = True
        self._thread.join(20)
        self._socket.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        parts = {name: service.migrations for name, service in self._services.items()}
        await self.store.open({blob_rows.PART: blob_rows.MIGRATIONS, **parts})
        app = application(self.engine, self._services, {}, S3Wire(self.engine, self.blobs, Realm()))
        config = uvicorn.Config(
            app,
            http="httptools",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        self._http = uvicorn.Server(config)
        self._http.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]
        carrying = asyncio.create_task(self._make_dispatcher().run())
        serving = asyncio.create_task(self._http.serve(sockets=[self._socket]))
        while not self._http.started:
            await asyncio.sleep(0.001)
        self._started.set()
        await serving
        carrying.cancel()
        await asyncio.gather(carrying, return_exceptions=True)
        await self.store.close()

    def run(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Run a coroutine on the server's loop."""
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(30)

    def client(self, **config: Any) -> Any:
        """A boto3 client of this server."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="AKIDEXAMPLE",
            aws_secret_access_key="secret",
            config=Config(retries={"max_attempts": 0}, **config),
        )

    def files(self) -> list[Path]:
        return [path for path in self.blobs.folder.rglob("*") if path.is_file()]


@contextlib.contextmanager
def serving(folder: Path, siblings: tuple[Service, ...] = ()) -> Iterator[S3Server]:
    with S3Server(folder, siblings) as server:
        yield server
