"""Names and ARNs of Step Functions: what they look like, and taking them apart.

Does not know whether what they name exists.
"""

import re

from muster.arn import Arn
from muster.errors import ServiceError

# "Unsupported characters" of the API reference: white space, brackets, wildcards, special and control characters.
_FORBIDDEN = re.compile(r"[\s<>{}\[\]?*\"#%\\^|~`$&,;:/\u0000-\u001f\u007f-\u009f\ufffe\uffff]|[\U00010000-\U0010ffff]")
NAME_MAX = 80


def check(name: str) -> str:
    """The name, or InvalidName."""
    if not 1 <= len(name) <= NAME_MAX or _FORBIDDEN.search(name):
        raise ServiceError("InvalidName", f"Invalid Name: '{name}'")
    return name


def parse(text: str, *kinds: str) -> tuple[Arn, list[str]]:
    """The ARN and the parts of its resource, the first of which is one of `kinds`; InvalidArn otherwise."""
    try:
        arn = Arn.parse(text)
    except ValueError as why:
        raise ServiceError("InvalidArn", f"Invalid Arn: '{_why(text)}'") from why
    parts = arn.resource.split(":")
    if arn.service != "states" or parts[0] not in kinds or len(parts) < 2:
        raise ServiceError("InvalidArn", f"Invalid Arn: 'Resource type not valid in this context: {parts[0]}'")
    return arn, parts


def _why(text: str) -> str:
    if not text.startswith("arn:"):
        return f"Invalid ARN prefix: {text}"
    return f"Invalid ARN: {text}"


def machine_of(text: str) -> tuple[str, str | None]:
    """A state machine's ARN without its qualifier, and the qualifier (version or alias) if it has one."""
    _, parts = parse(text, "stateMachine")
    if len(parts) == 2:
        return text, None
    return text.rsplit(":", 1)[0], parts[2]


def subject(execution_arn: str, frame: int, attempt: int) -> str:
    """What deliveries for an attempt are addressed to."""
    return f"{execution_arn}|{frame}|{attempt}"


def addressed(text: str) -> tuple[str, int, int]:
    """The execution, frame and attempt a delivery is for."""
    arn, frame, attempt = text.rsplit("|", 2)
    return arn, int(frame), int(attempt)
