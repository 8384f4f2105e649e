"""Functions in real processes, from the operation to the answer."""

import asyncio
import base64
import io
import os
import shutil
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from muster.clock import SystemClock
from muster.errors import ServiceError
from muster.operation import Answer
from muster.runners import functions
from muster.runners.functions import FunctionRunner
from muster.services.lambda_ import SERVICE as LAMBDA
from muster.services.logs import SERVICE as LOGS
from muster.testing import World
from muster.transaction import Carried, Transaction

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="no `node` on PATH: functions for Node.js are NOT tested")

PYTHON = """
import os, subprocess, sys, time

calls = 0

def handler(event, context):
    global calls
    calls += 1
    print("got", event)
    what = event.get("do")
    if what == "raise":
        raise ValueError(event["text"])
    if what == "exit":
        os._exit(event["status"])
    if what == "sleep":
        if event.get("child"):
            child = subprocess.Popen(["sleep", "60"])
            open(event["child"], "w").write(str(child.pid))
        time.sleep(event["seconds"])
    if what == "large":
        return "x" * event["size"]
    if what == "environment":
        return dict(os.environ)
    if what == "import":
        __import__(event["module"])
    if what == "stderr":
        print("to stderr", file=sys.stderr)
    return {
        "calls": calls,
        "pid": os.getpid(),
        "id": context.aws_request_id,
        "arn": context.invoked_function_arn,
        "left": context.get_remaining_time_in_millis(),
        "client": context.client_context.custom if context.client_context else None,
    }
"""

NODE_MODULE = """
import { hostname } from "node:os";
let calls = 0;
export const handler = async (event, context) => {
  console.log("got", event);
  if (event.do === "raise") throw new TypeError(event.text);
  if (event.do === "reject") { Promise.reject(new Error("stray")); await new Promise((r) => setTimeout(r, 1000)); }
  calls += 1;
  return { calls, id: context.awsRequestId, arn: context.invokedFunctionArn, left: context.getRemainingTimeInMillis() };
};
export const back = (event, context, callback) => { setTimeout(() => callback(null, { back: event }), 5); };
export const backFails = (event, context, callback) => { callback(new RangeError("too far")); };
export const silent = () => {};
export const nested = { deep: { handler: async () => "deep" } };
"""


def zipped(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, text)
    return buffer.getvalue()


class Functions:
    """A world whose functions run in processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.world = World(
            [LAMBDA, LOGS],
            runners={"lambda.invoke": self._invoke, "lambda.kill": self._kill},
        )
        self.runner = FunctionRunner(self.world.store, folder, "http://127.0.0.1:4566", clock=SystemClock())
        self.world.run(self.runner.start())

    async def _invoke(self, delivery: Carried) -> Callable[[Transaction], None]:
        return await self.runner.invoke(delivery)

    async def _kill(self, delivery: Carried) -> Callable[[Transaction], None]:
        return await self.runner.kill(delivery)

    def create(self, name: str, files: Mapping[str, str], handler: str, runtime: str, **more: Any) -> None:
        self.world.call(
            "lambda",
            "CreateFunction",
            FunctionName=name,
            Runtime=runtime,
            Handler=handler,
            Role="arn:aws:iam::000000000000:role/any",
            Code={"ZipFile": zipped(files)},
            **more,
        )

    def python(self, name: str = "f", handler: str = "app.handler", **more: Any) -> None:
        self.create(name, {"app.py": PYTHON}, handler, "python3.11", **more)

    def node(self, name: str = "f", handler: str = "app.handler", **more: Any) -> None:
        self.create(name, {"app.mjs": NODE_MODULE}, handler, "nodejs20.x", **more)

    def invoke(self, event: Any = None, name: str = "f", **more: Any) -> Answer:
        return self.world.call("lambda", "Invoke", FunctionName=name, Payload=orjson.dumps(event or {}), **more)

    def result(self, event: Any = None, name: str = "f", **more: Any) -> Any:
        answer = self.invoke(event, name, **more)
        assert "FunctionError" not in answer, answer
        return orjson.loads(answer["Payload"])

    def fault(self, event: Any = None, name: str = "f") -> Any:
        answer = self.invoke(event, name)
        assert answer["FunctionError"] == "Unhandled"
        return orjson.loads(answer["Payload"])

    def log(self, name: str = "f") -> list[str]:
        found = self.world.call("logs", "FilterLogEvents", logGroupName=f"/aws/lambda/{name}")
        return [event["message"] for event in found["events"]]


@pytest.fixture
def lambda_(tmp_path: Path) -> Iterator[Functions]:
    functions = Functions(tmp_path)
    yield functions
    functions.world.run(functions.runner.stop())


def command(pid: int) -> str:
    """What the process runs."""
    return Path(f"/proc/{pid}/comm").read_text().strip()


def gone(pid: int) -> bool:
    """Whether the process ends within a moment."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        with suppress(OSError, IndexError):
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_python_function_answers_and_stays_warm(lambda_: Functions) -> None:
    lambda_.python(Timeout=30)
    first = lambda_.result({"a": 1})
    second = lambda_.result({"a": 1})
    assert (first["calls"], second["calls"]) == (1, 2)
    assert first["pid"] == second["pid"]
    assert first["id"] != second["id"]
    assert first["arn"] == "arn:aws:lambda:us-east-1:000000000000:function:f"
    assert 25_000 < first["left"] <= 30_000


