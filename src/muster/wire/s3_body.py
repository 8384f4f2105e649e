"""Bodies in and out: an upload hashed and staged in one pass, an answer streamed, both in bounded memory.

Keeps true: at most two buffers of an upload are in memory, whatever its size; files are written, synced and read off
the event loop; an upload that is not finished leaves no file. Does not know operations.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from muster.services.s3.checksums import Hasher
from muster.services.s3.content import INLINE_BYTES_MAX, Content, Slices
from muster.store.blobs import Blobs, BlobSlice, Staging
from muster.wire.s3_chunks import ChunkDecoder, incomplete

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

BUFFER_BYTES = 1 << 20


class ClientGone(Exception):
    """The client went away before it had sent all."""


async def plain(receive: Receive, decoder: ChunkDecoder | None) -> AsyncIterator[bytes]:
    """The body's payload, piece by piece; ClientGone when the client goes."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        data = message.get("body", b"")
        more = message.get("more_body", False)
        if not data:
            continue
        if decoder is None:
            yield data
        else:
            for piece in decoder.feed(data):
                yield piece
    if decoder is not None:
        decoder.end()


async def whole(pieces: AsyncIterator[bytes], most: int) -> bytes:
    """A small body, at once; IncompleteBody when it is larger than any honest one."""
    gathered = bytearray()
    async for piece in pieces:
        gathered += piece
        if len(gathered) > most:
            raise incomplete(f"The request's body is larger than {most} bytes.")
    return bytes(gathered)


class Upload:
    """One body on its way in: small ones stay in memory, large ones go to a blob."""

    def __init__(self, blobs: Blobs, pool: ThreadPoolExecutor, algorithms: Iterable[str]) -> None:
        self._blobs = blobs
        self._pool = pool
        self._hasher = Hasher(algorithms)
        self._buffer = bytearray()
        self._staging: Staging | None = None
        self._writing: asyncio.Future[None] | None = None

    async def add(self, data: bytes) -> None:
        """The next bytes."""
        self._buffer += data
        if len(self._buffer) >= BUFFER_BYTES:
            await self._flush()

    async def finish(self) -> Content:
        """The whole of it, on disk if it is large."""
        if self._staging is None and len(self._buffer) <= INLINE_BYTES_MAX:
            data = bytes(self._buffer)
            self._hasher.update(data)
            return Content(len(data), self._hasher.md5, self._hasher.checksums(), data=data)
        await self._flush()
        await self._written()
        assert self._staging is not None
        blob = await self._off_loop(self._staging.finish)
        return Content(blob.size, self._hasher.md5, self._hasher.checksums(), blob=blob)

    async def discard(self) -> None:
        """Leave nothing of it."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
        if self._staging is not None:
            await self._off_loop(self._staging.discard)

    async def _flush(self) -> None:
        await self._written()
        if self._staging is None:
            self._staging = self._blobs.stage()
        data, self._buffer = bytes(self._buffer), bytearray()
        self._writing = asyncio.ensure_future(self._off_loop(self._write, data))

    async def _written(self) -> None:
        if self._writing is not None:
            writing, self._writing = self._writing, None
            await writing

    def _write(self, data: bytes) -> None:
        assert self._staging is not None
        self._hasher.update(data)
        self._staging.write(data)

    async def _off_loop(self, work: Callable[..., Any], *values: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *values)


async def read(blobs: Blobs, pool: ThreadPoolExecutor, slices: Slices) -> AsyncIterator[bytes]:
    """The bytes of an answer, one buffer ahead of the reader."""
    loop = asyncio.get_running_loop()
    ahead: asyncio.Future[bytes] | None = None
    try:
        for piece in slices.pieces:
            if not isinstance(piece, BlobSlice):
                if ahead is not None:
                    waiting, ahead = ahead, None
                    yield await waiting
                yield piece
                continue
            for offset in range(0, piece.length, BUFFER_BYTES):
                count = min(BUFFER_BYTES, piece.length - offset)
                waiting_for = ahead
                ahead = loop.run_in_executor(pool, blobs.read, piece.id, piece.start + offset, count)
                if waiting_for is not None:
                    yield await waiting_for
        if ahead is not None:
            waiting, ahead = ahead, None
            yield await waiting
    finally:
        if ahead is not None:
            ahead.cancel()
