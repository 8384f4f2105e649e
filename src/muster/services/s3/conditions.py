"""Conditional requests: when a read is answered with "not modified", and when a write may not happen.

Source: RFC 9110, section 13, as S3 applies it ("Conditional reads", "Conditional writes" in the user guide).
"""

from collections.abc import Mapping
from typing import Any

from muster.services.s3.objects import Version
from muster.services.s3.refusals import refusal


def _names(stated: str, etag: str) -> bool:
    stated = stated.strip()
    if stated == "*":
        return True
    return any(one.strip().removeprefix("W/").strip('"') == etag for one in stated.split(","))


def check_read(found: Version, request: Mapping[str, Any]) -> None:
    """PreconditionFailed or NotModified unless the version may be answered.

    If-Match decides over If-Unmodified-Since, and If-None-Match over If-Modified-Since. Times count whole seconds.
    """
    modified_at = int(found.modified_at)
    if_match, if_none_match = request.get("IfMatch"), request.get("IfNoneMatch")
    unmodified_since, modified_since = request.get("IfUnmodifiedSince"), request.get("IfModifiedSince")
    if if_match is not None:
        if not _names(if_match, found.etag):
            raise refusal("PreconditionFailed", Condition="If-Match")
    elif unmodified_since is not None and modified_at > int(unmodified_since):
        raise refusal("PreconditionFailed", Condition="If-Unmodified-Since")
    if if_none_match is not None:
        if _names(if_none_match, found.etag):
            raise refusal("NotModified", ETag=found.quoted_etag, LastModified=found.modified_at)
    elif modified_since is not None and modified_at <= int(modified_since):
        raise refusal("NotModified", ETag=found.quoted_etag, LastModified=found.modified_at)


def check_copy_source(found: Version, request: Mapping[str, Any]) -> None:
    """PreconditionFailed unless the source meets the copy's conditions."""
    modified_at = int(found.modified_at)
    if_match, if_none_match = request.get("CopySourceIfMatch"), request.get("CopySourceIfNoneMatch")
    unmodified_since = request.get("CopySourceIfUnmodifiedSince")
    modified_since = request.get("CopySourceIfModifiedSince")
    if if_match is not None:
        if not _names(if_match, found.etag):
            raise refusal("PreconditionFailed", Condition="x-amz-copy-source-If-Match")
    elif unmodified_since is not None and modified_at > int(unmodified_since):
        raise refusal("PreconditionFailed", Condition="x-amz-copy-source-If-Unmodified-Since")
    if if_none_match is not None:
        if _names(if_none_match, found.etag):
            raise refusal("PreconditionFailed", Condition="x-amz-copy-source-If-None-Match")
    elif modified_since is not None and modified_at <= int(modified_since):
        raise refusal("PreconditionFailed", Condition="x-amz-copy-source-If-Modified-Since")


def check_write(key: str, there: Version | None, request: Mapping[str, Any]) -> None:
    """PreconditionFailed (or NoSuchKey) unless a write over `there` is wanted. If-None-Match knows only "*"."""
    if_match, if_none_match = request.get("IfMatch"), request.get("IfNoneMatch")
    if if_none_match is not None:
        if if_none_match.strip() != "*" or if_match is not None:
            raise refusal("NotImplemented", Header="If-None-Match")
        if there is not None:
            raise refusal("PreconditionFailed", Condition="If-None-Match")
    if if_match is not None:
        if there is None:
            raise refusal("NoSuchKey", Key=key)
        if not _names(if_match, there.etag):
            raise refusal("PreconditionFailed", Condition="If-Match")
