"""Queues as event sources: batches, places, windows, failures, filters, order."""

import json
from typing import Any

import pytest

from muster.errors import ServiceError
from muster.transaction import Delivery

Consumer = Any  # the fixtures' own class, which lives in conftest


def with_dead_letters(consumer: Consumer, receives: int, **attributes: str) -> str:
    policy = {"deadLetterTargetArn": consumer.queue("dead"), "maxReceiveCount": receives}
    return str(consumer.queue(RedrivePolicy=json.dumps(policy), **attributes))


def test_a_message_runs_the_function_and_is_deleted(consumer: Consumer) -> None:
    arn = consumer.queue()
    consumer.map(arn)
    consumer.world.settle()
    id_ = consumer.send(
        "hello",
        MessageAttributes={
            "kind": {"DataType": "String", "StringValue": "greeting"},
            "raw": {"DataType": "Binary", "BinaryValue": b"\x00\x01"},
        },
    )
    consumer.world.settle()
    [event] = consumer.events
    [record] = event["Records"]
    assert record.pop("receiptHandle")
    assert record.pop("md5OfMessageAttributes")
    attributes = record.pop("attributes")
    assert attributes["ApproximateReceiveCount"] == "1"
    assert {"SentTimestamp", "SenderId", "ApproximateFirstReceiveTimestamp"} < attributes.keys()
    assert record == {
        "messageId": id_,
        "body": "hello",
        "messageAttributes": {
            "kind": {
                "stringValue": "greeting",
                "stringListValues": [],
                "binaryListValues": [],
                "dataType": "String",
            },
            "raw": {"binaryValue": "AAE=", "stringListValues": [], "binaryListValues": [], "dataType": "Binary"},
        },
        "md5OfBody": "5d41402abc4b2a76b9719d911017c592",
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": "us-east-1",
    }
    assert consumer.depth() == (0, 0)


def test_messages_that_were_there_before_come_in_batches(consumer: Consumer) -> None:
    arn = consumer.queue()
    for number in range(25):
        consumer.send(str(number))
    consumer.map(arn)
    consumer.world.settle()
    assert [len(bodies) for bodies in consumer.bodies] == [10, 10, 5]
    assert consumer.depth() == (0, 0)


def test_a_delayed_message_comes_when_it_is_due_and_not_before(consumer: Consumer) -> None:
    consumer.map(consumer.queue())
    consumer.send("later", DelaySeconds=30)
    consumer.world.pass_time(29)
    assert consumer.events == []
    consumer.world.pass_time(1)
    assert consumer.bodies == [["later"]]


def test_a_message_that_another_reader_lets_lapse_comes(consumer: Consumer) -> None:
    arn = consumer.queue()
    consumer.send("taken")
    consumer.world.call("sqs", "ReceiveMessage", QueueUrl="q")
    consumer.map(arn)
    consumer.world.pass_time(29)
    assert consumer.events == []
    consumer.world.pass_time(1)
    assert consumer.bodies == [["taken"]]


def test_a_message_made_visible_early_comes_at_once(consumer: Consumer) -> None:
    arn = consumer.queue()
    consumer.send("taken")
    [taken] = consumer.world.call("sqs", "ReceiveMessage", QueueUrl="q")["Messages"]
    consumer.map(arn)
    consumer.world.settle()
    consumer.world.call(
        "sqs", "ChangeMessageVisibility", QueueUrl="q", ReceiptHandle=taken["ReceiptHandle"], VisibilityTimeout=0
    )
    consumer.world.settle()
    assert consumer.bodies == [["taken"]]


def test_a_failing_batch_comes_back_after_its_visibility_timeout_and_ends_in_the_dead_letter_queue(
    consumer: Consumer,
) -> None:
    consumer.map(with_dead_letters(consumer, 3))

    def fail(event: Any) -> Any:
        raise ValueError("no good")

    consumer.answer = fail
    for body in "abc":
        consumer.send(body)
    consumer.world.settle()
    assert consumer.bodies == [["a", "b", "c"]]
    consumer.world.pass_time(29)
    assert len(consumer.events) == 1
    consumer.world.pass_time(31)
    assert len(consumer.events) == 3
    consumer.world.pass_time(30)
    assert len(consumer.events) == 3
    assert consumer.depth() == (0, 0)
    assert consumer.depth("dead") == (3, 0)


