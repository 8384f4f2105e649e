"""What an object carries besides its bytes: content headers, user metadata, storage class, and what is refused of it.

Keeps true: what is stored is answered as it was given. Does not know bytes.
"""

from collections.abc import Mapping
from typing import Any

from muster.errors import unsupported
from muster.services.s3.refusals import refusal

HEADERS = (
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "Expires",
    "WebsiteRedirectLocation",
)
ACCEPTED = frozenset({*HEADERS, "Metadata", "StorageClass", "ServerSideEncryption", "ACL", "Tagging", "RequestPayer"})
DEFAULT_TYPE = "binary/octet-stream"
METADATA_BYTES_MAX = 2048

# Classes that differ in price only: kept and answered. Those that need a restore before a read are refused.
STORAGE_CLASSES = frozenset(
    {"STANDARD", "REDUCED_REDUNDANCY", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR"}
)
UNSUPPORTED_CLASSES = frozenset({"GLACIER", "DEEP_ARCHIVE", "OUTPOSTS", "SNOW", "EXPRESS_ONEZONE", "FSX_OPENZFS"})
# The account owns everything, so these say what is true anyway.
HARMLESS_ACLS = frozenset({"private", "bucket-owner-full-control"})


def given(request: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that a request states, checked."""
    check_acl(request)
    _check_encryption(request)
    found = {name: request[name] for name in HEADERS if request.get(name) is not None}
    metadata = request.get("Metadata") or {}
    size = sum(len(name.encode()) + len(value.encode()) for name, value in metadata.items())
    if size > METADATA_BYTES_MAX:
        raise refusal("MetadataTooLarge", Size=str(size), MaxSizeAllowed=str(METADATA_BYTES_MAX))
    found["Metadata"] = {name.lower(): value for name, value in metadata.items()}
    storage_class = request.get("StorageClass")
    if storage_class in UNSUPPORTED_CLASSES:
        raise unsupported(f"the storage class {storage_class}")
    if storage_class is not None and storage_class not in STORAGE_CLASSES:
        raise refusal("InvalidStorageClass", StorageClassRequested=storage_class)
    if storage_class not in (None, "STANDARD"):
        found["StorageClass"] = storage_class
    return found


def check_acl(request: Mapping[str, Any]) -> None:
    """AccessControlListNotSupported, as of any bucket whose owner enforces ownership (AWS's default)."""
    if request.get("ACL") is not None and request["ACL"] not in HARMLESS_ACLS:
        raise refusal("AccessControlListNotSupported")


def _check_encryption(request: Mapping[str, Any]) -> None:
    """AES256 is AWS's own default and asks nothing of the client: encryption at rest is the disk's. Others need keys."""
    encryption = request.get("ServerSideEncryption")
    if encryption not in (None, "AES256"):
        raise unsupported(f"server-side encryption with {encryption}")


def answered(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes as the members of an answer."""
    return {"ContentType": DEFAULT_TYPE, "ServerSideEncryption": "AES256", **attributes}


def storage_class(attributes: Mapping[str, Any]) -> str:
    found: str = attributes.get("StorageClass", "STANDARD")
    return found
