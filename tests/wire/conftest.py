"""A running application with an engine that answers as a test tells it to."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import Any

import boto3
import pytest
import uvicorn
from botocore.config import Config
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from muster.operation import Answer, Operation, Service
from muster.transaction import Caller
from muster.wire.app import application

Told = Callable[[str, str, dict[str, Any], Caller], Any]


class ToldEngine:
    """Answers by `tell`; remembers what it was asked."""

    def __init__(self) -> None:
        self.tell: Told = lambda service, operation, request, caller: {}
        self.asked: list[tuple[str, str, Any, Caller]] = []
        self.cancelled = threading.Event()
        self.waiting = threading.Event()

    async def operate(self, service: str, operation: str, request: Any, caller: Caller) -> Answer:
        self.asked.append((service, operation, request, caller))
        answer = self.tell(service, operation, dict(request), caller)
        if answer is not WAIT_FOR_EVER:
            return answer  # type: ignore[no-any-return]
        self.waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        raise AssertionError


WAIT_FOR_EVER = object()

OFFERED = {
    "cloudformation": ("DescribeStacks",),
    "cloudwatch": ("PutMetricData", "ListMetrics"),
    "dynamodb": ("GetItem", "PutItem", "DescribeTable"),
    "events": ("PutEvents",),
    "lambda": ("Invoke", "GetFunction", "CreateFunction", "ListFunctions"),
    "logs": ("DescribeLogGroups",),
    "sns": ("Publish", "ListTopics"),
    "sqs": ("SendMessage", "ReceiveMessage", "GetQueueUrl", "DeleteMessage"),
    "stepfunctions": ("StartExecution",),
    "sts": ("GetCallerIdentity",),
}


class Wire:
    """The application, as clients see it."""

    def __init__(self, engine: ToldEngine, port: int) -> None:
        self.engine = engine
        self.port = port

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            region_name="us-east-1",
            aws_access_key_id="AKID",
            aws_secret_access_key="secret",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            config=Config(retries={"max_attempts": 0}),
        )

    def raw(
        self, method: str = "POST", path: str = "/", body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _broken(request: Request) -> Response:
    raise RuntimeError("secret detail")


@pytest.fixture(scope="module")
def running() -> Iterator[Wire]:
    engine = ToldEngine()
    services = {
        name: Service(name, {operation: Operation(lambda tx, request: {}, frozenset()) for operation in operations})
        for name, operations in OFFERED.items()
    }
    app = application(engine, services, {"/_muster/health": _health, "/_muster/broken": _broken})
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, http="httptools", lifespan="off", log_config=None, access_log=False))
    bound.listen()
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[bound])))
    thread.start()
    yield Wire(engine, bound.getsockname()[1])
    server.should_exit = True
    thread.join()
    bound.close()


@pytest.fixture
def wire(running: Wire) -> Wire:
    running.engine.tell = lambda service, operation, request, caller: {}
    running.engine.asked.clear()
    return running
