"""What a function's answer to a batch means: which records are done.

https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html says which answers count as complete
success (none, an empty list, null) and which as complete failure (invalid JSON, an item without an identifier, with an
empty one, or with one that is not of the batch).
"""

from collections.abc import Collection, Mapping
from typing import Any

import orjson


def failures(answer: Mapping[str, Any], identifiers: Collection[str], *, partial: bool) -> set[str] | None:
    """The identifiers of the records that failed; None when the batch failed as a whole.

    `answer` is the outcome of the invocation as its reply carries it.
    """
    if answer.get("Error") or answer.get("FunctionError"):
        return None
    if not partial:
        return set()
    try:
        response = orjson.loads(answer["Payload"])
    except ValueError:
        return None
    if response is None:
        return set()
    if not isinstance(response, dict):
        return None
    items = response.get("batchItemFailures")
    if items is None:
        return set()
    if not isinstance(items, list):
        return None
    failed: set[str] = set()
    for item in items:
        identifier = item.get("itemIdentifier") if isinstance(item, dict) else None
        if not isinstance(identifier, str) or identifier not in identifiers:
            return None
        failed.add(identifier)
    return failed
