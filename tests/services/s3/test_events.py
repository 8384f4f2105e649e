"""What is told of objects: to the bus with AWS's detail, to queues, topics and functions with AWS's records."""

from typing import Any
from urllib.parse import unquote, unquote_plus

import orjson
import pytest

from muster.transaction import Caller
from tests.services.s3.conftest import Bucketed
from tests.services.s3.test_multipart import FIRST, LAST, Uploading

QUEUE = "arn:aws:sqs:us-east-1:000000000000:files"


def queue(*events: str, **rules: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"QueueArn": QUEUE, "Events": list(events or ("s3:ObjectCreated:*",))}
    if rules:
        entry["Filter"] = {"Key": {"FilterRules": [{"Name": name, "Value": value} for name, value in rules.items()]}}
    return entry


@pytest.fixture
def bus(s3_world: Bucketed) -> Bucketed:
    s3_world.notify(EventBridgeConfiguration={})
    return s3_world


@pytest.fixture
def queued(s3_world: Bucketed) -> Bucketed:
    s3_world.notify(QueueConfigurations=[queue("s3:ObjectCreated:*", "s3:ObjectRemoved:*")])
    return s3_world


def test_without_a_configuration_nothing_is_told(s3_world: Bucketed) -> None:
    s3_world.put("a")
    assert s3_world.published() == []
    assert s3_world.sent() == []


def test_the_bus_hears_of_a_created_object_in_the_same_commit(bus: Bucketed) -> None:
    request = {"Bucket": "bucket", "Key": "in/ventas año 2023+10.csv", "Body": b"hello"}
    caller = Caller("AKID", "10.1.2.3", "REQUEST1")
    run = bus.world.services["s3"].operations["PutObject"].run
    bus.world.change(lambda tx: run(tx, request), caller)
    told = bus.told("events", "PublishServiceEvent")
    assert (told[0]["Source"], told[0]["DetailType"]) == ("aws.s3", "Object Created")
    assert (told[0]["Resources"], told[0]["Time"]) == (["arn:aws:s3:::bucket"], bus.world.clock.now())
    detail = orjson.loads(told[0]["Detail"])
    assert len(detail["object"].pop("sequencer")) == 18
    assert detail == {
        "version": "0",
        "bucket": {"name": "bucket"},
        "object": {"key": "in/ventas año 2023+10.csv", "size": 5, "etag": "5d41402abc4b2a76b9719d911017c592"},
        "request-id": "REQUEST1",
        "requester": "000000000000",
        "source-ip-address": "10.1.2.3",
        "reason": "PutObject",
    }


def test_a_refused_put_tells_nothing(bus: Bucketed) -> None:
    bus.refused("PutObject", Bucket="bucket", Key="a", Body=b"x", ChecksumCRC32="AAAAAA==")
    assert bus.published() == []


def test_every_way_to_create_an_object_has_its_reason(bus: Bucketed) -> None:
    bus.put("a", b"x")
    bus("PostObject", Bucket="bucket", Key="form", Body=b"x")
    bus("CopyObject", Bucket="bucket", Key="b", CopySource="bucket/a")
    upload = Uploading(bus)
    upload.complete(upload.part(1, LAST))
    assert [event["reason"] for event in bus.published()] == [
        "PutObject",
        "POST Object",
        "CopyObject",
        "CompleteMultipartUpload",
    ]


def test_a_deleted_object_is_told_with_its_kind_of_deletion(bus: Bucketed) -> None:
    bus.put("a", b"x")
    bus("DeleteObject", Bucket="bucket", Key="a")
    bus("DeleteObject", Bucket="bucket", Key="never there")
    bus("PutBucketVersioning", Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})
    version = bus.put("a", b"x")["VersionId"]
    bus("DeleteObject", Bucket="bucket", Key="a")
    bus("DeleteObject", Bucket="bucket", Key="a", VersionId=version)
    deleted = [event for event in bus.published() if event["type"] == "Object Deleted"]
    assert [(event["reason"], event["deletion-type"]) for event in deleted] == [
        ("DeleteObject", "Permanently Deleted"),
        ("DeleteObject", "Delete Marker Created"),
        ("DeleteObject", "Permanently Deleted"),
    ]
    assert "version-id" not in deleted[0]["object"]
    assert deleted[1]["object"]["etag"] == "d41d8cd98f00b204e9800998ecf8427e"
    assert deleted[2]["object"]["version-id"] == version


def test_sorting_by_sequencer_gives_the_order_of_operations(bus: Bucketed) -> None:
    for number in range(100):
        bus.put("a", str(number))
        if number % 3 == 0:
            bus("DeleteObject", Bucket="bucket", Key="a")
        if number % 7 == 0:
            bus.world.clock.advance(0.001)
    events = bus.published()
    sequencers = [event["object"]["sequencer"].ljust(20, "0") for event in events]
    assert sequencers == sorted(set(sequencers))
    assert all(int(sequencer, 16) for sequencer in sequencers)


