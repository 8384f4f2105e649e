"""The tables of the Lambda service.

Keeps true: an invocation has ended exactly when its status says so; only one that has a reply address answers to it;
code is stored once per content. Does not know how invocations are run.
"""

MIGRATIONS = (
    """
CREATE TABLE lambda_functions (
    name TEXT PRIMARY KEY,
    last_version BIGINT NOT NULL DEFAULT 0 CHECK (last_version >= 0),
    reserved BIGINT CHECK (reserved >= 0),
    tags TEXT NOT NULL DEFAULT '{}',
    created_at DOUBLE PRECISION NOT NULL
);
CREATE TABLE lambda_code (
    sha256 TEXT PRIMARY KEY,
    zip BLOB NOT NULL
);
CREATE TABLE lambda_versions (
    function TEXT NOT NULL,
    version TEXT NOT NULL,
    settings TEXT NOT NULL,
    code_sha256 TEXT NOT NULL,
    code_size BIGINT NOT NULL,
    revision TEXT NOT NULL,
    modified_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (function, version)
);
CREATE INDEX lambda_versions_code ON lambda_versions (code_sha256);
CREATE TABLE lambda_aliases (
    function TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    description TEXT NOT NULL,
    routing TEXT NOT NULL DEFAULT '{}',
    revision TEXT NOT NULL,
    PRIMARY KEY (function, name)
);
CREATE TABLE lambda_statements (
    function TEXT NOT NULL,
    qualifier TEXT NOT NULL,
    sid TEXT NOT NULL,
    position BIGINT NOT NULL,
    statement TEXT NOT NULL,
    PRIMARY KEY (function, qualifier, sid)
);
CREATE TABLE lambda_invoke_configs (
    function TEXT NOT NULL,
    qualifier TEXT NOT NULL,
    config TEXT NOT NULL,
    modified_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (function, qualifier)
);
CREATE TABLE lambda_invocations (
    id TEXT PRIMARY KEY,
    function TEXT NOT NULL,
    qualifier TEXT,
    version TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('RequestResponse', 'Event', 'Reply')),
    urgent BIGINT NOT NULL CHECK (urgent IN (0, 1)),
    status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'retrying', 'succeeded', 'failed', 'cancelled')),
    attempts BIGINT NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    payload BLOB,
    client_context TEXT,
    reply_kind TEXT,
    reply_subject TEXT,
    result BLOB,
    function_error TEXT,
    error_code TEXT,
    error_message TEXT,
    log_tail TEXT,
    log_stream TEXT,
    undelivered TEXT,
    created_at DOUBLE PRECISION NOT NULL,
    queued_at DOUBLE PRECISION NOT NULL,
    ended_at DOUBLE PRECISION,
    CHECK ((status IN ('succeeded', 'failed', 'cancelled')) = (ended_at IS NOT NULL)),
    CHECK ((type = 'Reply') = (reply_kind IS NOT NULL)),
    CHECK (status <> 'retrying' OR type = 'Event')
);
CREATE INDEX lambda_invocations_queue ON lambda_invocations (status, urgent, function, queued_at);
CREATE INDEX lambda_invocations_ended ON lambda_invocations (ended_at);
""",
    """
CREATE TABLE lambda_mappings (
    id TEXT PRIMARY KEY,
    function TEXT NOT NULL,
    qualifier TEXT,
    source_arn TEXT NOT NULL,
    settings TEXT NOT NULL,
    enabled BIGINT NOT NULL CHECK (enabled IN (0, 1)),
    tags TEXT NOT NULL,
    last_result TEXT NOT NULL,
    window_began_at DOUBLE PRECISION,
    created_at DOUBLE PRECISION NOT NULL,
    modified_at DOUBLE PRECISION NOT NULL
);
CREATE TABLE lambda_batches (
    id TEXT PRIMARY KEY,
    mapping TEXT NOT NULL,
    source_arn TEXT NOT NULL,
    lane BIGINT NOT NULL,
    records TEXT NOT NULL,
    partial BIGINT NOT NULL CHECK (partial IN (0, 1)),
    begun_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX lambda_batches_mapping ON lambda_batches (mapping);
CREATE TABLE lambda_lanes (
    mapping TEXT NOT NULL,
    lane BIGINT NOT NULL,
    after_sequence BIGINT NOT NULL,
    pieces TEXT NOT NULL,
    window_began_at DOUBLE PRECISION,
    PRIMARY KEY (mapping, lane)
);
CREATE TABLE lambda_place_seekers (
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    PRIMARY KEY (kind, subject)
);
""",
)
