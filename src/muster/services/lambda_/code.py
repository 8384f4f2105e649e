"""Deployment packages: zips checked on the way in, kept once per content, dropped with the last version that uses them.

Keeps true: what is stored is a readable zip within AWS's limits, under the base64 SHA-256 that AWS shows as
CodeSha256. Does not know how code is unpacked or run.
"""

import base64
import hashlib
import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.errors import ServiceError, unsupported
from muster.store.blobs import BlobSlice
from muster.transaction import Transaction

# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html: 250 MB unzipped, layers included.
UNZIPPED_BYTES_MAX = 262_144_000

_MEMBERS = {"ZipFile", "S3Bucket", "S3Key", "S3ObjectVersion", "S3ObjectStorageMode"}


# Reads a stretch (start, length) of a stored blob.
ReadBlob = Callable[[str, int, int], bytes]


def no_blobs(blob_id: str, start: int, length: int) -> bytes:
    """For a service that was made without a folder of blobs."""
    raise unsupported("large packages from S3 without a folder of blobs")


@dataclass(frozen=True, slots=True)
class Code:
    """A stored deployment package."""

    sha256: str
    size_bytes: int


def keep(tx: Transaction, source: Mapping[str, Any], read_blob: ReadBlob) -> Code:
    """Store the package that `source` (FunctionCode, or the members of UpdateFunctionCode) names or carries.

    Refuses with InvalidParameterValueException what is missing, no zip, or too large.
    """
    strange = sorted(source.keys() - _MEMBERS)
    if strange:
        raise unsupported(f"the code source {', '.join(strange)} of a function")
    if source.get("S3ObjectStorageMode", "COPY") != "COPY":
        raise unsupported(f"S3ObjectStorageMode {source['S3ObjectStorageMode']} of a function's code")
    body = _fetched(tx, source, read_blob)
    check(body)
    sha256 = base64.b64encode(hashlib.sha256(body).digest()).decode()
    tx.run(
        "INSERT INTO lambda_code (sha256, zip) VALUES (:sha256, :body) ON CONFLICT DO NOTHING", sha256=sha256, body=body
    )
    return Code(sha256, len(body))


def _fetched(tx: Transaction, source: Mapping[str, Any], read_blob: ReadBlob) -> bytes:
    if "ZipFile" in source:
        if "S3Bucket" in source or "S3Key" in source:
            raise ServiceError(
                "InvalidParameterValueException",
                "Please do not provide other FunctionCode parameters when providing a ZipFile.",
            )
        return bytes(source["ZipFile"])
    if "S3Bucket" not in source or "S3Key" not in source:
        raise ServiceError("InvalidParameterValueException", "Please provide a source for function code.")
    request = {"Bucket": source["S3Bucket"], "Key": source["S3Key"]}
    if "S3ObjectVersion" in source:
        request["VersionId"] = source["S3ObjectVersion"]
    try:
        return _whole(tx.call("s3", "GetObject", request)["Body"], read_blob)
    except ServiceError as refusal:
        raise ServiceError(
            "InvalidParameterValueException",
            f"Error occurred while GetObject. S3 Error Code: {refusal.code}. S3 Error Message: {refusal.message}",
        ) from refusal


def _whole(body: Any, read_blob: ReadBlob) -> bytes:
    """An object's body as bytes: it comes as such, or (a large one) as pieces, some of them slices of blobs."""
    if isinstance(body, bytes):
        return body
    return b"".join(
        read_blob(piece.id, piece.start, piece.length) if isinstance(piece, BlobSlice) else bytes(piece)
        for piece in body.pieces
    )


def check(body: bytes) -> None:
    """Refuse what is no zip, or would unpack to more than AWS allows."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            unzipped = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError, OSError, RuntimeError) as fault:
        raise ServiceError(
            "InvalidParameterValueException",
            "Could not unzip uploaded file. Please check your file, then try to upload again.",
        ) from fault
    if unzipped > UNZIPPED_BYTES_MAX:
        raise ServiceError(
            "InvalidParameterValueException", f"Unzipped size must be smaller than {UNZIPPED_BYTES_MAX} bytes"
        )


def read(tx: Transaction, sha256: str) -> bytes | None:
    """The package of that hash; None when no version uses it any more."""
    row = tx.one("SELECT zip FROM lambda_code WHERE sha256 = :sha256", sha256=sha256)
    return bytes(row["zip"]) if row is not None else None


def hashes(tx: Transaction) -> list[str]:
    """The hashes of all packages that are stored."""
    return [row["sha256"] for row in tx.all("SELECT sha256 FROM lambda_code")]


def drop_unused(tx: Transaction, sha256: str) -> None:
    """Forget the package unless a version still uses it."""
    tx.run(
        "DELETE FROM lambda_code WHERE sha256 = :sha256"
        " AND NOT EXISTS (SELECT 1 FROM lambda_versions WHERE code_sha256 = :sha256)",
        sha256=sha256,
    )
