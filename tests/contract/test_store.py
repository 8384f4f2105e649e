"""What every store keeps true. One suite for all drivers: a driver is a way to open the store."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from muster.clock import SimulatedClock
from muster.errors import MusterError, ServiceError
from muster.ids import SeededIds
from muster.operation import Operation, Operations, Service
from muster.store.port import Committed, Realm, Store
from muster.store.sqlite import SqliteStore
from muster.transaction import Delivery, Transaction

PARTS = {"notes": ("CREATE TABLE notes (name TEXT PRIMARY KEY, size BIGINT CHECK (size >= 0));",)}

Open = Callable[[], Store]


def put(name: str, size: int = 1) -> Callable[[Transaction], str]:
    def change(tx: Transaction) -> str:
        tx.run("INSERT INTO notes (name, size) VALUES (:name, :size)", name=name, size=size)
        return name

    return change


def names(tx: Transaction) -> list[str]:
    return [row["name"] for row in tx.all("SELECT name FROM notes ORDER BY name")]


@pytest.fixture(params=["sqlite", "sqlite in memory"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    path = tmp_path / "muster.db" if request.param == "sqlite" else None
    notes = Service("notes", {"Put": Operation(lambda tx, r: {"Name": put(r["Name"])(tx)}, frozenset({"Name"}))})
    return lambda: SqliteStore(path, SimulatedClock(), SeededIds(), Operations({"notes": notes}), Realm())


def with_store(open_store: Open, work: Callable[[Store], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        store = open_store()
        try:
            await store.open(PARTS)
            await work(store)
        finally:
            await store.close()

    asyncio.run(main())


def test_a_change_is_seen_by_every_later_read(open_store: Open) -> None:
    async def work(store: Store) -> None:
        assert await store.change(put("a")) == "a"
        assert await store.read(names) == ["a"]

    with_store(open_store, work)


def test_a_failing_change_raises_its_error_and_harms_no_other(open_store: Open) -> None:
    async def work(store: Store) -> None:
        def fails(tx: Transaction) -> None:
            put("half")(tx)
            raise ServiceError("Refused", "no")

        results = await asyncio.gather(
            store.change(put("a")), store.change(fails), store.change(put("b")), return_exceptions=True
        )
        assert results[0] == "a"
        assert isinstance(results[1], ServiceError)
        assert await store.read(names) == ["a", "b"]

    with_store(open_store, work)


def test_the_schema_refuses_what_breaks_its_checks(open_store: Open) -> None:
    async def work(store: Store) -> None:
        with pytest.raises(Exception, match=r"(?i)check"):
            await store.change(put("a", size=-1))
        assert await store.read(names) == []

    with_store(open_store, work)


def test_a_savepoint_undoes_its_part_and_what_it_posted(open_store: Open) -> None:
    async def work(store: Store) -> None:
        heard: list[Committed] = []
        store.subscribe(heard.append)

        def change(tx: Transaction) -> None:
            put("kept")(tx)
            tx.post(Delivery("kept", "s", {}))
            with pytest.raises(ValueError), tx.savepoint():
                put("undone")(tx)
                tx.post(Delivery("undone", "s", {}))
                tx.wake("undone")
                with tx.savepoint():
                    put("undone too")(tx)
                raise ValueError

        await store.change(change)
        assert await store.read(names) == ["kept"]
        rows = await store.read(lambda tx: tx.all("SELECT kind FROM deliveries"))
        assert [row["kind"] for row in rows] == ["kept"]
        assert [(c.topics, set(c.due)) for c in heard] == [(set(), {"kept"})]

    with_store(open_store, work)


def test_a_sibling_is_called_in_the_same_transaction(open_store: Open) -> None:
    async def work(store: Store) -> None:
        def change(tx: Transaction) -> None:
            tx.call("notes", "Put", {"Name": "a"})
            assert names(tx) == ["a"]
            with pytest.raises(ServiceError, match="parameter Colour of notes:Put"):
                tx.call("notes", "Put", {"Name": "b", "Colour": "red"})
            raise ServiceError("Refused", "undo it all")

        with pytest.raises(ServiceError):
            await store.change(change)
        assert await store.read(names) == []

    with_store(open_store, work)


def test_one_transaction_sees_one_time(open_store: Open) -> None:
    async def work(store: Store) -> None:
        def change(tx: Transaction) -> bool:
            tx.post(Delivery("k", "s", {}, due_at=tx.now + 5))
            row = tx.one("SELECT due_at - posted_at AS wait FROM deliveries")
            return row is not None and row["wait"] == 5

        assert await store.change(change)

    with_store(open_store, work)


def test_cancelled_deliveries_are_gone(open_store: Open) -> None:
    async def work(store: Store) -> None:
        for subject in ("a", "a", "b"):
            await store.change(lambda tx, subject=subject: tx.post(Delivery("timer", subject, {})))  # type: ignore[misc]
        assert await store.change(lambda tx: tx.cancel("timer", "a")) == 2
        rows = await store.read(lambda tx: tx.all("SELECT subject FROM deliveries"))
        assert [row["subject"] for row in rows] == ["b"]

    with_store(open_store, work)


def test_many_changes_at_once_all_commit_in_the_order_they_came(open_store: Open) -> None:
    async def work(store: Store) -> None:
        order: list[int] = []

        def change(n: int) -> Callable[[Transaction], None]:
            def numbered(tx: Transaction) -> None:
                put(f"{n:04}")(tx)
                order.append(n)

            return numbered

        await asyncio.gather(*(store.change(change(n)) for n in range(500)))
        assert order == list(range(500))
        assert len(await store.read(names)) == 500

    with_store(open_store, work)


def test_what_was_acknowledged_is_there_after_opening_again(tmp_path: Path) -> None:
    def open_store() -> Store:
        return SqliteStore(tmp_path / "muster.db", SimulatedClock(), SeededIds(), Operations({}), Realm())

    async def first(store: Store) -> None:
        await store.change(put("a"))

    async def second(store: Store) -> None:
        assert await store.read(names) == ["a"]

    with_store(open_store, first)
    with_store(open_store, second)


def test_a_newer_schema_is_refused_with_what_to_do(tmp_path: Path) -> None:
    def open_store() -> SqliteStore:
        return SqliteStore(tmp_path / "muster.db", SimulatedClock(), SeededIds(), Operations({}), Realm())

    async def main() -> None:
        newer = open_store()
        await newer.open({"notes": (*PARTS["notes"], "ALTER TABLE notes ADD COLUMN colour TEXT;")})
        await newer.close()
        older = open_store()
        try:
            with pytest.raises(MusterError, match=r"newer Muster.*part notes has schema 2"):
                await older.open(PARTS)
        finally:
            await older.close()

    asyncio.run(main())


def test_a_file_that_is_no_database_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "muster.db"
    path.write_bytes(b"not a database, surely not one" * 200)
    with pytest.raises(MusterError, match="cannot be opened"):
        SqliteStore(path, SimulatedClock(), SeededIds(), Operations({}), Realm())


def test_a_migration_that_fails_leaves_the_schema_as_it_was(tmp_path: Path) -> None:
    def open_store() -> SqliteStore:
        return SqliteStore(tmp_path / "muster.db", SimulatedClock(), SeededIds(), Operations({}), Realm())

    async def main() -> None:
        store = open_store()
        with pytest.raises(Exception, match="syntax"):
            await store.open({**PARTS, "zz": ("CREATE TABLE ok (a TEXT); CREATE NONSENSE;",)})
        await store.open(PARTS)
        await store.change(put("a"))
        await store.close()

    asyncio.run(main())
