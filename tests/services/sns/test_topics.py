"""Topics, subscriptions, batches, tags and permissions, and how each is refused."""

from typing import Any

import orjson
import pytest

from muster.services.sns import backoff
from tests.services.sns.parties import FUNCTION, Parties

GONE = "arn:aws:sns:us-east-1:000000000000:gone"


def test_creating_again_answers_the_same_topic_unless_something_differs(sns: Parties) -> None:
    topic = sns.topic(DisplayName="d")
    assert sns.topic(DisplayName="d") == sns.topic() == topic
    assert sns.refused("CreateTopic", Name="t", Attributes={"DisplayName": "e"}) == (
        "InvalidParameter",
        "Invalid parameter: Attributes Reason: Topic already exists with different attributes",
    )
    assert sns.refused("CreateTopic", Name="t", Tags=[{"Key": "a", "Value": "b"}])[1].endswith("different tags")


@pytest.mark.parametrize(
    ("name", "attributes"),
    [("", {}), ("a b", {}), ("x" * 257, {}), ("t.fifo", {}), ("t", {"FifoTopic": "true"}), ("t", {"Colour": "red"})],
)
def test_a_name_or_attribute_that_sns_does_not_take_is_refused(
    sns: Parties, name: str, attributes: dict[str, str]
) -> None:
    assert sns.refused("CreateTopic", Name=name, Attributes=attributes)[0] == "InvalidParameter"


@pytest.mark.parametrize("attribute", ["LambdaSuccessFeedbackRoleArn", "ArchivePolicy"])
def test_what_is_not_offered_is_refused_by_name(sns: Parties, attribute: str) -> None:
    code, message = sns.refused("CreateTopic", Name="t", Attributes={attribute: "x"})
    assert (code, attribute in message) == ("NotImplemented", True)


@pytest.mark.parametrize("protocol", ["email", "email-json", "sms", "application", "firehose"])
def test_protocols_that_are_not_offered_are_refused_by_name(sns: Parties, protocol: str) -> None:
    code, message = sns.refused("Subscribe", TopicArn=sns.topic(), Protocol=protocol, Endpoint="x")
    assert (code, protocol in message) == ("NotImplemented", True)


@pytest.mark.parametrize(
    ("protocol", "endpoint"),
    [
        ("lambda", "f"),
        ("http", "https://a.example/"),
        ("https", "https:///path"),
        ("http", "http://a b/"),
        ("http", "http://a.example:99999/"),
        ("sqs", "arn:aws:sqs:us-east-1:000000000000:q.fifo"),
    ],
)
def test_an_endpoint_that_does_not_fit_its_protocol_is_refused(sns: Parties, protocol: str, endpoint: str) -> None:
    refused = sns.refused("Subscribe", TopicArn=sns.topic(), Protocol=protocol, Endpoint=endpoint)
    assert refused[0] == "InvalidParameter"


def test_deleting_a_topic_takes_its_subscriptions_along(sns: Parties) -> None:
    topic = sns.topic()
    sns.subscribe(topic, sns.queue())
    sns("DeleteTopic", TopicArn=topic)
    assert sns("ListSubscriptions") == {"Subscriptions": []}
    assert sns("ListTopics") == {"Topics": []}


def test_topics_and_subscriptions_are_counted_and_listed_in_pages(sns: Parties) -> None:
    names = [f"t{number:03}" for number in range(101)]
    arns = [sns.topic(name) for name in names]
    first = sns("ListTopics")
    rest = sns("ListTopics", NextToken=first["NextToken"])
    assert [one["TopicArn"] for one in first["Topics"] + rest["Topics"]] == arns
    gone = sns.subscribe(arns[0], sns.queue())
    sns.subscribe(arns[0], FUNCTION, "lambda")
    sns.subscribe(arns[0], "http://127.0.0.1:9/", "http")
    sns("Unsubscribe", SubscriptionArn=gone)
    sns("Unsubscribe", SubscriptionArn=gone)
    shown = sns("GetTopicAttributes", TopicArn=arns[0])["Attributes"]
    counts = [shown[f"Subscriptions{what}"] for what in ("Confirmed", "Pending", "Deleted")]
    assert counts == ["1", "1", "1"]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"Message": ""}, "Invalid parameter: Empty message"),
        ({"Message": "m", "Subject": "x" * 101}, "Invalid parameter: Subject"),
        ({"Message": "m", "Subject": "a\nb"}, "Invalid parameter: Subject"),
        ({"Message": "x" * 262_145}, "Invalid parameter: Message too long"),
        (
            {"Message": "m", "MessageStructure": "json"},
            "Invalid parameter: Message Structure - JSON message body failed to parse",
        ),
        (
            {"Message": '{"sqs": "m"}', "MessageStructure": "json"},
            "Invalid parameter: Message Structure - No default entry in JSON message body",
        ),
    ],
)
def test_messages_that_sns_does_not_take_are_refused(sns: Parties, request_: dict[str, Any], said: str) -> None:
    assert sns.refused("Publish", TopicArn=sns.topic(), **request_) == ("InvalidParameter", said)


@pytest.mark.parametrize(
    "attribute",
    [
        {"DataType": "Colour", "StringValue": "x"},
        {"DataType": "String"},
        {"DataType": "Number", "StringValue": "x"},
        {"DataType": "String.Array", "StringValue": "[{}]"},
        {"StringValue": "x"},
    ],
)
def test_attributes_that_sns_does_not_take_are_refused(sns: Parties, attribute: dict[str, str]) -> None:
    refused = sns.refused("Publish", TopicArn=sns.topic(), Message="m", MessageAttributes={"a": attribute})
    assert refused[0] == "ParameterValueInvalid"


