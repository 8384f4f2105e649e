"""What the event bus hears of executions: `Step Functions Execution Status Change`.

Keeps true: only Standard executions are announced, and only where there is a bus in this process. Does not know who
listens.

Source: "Automating Step Functions event delivery with EventBridge".
"""

from typing import Any

import orjson

from muster.transaction import Row, Transaction

# Input and output are left out of an event they would make too large: "if they exceed 248 KiB combined". Characters
# are counted, a quarter of that, so that no encoding exceeds what a bus takes.
DATA_CHARACTERS_MAX = 60_000


def status_changed(tx: Transaction, row: Row) -> None:
    """Tell the bus that the execution has this status now."""
    if row["express"] or row["map_run"] is not None or not tx.offers("events", "PublishServiceEvent"):
        return
    data = {name: row[name] for name in ("input", "output")}
    included = sum(len(text) for text in data.values() if text is not None) <= DATA_CHARACTERS_MAX
    detail: dict[str, Any] = {
        "executionArn": row["arn"],
        "stateMachineArn": row["machine_arn"],
        "name": row["name"],
        "status": row["status"],
        "startDate": int(row["started_at"] * 1000),
        "stopDate": int(row["stopped_at"] * 1000) if row["stopped_at"] is not None else None,
        "stateMachineVersionArn": row["version_arn"],
        "stateMachineAliasArn": row["alias_arn"],
        "redriveCount": row["redrives"],
        "redriveDate": int(row["redriven_at"] * 1000) if row["redriven_at"] is not None else None,
        "error": row["error"],
        "cause": row["cause"],
    }
    for name, text in data.items():
        detail[name] = text if included else None
        detail[f"{name}Details"] = {"included": included} if text is not None else None
    tx.call(
        "events",
        "PublishServiceEvent",
        {
            "Source": "aws.states",
            "DetailType": "Step Functions Execution Status Change",
            "Detail": orjson.dumps(detail).decode(),
            "Resources": [row["arn"]],
        },
    )
