"""The Lambda Runtime API for one worker: it asks for the next event here and brings the outcome back.

Keeps true: a worker gets an event only while one is offered to it, and only the outcome of that event is taken, once.
Each worker has a listener of its own, so none can answer for another. Source:
https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html. Does not know processes, nor where events come from.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import httptools
import orjson

PREFIX = "/2018-06-01/runtime"
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html, with the room that AWS leaves for headers.
RESPONSE_BYTES_MAX = 6_291_556

_REASONS = {
    200: "OK",
    202: "Accepted",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    413: "Payload Too Large",
}


@dataclass(frozen=True, slots=True)
class Event:
    """What a worker is to work on."""

    request_id: str
    payload: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Responded:
    """The handler's result."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Faulted:
    """The handler's (or the initialization's) error, as the runtime describes it."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Overflowed:
    """The handler's result was larger than AWS allows."""


Brought = Responded | Faulted | Overflowed


class RuntimeApi:
    """The listener of one worker, on a port of its own."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
        self._waiting: _Connection | None = None
        self._event: Event | None = None
        self._handed_over = False
        self._brought: asyncio.Future[Brought] | None = None
        self.ready = asyncio.Event()
        self.init_fault: Faulted | None = None
        self.address = ""

    async def open(self) -> None:
        """Listen on loopback; `address` is what AWS_LAMBDA_RUNTIME_API says."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        """Stop listening and hang up."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.hang_up()

    def offer(self, event: Event) -> "asyncio.Future[Brought]":
        """Hand `event` to the worker as soon as it asks; what it brings back."""
        assert self._event is None, "one event at a time"
        self._event = event
        self._handed_over = False
        self._brought = asyncio.get_running_loop().create_future()
        self._hand_over()
        return self._brought

    def _hand_over(self) -> None:
        if self._event is None or self._handed_over or self._waiting is None:
            return
        waiting, self._waiting = self._waiting, None
        self._handed_over = True
        self.ready.clear()
        waiting.answer(
            200, self._event.payload, {"Lambda-Runtime-Aws-Request-Id": self._event.request_id, **self._event.headers}
        )

    def asked(self, connection: "_Connection", method: str, target: str, body: bytes, whole: bool) -> None:
        """A request came in: answer it now, or (the next event) when there is one."""
        parts = target.removeprefix(PREFIX).split("/")[1:] if target.startswith(PREFIX + "/") else []
        match method, parts:
            case "GET", ["invocation", "next"]:
                self._waiting = connection
                self.ready.set()
                self._hand_over()
            case "POST", ["invocation", id_, "response"]:
                self._bring(connection, id_, Responded(body) if whole else Overflowed())
            case "POST", ["invocation", id_, "error"]:
                self._bring(connection, id_, Faulted(body) if whole else Overflowed())
            case "POST", ["init", "error"]:
                self.init_fault = Faulted(body)
                connection.answer_json(202, {"status": "OK"})
            case _:
                connection.answer_json(404, {"errorMessage": f"no such path: {target}", "errorType": "NotFound"})

    def _bring(self, connection: "_Connection", id_: str, brought: Brought) -> None:
        if self._event is None or not self._handed_over or self._event.request_id != id_:
            connection.answer_json(400, {"errorMessage": "Invalid request ID", "errorType": "InvalidRequestID"})
            return
        self._event = None
        if isinstance(brought, Overflowed):
            message = f"Exceeded maximum allowed payload size ({RESPONSE_BYTES_MAX} bytes)."
            connection.answer_json(413, {"errorMessage": message, "errorType": "RequestEntityTooLarge"})
        else:
            connection.answer_json(202, {"status": "OK"})
        if self._brought is not None and not self._brought.done():
            self._brought.set_result(brought)

    def connected(self, connection: "_Connection") -> None:
        self._connections.add(connection)

    def disconnected(self, connection: "_Connection") -> None:
        self._connections.discard(connection)
        if self._waiting is connection:
            self._waiting = None
            self.ready.clear()


class _Connection(asyncio.Protocol):
    """One connection of the worker's HTTP client: requests one after the other."""

    def __init__(self, api: RuntimeApi) -> None:
        self._api = api
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._body = bytearray()
        self._whole = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of this kind without being of this class.
        self._transport = cast(asyncio.Transport, transport)
        self._api.connected(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._api.disconnected(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.hang_up()

    def on_message_begin(self) -> None:
        self._target = b""
        self._body = bytearray()
        self._whole = True

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"expect" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        if len(self._body) + len(body) > RESPONSE_BYTES_MAX:
            self._whole = False
        else:
            self._body += body

    def on_message_complete(self) -> None:
        method = self._parser.get_method().decode("ascii")
        self._api.asked(self, method, self._target.decode("latin-1"), bytes(self._body), self._whole)

    def answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        if self._transport is None:
            return
        lines = [
            f"HTTP/1.1 {status} {_REASONS[status]}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        ]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._transport.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace") + body)

    def answer_json(self, status: int, document: Any) -> None:
        self.answer(status, orjson.dumps(document), {})

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()
