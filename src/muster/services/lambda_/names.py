"""How callers name functions: a name, a partial ARN or a full one, with or without a qualifier.

Keeps true: what comes out has passed for this account and region. Does not know which functions exist.
"""

import re
from dataclasses import dataclass

from muster.arn import Realm, arn
from muster.errors import ServiceError

LATEST = "$LATEST"

_FUNCTION = re.compile(
    r"(?:arn:(?:aws[a-zA-Z-]*)?:lambda:)?(?:(?P<region>[a-z]{2}(?:-gov)?(?:-iso[a-z]?)?-[a-z]+-\d):)?(?:(?P<account>\d{12}):)?"
    r"(?:function:)?(?P<name>[a-zA-Z0-9_-]{1,64})(?::(?P<qualifier>\$LATEST|[a-zA-Z0-9_-]+))?"
)


@dataclass(frozen=True, slots=True)
class Name:
    """A function's name and the qualifier that was asked for, if one was."""

    function: str
    qualifier: str | None


def parse(realm: Realm, text: str, qualifier: str | None = None) -> Name:
    """The function and qualifier that `text` (AWS's three forms) and a separate `qualifier` mean together.

    Refuses with ValidationException what is no such name, InvalidParameterValueException where two qualifiers
    disagree, ResourceNotFoundException what lies in another account or region.
    """
    match = _FUNCTION.fullmatch(text)
    if match is None:
        raise ServiceError(
            "ValidationException",
            f"1 validation error detected: Value '{text}' at 'functionName' failed to satisfy constraint: Member must "
            f"satisfy regular expression pattern: {_FUNCTION.pattern}",
            status=400,
        )
    within = match["qualifier"]
    if within is not None and qualifier is not None and within != qualifier:
        raise ServiceError(
            "InvalidParameterValueException",
            "The derived qualifier from the function name does not match the specified qualifier.",
        )
    if (match["region"] or realm.region) != realm.region or (match["account"] or realm.account) != realm.account:
        raise ServiceError("ResourceNotFoundException", f"Function not found: {text}")
    return Name(match["name"], qualifier if qualifier is not None else within)


def function_arn(realm: Realm, function: str, qualifier: str | None = None) -> str:
    """The ARN of a function, or of one of its versions or aliases."""
    return arn(realm, "lambda", f"function:{function}" + (f":{qualifier}" if qualifier else ""))


def not_found(realm: Realm, function: str, qualifier: str | None = None) -> ServiceError:
    """AWS's refusal of a function, version or alias that is not there."""
    return ServiceError(
        "ResourceNotFoundException",
        f"Function not found: {function_arn(realm, function, qualifier)}",
        fields={"Type": "User"},
    )
