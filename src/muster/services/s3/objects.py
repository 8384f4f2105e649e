"""Object versions: written, found, deleted; and the sequencer that orders what happened to a key.

Keeps true: a key has at most one current version; a sequence is greater than every one before it in its bucket, even
if the bucket was deleted in between or the clock went back; content whose version goes is let go of. Does not tell
anybody what happened: events do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from muster.clock import Instant
from muster.services.s3 import content
from muster.services.s3.buckets import Bucket
from muster.services.s3.refusals import refusal
from muster.transaction import Row, Transaction

NULL_VERSION = "null"
COLUMNS = (
    "bucket, key, sequence, version_id, current, delete_marker, content, size, etag, parts, checksum, attributes, tags,"
    " modified_at"
)


@dataclass(frozen=True, slots=True)
class Checksum:
    """What S3 keeps as an object's checksum; `type` is FULL_OBJECT or COMPOSITE."""

    algorithm: str
    type: str
    value: str

    def members(self) -> dict[str, str]:
        return {f"Checksum{self.algorithm}": self.value, "ChecksumType": self.type}


@dataclass(frozen=True, slots=True)
class Draft:
    """Everything about a version to be written but its place in the order."""

    content: str
    size: int
    etag: str
    checksum: Checksum
    attributes: Mapping[str, Any]
    tags: Mapping[str, str]
    parts: int = 0


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an object, or a delete marker."""

    bucket: str
    key: str
    sequence: int
    version_id: str
    current: bool
    delete_marker: bool
    content: str
    size: int
    etag: str
    parts: int
    checksum: Checksum | None
    attributes: Mapping[str, Any]
    tags: Mapping[str, str]
    modified_at: Instant

    @property
    def sequencer(self) -> str:
        return sequencer(self.sequence)

    @property
    def quoted_etag(self) -> str:
        return f'"{self.etag}"'


def sequencer(sequence: int) -> str:
    """A sequence as events carry it: hexadecimal of one width, so that order as text is order in time."""
    return f"{sequence:018X}"


def next_sequence(tx: Transaction, bucket: str) -> int:
    """A number greater than any given out for this bucket's name before; near the clock's microseconds if it can be."""
    row = tx.one(
        "INSERT INTO s3_sequences (bucket, last) VALUES (:bucket, :clock) ON CONFLICT (bucket) DO UPDATE SET last ="
        " CASE WHEN s3_sequences.last >= excluded.last THEN s3_sequences.last + 1 ELSE excluded.last END"
        " RETURNING last",
        bucket=bucket,
        clock=int(tx.now * 1_000_000),
    )
    assert row is not None
    return int(row["last"])


def current(tx: Transaction, bucket: Bucket, key: str) -> Version | None:
    """The key's current version, which may be a delete marker."""
    row = tx.one(
        f"SELECT {COLUMNS} FROM s3_objects WHERE bucket = :bucket AND key = :key AND current = 1",
        bucket=bucket.name,
        key=key,
    )
    return None if row is None else version(row)


def present(tx: Transaction, bucket: Bucket, key: str) -> Version | None:
    """The key's current version, unless that is a delete marker."""
    found = current(tx, bucket, key)
    return None if found is None or found.delete_marker else found


def with_id(tx: Transaction, bucket: Bucket, key: str, version_id: str) -> Version | None:
    row = tx.one(
        f"SELECT {COLUMNS} FROM s3_objects WHERE bucket = :bucket AND key = :key AND version_id = :version_id",
        bucket=bucket.name,
        key=key,
        version_id=version_id,
    )
    return None if row is None else version(row)


def readable(tx: Transaction, bucket: Bucket, key: str, version_id: str | None) -> Version:
    """The version to be read: NoSuchKey, NoSuchVersion, or MethodNotAllowed when it is a delete marker."""
    if version_id is None:
        found = current(tx, bucket, key)
        if found is None:
            raise refusal("NoSuchKey", Key=key)
        if found.delete_marker:
            raise refusal("NoSuchKey", Key=key, DeleteMarker=True, VersionId=found.version_id)
        return found
    if version_id == "":
        raise refusal("InvalidArgument", "Version id cannot be the empty string", ArgumentName="versionId")
    found = with_id(tx, bucket, key, version_id)
    if found is None:
        raise refusal("NoSuchVersion", Key=key, VersionId=version_id)
    if found.delete_marker:
        raise refusal("MethodNotAllowed", Method="GET", ResourceType="DeleteMarker", DeleteMarker=True)
    return found


