"""The tables of topics, subscriptions and what is on its way to them."""

TOPICS = """
CREATE TABLE sns_topics (
    name TEXT PRIMARY KEY,
    attributes TEXT NOT NULL,                  -- JSON: attribute name → text, only those that were set
    tags TEXT NOT NULL,                        -- JSON
    fifo BIGINT NOT NULL CHECK (fifo IN (0, 1)),
    next_sequence BIGINT NOT NULL,
    unsubscribed BIGINT NOT NULL DEFAULT 0,
    created_at DOUBLE PRECISION NOT NULL
);
CREATE TABLE sns_subscriptions (
    id TEXT PRIMARY KEY,
    topic TEXT NOT NULL REFERENCES sns_topics (name),
    protocol TEXT NOT NULL CHECK (protocol IN ('sqs', 'lambda', 'http', 'https')),
    endpoint TEXT NOT NULL,
    attributes TEXT NOT NULL,                  -- JSON: attribute name → text, only those that were set
    confirmed BIGINT NOT NULL CHECK (confirmed IN (0, 1)),
    authenticated BIGINT NOT NULL CHECK (authenticated IN (0, 1)),
    token TEXT,                                -- what the endpoint confirms with
    asked_at DOUBLE PRECISION NOT NULL,        -- when it was last asked to confirm
    UNIQUE (topic, protocol, endpoint),
    CHECK (confirmed = 1 OR token IS NOT NULL)
);
CREATE INDEX sns_subscriptions_token ON sns_subscriptions (token);
CREATE TABLE sns_deduplications (
    topic TEXT NOT NULL REFERENCES sns_topics (name),
    scope TEXT NOT NULL,                       -- the message group, or '' for the whole topic
    deduplication_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    sequence_number TEXT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (topic, scope, deduplication_id)
);
CREATE TABLE sns_waiting (
    subscription TEXT NOT NULL REFERENCES sns_subscriptions (id),
    group_id TEXT NOT NULL,
    sequence_number TEXT NOT NULL,             -- of one length, so that texts sort as numbers
    message TEXT NOT NULL,                     -- JSON
    PRIMARY KEY (subscription, group_id, sequence_number)
);
CREATE TABLE sns_failed_deliveries (
    id TEXT PRIMARY KEY,
    subscription_arn TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    message TEXT NOT NULL,                     -- JSON
    error_code TEXT NOT NULL,
    error_message TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    failed_at DOUBLE PRECISION NOT NULL
);
"""

MIGRATIONS = (TOPICS,)
