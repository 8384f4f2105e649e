"""Measures through HTTP: a real server in a process of its own, boto3 as the client. The client is one Python process
and has a ceiling of its own: about a thousand small calls a second on two cores."""

import hashlib
import io
import json
import shutil
import statistics
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from benchmarks.inside import pass_machine
from muster.testing import ServerProcess

ROLE = "arn:aws:iam::000000000000:role/bench"
MIB = 1024 * 1024


def client(server: ServerProcess, service: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=server.endpoint,
        region_name="us-east-1",
        aws_access_key_id="bench",
        aws_secret_access_key="bench",
        config=Config(max_pool_connections=32, s3={"addressing_style": "path"}),
    )


def memory_mib(pid: int) -> float:
    """The resident memory of a process."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def quantiles(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"{statistics.median(ordered) * 1000:.1f} ms median, {p99 * 1000:.1f} ms p99"


def timed_rate(count: int, threads: int, act: Callable[[int], object]) -> float:
    """How many times a second `act` is done by that many threads."""
    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(act, range(count)))
    return count / (time.perf_counter() - began)


def start_up(folder: Path) -> dict[str, Any]:
    """A new data folder, then the same one again; memory when idle."""
    server = ServerProcess(folder / "data")
    server.start()
    first = server.start_seconds
    idle = memory_mib(server.pid)
    server.stop()
    server.start()
    again = server.start_seconds
    server.stop()
    return {
        "start with a new data folder": f"{first:.2f} s",
        "start again": f"{again:.2f} s",
        "resident memory, idle": f"{idle:.0f} MiB",
    }


def upload_to_start(folder: Path) -> dict[str, Any]:
    """From sending PutObject to the start date of the execution that its event started."""
    with ServerProcess(folder / "data") as server:
        s3, events, states = (client(server, name) for name in ("s3", "events", "stepfunctions"))
        s3.create_bucket(Bucket="uploads")
        s3.put_bucket_notification_configuration(
            Bucket="uploads", NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
        machine = states.create_state_machine(name="arrived", definition=pass_machine(1), roleArn=ROLE)
        pattern = {"source": ["aws.s3"], "detail": {"bucket": {"name": ["uploads"]}}}
        events.put_rule(Name="uploads", EventPattern=json.dumps(pattern))
        events.put_targets(Rule="uploads", Targets=[{"Id": "1", "Arn": machine["stateMachineArn"], "RoleArn": ROLE}])
        sent: dict[str, float] = {}
        count = 200
        for number in range(count):
            key = f"file-{number}"
            sent[key] = time.time()
            s3.put_object(Bucket="uploads", Key=key, Body=b"x" * 1000)
        began: dict[str, float] = {}
        until = time.monotonic() + 60
        while len(began) < count and time.monotonic() < until:
            pages = states.get_paginator("list_executions").paginate(stateMachineArn=machine["stateMachineArn"])
            for one in (one for page in pages for one in page["executions"]):
                if one["executionArn"] not in began:
                    described = states.describe_execution(executionArn=one["executionArn"])
                    key = json.loads(described["input"])["detail"]["object"]["key"]
                    began[one["executionArn"]] = described["startDate"].timestamp() - sent[key]
        return {"uploads": count, "started": len(began), "upload to start": quantiles(list(began.values()))}


def executions(folder: Path) -> dict[str, Any]:
    """Executions of ten Pass states, started by eight client threads, until all have ended."""
    with ServerProcess(folder / "data") as server:
        states = client(server, "stepfunctions")
        machine = states.create_state_machine(name="chain", definition=pass_machine(10), roleArn=ROLE)
        arn = machine["stateMachineArn"]
        count = 800
        began = time.perf_counter()
        started = timed_rate(count, 8, lambda n: states.start_execution(stateMachineArn=arn, input='{"n":1}'))
        while states.list_executions(stateMachineArn=arn, statusFilter="RUNNING", maxResults=1)["executions"]:
            time.sleep(0.005)
        seconds = time.perf_counter() - began
        return {
            "executions": count,
            "StartExecution per second": round(started),
            "executions per second": round(count / seconds),
        }


def objects(folder: Path) -> dict[str, Any]:
    """Objects of 10 KB, eight client threads."""
    with ServerProcess(folder / "data") as server:
        s3 = client(server, "s3")
        s3.create_bucket(Bucket="objects")
        body = b"x" * 10_000
        puts = timed_rate(1500, 8, lambda n: s3.put_object(Bucket="objects", Key=f"k/{n}", Body=body))
        gets = timed_rate(1500, 8, lambda n: s3.get_object(Bucket="objects", Key=f"k/{n}")["Body"].read())
        return {"put per second": round(puts), "get per second": round(gets)}


def large_object(folder: Path) -> dict[str, Any]:
    """An object of 1 GiB in and out, beside what copying the file and computing its MD5 cost here."""
    source = folder / "large"
    with source.open("wb") as file:
        for number in range(1024):
            file.write(hashlib.sha256(str(number).encode()).digest() * (MIB // 32))
    began = time.perf_counter()
    shutil.copyfile(source, folder / "copy")
    with (folder / "copy").open("rb") as file:
        hashlib.file_digest(file, "md5")
    copied = time.perf_counter() - began
    with ServerProcess(folder / "data") as server:
        s3 = client(server, "s3")
        s3.create_bucket(Bucket="objects")
        before = memory_mib(server.pid)
        began = time.perf_counter()
        with source.open("rb") as file:
            s3.put_object(Bucket="objects", Key="large", Body=file)
        put = time.perf_counter() - began
        began = time.perf_counter()
        body = s3.get_object(Bucket="objects", Key="large")["Body"]
        size = sum(len(chunk) for chunk in body.iter_chunks(MIB))
        got = time.perf_counter() - began
        after = memory_mib(server.pid)
    assert size == source.stat().st_size
    return {
        "copy and MD5 of the file": f"{copied:.1f} s",
        "put, one request": f"{put:.1f} s ({put / copied:.1f} × copy and MD5)",
        "get": f"{got:.1f} s ({got / copied:.1f} × copy and MD5)",
        "memory before and after": f"{before:.0f} MiB, {after:.0f} MiB",
    }


def queue(folder: Path) -> dict[str, Any]:
    """Messages in and out in batches of ten, four client threads."""
    with ServerProcess(folder / "data") as server:
        sqs = client(server, "sqs")
        url = sqs.create_queue(QueueName="bench")["QueueUrl"]
        batches = 200

        def send(number: int) -> None:
            entries = [{"Id": str(n), "MessageBody": f"{number}-{n} " + "x" * 100} for n in range(10)]
            sqs.send_message_batch(QueueUrl=url, Entries=entries)

        def receive(number: int) -> int:
            found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
            if found:
                entries = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(found)]
                sqs.delete_message_batch(QueueUrl=url, Entries=entries)
            return len(found)

        sent = timed_rate(batches, 4, send) * 10
        began = time.perf_counter()
        with ThreadPoolExecutor(4) as pool:
            received = sum(pool.map(receive, range(batches)))
        seconds = time.perf_counter() - began
        return {
            "messages sent per second": round(sent),
            "messages received and deleted per second": round(received / seconds),
        }


HANDLER = """
import time

