"""The tables behind DynamoDB's tables.

Items lie in key order: `hash_key` and `range_key` are encodings whose byte order is the keys' order (see `key`). An index
entry points at its item, which is stored once. `expires_at` is there while the item has a time to live. A stream is one
shard, and its records are numbered without gaps.
"""

TABLES = """
CREATE TABLE dynamodb_tables (
    id SERIAL_KEY,
    name TEXT UNIQUE,                 -- NULL once deleted, until its items are gone
    definition TEXT NOT NULL          -- JSON, see definition.Definition
);
CREATE TABLE dynamodb_items (
    table_id BIGINT NOT NULL,
    hash_key BLOB NOT NULL,
    range_key BLOB NOT NULL,
    item TEXT NOT NULL,
    size_bytes BIGINT NOT NULL CHECK (size_bytes > 0),
    expires_at DOUBLE PRECISION,
    PRIMARY KEY (table_id, hash_key, range_key)
);
CREATE INDEX dynamodb_items_expiry ON dynamodb_items (table_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX dynamodb_items_size ON dynamodb_items (table_id, size_bytes);   -- counts and sums without reading items
CREATE TABLE dynamodb_index_entries (
    table_id BIGINT NOT NULL,
    index_id BIGINT NOT NULL,
    hash_key BLOB NOT NULL,
    range_key BLOB NOT NULL,
    item_hash BLOB NOT NULL,
    item_range BLOB NOT NULL,
    PRIMARY KEY (table_id, index_id, hash_key, range_key, item_hash, item_range)
);
CREATE TABLE dynamodb_expiry_timers (
    table_id BIGINT PRIMARY KEY,
    due_at DOUBLE PRECISION NOT NULL
);
CREATE TABLE dynamodb_request_tokens (
    token TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX dynamodb_request_tokens_expiry ON dynamodb_request_tokens (expires_at);
CREATE TABLE dynamodb_streams (
    arn TEXT PRIMARY KEY,
    table_id BIGINT NOT NULL,
    definition TEXT NOT NULL,         -- the table's, as it was when the stream began
    last_sequence BIGINT NOT NULL DEFAULT 0,
    started_at DOUBLE PRECISION NOT NULL,
    ended_at DOUBLE PRECISION
);
CREATE TABLE dynamodb_stream_records (
    arn TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    written_at DOUBLE PRECISION NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (arn, sequence)
);
CREATE INDEX dynamodb_stream_records_age ON dynamodb_stream_records (arn, written_at);
"""

LISTENERS = """
CREATE TABLE dynamodb_stream_listeners (
    arn TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    told BIGINT NOT NULL CHECK (told IN (0, 1)),
    not_before DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (arn, kind, subject)
);
"""

MIGRATIONS = (TABLES, LISTENERS)
