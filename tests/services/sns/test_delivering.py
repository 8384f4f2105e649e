"""What reaches queues, functions and endpoints, in which form, and what becomes of what does not."""

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.errors import ServiceError
from muster.services import s3
from muster.services import sns as sns_service
from muster.services import sqs as sqs_service
from muster.store import blobs as blob_rows
from muster.store.blobs import Blobs
from muster.testing import World
from tests.services.sns.parties import FUNCTION, Parties

BUSY = ServiceError("TooManyRequestsException", "Rate exceeded")


def dead_letters(queue: str) -> str:
    return json.dumps({"deadLetterTargetArn": queue})


def failures(sns: Parties) -> list[Any]:
    return sns.world.rows("SELECT * FROM sns_failed_deliveries")


def test_a_queue_gets_the_envelope_with_its_members_in_order(sns: Parties) -> None:
    topic = sns.topic()
    subscription = sns.subscribe(topic, sns.queue())
    attributes = {"a": {"DataType": "String", "StringValue": "b"}, "c": {"DataType": "Binary", "BinaryValue": b"\x00"}}
    id_ = sns("Publish", TopicArn=topic, Message="m", Subject="s", MessageAttributes=attributes)["MessageId"]
    (message,) = sns.received()
    envelope = orjson.loads(message["Body"])
    assert list(envelope) == [
        "Type",
        "MessageId",
        "TopicArn",
        "Subject",
        "Message",
        "Timestamp",
        "SignatureVersion",
        "Signature",
        "SigningCertURL",
        "UnsubscribeURL",
        "MessageAttributes",
    ]
    assert (envelope["Type"], envelope["MessageId"], envelope["TopicArn"]) == ("Notification", id_, topic)
    assert envelope["MessageAttributes"] == {
        "a": {"Type": "String", "Value": "b"},
        "c": {"Type": "Binary", "Value": base64.b64encode(b"\x00").decode()},
    }
    assert envelope["UnsubscribeURL"].endswith(f"/?Action=Unsubscribe&SubscriptionArn={subscription}")
    assert "MessageAttributes" not in message


def test_raw_delivery_hands_on_the_message_and_its_attributes(sns: Parties) -> None:
    topic = sns.topic()
    sns.subscribe(topic, sns.queue(), RawMessageDelivery="true")
    attributes = {"a": {"DataType": "Number", "StringValue": "1"}, "c": {"DataType": "Binary", "BinaryValue": b"\x00"}}
    sns("Publish", TopicArn=topic, Message="m", MessageAttributes=attributes)
    (message,) = sns.received()
    assert (message["Body"], message["MessageAttributes"]) == ("m", attributes)


def test_a_function_gets_one_record(sns: Parties) -> None:
    topic = sns.topic()
    subscription = sns.subscribe(topic, FUNCTION, "lambda")
    sns("Publish", TopicArn=topic, Message="m")
    (record,) = sns.events[0]["Records"]
    assert (record["EventSource"], record["EventVersion"]) == ("aws:sns", "1.0")
    assert record["EventSubscriptionArn"] == subscription
    assert (record["Sns"]["Message"], record["Sns"]["Subject"], record["Sns"]["MessageAttributes"]) == ("m", None, {})
    assert {"SigningCertUrl", "UnsubscribeUrl", "Timestamp", "Signature"} <= record["Sns"].keys()


def test_a_structured_message_says_to_each_protocol_its_own(sns: Parties) -> None:
    topic = sns.topic()
    sns.subscribe(topic, sns.queue(), RawMessageDelivery="true")
    sns.subscribe(topic, FUNCTION, "lambda")
    sns("Publish", TopicArn=topic, Message='{"default": "d", "sqs": "for queues"}', MessageStructure="json")
    assert sns.bodies() == ["for queues"]
    assert sns.events[0]["Records"][0]["Sns"]["Message"] == "d"


def test_a_busy_function_is_tried_again_by_the_phases_of_sns(sns: Parties) -> None:
    topic = sns.topic()
    sns.subscribe(topic, FUNCTION, "lambda")
    sns.refusals = [BUSY] * 5
    sns("Publish", TopicArn=topic, Message="m")
    # Three retries at once, then a second apart.
    assert (len(sns.refusals), sns.events) == (1, [])
    sns.world.pass_time(1)
    assert (len(sns.refusals), sns.events) == (0, [])
    sns.world.pass_time(1)
    assert len(sns.events) == 1
    assert failures(sns) == []


def test_what_is_gone_is_not_tried_again_and_ends_in_the_dead_letter_queue(sns: Parties) -> None:
    topic, letters = sns.topic(), sns.queue("dlq")
    gone = "arn:aws:sqs:us-east-1:000000000000:gone"
    sns.subscribe(topic, gone, RawMessageDelivery="true", RedrivePolicy=dead_letters(letters))
    sns("Publish", TopicArn=topic, Message="m")
    (letter,) = sns.received("dlq")
    assert letter["Body"] == "m"
    assert letter["MessageAttributes"]["ErrorCode"]["StringValue"] == "QueueDoesNotExist"
    assert {"ErrorMessage", "RequestID"} <= letter["MessageAttributes"].keys()
    assert failures(sns) == []


