"""Bytes too large for a row: files that are staged, synced and then named by a row.

Keeps true: a blob that a committed row names is whole and on disk; a file that no row names is a leftover, which the
sweep at start removes; a file is unlinked only after the commit that dropped its last use, and not while it is read.
Does not know what the bytes are, nor who names them.
"""

import asyncio
import errno
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from muster.clock import Instant
from muster.errors import ServiceError
from muster.ids import Ids, SystemIds
from muster.transaction import Carried, Delivery, Transaction

PART = "blobs"
REMOVE = "blobs.remove"

BLOBS = """
CREATE TABLE blobs (
    id TEXT PRIMARY KEY,
    size BIGINT NOT NULL CHECK (size >= 0),
    uses BIGINT NOT NULL CHECK (uses > 0),
    created_at DOUBLE PRECISION NOT NULL
);
"""

# The part of the schema that belongs to blobs. A script is never edited once it has been released.
MIGRATIONS = (BLOBS,)

SWEEP_AT_ONCE = 500

Read = Callable[[Callable[[Transaction], list[str]]], Awaitable[list[str]]]


@dataclass(frozen=True, slots=True)
class Blob:
    """A finished file that waits for a row to name it."""

    id: str
    size: int


@dataclass(frozen=True, slots=True)
class BlobSlice:
    """`length` bytes of a blob, from `start` on."""

    id: str
    start: int
    length: int


def _full(error: OSError) -> Exception:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ServiceError(
            "InsufficientStorage", "The disk that holds Muster's data is full; nothing was stored.", status=507
        )
    return error


