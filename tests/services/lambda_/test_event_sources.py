"""The operations on event source mappings: shapes, states, refusals."""

from typing import Any

import pytest

from muster.errors import ServiceError

Consumer = Any  # the fixtures' own class, which lives in conftest


def update(consumer: Consumer, mapping: dict[str, Any], **settings: Any) -> dict[str, Any]:
    answer: dict[str, Any] = consumer.world.call("lambda", "UpdateEventSourceMapping", UUID=mapping["UUID"], **settings)
    return answer


def get(consumer: Consumer, mapping: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = consumer.world.call("lambda", "GetEventSourceMapping", UUID=mapping["UUID"])
    return answer


def test_a_mapping_is_created_shown_and_deleted(consumer: Consumer) -> None:
    arn = consumer.queue()
    made = consumer.map(arn, ScalingConfig={"MaximumConcurrency": 20})
    assert made == {
        "UUID": made["UUID"],
        "EventSourceArn": arn,
        "EventSourceMappingArn": f"arn:aws:lambda:us-east-1:000000000000:event-source-mapping:{made['UUID']}",
        "FunctionArn": "arn:aws:lambda:us-east-1:000000000000:function:f",
        "LastModified": consumer.world.clock.now(),
        "State": "Creating",
        "StateTransitionReason": "USER_INITIATED",
        "BatchSize": 10,
        "MaximumBatchingWindowInSeconds": 0,
        "FunctionResponseTypes": [],
        "ScalingConfig": {"MaximumConcurrency": 20},
    }
    assert get(consumer, made) == {**made, "State": "Enabled"}
    listed = consumer.world.call("lambda", "ListEventSourceMappings", FunctionName="f", EventSourceArn=arn)
    assert listed == {"EventSourceMappings": [get(consumer, made)]}
    assert consumer.world.call("lambda", "ListEventSourceMappings", FunctionName="g") == {"EventSourceMappings": []}
    assert consumer.world.call("lambda", "DeleteEventSourceMapping", UUID=made["UUID"])["State"] == "Deleting"
    assert consumer.world.call("lambda", "ListEventSourceMappings") == {"EventSourceMappings": []}


def test_mappings_are_listed_in_pages(consumer: Consumer) -> None:
    made = []
    for number in range(5):
        made.append(consumer.map(consumer.queue(f"q{number}"))["UUID"])
        consumer.world.clock.advance(1)
    seen: list[str] = []
    marker: dict[str, Any] = {}
    while True:
        page = consumer.world.call("lambda", "ListEventSourceMappings", MaxItems=2, **marker)
        seen += [each["UUID"] for each in page["EventSourceMappings"]]
        if "NextMarker" not in page:
            break
        marker = {"Marker": page["NextMarker"]}
    assert seen == made


def test_an_update_changes_what_it_names_and_keeps_the_rest(consumer: Consumer) -> None:
    mapping = consumer.map(consumer.queue(), BatchSize=5, FilterCriteria={"Filters": [{"Pattern": '{"body": ["x"]}'}]})
    changed = update(consumer, mapping, ScalingConfig={"MaximumConcurrency": 3}, Enabled=False)
    assert changed["State"] == "Updating"
    shown = get(consumer, mapping)
    assert (shown["State"], shown["BatchSize"], shown["ScalingConfig"]) == ("Disabled", 5, {"MaximumConcurrency": 3})
    assert shown["FilterCriteria"] == {"Filters": [{"Pattern": '{"body": ["x"]}'}]}
    shown = update(consumer, mapping, ScalingConfig={}, FilterCriteria={})
    assert "ScalingConfig" not in shown
    assert "FilterCriteria" not in shown


def test_tags_of_a_mapping(consumer: Consumer) -> None:
    mapping = consumer.map(consumer.queue(), Tags={"team": "files", "old": "1"})
    resource = mapping["EventSourceMappingArn"]
    consumer.world.call("lambda", "TagResource", Resource=resource, Tags={"new": "2"})
    consumer.world.call("lambda", "UntagResource", Resource=resource, TagKeys=["old"])
    assert consumer.world.call("lambda", "ListTags", Resource=resource) == {"Tags": {"team": "files", "new": "2"}}


def test_one_source_and_function_have_one_mapping(consumer: Consumer) -> None:
    arn = consumer.queue()
    mapping = consumer.map(arn)
    with pytest.raises(ServiceError, match=f"ResourceConflictException.*{mapping['UUID']}"):
        consumer.map(arn)


def test_a_queue_that_gives_messages_back_too_early_is_refused(consumer: Consumer) -> None:
    consumer.make_function("slow", Timeout=60)
    arn = consumer.queue(VisibilityTimeout="30")
    with pytest.raises(ServiceError) as caught:
        consumer.map(arn, FunctionName="slow")
    assert caught.value.code == "InvalidParameterValueException"
    assert caught.value.message == "Queue visibility timeout: 30 seconds is less than Function timeout: 60 seconds"


def test_a_queue_below_awss_advice_is_warned_of(consumer: Consumer, caplog: pytest.LogCaptureFixture) -> None:
    """Case sqs-visibility-02."""
    consumer.make_function("slow", Timeout=60)
    consumer.map(
        consumer.queue(VisibilityTimeout="60"), FunctionName="slow", BatchSize=20, MaximumBatchingWindowInSeconds=30
    )
    assert "gives messages back after 60 seconds" in caplog.text
    assert "advises 390" in caplog.text


QUEUE = "arn:aws:sqs:us-east-1:000000000000:q"


@pytest.mark.parametrize(
    ("settings", "code", "message"),
    [
        ({"BatchSize": 0}, "ValidationException", "greater than or equal to 1"),
        ({"BatchSize": 11}, "InvalidParameterValueException", "Maximum batch window in seconds must be greater than 0"),
        ({"BatchSize": 10_001, "MaximumBatchingWindowInSeconds": 1}, "ValidationException", "or equal to 10000"),
        ({"MaximumBatchingWindowInSeconds": 301}, "ValidationException", "less than or equal to 300"),
        ({"ScalingConfig": {"MaximumConcurrency": 1}}, "ValidationException", "greater than or equal to 2"),
        ({"ScalingConfig": {"MaximumConcurrency": 1001}}, "ValidationException", "less than or equal to 1000"),
        ({"StartingPosition": "LATEST"}, "InvalidParameterValueException", "StartingPosition"),
        ({"BisectBatchOnFunctionError": True}, "InvalidParameterValueException", "BisectBatchOnFunctionError"),
        ({"ParallelizationFactor": 2}, "InvalidParameterValueException", "ParallelizationFactor"),
        ({"FilterCriteria": {"Filters": [{"Pattern": "{"}]}}, "InvalidParameterValueException", "filter pattern"),
        ({"FilterCriteria": {"Filters": [{"Pattern": '{"body":["x"]}'}] * 6}}, "InvalidParameterValueException", "5"),
        ({"FunctionName": "nobody"}, "InvalidParameterValueException", "Function does not exist"),
        ({"FunctionName": "f:nobody"}, "ResourceNotFoundException", "Function not found"),
        ({"EventSourceArn": f"{QUEUE}none"}, "InvalidParameterValueException", "NonExistentQueue"),
        ({"EventSourceArn": "arn:aws:sns:us-east-1:000000000000:t"}, "InvalidParameterValueException", "Unrecognized"),
        (
            {"EventSourceArn": "arn:aws:kinesis:us-east-1:000000000000:stream/s"},
            "NotImplemented",
            "Kinesis streams as the event source",
        ),
        ({"EventSourceArn": "arn:aws:kafka:us-east-1:000000000000:cluster/c/1"}, "NotImplemented", "Kafka"),
        ({"EventSourceArn": "arn:aws:mq:us-east-1:000000000000:broker:b"}, "NotImplemented", "Amazon MQ"),
        ({"ProvisionedPollerConfig": {"MinimumPollers": 1}}, "NotImplemented", "ProvisionedPollerConfig"),
        ({"Topics": ["t"]}, "NotImplemented", "Topics"),
    ],
)
def test_what_aws_or_muster_refuses_of_a_queue(
    consumer: Consumer, settings: dict[str, Any], code: str, message: str
) -> None:
    consumer.queue()
    with pytest.raises(ServiceError) as caught:
        consumer.map(settings.pop("EventSourceArn", QUEUE), **settings)
    assert caught.value.code == code
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"BatchSize": 11}, "FIFO"),
        ({"MaximumBatchingWindowInSeconds": 1}, "Batching window is not supported for FIFO queues"),
    ],
)
def test_what_aws_refuses_of_a_fifo_queue(consumer: Consumer, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ServiceError, match=message):
        consumer.map(consumer.queue("q.fifo", FifoQueue="true"), **settings)
