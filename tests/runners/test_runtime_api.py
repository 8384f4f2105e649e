"""The Runtime API's listener, spoken to in plain HTTP, on both event loops."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import orjson
import pytest
import uvloop

from muster.runners import runtime_api
from muster.runners.runtime_api import Event, Faulted, Overflowed, Responded, RuntimeApi

Story = Callable[[RuntimeApi, "Client"], Coroutine[Any, Any, None]]


@pytest.fixture(params=["asyncio", "uvloop"])
def tell(request: pytest.FixtureRequest) -> Callable[[Story], None]:
    """Runs a story against an open listener."""

    async def told(story: Story) -> None:
        api = RuntimeApi()
        await api.open()
        host, port = api.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            async with asyncio.timeout(20):
                await story(api, Client(reader, writer))
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            api.close()

    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def run(story: Story) -> None:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(told(story))

    return run


class Client:
    """One connection, as a runtime keeps it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
        head = f"{method} /2018-06-01/runtime{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        return int(lines[0].split()[1]), headers, await self._reader.readexactly(int(headers["content-length"]))


def test_event_goes_to_whoever_asks_and_its_result_comes_back(tell: Callable[[Story], None]) -> None:
    async def story(api: RuntimeApi, client: Client) -> None:
        asking = asyncio.create_task(client.ask("GET", "/invocation/next"))
        await api.ready.wait()
        brought = api.offer(Event("id-1", b'{"a":1}', {"Lambda-Runtime-Deadline-Ms": "5"}))
        status, headers, body = await asking
        assert (status, body) == (200, b'{"a":1}')
        assert headers["lambda-runtime-aws-request-id"] == "id-1"
        assert headers["lambda-runtime-deadline-ms"] == "5"
        status, _, body = await client.ask("POST", "/invocation/id-1/response", b'"done"')
        assert (status, orjson.loads(body)) == (202, {"status": "OK"})
        assert await brought == Responded(b'"done"')

    tell(story)


def test_event_that_comes_first_waits_to_be_asked_for(tell: Callable[[Story], None]) -> None:
    async def story(api: RuntimeApi, client: Client) -> None:
        brought = api.offer(Event("id-1", b"1", {}))
        assert (await client.ask("GET", "/invocation/next"))[2] == b"1"
        await client.ask("POST", "/invocation/id-1/error", b'{"errorType":"X"}')
        assert await brought == Faulted(b'{"errorType":"X"}')

    tell(story)


def test_answer_to_another_event_or_a_second_one_is_refused(tell: Callable[[Story], None]) -> None:
    async def story(api: RuntimeApi, client: Client) -> None:
        api.offer(Event("id-1", b"1", {}))
        status, _, body = await client.ask("POST", "/invocation/id-1/response", b"1")
        assert (status, orjson.loads(body)["errorType"]) == (400, "InvalidRequestID"), "not handed over yet"
        await client.ask("GET", "/invocation/next")
        assert (await client.ask("POST", "/invocation/id-2/response", b"1"))[0] == 400
        assert (await client.ask("POST", "/invocation/id-1/response", b"1"))[0] == 202
        assert (await client.ask("POST", "/invocation/id-1/response", b"1"))[0] == 400
        assert (await client.ask("GET", "/nothing"))[0] == 404

    tell(story)


def test_result_that_is_too_large_is_refused_and_told(
    tell: Callable[[Story], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime_api, "RESPONSE_BYTES_MAX", 10)

    async def story(api: RuntimeApi, client: Client) -> None:
        brought = api.offer(Event("id-1", b"1", {}))
        await client.ask("GET", "/invocation/next")
        assert (await client.ask("POST", "/invocation/id-1/response", b"x" * 11))[0] == 413
        assert await brought == Overflowed()

    tell(story)


def test_failed_initialization_is_remembered(tell: Callable[[Story], None]) -> None:
    async def story(api: RuntimeApi, client: Client) -> None:
        assert (await client.ask("POST", "/init/error", b'{"errorType":"X"}'))[0] == 202
        assert api.init_fault == Faulted(b'{"errorType":"X"}')

    tell(story)
