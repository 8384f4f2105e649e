"""Items as text: compact JSON in AWS's own form, binaries in base64.

Keeps true: what `read` answers is what `written` was given.
"""

import base64
from typing import Any

import orjson

from muster.languages.expressions import AttributeValue, Item


def written(item: Item) -> str:
    """An item as compact JSON; binaries in base64."""
    return orjson.dumps(item, default=binary_written).decode()


def binary_written(content: Any) -> str:
    """A binary in base64: for orjson, which knows none."""
    assert isinstance(content, bytes)
    return base64.b64encode(content).decode()


def read(text: str) -> Item:
    """The item that was written as `text`."""
    item: Item = orjson.loads(text)
    if '"B":' in text or '"BS":' in text:
        return {name: with_binaries(value) for name, value in item.items()}
    return item


def with_binaries(value: AttributeValue) -> AttributeValue:
    """A value read from JSON, with its binaries as bytes again."""
    [(kind, content)] = value.items()
    match kind:
        case "B":
            return {"B": base64.b64decode(content)}
        case "BS":
            return {"BS": [base64.b64decode(member) for member in content]}
        case "L":
            return {"L": [with_binaries(member) for member in content]}
        case "M":
            return {"M": {name: with_binaries(member) for name, member in content.items()}}
        case _:
            return value
