"""What a Task's Resource says: which operation of which service, and how the task waits for it.

Keeps true: a table names the optimised integrations and the patterns each allows; everything else is an AWS SDK
integration, a function's ARN or an activity's ARN, or it is not a resource. Does not call anything.

Sources: "Integrating services", "Learning to use AWS service SDK integrations in Step Functions".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

PATTERNS = ("", ".sync", ".sync:2", ".waitForTaskToken")


class Kind(Enum):
    """How a task speaks to its worker."""

    SERVICE = "service"
    FUNCTION = "function"  # a bare function ARN: the payload is the input, the result is the payload
    ACTIVITY = "activity"


@dataclass(frozen=True, slots=True)
class Integration:
    """One Resource, understood. `service` and `operation` are botocore's names; `service` is "" where AWS has it and
    Muster does not know it."""

    kind: Kind
    resource: str
    service: str = ""
    operation: str = ""
    pattern: str = ""
    resource_type: str = ""
    action: str = ""
    optimised: bool = False

    @property
    def waits_for_token(self) -> bool:
        """Whether the task ends only when its token is answered."""
        return self.pattern == ".waitForTaskToken"

    @property
    def is_sync(self) -> bool:
        """Whether the task ends when the job it started ends."""
        return self.pattern.startswith(".sync")


# Optimised integrations: the ARN's service part -> (botocore service, operation -> allowed patterns).
_REPLY, _TOKEN = "", ".waitForTaskToken"
_OPTIMISED: Mapping[str, tuple[str, Mapping[str, frozenset[str]]]] = {
    "lambda": ("lambda", {"invoke": frozenset({_REPLY, _TOKEN})}),
    "dynamodb": (
        "dynamodb",
        {
            "getItem": frozenset({_REPLY}),
            "putItem": frozenset({_REPLY, _TOKEN}),
            "updateItem": frozenset({_REPLY, _TOKEN}),
            "deleteItem": frozenset({_REPLY, _TOKEN}),
        },
    ),
    "sqs": ("sqs", {"sendMessage": frozenset({_REPLY, _TOKEN})}),
    "sns": ("sns", {"publish": frozenset({_REPLY, _TOKEN})}),
    "events": ("events", {"putEvents": frozenset({_REPLY, _TOKEN})}),
    "states": ("stepfunctions", {"startExecution": frozenset(PATTERNS)}),
    "http": ("", {"invoke": frozenset({_REPLY})}),
}

# The names AWS SDK integrations use -> botocore's, for the services Muster has.
SDK_SERVICES: Mapping[str, str] = {
    "cloudformation": "cloudformation",
    "cloudwatch": "cloudwatch",
    "cloudwatchlogs": "logs",
    "dynamodb": "dynamodb",
    "eventbridge": "events",
    "lambda": "lambda",
    "s3": "s3",
    "sfn": "stepfunctions",
    "sns": "sns",
    "sqs": "sqs",
    "sts": "sts",
}

_FUNCTION = re.compile(r"arn:[^:]+:lambda:[^:]*:[^:]*:function:[^:]+(:[^:]+)?\Z")
_ACTIVITY = re.compile(r"arn:[^:]+:states:[^:]*:[^:]*:activity:[^:]+\Z")
_SERVICE = re.compile(r"arn:[^:]+:states:[^:]*:[^:]*:(aws-sdk:)?([A-Za-z0-9]+):([A-Za-z0-9]+)(\.[A-Za-z]+(?::2)?)?\Z")


def understand(resource: str) -> Integration | None:
    """The integration a Resource names; None when AWS would not recognise it."""
    if _FUNCTION.match(resource):
        return Integration(Kind.FUNCTION, resource, "lambda", "Invoke")
    if _ACTIVITY.match(resource):
        return Integration(Kind.ACTIVITY, resource)
    found = _SERVICE.match(resource)
    if found is None:
        return None
    sdk, name, action, pattern = found.groups()
    pattern = pattern or ""
    if pattern not in PATTERNS:
        return None
    operation = action[0].upper() + action[1:]
    if sdk:
        if pattern not in (_REPLY, _TOKEN):
            return None
        service = SDK_SERVICES.get(name, "")
        return Integration(Kind.SERVICE, resource, service, operation, pattern, f"aws-sdk:{name}", f"{action}{pattern}")
    if name not in _OPTIMISED:
        return None
    service, actions = _OPTIMISED[name]
    if pattern not in actions.get(action, frozenset()):
        return None
    return Integration(Kind.SERVICE, resource, service, operation, pattern, name, f"{action}{pattern}", optimised=True)
