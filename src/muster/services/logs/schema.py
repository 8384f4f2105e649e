"""The tables of the logs service.

Keeps true: an event's position in its stream is unique and says the order in which events were taken in.
"""

MIGRATIONS = (
    """
CREATE TABLE logs_groups (
    name TEXT PRIMARY KEY,
    retention_days BIGINT,
    tags TEXT NOT NULL DEFAULT '{}',
    created_at_ms BIGINT NOT NULL
);
CREATE TABLE logs_streams (
    group_name TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    first_event_ms BIGINT,
    last_event_ms BIGINT,
    last_ingestion_ms BIGINT,
    events BIGINT NOT NULL DEFAULT 0 CHECK (events >= 0),
    stored_bytes BIGINT NOT NULL DEFAULT 0 CHECK (stored_bytes >= 0),
    PRIMARY KEY (group_name, name)
);
CREATE INDEX logs_streams_recent ON logs_streams (group_name, last_event_ms);
CREATE TABLE logs_events (
    group_name TEXT NOT NULL,
    stream_name TEXT NOT NULL,
    position BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    ingested_ms BIGINT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (group_name, stream_name, position)
);
CREATE INDEX logs_events_time ON logs_events (group_name, at_ms);
""",
)