def test_a_sequencer_never_returns_even_when_the_bucket_was_deleted_in_between(bus: Bucketed) -> None:
    for _ in range(50):
        bus.put("a")
    bus("DeleteObject", Bucket="bucket", Key="a")
    bus("DeleteBucket", Bucket="bucket")
    bus("CreateBucket", Bucket="bucket")
    bus.notify(EventBridgeConfiguration={})
    bus.put("a")
    sequencers = [event["object"]["sequencer"] for event in bus.published()]
    assert sequencers == sorted(set(sequencers))


def test_a_multipart_upload_is_told_once_when_it_is_complete(queued: Bucketed) -> None:
    upload = Uploading(queued)
    parts = [upload.part(1, FIRST), upload.part(2, LAST)]
    aborted = Uploading(queued, "other")
    aborted.part(1, LAST)
    queued("AbortMultipartUpload", **aborted.ask)
    assert [message for message in queued.sent() if "Records" in message] == []
    done = upload.complete(*parts)
    upload.complete(*parts)
    records = [message["Records"][0] for message in queued.sent() if "Records" in message]
    assert [record["eventName"] for record in records] == ["ObjectCreated:CompleteMultipartUpload"]
    told = records[0]["s3"]["object"]
    assert f'"{told["eTag"]}"' == done["ETag"] == queued("HeadObject", Bucket="bucket", Key="big")["ETag"]
    assert told["size"] == len(FIRST) + len(LAST)


def test_a_notification_has_the_fields_of_aws(queued: Bucketed) -> None:
    queued.put("a", b"hello")
    record = queued.sent()[-1]["Records"][0]
    assert record["eventVersion"] == "2.1"
    assert record["eventSource"] == "aws:s3"
    assert record["eventName"] == "ObjectCreated:Put"
    assert record["awsRegion"] == "us-east-1"
    assert record["eventTime"].endswith("Z")
    assert record["s3"]["bucket"]["name"] == "bucket"
    assert record["s3"]["bucket"]["arn"] == "arn:aws:s3:::bucket"
    stored = queued("GetBucketNotificationConfiguration", Bucket="bucket")["QueueConfigurations"][0]
    assert record["s3"]["configurationId"] == stored["Id"]


@pytest.mark.parametrize(
    ("key", "encoded"),
    [
        ("in/ventas año 2023+10 (a).csv", "in/ventas+a%C3%B1o+2023%2B10+%28a%29.csv"),
        ("a b.csv", "a+b.csv"),
        ("a%20b.csv", "a%2520b.csv"),
        ("files/2023-10-15 14:22:21_sales.csv", "files/2023-10-15+14%3A22%3A21_sales.csv"),
        ("a=b&c", "a%3Db%26c"),
    ],
)
def test_a_key_in_a_notification_is_form_encoded_and_decodes_to_itself(
    queued: Bucketed, key: str, encoded: str
) -> None:
    queued.put(key, b"mine")
    told = queued.sent()[-1]["Records"][0]["s3"]["object"]["key"]
    assert told == encoded
    assert unquote_plus(told) == key
    assert queued.get(unquote_plus(told))["Body"] == b"mine"


def test_a_space_and_a_literal_percent_20_are_two_objects_with_two_events(queued: Bucketed) -> None:
    for key in ("a b.csv", "a%20b.csv"):
        queued.put(key, key.encode())
    told = [message["Records"][0]["s3"]["object"]["key"] for message in queued.sent() if "Records" in message]
    assert [unquote_plus(key) for key in told] == ["a b.csv", "a%20b.csv"]
    assert unquote(told[0]) != unquote(told[1])
    assert queued.get("a%20b.csv")["Body"] == b"a%20b.csv"


def test_configuring_sends_the_test_event_to_queues_and_topics(s3_world: Bucketed) -> None:
    s3_world.notify(
        QueueConfigurations=[queue("s3:ObjectCreated:Put")],
        TopicConfigurations=[
            {"TopicArn": "arn:aws:sns:us-east-1:000000000000:files", "Events": ["s3:ObjectRemoved:*"]}
        ],
    )
    test = s3_world.sent()[0]
    assert test.keys() == {"Service", "Event", "Time", "Bucket", "RequestId", "HostId"}
    assert (test["Service"], test["Event"], test["Bucket"]) == ("Amazon S3", "s3:TestEvent", "bucket")
    topic = s3_world.told("sns", "Publish")[0]
    assert orjson.loads(topic["Message"])["Event"] == "s3:TestEvent"
    assert topic["Subject"] == "Amazon S3 Notification"


def test_topics_and_functions_receive_records_too(s3_world: Bucketed) -> None:
    s3_world.notify(
        TopicConfigurations=[
            {"TopicArn": "arn:aws:sns:us-east-1:000000000000:files", "Events": ["s3:ObjectRemoved:*"]}
        ],
        LambdaFunctionConfigurations=[
            {
                "LambdaFunctionArn": "arn:aws:lambda:us-east-1:000000000000:function:parse",
                "Events": ["s3:ObjectCreated:*"],
            }
        ],
    )
    s3_world.put("a b", b"x")
    s3_world("DeleteObject", Bucket="bucket", Key="a b")
    invoked = s3_world.told("lambda", "Invoke")
    assert [one["InvocationType"] for one in invoked] == ["Event"]
    assert orjson.loads(invoked[0]["Payload"])["Records"][0]["s3"]["object"]["key"] == "a+b"
    published = orjson.loads(s3_world.told("sns", "Publish")[-1]["Message"])
    assert published["Records"][0]["eventName"] == "ObjectRemoved:Delete"
    assert "size" not in published["Records"][0]["s3"]["object"]


