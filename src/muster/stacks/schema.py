"""The tables of stacks: what was asked for, what was made of it, and what happened."""

MIGRATIONS = (
    """
CREATE TABLE cloudformation_stacks (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN (
        'REVIEW_IN_PROGRESS', 'CREATE_COMPLETE', 'ROLLBACK_COMPLETE', 'UPDATE_COMPLETE', 'UPDATE_ROLLBACK_COMPLETE',
        'DELETE_FAILED', 'DELETE_COMPLETE')),
    reason TEXT,
    template TEXT NOT NULL,
    processed TEXT NOT NULL,
    parameters TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    tags TEXT NOT NULL,
    outputs TEXT NOT NULL,
    description TEXT NOT NULL,
    is_protected BIGINT NOT NULL,
    change_set_id TEXT,
    events BIGINT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    updated_at DOUBLE PRECISION,
    deleted_at DOUBLE PRECISION,
    CHECK ((status = 'DELETE_COMPLETE') = (deleted_at IS NOT NULL))
);
CREATE UNIQUE INDEX cloudformation_stacks_live ON cloudformation_stacks (name) WHERE deleted_at IS NULL;

CREATE TABLE cloudformation_resources (
    stack_id TEXT NOT NULL REFERENCES cloudformation_stacks (id),
    logical_id TEXT NOT NULL,
    type TEXT NOT NULL,
    physical_id TEXT NOT NULL,
    properties TEXT NOT NULL,
    attributes TEXT NOT NULL,
    deletion_policy TEXT NOT NULL,
    status TEXT NOT NULL,
    position BIGINT NOT NULL,
    updated_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (stack_id, logical_id)
);
CREATE INDEX cloudformation_resources_physical ON cloudformation_resources (physical_id);

CREATE TABLE cloudformation_events (
    stack_id TEXT NOT NULL REFERENCES cloudformation_stacks (id),
    number BIGINT NOT NULL,
    id TEXT NOT NULL,
    logical_id TEXT NOT NULL,
    physical_id TEXT NOT NULL,
    type TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    properties TEXT,
    happened_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (stack_id, number)
);

CREATE TABLE cloudformation_exports (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    stack_id TEXT NOT NULL REFERENCES cloudformation_stacks (id)
);

CREATE TABLE cloudformation_imports (
    name TEXT NOT NULL REFERENCES cloudformation_exports (name),
    stack_id TEXT NOT NULL REFERENCES cloudformation_stacks (id),
    PRIMARY KEY (name, stack_id)
);

CREATE TABLE cloudformation_change_sets (
    id TEXT PRIMARY KEY,
    stack_id TEXT NOT NULL REFERENCES cloudformation_stacks (id),
    name TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('CREATE', 'UPDATE')),
    status TEXT NOT NULL CHECK (status IN ('CREATE_COMPLETE', 'FAILED')),
    execution_status TEXT NOT NULL CHECK (execution_status IN (
        'UNAVAILABLE', 'AVAILABLE', 'EXECUTE_COMPLETE', 'EXECUTE_FAILED', 'OBSOLETE')),
    reason TEXT,
    description TEXT,
    template TEXT NOT NULL,
    parameters TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    tags TEXT NOT NULL,
    changes TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL
);
CREATE UNIQUE INDEX cloudformation_change_sets_names ON cloudformation_change_sets (stack_id, name);
""",
)