def test_client_context_and_qualifier_reach_the_function(lambda_: Functions) -> None:
    lambda_.python(Publish=True)
    context = base64.b64encode(orjson.dumps({"custom": {"k": "v"}})).decode()
    result = lambda_.result(Qualifier="1", ClientContext=context)
    assert (result["arn"], result["client"]) == ("arn:aws:lambda:us-east-1:000000000000:function:f:1", {"k": "v"})
    with pytest.raises(ServiceError, match="Base64-encoded JSON"):
        lambda_.invoke(ClientContext="{}")


def test_raised_error_comes_back_with_type_message_and_trace(lambda_: Functions) -> None:
    lambda_.python()
    fault = lambda_.fault({"do": "raise", "text": "no such order"})
    assert (fault["errorType"], fault["errorMessage"]) == ("ValueError", "no such order")
    assert 'raise ValueError(event["text"])' in fault["stackTrace"][-1]
    assert fault["requestId"]
    assert lambda_.result()["calls"] == 2, "the worker goes on"


def test_function_is_killed_with_its_children_at_its_timeout(lambda_: Functions, tmp_path: Path) -> None:
    lambda_.python(Timeout=1)
    note = tmp_path / "child"
    fault = lambda_.fault({"do": "sleep", "seconds": 30, "child": str(note)})
    assert fault["errorType"] == "Sandbox.Timedout"
    assert fault["errorMessage"].startswith("RequestId: ")
    assert fault["errorMessage"].endswith(" Error: Task timed out after 1.00 seconds")
    assert gone(int(note.read_text()))
    assert any("Task timed out after 1.00 seconds" in line for line in lambda_.log())
    assert lambda_.result()["calls"] == 1, "the next one is a new worker"


@pytest.mark.parametrize(
    ("status", "says"),
    [(1, "Runtime exited with error: exit status 1"), (0, "Runtime exited without providing a reason")],
)
def test_exit_of_the_process_is_told(lambda_: Functions, status: int, says: str) -> None:
    lambda_.python()
    fault = lambda_.fault({"do": "exit", "status": status})
    assert fault["errorType"] == "Runtime.ExitError"
    assert fault["errorMessage"].endswith(f" Error: {says}")


