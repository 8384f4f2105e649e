"""The store on SQLite: one writer with group commit, readers on snapshots.

Keeps true: all changes that wait run in one transaction, each in its own savepoint, and are acknowledged after one
sync (WAL, synchronous=FULL); while a commit syncs, off the event loop, the next batch gathers. Changes run on the
event loop's own thread, so none sees another half done. Does not know what the changes are about.
"""

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from muster.clock import Clock
from muster.errors import MusterError
from muster.ids import Ids
from muster.operation import Operations
from muster.store import port
from muster.store.port import NOBODY, BoundTransaction, Committed, Realm
from muster.transaction import Caller, Row, Transaction, Value

T = TypeVar("T")

# A batch is committed once it has run this long, so that a burst does not keep the first of it waiting.
BATCH_SECONDS = 0.02


class SqliteTransaction(BoundTransaction):
    """A change's view of the database."""

    __slots__ = ("_connection", "_depth")

    def __init__(
        self,
        connection: sqlite3.Connection,
        realm: Realm,
        clock: Clock,
        ids: Ids,
        operations: Operations,
        caller: Caller,
    ) -> None:
        super().__init__(realm, clock, ids, operations, caller)
        self._connection = connection
        self._depth = 0

    def one(self, sql: str, **values: Value) -> Row | None:
        row: Row | None = self._connection.execute(sql, values).fetchone()
        return row

    def all(self, sql: str, **values: Value) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, **values: Value) -> int:
        return self._connection.execute(sql, values).rowcount

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self._depth += 1
        name = f"part_{self._depth}"
        before = Committed(set(self.left.topics), dict(self.left.due))
        self._connection.execute(f"SAVEPOINT {name}")
        try:
            yield
        except BaseException:
            # A full disk makes SQLite undo the whole transaction by itself; then there is no savepoint to go back to.
            if self._connection.in_transaction:
                self._connection.execute(f"ROLLBACK TO {name}")
                self._connection.execute(f"RELEASE {name}")
            self.left = before
            raise
        else:
            self._connection.execute(f"RELEASE {name}")
        finally:
            self._depth -= 1


class Waiting:
    """A change in the line, and who waits for it."""

    __slots__ = ("caller", "change", "error", "future", "value")

    def __init__(self, change: Callable[[Transaction], Any], caller: Caller, future: asyncio.Future[Any]) -> None:
        self.change = change
        self.caller = caller
        self.future = future
        self.value: Any = None
        self.error: Exception | None = None

    def answer(self) -> None:
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)


