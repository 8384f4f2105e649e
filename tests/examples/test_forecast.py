"""Scenario 1 as the example builds it: both orders, second deliveries, failures, corrections, and no lost wake-up."""

from typing import Any

import orjson
import pytest

SALES, WAREHOUSE = "sales_2023_10.parquet", "warehouse_2023_10.parquet"
Forecast = Any  # the fixture's own class, which lives in conftest


def test_sales_first_waits_with_a_token_and_goes_on_when_warehouse_is_done(forecast: Forecast) -> None:
    forecast.upload(SALES)
    waiting = forecast.record("sales")
    assert waiting["status"] == "Pending"
    assert waiting["task_token"]
    assert waiting["waits_for"] == "warehouse_2023_10"
    assert forecast.executions() == ["RUNNING"]
    assert forecast.functions.calls == []

    forecast.upload(WAREHOUSE)
    assert forecast.functions.calls == [("warehouse", "2023_10"), ("sales", "2023_10")]
    assert forecast.status("warehouse") == "Completed"
    done = forecast.record("sales")
    assert done["status"] == "Completed"
    assert orjson.loads(done["result"])["key"] == SALES
    assert "task_token" not in done
    assert forecast.executions() == ["SUCCEEDED", "SUCCEEDED"]


def test_warehouse_first_lets_sales_go_straight_through(forecast: Forecast) -> None:
    forecast.upload(WAREHOUSE)
    assert forecast.status("warehouse") == "Completed"
    forecast.upload(SALES)
    assert forecast.status("sales") == "Completed"
    assert forecast.executions() == ["SUCCEEDED", "SUCCEEDED"]


@pytest.mark.parametrize("files", [(SALES, WAREHOUSE), (WAREHOUSE, SALES)])
def test_both_at_once_end_completed_in_the_right_order(forecast: Forecast, files: tuple[str, str]) -> None:
    for file in files:
        forecast.upload(file, settle=False)
    forecast.world.settle()
    assert forecast.functions.calls == [("warehouse", "2023_10"), ("sales", "2023_10")]
    assert (forecast.status("warehouse"), forecast.status("sales")) == ("Completed", "Completed")


def test_months_do_not_wake_each_other(forecast: Forecast) -> None:
    for month in ("2023_10", "2023_11"):
        forecast.upload(f"sales_{month}.parquet")
    forecast.upload("warehouse_2023_11.parquet")
    assert forecast.status("sales", "2023_11") == "Completed"
    assert forecast.status("sales", "2023_10") == "Pending"


def test_a_second_delivery_of_the_same_event_does_nothing(forecast: Forecast) -> None:
    forecast.upload(WAREHOUSE)
    machine = forecast.output("StateMachineArn")
    first = forecast.world.call("stepfunctions", "ListExecutions", stateMachineArn=machine)["executions"][0]
    event = forecast.world.call("stepfunctions", "DescribeExecution", executionArn=first["executionArn"])["input"]
    before = forecast.record("warehouse")
    forecast.world.call("stepfunctions", "StartExecution", stateMachineArn=machine, input=event)
    forecast.world.settle()
    assert forecast.record("warehouse") == before
    assert forecast.functions.calls == [("warehouse", "2023_10")]
    assert forecast.executions() == ["SUCCEEDED", "SUCCEEDED"]


def test_an_older_upload_that_arrives_late_changes_nothing(forecast: Forecast) -> None:
    forecast.upload(WAREHOUSE)
    machine = forecast.output("StateMachineArn")
    first = forecast.world.call("stepfunctions", "ListExecutions", stateMachineArn=machine)["executions"][0]
    event = forecast.world.call("stepfunctions", "DescribeExecution", executionArn=first["executionArn"])["input"]
    forecast.upload(WAREHOUSE, b"PAR1 corrected")
    newest = forecast.record("warehouse")
    forecast.world.call("stepfunctions", "StartExecution", stateMachineArn=machine, input=event)
    forecast.world.settle()
    assert forecast.record("warehouse") == newest
    assert forecast.functions.calls == [("warehouse", "2023_10")] * 2


@pytest.mark.parametrize("folder", ["2023/", "in/año 2023+10 (a)%20/", "a:b=c/"])
def test_files_in_folders_with_awkward_names_arrive(forecast: Forecast, folder: str) -> None:
    key = folder + WAREHOUSE
    forecast.world.call("s3", "PutObject", Bucket="warehouse-000000000000", Key=key, Body=b"PAR1")
    forecast.world.settle()
    assert forecast.record("warehouse")["key"] == key
    assert forecast.status("warehouse") == "Completed"


