"""Items in the database: read by key, written with their index entries, their time to live and their stream record.

Keeps true: an item, its entries in every index, its expiry and the record of its change are written in one
transaction, and agree. Does not know conditions or requests.
"""

from typing import Any

from muster.languages.expressions import Item
from muster.languages.expressions.value import size_of_item
from muster.services.dynamodb import expiry, stream
from muster.services.dynamodb.definition import Index
from muster.services.dynamodb.key import Key, encode, encode_hash
from muster.services.dynamodb.refusal import invalid, invalid_values
from muster.services.dynamodb.table import Table
from muster.services.dynamodb.written import read, written
from muster.transaction import Transaction

# "Quotas": an item has at most 400 KB, names included.
ITEM_BYTES_MAX = 400 * 1024


def get(tx: Transaction, table: Table, key: Key) -> Item | None:
    """The item with that key, or None."""
    row = tx.one(
        "SELECT item FROM dynamodb_items WHERE table_id = :table AND hash_key = :hash AND range_key = :range",
        table=table.id,
        hash=key.hash_key,
        range=key.range_key,
    )
    return read(row["item"]) if row else None


def needs_old(table: Table) -> bool:
    """Whether a write to the table must know the item that was there."""
    return bool(table.definition.indexes) or table.definition.stream is not None


def put(tx: Transaction, table: Table, key: Key, item: Item, old: Item | None) -> None:
    """Write an item in place of `old` (which may be left out where `needs_old` says so)."""
    expires_at = expiry.instant(table.definition.ttl_attribute, item, tx.now)
    tx.run(
        "INSERT INTO dynamodb_items (table_id, hash_key, range_key, item, size_bytes, expires_at)"
        " VALUES (:table, :hash, :range, :item, :size, :expires_at)"
        " ON CONFLICT (table_id, hash_key, range_key) DO UPDATE"
        " SET item = excluded.item, size_bytes = excluded.size_bytes, expires_at = excluded.expires_at",
        table=table.id,
        hash=key.hash_key,
        range=key.range_key,
        item=written(item),
        size=size_of_item(item),
        expires_at=expires_at,
    )
    for index in table.definition.indexes:
        _move_entry(tx, table, index, key, entry_key(index, old), entry_key(index, item))
    if expires_at is not None:
        expiry.arm(tx, table.id, expires_at)
    if table.definition.stream is not None:
        stream.record(tx, table, old, item)


def delete(tx: Transaction, table: Table, key: Key, old: Item, *, expired: bool = False) -> None:
    """Remove the item `old` that lies at that key."""
    tx.run(
        "DELETE FROM dynamodb_items WHERE table_id = :table AND hash_key = :hash AND range_key = :range",
        table=table.id,
        hash=key.hash_key,
        range=key.range_key,
    )
    for index in table.definition.indexes:
        _move_entry(tx, table, index, key, entry_key(index, old), None)
    if table.definition.stream is not None:
        stream.record(tx, table, old, None, expired=expired)


def entry_key(index: Index, item: Item | None) -> Key | None:
    """The item's key in the index; None when it lacks one of the key attributes and so is not in the index."""
    if item is None:
        return None
    schema = index.schema
    if any(name not in item for name in schema.names()):
        return None
    range_key = encode(item[schema.range_name]) if schema.range_name is not None else b""
    return Key(encode_hash(item[schema.hash_name]), range_key)


def _move_entry(tx: Transaction, table: Table, index: Index, key: Key, before: Key | None, after: Key | None) -> None:
    if before == after:
        return
    if before is not None:
        tx.run(
            "DELETE FROM dynamodb_index_entries WHERE table_id = :table AND index_id = :index AND hash_key = :hash"
            " AND range_key = :range AND item_hash = :item_hash AND item_range = :item_range",
            **_entry(table, index, key, before),
        )
    if after is not None:
        add_entry(tx, table, index, key, after)


def add_entry(tx: Transaction, table: Table, index: Index, key: Key, place: Key) -> None:
    """Note in the index, at `place`, the item with that key; nothing happens when it is there already."""
    tx.run(
        "INSERT INTO dynamodb_index_entries (table_id, index_id, hash_key, range_key, item_hash, item_range)"
        " VALUES (:table, :index, :hash, :range, :item_hash, :item_range) ON CONFLICT DO NOTHING",
        **_entry(table, index, key, place),
    )


def _entry(table: Table, index: Index, key: Key, place: Key) -> dict[str, Any]:
    return {
        "table": table.id,
        "index": index.number,
        "hash": place.hash_key,
        "range": place.range_key,
        "item_hash": key.hash_key,
        "item_range": key.range_key,
    }


def check(table: Table, item: Item, too_large: str) -> None:
    """ValidationException when an item that has its key may not be stored: too large, or unfit for an index."""
    for index in table.definition.indexes:
        for name, kind in index.schema.typed():
            value = item.get(name)
            if value is None:
                continue
            if kind not in value:
                raise invalid_values(
                    f"Type mismatch for Index Key {name} Expected: {kind} Actual: {next(iter(value))} "
                    f"IndexName: {index.name}"
                )
            if not value[kind]:
                raise invalid(
                    "One or more parameter values are not valid. A value specified for a secondary index key is not "
                    f"supported. The AttributeValue for a key attribute cannot contain an empty "
                    f"{'string' if kind == 'S' else 'binary'} value. IndexName: {index.name}, IndexKey: {name}"
                )
    if size_of_item(item) > ITEM_BYTES_MAX:
        raise invalid(too_large)
