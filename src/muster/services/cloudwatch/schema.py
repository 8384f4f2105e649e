"""The tables of CloudWatch: buckets of data points, alarms, and what happened to alarms."""

MIGRATIONS = (
    """
CREATE TABLE cloudwatch_points (
    namespace TEXT NOT NULL,
    metric TEXT NOT NULL,
    dimensions TEXT NOT NULL,                  -- JSON object, its names in order
    unit TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,              -- the start of the minute, or of the second at high resolution
    samples DOUBLE PRECISION NOT NULL,
    total DOUBLE PRECISION NOT NULL,
    least DOUBLE PRECISION NOT NULL,
    most DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (namespace, metric, dimensions, unit, at)
);
CREATE INDEX cloudwatch_points_age ON cloudwatch_points (at);
CREATE TABLE cloudwatch_alarms (
    name TEXT PRIMARY KEY,
    definition TEXT NOT NULL,                  -- JSON: the members of PutMetricAlarm that describe it
    actions_enabled BIGINT NOT NULL CHECK (actions_enabled IN (0, 1)),
    tags TEXT NOT NULL,                        -- JSON
    state TEXT NOT NULL CHECK (state IN ('OK', 'ALARM', 'INSUFFICIENT_DATA')),
    reason TEXT NOT NULL,
    reason_data TEXT,                          -- JSON, as the API shows it
    updated_at DOUBLE PRECISION NOT NULL,      -- of the state
    transitioned_at DOUBLE PRECISION NOT NULL,
    configured_at DOUBLE PRECISION NOT NULL
);
CREATE TABLE cloudwatch_history (
    alarm TEXT NOT NULL,
    number BIGINT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('ConfigurationUpdate', 'StateUpdate', 'Action')),
    summary TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (alarm, number)
);
CREATE INDEX cloudwatch_history_age ON cloudwatch_history (at);
""",
)
