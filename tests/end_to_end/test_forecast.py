"""The forecast example on a real server: pairs uploaded at once in any order, and the server killed while they are.

MUSTER_PAIRS and MUSTER_KILLS set how many; the defaults keep the suite short.
"""

import os
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from muster.cli.client import Clients, clients, pages
from muster.stacks.package import deploy
from muster.testing import ServerProcess

pytest.importorskip("pyarrow", reason="the example reads Parquet files: pip install 'muster[demo]'")

EXAMPLE = Path(__file__).parents[2] / "examples" / "forecast"
PAIRS = int(os.environ.get("MUSTER_PAIRS", "12"))
KILLS = int(os.environ.get("MUSTER_KILLS", "3"))
THREADS = 8
FILES = ("sales", "warehouse")


class Crowd:
    """Many uploads at once, acknowledged or sent again, and what came of them."""

    def __init__(self, server: ServerProcess, seed: int) -> None:
        self.server = server
        # The server keeps its port when it is started again, so these clients serve all along.
        self.aws: Clients = clients(server.endpoint)
        self.random = random.Random(seed)
        self.names: dict[str, str] = {}
        self.uploads = [(file, f"{2000 + n // 12}_{n % 12 + 1:02}") for n in range(PAIRS) for file in FILES]
        self.random.shuffle(self.uploads)
        self.bodies = {file: (EXAMPLE / "data" / f"{file}_2023_10.parquet").read_bytes() for file in FILES}

    def deploy(self) -> None:
        made = clients(self.server.endpoint)
        deploy(EXAMPLE, made, name="forecast", parameters={})
        resources = pages(
            made("cloudformation"), "list_stack_resources", "StackResourceSummaries", StackName="forecast"
        )
        self.names = {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in resources}

    def upload(self, which: tuple[str, str]) -> int:
        """Upload until it is acknowledged; how many attempts that took."""
        file, month = which
        bucket = self.names["SalesBucket" if file == "sales" else "WarehouseBucket"]
        for attempt in range(1, 1000):
            try:
                self.aws("s3").put_object(Bucket=bucket, Key=f"{file}_{month}.parquet", Body=self.bodies[file])
                return attempt
            except (BotoCoreError, ClientError):
                time.sleep(0.2)
        raise AssertionError(f"{which} was never acknowledged")

    def upload_all(self) -> int:
        with ThreadPoolExecutor(THREADS) as pool:
            return sum(pool.map(self.upload, self.uploads))

    def records(self) -> dict[tuple[str, str], str]:
        dynamodb = self.aws("dynamodb")
        items = pages(dynamodb, "scan", "Items", TableName=self.names["FileTable"], ConsistentRead=True)
        return {(one["file_type"]["S"], one["correlation_id"]["S"]): one["status"]["S"] for one in items}

    def statuses(self, machine: str) -> Counter[str]:
        states = self.aws("stepfunctions")
        found = pages(states, "list_executions", "executions", stateMachineArn=self.names[machine])
        return Counter(one["status"] for one in found)

    def settled(self) -> bool:
        done = Counter(self.records().values())
        return done == {"Completed": 2 * PAIRS} and not self.statuses("MainStateMachine")["RUNNING"]

    def order_held(self) -> bool:
        """Whether each sales file's own machine started after its month's warehouse machine had ended."""
        states = self.aws("stepfunctions")
        when: dict[str, dict[str, Any]] = {}
        for file, machine in (("warehouse", "WarehouseStateMachine"), ("sales", "SalesStateMachine")):
            for one in pages(states, "list_executions", "executions", stateMachineArn=self.names[machine]):
                described = states.describe_execution(executionArn=one["executionArn"])
                month = next(m for _, m in self.uploads if m in described["input"])
                when.setdefault(month, {})[file] = described
        return all(pair["warehouse"]["stopDate"] <= pair["sales"]["startDate"] for pair in when.values())


def wait_until_settled(crowd: Crowd) -> None:
    """Within a minute, and three seconds for each pair."""
    end = time.monotonic() + 60 + 3 * PAIRS
    while not crowd.settled():
        if time.monotonic() > end:
            open_ = {which: status for which, status in crowd.records().items() if status != "Completed"}
            machines = {name: crowd.statuses(name) for name in crowd.names if name.endswith("StateMachine")}
            raise AssertionError(f"not settled: {open_}; {machines}; {crowd.server.log[-3000:]}")
        time.sleep(0.2)


def test_pairs_uploaded_at_once_in_any_order_all_complete_once(server: ServerProcess) -> None:
    crowd = Crowd(server, seed=1)
    crowd.deploy()
    attempts = crowd.upload_all()
    wait_until_settled(crowd)
    assert attempts == 2 * PAIRS
    assert crowd.statuses("MainStateMachine") == {"SUCCEEDED": 2 * PAIRS}
    for machine in ("WarehouseStateMachine", "SalesStateMachine"):
        assert crowd.statuses(machine) == {"SUCCEEDED": PAIRS}
    assert crowd.order_held()


def test_nothing_acknowledged_is_lost_when_the_server_is_killed_again_and_again(server: ServerProcess) -> None:
    crowd = Crowd(server, seed=2)
    crowd.deploy()
    with ThreadPoolExecutor(1) as pool:
        uploading = pool.submit(crowd.upload_all)
        for _ in range(KILLS):
            time.sleep(crowd.random.uniform(0.05, 2.5))
            server.kill()
            server.start()
        attempts = uploading.result()
    wait_until_settled(crowd)
    ended = crowd.statuses("MainStateMachine")
    # An upload whose answer the kill cut off was sent again: it is a second version, or the first was never stored.
    assert 2 * PAIRS <= sum(ended.values()) <= attempts
    assert set(ended) == {"SUCCEEDED"}
    assert set(crowd.statuses("WarehouseStateMachine")) == {"SUCCEEDED"}