def write(tx: Transaction, bucket: Bucket, key: str, draft: Draft) -> Version:
    """Make the draft the key's current version. What it replaces goes, unless the bucket keeps versions."""
    return _add(tx, bucket, key, draft, delete_marker=False)


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a delete did: the marker it made, or the version it removed; neither when there was nothing."""

    marker: Version | None = None
    removed: Version | None = None
    sequence: int = 0


def delete(tx: Transaction, bucket: Bucket, key: str) -> Deletion:
    """Delete a key: a delete marker where versions are kept, else for good."""
    if bucket.versioned:
        draft = Draft("", 0, "d41d8cd98f00b204e9800998ecf8427e", Checksum("", "", ""), {}, {})
        return Deletion(marker=_add(tx, bucket, key, draft, delete_marker=True))
    found = current(tx, bucket, key)
    return Deletion() if found is None else _remove(tx, bucket, found)


def delete_version(tx: Transaction, bucket: Bucket, key: str, version_id: str) -> Deletion:
    """Remove one version for good; the newest of the others becomes current."""
    found = with_id(tx, bucket, key, version_id)
    return Deletion() if found is None else _remove(tx, bucket, found)


def _remove(tx: Transaction, bucket: Bucket, gone: Version) -> Deletion:
    _erase(tx, gone)
    if gone.current:
        tx.run(
            "UPDATE s3_objects SET current = 1 WHERE bucket = :bucket AND key = :key AND sequence ="
            " (SELECT MAX(sequence) FROM s3_objects WHERE bucket = :bucket AND key = :key)",
            bucket=bucket.name,
            key=gone.key,
        )
    return Deletion(removed=gone, sequence=next_sequence(tx, bucket.name))


def _erase(tx: Transaction, gone: Version) -> None:
    tx.run(
        "DELETE FROM s3_objects WHERE bucket = :bucket AND key = :key AND sequence = :sequence",
        bucket=gone.bucket,
        key=gone.key,
        sequence=gone.sequence,
    )
    if gone.content:
        content.forget(tx, gone.content)
        if gone.parts:
            tx.run("DELETE FROM s3_parts WHERE content = :content", content=gone.content)


def _add(tx: Transaction, bucket: Bucket, key: str, draft: Draft, *, delete_marker: bool) -> Version:
    if bucket.versioning != "Enabled":
        replaced = with_id(tx, bucket, key, NULL_VERSION)
        if replaced is not None:
            _erase(tx, replaced)
    tx.run(
        "UPDATE s3_objects SET current = 0 WHERE bucket = :bucket AND key = :key AND current = 1",
        bucket=bucket.name,
        key=key,
    )
    row = tx.one(
        f"INSERT INTO s3_objects ({COLUMNS}) VALUES (:bucket, :key, :sequence, :version_id, 1, :delete_marker, :content,"
        f" :size, :etag, :parts, :checksum, :attributes, :tags, :now) RETURNING {COLUMNS}",
        bucket=bucket.name,
        key=key,
        sequence=next_sequence(tx, bucket.name),
        version_id=tx.token(16) if bucket.versioning == "Enabled" else NULL_VERSION,
        delete_marker=int(delete_marker),
        content=draft.content,
        size=draft.size,
        etag=draft.etag,
        parts=draft.parts,
        checksum=orjson.dumps([draft.checksum.algorithm, draft.checksum.type, draft.checksum.value]).decode(),
        attributes=orjson.dumps(draft.attributes).decode(),
        tags=orjson.dumps(draft.tags).decode(),
        now=tx.now,
    )
    assert row is not None
    return version(row)


def set_tags(tx: Transaction, found: Version, tags: Mapping[str, str]) -> None:
    tx.run(
        "UPDATE s3_objects SET tags = :tags WHERE bucket = :bucket AND key = :key AND sequence = :sequence",
        tags=orjson.dumps(tags).decode(),
        bucket=found.bucket,
        key=found.key,
        sequence=found.sequence,
    )


def version(row: Row) -> Version:
    """A row of s3_objects as a value."""
    algorithm, type_, value = orjson.loads(row["checksum"])
    return Version(
        bucket=row["bucket"],
        key=row["key"],
        sequence=row["sequence"],
        version_id=row["version_id"],
        current=bool(row["current"]),
        delete_marker=bool(row["delete_marker"]),
        content=row["content"],
        size=row["size"],
        etag=row["etag"],
        parts=row["parts"],
        checksum=Checksum(algorithm, type_, value) if algorithm else None,
        attributes=orjson.loads(row["attributes"]),
        tags=orjson.loads(row["tags"]),
        modified_at=row["modified_at"],
    )