def test_only_reported_failures_come_back(consumer: Consumer) -> None:
    """Case sqs-partial-batch-01."""
    consumer.map(with_dead_letters(consumer, 3), FunctionResponseTypes=["ReportBatchItemFailures"])

    def report(event: Any) -> Any:
        bad = [record["messageId"] for record in event["Records"] if record["body"] == "bad"]
        return {"batchItemFailures": [{"itemIdentifier": id_} for id_ in bad]}

    consumer.answer = report
    for body in ("1", "bad", "3"):
        consumer.send(body)
    consumer.world.pass_time(95)
    assert consumer.bodies == [["1", "bad", "3"], ["bad"], ["bad"]]
    assert consumer.depth() == (0, 0)
    assert consumer.depth("dead") == (1, 0)


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        (None, 0),
        ({}, 0),
        ({"batchItemFailures": []}, 0),
        ({"batchItemFailures": None}, 0),
        ("done", 2),
        ({"batchItemFailures": "x"}, 2),
        ({"batchItemFailures": [{"itemIdentifier": ""}]}, 2),
        ({"batchItemFailures": [{"itemIdentifier": None}]}, 2),
        ({"batchItemFailures": [{"id": "x"}]}, 2),
        ({"batchItemFailures": [{"itemIdentifier": "no such message"}]}, 2),
    ],
)
def test_malformed_reports_fail_the_whole_batch(consumer: Consumer, answer: Any, left: int) -> None:
    consumer.map(consumer.queue(), FunctionResponseTypes=["ReportBatchItemFailures"])
    consumer.answer = lambda event: answer
    consumer.send("a")
    consumer.send("b")
    consumer.world.settle()
    assert consumer.depth() == (0, left)


def test_without_the_response_type_a_report_is_ignored(consumer: Consumer) -> None:
    consumer.map(consumer.queue())
    consumer.answer = lambda event: {"batchItemFailures": [{"itemIdentifier": event["Records"][0]["messageId"]}]}
    consumer.send("a")
    consumer.world.settle()
    assert consumer.depth() == (0, 0)


def test_a_window_gathers_messages_into_one_batch(consumer: Consumer) -> None:
    """Case sqs-visibility-03."""
    mapping = consumer.map(consumer.queue(), BatchSize=10, MaximumBatchingWindowInSeconds=5)
    assert mapping["MaximumBatchingWindowInSeconds"] == 5
    for number in range(3):
        consumer.send(str(number))
        consumer.world.pass_time(1)
    consumer.world.pass_time(1.9)
    assert consumer.events == []
    assert consumer.depth() == (3, 0), "the window takes nothing from the visibility timeout"
    consumer.world.pass_time(0.1)
    assert consumer.bodies == [["0", "1", "2"]]
    consumer.send("next")
    consumer.world.pass_time(5)
    assert consumer.bodies[1:] == [["next"]]


def test_a_full_batch_does_not_wait_for_its_window(consumer: Consumer) -> None:
    consumer.map(consumer.queue(), BatchSize=20, MaximumBatchingWindowInSeconds=60)
    for number in range(20):
        consumer.send(str(number))
    consumer.world.pass_time(1)
    assert [len(bodies) for bodies in consumer.bodies] == [20]


def test_no_more_run_at_once_than_the_mapping_allows_and_waiting_spends_no_receive(consumer: Consumer) -> None:
    """Case sqs-concurrency-01, the second set-up."""
    arn = with_dead_letters(consumer, 1)
    for number in range(30):
        consumer.send(str(number))
    consumer.map(arn, BatchSize=1, ScalingConfig={"MaximumConcurrency": 2})
    consumer.world.settle()
    assert consumer.running_most == 2
    assert sorted(int(bodies[0]) for bodies in consumer.bodies) == list(range(30))
    counts = {record["attributes"]["ApproximateReceiveCount"] for e in consumer.events for record in e["Records"]}
    assert counts == {"1"}
    assert consumer.depth("dead") == (0, 0)


