"""Tags of buckets and objects: how many, how long, and no key twice.

Source: "Categorizing your storage using tags" in the Amazon S3 user guide.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from muster.services.s3.refusals import invalid_argument, refusal

OBJECT_TAGS_MAX = 10
BUCKET_TAGS_MAX = 50
KEY_CHARACTERS_MAX = 128
VALUE_CHARACTERS_MAX = 256


def from_header(header: str | None) -> dict[str, str]:
    """The tags in an x-amz-tagging header, which is form-URL-encoded."""
    if not header:
        return {}
    try:
        pairs = parse_qsl(header, keep_blank_values=True, strict_parsing=True)
    except ValueError as error:
        raise invalid_argument(
            "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name"
            " duplicates.",
            "x-amz-tagging",
            header,
        ) from error
    return _checked(pairs, OBJECT_TAGS_MAX)


def from_set(tagging: Mapping[str, Any], most: int) -> dict[str, str]:
    """The tags of a Tagging document."""
    return _checked([(tag["Key"], tag["Value"]) for tag in tagging.get("TagSet", [])], most)


def to_set(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _checked(pairs: Iterable[tuple[str, str]], most: int) -> dict[str, str]:
    tags: dict[str, str] = {}
    for key, value in pairs:
        if key in tags:
            raise refusal("InvalidTag", "Cannot provide multiple Tags with the same key", TagKey=key)
        if not 0 < len(key) <= KEY_CHARACTERS_MAX:
            raise refusal("InvalidTag", "The TagKey you have provided is invalid", TagKey=key)
        if len(value) > VALUE_CHARACTERS_MAX:
            raise refusal("InvalidTag", "The TagValue you have provided is invalid", TagKey=key, TagValue=value)
        if key.lower().startswith("aws:"):
            raise refusal("InvalidTag", "System tags cannot be added/updated by requester", TagKey=key)
        tags[key] = value
    if len(tags) > most:
        if most == OBJECT_TAGS_MAX:
            raise refusal("InvalidTag", "Object tags cannot be greater than 10")
        raise refusal("InvalidTag", "Bucket tag count cannot be greater than 50")
    return tags
