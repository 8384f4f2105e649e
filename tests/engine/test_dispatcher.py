"""Deliveries: carried inside a transaction exactly once, outside at least once, later when they fail."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from muster.engine import Engine
from muster.operation import Operation, Service, Wait
from muster.testing import World
from muster.transaction import Carried, Delivery, Transaction

NOTES = "CREATE TABLE notes (name TEXT PRIMARY KEY);"


def note(tx: Transaction, name: str) -> None:
    tx.run("INSERT INTO notes (name) VALUES (:name)", name=name)


def post_all(*subjects: str) -> Callable[[Transaction], None]:
    def change(tx: Transaction) -> None:
        for subject in subjects:
            tx.post(Delivery("note", subject, {}))

    return change


def names(world: World) -> list[str]:
    return [row["name"] for row in world.rows("SELECT name FROM notes ORDER BY name")]


def service(carry: Callable[[Transaction, Carried], None]) -> Service:
    return Service("notes", {}, (NOTES,), {"note": carry})


def test_a_delivery_is_carried_and_its_row_gone_in_one_commit() -> None:
    world = World([service(lambda tx, d: note(tx, d.subject))])
    world.change(lambda tx: tx.post(Delivery("note", "a", {})))
    assert names(world) == []
    world.settle()
    assert names(world) == ["a"]
    assert world.rows("SELECT * FROM deliveries") == []


def test_a_timer_fires_not_before_its_time() -> None:
    world = World([service(lambda tx, d: note(tx, d.subject))])
    world.change(lambda tx: tx.post(Delivery("note", "a", {}, due_at=tx.now + 10)))
    world.pass_time(9.9)
    assert names(world) == []
    world.pass_time(0.2)
    assert names(world) == ["a"]


def test_what_fails_is_undone_and_tried_again_after_a_back_off(caplog: pytest.LogCaptureFixture) -> None:
    attempts: list[int] = []

    def carry(tx: Transaction, delivery: Carried) -> None:
        note(tx, f"attempt {delivery.attempts}")
        attempts.append(delivery.attempts)
        if delivery.attempts < 3:
            raise ValueError("not yet")

    world = World([service(carry)])
    world.change(lambda tx: tx.post(Delivery("note", "a", {})))
    world.settle()
    assert (attempts, names(world)) == ([1], [])
    assert world.rows("SELECT last_error FROM deliveries")[0]["last_error"] == "ValueError: not yet"
    world.pass_time(1)
    assert attempts == [1, 2]
    world.pass_time(2)
    assert (attempts, names(world)) == ([1, 2, 3], ["attempt 3"])
    assert "not yet" in caplog.text


def test_one_that_fails_does_not_hold_up_the_others() -> None:
    def carry(tx: Transaction, delivery: Carried) -> None:
        if delivery.subject == "bad":
            raise ValueError
        note(tx, delivery.subject)

    world = World([service(carry)])
    world.change(post_all("a", "bad", "b"))
    world.settle()
    assert names(world) == ["a", "b"]


def test_a_carrier_may_post_more_and_cancel_what_is_due_in_the_same_pass() -> None:
    def carry(tx: Transaction, delivery: Carried) -> None:
        note(tx, delivery.subject)
        if delivery.subject == "a":
            tx.cancel("note", "b")
            tx.post(Delivery("note", "c", {}))

    world = World([service(carry)])
    world.change(post_all("a", "b"))
    world.settle()
    assert names(world) == ["a", "c"]


def test_a_runner_acts_outside_and_its_result_is_recorded_with_the_rows_end() -> None:
    acted: list[str] = []

    async def carry(delivery: Carried) -> Callable[[Transaction], None]:
        acted.append(delivery.subject)
        await asyncio.sleep(0)
        return lambda tx: note(tx, delivery.subject)

    world = World([Service("notes", {}, (NOTES,))], runners={"work": carry})
    world.change(lambda tx: tx.post(Delivery("work", "a", {"x": 1})))
    world.settle()
    assert (acted, names(world)) == (["a"], ["a"])
    assert world.rows("SELECT * FROM deliveries") == []


def test_a_delivery_cancelled_while_a_runner_is_at_work_records_nothing() -> None:
    world: World

    async def carry(delivery: Carried) -> Callable[[Transaction], None]:
        await world.store.change(lambda tx: tx.cancel("work", "a"))
        return lambda tx: note(tx, "never")

    world = World([Service("notes", {}, (NOTES,))], runners={"work": carry})
    world.change(lambda tx: tx.post(Delivery("work", "a", {})))
    world.settle()
    assert names(world) == []


def test_crash_while_a_runner_is_at_work_carries_the_delivery_again_with_the_same_id(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    async def carry(delivery: Carried) -> Callable[[Transaction], None]:
        seen.append((delivery.id, delivery.attempts))
        if delivery.attempts == 1:
            raise asyncio.CancelledError
        return lambda tx: note(tx, delivery.subject)

    world = World([Service("notes", {}, (NOTES,))], runners={"work": carry}, path=tmp_path / "muster.db")
    world.change(lambda tx: tx.post(Delivery("work", "a", {})))
    with contextlib.suppress(asyncio.CancelledError):
        world.settle()
    assert names(world) == []
    world.restart()
    world.settle()
    assert seen == [(1, 1), (1, 2)]
    assert names(world) == ["a"]


def test_an_answer_that_comes_later_is_not_missed_between_looking_and_waiting() -> None:
    looks: list[int] = []

    def look(tx: Transaction) -> dict[str, int] | Wait:
        looks.append(1)
        row = tx.one("SELECT name FROM notes")
        return {"found": 1} if row else Wait("notes", tx.now + 5, look)

    polling = Service("notes", {"Look": Operation(lambda tx, r: look(tx), frozenset())}, (NOTES,))
    world = World([polling])
    engine = Engine(world.store, world.operations, world.clock)

    async def main() -> None:
        asking = asyncio.create_task(engine.operate("notes", "Look", {}))
        while not looks:
            await asyncio.sleep(0)

        def write(tx: Transaction) -> None:
            note(tx, "a")
            tx.wake("notes")

        await engine.change(write)
        assert await asking == {"found": 1}

    world.run(main())