class SqliteStore:
    """One database file (or, without a path, one in memory)."""

    def __init__(self, path: Path | None, clock: Clock, ids: Ids, operations: Operations, realm: Realm) -> None:
        self._path = path
        self._clock = clock
        self._ids = ids
        self._operations = operations
        self._realm = realm
        self._hearers: list[Callable[[Committed], None]] = []
        self._line: deque[Waiting] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._syncer = ThreadPoolExecutor(1, thread_name_prefix="muster-sync") if path else None
        self._writer = self._connect()
        # A database in memory belongs to one connection; nothing else runs while a change does, so it may read too.
        self._reader = self._connect() if path else self._writer
        if path:
            self._reader.execute("PRAGMA query_only=ON")

    def _connect(self) -> sqlite3.Connection:
        connection = None
        try:
            connection = sqlite3.connect(
                self._path or ":memory:", isolation_level=None, check_same_thread=False, cached_statements=1000
            )
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA foreign_keys=ON")
            if self._path:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute("PRAGMA wal_autocheckpoint=4000")
                connection.execute("PRAGMA cache_size=-32768")
                connection.execute("PRAGMA busy_timeout=5000")
        except sqlite3.DatabaseError as error:
            if connection is not None:
                connection.close()
            raise MusterError(
                f"The database {self._path} cannot be opened ({error}). If it is damaged, put a backup in its place."
            ) from error
        return connection

    def close_now(self) -> None:
        """Let go of the database at once."""
        self._writer.close()
        self._reader.close()
        if self._syncer is not None:
            self._syncer.shutdown(wait=False)

    async def open(self, parts: Mapping[str, tuple[str, ...]]) -> None:
        """Bring every part's schema up to date, all or nothing."""
        run = self._writer.execute
        run("BEGIN IMMEDIATE")
        try:
            run("CREATE TABLE IF NOT EXISTS schema_parts (part TEXT PRIMARY KEY, number BIGINT NOT NULL)")
            for part, scripts in ((port.PART, port.MIGRATIONS), *parts.items()):
                row = run("SELECT number FROM schema_parts WHERE part = ?", (part,)).fetchone()
                done = row["number"] if row else 0
                if done > len(scripts):
                    raise MusterError(
                        f"The database {self._path} was written by a newer Muster (its part {part} has schema {done},"
                        f" this program knows {len(scripts)}). Use that version or newer."
                    )
                for script in scripts[done:]:
                    for statement in port.statements(script, sqlite3.complete_statement):
                        run(statement.replace("SERIAL_KEY", "INTEGER PRIMARY KEY"))
                run(
                    "INSERT INTO schema_parts (part, number) VALUES (?, ?)"
                    " ON CONFLICT (part) DO UPDATE SET number = excluded.number",
                    (part, len(scripts)),
                )
            run("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                run("ROLLBACK")
            raise

    def subscribe(self, hear: Callable[[Committed], None]) -> None:
        self._hearers.append(hear)

    async def change(self, change: Callable[[Transaction], T], caller: Caller = NOBODY) -> T:
        loop = asyncio.get_running_loop()
        waiting = Waiting(change, caller, loop.create_future())
        self._line.append(waiting)
        if self._writing is None:
            self._writing = loop.create_task(self._write())
        value: T = await waiting.future
        return value

    async def read(self, query: Callable[[Transaction], T], caller: Caller = NOBODY) -> T:
        tx = self._transaction(self._reader, caller)
        if self._reader is self._writer:
            return query(tx)
        self._reader.execute("BEGIN")
        try:
            return query(tx)
        finally:
            self._reader.execute("ROLLBACK")

    async def close(self) -> None:
        if self._writing is not None:
            await self._writing
        if self._syncer is not None:
            self._syncer.shutdown()
        self.close_now()

    def _transaction(self, connection: sqlite3.Connection, caller: Caller) -> SqliteTransaction:
        return SqliteTransaction(connection, self._realm, self._clock, self._ids, self._operations, caller)

    async def _write(self) -> None:
        try:
            while self._line:
                batch: list[Waiting] = []
                left = Committed()
                try:
                    self._writer.execute("BEGIN IMMEDIATE")
                    before = self._writer.total_changes
                    self._run_batch(batch, left)
                    await self._sync(wrote=self._writer.total_changes != before)
                except Exception as error:  # noqa: BLE001 - whatever it was, none of the batch is on disk, and each is told
                    self._undo(batch, error)
                    continue
                for waiting in batch:
                    waiting.answer()
                if left.topics or left.due:
                    for hear in self._hearers:
                        hear(left)
        finally:
            self._writing = None

    def _run_batch(self, batch: list[Waiting], left: Committed) -> None:
        stop_at = time.perf_counter() + BATCH_SECONDS
        while self._line:
            waiting = self._line.popleft()
            batch.append(waiting)
            tx = self._transaction(self._writer, waiting.caller)
            try:
                with tx.savepoint():
                    waiting.value = waiting.change(tx)
                left.add(tx.left)
            except Exception as error:
                if not self._writer.in_transaction:
                    raise
                waiting.error = error
            if time.perf_counter() > stop_at:
                break

    async def _sync(self, *, wrote: bool) -> None:
        if self._syncer is None or not wrote:
            self._writer.execute("COMMIT")
        else:
            await asyncio.get_running_loop().run_in_executor(self._syncer, self._writer.execute, "COMMIT")

    def _undo(self, batch: list[Waiting], error: Exception) -> None:
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")
        if not batch and self._line:
            batch.append(self._line.popleft())
        for waiting in batch:
            waiting.error = error
            waiting.answer()
