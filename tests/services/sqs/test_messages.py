"""Messages: leased and back, dead letters, order in groups, deduplication, long polling, batches, digests."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.errors import ServiceError
from muster.services.sqs import SERVICE
from muster.testing import World


@pytest.fixture
def world() -> World:
    return World([SERVICE])


def queue(world: World, name: str = "q", **attributes: str) -> str:
    url: str = world.call("sqs", "CreateQueue", QueueName=name, Attributes=attributes)["QueueUrl"]
    return url


def dead_letters_of(name: str, count: int = 1) -> str:
    target = f"arn:aws:sqs:us-east-1:000000000000:{name}"
    return json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": count})


def send(world: World, url: str, body: str, **more: Any) -> dict[str, Any]:
    return world.call("sqs", "SendMessage", QueueUrl=url, MessageBody=body, **more)


def receive(world: World, url: str, **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.call("sqs", "ReceiveMessage", QueueUrl=url, **more).get("Messages", [])
    return found


def bodies(world: World, url: str, count: int = 10) -> list[str]:
    return [message["Body"] for message in receive(world, url, MaxNumberOfMessages=count)]


def test_message_returns_when_its_visibility_timeout_lapses(world: World) -> None:
    url = queue(world, VisibilityTimeout="30")
    send(world, url, "hello")
    assert bodies(world, url) == ["hello"]
    assert bodies(world, url) == []
    world.clock.advance(29.9)
    assert bodies(world, url) == []
    world.clock.advance(0.2)
    assert bodies(world, url) == ["hello"]


def test_a_deleted_message_does_not_return(world: World) -> None:
    url = queue(world)
    send(world, url, "hello")
    handle = receive(world, url)[0]["ReceiptHandle"]
    world.call("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=handle)
    world.call("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=handle)
    world.clock.advance(60)
    assert bodies(world, url) == []


def test_a_handle_of_an_earlier_receive_does_not_delete(world: World) -> None:
    url = queue(world, VisibilityTimeout="1")
    send(world, url, "hello")
    old = receive(world, url)[0]["ReceiptHandle"]
    world.clock.advance(2)
    receive(world, url)
    world.call("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=old)
    world.clock.advance(2)
    assert bodies(world, url) == ["hello"]


@pytest.mark.parametrize("handle", ["nonsense", "bm9uc2Vuc2U=", "b3RoZXIgMSBhYg=="])
def test_a_handle_of_no_message_is_refused(world: World, handle: str) -> None:
    url = queue(world)
    with pytest.raises(ServiceError, match="not a valid receipt handle"):
        world.call("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=handle)


def test_a_visibility_of_zero_makes_a_message_visible_at_once(world: World) -> None:
    url = queue(world)
    send(world, url, "hello")
    handle = receive(world, url)[0]["ReceiptHandle"]
    world.call("sqs", "ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
    assert bodies(world, url) == ["hello"]


def test_a_delayed_message_is_counted_as_delayed_and_comes_when_due(world: World) -> None:
    url = queue(world)
    send(world, url, "later", DelaySeconds=10)
    send(world, url, "now")
    assert bodies(world, url) == ["now"]
    counts = world.call("sqs", "GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert counts["ApproximateNumberOfMessagesDelayed"] == "1"
    assert counts["ApproximateNumberOfMessagesNotVisible"] == "1"
    world.clock.advance(10)
    assert bodies(world, url) == ["later"]


def test_a_message_received_too_often_is_in_the_dead_letter_queue_with_where_it_came_from(world: World) -> None:
    dead = queue(world, "dlq")
    url = queue(world, VisibilityTimeout="1", RedrivePolicy=dead_letters_of("dlq", 3))
    sent = send(world, url, "poison")
    for _ in range(3):
        assert bodies(world, url) == ["poison"]
        world.clock.advance(2)
    assert bodies(world, url) == []
    found = receive(world, dead, MessageSystemAttributeNames=["All"])[0]
    assert found["MessageId"] == sent["MessageId"]
    assert found["Attributes"]["DeadLetterQueueSourceArn"].endswith(":q")
    assert found["Attributes"]["ApproximateReceiveCount"] == "1"


def test_a_fifo_dead_letter_keeps_its_group_and_deduplication_id(world: World) -> None:
    """sqs-dlq-04"""
    dead = queue(world, "d.fifo", FifoQueue="true")
    url = queue(world, "q.fifo", FifoQueue="true", VisibilityTimeout="1", RedrivePolicy=dead_letters_of("d.fifo"))
    send(world, url, "m", MessageGroupId="g", MessageDeduplicationId="d")
    assert bodies(world, url) == ["m"]
    world.clock.advance(2)
    assert bodies(world, url) == []
    attributes = receive(world, dead, AttributeNames=["All"])[0]["Attributes"]
    assert (attributes["MessageGroupId"], attributes["MessageDeduplicationId"]) == ("g", "d")


def test_redriven_messages_go_back_to_where_they_came_from(world: World) -> None:
    dead = queue(world, "dlq")
    url = queue(world, VisibilityTimeout="1", RedrivePolicy=dead_letters_of("dlq"))
    for number in range(25):
        send(world, url, str(number))
    for _ in range(4):
        bodies(world, url)
    world.clock.advance(2)
    assert bodies(world, url) == []
    source = "arn:aws:sqs:us-east-1:000000000000:dlq"
    world.call("sqs", "StartMessageMoveTask", SourceArn=source, MaxNumberOfMessagesPerSecond=10)
    world.settle()
    count = world.call("sqs", "GetQueueAttributes", QueueUrl=dead, AttributeNames=["ApproximateNumberOfMessages"])
    assert count["Attributes"]["ApproximateNumberOfMessages"] == "15"
    world.pass_time(5)
    task = world.call("sqs", "ListMessageMoveTasks", SourceArn=source)["Results"][0]
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 25)
    assert len(bodies(world, url)) == 10


def test_a_group_comes_in_order_and_waits_for_its_message_in_flight(world: World) -> None:
    url = queue(world, "q.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    for group, body in (("a", "a1"), ("a", "a2"), ("b", "b1"), ("a", "a3")):
        send(world, url, body, MessageGroupId=group)
    first = receive(world, url)
    assert [message["Body"] for message in first] == ["a1"]
    assert bodies(world, url) == ["b1"]
    world.call("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=first[0]["ReceiptHandle"])
    assert bodies(world, url) == ["a2", "a3"]


def test_a_repeat_within_five_minutes_is_answered_as_the_first(world: World) -> None:
    url = queue(world, "q.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    first = send(world, url, "m", MessageGroupId="g")
    world.clock.advance(299)
    assert send(world, url, "m", MessageGroupId="g")["MessageId"] == first["MessageId"]
    world.clock.advance(2)
    assert send(world, url, "m", MessageGroupId="g")["MessageId"] != first["MessageId"]
    assert bodies(world, url) == ["m", "m"]


def test_a_long_poll_ends_when_a_hidden_message_becomes_visible(world: World) -> None:
    url = queue(world)
    send(world, url, "later", DelaySeconds=3)
    began = world.clock.now()
    assert [m["Body"] for m in receive(world, url, WaitTimeSeconds=20)] == ["later"]
    assert world.clock.now() - began == pytest.approx(3)


def test_a_long_poll_of_an_empty_queue_ends_empty(world: World) -> None:
    url = queue(world)
    began = world.clock.now()
    assert receive(world, url, WaitTimeSeconds=5) == []
    assert world.clock.now() - began == pytest.approx(5)


def test_a_batch_answers_entry_by_entry(world: World) -> None:
    url = queue(world, MaximumMessageSize="1024")
    entries = [{"Id": "ok", "MessageBody": "m"}, {"Id": "large", "MessageBody": "x" * 1025}]
    answer = world.call("sqs", "SendMessageBatch", QueueUrl=url, Entries=entries)
    assert [one["Id"] for one in answer["Successful"]] == ["ok"]
    assert [(one["Id"], one["Code"]) for one in answer["Failed"]] == [("large", "InvalidParameterValue")]
    assert bodies(world, url) == ["m"]


def test_message_attributes_have_the_digest_that_clients_compute(world: World) -> None:
    url = queue(world)
    attributes = {
        "Foo": {"DataType": "String", "StringValue": "Bar"},
        "B": {"DataType": "Binary", "BinaryValue": b"\0"},
    }
    sent = send(world, url, "m", MessageAttributes=attributes)
    found = receive(world, url, MessageAttributeNames=["All"])[0]
    assert found["MessageAttributes"] == attributes
    spelled_out = (
        b"\0\0\0\x01B" b"\0\0\0\x06Binary" b"\x02" b"\0\0\0\x01\0"
        b"\0\0\0\x03Foo" b"\0\0\0\x06String" b"\x01" b"\0\0\0\x03Bar"
    )  # fmt: skip
    digest = hashlib.md5(spelled_out, usedforsecurity=False).hexdigest()
    assert found["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"] == digest


def test_expired_messages_are_forgotten(world: World) -> None:
    url = queue(world, MessageRetentionPeriod="60")
    send(world, url, "m")
    world.clock.advance(61)
    assert bodies(world, url) == []


def test_an_unsupported_parameter_is_refused_by_name(world: World) -> None:
    url = queue(world)
    with pytest.raises(ServiceError, match="ReceiveRequestAttemptId"):
        receive(world, url, ReceiveRequestAttemptId="x")


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(["send", "receive", "delete", "wait"]), max_size=40))
def test_a_message_is_never_lost_nor_leased_twice(steps: list[str]) -> None:
    world = World([SERVICE])
    url = queue(world, VisibilityTimeout="10")
    waiting: set[str] = set()
    leased: dict[str, tuple[str, float]] = {}
    for number, step in enumerate(steps):
        if step == "send":
            send(world, url, str(number))
            waiting.add(str(number))
        elif step == "receive":
            for message in receive(world, url):
                body = message["Body"]
                assert body in waiting or leased[body][1] <= world.clock.now()
                waiting.discard(body)
                leased[body] = (message["ReceiptHandle"], world.clock.now() + 10)
        elif step == "delete" and leased:
            body = next(iter(leased))
            world.call("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=leased.pop(body)[0])
        else:
            world.clock.advance(6)
    world.clock.advance(11)
    left: list[str] = []
    while found := bodies(world, url):
        left += found
    assert sorted(left) == sorted(waiting | leased.keys())
