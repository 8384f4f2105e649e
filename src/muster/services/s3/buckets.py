"""Buckets: created, found, listed, deleted when empty; and one JSON document per kind of setting.

Does not know what the settings mean, nor what lies in a bucket.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from muster.clock import Instant
from muster.services.s3.names import check_bucket_name
from muster.services.s3.refusals import refusal
from muster.transaction import Row, Transaction

# AWS's own default; in every other region the second creation of a bucket is refused.
FIRST_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class Bucket:
    name: str
    region: str
    created_at: Instant
    versioning: str

    @property
    def arn(self) -> str:
        return f"arn:aws:s3:::{self.name}"

    @property
    def versioned(self) -> bool:
        """Whether versions have ids that a client should see."""
        return self.versioning != ""


def owner(tx: Transaction) -> dict[str, str]:
    """The account as S3 names it: a canonical user id of 64 hexadecimal digits."""
    return {"ID": hashlib.sha256(tx.account.encode()).hexdigest()}


def check_owner(tx: Transaction, expected: str | None) -> None:
    if expected is not None and expected != tx.account:
        raise refusal("AccessDenied")


def named(tx: Transaction, name: str, expected_owner: str | None = None) -> Bucket:
    """The bucket; NoSuchBucket when there is none."""
    row = tx.one("SELECT name, region, created_at, versioning FROM s3_buckets WHERE name = :name", name=name)
    if row is None:
        raise refusal("NoSuchBucket", BucketName=name)
    check_owner(tx, expected_owner)
    return _bucket(row)


def asked(tx: Transaction, request: Mapping[str, Any]) -> Bucket:
    """The bucket that a request names."""
    return named(tx, request["Bucket"], request.get("ExpectedBucketOwner"))


def create(tx: Transaction, name: str, location: str | None) -> None:
    """Create a bucket in the transaction's region.

    A second creation by the same account is no error in us-east-1 and BucketAlreadyOwnedByYou elsewhere, as AWS has it.
    """
    check_bucket_name(name)
    _check_location(tx, location)
    created = tx.run(
        "INSERT INTO s3_buckets (name, region, created_at) VALUES (:name, :region, :now) ON CONFLICT DO NOTHING",
        name=name,
        region=tx.region,
        now=tx.now,
    )
    if not created and tx.region != FIRST_REGION:
        raise refusal("BucketAlreadyOwnedByYou", BucketName=name)


def _check_location(tx: Transaction, location: str | None) -> None:
    if location is None:
        if tx.region != FIRST_REGION:
            raise refusal("IllegalLocationConstraintException")
    elif location == FIRST_REGION:
        raise refusal("InvalidLocationConstraint", LocationConstraint=location)
    elif location != tx.region and not (location == "EU" and tx.region == "eu-west-1"):
        raise refusal(
            "IllegalLocationConstraintException",
            f"The {location} location constraint is incompatible for the region specific endpoint this request was"
            " sent to.",
        )


def delete(tx: Transaction, bucket: Bucket) -> None:
    """Delete a bucket; BucketNotEmpty while any version or delete marker is in it. Its unfinished uploads must go too."""
    for table in ("s3_objects", "s3_uploads"):
        if tx.one(f"SELECT 1 AS found FROM {table} WHERE bucket = :name LIMIT 1", name=bucket.name) is not None:
            raise refusal("BucketNotEmpty", BucketName=bucket.name)
    tx.run("DELETE FROM s3_buckets WHERE name = :name", name=bucket.name)


def page(tx: Transaction, prefix: str, after: str, count: int) -> list[Bucket]:
    """Up to `count` buckets in the order of their names."""
    rows = tx.all(
        "SELECT name, region, created_at, versioning FROM s3_buckets"
        " WHERE name > :after AND substr(name, 1, :length) = :prefix ORDER BY name LIMIT :count",
        after=after,
        prefix=prefix,
        length=len(prefix),
        count=count,
    )
    return [_bucket(row) for row in rows]


def set_versioning(tx: Transaction, bucket: Bucket, status: str) -> None:
    tx.run("UPDATE s3_buckets SET versioning = :status WHERE name = :name", status=status, name=bucket.name)


def setting(tx: Transaction, bucket: Bucket, kind: str) -> Any:
    """The document of that kind, or None."""
    row = tx.one("SELECT document FROM s3_settings WHERE bucket = :name AND kind = :kind", name=bucket.name, kind=kind)
    return None if row is None else orjson.loads(row["document"])


def put_setting(tx: Transaction, bucket: Bucket, kind: str, document: Any) -> None:
    tx.run(
        "INSERT INTO s3_settings (bucket, kind, document) VALUES (:name, :kind, :document)"
        " ON CONFLICT (bucket, kind) DO UPDATE SET document = excluded.document",
        name=bucket.name,
        kind=kind,
        document=orjson.dumps(document).decode(),
    )


def delete_setting(tx: Transaction, bucket: Bucket, kind: str) -> None:
    tx.run("DELETE FROM s3_settings WHERE bucket = :name AND kind = :kind", name=bucket.name, kind=kind)


def _bucket(row: Row) -> Bucket:
    return Bucket(row["name"], row["region"], row["created_at"], row["versioning"])