@pytest.mark.parametrize("policy", [{}, {"RedrivePolicy": dead_letters("arn:aws:sqs:us-east-1:000000000000:none")}])
def test_without_a_dead_letter_queue_that_takes_it_a_failure_is_written_down(
    sns: Parties, policy: dict[str, str]
) -> None:
    topic = sns.topic()
    sns.subscribe(topic, "arn:aws:sqs:us-east-1:000000000000:gone", **policy)
    sns("Publish", TopicArn=topic, Message="m")
    (failure,) = failures(sns)
    assert (failure["error_code"], orjson.loads(failure["message"])["text"]) == ("QueueDoesNotExist", "m")


def test_one_subscription_that_fails_takes_nothing_from_another(sns: Parties) -> None:
    topic = sns.topic()
    sns.subscribe(topic, "arn:aws:sqs:us-east-1:000000000000:gone")
    sns.subscribe(topic, sns.queue(), RawMessageDelivery="true")
    sns("Publish", TopicArn=topic, Message="m")
    assert sns.bodies() == ["m"]


def confirmed(sns: Parties, topic: str, **attributes: str) -> str:
    subscription = sns.subscribe(topic, "http://127.0.0.1:9/hook", "http", **attributes)
    token = orjson.loads(sns.posts.pop()["body"])["Token"]
    sns("ConfirmSubscription", TopicArn=topic, Token=token)
    return subscription


def test_an_endpoint_gets_nothing_but_the_request_to_confirm_until_it_has(sns: Parties) -> None:
    topic = sns.topic()
    subscription = sns.subscribe(topic, "http://127.0.0.1:9/hook", "http")
    sns("Publish", TopicArn=topic, Message="too early")
    (asked,) = sns.posts
    body = orjson.loads(asked["body"])
    assert asked["headers"]["x-amz-sns-message-type"] == body["Type"] == "SubscriptionConfirmation"
    query = parse_qs(urlsplit(body["SubscribeURL"]).query)
    assert query == {"Action": ["ConfirmSubscription"], "TopicArn": [topic], "Token": [body["Token"]]}
    assert sns("ListSubscriptions")["Subscriptions"][0]["SubscriptionArn"] == "PendingConfirmation"
    for _ in range(2):
        assert sns("ConfirmSubscription", TopicArn=topic, Token=body["Token"]) == {"SubscriptionArn": subscription}
    sns("Publish", TopicArn=topic, Message="m")
    assert [orjson.loads(post["body"]).get("Message") for post in sns.posts[1:]] == ["m"]
    assert sns.posts[1]["headers"]["x-amz-sns-subscription-arn"] == subscription


def test_a_token_is_good_for_three_days(sns: Parties) -> None:
    topic = sns.topic()
    sns.subscribe(topic, "http://127.0.0.1:9/hook", "http")
    token = orjson.loads(sns.posts[0]["body"])["Token"]
    sns.world.clock.advance(3 * 86_400 + 1)
    assert sns.refused("ConfirmSubscription", TopicArn=topic, Token=token) == (
        "InvalidParameter",
        "Invalid parameter: Token",
    )


def test_an_endpoint_with_raw_delivery_is_told_so(sns: Parties) -> None:
    topic = sns.topic()
    confirmed(sns, topic, RawMessageDelivery="true")
    sns("Publish", TopicArn=topic, Message="m")
    assert (sns.posts[0]["body"], sns.posts[0]["headers"]["x-amz-sns-rawdelivery"]) == ("m", "true")


@pytest.mark.parametrize("answer", [500, 503, 429, "no connection"])
def test_an_endpoint_that_fails_is_tried_three_more_times_twenty_seconds_apart(sns: Parties, answer: int | str) -> None:
    topic = sns.topic()
    confirmed(sns, topic, RedrivePolicy=dead_letters(sns.queue("dlq")))
    sns.answers = [answer] * 4
    sns("Publish", TopicArn=topic, Message="m")
    sns.world.pass_time(100)
    begun = sns.posts[0]["at"]
    assert [post["at"] - begun for post in sns.posts] == [0, 20, 40, 60]
    assert len({post["headers"]["x-amz-sns-message-id"] for post in sns.posts}) == 1
    assert [orjson.loads(body)["Message"] for body in sns.bodies("dlq")] == ["m"]


@pytest.mark.parametrize("answer", [302, 400, 404])
def test_an_endpoint_that_refuses_is_not_tried_again(sns: Parties, answer: int) -> None:
    topic = sns.topic()
    confirmed(sns, topic)
    sns.answers = [answer]
    sns("Publish", TopicArn=topic, Message="m")
    sns.world.pass_time(100)
    assert (len(sns.posts), failures(sns)[0]["error_code"]) == (1, str(answer))


