"""AWS's service models as botocore ships them, and the check of a request against its operation's shape.

A model is loaded when its service is first used, and a shape is compiled to a check when a request first needs it; both
are kept. Keeps true: a request that passes has every required member, each of its type, length, range, pattern and
enumeration, and nothing that the model does not name. Does not know what a service makes of a request beyond its shape.

The texts are the ones that AWS's services share ("1 validation error detected: Value 'x' at 'name' failed to satisfy
constraint: ..."), observed, see tests/aws/test_validation_as_recorded.py.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from botocore.exceptions import UnknownServiceError
from botocore.loaders import Loader
from botocore.model import OperationModel, OperationNotFoundError, ServiceModel, Shape

from muster.errors import ServiceError, unsupported

# How each service names a request that breaks its shape. The other services say ValidationException.
VALIDATION_CODES = {
    "cloudformation": "ValidationError",
    "cloudwatch": "ValidationError",
    "logs": "InvalidParameterException",
    "s3": "InvalidRequest",
    "sns": "ValidationError",
    "sqs": "InvalidParameterValue",
    "sts": "ValidationError",
}

# Enumerations that the service judges by itself, with a text of its own: SQS names the attribute it does not know, and
# Lambda refuses a runtime with InvalidParameterValueException.
OPEN_ENUMERATIONS = frozenset({("sqs", "*"), ("s3", "*"), ("sns", "*"), ("lambda", "Runtime")})

# A value is quoted in the refusal, up to here: the answer to a request of megabytes is not megabytes.
QUOTED_CHARACTERS_MAX = 10_000

_loader = Loader()


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken constraint: where, of which value, and AWS's sentence about it."""

    path: tuple[str, ...]
    value: str | None
    constraint: str

    def under(self, *outer: str) -> "Violation":
        """The same, seen from a level further out."""
        return Violation((*outer, *self.path), self.value, self.constraint)

    def __str__(self) -> str:
        value = "" if self.value is None else f" {self.value}"
        return f"Value{value} at '{'.'.join(self.path)}' failed to satisfy constraint: {self.constraint}"


# A check answers nothing when the value is right, so that the good path allocates nothing.
Check = Callable[[Any], "list[Violation] | None"]

MISSING = "Member must not be null"


@cache
def service(name: str) -> ServiceModel:
    """The model of a service by botocore's name for it; NotImplemented when botocore knows no such service."""
    try:
        return ServiceModel(_loader.load_service_model(name, "service-2"), name)
    except UnknownServiceError:
        raise unsupported(f"the service {name}") from None


@cache
def operation(service_name: str, name: str) -> OperationModel:
    """The model of an operation; UnknownOperationException when AWS has none of that name."""
    try:
        return service(service_name).operation_model(name)
    except OperationNotFoundError:
        raise ServiceError(
            "UnknownOperationException", f"{service_name} has no operation {name}.", status=400
        ) from None


def has(service_name: str, name: str) -> bool:
    """Whether AWS's service offers an operation of that name."""
    return name in _operation_names(service_name)


@cache
def _operation_names(service_name: str) -> frozenset[str]:
    return frozenset(service(service_name).operation_names)


def validate(service_name: str, operation_name: str, request: Mapping[str, Any]) -> None:
    """Refuse a request that breaks its operation's shape, with the service's own code and text.

    Members at the top that the model does not name are left to `Operation.accepts`; nested ones are refused here.
    """
    try:
        violations = _check_of(service_name, operation_name)(request)
    except RecursionError:
        raise ServiceError(validation_code(service_name), "The request is nested too deeply.", status=400) from None
    if violations:
        raise _refusal(service_name, violations)


def validation_code(service_name: str) -> str:
    """The code under which the service refuses a request that breaks its shape."""
    return VALIDATION_CODES.get(service_name, "ValidationException")


def _refusal(service_name: str, violations: list[Violation]) -> ServiceError:
    if service_name == "sqs":
        # SQS speaks of one parameter at a time, in words of its own; observed, see tests/aws.
        first = violations[0]
        parameter = ".".join(part[:1].upper() + part[1:] for part in first.path if part != "member")
        if first.constraint == MISSING:
            return ServiceError("MissingParameter", f"The request must contain the parameter {parameter}.", status=400)
        value = (first.value or "").strip("'")
        return ServiceError(
            "InvalidParameterValue",
            f"Value {value} for parameter {parameter} is invalid. Reason: {first.constraint}.",
            status=400,
        )
    plural = "" if len(violations) == 1 else "s"
    sentences = "; ".join(map(str, violations))
    return ServiceError(
        validation_code(service_name),
        f"{len(violations)} validation error{plural} detected: {sentences}",
        status=400,
    )


@cache
def _check_of(service_name: str, operation_name: str) -> Check:
    shape = operation(service_name, operation_name).input_shape
    if shape is None:
        return lambda request: None
    return _Checks.of(service_name).structure(shape, at_top=True)


