"""The HTTP edge: an ASGI application from bytes to an operation and back.

Keeps true: a body is read up to its service's limit and no further; a refusal has AWS's shape in the protocol of the
request; a fault of Muster's own is told to the log with its traceback and to the client by its request id alone; a
client that goes away ends its wait. Does not know what the operations do, nor S3's wire, which it hands over whole.
"""

import asyncio
import ipaddress
import logging
import random
import zlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Protocol

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from muster import models
from muster.errors import ServiceError, unsupported
from muster.operation import Answer, Request, Service
from muster.transaction import Caller
from muster.wire import codec, routing
from muster.wire.message import Encoded, Incoming, Misread
from muster.wire.signature import ANONYMOUS, Scope, scope_of

log = logging.getLogger("muster.wire")

AsgiScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
RouteHandler = Callable[[HttpRequest], Awaitable[Response]]

MIB = 1024 * 1024
# How much of a body is read. Each is AWS's own limit on a request, with room for what an encoding adds to it: a message
# of 1 MiB may be escaped in JSON to several times its size, a 50 MB package is a third larger in Base64.
BODY_BYTES_MAX = {"dynamodb": 24 * MIB, "lambda": 72 * MIB, "sqs": 8 * MIB}
BODY_BYTES_MAX_ELSEWHERE = 8 * MIB

# A request that takes longer than this is watched for its client going away; most never pay for the watch.
WATCHED_AFTER_SECONDS = 0.25

INTERNAL_CODES = {
    "dynamodb": "InternalServerError",
    "dynamodbstreams": "InternalServerError",
    "events": "InternalException",
    "lambda": "ServiceException",
    "logs": "ServiceUnavailableException",
    "s3": "InternalError",
    "sns": "InternalError",
}
INTERNAL_MESSAGE = "An internal error occurred. The server's log tells more under this request's id."


class Engine(Protocol):
    """What answers."""

    async def operate(self, service: str, operation: str, request: Request, caller: Caller) -> Answer: ...


class S3Handler(Protocol):
    """S3's own wire."""

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send, caller: Caller) -> None: ...


class ClientGone(Exception):
    """The client went away before it had sent all or was answered."""


def application(
    engine: Engine,
    services: Mapping[str, Service],
    extra_routes: Mapping[str, RouteHandler],
    s3: S3Handler | None = None,
    *,
    new_id: Callable[[], str] | None = None,
) -> Asgi:
    """The ASGI application that offers `services`, S3 by its own handler, and what lies under `/_muster/`.

    `extra_routes` maps a path to its handler; a path that ends in `/` stands for everything below it.
    """
    return _Application(engine, services, extra_routes, s3, new_id or _request_id)


def _request_id() -> str:
    """A UUID that tells requests apart. It is no secret, so it does not ask the operating system each time."""
    digits = f"{random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


