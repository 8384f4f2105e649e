"""The tables of Step Functions.

Keeps true: a running execution has not stopped and an ended one has; a token is open or closed. An execution is one
row, its history one row per step.
"""

MIGRATIONS = (
    """
    CREATE TABLE states_machines (
        arn TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        type TEXT NOT NULL CHECK (type IN ('STANDARD', 'EXPRESS')),
        revision TEXT NOT NULL,
        created_at DOUBLE PRECISION NOT NULL,
        last_version BIGINT NOT NULL
    );
    CREATE TABLE states_revisions (
        revision TEXT PRIMARY KEY,
        machine_arn TEXT NOT NULL,
        shown_id TEXT,
        definition TEXT NOT NULL,
        role_arn TEXT NOT NULL,
        settings TEXT NOT NULL,
        created_at DOUBLE PRECISION NOT NULL
    );
    CREATE TABLE states_versions (
        arn TEXT PRIMARY KEY,
        machine_arn TEXT NOT NULL,
        number BIGINT NOT NULL,
        revision TEXT NOT NULL,
        description TEXT,
        created_at DOUBLE PRECISION NOT NULL
    );
    CREATE INDEX states_versions_by_machine ON states_versions (machine_arn, number);
    CREATE TABLE states_aliases (
        arn TEXT PRIMARY KEY,
        machine_arn TEXT NOT NULL,
        name TEXT NOT NULL,
        description TEXT,
        routes TEXT NOT NULL,
        created_at DOUBLE PRECISION NOT NULL,
        updated_at DOUBLE PRECISION NOT NULL
    );
    CREATE INDEX states_aliases_by_machine ON states_aliases (machine_arn, name);
    CREATE TABLE states_executions (
        arn TEXT PRIMARY KEY,
        machine_arn TEXT NOT NULL,
        name TEXT NOT NULL,
        revision TEXT NOT NULL,
        express BIGINT NOT NULL,
        scope BIGINT NOT NULL,
        status TEXT NOT NULL
            CHECK (status IN ('RUNNING', 'SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED', 'PENDING_REDRIVE')),
        input TEXT NOT NULL,
        output TEXT,
        error TEXT,
        cause TEXT,
        started_at DOUBLE PRECISION NOT NULL,
        stopped_at DOUBLE PRECISION,
        state TEXT NOT NULL,
        errands TEXT NOT NULL,
        version_arn TEXT,
        alias_arn TEXT,
        trace_header TEXT,
        redrives BIGINT NOT NULL,
        redriven_at DOUBLE PRECISION,
        parent TEXT,
        map_run TEXT,
        CHECK ((status IN ('RUNNING', 'PENDING_REDRIVE')) = (stopped_at IS NULL))
    );
    CREATE INDEX states_executions_by_machine ON states_executions (machine_arn, started_at, arn);
    CREATE INDEX states_executions_by_map_run ON states_executions (map_run, started_at, arn);
    CREATE TABLE states_history (
        execution_arn TEXT NOT NULL,
        first_id BIGINT NOT NULL,
        events BIGINT NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        entries TEXT NOT NULL,
        PRIMARY KEY (execution_arn, first_id)
    );
    CREATE TABLE states_tokens (
        token TEXT PRIMARY KEY,
        execution_arn TEXT NOT NULL,
        frame BIGINT NOT NULL,
        attempt BIGINT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('OPEN', 'CLOSED')),
        heartbeat_seconds DOUBLE PRECISION,
        beat_at DOUBLE PRECISION NOT NULL
    );
    CREATE INDEX states_tokens_by_attempt ON states_tokens (execution_arn, attempt);
    CREATE TABLE states_activities (
        arn TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        created_at DOUBLE PRECISION NOT NULL
    );
    CREATE TABLE states_offers (
        token TEXT PRIMARY KEY,
        activity_arn TEXT NOT NULL,
        input TEXT NOT NULL,
        offered_at DOUBLE PRECISION NOT NULL
    );
    CREATE INDEX states_offers_by_activity ON states_offers (activity_arn, offered_at);
    CREATE TABLE states_polls (
        subject TEXT PRIMARY KEY,
        activity_arn TEXT NOT NULL,
        worker TEXT,
        asked_at DOUBLE PRECISION NOT NULL
    );
    CREATE INDEX states_polls_by_activity ON states_polls (activity_arn, asked_at);
    CREATE TABLE states_map_runs (
        arn TEXT PRIMARY KEY,
        execution_arn TEXT NOT NULL,
        machine_arn TEXT NOT NULL,
        label TEXT NOT NULL,
        express BIGINT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('RUNNING', 'SUCCEEDED', 'FAILED', 'ABORTED')),
        started_at DOUBLE PRECISION NOT NULL,
        stopped_at DOUBLE PRECISION,
        concurrency BIGINT NOT NULL,
        tolerated_count BIGINT NOT NULL,
        tolerated_percentage DOUBLE PRECISION NOT NULL,
        CHECK ((status = 'RUNNING') = (stopped_at IS NULL))
    );
    CREATE INDEX states_map_runs_by_execution ON states_map_runs (execution_arn);
    CREATE TABLE states_items (
        map_run TEXT NOT NULL,
        place BIGINT NOT NULL,
        input TEXT NOT NULL,
        shown TEXT NOT NULL,
        execution_arn TEXT,
        PRIMARY KEY (map_run, place)
    );
    CREATE TABLE states_tags (
        arn TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (arn, name)
    );
    """,
    """
    CREATE TABLE states_mocks (
        execution_arn TEXT NOT NULL,
        state TEXT NOT NULL,
        turns TEXT NOT NULL,
        used BIGINT NOT NULL,
        PRIMARY KEY (execution_arn, state)
    );
    """,
    # Those that ended badly are counted by when; the others, which are the most, cost nothing for it.
    """
    CREATE INDEX states_executions_by_bad_end ON states_executions (machine_arn, stopped_at)
        WHERE status IN ('FAILED', 'TIMED_OUT', 'ABORTED');
    """,
)
