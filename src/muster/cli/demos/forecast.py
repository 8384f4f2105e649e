"""Scenario 1, start to finish: two files that depend on each other, in both orders, and a server killed in between.

Everything is looked at through AWS's protocols, on a real server in a process of its own.
"""

import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet
from boto3.dynamodb.types import TypeDeserializer

from muster.cli.client import Client, Clients, clients, pages
from muster.cli.demos.story import Story
from muster.stacks.package import deploy
from muster.testing import ServerProcess

Record = dict[str, Any]


class Application:
    """The deployed example as a person sees it: buckets to upload to, records to read, executions to look at."""

    def __init__(self, example: Path, made: Clients) -> None:
        self.deployed = deploy(example, made, name="forecast", parameters={})
        self.data = example / "data"
        self.use(made)
        resources = pages(
            made("cloudformation"), "list_stack_resources", "StackResourceSummaries", StackName=self.deployed.name
        )
        self.names: dict[str, str] = {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in resources}

    def use(self, made: Clients) -> None:
        """Speak to the server through these clients from now on."""
        self.s3: Client = made("s3")
        self.dynamodb: Client = made("dynamodb")
        self.states: Client = made("stepfunctions")

    def upload(self, file: str, month: str) -> None:
        """Upload a month's file to its team's bucket."""
        name = f"{file}_{month}.parquet"
        bucket = self.names["SalesBucket" if file == "sales" else "WarehouseBucket"]
        self.s3.upload_file(str(self.data / name), bucket, name)

    def record(self, file: str, month: str) -> Record:
        """What the table says of a file; empty when it has not arrived."""
        key = {"correlation_id": {"S": month}, "file_type": {"S": file}}
        found = self.dynamodb.get_item(TableName=self.names["FileTable"], Key=key, ConsistentRead=True)
        deserialize = TypeDeserializer().deserialize
        return {name: deserialize(value) for name, value in found.get("Item", {}).items()}

    def has(self, file: str, month: str, status: str) -> Record | None:
        """The file's record, once it has that status."""
        record = self.record(file, month)
        return record if record.get("status") == status else None

    def executions(self, machine: str, status: str | None = None) -> list[dict[str, Any]]:
        """A machine's executions, newest first."""
        wanted = {"statusFilter": status} if status else {}
        return pages(self.states, "list_executions", "executions", stateMachineArn=self.names[machine], **wanted)

    def forecast(self, month: str) -> Any:
        """The result of a month, as a table."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "forecast.parquet"
            self.s3.download_file(self.names["ForecastBucket"], f"forecast/forecast_{month}.parquet", str(path))
            return pyarrow.parquet.read_table(path)


def tell(story: Story, example: Path, data: Path, *, keep: bool) -> ServerProcess:
    """Run the demo; the server, stopped unless it is to be kept."""
    story.title("Dependent uploads: sales needs warehouse, and nobody coordinates the two")
    server = ServerProcess(data)
    try:
        with story.step("Start a server and deploy the application"):
            server.start()
            story.say(f"A server of its own at {server.endpoint}, data in {data}.")
            application = Application(example, clients(server.endpoint))
            machines = [name for name in application.names if name.endswith("StateMachine")]
            story.check(
                len(machines) == 3,
                f"stack {application.deployed.name} {application.deployed.action}: buckets, table, functions,"
                f" {len(machines)} state machines, the rule",
            )
        waited = sales_first(story, application)
        straight = warehouse_first(story, application)
        killed(story, application, server)
        with story.step("Look at everything once more"):
            settled(story, application)
        story.end(
            [
                ("upload of sales until it waits", f"{waited[0]:.2f} s"),
                ("upload of warehouse until both are completed", f"{waited[1]:.2f} s"),
                ("sales, when warehouse is already done", f"{straight:.2f} s"),
                ("start of the server after SIGKILL", f"{server.start_seconds:.2f} s"),
            ]
        )
    except BaseException:
        server.stop()
        raise
    if not keep:
        server.stop()
    return server


def sales_first(story: Story, application: Application) -> tuple[float, float]:
    """Sales comes first and waits; warehouse comes and releases it."""
    month = "2023_10"
    with story.step("Sales uploads first, and waits"):
        began = story.now()
        application.upload("sales", month)
        record = story.until(lambda: application.has("sales", month, "Pending"), "the sales file's record is Pending")
        waited = story.now() - began
        story.check(record.get("task_token"), "its record is Pending and holds the token of the waiting execution")
        story.check(
            f"warehouse_{month}" in str(record.get("waits_for")),
            f"it says what it waits for: {record.get('waits_for')}",
        )
        story.check(
            len(application.executions("MainStateMachine", "RUNNING")) == 1,
            "its execution is running, and costs nothing while it waits",
        )
        story.check(not application.executions("SalesStateMachine"), "the sales file has not been started")
    with story.step("Warehouse uploads, and sales goes on by itself"):
        began = story.now()
        application.upload("warehouse", month)
        story.until(lambda: application.has("sales", month, "Completed"), "the sales file is Completed")
        released = story.now() - began
        story.check(application.has("warehouse", month, "Completed"), "warehouse is Completed")
        story.check("task_token" not in application.record("sales", month), "the token was used, once")
        order_held(story, application)
        show_forecast(story, application, month)
    return waited, released


def warehouse_first(story: Story, application: Application) -> float:
    """Warehouse comes first; sales goes straight through."""
    month = "2023_11"
    with story.step("The other order: warehouse first, then sales goes straight through"):
        application.upload("warehouse", month)
        story.until(lambda: application.has("warehouse", month, "Completed"), "the warehouse file is Completed")
        before = {one["executionArn"] for one in application.executions("MainStateMachine")}
        began = story.now()
        application.upload("sales", month)
        story.until(lambda: application.has("sales", month, "Completed"), "the sales file is Completed")
        took = story.now() - began
        (arn,) = {one["executionArn"] for one in application.executions("MainStateMachine")} - before
        events = pages(application.states, "get_execution_history", "events", executionArn=arn)
        waited = [one for one in events if "Token" in one.get("taskSubmittedEventDetails", {}).get("resource", "")]
        story.check(
            not waited, "sales never waited: that warehouse is done is a stored fact, not an event to be missed"
        )
        show_forecast(story, application, month)
    return took


def killed(story: Story, application: Application, server: ServerProcess) -> None:
    """The server is killed while a file waits, and finishes the pair after its restart."""
    month = "2023_12"
    with story.step("Kill the server with SIGKILL while a sales file waits"):
        application.upload("sales", month)
        before = story.until(lambda: application.has("sales", month, "Pending"), "the sales file's record is Pending")
        running = application.executions("MainStateMachine", "RUNNING")
        server.kill()
        story.say("Killed: no goodbye, as when the power fails.")
        server.start()
        application.use(clients(server.endpoint))
        story.check(
            application.record("sales", month) == before, "started again: the record is as it was, token and all"
        )
        same = [one["executionArn"] for one in application.executions("MainStateMachine", "RUNNING")]
        story.check(same == [one["executionArn"] for one in running], "the same execution is still waiting")
        application.upload("warehouse", month)
        story.until(lambda: application.has("sales", month, "Completed"), "the sales file is Completed")
        story.check(application.has("warehouse", month, "Completed"), "warehouse came, and both are Completed")
        show_forecast(story, application, month)


def order_held(story: Story, application: Application) -> None:
    """Sales started after warehouse had ended."""
    warehouse = application.executions("WarehouseStateMachine")[0]
    sales = application.executions("SalesStateMachine")[0]
    story.check(warehouse["stopDate"] <= sales["startDate"], "warehouse was processed before sales started")


def show_forecast(story: Story, application: Application, month: str) -> None:
    """The result is there and says something."""
    table = application.forecast(month)
    story.check(
        table.num_rows > 0,
        f"forecast_{month}.parquet is written: {table.num_rows} rows, {', '.join(table.column_names[:5])} …",
    )


def settled(story: Story, application: Application) -> None:
    """Every execution has ended well, each file was processed once."""
    main = application.executions("MainStateMachine")
    story.until(lambda: not application.executions("MainStateMachine", "RUNNING"), "all executions have ended")
    main = application.executions("MainStateMachine")
    story.check(
        {one["status"] for one in main} == {"SUCCEEDED"}, f"{len(main)} uploads, {len(main)} executions, all succeeded"
    )
    for machine in ("WarehouseStateMachine", "SalesStateMachine"):
        runs = application.executions(machine)
        story.check(
            len(runs) == 3,
            f"{machine.removesuffix('StateMachine').lower()}: three files, processed three times, once each",
        )