class _Application:
    def __init__(
        self,
        engine: Engine,
        services: Mapping[str, Service],
        extra_routes: Mapping[str, RouteHandler],
        s3: S3Handler | None,
        new_id: Callable[[], str],
    ) -> None:
        self._engine = engine
        self._services = services
        self._extra_routes = extra_routes
        self._s3 = s3
        self._new_id = new_id

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if scope["path"].startswith("/_muster"):
                await self._extra(scope, receive, send)
            else:
                await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await _live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1003})

    async def _extra(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        handler = self._extra_routes.get(path) or next(
            (found for prefix, found in self._extra_routes.items() if prefix.endswith("/") and path.startswith(prefix)),
            None,
        )
        if handler is None:
            answer = Response(f"There is no page {path} here.\n", status_code=404, media_type="text/plain")
        else:
            try:
                answer = await handler(HttpRequest(scope, receive))
            except Exception:
                log.exception("%s %s failed", scope["method"], path)
                answer = Response("An internal error occurred; the log tells more.\n", status_code=500)
        await answer(scope, receive, send)

    async def _answer(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        incoming = _head(scope)
        request_id = self._new_id()
        service, protocol = "s3", "rest-xml"
        signed = ANONYMOUS
        try:
            try:
                signed = scope_of(incoming.headers, incoming.query)
            finally:
                # A signature that is not one still gets its refusal in the protocol of the rest.
                service, protocol = routing.service_of(incoming, signed)
            source = _source(scope, signed)
            caller = Caller(signed.access_key, source, request_id)
            if service == "s3":
                await self._object_storage(scope, receive, send, caller)
                return
            limit = BODY_BYTES_MAX.get(service, BODY_BYTES_MAX_ELSEWHERE)
            body = await _body(incoming.headers, receive, limit)
            incoming = Incoming(incoming.method, incoming.path, incoming.query, incoming.headers, body)
            try:
                route = routing.route(incoming, service, protocol)
            except (Misread, UnicodeDecodeError) as problem:
                raise _unreadable(service, protocol, str(problem)) from None
            if route is routing.S3:
                await self._object_storage(scope, _again(body), send, caller)
                return
            service = route.service
            answer = await self._operate(route, incoming, caller, receive)
            encoded = codec.operation(service, route.operation, protocol).encode(answer, request_id)
        except ClientGone:
            return
        except ServiceError as error:
            encoded = codec.encode_error(service, _spelled(error, protocol), request_id, protocol)
        except Exception:
            log.exception("request %s to %s failed", request_id, service)
            internal = ServiceError(INTERNAL_CODES.get(service, "InternalFailure"), INTERNAL_MESSAGE, status=500)
            encoded = codec.encode_error(service, internal, request_id, protocol)
        await _send(send, encoded)

    async def _object_storage(self, scope: AsgiScope, receive: Receive, send: Send, caller: Caller) -> None:
        if self._s3 is None:
            raise unsupported("the service s3")
        begun = False

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._s3(scope, receive, sending, caller)
        except Exception:
            if not begun:
                raise
            # Half an answer is out: the server cuts the connection, so that the client sees that it is not whole.
            log.exception("request %s to s3 failed while it was answered", caller.request_id)

    async def _operate(self, route: routing.Route, incoming: Incoming, caller: Caller, receive: Receive) -> Answer:
        service, name, protocol = route.service, route.operation, route.protocol
        offered = self._services.get(service)
        if offered is None or name not in offered.operations:
            raise _not_offered(offered, route)
        if protocol == "json":
            _content_type(incoming)
        try:
            request = codec.operation(service, name, protocol).decode(incoming, route.uri)
        except Misread as problem:
            raise _unreadable(service, protocol, str(problem)) from None
        except RecursionError:
            raise _unreadable(service, protocol, "The request is nested too deeply") from None
        models.validate(service, name, request)
        return await _watched(self._engine.operate(service, name, request, caller), receive)


def _head(scope: AsgiScope) -> Incoming:
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1")
        value = raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    raw_path = scope.get("raw_path")
    path = raw_path.decode("latin-1") if raw_path else scope["path"]
    return Incoming(scope["method"], path, scope["query_string"].decode("latin-1"), headers)


def _source(scope: AsgiScope, signed: Scope) -> str:
    """The client's address. Whoever is not on this machine has to sign."""
    client = scope.get("client")
    address: str = client[0] if client else "127.0.0.1"
    if signed is ANONYMOUS and not _is_loopback(address):
        raise ServiceError("MissingAuthenticationToken", "Request is missing Authentication Token")
    return address


def _is_loopback(address: str) -> bool:
    if address == "127.0.0.1":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


async def _body(headers: Mapping[str, str], receive: Receive, limit: int) -> bytes:
    """The whole body; ServiceError when it is, or says it is, longer than `limit`."""
    stated = headers.get("content-length")
    if stated is not None and (not stated.isdigit() or len(stated) > 18 or int(stated) > limit):
        raise _too_large(limit)
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        gathered = bytearray(body)
        while message.get("more_body"):
            if len(gathered) > limit:
                raise _too_large(limit)
            message = await receive()
            gathered += message.get("body", b"")
        body = bytes(gathered)
    if message["type"] == "http.disconnect":
        raise ClientGone
    if len(body) > limit:
        raise _too_large(limit)
    encoding = headers.get("content-encoding", "")
    return _gunzipped(body, limit) if encoding == "gzip" else body


def _gunzipped(body: bytes, limit: int) -> bytes:
    """What a client compressed (CloudWatch's do with larger bodies), to the same limit."""
    unpack = zlib.decompressobj(wbits=31)
    try:
        plain = unpack.decompress(body, limit + 1)
    except zlib.error:
        raise ServiceError("SerializationException", "The body is not gzip.", status=400) from None
    if len(plain) > limit:
        raise _too_large(limit)
    if not unpack.eof:
        raise ServiceError("SerializationException", "The gzip of the body ends too early.", status=400)
    return plain


def _too_large(limit: int) -> ServiceError:
    return ServiceError("RequestEntityTooLargeException", f"The request is larger than {limit} bytes.", status=413)


def _again(body: bytes) -> Receive:
    """A body that was read already, to be read once more."""
    waiting = [body]

    async def receive() -> MutableMapping[str, Any]:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        await asyncio.Event().wait()
        raise AssertionError

    return receive


async def _watched(work: Awaitable[Answer], receive: Receive) -> Answer:
    """Wait for the answer; ClientGone, with the work cancelled, when nobody waits for it any more."""
    task = asyncio.current_task()
    assert task is not None
    watching: asyncio.Task[None] | None = None
    gone = False

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True
        task.cancel()

    def begin() -> None:
        nonlocal watching
        watching = asyncio.create_task(watch())

    later = asyncio.get_running_loop().call_later(WATCHED_AFTER_SECONDS, begin)
    try:
        return await work
    except asyncio.CancelledError:
        if not gone:
            raise
        task.uncancel()
        raise ClientGone from None
    finally:
        later.cancel()
        if watching is not None:
            watching.cancel()


def _not_offered(offered: Service | None, route: routing.Route) -> ServiceError:
    service, name, protocol = route.service, route.operation, route.protocol
    if offered is None:
        return unsupported(f"the service {service}" + (f" (asked for {service}:{name})" if name else ""))
    if models.has(service, name):
        return unsupported(f"the operation {service}:{name}")
    if protocol == "query":
        if not name:
            return ServiceError("MissingAction", "The request must contain the parameter Action.", status=400)
        return ServiceError("InvalidAction", f"The action {name} is not valid for this web service.", status=400)
    asked = f"an operation {name}" if name else "no operation; X-Amz-Target names one"
    return ServiceError("UnknownOperationException", f"{service} was asked for {asked}, which it does not have.")


def _content_type(incoming: Incoming) -> None:
    stated = incoming.headers.get("content-type", "")
    kind = stated.partition(";")[0].strip().lower()
    if kind and kind not in ("application/x-amz-json-1.0", "application/x-amz-json-1.1", "application/json"):
        raise ServiceError(
            "SerializationException", f"The content type must be application/x-amz-json-1.0 or 1.1, not {kind[:64]}."
        )


def _unreadable(service: str, protocol: str, reason: str) -> ServiceError:
    if protocol == "query":
        return ServiceError("MalformedInput", reason, status=400)
    if service == "lambda":
        return ServiceError("InvalidRequestContentException", reason, status=400)
    return ServiceError("SerializationException", reason, status=400)


# The errors about signatures end in Exception where the protocol is JSON.
_JSON_SPELLING = frozenset({"IncompleteSignature", "MissingAuthenticationToken"})


def _spelled(error: ServiceError, protocol: str) -> ServiceError:
    if protocol != "query" and protocol != "rest-xml" and error.code in _JSON_SPELLING:
        return ServiceError(f"{error.code}Exception", error.message)
    if protocol == "rest-xml" and error.code == "IncompleteSignature":
        return ServiceError("AuthorizationHeaderMalformed", error.message, status=400)
    if protocol == "rest-xml" and error.code == "MissingAuthenticationToken":
        return ServiceError("AccessDenied", "Access Denied", status=403)
    return error


_BREAKS = str.maketrans("\r\n\x00", "   ")


async def _send(send: Send, encoded: Encoded) -> None:
    status, headers, body = encoded
    raw = [
        (
            name.encode("latin-1"),
            (value if value.isprintable() else value.translate(_BREAKS)).encode("latin-1", "replace"),
        )
        for name, value in headers
    ]
    raw.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await send({"type": "lifespan.shutdown.complete"})
            return
