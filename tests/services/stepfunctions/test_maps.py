"""Distributed Maps: child executions, Map Runs, tolerated failures."""

import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest

from muster.errors import ServiceError
from muster.services import s3
from muster.store.blobs import Blobs
from tests.services.stepfunctions.machinery import Machinery, one, passing, task


def distributed(**members: Any) -> dict[str, Any]:
    """A Map over `$.items` whose children fail on items that say so."""
    choice = {"Type": "Choice", "Choices": [{"Variable": "$", "StringEquals": "bad", "Next": "Bad"}], "Default": "Good"}
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        **one("Judge", choice, Bad={"Type": "Fail", "Error": "Rotten"}, Good=passing()),
    }
    return {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": processor, "End": True, **members}


def map_run(world: Machinery, execution: str) -> dict[str, Any]:
    (run,) = world.call("stepfunctions", "ListMapRuns", executionArn=execution)["mapRuns"]
    return world.call("stepfunctions", "DescribeMapRun", mapRunArn=run["mapRunArn"])


ITEMS: dict[str, Any] = {"items": ["bad", "a", "b", "c", "bad", "d", "e", "f", "g", "h"], "most": 20}


@pytest.mark.parametrize(
    ("tolerance", "status"),
    [
        ({"ToleratedFailureCount": 2}, "SUCCEEDED"),
        ({"ToleratedFailureCount": 1}, "FAILED"),
        ({}, "FAILED"),
        ({"ToleratedFailurePercentagePath": "$.most"}, "SUCCEEDED"),
        ({"ToleratedFailurePercentage": 10}, "FAILED"),
    ],
)
def test_failures_are_tolerated_as_declared(world: Machinery, tolerance: dict[str, Any], status: str) -> None:
    """sfn-map-01"""
    execution = world.begin(one("Each", distributed(**tolerance)), ITEMS)
    assert world.status(execution) == status
    described = map_run(world, execution)
    assert described["status"] == status
    assert described["toleratedFailureCount"] == tolerance.get("ToleratedFailureCount", 0)
    if status == "FAILED":
        assert world.failure(execution)[0] == "States.ExceedToleratedFailureThreshold"
        assert "MapRunFailed" in world.types(execution)
    else:
        assert described["itemCounts"]["failed"] == 2
        assert described["itemCounts"]["succeeded"] == 8
        assert world.output(execution) == [item for item in ITEMS["items"] if item != "bad"]


def test_iteration_that_starts_a_missing_machine_fails_map_and_execution(world: Machinery) -> None:
    """sfn-map-03"""
    arn = "arn:aws:states:us-east-1:000000000000:stateMachine:missing"
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        **one("Start", task("states:startExecution", Parameters={"StateMachineArn": arn})),
    }
    each = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": processor, "End": True}
    execution = world.begin(one("Each", each), {"items": [{}]})
    assert world.failure(execution)[0] == "States.ExceedToleratedFailureThreshold"
    described = map_run(world, execution)
    assert (described["status"], described["itemCounts"]["failed"]) == ("FAILED", 1)
    listed = world.call("stepfunctions", "ListExecutions", mapRunArn=described["mapRunArn"])["executions"]
    child = world.described(listed[0]["executionArn"])
    assert child["error"] == "StepFunctions.StateMachineDoesNotExistException"


def test_no_more_children_run_than_allowed(world: Machinery) -> None:
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        **one("Sleep", {"Type": "Wait", "Seconds": 10, "End": True}),
    }
    each = {"Type": "Map", "MaxConcurrency": 2, "ItemProcessor": processor, "End": True}
    execution = world.begin(one("Each", each), [1, 2, 3, 4, 5])
    assert map_run(world, execution)["itemCounts"]["running"] == 2
    world.pass_time(30)
    assert world.output(execution) == [1, 2, 3, 4, 5]


@pytest.fixture
def stored(tmp_path: Path) -> Machinery:
    """A world with a bucket `files`."""
    blobs = Blobs(tmp_path)
    world = Machinery([s3.service(blobs)], runners=s3.runners(blobs))
    world.call("s3", "CreateBucket", Bucket="files")
    return world


def put(world: Machinery, key: str, body: bytes) -> None:
    world.call("s3", "PutObject", Bucket="files", Key=key, Body=body)