def test_missing_module_and_handler_are_told(lambda_: Functions) -> None:
    lambda_.python("m", handler="nothing.handler")
    assert lambda_.fault(name="m")["errorType"] == "Runtime.ImportModuleError"
    lambda_.python("h", handler="app.nothing")
    assert lambda_.fault(name="h")["errorType"] == "Runtime.HandlerNotFound"
    assert lambda_.fault(name="h")["errorType"] == "Runtime.HandlerNotFound", "again, from a new worker"


def test_result_over_six_megabytes_is_refused(lambda_: Functions) -> None:
    lambda_.python()
    assert len(lambda_.invoke({"do": "large", "size": 6_000_000})["Payload"]) == 6_000_002
    fault = lambda_.fault({"do": "large", "size": 6_291_556})
    assert fault == {
        "errorType": "Function.ResponseSizeTooLarge",
        "errorMessage": "Response payload size exceeded maximum allowed payload size (6291556 bytes).",
    }


def test_environment_is_the_functions_and_not_the_servers(lambda_: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_SECRET", "do not tell")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "do not tell")
    lambda_.python(Environment={"Variables": {"TABLE": "files", "AWS_ENDPOINT_URL_S3": "http://elsewhere"}})
    seen = lambda_.result({"do": "environment"})
    assert "do not tell" not in seen.values()
    assert (seen["TABLE"], seen["AWS_ENDPOINT_URL_S3"]) == ("files", "http://elsewhere")
    assert seen["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4566"
    assert seen["AWS_LAMBDA_FUNCTION_NAME"] == "f"
    assert seen["AWS_LAMBDA_LOG_GROUP_NAME"] == "/aws/lambda/f"
    assert seen["AWS_REGION"] == seen["AWS_DEFAULT_REGION"] == "us-east-1"
    assert seen["HOME"] != os.environ["HOME"]


def test_what_muster_has_installed_can_be_imported(lambda_: Functions) -> None:
    lambda_.python(Timeout=30)
    assert lambda_.result({"do": "import", "module": "boto3"})["calls"] == 1


def test_change_of_settings_or_code_is_seen_by_the_next_call(lambda_: Functions) -> None:
    lambda_.python(Environment={"Variables": {"A": "1"}})
    assert lambda_.result({"do": "environment"})["A"] == "1"
    lambda_.world.call("lambda", "UpdateFunctionConfiguration", FunctionName="f", Environment={"Variables": {"A": "2"}})
    assert lambda_.result({"do": "environment"})["A"] == "2"
    code = zipped({"app.py": "def handler(event, context): return 'new'"})
    lambda_.world.call("lambda", "UpdateFunctionCode", FunctionName="f", ZipFile=code)
    assert lambda_.result() == "new"
    assert lambda_.runner.idle == 1, "the workers before are gone"


def test_log_has_the_lines_between_start_and_report(lambda_: Functions) -> None:
    lambda_.python()
    answer = lambda_.invoke({"do": "stderr"}, LogType="Tail")
    id_ = orjson.loads(answer["Payload"])["id"]
    lines = lambda_.log()
    assert lines[:3] == [f"START RequestId: {id_} Version: $LATEST\n", "got {'do': 'stderr'}\n", "to stderr\n"]
    assert lines[3] == f"END RequestId: {id_}\n"
    assert lines[4].startswith(f"REPORT RequestId: {id_}\tDuration: ")
    assert "Init Duration" in lines[4]
    assert base64.b64decode(answer["LogResult"]).decode() == "".join(lines)
    lambda_.invoke()
    assert "Init Duration" not in lambda_.log()[-1]
    assert len(lambda_.world.call("logs", "DescribeLogStreams", logGroupName="/aws/lambda/f")["logStreams"]) == 1


def test_json_logs_are_records_of_the_runtime_and_the_platform(lambda_: Functions) -> None:
    code = "import logging\ndef handler(event, context): logging.getLogger().warning('look'); logging.debug('hidden')"
    lambda_.create("j", {"app.py": code}, "app.handler", "python3.11", LoggingConfig={"LogFormat": "JSON"})
    lambda_.result(name="j")
    start, warning, report = (orjson.loads(line) for line in lambda_.log("j"))
    assert (start["type"], report["type"]) == ("platform.start", "platform.report")
    assert (warning["level"], warning["message"]) == ("WARNING", "look")
    assert warning["requestId"] == start["record"]["requestId"]


@needs_node
def test_json_logs_of_node(lambda_: Functions) -> None:
    lambda_.node(LoggingConfig={"LogFormat": "JSON", "ApplicationLogLevel": "WARN", "SystemLogLevel": "WARN"})
    lambda_.result()
    lambda_.fault({"do": "raise", "text": "no"})
    [record] = [orjson.loads(line) for line in lambda_.log()]
    assert (record["level"], "Invoke Error" in record["message"]) == ("ERROR", True)


def test_function_that_prints_much_has_all_of_it_kept(lambda_: Functions) -> None:
    code = "def handler(event, context):\n    for number in range(3000): print('line', number)"
    lambda_.create("m", {"app.py": code}, "app.handler", "python3.11", Timeout=30)
    lambda_.result(name="m")
    assert [line for line in lambda_.log("m") if line.startswith("line")] == [f"line {n}\n" for n in range(3000)]


def test_burst_of_calls_all_answer(lambda_: Functions) -> None:
    lambda_.python(Timeout=60)
    for number in range(60):
        lambda_.invoke({"number": number}, InvocationType="Event")
    lambda_.world.settle()
    rows = lambda_.world.rows("SELECT status FROM lambda_invocations")
    assert [row["status"] for row in rows] == ["succeeded"] * 60
    lines = lambda_.log()
    assert sum(line.startswith("got") for line in lines) == 60


def test_idle_workers_are_ended_after_a_while(lambda_: Functions, tmp_path: Path) -> None:
    lambda_.python()
    pid = lambda_.result()["pid"]
    lambda_.world.run(lambda_.runner.reap())
    assert lambda_.runner.idle == 1
    lambda_.runner._idle_seconds_max = -1.0
    lambda_.world.run(lambda_.runner.reap())
    assert lambda_.runner.idle == 0
    assert gone(pid)


def test_cancelled_invocation_is_killed(lambda_: Functions, tmp_path: Path) -> None:
    lambda_.python(Timeout=60)
    note = tmp_path / "child"
    event = {"do": "sleep", "seconds": 50, "child": str(note)}
    request = {"FunctionName": "f", "Payload": orjson.dumps(event), "Reply": {"Kind": "test.reply", "Subject": "s"}}
    id_ = lambda_.world.change(lambda tx: tx.call("lambda", "BeginInvocation", request))["InvocationId"]

    async def cancelled_while_it_runs() -> None:
        await lambda_.world.dispatcher.pass_once()
        async with asyncio.timeout(30):
            while not note.exists() or not note.read_text():
                await asyncio.sleep(0.01)
        await lambda_.world.store.change(lambda tx: tx.call("lambda", "CancelInvocation", {"InvocationId": id_}))
        await lambda_.world.dispatcher.pass_once()
        await lambda_.world.dispatcher.landed()

    lambda_.world.run(cancelled_while_it_runs())
    assert gone(int(note.read_text()))
    assert [row["status"] for row in lambda_.world.rows("SELECT status FROM lambda_invocations")] == ["cancelled"]
    assert any(line.startswith("got") for line in lambda_.log())


def test_stopping_ends_all_workers(tmp_path: Path) -> None:
    functions = Functions(tmp_path)
    functions.python()
    pid = functions.result()["pid"]
    functions.world.run(functions.runner.stop())
    assert gone(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's word of the parent's death is Linux's")
def test_worker_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = (
        "import os, subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, {str(functions.__file__).replace('functions.py', 'runtime/launch.py')!r},"
        " str(os.getpid()), 'sleep', '60'], start_new_session=True)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )

    async def killed_parent() -> int:
        parent = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
        assert parent.stdout is not None
        pid = int(await parent.stdout.readline())
        async with asyncio.timeout(20):
            while command(pid) != "sleep":
                await asyncio.sleep(0.01)
        parent.kill()
        await parent.wait()
        return pid

    assert gone(asyncio.run(killed_parent()))


def test_program_called_bootstrap_runs_by_the_runtime_api(lambda_: Functions) -> None:
    bootstrap = f"""#!{sys.executable}
import json, os, urllib.request
base = "http://" + os.environ["AWS_LAMBDA_RUNTIME_API"] + "/2018-06-01/runtime/invocation/"
while True:
    with urllib.request.urlopen(base + "next") as event:
        body = json.load(event)
        id_ = event.headers["Lambda-Runtime-Aws-Request-Id"]
    answer = json.dumps({{"echo": body}}).encode()
    urllib.request.urlopen(base + id_ + "/response", data=answer).read()
"""
    lambda_.create("own", {"bootstrap": bootstrap}, "unused", "provided.al2023", Timeout=10)
    assert lambda_.result({"a": 1}, "own") == {"echo": {"a": 1}}
    assert lambda_.result({"a": 2}, "own") == {"echo": {"a": 2}}
    lambda_.create("none", {"readme": ""}, "unused", "provided.al2023")
    assert lambda_.fault(name="none")["errorType"] == "Runtime.InvalidEntrypoint"


@needs_node
def test_node_function_answers_and_stays_warm(lambda_: Functions) -> None:
    lambda_.node(Timeout=30)
    first = lambda_.result({"a": 1})
    second = lambda_.result({"a": 1})
    assert (first["calls"], second["calls"]) == (1, 2)
    assert first["arn"] == "arn:aws:lambda:us-east-1:000000000000:function:f"
    assert 25_000 < first["left"] <= 30_000
    printed = next(line for line in lambda_.log() if "got" in line)
    assert printed.split("\t")[1:] == [first["id"], "INFO", "got { a: 1 }\n"]


@needs_node
def test_node_handlers_may_call_back_be_nested_or_commonjs(lambda_: Functions) -> None:
    lambda_.node("back", "app.back")
    assert lambda_.result({"a": 1}, "back") == {"back": {"a": 1}}
    lambda_.node("silent", "app.silent")
    assert lambda_.result(name="silent") is None
    lambda_.node("nested", "app.nested.deep.handler")
    assert lambda_.result(name="nested") == "deep"
    common = {"src/app.js": "exports.handler = async (event) => ({ common: event });"}
    lambda_.create("common", common, "src/app.handler", "nodejs18.x")
    assert lambda_.result({"a": 1}, "common") == {"common": {"a": 1}}


@needs_node
def test_node_errors_come_back_with_type_message_and_trace(lambda_: Functions) -> None:
    lambda_.node()
    fault = lambda_.fault({"do": "raise", "text": "no such order"})
    assert (fault["errorType"], fault["errorMessage"]) == ("TypeError", "no such order")
    assert fault["trace"][0] == "TypeError: no such order"
    lambda_.node("back", "app.backFails")
    assert lambda_.fault(name="back")["errorType"] == "RangeError"
    stray = lambda_.fault({"do": "reject"})
    assert (stray["errorType"], stray["errorMessage"]) == ("Runtime.UnhandledPromiseRejection", "Error: stray")
    lambda_.node("m", "nothing.handler")
    assert lambda_.fault(name="m")["errorType"] == "Runtime.ImportModuleError"
    lambda_.node("h", "app.nothing")
    assert lambda_.fault(name="h")["errorType"] == "Runtime.HandlerNotFound"


def test_missing_node_is_told_to_the_caller(lambda_: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    lambda_.node()
    with pytest.raises(ServiceError, match="node"):
        lambda_.invoke()
