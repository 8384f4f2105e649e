"""Events dealt with once: on the real table, under a clock that the test moves, with crashes at every bad moment."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.errors import ServiceError
from muster.idempotency import (
    KEPT_SECONDS,
    Claim,
    InProgress,
    LeaseLost,
    MissingContext,
    Records,
    ResultNotKept,
    Skipped,
    UnknownOutcome,
    each_record,
    event_id,
    idempotent,
    message_body,
)
from muster.services.dynamodb import SERVICE
from muster.testing import World

EVENT = {"id": "e1", "detail-type": "Order placed", "source": "shop", "detail": {"order": "o1"}}


class PowerCut(BaseException):
    """Nothing after it runs: as when the process is killed."""


class TableClient:
    """What boto3's client does, over a world; `before` and `after` are called around each request with its name."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.before: Callable[[str], None] = lambda operation: None
        self.after: Callable[[str], None] = lambda operation: None

    def _call(self, operation: str, request: dict[str, Any]) -> Any:
        self.before(operation)
        try:
            answer = self.world.call("dynamodb", operation, **request)
        except ServiceError as error:
            response = {"Error": {"Code": error.code, "Message": error.message}, **error.fields}
            raise ClientError(response, operation) from error
        self.after(operation)
        return answer

    def put_item(self, **request: Any) -> Any:
        return self._call("PutItem", request)

    def update_item(self, **request: Any) -> Any:
        return self._call("UpdateItem", request)

    def get_item(self, **request: Any) -> Any:
        return self._call("GetItem", request)


class Context:
    """As Lambda hands to a handler."""

    def __init__(self, seconds: float = 30) -> None:
        self.seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


class Shop:
    """A handler whose side effects can be counted, and which can be made to fail."""

    def __init__(self) -> None:
        self.charged: list[str] = []
        self.trouble: list[BaseException] = []

    def charge(self, event: Any, context: Any, *, idempotency_key: str) -> Any:
        self.charged.append(idempotency_key)
        if self.trouble:
            raise self.trouble.pop(0)
        return {"receipt": f"r-{idempotency_key}"}