def test_a_fifo_topic_wants_a_group_and_a_way_to_tell_repeats(sns: Parties) -> None:
    topic = sns.topic("t.fifo", FifoTopic="true")
    assert "MessageGroupId" in sns.refused("Publish", TopicArn=topic, Message="m")[1]
    assert "ContentBasedDeduplication" in sns.refused("Publish", TopicArn=topic, Message="m", MessageGroupId="g")[1]
    assert sns.refused("Publish", TopicArn=sns.topic(), Message="m", MessageDeduplicationId="1")[0]
    assert sns.refused("Subscribe", TopicArn=topic, Protocol="lambda", Endpoint=FUNCTION)[0] == "InvalidParameter"


def test_a_batch_publishes_what_it_can_and_says_what_it_could_not(sns: Parties) -> None:
    topic = sns.topic()
    sns.subscribe(topic, sns.queue(), RawMessageDelivery="true")
    entries = [{"Id": "a", "Message": "m"}, {"Id": "b", "Message": "m", "Subject": ""}]
    answer = sns("PublishBatch", TopicArn=topic, PublishBatchRequestEntries=entries)
    assert [one["Id"] for one in answer["Successful"]] == ["a"]
    assert answer["Failed"] == [
        {"Id": "b", "Code": "InvalidParameter", "Message": "Invalid parameter: Subject", "SenderFault": True}
    ]
    assert sns.bodies() == ["m"]


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([], "EmptyBatchRequest"),
        ([{"Id": str(n), "Message": "m"} for n in range(11)], "TooManyEntriesInBatchRequest"),
        ([{"Id": "a", "Message": "m"}] * 2, "BatchEntryIdsNotDistinct"),
        ([{"Id": "a b", "Message": "m"}], "InvalidBatchEntryId"),
        ([{"Id": str(n), "Message": "x" * 140_000} for n in range(2)], "BatchRequestTooLong"),
    ],
)
def test_a_batch_that_is_none_is_refused_as_a_whole(sns: Parties, entries: list[dict[str, str]], code: str) -> None:
    assert sns.refused("PublishBatch", TopicArn=sns.topic(), PublishBatchRequestEntries=entries)[0] == code


def test_tags_come_and_go(sns: Parties) -> None:
    topic = sns.topic()
    sns("TagResource", ResourceArn=topic, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}])
    sns("UntagResource", ResourceArn=topic, TagKeys=["a"])
    assert sns("ListTagsForResource", ResourceArn=topic) == {"Tags": [{"Key": "b", "Value": "2"}]}
    assert sns.refused("ListTagsForResource", ResourceArn=GONE) == ("ResourceNotFound", "Resource does not exist")


def test_permissions_are_statements_of_the_policy(sns: Parties) -> None:
    topic = sns.topic()
    sns("AddPermission", TopicArn=topic, Label="l", AWSAccountId=["111111111111"], ActionName=["Publish"])
    policy = orjson.loads(sns("GetTopicAttributes", TopicArn=topic)["Attributes"]["Policy"])
    assert policy["Statement"][1]["Principal"] == {"AWS": "arn:aws:iam::111111111111:root"}
    sns("RemovePermission", TopicArn=topic, Label="l")
    policy = orjson.loads(sns("GetTopicAttributes", TopicArn=topic)["Attributes"]["Policy"])
    assert len(policy["Statement"]) == 1


def test_delivery_policies_are_checked_and_shown_in_force(sns: Parties) -> None:
    topic = sns.topic()
    own = '{"healthyRetryPolicy": {"numRetries": 5, "minDelayTarget": 1, "maxDelayTarget": 9}}'
    subscription = sns.subscribe(topic, "http://127.0.0.1:9/", "http", DeliveryPolicy=own)
    shown = sns("GetSubscriptionAttributes", SubscriptionArn=subscription)["Attributes"]
    assert orjson.loads(shown["EffectiveDeliveryPolicy"])["healthyRetryPolicy"]["numRetries"] == 5
    for wrong in (
        "{",
        '{"healthyRetryPolicy": {"numRetries": -1}}',
        '{"healthyRetryPolicy": {"minDelayTarget": 99}}',
        '{"healthyRetryPolicy": {"maxDelayTarget": 3600, "numRetries": 50}}',
        '{"requestPolicy": {"headerContentType": "a/b\\r\\nx: y"}}',
        '{"requestPolicy": []}',
        '{"requestPolicy": {"colour": "red"}}',
    ):
        asked = {"AttributeName": "DeliveryPolicy", "AttributeValue": wrong}
        refused = sns.refused("SetSubscriptionAttributes", SubscriptionArn=subscription, **asked)
        assert refused[0] == "InvalidParameter"


def test_the_delays_of_managed_endpoints_have_four_phases() -> None:
    delays = [backoff.delay_seconds(backoff.MANAGED_RETRIES, failed) for failed in range(1, 17)]
    assert delays[:5] == [0, 0, 0, 1, 1]
    growing = [delay or 0 for delay in delays[5:15]]
    assert (growing[0], growing[-1]) == (1, 20)
    assert growing == sorted(growing)
    assert backoff.delay_seconds(backoff.MANAGED_RETRIES, 100_015) == 20
    assert backoff.delay_seconds(backoff.MANAGED_RETRIES, 100_016) is None


@pytest.mark.parametrize("function", backoff.FUNCTIONS)
def test_every_backoff_function_goes_from_the_lowest_delay_to_the_highest(function: str) -> None:
    policy = {**backoff.HTTP_RETRIES, "numRetries": 9, "minDelayTarget": 2, "maxDelayTarget": 30}
    policy["backoffFunction"] = function
    delays = [backoff.delay_seconds(policy, failed) or 0 for failed in range(1, 10)]
    assert (delays[0], delays[-1]) == (2, 30)
    assert delays == sorted(delays)
