"""The names and values given beside the expressions of one request.

Keeps true: every placeholder is well written, every value valid, and each is used by some expression of the request.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from muster.languages.expressions.problem import ExpressionError
from muster.languages.expressions.value import AttributeValue, normal

_NAME = re.compile(r"#[A-Za-z0-9_]+")
_VALUE = re.compile(r":[A-Za-z0-9_]+")


class Expression(Protocol):
    """What uses placeholders."""

    @property
    def names(self) -> frozenset[str]: ...
    @property
    def values(self) -> frozenset[str]: ...


@dataclass(slots=True)
class Placeholders:
    """A request's name and value placeholders."""

    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, AttributeValue] = field(default_factory=dict)

    def all_used(self, expressions: Iterable[Expression]) -> None:
        """ExpressionError naming the placeholders that no expression uses."""
        used_names: set[str] = set()
        used_values: set[str] = set()
        for expression in expressions:
            used_names |= expression.names
            used_values |= expression.values
        if not used_names >= self.names.keys():
            unused = ", ".join(sorted(self.names.keys() - used_names))
            raise ExpressionError(
                f"Value provided in ExpressionAttributeNames unused in expressions: keys: {{{unused}}}"
            )
        if not used_values >= self.values.keys():
            unused = ", ".join(sorted(self.values.keys() - used_values))
            raise ExpressionError(
                f"Value provided in ExpressionAttributeValues unused in expressions: keys: {{{unused}}}"
            )


def read(
    names: Mapping[str, str] | None, values: Mapping[str, Any] | None, given: Mapping[str, str | None]
) -> Placeholders:
    """The placeholders of a request whose expressions, by parameter name, are `given` (None where there is none).

    ExpressionError when there are placeholders without expressions, none at all, or ill-written ones.
    """
    absent = [label for label, text in given.items() if text is None]
    if names is not None:
        if len(absent) == len(given):
            raise ExpressionError("ExpressionAttributeNames can only be specified when using expressions")
        if not names:
            raise ExpressionError("ExpressionAttributeNames must not be empty")
        for name in names:
            if not _NAME.fullmatch(name):
                raise ExpressionError(f'ExpressionAttributeNames contains invalid key: Syntax error; key: "{name}"')
    if values is None:
        return Placeholders(names or {})
    takers = [label for label in given if label != "ProjectionExpression"]
    if all(given[label] is None for label in takers):
        which = " and ".join(takers)
        raise ExpressionError(
            "ExpressionAttributeValues can only be specified when using expressions: "
            f"{which} {'is' if len(takers) == 1 else 'are'} null"
        )
    if not values:
        raise ExpressionError("ExpressionAttributeValues must not be empty")
    read_values: dict[str, AttributeValue] = {}
    for name, value in values.items():
        if not _VALUE.fullmatch(name):
            raise ExpressionError(f'ExpressionAttributeValues contains invalid key: Syntax error; key: "{name}"')
        try:
            read_values[name] = normal(value)
        except ExpressionError as error:
            raise ExpressionError(
                f"ExpressionAttributeValues contains invalid value: {error.message} for key {name}"
            ) from error
    return Placeholders(names or {}, read_values)
