"""Streams of tables as event sources: order, lanes, retries, parts, giving up."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.errors import ServiceError

Consumer = Any  # the fixtures' own class, which lives in conftest


def table(consumer: Consumer) -> str:
    answer = consumer.world.call(
        "dynamodb",
        "CreateTable",
        TableName="table",
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    return str(answer["TableDescription"]["LatestStreamArn"])


def put(consumer: Consumer, key: str, number: int = 0) -> None:
    consumer.world.call("dynamodb", "PutItem", TableName="table", Item={"k": {"S": key}, "n": {"N": str(number)}})


def follow(consumer: Consumer, arn: str, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = consumer.map(arn, **{"StartingPosition": "TRIM_HORIZON", **more})
    return answer


def keys(event: Any) -> list[str]:
    return [record["dynamodb"]["Keys"]["k"]["S"] for record in event["Records"]]


def seen(consumer: Consumer) -> list[str]:
    return ["".join(keys(event)) for event in consumer.events]


def failing_on(bad: str) -> Callable[[Any], Any]:
    def fail(event: Any) -> Any:
        if bad in keys(event):
            raise ValueError("no good")

    return fail


def test_a_change_runs_the_function(consumer: Consumer) -> None:
    arn = table(consumer)
    mapping = follow(consumer, arn)
    assert mapping == {
        **mapping,
        "BatchSize": 100,
        "StartingPosition": "TRIM_HORIZON",
        "BisectBatchOnFunctionError": False,
        "MaximumRetryAttempts": -1,
        "MaximumRecordAgeInSeconds": -1,
        "ParallelizationFactor": 1,
        "TumblingWindowInSeconds": 0,
        "DestinationConfig": {"OnFailure": {}},
        "LastProcessingResult": "No records processed",
        "StateTransitionReason": "User action",
    }
    consumer.world.settle()
    consumer.world.call("dynamodb", "PutItem", TableName="table", Item={"k": {"S": "a"}, "b": {"B": b"\x00\x01"}})
    consumer.world.settle()
    [event] = consumer.events
    [record] = event["Records"]
    assert record["eventName"] == "INSERT"
    assert record["eventSource"] == "aws:dynamodb"
    assert record["eventSourceARN"] == arn
    assert record["awsRegion"] == "us-east-1"
    assert record["dynamodb"]["NewImage"] == {"k": {"S": "a"}, "b": {"B": "AAE="}}
    shown = consumer.world.call("lambda", "GetEventSourceMapping", UUID=mapping["UUID"])
    assert shown["LastProcessingResult"] == "OK"


def test_the_trim_horizon_begins_with_what_is_there_and_latest_after_it(consumer: Consumer) -> None:
    arn = table(consumer)
    put(consumer, "a")
    consumer.make_function("g")
    follow(consumer, arn)
    follow(consumer, arn, FunctionName="g", StartingPosition="LATEST")
    put(consumer, "b")
    consumer.world.settle()
    assert sorted(seen(consumer)) == ["ab", "b"]


def test_records_come_in_order_in_batches(consumer: Consumer) -> None:
    arn = table(consumer)
    for key in "abcdefg":
        put(consumer, key)
    follow(consumer, arn, BatchSize=3)
    consumer.world.settle()
    assert seen(consumer) == ["abc", "def", "g"]


def test_a_failing_batch_holds_back_what_follows_until_it_succeeds(consumer: Consumer) -> None:
    arn = table(consumer)
    for key in "abc":
        put(consumer, key)
    consumer.answer = failing_on("b")
    follow(consumer, arn, BatchSize=2)
    consumer.world.pass_time(8)
    assert set(seen(consumer)) == {"ab"}
    assert len(consumer.events) > 2
    consumer.answer = lambda event: None
    consumer.world.pass_time(60)
    assert seen(consumer)[-2:] == ["ab", "c"]


def test_after_its_retries_a_batch_is_given_up_and_the_destination_is_told(consumer: Consumer) -> None:
    arn = table(consumer)
    target = consumer.queue("failures")
    for key in "abc":
        put(consumer, key)
    consumer.answer = failing_on("b")
    follow(
        consumer,
        arn,
        BatchSize=2,
        MaximumRetryAttempts=1,
        DestinationConfig={"OnFailure": {"Destination": target}},
    )
    consumer.world.pass_time(10)
    assert seen(consumer) == ["ab", "ab", "c"]
    [message] = consumer.world.call("sqs", "ReceiveMessage", QueueUrl="failures")["Messages"]
    told = json.loads(message["Body"])
    assert told["requestContext"]["condition"] == "RetryAttemptsExhausted"
    assert told["requestContext"]["approximateInvokeCount"] == 2
    assert told["responseContext"] == {
        "statusCode": 200,
        "executedVersion": "$LATEST",
        "functionError": "Unhandled",
    }
    info = told["DDBStreamBatchInfo"]
    assert info["batchSize"] == 2
    assert info["streamArn"] == arn
    assert info["shardId"].startswith("shardId-")
    assert (int(info["startSequenceNumber"]), int(info["endSequenceNumber"])) == (1, 2)


def test_a_bisected_batch_isolates_the_bad_record(consumer: Consumer) -> None:
    arn = table(consumer)
    for key in "abcdefgh":
        put(consumer, key)
    consumer.answer = failing_on("f")
    follow(consumer, arn, BisectBatchOnFunctionError=True, MaximumRetryAttempts=1)
    consumer.world.pass_time(30)
    assert seen(consumer) == ["abcdefgh", "abcd", "efgh", "ef", "e", "f", "f", "gh"]


def test_a_reported_record_is_where_the_next_attempt_begins(consumer: Consumer) -> None:
    arn = table(consumer)
    for key in "abcd":
        put(consumer, key)

    def report(event: Any) -> Any:
        bad = [r["dynamodb"]["SequenceNumber"] for r in event["Records"] if r["dynamodb"]["Keys"]["k"]["S"] == "c"]
        return {"batchItemFailures": [{"itemIdentifier": number} for number in bad]}

    consumer.answer = report
    follow(consumer, arn, FunctionResponseTypes=["ReportBatchItemFailures"], MaximumRetryAttempts=2)
    consumer.world.pass_time(30)
    assert seen(consumer) == ["abcd", "cd", "cd"]


def test_records_that_are_too_old_are_given_up(consumer: Consumer) -> None:
    arn = table(consumer)
    target = consumer.queue("failures")
    for key in "ab":
        put(consumer, key)
    consumer.world.clock.advance(100)
    put(consumer, "c")
    follow(consumer, arn, MaximumRecordAgeInSeconds=60, DestinationConfig={"OnFailure": {"Destination": target}})
    consumer.world.settle()
    assert seen(consumer) == ["c"]
    [message] = consumer.world.call("sqs", "ReceiveMessage", QueueUrl="failures")["Messages"]
    told = json.loads(message["Body"])
    assert told["requestContext"]["condition"] == "RecordAgeExceeded"
    assert told["DDBStreamBatchInfo"]["batchSize"] == 2


def test_a_window_gathers_records(consumer: Consumer) -> None:
    arn = table(consumer)
    follow(consumer, arn, MaximumBatchingWindowInSeconds=5, BatchSize=4)
    consumer.world.settle()
    for key in "abc":
        put(consumer, key)
        consumer.world.pass_time(1)
    assert consumer.events == []
    consumer.world.pass_time(2)
    assert seen(consumer) == ["abc"]
    for key in "defg":
        put(consumer, key)
    consumer.world.pass_time(1)
    assert seen(consumer) == ["abc", "defg"]


def test_records_that_no_filter_wants_are_passed_over(consumer: Consumer) -> None:
    arn = table(consumer)
    pattern = json.dumps({"eventName": ["MODIFY"], "dynamodb": {"NewImage": {"n": {"N": ["2"]}}}})
    follow(consumer, arn, FilterCriteria={"Filters": [{"Pattern": pattern}]})
    for number in range(4):
        put(consumer, "a", number)
    consumer.world.settle()
    [event] = consumer.events
    assert [record["dynamodb"]["NewImage"]["n"]["N"] for record in event["Records"]] == ["2"]


@settings(max_examples=15, deadline=None)
@given(
    writes=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=30),
    factor=st.integers(1, 4),
    batch=st.integers(1, 5),
)
def test_each_items_changes_come_in_order_in_any_number_of_lanes(
    make_consumer: Callable[[], Consumer], writes: list[str], factor: int, batch: int
) -> None:
    consumer = make_consumer()
    arn = table(consumer)
    half = len(writes) // 2
    for number, key in enumerate(writes[:half]):
        put(consumer, key, number)
    mapping = follow(consumer, arn, ParallelizationFactor=factor, BatchSize=batch)
    consumer.world.settle()
    consumer.world.call("lambda", "UpdateEventSourceMapping", UUID=mapping["UUID"], ParallelizationFactor=5 - factor)
    for number, key in enumerate(writes[half:], half):
        put(consumer, key, number)
    consumer.world.settle()
    got = [
        (r["dynamodb"]["Keys"]["k"]["S"], int(r["dynamodb"]["NewImage"]["n"]["N"]))
        for event in consumer.events
        for r in event["Records"]
    ]
    assert sorted(number for _, number in got) == list(range(len(writes)))
    for key in "abcdef":
        numbers = [number for each, number in got if each == key]
        assert numbers == sorted(numbers)


def test_streams_go_on_after_a_restart(reopened: Consumer) -> None:
    arn = table(reopened)
    follow(reopened, arn)
    reopened.world.settle()
    put(reopened, "a")
    reopened.world.restart()
    reopened.world.settle()
    put(reopened, "b")
    reopened.world.settle()
    assert seen(reopened) == ["a", "b"]


def test_a_burst_of_records_posts_one_wake(consumer: Consumer) -> None:
    arn = table(consumer)
    follow(consumer, arn)
    consumer.world.settle()
    for number in range(50):
        put(consumer, "a", number)
    assert len(consumer.world.rows("SELECT 1 AS one FROM deliveries WHERE kind = 'lambda.poll'")) == 1


@pytest.mark.parametrize(
    ("settings", "code", "message"),
    [
        ({"StartingPosition": "AT_TIMESTAMP"}, "InvalidParameterValueException", "Unsupported starting position"),
        ({"TumblingWindowInSeconds": 10}, "NotImplemented", "TumblingWindowInSeconds"),
        ({"MaximumRecordAgeInSeconds": 30}, "InvalidParameterValueException", "MaximumRecordAgeInSeconds"),
        ({"MaximumRetryAttempts": 10_001}, "ValidationException", "maximumRetryAttempts"),
        ({"ScalingConfig": {"MaximumConcurrency": 2}}, "InvalidParameterValueException", "ScalingConfig"),
        (
            {"DestinationConfig": {"OnFailure": {"Destination": "arn:aws:s3:::bucket"}}},
            "NotImplemented",
            "a queue or a topic",
        ),
    ],
)
def test_what_is_refused_of_a_stream(consumer: Consumer, settings: dict[str, Any], code: str, message: str) -> None:
    with pytest.raises(ServiceError) as caught:
        follow(consumer, table(consumer), **settings)
    assert caught.value.code == code
    assert message in caught.value.message


def test_a_stream_needs_a_starting_position_and_has_to_be_there(consumer: Consumer) -> None:
    arn = table(consumer)
    with pytest.raises(ServiceError, match="startingPosition"):
        consumer.map(arn)
    with pytest.raises(ServiceError, match="Stream not found"):
        follow(consumer, arn.replace("/table/", "/other/"))
    with pytest.raises(ServiceError, match="stream of a table"):
        follow(consumer, arn.partition("/stream/")[0])
