"""Which names buckets and keys may have.

Source: "General purpose bucket naming rules" and "Naming Amazon S3 objects" of the Amazon S3 user guide.
"""

import ipaddress
import re

from muster.services.s3.refusals import refusal

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIXES = ("xn--", "sthree-")
_SUFFIXES = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")
KEY_BYTES_MAX = 1024


def check_bucket_name(name: str) -> None:
    """InvalidBucketName unless AWS would let a bucket be called so.

    AWS reserves the prefix amzn-s3-demo- for its examples; it is allowed here, because the examples are.
    """
    if not _BUCKET.fullmatch(name) or ".." in name or ".-" in name or "-." in name or _is_address(name):
        raise refusal("InvalidBucketName", BucketName=name)
    if name.startswith(_PREFIXES) or name.endswith(_SUFFIXES):
        raise refusal("InvalidBucketName", BucketName=name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.IPv4Address(name)
    except ValueError:
        return False
    return True


def check_key(key: str) -> None:
    """KeyTooLongError when the key's UTF-8 form has more than 1,024 bytes."""
    size = len(key.encode("utf-8", "surrogatepass"))
    if size > KEY_BYTES_MAX:
        raise refusal("KeyTooLongError", Size=str(size), MaxSizeAllowed=str(KEY_BYTES_MAX))
    if "\x00" in key:
        raise refusal("InvalidArgument", "Object keys must not contain the character U+0000.")
