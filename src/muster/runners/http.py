"""Posts to HTTP(S) endpoints what services have for them, and tells the service what came of it.

Keeps true: one delivery is one request, within its time; a redirect is an answer like any other and is not followed; of
the reply only the status matters, and no more of it is read than a little. Does not decide whether to try again: that
is for the service that is told.
"""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import h11

from muster.operation import CarryOutside, Outcome
from muster.transaction import Carried, Transaction

POST = "http.post"
REPLY_BYTES_MAX = 65_536
REST_SECONDS = 1.0


async def carry(delivery: Carried) -> Outcome:
    """Make the request that the delivery holds.

    Its payload: `url`, `headers`, `body` (text), `seconds`, and under `tell` the `service` and its internal `operation`
    that is told `About` (given back as it came) and either the `Status` or the `Error`.
    """
    request = delivery.payload
    told: dict[str, Any] = {"About": request["tell"]["about"]}
    try:
        body = request["body"].encode()
        told["Status"] = await post(request["url"], request["headers"], body, request["seconds"])
    except TimeoutError:
        told["Error"] = f"The endpoint did not answer within {request['seconds']:g} seconds"
    except (OSError, EOFError, h11.ProtocolError, ValueError) as error:
        told["Error"] = f"The endpoint could not be reached: {type(error).__name__}: {error}"

    def record(tx: Transaction) -> None:
        tx.call(request["tell"]["service"], request["tell"]["operation"], told)

    return record


carriers: Mapping[str, CarryOutside] = {POST: carry}


async def post(url: str, headers: Mapping[str, str], body: bytes, seconds: float) -> int:
    """The status of the endpoint's answer; TimeoutError when there is none within the time."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"not an HTTP address: {url}")
    connection = h11.Connection(h11.CLIENT)
    async with contextlib.AsyncExitStack() as stack:
        async with asyncio.timeout(seconds):
            trust = _trust() if parts.scheme == "https" else None
            port = parts.port or (443 if trust else 80)
            reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=trust)
            stack.callback(writer.close)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            sent = {**_own_headers(parts), **headers, "content-length": str(len(body)), "connection": "close"}
            head = h11.Request(method="POST", target=target, headers=list(sent.items()))
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                writer.write(connection.send(event) or b"")
            await writer.drain()
            status = await _status(connection, reader)
        with contextlib.suppress(OSError, h11.ProtocolError, TimeoutError):
            async with asyncio.timeout(REST_SECONDS):
                await _rest(connection, reader)
    return status


def _own_headers(parts: SplitResult) -> dict[str, str]:
    """What the address says of the request's head."""
    name = parts.hostname or ""
    host = f"[{name}]" if ":" in name else name
    own = {"host": host if parts.port is None else f"{host}:{parts.port}"}
    if parts.username is not None:
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        own["authorization"] = f"Basic {base64.b64encode(credentials.encode()).decode()}"
    return own


async def _event(connection: h11.Connection, reader: asyncio.StreamReader) -> Any:
    while True:
        event = connection.next_event()
        if event is not h11.NEED_DATA:
            return event
        connection.receive_data(await reader.read(REPLY_BYTES_MAX))


async def _status(connection: h11.Connection, reader: asyncio.StreamReader) -> int:
    while True:
        event = await _event(connection, reader)
        if isinstance(event, h11.Response):
            return int(event.status_code)
        if not isinstance(event, h11.InformationalResponse):
            raise EOFError("the connection was closed without an answer")


async def _rest(connection: h11.Connection, reader: asyncio.StreamReader) -> None:
    """Let the endpoint finish its answer, so that it does not meet a closed connection; a long one is cut off."""
    read = 0
    while read < REPLY_BYTES_MAX:
        event = await _event(connection, reader)
        if not isinstance(event, h11.Data):
            return
        read += len(event.data)


@cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()
