"""The errors of DynamoDB that several ideas raise, in AWS's words."""

from collections.abc import Mapping
from typing import Any

from muster.errors import ServiceError


def invalid(message: str) -> ServiceError:
    """A ValidationException."""
    return ServiceError("ValidationException", message)


def invalid_values(message: str) -> ServiceError:
    """A ValidationException about the values given."""
    return invalid(f"One or more parameter values were invalid: {message}")


def no_table(name: str | None = None) -> ServiceError:
    """There is no such table; the operations on tables name it, those on items do not."""
    named = f": Table: {name} not found" if name is not None else ""
    return ServiceError("ResourceNotFoundException", f"Requested resource not found{named}")


def condition_failed(item: Mapping[str, Any] | None) -> ServiceError:
    """The condition did not hold; with the item as it is, when it was asked for and exists."""
    fields = {"Item": dict(item)} if item else {}
    return ServiceError("ConditionalCheckFailedException", "The conditional request failed", fields=fields)
