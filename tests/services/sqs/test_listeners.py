"""Siblings that are told when a queue has a message."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.errors import ServiceError
from muster.services.sqs import SERVICE
from muster.testing import World
from muster.transaction import Carried, Transaction

heard: list[float] = []


def make_world() -> World:
    heard.clear()
    world = World([SERVICE], carriers={"test.told": lambda tx, delivery: heard.append(tx.now)})
    world.call("sqs", "CreateQueue", QueueName="q")
    return world


@pytest.fixture
def world() -> World:
    return make_world()


def listen(world: World, queue: str = "q", **more: Any) -> None:
    request = {"QueueUrl": queue, "Kind": "test.told", "Subject": "me", **more}
    world.change(lambda tx: tx.call("sqs", "Listen", request))


def send(world: World, queue: str = "q", **more: Any) -> None:
    world.call("sqs", "SendMessage", QueueUrl=queue, MessageBody="x", **more)


def test_a_listener_is_told_once_of_many_messages(world: World) -> None:
    listen(world)
    world.settle()
    assert heard == []
    for _ in range(5):
        send(world)
    world.settle()
    assert len(heard) == 1
    send(world)
    world.settle()
    assert len(heard) == 1, "it has not listened again"
    listen(world)
    world.settle()
    assert len(heard) == 2, "there are messages"


def test_an_earlier_message_is_told_of_earlier(world: World) -> None:
    began = world.clock.now()
    listen(world)
    send(world, DelaySeconds=60)
    send(world, DelaySeconds=10)
    send(world, DelaySeconds=30)
    world.pass_time(100)
    assert heard == [began + 10]


def test_a_listener_may_rest_and_may_ignore_what_is_there(world: World) -> None:
    began = world.clock.now()
    send(world)
    listen(world, New=True, NotBefore=began + 5)
    world.pass_time(10)
    assert heard == []
    listen(world, New=True, NotBefore=began + 20)
    send(world)
    world.pass_time(20)
    assert heard == [began + 20]


def test_the_next_of_a_group_is_told_of_when_the_one_before_is_deleted(world: World) -> None:
    world.call("sqs", "CreateQueue", QueueName="q.fifo", Attributes={"FifoQueue": "true"})
    for number in range(2):
        send(world, "q.fifo", MessageGroupId="g", MessageDeduplicationId=str(number))
    [first] = world.call("sqs", "ReceiveMessage", QueueUrl="q.fifo")["Messages"]
    listen(world, "q.fifo")
    world.settle()
    assert heard == []
    world.call("sqs", "DeleteMessage", QueueUrl="q.fifo", ReceiptHandle=first["ReceiptHandle"])
    world.settle()
    assert len(heard) == 1


def test_a_dead_letter_is_told_of_in_its_new_queue(world: World) -> None:
    policy = {"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:q", "maxReceiveCount": 1}
    world.call("sqs", "CreateQueue", QueueName="source", Attributes={"RedrivePolicy": json.dumps(policy)})
    listen(world)
    send(world, "source")
    for _ in range(2):
        world.call("sqs", "ReceiveMessage", QueueUrl="source", VisibilityTimeout=0)
    world.settle()
    assert len(heard) == 1


def test_who_listens_no_more_is_not_told(world: World) -> None:
    listen(world)
    send(world)
    request = {"QueueUrl": "q", "Kind": "test.told", "Subject": "me"}
    world.change(lambda tx: tx.call("sqs", "Unlisten", request))
    world.settle()
    assert heard == []


def test_a_deleted_queue_is_told_of(world: World) -> None:
    listen(world)
    world.call("sqs", "DeleteQueue", QueueUrl="q")
    world.settle()
    assert len(heard) == 1


def test_listening_is_for_siblings(world: World) -> None:
    with pytest.raises(ServiceError, match="does not support"):
        world.call("sqs", "Listen", QueueUrl="q", Kind="k", Subject="s")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(("send", "receive", "pass")), st.integers(0, 40)), max_size=12))
def test_whoever_listens_again_each_time_misses_no_message(steps: list[tuple[str, int]]) -> None:
    def take_all(tx: Transaction, delivery: Carried) -> None:
        for message in tx.call("sqs", "ReceiveBatch", {"QueueUrl": "q", "MaxNumberOfMessages": 100, "BytesMax": 10**6})[
            "Messages"
        ]:
            tx.call("sqs", "DeleteMessage", {"QueueUrl": "q", "ReceiptHandle": message["ReceiptHandle"]})
        tx.call("sqs", "Listen", {"QueueUrl": "q", "Kind": "test.told", "Subject": "me"})

    world = World([SERVICE], carriers={"test.told": take_all})
    world.call("sqs", "CreateQueue", QueueName="q")
    listen(world)
    for step, number in steps:
        if step == "send":
            send(world, DelaySeconds=number)
        elif step == "receive":
            world.call("sqs", "ReceiveMessage", QueueUrl="q", VisibilityTimeout=number)
        else:
            world.pass_time(number)
            seen = world.rows("SELECT 1 AS one FROM sqs_messages WHERE visible_at <= :now", now=world.clock.now())
            assert not seen
    world.pass_time(41)
    assert not world.rows("SELECT 1 AS one FROM sqs_messages")