def test_reserved_concurrency_turns_batches_away_and_that_spends_receives(consumer: Consumer) -> None:
    """Case sqs-concurrency-01, the first set-up."""
    arn = with_dead_letters(consumer, 3, VisibilityTimeout="10")
    consumer.world.call("lambda", "PutFunctionConcurrency", FunctionName="f", ReservedConcurrentExecutions=0)
    consumer.map(arn)
    consumer.send("never")
    consumer.world.pass_time(35)
    assert consumer.events == []
    assert consumer.depth("dead") == (1, 0)


def test_with_a_limit_of_its_own_a_mapping_waits_for_reserved_concurrency(consumer: Consumer) -> None:
    arn = with_dead_letters(consumer, 1, VisibilityTimeout="10")
    consumer.world.call("lambda", "PutFunctionConcurrency", FunctionName="f", ReservedConcurrentExecutions=0)
    consumer.map(arn, ScalingConfig={"MaximumConcurrency": 2})
    consumer.send("patient")
    consumer.world.pass_time(100)
    assert consumer.depth() == (1, 0)
    consumer.world.call("lambda", "PutFunctionConcurrency", FunctionName="f", ReservedConcurrentExecutions=1)
    consumer.world.settle()
    assert consumer.bodies == [["patient"]]


def test_many_mappings_share_the_places_and_all_get_through(consumer: Consumer) -> None:
    for number in range(4):
        consumer.make_function(f"g{number}")
        arn = consumer.queue(f"q{number}")
        for body in range(30):
            consumer.send(str(body), f"q{number}")
        consumer.map(arn, FunctionName=f"g{number}", BatchSize=1, ScalingConfig={"MaximumConcurrency": 30})
    consumer.world.settle()
    assert len(consumer.events) == 120
    assert consumer.running_most <= 32


def test_messages_that_no_filter_wants_are_deleted(consumer: Consumer) -> None:
    filters = [{"Pattern": '{"body": {"kind": ["order"]}}'}, {"Pattern": '{"body": ["plain"]}'}]
    consumer.map(consumer.queue(), FilterCriteria={"Filters": filters})
    for body in ('{"kind": "order"}', '{"kind": "other"}', "plain", "text", '["plain"]'):
        consumer.send(body)
    consumer.world.settle()
    assert [body for bodies in consumer.bodies for body in bodies] == ['{"kind": "order"}', "plain"]
    assert consumer.depth() == (0, 0)


