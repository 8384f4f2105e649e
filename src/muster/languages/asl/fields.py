"""Which fields a definition may have where, as tables.

Keeps true: a field that is in no table is refused by name. Does not know what a field means.

Source: States Language, "State Types" and its table of fields; "Transforming data with JSONata in Step Functions".
"""

from collections.abc import Mapping

TYPES = ("Task", "Wait", "Pass", "Succeed", "Fail", "Choice", "Parallel", "Map")

MACHINE = frozenset({"Comment", "StartAt", "States", "Version", "TimeoutSeconds", "QueryLanguage"})
BRANCH = frozenset({"Comment", "StartAt", "States"})
PROCESSOR = BRANCH | {"ProcessorConfig"}
REQUIRED_OF_SCOPE = ("States", "StartAt")

_EVERY = frozenset({"Type", "Comment", "QueryLanguage"})
_MOVING = frozenset({"Next", "End", "Assign"})
_PATHS = frozenset({"InputPath", "OutputPath"})
_RESULTS = frozenset({"ResultPath", "ResultSelector"})
_ERRORS = frozenset({"Retry", "Catch"})

# Fields of both query languages, by type.
SHARED: Mapping[str, frozenset[str]] = {
    "Pass": _EVERY | _MOVING,
    "Task": _EVERY | _MOVING | _ERRORS | {"Resource", "TimeoutSeconds", "HeartbeatSeconds", "Credentials"},
    "Choice": _EVERY | {"Choices", "Default", "Assign"},
    "Wait": _EVERY | _MOVING | {"Seconds", "Timestamp"},
    "Succeed": _EVERY | {"Assign"},
    "Fail": _EVERY | {"Error", "Cause"},
    "Parallel": _EVERY | _MOVING | _ERRORS | {"Branches"},
    "Map": _EVERY
    | _MOVING
    | _ERRORS
    | {
        "ItemProcessor",
        "Iterator",
        "ItemSelector",
        "MaxConcurrency",
        "ToleratedFailureCount",
        "ToleratedFailurePercentage",
        "ItemReader",
        "ItemBatcher",
        "ResultWriter",
        "Label",
    },
}

# Fields of JSONPath states alone.
JSONPATH: Mapping[str, frozenset[str]] = {
    "Pass": _PATHS | {"Parameters", "Result", "ResultPath"},
    "Task": _PATHS | _RESULTS | {"Parameters", "TimeoutSecondsPath", "HeartbeatSecondsPath"},
    "Choice": _PATHS,
    "Wait": _PATHS | {"SecondsPath", "TimestampPath"},
    "Succeed": _PATHS,
    "Fail": frozenset({"ErrorPath", "CausePath"}),
    "Parallel": _PATHS | _RESULTS | {"Parameters"},
    "Map": _PATHS
    | _RESULTS
    | {
        "Parameters",
        "ItemsPath",
        "MaxConcurrencyPath",
        "ToleratedFailureCountPath",
        "ToleratedFailurePercentagePath",
    },
}

# Fields of JSONata states alone.
JSONATA: Mapping[str, frozenset[str]] = {
    "Pass": frozenset({"Output"}),
    "Task": frozenset({"Output", "Arguments"}),
    "Choice": frozenset({"Output"}),
    "Wait": frozenset({"Output"}),
    "Succeed": frozenset({"Output"}),
    "Fail": frozenset(),
    "Parallel": frozenset({"Output", "Arguments"}),
    "Map": frozenset({"Output", "Items"}),
}

RETRIER = frozenset(
    {"ErrorEquals", "IntervalSeconds", "MaxAttempts", "BackoffRate", "MaxDelaySeconds", "JitterStrategy", "Comment"}
)
CATCHER = frozenset({"ErrorEquals", "Next", "Comment", "Assign"})
CATCHER_JSONPATH = frozenset({"ResultPath"})
CATCHER_JSONATA = frozenset({"Output"})
