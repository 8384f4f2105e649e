"""What the event bus hears of executions: `Step Functions Execution Status Change`.

Keeps true: only Standard executions are announced, and only where there is a bus in this process. Does not know who
listens.

Source: "Automating Step Functions event delivery with EventBridge".
"""

from typing import Any

from muster.transaction import Row, Transaction


def status_changed(tx: Transaction, row: Row) -> None:
    """Tell the bus that the execution has this status now."""
    if row["express"] or row["map_run"] is not None or not tx.offers("events", "PublishServiceEvent"):
        return
    detail: dict[str, Any] = {
        "executionArn": row["arn"],
        "stateMachineArn": row["machine_arn"],
        "name": row["name"],
        "status": row["status"],
        "startDate": int(row["started_at"] * 1000),
        "stopDate": int(row["stopped_at"] * 1000) if row["stopped_at"] is not None else None,
        "input": row["input"],
        "output": row["output"],
        "inputDetails": {"included": True},
        "outputDetails": {"included": True} if row["output"] is not None else None,
        "error": row["error"],
        "cause": row["cause"],
    }
    tx.call(
        "events",
        "PublishServiceEvent",
        {
            "Source": "aws.states",
            "DetailType": "Step Functions Execution Status Change",
            "Detail": detail,
            "Resources": [row["arn"]],
        },
    )
