"""Message attributes: their rules, their stored form, and the MD5 by which a client checks them.

The digest is over each attribute in the order of names: name, type and value, each with its length in four bytes before
it, and a byte that says whether the value is text (1) or binary (2); see "Calculating the MD5 message digest for message
attributes" in the SQS developer guide.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any

from muster.errors import ServiceError
from muster.services.sqs.refusals import invalid

NAME = re.compile(r"(?!(?i:aws\.|amazon\.))[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
TYPE = re.compile(r"(String|Number|Binary)(\..{1,240})?")
COUNT_MAX = 10

Attributes = dict[str, dict[str, Any]]


def checked(attributes: Mapping[str, Mapping[str, Any]] | None) -> Attributes:
    """Attributes in their stored form (binary in base64), once they are known to be allowed."""
    if not attributes:
        return {}
    if len(attributes) > COUNT_MAX:
        raise invalid(f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum [{COUNT_MAX}].")
    return {name: _checked(name, value) for name, value in attributes.items()}


def _checked(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    if len(name) > 256 or not NAME.fullmatch(name):
        raise invalid(f"Message (user) attribute name '{name}' is invalid.")
    kind = value.get("DataType")
    if not kind:
        raise ServiceError(
            "MissingParameter", f"The request must contain the parameter MessageAttribute.{name}.DataType.", status=400
        )
    if not TYPE.fullmatch(kind):
        raise invalid(
            f"The message attribute '{name}' has an invalid message attribute type, the set of supported type"
            " prefixes is Binary, Number, and String."
        )
    if kind.startswith("Binary"):
        if not value.get("BinaryValue"):
            raise invalid(
                f"The message attribute '{name}' must contain a non-empty message attribute value for message"
                f" attribute type '{kind}'."
            )
        return {"DataType": kind, "BinaryValue": base64.b64encode(bytes(value["BinaryValue"])).decode()}
    text = value.get("StringValue")
    if not text:
        raise invalid(
            f"The message attribute '{name}' must contain a non-empty message attribute value for message"
            f" attribute type '{kind}'."
        )
    if kind.startswith("Number"):
        try:
            float(text)
        except ValueError:
            raise invalid(f"Can't cast the value of message (user) attribute '{name}' to a number.") from None
    return {"DataType": kind, "StringValue": text}


def shown(stored: Attributes) -> Attributes:
    """Stored attributes as the API answers them: binary as bytes."""
    return {
        name: {**value, "BinaryValue": base64.b64decode(value["BinaryValue"])} if "BinaryValue" in value else value
        for name, value in stored.items()
    }


def digest(stored: Attributes) -> str:
    """The MD5 over attributes, in hexadecimal."""
    md5 = hashlib.md5(usedforsecurity=False)
    for name in sorted(stored):
        value = stored[name]
        for part in (name.encode(), value["DataType"].encode()):
            md5.update(len(part).to_bytes(4, "big") + part)
        if "BinaryValue" in value:
            content = base64.b64decode(value["BinaryValue"])
            md5.update(b"\x02")
        else:
            content = value["StringValue"].encode()
            md5.update(b"\x01")
        md5.update(len(content).to_bytes(4, "big") + content)
    return md5.hexdigest()


def size(stored: Attributes) -> int:
    """How many bytes attributes add to a message."""
    total = 0
    for name, value in stored.items():
        content = base64.b64decode(value["BinaryValue"]) if "BinaryValue" in value else value["StringValue"].encode()
        total += len(name.encode()) + len(value["DataType"]) + len(content)
    return total


def selected(stored: Attributes, wanted: list[str]) -> Attributes:
    """Those asked for by name, by `prefix.*`, or all of them by `All` or `.*`."""
    if "All" in wanted or ".*" in wanted:
        return stored
    prefixes = tuple(name[:-1] for name in wanted if name.endswith(".*"))
    return {name: value for name, value in stored.items() if name in wanted or (prefixes and name.startswith(prefixes))}
