"""How many executions of a state machine started, or ended badly, in a span of time: for whoever measures.

Keeps true: children of a distributed map are not counted, only what somebody started. Does not know about metrics.
"""

from muster.operation import Answer, Request
from muster.transaction import Transaction

# Repeated in the query word by word, so that the index of the failed ones serves it.
BAD = "status IN ('FAILED', 'TIMED_OUT', 'ABORTED')"


def count(tx: Transaction, request: Request) -> Answer:
    """For siblings: the executions that started (`Event` STARTED) or came to a bad end (its status) in the span."""
    if request["Event"] == "STARTED":
        condition = "started_at >= :start AND started_at < :end AND :event = 'STARTED'"
    else:
        condition = f"{BAD} AND status = :event AND stopped_at >= :start AND stopped_at < :end"
    row = tx.one(
        f"SELECT COUNT(*) AS found FROM states_executions WHERE machine_arn = :machine AND {condition}"
        " AND map_run IS NULL",
        machine=request["StateMachineArn"],
        start=request["Start"],
        end=request["End"],
        event=request["Event"],
    )
    assert row is not None, "a count is always answered"
    return {"Count": int(row["found"])}