def test_failed_warehouse_is_visible_and_blocks_sales_until_a_corrected_one_comes(forecast: Forecast) -> None:
    forecast.upload(SALES)
    forecast.functions.failing.add(WAREHOUSE)
    forecast.upload(WAREHOUSE)
    failed = forecast.record("warehouse")
    assert failed["status"] == "Failed"
    assert failed["error"] == "ValueError"
    assert failed["detail"] == f"{WAREHOUSE} is no good"
    assert forecast.record("sales")["waits_for"] == "blocked by failed warehouse_2023_10"
    assert sorted(forecast.executions()) == ["FAILED", "RUNNING"]

    forecast.functions.failing.clear()
    forecast.upload(WAREHOUSE, b"PAR1 corrected")
    assert forecast.status("warehouse") == "Completed"
    assert "error" not in forecast.record("warehouse")
    assert forecast.status("sales") == "Completed"


def test_sales_that_comes_after_a_failed_warehouse_says_what_blocks_it(forecast: Forecast) -> None:
    forecast.functions.failing.add(WAREHOUSE)
    forecast.upload(WAREHOUSE)
    forecast.upload(SALES)
    assert forecast.record("sales")["waits_for"] == "blocked by failed warehouse_2023_10"
    assert forecast.status("sales") == "Pending"
    forecast.functions.failing.clear()
    forecast.upload(WAREHOUSE, b"PAR1 corrected")
    assert forecast.status("sales") == "Completed"


def test_failed_sales_is_visible_with_its_reason(forecast: Forecast) -> None:
    forecast.functions.failing.add(SALES)
    forecast.upload(WAREHOUSE)
    forecast.upload(SALES)
    failed = forecast.record("sales")
    assert (failed["status"], failed["error"], failed["detail"]) == ("Failed", "ValueError", f"{SALES} is no good")


def test_newer_sales_takes_the_place_of_one_that_waits(forecast: Forecast) -> None:
    forecast.upload(SALES)
    forecast.upload(SALES, b"PAR1 corrected")
    assert sorted(forecast.executions()) == ["RUNNING", "SUCCEEDED"]
    assert forecast.status("sales") == "Pending"
    forecast.upload(WAREHOUSE)
    assert forecast.functions.calls == [("warehouse", "2023_10"), ("sales", "2023_10")]
    assert forecast.executions() == ["SUCCEEDED", "SUCCEEDED", "SUCCEEDED"]


def test_missing_warehouse_is_noticed_after_thirty_days(forecast: Forecast) -> None:
    forecast.upload(SALES)
    forecast.world.pass_time(30 * 86400 + 1)
    late = forecast.record("sales")
    assert (late["status"], late["error"]) == ("Failed", "WarehouseMissing")
    assert late["detail"] == "warehouse_2023_10 was not processed within 30 days"


def test_unknown_name_fails_visibly(forecast: Forecast) -> None:
    forecast.upload("sales_october.parquet")
    assert forecast.executions() == ["FAILED"]


def test_large_file_in_parts_arrives_as_well(forecast: Forecast) -> None:
    where = {"Bucket": "warehouse-000000000000", "Key": WAREHOUSE}
    call = forecast.world.call
    upload = call("s3", "CreateMultipartUpload", **where)["UploadId"]
    part = call("s3", "UploadPart", **where, UploadId=upload, PartNumber=1, Body=b"PAR1")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    call("s3", "CompleteMultipartUpload", **where, UploadId=upload, MultipartUpload=parts)
    forecast.world.settle()
    assert forecast.status("warehouse") == "Completed"


def test_stack_is_deleted_once_its_buckets_are_empty(forecast: Forecast) -> None:
    forecast.upload(WAREHOUSE)
    call = forecast.world.call
    call("cloudformation", "DeleteStack", StackName="forecast")
    stack = call("cloudformation", "DescribeStacks", StackName="forecast")["Stacks"][0]
    assert stack["StackStatus"] == "DELETE_FAILED"
    assert "WarehouseBucket" in stack["StackStatusReason"]
    assert forecast.status("warehouse") == "Completed"

    call("s3", "DeleteObject", Bucket="warehouse-000000000000", Key=WAREHOUSE)
    call("cloudformation", "DeleteStack", StackName="forecast")
    assert call("cloudformation", "DescribeStacks")["Stacks"] == []
    assert call("stepfunctions", "ListStateMachines")["stateMachines"] == []
    assert call("dynamodb", "ListTables")["TableNames"] == []