def test_a_subscription_that_ends_gets_nothing_more(sns: Parties) -> None:
    topic = sns.topic()
    subscription = confirmed(sns, topic)
    sns.answers = [500]
    sns("Publish", TopicArn=topic, Message="m")
    sns("Unsubscribe", SubscriptionArn=subscription)
    sns.world.pass_time(100)
    assert len(sns.posts) == 1
    assert sns.world.rows("SELECT * FROM deliveries") == []


def fifo(sns: Parties, **attributes: str) -> tuple[str, str]:
    topic = sns.topic("t.fifo", FifoTopic="true", **attributes)
    queue = sns.queue("q.fifo", FifoQueue="true")
    return topic, sns.subscribe(topic, queue, RawMessageDelivery="true")


def test_a_repeated_message_of_a_fifo_topic_answers_as_the_first_and_is_not_delivered(sns: Parties) -> None:
    topic, _ = fifo(sns, ContentBasedDeduplication="true")
    first = sns("Publish", TopicArn=topic, Message="m", MessageGroupId="g")
    assert sns("Publish", TopicArn=topic, Message="m", MessageGroupId="other") == first
    sns.world.clock.advance(301)
    again = sns("Publish", TopicArn=topic, Message="m", MessageGroupId="g")
    assert again["SequenceNumber"] > first["SequenceNumber"]
    assert sns.bodies("q.fifo") == ["m", "m"]


def test_each_group_deduplicates_for_itself_where_the_topic_says_so(sns: Parties) -> None:
    topic, _ = fifo(sns, FifoThroughputScope="MessageGroup")
    for group in ("a", "b", "a"):
        sns("Publish", TopicArn=topic, Message=group, MessageGroupId=group, MessageDeduplicationId="1")
    assert sns.world.rows("SELECT COUNT(*) AS n FROM sns_deduplications")[0]["n"] == 2


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), max_size=12))
def test_a_group_keeps_its_order_whatever_fails(script: list[tuple[str, int]]) -> None:
    sns = Parties()
    topic, _ = fifo(sns)
    for number, (group, failing) in enumerate(script):
        sns.queue_refusals += failing * 4
        message = f"{group}{number}"
        sns("Publish", TopicArn=topic, Message=message, MessageGroupId=group, MessageDeduplicationId=message)
    sns.world.pass_time(600)
    arrived = sns.bodies("q.fifo")
    for group in "ab":
        sent = [f"{group}{number}" for number, (one, _) in enumerate(script) if one == group]
        assert [body for body in arrived if body.startswith(group)] == sent


def test_the_test_event_of_a_bucket_reaches_a_queue_behind_a_topic_in_the_envelope(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    world = World(
        [s3.service(blobs), sns_service.SERVICE, sqs_service.SERVICE],
        parts={blob_rows.PART: blob_rows.MIGRATIONS},
        runners={blob_rows.REMOVE: blobs.carry_removal, **s3.runners(blobs)},
    )
    topic = world.call("sns", "CreateTopic", Name="t")["TopicArn"]
    url = world.call("sqs", "CreateQueue", QueueName="q")["QueueUrl"]
    queue = "arn:aws:sqs:us-east-1:000000000000:q"
    world.call("sns", "Subscribe", TopicArn=topic, Protocol="sqs", Endpoint=queue)
    world.call("s3", "CreateBucket", Bucket="bucket")
    told = {"TopicConfigurations": [{"TopicArn": topic, "Events": ["s3:ObjectCreated:*"]}]}
    world.call("s3", "PutBucketNotificationConfiguration", Bucket="bucket", NotificationConfiguration=told)
    world.settle()
    (message,) = world.call("sqs", "ReceiveMessage", QueueUrl=url)["Messages"]
    envelope = orjson.loads(message["Body"])
    assert envelope["Subject"] == "Amazon S3 Notification"
    assert orjson.loads(envelope["Message"])["Event"] == "s3:TestEvent"


def test_a_group_is_handed_on_to_standard_queues_too(sns: Parties) -> None:
    fifo_topic, topic = sns.topic("t.fifo", FifoTopic="true"), sns.topic()
    sns.subscribe(fifo_topic, sns.queue(), RawMessageDelivery="true")
    sns.subscribe(topic, sns.queue(), RawMessageDelivery="true")
    sns("Publish", TopicArn=fifo_topic, Message="m", MessageGroupId="g", MessageDeduplicationId="1")
    sns("Publish", TopicArn=topic, Message="n", MessageGroupId="h")
    taken = [(message["Body"], message["Attributes"].get("MessageGroupId")) for message in sns.received()]
    assert taken == [("m", "g"), ("n", "h")]


def test_what_waits_for_a_retry_is_still_there_after_a_restart(tmp_path: Path) -> None:
    sns = Parties(tmp_path / "world.db")
    topic = sns.topic()
    sns.subscribe(topic, FUNCTION, "lambda")
    sns.refusals = [BUSY] * 4
    sns("Publish", TopicArn=topic, Message="m")
    sns.world.restart()
    sns.world.pass_time(1)
    assert [event["Records"][0]["Sns"]["Message"] for event in sns.events] == ["m"]
