"""The composition root: settings → store → engine → edges. The only module that knows them all.

Keeps true: nothing listens before the store is open and what the process before left is taken up again; nothing
listens beyond loopback, since requests are not yet verified.
"""

import asyncio
import contextlib
import ipaddress
import signal
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from muster import __version__
from muster.clock import SystemClock
from muster.engine import Dispatcher, Engine, Runner
from muster.errors import MusterError
from muster.folder import DataFolder
from muster.ids import SystemIds
from muster.operation import Operations, Service
from muster.runners import http as http_posts
from muster.runners.functions import FunctionRunner
from muster.services import cloudwatch, dynamodb, events, lambda_, logs, s3, sns, sqs, stepfunctions, sts
from muster.stacks import SERVICE as CLOUDFORMATION
from muster.store import blobs as blob_rows
from muster.store.blobs import Blobs
from muster.store.port import Realm
from muster.store.sqlite import SqliteStore
from muster.wire.app import application
from muster.wire.s3 import S3Wire

# A polite stop gives answers under way this long.
STOP_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person may set: where to listen (port 0: any free one), where to keep, whom to speak for."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 4566
    realm: Realm | None = None
    mocks: stepfunctions.Cases | None = None


class Server:
    """One process on one data folder."""

    def __init__(self, settings: Settings) -> None:
        loopback_only(settings.host)
        self._socket = listen(settings.host, settings.port)
        host, port = self._socket.getsockname()[:2]
        self.endpoint = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        try:
            self._folder = DataFolder(settings.data, settings.realm)
        except MusterError:
            self._socket.close()
            raise
        self.realm = self._folder.realm
        self._mocks = settings.mocks

    async def serve(self, ready: Callable[[], Awaitable[None]]) -> None:
        """Serve until a signal asks to stop; `ready` is called once requests are answered."""
        clock, ids = SystemClock(), SystemIds()
        blobs = Blobs(self._folder.blobs, ids)
        services = {service.name: service for service in all_services(self.endpoint, blobs, self._mocks)}
        operations = Operations(services)
        store = SqliteStore(self._folder.database, clock, ids, operations, self.realm)
        try:
            parts = {name: service.migrations for name, service in services.items()}
            await store.open({blob_rows.PART: blob_rows.MIGRATIONS, **parts})
            engine = Engine(store, operations, clock)
            functions = FunctionRunner(engine, self._folder.path, self.endpoint, region=self.realm.region)
            outside = {
                **functions.carriers,
                **http_posts.carriers,
                **s3.runners(blobs),
                blob_rows.REMOVE: blobs.carry_removal,
            }
            inside = {kind: carry for service in services.values() for kind, carry in service.carriers.items()}
            runners = {kind: Runner(carry) for kind, carry in outside.items()}
            dispatcher = Dispatcher(store, clock, ids, inside, runners)
            await dispatcher.recover()
            await blobs.sweep(store.read, clock.now())
            await functions.start()
            try:
                app = application(engine, services, {"/_muster/health": health}, S3Wire(engine, blobs, self.realm))
                await self._listen(app, dispatcher, ready)
            finally:
                await functions.stop()
        finally:
            await store.close()
            self._folder.close()
            self._socket.close()

    async def _listen(self, app: object, dispatcher: Dispatcher, ready: Callable[[], Awaitable[None]]) -> None:
        config = uvicorn.Config(
            app,  # type: ignore[arg-type]
            http="httptools",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            date_header=True,
            timeout_graceful_shutdown=STOP_SECONDS,
            timeout_keep_alive=75,
        )
        http = uvicorn.Server(config)
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, lambda: setattr(http, "should_exit", True))
        # The signals are ours: a second one while stopping must not cut the store's last commit short.
        http.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]
        carrying = asyncio.create_task(dispatcher.run())
        listening = asyncio.create_task(http.serve(sockets=[self._socket]))
        try:
            while not http.started and not listening.done():
                await asyncio.sleep(0.005)
            if not listening.done():
                await ready()
            done, _ = await asyncio.wait({carrying, listening}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            http.should_exit = True
            await asyncio.gather(listening, return_exceptions=True)
            carrying.cancel()
            await asyncio.gather(carrying, return_exceptions=True)


def all_services(endpoint: str, blobs: Blobs, mocks: stepfunctions.Cases | None = None) -> list[Service]:
    """Every service of this process."""
    return [
        s3.service(blobs),
        events.SERVICE,
        sqs.service(endpoint),
        sns.service(endpoint),
        dynamodb.SERVICE,
        dynamodb.STREAMS,
        lambda_.service(blobs),
        logs.SERVICE,
        cloudwatch.SERVICE,
        stepfunctions.service(mocks) if mocks is not None else stepfunctions.SERVICE,
        sts.SERVICE,
        CLOUDFORMATION,
    ]


async def health(request: Request) -> Response:
    """Whether this process answers, and as what."""
    return JSONResponse({"status": "ok", "version": __version__})


def loopback_only(host: str) -> None:
    """MusterError unless `host` is this machine alone."""
    try:
        addresses = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise MusterError(f"There is no address {host}: {error}. Use 127.0.0.1.") from error
    if not all(ipaddress.ip_address(address).is_loopback for address in addresses):
        raise MusterError(
            f"Muster does not listen on {host}: beyond loopback every request would need verified credentials,"
            " and signatures are not verified yet. Use 127.0.0.1."
        )


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the address; MusterError when it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named in full: asyncio sets TCP_NODELAY on connections of sockets whose protocol says TCP, and on no others.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise MusterError(
            f"Port {port} on {host} cannot be used ({error.strerror}). Give another with --port."
        ) from error
    return bound
