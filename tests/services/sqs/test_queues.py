"""Queues: attributes with their limits, dead-letter queues, tags, purge, listing."""

import json

import pytest

from muster.errors import ServiceError
from muster.services.sqs import SERVICE
from muster.testing import World


@pytest.fixture
def world() -> World:
    return World([SERVICE])


def queue(world: World, name: str = "q", **attributes: str) -> str:
    url: str = world.call("sqs", "CreateQueue", QueueName=name, Attributes=attributes)["QueueUrl"]
    return url


def arn(name: str) -> str:
    return f"arn:aws:sqs:us-east-1:000000000000:{name}"


def test_creating_a_queue_again_answers_the_same_queue(world: World) -> None:
    assert queue(world, DelaySeconds="5") == queue(world, DelaySeconds="5") == queue(world)


def test_creating_a_queue_again_with_another_attribute_is_refused(world: World) -> None:
    queue(world)
    with pytest.raises(ServiceError, match="different value for attribute DelaySeconds"):
        queue(world, DelaySeconds="5")


@pytest.mark.parametrize("name", ["", "a b", "a" * 81, "ä", "a.fifo", "a/b"])
def test_names_outside_the_rules_are_refused(world: World, name: str) -> None:
    with pytest.raises(ServiceError):
        queue(world, name)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("VisibilityTimeout", "43201"),
        ("VisibilityTimeout", "-1"),
        ("DelaySeconds", "901"),
        ("MaximumMessageSize", "1023"),
        ("MessageRetentionPeriod", "59"),
        ("ReceiveMessageWaitTimeSeconds", "21"),
        ("ReceiveMessageWaitTimeSeconds", "soon"),
        ("Colour", "red"),
        ("ContentBasedDeduplication", "true"),
        ("RedrivePolicy", "no JSON"),
        ("RedrivePolicy", '{"maxReceiveCount": 1}'),
        ("RedrivePolicy", '{"maxReceiveCount": 0, "deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dlq"}'),
        ("RedrivePolicy", '{"maxReceiveCount": 3, "deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:no"}'),
    ],
)
def test_attributes_outside_their_limits_are_refused(world: World, attribute: str, value: str) -> None:
    queue(world, "dlq")
    with pytest.raises(ServiceError, match=attribute):
        queue(world, **{attribute: value})


def test_defaults_are_aws_defaults(world: World) -> None:
    url = queue(world)
    found = world.call("sqs", "GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert found["VisibilityTimeout"] == "30"
    assert found["MaximumMessageSize"] == "1048576"
    assert found["MessageRetentionPeriod"] == "345600"
    assert found["QueueArn"] == arn("q")
    assert found["ApproximateNumberOfMessages"] == "0"
    assert "FifoQueue" not in found


def test_a_queue_that_denies_redrive_cannot_become_a_dead_letter_queue(world: World) -> None:
    queue(world, "dlq", RedriveAllowPolicy='{"redrivePermission": "denyAll"}')
    policy = json.dumps({"deadLetterTargetArn": arn("dlq"), "maxReceiveCount": 2})
    with pytest.raises(ServiceError, match="does not allow"):
        queue(world, RedrivePolicy=policy)


def test_the_sources_of_a_dead_letter_queue_are_listed(world: World) -> None:
    dead = queue(world, "dlq")
    policy = json.dumps({"deadLetterTargetArn": arn("dlq"), "maxReceiveCount": "2"})
    source = queue(world, RedrivePolicy=policy)
    assert world.call("sqs", "ListDeadLetterSourceQueues", QueueUrl=dead)["queueUrls"] == [source]


def test_queues_are_listed_in_pages_by_prefix(world: World) -> None:
    for number in range(5):
        queue(world, f"a{number}")
    queue(world, "b")
    first = world.call("sqs", "ListQueues", QueueNamePrefix="a", MaxResults=3)
    second = world.call("sqs", "ListQueues", QueueNamePrefix="a", MaxResults=3, NextToken=first["NextToken"])
    assert [url[-2:] for url in first["QueueUrls"] + second["QueueUrls"]] == ["a0", "a1", "a2", "a3", "a4"]
    assert "NextToken" not in second


def test_a_purge_empties_the_queue_once_a_minute(world: World) -> None:
    url = queue(world)
    world.call("sqs", "SendMessage", QueueUrl=url, MessageBody="m")
    world.call("sqs", "PurgeQueue", QueueUrl=url)
    assert world.call("sqs", "ReceiveMessage", QueueUrl=url) == {}
    with pytest.raises(ServiceError, match="every 60 seconds"):
        world.call("sqs", "PurgeQueue", QueueUrl=url)
    world.clock.advance(60)
    world.call("sqs", "PurgeQueue", QueueUrl=url)


def test_a_deleted_queue_is_gone_with_its_messages(world: World) -> None:
    url = queue(world)
    world.call("sqs", "SendMessage", QueueUrl=url, MessageBody="m")
    world.call("sqs", "DeleteQueue", QueueUrl=url)
    with pytest.raises(ServiceError, match="does not exist"):
        world.call("sqs", "GetQueueUrl", QueueName="q")
    queue(world)
    assert world.call("sqs", "ReceiveMessage", QueueUrl=url) == {}


def test_tags_come_and_go(world: World) -> None:
    url = queue(world)
    world.call("sqs", "TagQueue", QueueUrl=url, Tags={"a": "1", "b": "2"})
    world.call("sqs", "UntagQueue", QueueUrl=url, TagKeys=["a", "never"])
    assert world.call("sqs", "ListQueueTags", QueueUrl=url) == {"Tags": {"b": "2"}}
