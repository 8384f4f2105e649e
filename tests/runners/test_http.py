"""Requests to HTTP endpoints: what arrives there, what is told of it, and that nothing takes longer than it may."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from muster.errors import ServiceError
from muster.operation import Operation, Service
from muster.runners import http
from muster.testing import World
from muster.transaction import Carried, Delivery

Answering = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def endpoint(answer: Answering) -> AsyncIterator[str]:
    """A server that answers each connection so; its address."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def request_of(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in head[1:] if line)
    return head[0], headers, await reader.readexactly(int(headers["content-length"]))


def saying(status: str, seen: list[Any], extra: str = "", body: bytes = b"") -> Answering:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await request_of(reader))
        writer.write(f"HTTP/1.1 {status}\r\n{extra}content-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()

    return answer


def payload(url: str, seconds: float = 5.0, body: str = "hello") -> dict[str, Any]:
    tell = {"service": "x", "operation": "Told", "about": {"n": 1}}
    return {"url": url, "headers": {"content-type": "text/plain"}, "body": body, "seconds": seconds, "tell": tell}


class Told:
    """A service that keeps what it is told."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        told = Operation(self._told, frozenset({"About", "Status", "Error"}), internal=True)
        self.world = World([Service("x", {"Told": told})], runners=http.carriers)

    def _told(self, tx: Any, request: Any) -> dict[str, Any]:
        self.requests.append(dict(request))
        return {}

    def post(self, given: dict[str, Any]) -> None:
        self.world.change(lambda tx: tx.post(Delivery(http.POST, "s", given)))
        self.world.settle()


@pytest.fixture
def told() -> Told:
    return Told()


def carried_to(told: Told, answer: Answering, path: str = "", seconds: float = 5.0) -> None:
    async def change() -> None:
        async with endpoint(answer) as address:
            outcome = await http.carry(Carried(1, http.POST, "s", payload(address + path, seconds), 0.0, 0.0, 1))
            await told.world.store.change(outcome)

    told.world.run(change())


def test_the_body_arrives_with_its_headers_and_the_status_is_told(told: Told) -> None:
    seen: list[Any] = []
    carried_to(told, saying("200 OK", seen), "/hook?a=1")
    line, headers, body = seen[0]
    assert (line, body) == ("POST /hook?a=1 HTTP/1.1", b"hello")
    assert headers["content-type"] == "text/plain"
    assert headers["host"].startswith("127.0.0.1:")
    assert told.requests == [{"About": {"n": 1}, "Status": 200}]


def test_a_redirect_is_told_and_not_followed(told: Told) -> None:
    seen: list[Any] = []
    carried_to(told, saying("302 Found", seen, "location: http://127.0.0.1:1/\r\n"))
    assert [request["Status"] for request in told.requests] == [302]
    assert len(seen) == 1


def test_an_interim_answer_is_not_the_answer(told: Told) -> None:
    seen: list[Any] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await saying("204 No Content", seen)(reader, writer)

    carried_to(told, answer)
    assert [request["Status"] for request in told.requests] == [204]


def test_credentials_in_the_address_are_sent_as_basic_authorization(told: Told) -> None:
    seen: list[Any] = []

    async def change() -> None:
        async with endpoint(saying("200 OK", seen)) as address:
            assert await http.post(address.replace("//", "//me:pass%20word@"), {}, b"", 5.0) == 200

    told.world.run(change())
    assert seen[0][1]["authorization"] == "Basic bWU6cGFzcyB3b3Jk"


@pytest.mark.parametrize(
    "said",
    [b"", b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000],
    ids=["nothing", "another protocol", "an endless head"],
)
def test_what_is_no_answer_is_told_as_an_error(told: Told, said: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(said)
        await writer.drain()

    carried_to(told, answer)
    assert "could not be reached" in told.requests[0]["Error"]


def test_an_endpoint_that_does_not_answer_in_time_is_given_up(told: Told) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    carried_to(told, answer, seconds=0.05)
    assert told.requests[0]["Error"] == "The endpoint did not answer within 0.05 seconds"


def test_an_endless_answer_is_cut_off_once_its_status_is_known(told: Told) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                writer.write(b"z" * 65_536)
                await writer.drain()
        except OSError:
            pass

    carried_to(told, answer)
    assert [request["Status"] for request in told.requests] == [200]


def test_an_answer_that_never_ends_has_its_status_all_the_same(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REST_SECONDS", 0.02)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")
        await reader.read()

    carried_to(told, answer, seconds=0.5)
    assert [request.get("Status") for request in told.requests] == [200]


def test_nobody_listening_is_told_as_an_error(told: Told) -> None:
    told.post(payload("http://127.0.0.1:1/"))
    assert "could not be reached" in told.requests[0]["Error"]


def test_the_outcome_is_told_only_from_inside(told: Told) -> None:
    with pytest.raises(ServiceError):
        told.world.call("x", "Told", About={})
