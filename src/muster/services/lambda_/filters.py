"""Which records a mapping's filters let through.

Keeps true: a record passes when one of the patterns matches it, or when there is none. A queue's body counts as JSON
when it is an object, and as text otherwise, so that a pattern for the one drops the other: see the table in
https://docs.aws.amazon.com/lambda/latest/dg/with-sqs-filtering.html.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import orjson

from muster.languages.patterns import Pattern

Record = Mapping[str, Any]

# Compiled once and kept: patterns are few and polls are many.
compiled = lru_cache(maxsize=512)(Pattern)


def passes(patterns: list[str]) -> Callable[[Record], bool]:
    """Whether a record is wanted."""
    if not patterns:
        return lambda record: True
    asked = [compiled(text) for text in patterns]
    return lambda record: any(pattern.matches(record) for pattern in asked)


def with_parsed_body(record: Record) -> Record:
    """A queue's record as its filters see it."""
    try:
        body = orjson.loads(record["body"])
    except ValueError:
        return record
    return {**record, "body": body} if isinstance(body, dict) else record
