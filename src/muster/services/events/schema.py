"""The tables of event buses, their rules and targets, archives and replays, and of what could not be delivered.

Keeps true: a bus's `revision` changes with whatever decides where its events go, and equal revisions mean equal rules.
"""

BUSES = """
CREATE TABLE events_buses (
    name TEXT PRIMARY KEY,
    description TEXT,
    dead_letter_arn TEXT,
    policy TEXT,                              -- JSON
    tags TEXT NOT NULL DEFAULT '{}',          -- JSON
    revision TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    modified_at DOUBLE PRECISION NOT NULL
);
INSERT INTO events_buses (name, revision, created_at, modified_at) VALUES ('default', '', 0, 0);
CREATE TABLE events_rules (
    bus TEXT NOT NULL REFERENCES events_buses (name),
    name TEXT NOT NULL,
    pattern TEXT,
    schedule TEXT,
    state TEXT NOT NULL CHECK (state IN ('ENABLED', 'DISABLED')),
    description TEXT,
    role_arn TEXT,
    tags TEXT NOT NULL DEFAULT '{}',          -- JSON
    next_position BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (bus, name),
    CHECK (pattern IS NOT NULL OR schedule IS NOT NULL)
);
CREATE TABLE events_targets (
    bus TEXT NOT NULL,
    rule TEXT NOT NULL,
    id TEXT NOT NULL,
    position BIGINT NOT NULL,
    arn TEXT NOT NULL,
    definition TEXT NOT NULL,                 -- JSON, as PutTargets gave it
    PRIMARY KEY (bus, rule, id),
    FOREIGN KEY (bus, rule) REFERENCES events_rules (bus, name)
);
CREATE INDEX events_targets_arn ON events_targets (bus, arn);
CREATE TABLE events_failed_deliveries (
    id TEXT PRIMARY KEY,
    event_id TEXT NOT NULL,
    bus TEXT NOT NULL,
    rule TEXT,                                -- NULL: there was no such bus
    target_id TEXT,
    target_arn TEXT,
    error_code TEXT NOT NULL,
    error_message TEXT NOT NULL,
    exhausted TEXT,                           -- which part of the retry policy ended it, if one did
    attempts BIGINT NOT NULL,
    event TEXT NOT NULL,                      -- JSON
    failed_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX events_failed_deliveries_time ON events_failed_deliveries (failed_at);
CREATE TABLE events_archives (
    name TEXT PRIMARY KEY,
    bus TEXT NOT NULL,
    description TEXT,
    pattern TEXT,
    retention_days BIGINT NOT NULL CHECK (retention_days >= 0),   -- 0: for ever
    created_at DOUBLE PRECISION NOT NULL
);
CREATE TABLE events_archived (
    archive TEXT NOT NULL REFERENCES events_archives (name),
    at DOUBLE PRECISION NOT NULL,             -- the event's own time
    id TEXT NOT NULL,
    archived_at DOUBLE PRECISION NOT NULL,
    size BIGINT NOT NULL,
    event TEXT NOT NULL,                      -- JSON
    PRIMARY KEY (archive, at, id)
);
CREATE TABLE events_replays (
    name TEXT PRIMARY KEY,
    archive TEXT NOT NULL,
    description TEXT,
    destination TEXT NOT NULL,                -- JSON
    from_at DOUBLE PRECISION NOT NULL,
    until_at DOUBLE PRECISION NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('STARTING', 'RUNNING', 'CANCELLING', 'COMPLETED', 'CANCELLED', 'FAILED')),
    reason TEXT,
    reached_at DOUBLE PRECISION,              -- the last event sent again: its time and id
    reached_id TEXT,
    started_at DOUBLE PRECISION NOT NULL,
    ended_at DOUBLE PRECISION,
    CHECK ((ended_at IS NULL) = (state IN ('STARTING', 'RUNNING', 'CANCELLING')))
);
"""

MIGRATIONS = (BUSES,)