@pytest.fixture
def world() -> World:
    world = World([SERVICE])
    world.call(
        "dynamodb",
        "CreateTable",
        TableName="seen",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return world


@pytest.fixture
def client(world: World) -> TableClient:
    return TableClient(world)


@pytest.fixture
def records(world: World, client: TableClient) -> Records:
    return Records("seen", client=client, clock=world.clock.now)


@pytest.fixture
def shop() -> Shop:
    return Shop()


def sqs(number: int, body: Any) -> dict[str, Any]:
    return {"messageId": f"m{number}", "body": json.dumps(body), "eventSource": "aws:sqs", "eventSourceARN": "arn:q"}


def test_first_put_writes_and_the_second_answers_with_what_was_written(records: Records) -> None:
    assert records.put_if_absent("e1", {"order": "o1"}) is None
    assert records.put_if_absent("e1", {"order": "other"}) == {"order": "o1"}
    assert records.put_if_absent("e2", {"order": "o1"}) is None, "one order may rightly come as two events"


def test_record_is_there_before_the_work_begins(records: Records) -> None:
    @idempotent(records, record=lambda event: {"order": event["detail"]["order"]})
    def work(event: Any, context: Any) -> None:
        found = records.read("e1")
        assert found is not None
        assert found["status"] == {"S": "STARTED"}
        assert float(found["lease_ends_at"]["N"]) == pytest.approx(records.clock() + 30)
        assert json.loads(found["record"]["S"]) == {"order": "o1"}
        assert "expires_at" not in found, "an open question does not expire"

    work(EVENT, Context())
    found = records.read("e1")
    assert found is not None
    assert found["status"] == {"S": "COMPLETED"}
    assert int(found["expires_at"]["N"]) == pytest.approx(records.clock() + KEPT_SECONDS, abs=1)


def test_repeat_is_skipped_with_the_proof(records: Records, shop: Shop) -> None:
    charge = idempotent(records)(shop.charge)
    assert charge(EVENT, Context()) == {"receipt": "r-e1"}
    again = charge(EVENT, Context())
    assert isinstance(again, Skipped)
    assert (again["status"], again["event_id"], again["result"]) == ("skipped", "e1", {"receipt": "r-e1"})
    assert again["finished_at"] == pytest.approx(records.clock(), abs=0.001)
    assert json.loads(json.dumps(again)) == again, "a handler can return it as it is"
    assert shop.charged == ["e1"]


def test_of_two_deliveries_at_once_one_runs_and_the_other_comes_again(records: Records) -> None:
    runs = []

    @idempotent(records)
    def work(event: Any, context: Any) -> str:
        runs.append(event["id"])
        with pytest.raises(InProgress):
            work(event, context)
        return "done"

    assert work(EVENT, Context()) == "done"
    assert work(EVENT, Context())["result"] == "done"
    assert runs == ["e1"]


def test_work_that_a_crash_left_is_repeated_after_its_lease_with_the_same_key(
    world: World, records: Records, shop: Shop
) -> None:
    charge = idempotent(records, unfinished="repeat")(shop.charge)
    shop.trouble = [PowerCut()]
    with pytest.raises(PowerCut):
        charge(EVENT, Context(30))
    world.clock.advance(29)
    with pytest.raises(InProgress):
        charge(EVENT, Context(30))
    world.clock.advance(3)
    assert charge(EVENT, Context(30)) == {"receipt": "r-e1"}
    assert charge(EVENT, Context(30))["attempts"] == 2
    assert shop.charged == ["e1", "e1"]


def test_work_that_a_crash_left_stops_for_a_person_where_it_cannot_be_repeated(
    world: World, records: Records, shop: Shop
) -> None:
    charge = idempotent(records, unfinished="unknown outcome")(shop.charge)
    shop.trouble = [PowerCut()]
    with pytest.raises(PowerCut):
        charge(EVENT, Context(30))
    with pytest.raises(InProgress):
        charge(EVENT, Context(30))
    world.clock.advance(32)
    for _ in range(3):
        with pytest.raises(UnknownOutcome, match="e1"):
            charge(EVENT, Context(30))
    assert shop.charged == ["e1"]

    records.settle("e1", finished=True, result="seen on the bank's statement")
    assert charge(EVENT, Context())["result"] == "seen on the bank's statement"
    with pytest.raises(LookupError):
        records.settle("e1", finished=False)
    assert shop.charged == ["e1"]


def test_person_may_let_the_work_be_done_after_all(records: Records, shop: Shop) -> None:
    charge = idempotent(records, unfinished="unknown outcome")(shop.charge)
    shop.trouble = [UnknownOutcome("the bank did not answer")]
    for _ in range(2):
        with pytest.raises(UnknownOutcome):
            charge(EVENT, Context())
    assert shop.charged == ["e1"], "work can say itself that it does not know"
    records.settle("e1", finished=False)
    assert charge(EVENT, Context()) == {"receipt": "r-e1"}
    with pytest.raises(LookupError):
        records.settle("never seen", finished=True)


def test_work_that_says_that_it_failed_is_tried_again_at_once(records: Records, shop: Shop) -> None:
    charge = idempotent(records)(shop.charge)
    shop.trouble = [ConnectionError("no bank"), ConnectionError("no bank")]
    for _ in range(2):
        with pytest.raises(ConnectionError):
            charge(EVENT, Context())
    found = records.read("e1")
    assert found is not None
    assert (found["status"]["S"], found["error"]["S"]) == ("FAILED", "ConnectionError: no bank")
    assert charge(EVENT, Context()) == {"receipt": "r-e1"}
    assert charge(EVENT, Context())["attempts"] == 3


def test_of_two_that_take_over_at_once_one_runs(world: World, client: TableClient, records: Records) -> None:
    records.claim("e1", 10, unfinished="repeat")
    world.clock.advance(20)
    rivals: list[Claim | Skipped] = []

    def rival(operation: str) -> None:
        client.before = lambda operation: None
        rivals.append(records.claim("e1", 10, unfinished="repeat"))

    client.before = lambda operation: rival(operation) if operation == "UpdateItem" else None
    with pytest.raises(InProgress):
        records.claim("e1", 10, unfinished="repeat")
    assert [claim.attempts for claim in rivals if isinstance(claim, Claim)] == [2]


def test_work_that_finishes_late_while_it_is_being_taken_over_is_not_done_again(
    world: World, client: TableClient, records: Records
) -> None:
    slow = records.claim("e1", 10, unfinished="repeat")
    assert not isinstance(slow, Skipped)
    world.clock.advance(20)

    def finished_just_now(operation: str) -> None:
        client.before = lambda operation: None
        records.finish(slow, "late")

    client.before = lambda operation: finished_just_now(operation) if operation == "UpdateItem" else None
    answer = records.claim("e1", 10, unfinished="repeat")
    assert isinstance(answer, Skipped)
    assert answer["result"] == "late"


def test_work_that_outlasts_its_lease_says_so_and_changes_nothing(world: World, records: Records) -> None:
    slow = records.claim("e1", 10, unfinished="repeat")
    assert not isinstance(slow, Skipped)
    world.clock.advance(20)
    quick = records.claim("e1", 10, unfinished="repeat")
    assert not isinstance(quick, Skipped)
    with pytest.raises(LeaseLost):
        records.finish(slow, "slow")
    records.give_back(slow, ValueError("too late"))
    records.finish(quick, "quick")
    again = records.claim("e1", 10, unfinished="repeat")
    assert isinstance(again, Skipped)
    assert again["result"] == "quick"


@pytest.mark.parametrize("lost", ["PutItem", "UpdateItem"])
def test_lost_answer_to_a_write_that_boto3_repeats_is_not_taken_for_somebody_else(
    client: TableClient, records: Records, shop: Shop, lost: str
) -> None:
    send = client._call

    def twice(operation: str, request: dict[str, Any]) -> Any:
        if operation == lost:
            send(operation, request)
        return send(operation, request)

    client._call = twice  # type: ignore[method-assign]
    charge = idempotent(records)(shop.charge)
    assert charge(EVENT, Context()) == {"receipt": "r-e1"}
    assert charge(EVENT, Context())["status"] == "skipped"
    assert records.put_if_absent("e2", {"a": 1}) is None
    assert shop.charged == ["e1"]


def test_expired_record_is_as_good_as_none_though_the_table_still_has_it(
    world: World, records: Records, shop: Shop
) -> None:
    charge = idempotent(records)(shop.charge)
    charge(EVENT, Context())
    world.clock.advance(KEPT_SECONDS - 1)
    assert charge(EVENT, Context())["status"] == "skipped"
    world.clock.advance(5)
    assert charge(EVENT, Context()) == {"receipt": "r-e1"}


def test_trouble_with_the_table_stops_the_work_before_it_begins(client: TableClient, shop: Shop) -> None:
    charge = idempotent(Records("absent", client=client))(shop.charge)
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        charge(EVENT, Context())
    assert shop.charged == []


def test_result_that_cannot_be_kept_does_not_undo_the_record(records: Records) -> None:
    @idempotent(records)
    def work(event: Any, context: Any) -> Any:
        return object()

    with pytest.warns(ResultNotKept):
        work(EVENT, Context())
    assert work(EVENT, Context())["result"] is None


def test_missing_context_is_told_and_the_lease_is_as_long_as_any_function_may_run(
    world: World, records: Records
) -> None:
    @idempotent(records)
    def work(event: Any) -> None:
        raise PowerCut

    with pytest.warns(MissingContext), pytest.raises(PowerCut):
        work(EVENT)
    world.clock.advance(890)
    with pytest.warns(MissingContext), pytest.raises(InProgress):
        work(EVENT)
    world.clock.advance(20)
    with pytest.warns(MissingContext), pytest.raises(PowerCut):
        work(EVENT)


def test_batch_killed_in_its_third_record_goes_on_there(world: World, records: Records) -> None:
    runs: list[int] = []
    power_fails = True

    @idempotent(records, key=message_body)
    def work(record: Any) -> None:
        number = json.loads(record["body"])["number"]
        runs.append(number)
        if number == 3 and power_fails:
            raise PowerCut

    batch = {"Records": [sqs(number, {"number": number}) for number in range(1, 6)]}
    with pytest.raises(PowerCut):
        each_record(batch, work, Context(30))
    power_fails = False
    answer = each_record({"Records": batch["Records"][:3]}, work, Context(30))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m3"}]}
    world.clock.advance(32)
    assert each_record(batch, work, Context(30)) == {"batchItemFailures": []}
    assert runs == [1, 2, 3, 3, 4, 5]


def test_first_failure_ends_a_batch_of_a_fifo_queue() -> None:
    def work(record: Any) -> None:
        done.append(record["messageId"])
        if record["messageId"] == "m2":
            raise ValueError

    for arn, expected, failed in (("arn:q", ["m1", "m2", "m3"], ["m2"]), ("arn:q.fifo", ["m1", "m2"], ["m2", "m3"])):
        done: list[str] = []
        records = [{**sqs(number, {}), "eventSourceARN": arn} for number in (1, 2, 3)]
        answer = each_record({"Records": records}, work, Context())
        assert (done, [one["itemIdentifier"] for one in answer["batchItemFailures"]]) == (expected, failed)


def test_id_is_the_events_own_whatever_carried_it() -> None:
    assert event_id(EVENT) == "e1"
    assert event_id(sqs(1, EVENT)) == event_id({"Records": [sqs(2, EVENT)]}) == "e1"
    assert event_id({"Records": [{"Sns": {"Message": json.dumps(EVENT)}}]}) == "e1"
    assert event_id(sqs(1, {"Type": "Notification", "MessageId": "x", "Message": json.dumps(EVENT)})) == "e1"
    assert event_id({"eventID": "s1", "eventSource": "aws:dynamodb", "dynamodb": {}}) == "s1"
    assert event_id({"specversion": "1.0", "source": "shop", "id": "7"}) == "shop#7"


def test_id_of_an_object_is_its_place_and_sequencer_in_both_ways_that_s3_tells_of_it() -> None:
    notified = {"s3": {"bucket": {"name": "b"}, "object": {"key": "a+b%2Bc", "sequencer": "01"}}}
    on_bus = {
        "id": "anything",
        "detail-type": "Object Created",
        "source": "aws.s3",
        "detail": {"bucket": {"name": "b"}, "object": {"key": "a b+c", "sequencer": "01"}},
    }
    assert event_id(notified) == event_id(sqs(1, {"Records": [notified]})) == event_id(on_bus) == "b/a b+c#01"


@pytest.mark.parametrize("event", [{"id": "order-1"}, sqs(1, {"id": "order-1"}), sqs(1, "text"), {"Records": []}, None])
def test_business_id_or_the_transports_is_not_taken_for_the_events(event: Any) -> None:
    with pytest.raises(ValueError, match="key="):
        event_id(event)


def test_what_cannot_work_is_refused_when_it_is_declared(records: Records) -> None:
    async def later(event: Any) -> None: ...

    with pytest.raises(TypeError, match="coroutine"):
        idempotent(records)(later)
    with pytest.raises(ValueError, match="unknown outcome"):
        idempotent(records, unfinished="maybe")  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(
    fates=st.lists(st.sampled_from(["fine", "fails", "cut in the work", "cut after it", "cut before it"]), max_size=6)
)
def test_whatever_befalls_the_deliveries_finished_work_is_not_done_again_and_unfinished_is_not_forgotten(
    fates: list[str],
) -> None:
    world = World([SERVICE])
    world.call(
        "dynamodb",
        "CreateTable",
        TableName="seen",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client = TableClient(world)
    records = Records("seen", client=client, clock=world.clock.now)
    reported: list[str] = []

    def cut(operation: str) -> None:
        raise PowerCut

    for fate in [*fates, "fine"]:
        ran = False

        def work(event: Any, context: Any, fate: str = fate) -> str:
            nonlocal ran
            ran = True
            assert not reported
            if fate == "cut after it":
                client.before = cut
            elif fate == "cut in the work":
                raise PowerCut
            elif fate == "fails":
                raise ConnectionError
            return "done"

        client.after = cut if fate == "cut before it" else lambda operation: None
        try:
            answer = idempotent(records)(work)(EVENT, Context(30))
        except (PowerCut, ConnectionError):
            pass
        else:
            assert ran != isinstance(answer, Skipped)
            reported.append(fate)
        client.before = client.after = lambda operation: None
        world.clock.advance(32)
    assert reported


def test_the_guides_example_charges_once(world: World, client: TableClient, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[1] / "docs" / "guides" / "idempotency.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    world.call(
        "dynamodb",
        "CreateTable",
        TableName="orders-seen",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    monkeypatch.setattr("boto3.client", lambda service: client)
    charged: list[tuple[Any, ...]] = []

    class Payments:
        def charge(self, customer: str, amount: int, *, idempotency_key: str) -> None:
            charged.append((customer, amount, idempotency_key))

    module: dict[str, Any] = {"json": json, "payments": Payments()}
    exec(example, module)
    order = {**EVENT, "detail": {"customer": "c1", "amount": 7}}
    for number in (1, 2):
        answer = module["handler"]({"Records": [sqs(number, order)]}, Context())
        assert answer == {"batchItemFailures": []}
    assert charged == [("c1", 7, "e1")]
