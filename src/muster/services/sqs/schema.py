"""The tables of queues and messages."""

QUEUES = """
CREATE TABLE sqs_queues (
    name TEXT PRIMARY KEY,
    attributes TEXT NOT NULL,                  -- JSON: attribute name → text, only those that were set
    tags TEXT NOT NULL,                        -- JSON
    fifo BIGINT NOT NULL CHECK (fifo IN (0, 1)),
    next_sequence BIGINT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    modified_at DOUBLE PRECISION NOT NULL,
    purged_at DOUBLE PRECISION
);
CREATE TABLE sqs_messages (
    queue TEXT NOT NULL REFERENCES sqs_queues (name),
    sequence BIGINT NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    attributes TEXT,                           -- JSON as sent, binary values in base64
    system TEXT NOT NULL,                      -- JSON: SenderId, AWSTraceHeader, DeadLetterQueueSourceArn …
    group_id TEXT,
    deduplication_id TEXT,
    sent_at DOUBLE PRECISION NOT NULL,
    visible_at DOUBLE PRECISION NOT NULL,
    receive_count BIGINT NOT NULL DEFAULT 0,
    first_received_at DOUBLE PRECISION,
    receipt TEXT,                              -- of the newest receive
    PRIMARY KEY (queue, sequence),
    CHECK ((receipt IS NULL) = (receive_count = 0)),
    CHECK ((first_received_at IS NULL) = (receive_count = 0))
);
CREATE INDEX sqs_messages_visible ON sqs_messages (queue, visible_at, sequence);
CREATE INDEX sqs_messages_group ON sqs_messages (queue, group_id, sequence);
CREATE INDEX sqs_messages_age ON sqs_messages (queue, sent_at);
CREATE TABLE sqs_deduplications (
    queue TEXT NOT NULL REFERENCES sqs_queues (name),
    scope TEXT NOT NULL,                       -- the message group, or '' for the whole queue
    deduplication_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (queue, scope, deduplication_id)
);
CREATE TABLE sqs_moves (
    id TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    destination TEXT,                          -- NULL: each message goes back to where it came from
    per_second BIGINT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('RUNNING', 'COMPLETED', 'CANCELLING', 'CANCELLED', 'FAILED')),
    moved BIGINT NOT NULL DEFAULT 0,
    to_move BIGINT NOT NULL,
    failure TEXT,
    started_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX sqs_moves_source ON sqs_moves (source, started_at);
"""

LISTENERS = """
CREATE TABLE sqs_listeners (
    queue TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    due_at DOUBLE PRECISION,                   -- when the posted delivery is due; NULL: none is posted
    not_before DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (queue, kind, subject)
);
"""

# Every send to a FIFO queue forgets the deduplication ids that are too old.
EXPIRY = "CREATE INDEX sqs_deduplications_expiry ON sqs_deduplications (queue, expires_at);"

MIGRATIONS = (QUEUES, LISTENERS, EXPIRY)
