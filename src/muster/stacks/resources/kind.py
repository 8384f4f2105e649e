"""What a resource type is: the properties it accepts, and how one is made, changed and taken away.

Keeps true: everything a kind does goes through the operations table, in the deployment's transaction, with values
fitted to the API's shapes. Does not know plans, templates or stacks' records.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import orjson

from muster import models
from muster.errors import ServiceError
from muster.operation import Answer
from muster.stacks.parameters import text_of
from muster.stacks.problem import Problem
from muster.stacks.shapes import fit
from muster.transaction import Transaction

Properties = Mapping[str, Any]

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


class Change(Enum):
    """What a new value of a property asks for."""

    IN_PLACE = "in place"
    REPLACE = "replace"


IN_PLACE, REPLACE = Change.IN_PLACE, Change.REPLACE


@dataclass(frozen=True, slots=True)
class Made:
    """A resource that exists: its physical id is what Ref answers, its attributes what GetAtt does."""

    physical_id: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Work:
    """One resource's turn in a deployment."""

    tx: Transaction
    stack_name: str
    stack_id: str
    logical_id: str
    warnings: list[str] = field(default_factory=list)

    def call(self, service: str, operation: str, **request: Any) -> Answer:
        """Ask a sibling; members that are None are left out, the others fitted to the operation's shapes."""
        if not self.tx.offers(service, operation):
            raise Problem(f"Muster does not support {service}:{operation}, which this resource needs.")
        fitted = fit(service, operation, request)
        models.validate(service, operation, fitted)
        return self.tx.call(service, operation, fitted)

    def must_be_new(self, name: str, service: str, operation: str, **request: Any) -> None:
        """Refuse a name that is taken, where `operation` finds what has it and creating it again would not refuse.

        A stack must not take over, and later delete, what somebody else made.
        """
        if not self.tx.offers(service, operation):
            return
        try:
            self.tx.call(service, operation, request)
        except ServiceError:
            return
        raise Problem(f"{name} already exists.")

    def stored(self, bucket: str, key: str, version: str | None = None) -> bytes:
        """The content of an object."""
        return read_object(self.tx, bucket, key, version)

    def offers(self, service: str, operation: str) -> bool:
        return self.tx.offers(service, operation)

    def arn(self, service: str, resource: str) -> str:
        return f"arn:aws:{service}:{self.tx.region}:{self.tx.account}:{resource}"

    def random(self, length: int = 12) -> str:
        """Capital letters and digits, as CloudFormation ends the names it makes."""
        drawn = bytes.fromhex(self.tx.token(length))
        return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in drawn)

    def name(self, longest: int = 64, *, lower: bool = False, suffix: str = "") -> str:
        """A name for a resource whose template gives none: stack, logical id and chance, shortened where it must be.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-properties-name.html
        """
        chance = self.random()
        room = longest - len(chance) - len(suffix) - 2
        stack = self.stack_name[: max(room // 2, room - len(self.logical_id))].rstrip("-")
        own = self.logical_id[: room - len(stack)]
        name = f"{stack}-{own}-{chance}{suffix}"
        return name.lower() if lower else name

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def read_object(tx: Transaction, bucket: str, key: str, version: str | None = None) -> bytes:
    """The content of an object, read inside the transaction."""
    place = {"Bucket": bucket, "Key": key, **({} if version is None else {"VersionId": version})}
    return bytes(tx.call("s3", "ReadObject", place)["Body"])


def _nothing(work: Work, made: Made, properties: Properties) -> None:
    """Nothing to take away."""


def _never(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    raise AssertionError("every property of this type asks for replacement")


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource type. `name` is the property that gives it a custom name, if it has one."""

    type: str
    properties: Mapping[str, Change]
    create: Callable[[Work, Properties], Made]
    update: Callable[[Work, Made, Properties, Properties], Made] = _never
    delete: Callable[[Work, Made, Properties], None] = _nothing
    attributes: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()
    name: str | None = None


def properties(in_place: str = "", *, replace: str = "") -> dict[str, Change]:
    """A table of properties from two lists of words."""
    return dict.fromkeys(in_place.split(), IN_PLACE) | dict.fromkeys(replace.split(), REPLACE)


def changed(old: Properties, new: Properties, *names: str) -> bool:
    """Whether any of the named properties differs."""
    return any(old.get(name) != new.get(name) for name in names)


def document(value: Any) -> Any:
    """A JSON document that a template may write as an object and the API wants as text."""
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode() if isinstance(value, (dict, list)) else value


def text_in(properties: Properties, name: str) -> str | None:
    """A property that must be a text, if it is given."""
    value = properties.get(name)
    if isinstance(value, (dict, list)):
        raise Problem(f"The property {name} must be a text.")
    return None if value is None else text_of(value)


def object_in(properties: Properties, name: str) -> dict[str, Any] | None:
    """A property that must be an object, if it is given."""
    value = properties.get(name)
    if value is not None and not isinstance(value, dict):
        raise Problem(f"The property {name} must be an object.")
    return value


def objects_in(properties: Properties, name: str, *needed: str) -> list[dict[str, Any]]:
    """A property that must be a list of objects with the members that are needed; empty when it is not given."""
    value = properties.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Problem(f"The property {name} must be a list of objects.")
    for item in value:
        for member in needed:
            if not isinstance(item.get(member), str):
                raise Problem(f"The property {name} must be a list of objects that each have {member}.")
    return value


def tag_map(properties: Properties) -> dict[str, str] | None:
    """The property Tags as an object from keys to values."""
    tags = properties.get("Tags")
    if tags is None:
        return None
    if isinstance(tags, dict):
        return {str(key): text_of(value) for key, value in tags.items()}
    try:
        return {tag["Key"]: text_of(tag["Value"]) for tag in tags}
    except (TypeError, KeyError):
        raise Problem("The property Tags must be a list of objects with Key and Value.") from None


def tag_list(properties: Properties) -> list[dict[str, str]] | None:
    """The property Tags as a list of Key and Value."""
    tags = tag_map(properties)
    return None if tags is None else [{"Key": key, "Value": value} for key, value in tags.items()]


def tag_changes(old: Properties, new: Properties) -> tuple[dict[str, str], list[str]]:
    """The tags to set and the keys to remove."""
    before, after = tag_map(old) or {}, tag_map(new) or {}
    return (
        {key: value for key, value in after.items() if before.get(key) != value},
        [key for key in before if key not in after],
    )


def set_tags(
    work: Work, service: str, member: str, resource: str, old: Properties, new: Properties, *, keys: str
) -> None:
    """Bring tags up to date through TagResource and UntagResource, which most APIs have in one form."""
    put, gone = tag_changes(old, new)
    if gone:
        work.call(service, "UntagResource", **{member: resource, keys: gone})
    if put:
        as_list = service in ("dynamodb", "sns", "events", "cloudwatch", "stepfunctions")
        tags: Any = [{"Key": key, "Value": value} for key, value in put.items()] if as_list else put
        work.call(service, "TagResource", **{member: resource, "Tags": tags})
