"""`muster queues` and `muster dlq`, as processes on a real server."""

import io
import json
import os
import pty
import subprocess
import sys
import time
import uuid
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from muster.cli.client import Client, Clients
from muster.testing import ServerProcess

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@dataclass
class Orders:
    """A queue of orders and its dead-letter queue."""

    sqs: Client
    name: str

    @property
    def url(self) -> str:
        return str(self.sqs.get_queue_url(QueueName=self.name)["QueueUrl"])

    @property
    def dead_name(self) -> str:
        return f"{self.name}-dead"

    @property
    def dead_url(self) -> str:
        return f"{self.url}-dead"

    def depth(self, url: str) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        attributes = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(attributes[name]) for name in names)

    def die(self, *bodies: str) -> list[str]:
        """Send messages and let them fail as often as they may; their ids."""
        ids = []
        for body in bodies:
            attribute = {"tenant": {"DataType": "String", "StringValue": "north"}}
            sent = self.sqs.send_message(QueueUrl=self.url, MessageBody=body, MessageAttributes=attribute)
            ids.append(sent["MessageId"])
        for _ in range(2):
            while self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10, VisibilityTimeout=0).get(
                "Messages"
            ):
                pass
        assert self.depth(self.dead_url) == len(bodies)
        return ids


@pytest.fixture
def orders(aws: Clients) -> Orders:
    sqs = aws("sqs")
    made = Orders(sqs, f"orders-{uuid.uuid4().hex[:8]}")
    dead = sqs.create_queue(QueueName=made.dead_name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    sqs.create_queue(QueueName=made.name, Attributes={"RedrivePolicy": policy})
    return made


def of(orders: Orders, listed: str) -> dict[str, dict[str, Any]]:
    """The listed rows about these queues, by name."""
    return {row["queue"]: row for row in json.loads(listed) if row["queue"].startswith(orders.name)}


def test_queues_are_listed_with_what_waits_is_in_flight_and_delayed(muster: Run, orders: Orders) -> None:
    for delay in (0, 0, 900):
        orders.sqs.send_message(QueueUrl=orders.url, MessageBody="x", DelaySeconds=delay)
    orders.sqs.receive_message(QueueUrl=orders.url, VisibilityTimeout=600)
    rows = of(orders, muster("queues", "--json").stdout)
    assert rows[orders.name] == {
        "queue": orders.name,
        "visible": 1,
        "in_flight": 1,
        "delayed": 1,
        "dead_letter_target": orders.dead_name,
        "attempts": 1,
    }
    assert rows[orders.dead_name]["dead_letter_target"] is None
    piped = muster("queues")
    assert f"{orders.name}\t1\t1\t1\t{orders.dead_name}\t1" in piped.stdout.splitlines()
    assert piped.stderr == ""


def test_dead_letter_queues_are_listed_with_their_sources(muster: Run, orders: Orders) -> None:
    orders.die("a", "b")
    rows = of(orders, muster("dlq", "list", "--json").stdout)
    assert rows == {
        orders.dead_name: {
            "queue": orders.dead_name,
            "visible": 2,
            "in_flight": 0,
            "delayed": 0,
            "sources": [orders.name],
        }
    }
    assert f"{orders.dead_name}\t2\t0\t0\t{orders.name}" in muster("dlq").stdout.splitlines()


def test_rules_and_topics_that_name_a_dead_letter_queue_are_its_sources(
    muster: Run, aws: Clients, orders: Orders
) -> None:
    attributes = orders.sqs.get_queue_attributes(QueueUrl=orders.dead_url, AttributeNames=["QueueArn"])["Attributes"]
    arn = attributes["QueueArn"]
    work = arn.removesuffix("-dead")
    aws("events").put_rule(Name=orders.name, EventPattern='{"source": ["shop"]}')
    aws("events").put_targets(Rule=orders.name, Targets=[{"Id": "1", "Arn": work, "DeadLetterConfig": {"Arn": arn}}])
    topic = aws("sns").create_topic(Name=orders.name)["TopicArn"]
    policy = {"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn})}
    aws("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=work, Attributes=policy)
    rows = of(orders, muster("dlq", "list", "--json").stdout)
    assert rows[orders.dead_name]["sources"] == [orders.name, f"rule {orders.name}", f"topic {orders.name}"]


def test_messages_are_shown_and_stay_visible(muster: Run, orders: Orders) -> None:
    ids = orders.die(*(f"order {number}" for number in range(12)))
    told = json.loads(muster("dlq", "show", orders.dead_name, "--limit", "50", "--json").stdout)
    assert {fact["id"] for fact in told} == set(ids)
    assert {fact["body"] for fact in told} == {f"order {number}" for number in range(12)}
    assert {fact["source"] for fact in told} == {orders.name}
    assert told[0]["attributes"] == {"tenant": "north"}
    again = muster("dlq", "show", orders.dead_name, "--limit", "3")
    assert len(again.stdout.splitlines()) == 3
    assert "3 of 12 messages" in again.stderr
    assert of(orders, muster("queues", "--json").stdout)[orders.dead_name]["visible"] == 12


FAILING = """
def handler(event, context):
    for record in event["Records"]:
        print("cannot do", record["messageId"])
    raise ValueError("the bank is closed")
"""


def test_each_attempt_is_shown_with_its_error(muster: Run, aws: Clients, orders: Orders) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("app.py"), FAILING)
    orders.sqs.set_queue_attributes(QueueUrl=orders.url, Attributes={"VisibilityTimeout": "3"})
    aws("lambda").create_function(
        FunctionName=orders.name,
        Runtime="python3.11",
        Role="arn:aws:iam::000000000000:role/function",
        Handler="app.handler",
        Code={"ZipFile": buffer.getvalue()},
        Timeout=3,
    )
    arn = orders.sqs.get_queue_attributes(QueueUrl=orders.url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    aws("lambda").create_event_source_mapping(EventSourceArn=arn, FunctionName=orders.name, BatchSize=1)
    id_ = orders.sqs.send_message(QueueUrl=orders.url, MessageBody="a")["MessageId"]
    end = time.monotonic() + 60
    while not orders.depth(orders.dead_url):  # Another process gives no signal to wait for.
        assert time.monotonic() < end, "the message never died"
        time.sleep(0.1)
    (fact,) = json.loads(muster("dlq", "show", orders.dead_name, "--json").stdout)
    assert fact["id"] == id_
    (run,) = fact["attempts"]
    assert run["function"] == orders.name
    assert run["lines"][0] == f"cannot do {id_}"
    assert "ValueError: the bank is closed" in " ".join(run["lines"])


def test_queue_with_dead_letters_of_its_own_is_not_received_from(muster: Run, orders: Orders) -> None:
    orders.sqs.send_message(QueueUrl=orders.url, MessageBody="x")
    refused = muster("dlq", "show", orders.name)
    assert refused.returncode == 1
    assert "would count as receiving" in " ".join(refused.stderr.split())
    assert orders.depth(orders.url) == 1


def test_nothing_is_sent_back_or_discarded_where_nobody_can_be_asked(muster: Run, orders: Orders) -> None:
    (id_,) = orders.die("a")
    for command in (
        ("redrive", orders.dead_name),
        ("discard", orders.dead_name),
        ("redrive", orders.dead_name, "--message", id_),
        ("discard", orders.dead_name, "--message", id_),
    ):
        refused = muster("dlq", *command)
        assert refused.returncode == 1
        assert "--yes" in refused.stderr
    assert of(orders, muster("queues", "--json").stdout)[orders.dead_name]["visible"] == 1


def test_dead_letters_go_back_to_where_they_came_from(muster: Run, orders: Orders) -> None:
    orders.die("a", "b", "c")
    done = muster("dlq", "redrive", orders.dead_name, "--rate", "2", "--yes", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"queue": orders.dead_name, "moved": 3, "status": "COMPLETED"}
    assert (orders.depth(orders.url), orders.depth(orders.dead_url)) == (3, 0)
    assert "0 messages sent back" in muster("dlq", "redrive", orders.dead_name, "--yes").stdout


def test_one_message_is_sent_back_with_its_attributes(muster: Run, orders: Orders) -> None:
    ids = orders.die("a", "b", "c")
    done = muster("dlq", "redrive", orders.dead_name, "--message", ids[1], "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 message sent back" in done.stdout
    (message,) = orders.sqs.receive_message(QueueUrl=orders.url, MessageAttributeNames=["All"])["Messages"]
    assert message["Body"] == "b"
    assert message["MessageAttributes"]["tenant"]["StringValue"] == "north"
    assert of(orders, muster("queues", "--json").stdout)[orders.dead_name]["visible"] == 2


def test_one_message_or_all_are_discarded(muster: Run, orders: Orders) -> None:
    ids = orders.die("a", "b", "c")
    one = muster("dlq", "discard", orders.dead_name, "--message", ids[0], "--yes", "--json")
    assert json.loads(one.stdout) == {"queue": orders.dead_name, "discarded": 1}
    left = json.loads(muster("dlq", "show", orders.dead_name, "--json").stdout)
    assert {fact["id"] for fact in left} == set(ids[1:])
    rest = muster("dlq", "discard", orders.dead_name, "--yes")
    assert "2 messages deleted" in rest.stdout
    assert orders.depth(orders.dead_url) == 0


def test_what_is_not_there_or_not_a_dead_letter_queue_is_said(muster: Run, orders: Orders) -> None:
    for command, said in (
        (("show", "nowhere"), "There is no queue 'nowhere'"),
        (("discard", orders.dead_name, "--message", "m0", "--yes"), "No message m0"),
        (("discard", orders.name, "--yes"), "nobody's dead-letter queue"),
        (("redrive", orders.name, "--yes"), "Dead Letter Queue"),
        (("redrive", orders.dead_name, "--rate", "501"), "less than or equal to 500"),
    ):
        orders.sqs.send_message(QueueUrl=orders.url, MessageBody="x")
        refused = muster("dlq", *command)
        assert refused.returncode != 0
        assert said in " ".join(refused.stderr.split()), refused.stderr
        assert "Traceback" not in refused.stderr


def test_person_at_a_terminal_is_asked(server: ServerProcess, orders: Orders) -> None:
    orders.die("a")

    def answer(word: str) -> int:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "muster", "dlq", "redrive", orders.dead_name, "--endpoint", server.endpoint],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.write(ours, word.encode() + b"\n")
        _, asked = process.communicate(timeout=60)
        os.close(ours)
        os.close(theirs)
        assert f"Send 1 message from {orders.dead_name}" in asked.decode()
        return process.returncode

    assert answer("n") == 1
    assert orders.depth(orders.dead_url) == 1
    assert answer("y") == 0
    assert (orders.depth(orders.url), orders.depth(orders.dead_url)) == (1, 0)
