"""How many runs of a function ended in a span of time, and how many of them in an error: for whoever measures.

Keeps true: what is told of a span that is over does not change while its rows are kept, two minutes at least. Does not
know about metrics.
"""

from muster.clock import Instant
from muster.operation import Answer, Request
from muster.transaction import Transaction


def count(tx: Transaction, request: Request) -> Answer:
    """For siblings: the attempts of invocations that ended from `Start` to before `End`, and the failed among them."""
    return counted(tx, request["FunctionName"], request["Start"], request["End"])


def counted(tx: Transaction, function: str, start: Instant, end: Instant) -> Answer:
    """An invocation that was tried again counts with each attempt, all of which but the last one failed."""
    row = tx.one(
        "SELECT SUM(attempts) AS attempts, SUM(CASE WHEN attempts > 0 AND status = 'succeeded' THEN attempts - 1"
        " ELSE attempts END) AS errors FROM lambda_invocations WHERE ended_at >= :start AND ended_at < :end"
        " AND function = :function AND status <> 'cancelled'",
        start=start,
        end=end,
        function=function,
    )
    assert row is not None, "a sum is always answered"
    return {"Invocations": int(row["attempts"] or 0), "Errors": int(row["errors"] or 0)}