def test_filters_choose_by_prefix_and_suffix(s3_world: Bucketed) -> None:
    s3_world.notify(QueueConfigurations=[queue("s3:ObjectCreated:*", prefix="in/", suffix=".csv")])
    for key in ("in/a.csv", "in/a.txt", "out/a.csv"):
        s3_world.put(key)
    keys = [message["Records"][0]["s3"]["object"]["key"] for message in s3_world.sent() if "Records" in message]
    assert keys == ["in/a.csv"]


def test_several_suffixes_in_one_filter_are_refused(s3_world: Bucketed) -> None:
    entry = queue()
    entry["Filter"] = {"Key": {"FilterRules": [{"Name": "suffix", "Value": end} for end in ("jpg", "png", "gif")]}}
    refused = s3_world.refused(
        "PutBucketNotificationConfiguration",
        Bucket="bucket",
        NotificationConfiguration={"QueueConfigurations": [entry]},
    )
    assert (refused.code, refused.message) == (
        "InvalidArgument",
        "Cannot specify more than one suffix rule in a filter.",
    )


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([queue("s3:ObjectCreated:*"), queue("s3:ObjectCreated:Put")], "InvalidArgument"),
        ([queue(prefix="a"), queue(prefix="ab")], "InvalidArgument"),
        ([queue(folder="a")], "InvalidArgument"),
        ([queue("s3:Nonsense")], "InvalidArgument"),
        ([queue("s3:ObjectRestore:Post")], "NotImplemented"),
        ([{**queue(), "QueueArn": "arn:aws:sqs:us-east-1:000000000000:missing"}], "InvalidArgument"),
        ([{**queue(), "QueueArn": "arn:aws:sqs:us-east-1:000000000000:q.fifo"}], "InvalidArgument"),
        ([{**queue(), "QueueArn": "arn:aws:sns:us-east-1:000000000000:topic"}], "InvalidArgument"),
        ([{**queue(), "QueueArn": "nonsense"}], "InvalidArgument"),
    ],
)
def test_a_configuration_that_could_not_be_kept_is_refused(
    s3_world: Bucketed, entries: list[dict[str, Any]], code: str
) -> None:
    refused = s3_world.refused(
        "PutBucketNotificationConfiguration",
        Bucket="bucket",
        NotificationConfiguration={"QueueConfigurations": entries},
    )
    assert refused.code == code
    assert s3_world("GetBucketNotificationConfiguration", Bucket="bucket") == {}
    assert s3_world.sent() == []


def test_entries_that_cannot_meet_stand_side_by_side(s3_world: Bucketed) -> None:
    s3_world.notify(QueueConfigurations=[queue(suffix=".csv"), queue(suffix=".txt"), queue("s3:ObjectRemoved:*")])
    assert len(s3_world("GetBucketNotificationConfiguration", Bucket="bucket")["QueueConfigurations"]) == 3
    s3_world.notify()
    assert s3_world("GetBucketNotificationConfiguration", Bucket="bucket") == {}


def test_a_destination_that_is_gone_does_not_undo_the_object(s3_world: Bucketed) -> None:
    s3_world(
        "PutBucketNotificationConfiguration",
        Bucket="bucket",
        NotificationConfiguration={
            "QueueConfigurations": [{**queue(), "QueueArn": "arn:aws:sqs:us-east-1:000000000000:missing"}]
        },
        SkipDestinationValidation=True,
    )
    s3_world.put("a", b"x")
    assert s3_world.get("a")["Body"] == b"x"
    waiting = s3_world.world.rows("SELECT kind, subject FROM deliveries")
    assert [(row["kind"], row["subject"]) for row in waiting] == [
        ("s3.notify", "arn:aws:sqs:us-east-1:000000000000:missing")
    ]
    s3_world.world.pass_time(600)
    assert len(s3_world.world.rows("SELECT kind FROM deliveries")) == 1
    s3_world.world.pass_time(25 * 3600)
    assert s3_world.world.rows("SELECT kind FROM deliveries") == []


def test_an_empty_file_and_its_real_content_are_two_events_in_order(queued: Bucketed) -> None:
    queued.put("sales_2023_10.parquet", b"")
    upload = Uploading(queued, "sales_2023_10.parquet")
    upload.complete(upload.part(1, FIRST), upload.part(2, LAST))
    records = [message["Records"][0]["s3"]["object"] for message in queued.sent() if "Records" in message]
    assert [record["size"] for record in records] == [0, len(FIRST) + len(LAST)]
    assert records[0]["sequencer"] < records[1]["sequencer"]
