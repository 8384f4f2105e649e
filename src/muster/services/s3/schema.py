"""The tables of S3: buckets and their settings, object versions, multipart uploads, parts, and pieces of content.

Keeps true: a key has at most one current version; a piece is bytes in the row or a slice of a blob, never both; a
delete marker has no content. An object's content is the pieces owned by its `content` id; a completed upload's id
becomes the object's content id, so that completing copies nothing.
"""

MIGRATIONS = (
    """
CREATE TABLE s3_buckets (
    name TEXT PRIMARY KEY,
    region TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    versioning TEXT NOT NULL DEFAULT '' CHECK (versioning IN ('', 'Enabled', 'Suspended'))
);

-- One row per bucket name ever used, kept when the bucket goes: a sequencer never returns.
CREATE TABLE s3_sequences (
    bucket TEXT PRIMARY KEY,
    last BIGINT NOT NULL
);

-- Notification, tagging, policy and the like: one JSON document per bucket and kind.
CREATE TABLE s3_settings (
    bucket TEXT NOT NULL REFERENCES s3_buckets (name) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (bucket, kind)
);

CREATE TABLE s3_objects (
    bucket TEXT NOT NULL REFERENCES s3_buckets (name),
    key TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    version_id TEXT NOT NULL,
    current BIGINT NOT NULL CHECK (current IN (0, 1)),
    delete_marker BIGINT NOT NULL CHECK (delete_marker IN (0, 1)),
    content TEXT NOT NULL,
    size BIGINT NOT NULL CHECK (size >= 0),
    etag TEXT NOT NULL,
    parts BIGINT NOT NULL CHECK (parts >= 0),
    checksum TEXT NOT NULL,
    attributes TEXT NOT NULL,
    tags TEXT NOT NULL,
    modified_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (bucket, key, sequence),
    CHECK (delete_marker = 0 OR (size = 0 AND content = ''))
);
CREATE UNIQUE INDEX s3_objects_current ON s3_objects (bucket, key) WHERE current = 1;
CREATE UNIQUE INDEX s3_objects_version ON s3_objects (bucket, key, version_id);

CREATE TABLE s3_uploads (
    id TEXT PRIMARY KEY,
    bucket TEXT NOT NULL REFERENCES s3_buckets (name),
    key TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('COMPOSITE', 'FULL_OBJECT')),
    asked BIGINT NOT NULL CHECK (asked IN (0, 1)),
    attributes TEXT NOT NULL,
    tags TEXT NOT NULL,
    initiated_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX s3_uploads_key ON s3_uploads (bucket, key, id);

-- Parts of an upload, and afterwards of the object that it became.
CREATE TABLE s3_parts (
    content TEXT NOT NULL,
    number BIGINT NOT NULL CHECK (number BETWEEN 1 AND 10000),
    size BIGINT NOT NULL CHECK (size >= 0),
    etag TEXT NOT NULL,
    checksum TEXT NOT NULL,
    modified_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (content, number)
);

CREATE TABLE s3_pieces (
    content TEXT NOT NULL,
    part BIGINT NOT NULL,
    position BIGINT NOT NULL,
    length BIGINT NOT NULL CHECK (length >= 0),
    start BIGINT NOT NULL,
    blob TEXT,
    data BLOB,
    PRIMARY KEY (content, part, position),
    CHECK ((blob IS NULL) <> (data IS NULL))
);

-- What an upload became, so that completing it a second time answers the same.
CREATE TABLE s3_completed (
    id TEXT PRIMARY KEY,
    bucket TEXT NOT NULL,
    key TEXT NOT NULL,
    answer TEXT NOT NULL,
    completed_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX s3_completed_at ON s3_completed (completed_at);

-- Digests of content that had to be read to be known (copies of parts): asked for and found outside a transaction.
CREATE TABLE s3_digests (
    id TEXT PRIMARY KEY,
    answer TEXT NOT NULL,
    found_at DOUBLE PRECISION NOT NULL
);
""",
)
