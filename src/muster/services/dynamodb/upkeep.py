"""Work on a table's items that goes on after the request: removing the expired, filling a new index, noting expiries.

Keeps true: each carried delivery does a bounded piece and posts the next, so that a large table keeps nobody waiting;
writes that happen in between are not lost, for they keep indexes and expiries themselves.
"""

from dataclasses import replace

from muster.services.dynamodb import expiry, items, stream
from muster.services.dynamodb import table as tables
from muster.services.dynamodb.key import Key
from muster.services.dynamodb.table import BACKFILL, Table
from muster.services.dynamodb.written import read
from muster.transaction import Carried, Delivery, Row, Transaction

NOTE_EXPIRIES = "dynamodb.note_expiries"

ITEMS_AT_ONCE = 500


def expire(tx: Transaction, carried: Carried) -> None:
    """Remove what has expired, and set the timer for what expires next."""
    table = tables.by_id(tx, carried.payload["table"])
    tx.run("DELETE FROM dynamodb_expiry_timers WHERE table_id = :table", table=carried.payload["table"])
    if table is None or table.definition.ttl_attribute is None:
        return
    due = tx.all(
        "SELECT hash_key, range_key, item FROM dynamodb_items WHERE table_id = :table AND expires_at <= :now"
        " ORDER BY expires_at LIMIT :many",
        table=table.id,
        now=tx.now,
        many=expiry.EXPIRED_AT_ONCE,
    )
    for row in due:
        items.delete(tx, table, Key(row["hash_key"], row["range_key"]), read(row["item"]), expired=True)
    following = tx.one(
        "SELECT MIN(expires_at) AS expires_at FROM dynamodb_items WHERE table_id = :table AND expires_at IS NOT NULL",
        table=table.id,
    )
    if following is not None and following["expires_at"] is not None:
        expiry.arm(tx, table.id, following["expires_at"])


def set_time_to_live(tx: Transaction, table: Table, attribute: str | None) -> None:
    """Have items expire by that attribute from now on, or (None) not at all."""
    definition = replace(table.definition, ttl_attribute=attribute, ttl_changed_at=tx.now)
    tables.store(tx, table, definition)
    expiry.disarm(tx, table.id)
    tx.cancel(NOTE_EXPIRIES, str(table.id))
    tx.post(Delivery(NOTE_EXPIRIES, str(table.id), {"table": table.id}))


def stop(tx: Transaction, table: Table) -> None:
    """Call off what was to be done for a table that is deleted."""
    expiry.disarm(tx, table.id)
    tx.cancel(NOTE_EXPIRIES, str(table.id))
    tx.cancel(BACKFILL, str(table.id))


def note_expiries(tx: Transaction, carried: Carried) -> None:
    """Note when the items that were there already expire."""
    table = tables.by_id(tx, carried.payload["table"])
    if table is None:
        return
    rows = _piece(tx, table, carried)
    for row in rows:
        expires_at = expiry.instant(table.definition.ttl_attribute, read(row["item"]), tx.now)
        tx.run(
            "UPDATE dynamodb_items SET expires_at = :expires_at"
            " WHERE table_id = :table AND hash_key = :hash AND range_key = :range",
            table=table.id,
            hash=row["hash_key"],
            range=row["range_key"],
            expires_at=expires_at,
        )
        if expires_at is not None:
            expiry.arm(tx, table.id, expires_at)
    _go_on(tx, carried, rows)


def backfill(tx: Transaction, carried: Carried) -> None:
    """Put the items that were there already into a new index; once all are, it is ready."""
    table = tables.by_id(tx, carried.payload["table"])
    number = carried.payload["index"]
    index = next((each for each in table.definition.indexes if each.number == number), None) if table else None
    if table is None or index is None:
        return
    rows = _piece(tx, table, carried)
    for row in rows:
        item = read(row["item"])
        typed = all(kind in item.get(name, {}) and item[name][kind] for name, kind in index.schema.typed())
        place = items.entry_key(index, item) if typed else None
        if place is not None:
            items.add_entry(tx, table, index, Key(row["hash_key"], row["range_key"]), place)
    if not _go_on(tx, carried, rows):
        ready = replace(index, ready=True)
        indexes = tuple(ready if each is index else each for each in table.definition.indexes)
        tables.store(tx, table, replace(table.definition, indexes=indexes))


def _piece(tx: Transaction, table: Table, carried: Carried) -> list[Row]:
    after = carried.payload.get("after", ["", ""])
    return tx.all(
        "SELECT hash_key, range_key, item FROM dynamodb_items"
        " WHERE table_id = :table AND (hash_key, range_key) > (:hash, :range)"
        " ORDER BY hash_key, range_key LIMIT :many",
        table=table.id,
        hash=bytes.fromhex(after[0]),
        range=bytes.fromhex(after[1]),
        many=ITEMS_AT_ONCE,
    )


def _go_on(tx: Transaction, carried: Carried, rows: list[Row]) -> bool:
    """Post the next piece unless this was the last; whether there is one."""
    if len(rows) < ITEMS_AT_ONCE:
        return False
    after = [bytes(rows[-1]["hash_key"]).hex(), bytes(rows[-1]["range_key"]).hex()]
    tx.post(Delivery(carried.kind, carried.subject, {**carried.payload, "after": after}))
    return True


CARRIERS = {
    expiry.EXPIRE: expire,
    NOTE_EXPIRIES: note_expiries,
    BACKFILL: backfill,
    tables.PURGE: tables.purge,
    stream.FORGET: stream.forget,
}