class _Checks:
    """The compiled checks of one service's shapes. Recursive shapes meet themselves through the table."""

    def __init__(self, service_name: str) -> None:
        self._service = service_name
        self._checks: dict[str, Check] = {}

    @staticmethod
    @cache
    def of(service_name: str) -> "_Checks":
        return _Checks(service_name)

    def shape(self, shape: Shape) -> Check:
        known = self._checks.get(shape.name)
        if known is not None:
            return known
        built: list[Check] = []
        # Until it is built, a shape inside itself is looked up when it is needed.
        self._checks[shape.name] = lambda value: built[0](value)
        check = self._build(shape)
        built.append(check)
        self._checks[shape.name] = check
        return check

    def _build(self, shape: Shape) -> Check:
        match shape.type_name:
            case "structure":
                return self.structure(shape)
            case "list":
                return self._list(shape)
            case "map":
                return self._map(shape)
            case "string" | "character":
                return self._string(shape)
            case "integer" | "long" | "short" | "byte":
                return _number(shape, (int,), "an integer")
            case "float" | "double" | "bigdecimal":
                return _number(shape, (int, float), "a number")
            case "boolean":
                return _typed(shape, lambda value: isinstance(value, bool), "a boolean")
            case "blob":
                return _blob(shape)
            case "timestamp":
                return _typed(
                    shape,
                    lambda value: isinstance(value, (int, float, datetime)) and not isinstance(value, bool),
                    "a timestamp",
                )
            case _:
                return lambda value: None

    def structure(self, shape: Any, at_top: bool = False) -> Check:
        if getattr(shape, "is_document_type", False):
            return lambda value: None
        members = {name: (self.shape(member), _wire_case(name)) for name, member in shape.members.items()}
        required = tuple((name, _wire_case(name)) for name in shape.required_members)
        service_name, shape_name = self._service, shape.name

        def check(value: Any) -> list[Violation] | None:
            if not isinstance(value, Mapping):
                return [_violation(shape, value, "Member must be a structure")]
            found: list[Violation] | None = None
            for name, lower in required:
                if value.get(name) is None:
                    found = [*(found or ()), Violation((lower,), "null", MISSING)]
            for name, item in value.items():
                member = members.get(name)
                if member is None:
                    if at_top:
                        continue
                    raise unsupported(f"the parameter {name} of {service_name}'s {shape_name}")
                if item is None:
                    continue
                inner = member[0](item)
                if inner is not None:
                    found = [*(found or ()), *(one.under(member[1]) for one in inner)]
            return found

        return check

    def _list(self, shape: Any) -> Check:
        member = self.shape(shape.member)
        sizes = _lengths(shape)
        scalar = shape.member.type_name not in ("structure", "list", "map")
        inner_text = ", ".join(self._constraints(shape.member))

        def check(value: Any) -> list[Violation] | None:
            if not isinstance(value, (list, tuple)):
                return [_violation(shape, value, "Member must be a list")]
            found = _out_of(sizes, len(value), shape, value)
            for number, item in enumerate(value, 1):
                inner = member(item) if item is not None else [Violation((), "null", MISSING)]
                if inner is None:
                    continue
                if scalar and inner_text and isinstance(item, (str, int)):
                    return [*(found or ()), _violation(shape, value, f"Member must satisfy constraint: [{inner_text}]")]
                found = [*(found or ()), *(one.under(str(number), "member") for one in inner)]
            return found

        return check

    def _map(self, shape: Any) -> Check:
        key, member = self.shape(shape.key), self.shape(shape.value)
        sizes = _lengths(shape)
        key_text = ", ".join(self._constraints(shape.key))
        scalar = shape.value.type_name not in ("structure", "map")
        value_text = ", ".join(self._constraints(shape.value))

        def check(value: Any) -> list[Violation] | None:
            if not isinstance(value, Mapping):
                return [_violation(shape, value, "Member must be a map")]
            found = _out_of(sizes, len(value), shape, value)
            for name, item in value.items():
                if key(name) is not None:
                    return [*(found or ()), _violation(shape, value, f"Map keys must satisfy constraint: [{key_text}]")]
                inner = member(item) if item is not None else [Violation((), "null", MISSING)]
                if inner is None:
                    continue
                if scalar and value_text and not any(one.path for one in inner):
                    return [
                        *(found or ()),
                        _violation(shape, value, f"Map value must satisfy constraint: [{value_text}]"),
                    ]
                found = [*(found or ()), *(one.under(name, "member") for one in inner)]
            return found

        return check

    def _string(self, shape: Any) -> Check:
        sizes = _lengths(shape)
        source = shape.metadata.get("pattern")
        pattern = _compiled(source) if source is not None else None
        allowed = self._allowed(shape)
        searched_max = max(sizes.most, 1024)

        def check(value: Any) -> list[Violation] | None:
            if not isinstance(value, str):
                return [_violation(shape, value, "Member must be a string")]
            found: list[Violation] | None = None
            # A text far too long is not also searched: some of the patterns take their time.
            if pattern is not None and len(value) <= searched_max and pattern.fullmatch(value) is None:
                found = [_violation(shape, value, f"Member must satisfy regular expression pattern: {source}")]
            if not sizes.least <= len(value) <= sizes.most:
                found = [*(found or ()), *(_out_of(sizes, len(value), shape, value) or ())]
            if allowed is not None and value not in allowed:
                found = [*(found or ()), _violation(shape, value, _enumeration(allowed))]
            return found

        return check

    def _allowed(self, shape: Any) -> Collection[str] | None:
        names: Collection[str] = shape.metadata.get("enum") or ()
        closed = not OPEN_ENUMERATIONS & {(self._service, "*"), (self._service, shape.name)}
        return dict.fromkeys(names) if names and closed else None

    def _constraints(self, shape: Any) -> Iterator[str]:
        """The sentences that AWS lists when an element of a list or map breaks any of them."""
        sizes = _lengths(shape)
        if shape.type_name in ("string", "list", "map", "blob"):
            if sizes.most != float("inf"):
                yield f"Member must have length less than or equal to {sizes.most}"
            if sizes.least:
                yield f"Member must have length greater than or equal to {sizes.least}"
        if (pattern := shape.metadata.get("pattern")) is not None:
            yield f"Member must satisfy regular expression pattern: {pattern}"
        if shape.type_name == "string" and (allowed := self._allowed(shape)) is not None:
            yield _enumeration(allowed)