def reading(reader: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A distributed Map that reads its items and passes them on."""
    processor = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, **one("One", passing())}
    return one("Each", {"Type": "Map", "ItemReader": reader, "ItemProcessor": processor, "End": True, **members})


def object_reader(**config: Any) -> dict[str, Any]:
    parameters = {"Bucket": "files", "Key.$": "$.key"}
    return {"Resource": "arn:aws:states:::s3:getObject", "ReaderConfig": config, "Parameters": parameters}


@pytest.mark.parametrize(
    ("body", "config", "items"),
    [
        (b'[1, {"a": 2}]', {"InputType": "JSON"}, [1, {"a": 2}]),
        (b'{"a": 1}\n\n{"a": 2}\n', {"InputType": "JSONL"}, [{"a": 1}, {"a": 2}]),
        (
            b'\xef\xbb\xbfid,text\r\n1,"a,b"\r\n2\r\n',
            {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"},
            [{"id": "1", "text": "a,b"}, {"id": "2", "text": ""}],
        ),
        (
            b"1|x\n2|y\n",
            {
                "InputType": "CSV",
                "CSVHeaderLocation": "GIVEN",
                "CSVHeaders": ["n", "l"],
                "CSVDelimiter": "PIPE",
                "MaxItems": 1,
            },
            [{"n": "1", "l": "x"}],
        ),
    ],
)
def test_items_are_read_from_an_object(stored: Machinery, body: bytes, config: dict[str, Any], items: Any) -> None:
    put(stored, "items", body)
    execution = stored.begin(reading(object_reader(**config)), {"key": "items"})
    assert stored.output(execution) == items


def test_listing_gives_an_item_per_object(stored: Machinery) -> None:
    for key in ("in/a", "in/b", "out/c"):
        put(stored, key, b"x")
    reader = {"Resource": "arn:aws:states:::s3:listObjectsV2", "Parameters": {"Bucket": "files", "Prefix": "in/"}}
    assert [item["Key"] for item in stored.output(stored.begin(reading(reader)))] == ["in/a", "in/b"]


def test_missing_object_fails_the_map_with_the_readers_error(stored: Machinery) -> None:
    execution = stored.begin(reading(object_reader(InputType="JSON")), {"key": "missing"})
    assert stored.failure(execution)[0] == "States.ItemReaderFailed"
    assert map_run(stored, execution)["status"] == "FAILED"


def test_batches_have_no_more_items_than_allowed(stored: Machinery) -> None:
    put(stored, "items", b"[1,2,3,4,5]")
    batcher = {"MaxItemsPerBatch": 2, "BatchInput": {"from.$": "$.key"}}
    execution = stored.begin(reading(object_reader(InputType="JSON"), ItemBatcher=batcher), {"key": "items"})
    assert stored.output(execution) == [
        {"BatchInput": {"from": "items"}, "Items": [1, 2]},
        {"BatchInput": {"from": "items"}, "Items": [3, 4]},
        {"BatchInput": {"from": "items"}, "Items": [5]},
    ]


def test_results_are_written_with_a_manifest(stored: Machinery) -> None:
    put(stored, "items", b"[1,2,3]")
    writer = {"Resource": "arn:aws:states:::s3:putObject", "Parameters": {"Bucket": "files", "Prefix": "results"}}
    execution = stored.begin(reading(object_reader(InputType="JSON"), ResultWriter=writer), {"key": "items"})
    where = stored.output(execution)["ResultWriterDetails"]
    manifest = orjson.loads(read(stored, where["Key"]))
    (file,) = manifest["ResultFiles"]["SUCCEEDED"]
    results = orjson.loads(read(stored, file["Key"]))
    assert [result["Output"] for result in results] == ["1", "2", "3"]


def read(world: Machinery, key: str) -> bytes:
    body: bytes = world.change(lambda tx: tx.call("s3", "ReadObject", {"Bucket": "files", "Key": key}))["Body"]
    return body


def test_stopping_the_parent_stops_its_children(world: Machinery) -> None:
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        **one("Sleep", {"Type": "Wait", "Seconds": 10, "End": True}),
    }
    execution = world.begin(one("Each", {"Type": "Map", "ItemProcessor": processor, "End": True}), [1, 2])
    world.call("stepfunctions", "StopExecution", executionArn=execution)
    described = map_run(world, execution)
    assert (described["status"], described["itemCounts"]["aborted"]) == ("ABORTED", 2)
    world.settle()
    assert not world.rows("SELECT * FROM deliveries WHERE kind LIKE 'states.%'")


def test_items_are_read_from_an_inventory(stored: Machinery) -> None:
    put(stored, "data/1.csv.gz", gzip.compress(b'"files","a.txt","3"\n'))
    put(stored, "data/2.csv", b'"files","b.txt","5"\n')
    manifest = {
        "destinationBucket": "arn:aws:s3:::files",
        "fileFormat": "CSV",
        "fileSchema": "Bucket, Key, Size",
        "files": [{"key": "data/1.csv.gz"}, {"key": "data/2.csv"}],
    }
    put(stored, "manifest.json", orjson.dumps(manifest))
    rows = [{"Bucket": "files", "Key": "a.txt", "Size": "3"}, {"Bucket": "files", "Key": "b.txt", "Size": "5"}]
    reader = object_reader(InputType="MANIFEST")
    assert stored.output(stored.begin(reading(reader), {"key": "manifest.json"})) == rows
    few = object_reader(InputType="MANIFEST", ManifestType="S3_INVENTORY", MaxItems=1)
    assert stored.output(stored.begin(reading(few), {"key": "manifest.json"})) == rows[:1]
    error, cause = stored.failure(stored.begin(reading(reader), {"key": "data/2.csv"}))
    assert (error, str(cause)[:15]) == ("States.ItemReaderFailed", "The item reader")


def sleeping(execution_type: str, **members: Any) -> dict[str, Any]:
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": execution_type},
        **one("Sleep", {"Type": "Wait", "Seconds": 10, "End": True}),
    }
    return one("Each", {"Type": "Map", "ItemProcessor": processor, "End": True, **members})


def test_running_map_run_takes_new_limits(world: Machinery) -> None:
    execution = world.begin(sleeping("STANDARD", MaxConcurrency=1), [1, 2, 3, 4])
    arn = map_run(world, execution)["mapRunArn"]
    world.call("stepfunctions", "UpdateMapRun", mapRunArn=arn, maxConcurrency=3, toleratedFailureCount=2)
    world.settle()
    described = map_run(world, execution)
    assert (described["maxConcurrency"], described["itemCounts"]["running"]) == (3, 3)
    assert described["toleratedFailureCount"] == 2
    world.call("stepfunctions", "UpdateMapRun", mapRunArn=arn, maxConcurrency=1)
    world.pass_time(10)
    assert map_run(world, execution)["itemCounts"]["running"] == 1
    world.pass_time(10)
    assert world.output(execution) == [1, 2, 3, 4]
    with pytest.raises(ServiceError, match="not running"):
        world.call("stepfunctions", "UpdateMapRun", mapRunArn=arn, maxConcurrency=1)


def test_express_children_are_express_executions(world: Machinery) -> None:
    execution = world.begin(sleeping("EXPRESS"), [1, 2])
    (child, *_) = world.rows("SELECT arn FROM states_executions WHERE map_run IS NOT NULL")
    assert ":express:machine-1/Each:" in child["arn"]
    world.pass_time(10)
    assert world.output(execution) == [1, 2]


def test_express_children_end_after_five_minutes(world: Machinery) -> None:
    definition = sleeping("EXPRESS")
    definition["States"]["Each"]["ItemProcessor"]["States"]["Sleep"]["Seconds"] = 400
    execution = world.begin(definition, [1])
    world.pass_time(300)
    assert world.failure(execution)[0] == "States.ExceedToleratedFailureThreshold"


def test_express_children_cannot_wait_for_tokens(world: Machinery) -> None:
    definition = sleeping("EXPRESS")
    waiting = task("sqs:sendMessage.waitForTaskToken", Parameters={"QueueUrl": "q", "MessageBody": "m"})
    definition["States"]["Each"]["ItemProcessor"]["States"]["Sleep"] = waiting
    with pytest.raises(ServiceError, match="waitForTaskToken"):
        world.create(definition)