def test_a_fifo_queue_keeps_each_groups_order(consumer: Consumer) -> None:
    arn = consumer.queue("q.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    consumer.map(arn, BatchSize=1)
    for number in range(5):
        for group in "ab":
            consumer.send(f"{group}{number}", "q.fifo", MessageGroupId=group)
    consumer.world.settle()
    assert [body for [body] in consumer.bodies if body[0] == "a"] == ["a0", "a1", "a2", "a3", "a4"]
    assert [body for [body] in consumer.bodies if body[0] == "b"] == ["b0", "b1", "b2", "b3", "b4"]
    record = consumer.events[0]["Records"][0]
    assert {"MessageGroupId", "MessageDeduplicationId", "SequenceNumber"} < record["attributes"].keys()


def test_a_failing_message_holds_its_group_back_and_no_other(consumer: Consumer) -> None:
    arn = consumer.queue("q.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    consumer.map(arn, BatchSize=1)
    attempts: list[str] = []

    def fail_once(event: Any) -> Any:
        body = event["Records"][0]["body"]
        attempts.append(body)
        if body == "a0" and attempts.count("a0") == 1:
            raise ValueError("not yet")

    consumer.answer = fail_once
    for body in ("a0", "a1", "b0"):
        consumer.send(body, "q.fifo", MessageGroupId=body[0])
    consumer.world.settle()
    assert sorted(attempts) == ["a0", "b0"]
    consumer.world.pass_time(30)
    assert attempts[2:] == ["a0", "a1"]


def test_a_batch_stays_within_what_a_function_can_be_sent(consumer: Consumer) -> None:
    arn = consumer.queue()
    for _ in range(10):
        consumer.send('"' * 1_000_000)
    consumer.map(arn)
    consumer.world.settle()
    assert sum(len(bodies) for bodies in consumer.bodies) == 10
    assert max(len(bodies) for bodies in consumer.bodies) == 3, "each becomes two million bytes of JSON"


def test_a_disabled_mapping_reads_nothing_until_it_is_enabled(consumer: Consumer) -> None:
    mapping = consumer.map(consumer.queue(), Enabled=False)
    consumer.send("waits")
    consumer.world.pass_time(10)
    assert consumer.events == []
    consumer.world.call("lambda", "UpdateEventSourceMapping", UUID=mapping["UUID"], Enabled=True)
    consumer.world.settle()
    assert consumer.bodies == [["waits"]]
    consumer.world.call("lambda", "UpdateEventSourceMapping", UUID=mapping["UUID"], Enabled=False)
    consumer.send("waits again")
    consumer.world.pass_time(10)
    assert len(consumer.events) == 1


def test_a_deleted_mapping_leaves_the_queue_alone(consumer: Consumer) -> None:
    mapping = consumer.map(consumer.queue())
    consumer.world.settle()
    consumer.world.call("lambda", "DeleteEventSourceMapping", UUID=mapping["UUID"])
    consumer.send("stays")
    consumer.world.settle()
    assert consumer.events == []
    assert consumer.world.rows("SELECT * FROM sqs_listeners") == []
    with pytest.raises(ServiceError, match="does not exist"):
        consumer.world.call("lambda", "GetEventSourceMapping", UUID=mapping["UUID"])


def test_a_queue_that_is_deleted_and_made_again_is_read_again(consumer: Consumer) -> None:
    consumer.map(consumer.queue())
    consumer.world.settle()
    consumer.world.call("sqs", "DeleteQueue", QueueUrl="q")
    consumer.world.settle()
    consumer.queue()
    consumer.send("back")
    consumer.world.pass_time(61)
    assert consumer.bodies == [["back"]]


def test_all_goes_on_after_a_restart(reopened: Consumer) -> None:
    reopened.map(reopened.queue())
    reopened.world.settle()
    reopened.send("before")
    reopened.world.restart()
    reopened.world.settle()
    assert reopened.bodies == [["before"]]
    reopened.world.restart()
    reopened.send("after")
    reopened.world.settle()
    assert reopened.bodies == [["before"], ["after"]]


def test_a_burst_costs_deliveries_per_batch_and_not_per_message(consumer: Consumer) -> None:
    arn = consumer.queue()
    consumer.map(arn, ScalingConfig={"MaximumConcurrency": 20})
    consumer.world.settle()
    before = deliveries(consumer)
    for _ in range(50):
        entries = [{"Id": str(number), "MessageBody": "x"} for number in range(10)]
        consumer.world.call("sqs", "SendMessageBatch", QueueUrl="q", Entries=entries)
    assert deliveries(consumer) - before == 1
    consumer.world.settle()
    # Per batch of ten: its invocation and its end.
    assert deliveries(consumer) - before <= 105
    assert len(consumer.events) == 50


def deliveries(consumer: Consumer) -> int:
    """How many deliveries have been posted, by the number that one more would have."""
    numbers: list[int] = []

    def look(tx: Any) -> None:
        tx.post(Delivery("test.none", "", {}))
        numbers.append(tx.one("SELECT MAX(id) AS id FROM deliveries")["id"])
        raise ServiceError("Undone", "nothing of it stays")

    with pytest.raises(ServiceError, match="Undone"):
        consumer.world.change(look)
    return numbers[0]


def test_a_long_group_is_worked_off_in_order_without_looking_at_all_of_it_each_time(consumer: Consumer) -> None:
    arn = consumer.queue("q.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    for start in range(0, 500, 10):
        entries = [{"Id": str(n), "MessageBody": str(start + n), "MessageGroupId": "g"} for n in range(10)]
        consumer.world.call("sqs", "SendMessageBatch", QueueUrl="q.fifo", Entries=entries)
    consumer.map(arn)
    consumer.world.settle()
    assert [int(body) for bodies in consumer.bodies for body in bodies] == list(range(500))
    assert consumer.running_most == 1
