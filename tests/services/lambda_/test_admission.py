"""Places are neither overbooked nor left empty, whatever comes and goes."""

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.errors import ServiceError
from muster.services.lambda_ import SERVICE, invocations
from muster.services.lambda_.aftermath import Outcome, finish
from muster.services.lambda_.functions import Version, exact
from muster.testing import World
from muster.transaction import Transaction
from tests.services.lambda_.test_functions import create

PLACES, PLACES_URGENT = 3, 5
RESERVED: dict[str, int | None] = {"a": None, "b": 1, "c": 2}

steps = st.lists(
    st.one_of(
        st.tuples(st.just("Event"), st.sampled_from(sorted(RESERVED))),
        st.tuples(st.just("RequestResponse"), st.sampled_from(sorted(RESERVED))),
        st.tuples(st.just("end"), st.integers(0, 10)),
        st.tuples(st.just("cancel"), st.integers(0, 10)),
    ),
    max_size=40,
)


@settings(max_examples=30, deadline=None)
@given(steps)
def test_places_are_neither_overbooked_nor_left_empty(story: list[tuple[str, str | int]]) -> None:
    world = World([SERVICE])
    for name, reserved in RESERVED.items():
        create(world, name)
        if reserved is not None:
            world.call("lambda", "PutFunctionConcurrency", FunctionName=name, ReservedConcurrentExecutions=reserved)
    with (
        patch.object(invocations, "PLACES", PLACES),
        patch.object(invocations, "PLACES_URGENT", PLACES_URGENT),
    ):
        for what, which in story:
            if isinstance(which, str):
                begin(world, what, which)
            else:
                end(world, what, which)
            check(world)


def begin(world: World, kind: str, name: str) -> None:
    def change(tx: Transaction) -> None:
        version: Version = exact(tx, name, "$LATEST")
        invocations.begin(tx, version, None, b"1", type=kind)

    if kind == "RequestResponse" and count(world, "running", name) == RESERVED[name]:
        with pytest.raises(ServiceError, match="TooManyRequestsException"):
            world.change(change)
    else:
        world.change(change)
    world.clock.advance(1)


def end(world: World, what: str, which: int) -> None:
    wanted = "status = 'running'" if what == "end" else "ended_at IS NULL"
    rows = world.rows(f"SELECT id FROM lambda_invocations WHERE {wanted} ORDER BY queued_at, id")
    if rows:
        id_ = rows[which % len(rows)]["id"]
        if what == "end":
            world.change(lambda tx: land(tx, id_))
        else:
            world.change(lambda tx: invocations.cancel(tx, id_))


def land(tx: Transaction, id_: str) -> None:
    tx.cancel(invocations.INVOKE, id_)
    finish(tx, id_, Outcome())


def count(world: World, status: str, function: str | None = None, urgent: int | None = None) -> int:
    rows = world.rows("SELECT function, urgent FROM lambda_invocations WHERE status = :status", status=status)
    return sum(
        (function is None or row["function"] == function) and (urgent is None or row["urgent"] == urgent)
        for row in rows
    )


def check(world: World) -> None:
    running = count(world, "running")
    assert running <= PLACES_URGENT
    assert count(world, "running", urgent=0) <= PLACES
    for name, reserved in RESERVED.items():
        busy = count(world, "running", name)
        assert reserved is None or busy <= reserved
        room = reserved is None or busy < reserved
        if count(world, "queued", name, urgent=1) and room:
            assert running == PLACES_URGENT, "somebody waits although there is a place"
        if count(world, "queued", name, urgent=0) and room:
            assert running >= PLACES, "an event waits although there is a place"
    carried = world.rows("SELECT COUNT(*) AS count FROM deliveries WHERE kind = 'lambda.invoke'")[0]["count"]
    assert carried == running, "what runs is carried, and nothing else"