class Staging:
    """A file that grows in the staging folder until it is finished or discarded."""

    def __init__(self, blobs: "Blobs", blob_id: str) -> None:
        self._blobs = blobs
        self.id = blob_id
        self.size = 0
        self._path = blobs.staged / blob_id
        try:
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _full(error) from error

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append `data`, all of it; InsufficientStorage when the disk is full."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as error:
            self.discard()
            raise _full(error) from error
        self.size += len(data)

    def finish(self) -> Blob:
        """Sync the bytes, move the file to its place, sync the folder: from here on a row may name it."""
        try:
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1
            target = self._blobs.path(self.id)
            if not target.parent.exists():
                target.parent.mkdir(mode=0o700, exist_ok=True)
                _sync_folder(target.parent.parent)
            os.rename(self._path, target)
            _sync_folder(target.parent)
        except OSError as error:
            self.discard()
            raise _full(error) from error
        return Blob(self.id, self.size)

    def discard(self) -> None:
        """Leave nothing of it; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Blobs:
    """The folder of blobs. Its methods do I/O at once; call those that move many bytes off the event loop."""

    def __init__(self, folder: Path, ids: Ids | None = None) -> None:
        self.folder = folder
        self.staged = folder / "staged"
        self._ids = ids or SystemIds()
        self._lock = threading.Lock()
        self._readers: dict[str, int] = {}
        self._doomed: set[str] = set()
        self.staged.mkdir(mode=0o700, parents=True, exist_ok=True)

    def stage(self) -> Staging:
        """Begin a new blob."""
        return Staging(self, self._ids.new_id())

    def path(self, blob_id: str) -> Path:
        """Where the blob lies, or would lie."""
        return self.folder / blob_id[:2] / blob_id

    def open(self, blob_id: str) -> BinaryIO:
        """The blob, to be read; FileNotFoundError when it is gone."""
        return open(self.path(blob_id), "rb", buffering=0)

    def read(self, blob_id: str, start: int = 0, length: int | None = None) -> bytes:
        """`length` bytes from `start` on (all the rest when None); fewer than asked for is an error, never an answer."""
        with open(self.path(blob_id), "rb") as file:
            file.seek(start)
            data = file.read() if length is None else file.read(length)
        if length is not None and len(data) != length:
            raise OSError(errno.EIO, f"the blob {blob_id} is shorter than the row says", str(self.path(blob_id)))
        return data

    @contextmanager
    def held(self, *blob_ids: str) -> Iterator[None]:
        """While the block runs, these blobs stay readable even if they are removed meanwhile (in this process)."""
        with self._lock:
            for blob_id in blob_ids:
                self._readers[blob_id] = self._readers.get(blob_id, 0) + 1
        try:
            yield
        finally:
            with self._lock:
                for blob_id in blob_ids:
                    self._readers[blob_id] -= 1
                    if not self._readers[blob_id]:
                        del self._readers[blob_id]
                        if blob_id in self._doomed:
                            self._doomed.discard(blob_id)
                            self.path(blob_id).unlink(missing_ok=True)

    def remove(self, blob_id: str) -> None:
        """Unlink the blob, now or when its last reader lets go. Should the process end before that, the sweep does it."""
        with self._lock:
            if blob_id in self._readers:
                self._doomed.add(blob_id)
                return
        self.path(blob_id).unlink(missing_ok=True)

    async def carry_removal(self, delivery: Carried) -> Callable[[Transaction], None]:
        """The runner of `blobs.remove` deliveries."""
        await asyncio.to_thread(self.remove, delivery.subject)
        return lambda tx: None

    async def sweep(self, read: Read, older_than: Instant) -> int:
        """Remove what a process before this one left behind: staged files, and files that no row names.

        `read` runs a query on the store. Only files last written before `older_than` are looked at: the start of this
        process, or some time earlier when other processes work on the same folder. How many were removed.
        """
        found = await asyncio.to_thread(self._old_files, older_than)
        removed = 0
        for begin in range(0, len(found), SWEEP_AT_ONCE):
            some = found[begin : begin + SWEEP_AT_ONCE]
            named = set(await read(lambda tx, some=some: _named(tx, some)))  # type: ignore[misc]
            for blob_id in some:
                if blob_id not in named:
                    await asyncio.to_thread(self.remove, blob_id)
                    removed += 1
        return removed + await asyncio.to_thread(self._remove_staged, older_than)

    def _old_files(self, older_than: Instant) -> list[str]:
        return [
            entry.name
            for shard in self.folder.iterdir()
            if shard.is_dir() and shard != self.staged
            for entry in os.scandir(shard)
            if entry.stat().st_mtime < older_than
        ]

    def _remove_staged(self, older_than: Instant) -> int:
        count = 0
        for entry in os.scandir(self.staged):
            if entry.stat().st_mtime < older_than:
                os.unlink(entry.path)
                count += 1
        return count


def _named(tx: Transaction, blob_ids: list[str]) -> list[str]:
    values: dict[str, Any] = {f"id{number}": blob_id for number, blob_id in enumerate(blob_ids)}
    places = ", ".join(f":{name}" for name in values)
    return [row["id"] for row in tx.all(f"SELECT id FROM blobs WHERE id IN ({places})", **values)]


def keep(tx: Transaction, blob: Blob) -> None:
    """Name a finished blob: its first use, in the transaction of the row that refers to it."""
    tx.run(
        "INSERT INTO blobs (id, size, uses, created_at) VALUES (:id, :size, 1, :now)",
        id=blob.id,
        size=blob.size,
        now=tx.now,
    )


def share(tx: Transaction, blob_id: str) -> None:
    """One more use of a blob that a row names already."""
    count = tx.run("UPDATE blobs SET uses = uses + 1 WHERE id = :id", id=blob_id)
    assert count == 1, f"no row names the blob {blob_id}"


def drop(tx: Transaction, blob_id: str) -> None:
    """One use less; after the last, the file is unlinked once this transaction has committed."""
    if tx.run("DELETE FROM blobs WHERE id = :id AND uses = 1", id=blob_id):
        tx.post(Delivery(REMOVE, blob_id, {}))
    else:
        tx.run("UPDATE blobs SET uses = uses - 1 WHERE id = :id", id=blob_id)
