"""Filter policies by attributes and by body, through the API."""

import json
from typing import Any

import pytest

from tests.services.sns.parties import Parties


def text(value: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}


def number(value: str) -> dict[str, str]:
    return {"DataType": "Number", "StringValue": value}


def several(*values: Any) -> dict[str, str]:
    return {"DataType": "String.Array", "StringValue": json.dumps(values)}


# Policy, attributes, whether the message is wanted; after the examples of the SNS developer guide.
BY_ATTRIBUTES: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({}, {}, True),
    ({"a": ["x", "y"]}, {"a": text("y")}, True),
    ({"a": ["x"]}, {"a": text("z")}, False),
    ({"a": ["x"]}, {}, False),
    ({"a": ["x"], "b": [1]}, {"a": text("x")}, False),
    ({"a": [100]}, {"a": number("100.0")}, True),
    ({"a": ["100"]}, {"a": number("100")}, False),
    ({"a": [100]}, {"a": text("100")}, False),
    ({"a": ["rugby"]}, {"a": several("soccer", "rugby")}, True),
    ({"a": [True]}, {"a": several(True, 3)}, True),
    ({"a": [None]}, {"a": several(None)}, True),
    ({"a": [{"anything-but": ["x"]}]}, {"a": several("x", "y")}, True),
    ({"a": [{"anything-but": ["x", "y"]}]}, {"a": several("x", "y")}, False),
    ({"a": [{"anything-but": {"prefix": "order-"}}]}, {"a": text("order-1")}, False),
    ({"a": [{"prefix": "bas"}]}, {"a": text("baseball")}, True),
    ({"a": [{"suffix": "ball"}]}, {"a": text("baseball")}, True),
    ({"a": [{"equals-ignore-case": "TENNIS"}]}, {"a": text("tennis")}, True),
    ({"a": [{"numeric": [">", 0, "<=", 150]}]}, {"a": number("150")}, True),
    ({"a": [{"numeric": ["<", 0]}]}, {"a": text("-1")}, False),
    ({"a": [{"numeric": ["=", 3.015e2]}]}, {"a": number("301.5")}, True),
    ({"a": [{"exists": True}]}, {"a": text("x")}, True),
    ({"a": [{"exists": False}]}, {"b": text("x")}, True),
    ({"a": [{"cidr": "10.0.0.0/24"}]}, {"a": text("10.0.0.255")}, True),
    ({"a": [{"cidr": "10.0.0.0/24"}]}, {"a": text("10.0.1.0")}, False),
    ({"$or": [{"a": ["x"]}, {"b": ["y"]}]}, {"b": text("y")}, True),
    ({"$or": [{"a": ["x"]}, {"b": ["y"]}]}, {"c": text("y")}, False),
    ({"a": ["x"]}, {"a": {"DataType": "Binary", "BinaryValue": b"x"}}, False),
]


@pytest.mark.parametrize(("policy", "attributes", "wanted"), BY_ATTRIBUTES)
def test_attributes_decide(sns: Parties, policy: dict[str, Any], attributes: dict[str, Any], wanted: bool) -> None:
    topic = sns.topic()
    sns.subscribe(topic, sns.queue(), FilterPolicy=json.dumps(policy))
    sns("Publish", TopicArn=topic, Message="m", MessageAttributes=attributes)
    assert bool(sns.received()) == wanted


BY_BODY: list[tuple[dict[str, Any], str, bool]] = [
    ({"a": {"b": ["x"]}}, '{"a": {"b": "x"}}', True),
    ({"a": {"b": ["x"]}}, '{"a": [{"b": "y"}, {"b": "x"}]}', True),
    ({"a": {"b": ["x"], "c": [1]}}, '{"a": [{"b": "x", "c": 2}, {"b": "y", "c": 1}]}', False),
    ({"a": [{"numeric": [">", 1]}]}, '{"a": 2}', True),
    ({"a": [{"exists": False}]}, "{}", True),
    ({"a": ["x"]}, "no JSON", False),
    ({"a": [{"exists": False}]}, "[1]", False),
    ({"a": [{"exists": False}]}, '"text"', False),
]


@pytest.mark.parametrize(("policy", "body", "wanted"), BY_BODY)
def test_the_body_decides(sns: Parties, policy: dict[str, Any], body: str, wanted: bool) -> None:
    topic = sns.topic()
    sns.subscribe(topic, sns.queue(), FilterPolicy=json.dumps(policy), FilterPolicyScope="MessageBody")
    sns("Publish", TopicArn=topic, Message=body)
    assert bool(sns.received()) == wanted


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("{", "FilterPolicy: failed to parse JSON."),
        ("[]", "FilterPolicy: failed to parse JSON."),
        ('{"a": {"b": ["x"]}}', "Filter policy scope MessageAttributes does not support nested filter policy"),
        ('{"a": "x"}', 'FilterPolicy: "a" must be an object or an array'),
        ('{"a": [{"resembles": "x"}]}', "FilterPolicy: Unrecognized match type resembles"),
        ('{"a": []}', "FilterPolicy: Empty arrays are not allowed"),
        (json.dumps({key: ["x"] for key in "abcdef"}), "FilterPolicy: Filter policy can not have more than 5 keys"),
        (json.dumps({"a": list(range(16)), "b": list(range(10))}), "FilterPolicy: Filter policy is too complex"),
    ],
)
def test_what_is_no_policy_is_refused_when_it_is_set(sns: Parties, policy: str, said: str) -> None:
    topic = sns.topic()
    subscription = sns.subscribe(topic, sns.queue())
    asked = {"SubscriptionArn": subscription, "AttributeName": "FilterPolicy", "AttributeValue": policy}
    assert sns.refused("SetSubscriptionAttributes", **asked) == ("InvalidParameter", f"Invalid parameter: {said}")


def test_an_empty_policy_takes_the_filter_away(sns: Parties) -> None:
    topic = sns.topic()
    subscription = sns.subscribe(topic, sns.queue(), FilterPolicy='{"a": ["x"]}')
    asked = {"SubscriptionArn": subscription, "AttributeName": "FilterPolicy", "AttributeValue": "{}"}
    sns("SetSubscriptionAttributes", **asked)
    assert "FilterPolicy" not in sns("GetSubscriptionAttributes", SubscriptionArn=subscription)["Attributes"]
    sns("Publish", TopicArn=topic, Message="m")
    assert len(sns.received()) == 1


def test_a_policy_that_nests_cannot_come_to_be_about_attributes(sns: Parties) -> None:
    topic = sns.topic()
    nested = '{"a": {"b": ["x"]}}'
    subscription = sns.subscribe(topic, sns.queue(), FilterPolicy=nested, FilterPolicyScope="MessageBody")
    asked = {"AttributeName": "FilterPolicyScope", "AttributeValue": "MessageAttributes"}
    assert sns.refused("SetSubscriptionAttributes", SubscriptionArn=subscription, **asked)[0] == "InvalidParameter"
