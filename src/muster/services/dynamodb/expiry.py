"""Time to live: items that leave the table by themselves once their instant has come.

Keeps true: for each table with an item that will expire there is one timer, due no later than the earliest of them.
AWS removes an item within days of its expiry; here the timer removes it when it is due.
Source: the developer guide, "Using time to live (TTL) in DynamoDB".
"""

from decimal import Decimal

from muster.clock import Instant
from muster.languages.expressions import Item
from muster.transaction import Delivery, Transaction

EXPIRE = "dynamodb.expire"

# An expiry more than five years in the past is taken for a mistake, and the item stays.
PAST_SECONDS_MAX = 5 * 365 * 86_400
# Beyond this (the year 9999) an item does not expire; it is also what an instant can show.
INSTANT_MAX = 253_402_300_799

# How many items one timer removes before it lets others have the writer.
EXPIRED_AT_ONCE = 100


def instant(attribute: str | None, item: Item, now: Instant) -> Instant | None:
    """When the item expires; None when it does not."""
    value = item.get(attribute) if attribute is not None else None
    if value is None or "N" not in value:
        return None
    expires_at = Decimal(value["N"])
    if expires_at <= Decimal(now - PAST_SECONDS_MAX) or expires_at > INSTANT_MAX:
        return None
    return float(expires_at)


def arm(tx: Transaction, table_id: int, expires_at: Instant) -> None:
    """See to it that the table's timer is due no later than `expires_at`."""
    row = tx.one("SELECT due_at FROM dynamodb_expiry_timers WHERE table_id = :table", table=table_id)
    if row is not None and row["due_at"] <= expires_at:
        return
    if row is not None:
        tx.cancel(EXPIRE, str(table_id))
    tx.run(
        "INSERT INTO dynamodb_expiry_timers (table_id, due_at) VALUES (:table, :due_at)"
        " ON CONFLICT (table_id) DO UPDATE SET due_at = excluded.due_at",
        table=table_id,
        due_at=expires_at,
    )
    tx.post(Delivery(EXPIRE, str(table_id), {"table": table_id}, due_at=max(expires_at, tx.now)))


def disarm(tx: Transaction, table_id: int) -> None:
    """Forget the table's timer."""
    tx.cancel(EXPIRE, str(table_id))
    tx.run("DELETE FROM dynamodb_expiry_timers WHERE table_id = :table", table=table_id)