def handler(event, context):
    for record in event["Records"]:
        print("LATENCY", time.time() - float(record["body"]))
"""


def mapping(folder: Path) -> dict[str, Any]:
    """From sending one message to the handler that an event source mapping calls with it, function warm."""
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("app.py", HANDLER)
    with ServerProcess(folder / "data") as server:
        sqs, functions, logs = (client(server, name) for name in ("sqs", "lambda", "logs"))
        url = sqs.create_queue(QueueName="bench")["QueueUrl"]
        functions.create_function(
            FunctionName="bench",
            Runtime="python3.12",
            Handler="app.handler",
            Role=ROLE,
            Code={"ZipFile": package.getvalue()},
        )
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        functions.create_event_source_mapping(EventSourceArn=arn, FunctionName="bench")
        count = 60

        def latencies() -> list[float]:
            lines = logs.filter_log_events(logGroupName="/aws/lambda/bench", filterPattern="LATENCY")["events"]
            return [float(line["message"].split()[1]) for line in lines]

        until = time.monotonic() + 120
        for _ in range(count):
            sqs.send_message(QueueUrl=url, MessageBody=str(time.time()))
            while time.monotonic() < until:
                counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
                if not int(counts["ApproximateNumberOfMessages"]) + int(
                    counts["ApproximateNumberOfMessagesNotVisible"]
                ):
                    break
                time.sleep(0.01)
        while len(found := latencies()) < count and time.monotonic() < until:
            time.sleep(0.2)
        return {"messages": len(found), "first, cold": f"{found[0] * 1000:.0f} ms", "the others": quantiles(found[1:])}


def alarm(folder: Path) -> dict[str, Any]:
    """From a message in a queue to the ALARM state of an alarm on its depth, and back once it is gone."""
    with ServerProcess(folder / "data") as server:
        sqs, cloudwatch = client(server, "sqs"), client(server, "cloudwatch")
        url = sqs.create_queue(QueueName="dead")["QueueUrl"]
        cloudwatch.put_metric_alarm(
            AlarmName="dead",
            Namespace="AWS/SQS",
            MetricName="ApproximateNumberOfMessagesVisible",
            Dimensions=[{"Name": "QueueName", "Value": "dead"}],
            Statistic="Maximum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=0,
            ComparisonOperator="GreaterThanThreshold",
            TreatMissingData="notBreaching",
        )

        def reached(state: str) -> float:
            began = time.perf_counter()
            while time.perf_counter() - began < 150:
                if cloudwatch.describe_alarms(AlarmNames=["dead"])["MetricAlarms"][0]["StateValue"] == state:
                    return time.perf_counter() - began
                time.sleep(0.02)
            return float("inf")

        reached("OK")
        sqs.send_message(QueueUrl=url, MessageBody="poison")
        raised = reached("ALARM")
        message = sqs.receive_message(QueueUrl=url)["Messages"][0]
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return {"message to ALARM": f"{raised:.2f} s", "gone to OK": f"{reached('OK'):.2f} s"}
