"""Filter policies: which messages a subscription wants, by their attributes or their body.

Keeps true: a policy that is not understood is refused when it is set, so that it never lets through more or less than
it says. The matching itself is that of event patterns, of which SNS speaks a dialect: by attributes, an attribute of
type String.Array is one that has several values, and binary ones are not seen.

Sources: the SNS developer guide, "Subscription filter policies" and "Filter policy constraints": five keys, 150
combinations of values, 256 KB.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson

from muster.languages.patterns import InvalidPattern, Pattern
from muster.services.sns.refusals import invalid

KEYS_MAX = 5
COMBINATIONS_MAX = 150
BYTES_MAX = 262_144
ATTRIBUTES, BODY = "MessageAttributes", "MessageBody"
SCOPES = (ATTRIBUTES, BODY)
_COMBINING = ("$or",)


def checked(text: str, scope: str, prefix: str = "") -> None:
    """InvalidParameter, its reason after `prefix`, unless the text is a filter policy for the scope."""
    try:
        policy = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise invalid(f"{prefix}FilterPolicy: failed to parse JSON.") from None
    if not isinstance(policy, dict):
        raise invalid(f"{prefix}FilterPolicy: failed to parse JSON.")
    if not policy:
        return
    if len(text.encode()) > BYTES_MAX:
        raise invalid(f"{prefix}FilterPolicy: Filter policy is too large")
    keys, combinations = _extent(policy, 1)
    if scope == ATTRIBUTES and _nested(policy):
        raise invalid(f"{prefix}Filter policy scope MessageAttributes does not support nested filter policy")
    if keys > KEYS_MAX:
        raise invalid(f"{prefix}FilterPolicy: Filter policy can not have more than {KEYS_MAX} keys")
    if combinations > COMBINATIONS_MAX:
        raise invalid(f"{prefix}FilterPolicy: Filter policy is too complex")
    try:
        _compiled(text)
    except InvalidPattern as problem:
        raise invalid(f"{prefix}FilterPolicy: {problem.reason}") from None


def _extent(policy: Mapping[str, Any], depth: int) -> tuple[int, int]:
    """How many keys a policy asks about, and how many combinations of values: a key counts once for each level."""
    keys, combinations = 0, 1
    for name, value in policy.items():
        if name in _COMBINING and isinstance(value, list):
            parts = [_extent(branch, depth) for branch in value if isinstance(branch, dict)]
            keys += sum(part[0] for part in parts)
            combinations *= max(1, sum(part[1] for part in parts))
        elif isinstance(value, dict):
            inner = _extent(value, depth + 1)
            keys, combinations = keys + inner[0], combinations * inner[1]
        elif isinstance(value, list):
            keys, combinations = keys + 1, combinations * max(1, len(value)) * depth
    return keys, combinations


def _nested(policy: Mapping[str, Any]) -> bool:
    return any(
        isinstance(value, dict)
        or (
            name in _COMBINING
            and isinstance(value, list)
            and any(isinstance(one, dict) and _nested(one) for one in value)
        )
        for name, value in policy.items()
    )


@lru_cache(maxsize=1024)
def _compiled(text: str) -> Pattern:
    return Pattern(text)


def wants(text: str | None, scope: str, message: str, attributes: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a policy lets a message through; without one, or with an empty one, all are."""
    if not text or orjson.loads(text) == {}:
        return True
    seen = _by_attributes(attributes) if scope == ATTRIBUTES else _by_body(message)
    return seen is not None and _compiled(text).matches(seen)


def _by_body(message: str) -> dict[str, Any] | None:
    try:
        body = orjson.loads(message)
    except orjson.JSONDecodeError:
        return None
    return body if isinstance(body, dict) else None


def _by_attributes(attributes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for name, attribute in attributes.items():
        kind = attribute["DataType"]
        if kind.startswith("Binary"):
            continue
        text = attribute["StringValue"]
        if kind == "String.Array":
            seen[name] = _values(text)
        elif kind.startswith("Number"):
            seen[name] = _number(text)
        else:
            seen[name] = text
    return seen


def _values(text: str) -> Any:
    try:
        values = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return values if isinstance(values, list) else text


def _number(text: str) -> Any:
    """The number that a text is; the text itself where it is none, which no numeric condition matches."""
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    return int(number) if number.is_integer() else number