@dataclass(frozen=True, slots=True)
class _Sizes:
    least: float
    most: float


def _lengths(shape: Shape) -> _Sizes:
    return _Sizes(shape.metadata.get("min", 0), shape.metadata.get("max", float("inf")))


def _out_of(sizes: _Sizes, length: int, shape: Shape, value: Any) -> list[Violation] | None:
    if length > sizes.most:
        return [_violation(shape, value, f"Member must have length less than or equal to {sizes.most}")]
    if length < sizes.least:
        return [_violation(shape, value, f"Member must have length greater than or equal to {sizes.least}")]
    return None


def _number(shape: Shape, types: tuple[type, ...], kind: str) -> Check:
    least = shape.metadata.get("min", float("-inf"))
    most = shape.metadata.get("max", float("inf"))

    def check(value: Any) -> list[Violation] | None:
        if not isinstance(value, types) or isinstance(value, bool):
            return [_violation(shape, value, f"Member must be {kind}")]
        if value > most:
            return [_violation(shape, value, f"Member must have value less than or equal to {most}")]
        if value < least:
            return [_violation(shape, value, f"Member must have value greater than or equal to {least}")]
        return None

    return check


def _typed(shape: Shape, right: Callable[[Any], bool], kind: str) -> Check:
    return lambda value: None if right(value) else [_violation(shape, value, f"Member must be {kind}")]


def _blob(shape: Shape) -> Check:
    sizes = _lengths(shape)

    def check(value: Any) -> list[Violation] | None:
        if isinstance(value, (bytes, bytearray, memoryview)):
            return _out_of(sizes, len(value), shape, "binary")
        if isinstance(value, (str, int, float, dict, list)):
            return [_violation(shape, value, "Member must be binary")]
        return None  # a stream: whoever reads it counts

    return check


def _enumeration(allowed: Collection[str]) -> str:
    return f"Member must satisfy enum value set: [{', '.join(allowed)}]"


def _violation(shape: Any, value: Any, constraint: str) -> Violation:
    if shape.metadata.get("sensitive"):
        return Violation((), None, constraint)
    return Violation((), f"'{_quoted(value, shape)[:QUOTED_CHARACTERS_MAX]}'", constraint)


def _quoted(value: Any, shape: Any) -> str:
    """A value as AWS's Java services print it: `[Tag(key=a, value=null)]`."""
    if shape.type_name == "structure" and isinstance(value, Mapping):
        pairs = (
            f"{_wire_case(name)}={'null' if value.get(name) is None else _quoted(value[name], member)}"
            for name, member in shape.members.items()
        )
        return f"{shape.name}({', '.join(pairs)})"
    if shape.type_name == "list" and isinstance(value, (list, tuple)):
        return f"[{', '.join(_quoted(item, shape.member) for item in value)}]"
    if shape.type_name == "map" and isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}={_quoted(item, shape.value)}' for key, item in value.items())}}}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _wire_case(name: str) -> str:
    """AWS writes paths with a small first letter: TableName is 'tableName'."""
    return name[:1].lower() + name[1:]


# Java's classes of letters, numbers and separators, as they stand inside brackets in the models.
JAVA_CLASSES = {r"\p{L}": r"\w", r"\p{N}": r"\w", r"\p{Z}": " \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"}


@cache
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """The pattern for Python; None for the few that only Java understands, which are then left to the service."""
    for java, python in JAVA_CLASSES.items():
        pattern = pattern.replace(java, python)
    try:
        return re.compile(pattern)
    except re.error:
        return None
