"""Multipart uploads: begun, fed with parts, listed, completed into an object or aborted.

Keeps true: parts are nothing to anyone until the upload is completed; completing copies nothing, for the upload's id
becomes the object's content id; completing again answers the same; what is not in the completed list is let go of.
Source: "Uploading and copying objects using multipart upload" in the Amazon S3 user guide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import orjson

from muster.clock import Instant
from muster.services.s3 import checksums, content
from muster.services.s3.buckets import Bucket
from muster.services.s3.checksums import CRCS, DEFAULT, member
from muster.services.s3.objects import Checksum, Draft, Version
from muster.services.s3.refusals import invalid_argument, refusal
from muster.transaction import Row, Transaction

PART_BYTES_MIN = 5 * 1024 * 1024
PART_BYTES_MAX = 5 * 1024**3
OBJECT_BYTES_MAX = 50 * 1024**4
PARTS_MAX = 10_000
# For so long a completed upload can be completed again.
REMEMBER_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload in progress; `asked` means that the client named the checksum algorithm itself."""

    id: str
    bucket: str
    key: str
    algorithm: str
    type: str
    asked: bool
    attributes: Mapping[str, Any]
    tags: Mapping[str, str]
    initiated_at: Instant


@dataclass(frozen=True, slots=True)
class Part:
    """A part as a row holds it; `checksum` is base64 of the upload's algorithm."""

    number: int
    size: int
    etag: str
    checksum: str
    modified_at: Instant


def checksum_kind(algorithm: str | None, type_: str | None) -> tuple[str, str]:
    """The checksum algorithm and type of a new upload; InvalidRequest for pairs that AWS does not have."""
    if algorithm is None:
        if type_ is not None:
            raise refusal(
                "InvalidRequest",
                "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.",
            )
        return DEFAULT, "FULL_OBJECT"
    if algorithm not in checksums.ALGORITHMS:
        raise refusal("InvalidRequest", f"Muster does not support the checksum algorithm {algorithm}.")
    chosen = type_ or ("FULL_OBJECT" if algorithm == "CRC64NVME" else "COMPOSITE")
    if (chosen == "FULL_OBJECT" and algorithm not in CRCS) or (chosen == "COMPOSITE" and algorithm == "CRC64NVME"):
        raise refusal(
            "InvalidRequest",
            f"The {chosen} checksum type cannot be used with the {algorithm.lower()} checksum algorithm.",
        )
    return algorithm, chosen


def create(
    tx: Transaction,
    bucket: Bucket,
    key: str,
    algorithm: str | None,
    type_: str | None,
    attributes: Mapping[str, Any],
    tags: Mapping[str, str],
) -> Upload:
    chosen, chosen_type = checksum_kind(algorithm, type_)
    upload = Upload(tx.new_id(), bucket.name, key, chosen, chosen_type, algorithm is not None, attributes, tags, tx.now)
    tx.run(
        "INSERT INTO s3_uploads (id, bucket, key, algorithm, type, asked, attributes, tags, initiated_at) VALUES"
        " (:id, :bucket, :key, :algorithm, :type, :asked, :attributes, :tags, :now)",
        id=upload.id,
        bucket=bucket.name,
        key=key,
        algorithm=chosen,
        type=chosen_type,
        asked=int(upload.asked),
        attributes=orjson.dumps(attributes).decode(),
        tags=orjson.dumps(tags).decode(),
        now=tx.now,
    )
    return upload


def found(tx: Transaction, bucket: Bucket, key: str, upload_id: str) -> Upload:
    """The upload; NoSuchUpload when there is none of this id for this key."""
    row = tx.one(
        "SELECT * FROM s3_uploads WHERE id = :id AND bucket = :bucket AND key = :key",
        id=upload_id,
        bucket=bucket.name,
        key=key,
    )
    if row is None:
        raise refusal("NoSuchUpload", UploadId=upload_id)
    return upload(row)


def upload(row: Row) -> Upload:
    return Upload(
        row["id"],
        row["bucket"],
        row["key"],
        row["algorithm"],
        row["type"],
        bool(row["asked"]),
        orjson.loads(row["attributes"]),
        orjson.loads(row["tags"]),
        row["initiated_at"],
    )


def check_number(number: int) -> None:
    if not 1 <= number <= PARTS_MAX:
        raise invalid_argument("Part number must be an integer between 1 and 10000, inclusive", "partNumber", number)


def part_checksum(upload: Upload, stated: Mapping[str, str], computed: Mapping[str, str]) -> str:
    """The checksum to keep for a part; InvalidRequest when the client used another algorithm than the upload's."""
    for algorithm in stated:
        if upload.asked and algorithm != upload.algorithm:
            raise refusal(
                "InvalidRequest",
                f"Checksum Type mismatch occurred, expected checksum Type: {upload.algorithm.lower()}, actual checksum"
                f" Type: {algorithm.lower()}",
            )
    checksum = computed.get(upload.algorithm)
    if checksum is None:
        raise refusal(
            "InvalidRequest",
            f"Checksum Type mismatch occurred, expected checksum Type: {upload.algorithm.lower()}, actual checksum"
            " Type: null",
        )
    return checksum


def record_part(tx: Transaction, upload: Upload, number: int, size: int, etag: str, checksum: str) -> None:
    """Write down a part whose pieces are stored; it takes the place of one of the same number."""
    tx.run(
        "INSERT INTO s3_parts (content, number, size, etag, checksum, modified_at)"
        " VALUES (:content, :number, :size, :etag, :checksum, :now)"
        " ON CONFLICT (content, number) DO UPDATE SET size = excluded.size, etag = excluded.etag,"
        " checksum = excluded.checksum, modified_at = excluded.modified_at",
        content=upload.id,
        number=number,
        size=size,
        etag=etag,
        checksum=checksum,
        now=tx.now,
    )


def parts(tx: Transaction, content_id: str, after: int = 0, count: int = PARTS_MAX) -> list[Part]:
    """Up to `count` parts of an upload or object, behind number `after`."""
    rows = tx.all(
        "SELECT number, size, etag, checksum, modified_at FROM s3_parts"
        " WHERE content = :content AND number > :after ORDER BY number LIMIT :count",
        content=content_id,
        after=after,
        count=count,
    )
    return [Part(row["number"], row["size"], row["etag"], row["checksum"], row["modified_at"]) for row in rows]


def abort(tx: Transaction, upload: Upload) -> None:
    content.forget(tx, upload.id)
    tx.run("DELETE FROM s3_parts WHERE content = :id", id=upload.id)
    tx.run("DELETE FROM s3_uploads WHERE id = :id", id=upload.id)


def assemble(tx: Transaction, upload: Upload, stated: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> Draft:
    """The object that the stated parts make; the upload is over.

    InvalidPartOrder, InvalidPart, EntityTooSmall, BadDigest and InvalidRequest as AWS refuses a list that is wrong.
    """
    chosen = _chosen(tx, upload, stated)
    size = sum(part.size for part in chosen)
    if request.get("MpuObjectSize") is not None and request["MpuObjectSize"] != size:
        raise refusal(
            "InvalidRequest",
            f"The provided 'x-amz-mp-object-size' header value {request['MpuObjectSize']} does not match what was"
            f" computed: {size}",
        )
    if size > OBJECT_BYTES_MAX:
        raise refusal("EntityTooLarge", ProposedSize=str(size), MaxSizeAllowed=str(OBJECT_BYTES_MAX))
    checksum = _whole_checksum(upload, chosen)
    _check_whole(upload, checksum, request)
    listed = {part.number for part in chosen}
    for part in parts(tx, upload.id):
        if part.number not in listed:
            content.forget(tx, upload.id, part.number)
            tx.run("DELETE FROM s3_parts WHERE content = :id AND number = :number", id=upload.id, number=part.number)
    tx.run("DELETE FROM s3_uploads WHERE id = :id", id=upload.id)
    etag = checksums.multipart_etag(part.etag for part in chosen)
    return Draft(upload.id, size, etag, checksum, upload.attributes, upload.tags, parts=len(chosen))


def _chosen(tx: Transaction, upload: Upload, stated: Sequence[Mapping[str, Any]]) -> list[Part]:
    if not stated:
        raise refusal("MalformedXML")
    numbers = [one.get("PartNumber", 0) for one in stated]
    if any(second <= first for first, second in pairwise(numbers)):
        raise refusal("InvalidPartOrder", UploadId=upload.id)
    there = {part.number: part for part in parts(tx, upload.id)}
    chosen: list[Part] = []
    for one, number in zip(stated, numbers, strict=True):
        etag = str(one.get("ETag", "")).strip('"')
        part = there.get(number)
        if part is None or part.etag != etag:
            raise refusal("InvalidPart", UploadId=upload.id, PartNumber=str(number), ETag=etag)
        _check_part_checksum(upload, part, one)
        chosen.append(part)
    for part in chosen[:-1]:
        if part.size < PART_BYTES_MIN:
            raise refusal(
                "EntityTooSmall",
                ProposedSize=str(part.size),
                MinSizeAllowed=str(PART_BYTES_MIN),
                PartNumber=str(part.number),
                ETag=part.etag,
            )
    return chosen


def _check_part_checksum(upload: Upload, part: Part, stated: Mapping[str, Any]) -> None:
    given = checksums.given(stated)
    for algorithm, value in given.items():
        if algorithm != upload.algorithm or value != part.checksum:
            raise refusal("InvalidPart", UploadId=upload.id, PartNumber=str(part.number), ETag=part.etag)
    if not given and upload.asked and upload.type == "COMPOSITE":
        raise refusal(
            "InvalidRequest",
            f"The upload was created using a {upload.algorithm.lower()} checksum. The complete request must include the"
            f" checksum for each part. It was missing for part {part.number} in the request.",
        )


def _whole_checksum(upload: Upload, chosen: Sequence[Part]) -> Checksum:
    if upload.type == "COMPOSITE":
        value = checksums.composite(upload.algorithm, (part.checksum for part in chosen))
    else:
        value = checksums.full_object(upload.algorithm, ((part.checksum, part.size) for part in chosen))
    return Checksum(upload.algorithm, upload.type, value)


def _check_whole(upload: Upload, checksum: Checksum, request: Mapping[str, Any]) -> None:
    stated_type = request.get("ChecksumType")
    if stated_type is not None and stated_type != upload.type:
        raise refusal(
            "InvalidRequest",
            f"The upload was created using the {upload.type} checksum mode. The complete request must use the same"
            " checksum mode.",
        )
    for algorithm, value in checksums.given(request).items():
        if algorithm != upload.algorithm:
            raise refusal(
                "InvalidRequest",
                f"Checksum Type mismatch occurred, expected checksum Type: {upload.algorithm.lower()}, actual checksum"
                f" Type: {algorithm.lower()}",
            )
        if value not in (checksum.value, checksum.value.rpartition("-")[0]):
            raise refusal("BadDigest", f"The {algorithm.lower()} you specified did not match the calculated checksum.")


def completed_answer(tx: Transaction, bucket: Bucket, version: Version) -> dict[str, Any]:
    """What CompleteMultipartUpload answers, remembered for the next time it is asked."""
    answer: dict[str, Any] = {
        "Location": f"https://{bucket.name}.s3.{tx.region}.amazonaws.com/{quote(version.key, safe='/')}",
        "Bucket": bucket.name,
        "Key": version.key,
        "ETag": version.quoted_etag,
        "ServerSideEncryption": "AES256",
    }
    if version.checksum is not None:
        answer |= version.checksum.members()
    if bucket.versioned:
        answer["VersionId"] = version.version_id
    tx.run("DELETE FROM s3_completed WHERE completed_at < :old", old=tx.now - REMEMBER_SECONDS)
    tx.run(
        "INSERT INTO s3_completed (id, bucket, key, answer, completed_at) VALUES (:id, :bucket, :key, :answer, :now)",
        id=version.content,
        bucket=bucket.name,
        key=version.key,
        answer=orjson.dumps(answer).decode(),
        now=tx.now,
    )
    return answer


def answered_before(tx: Transaction, bucket: Bucket, key: str, upload_id: str) -> dict[str, Any] | None:
    """The answer to an upload that was completed already, if it was."""
    row = tx.one(
        "SELECT answer FROM s3_completed WHERE id = :id AND bucket = :bucket AND key = :key",
        id=upload_id,
        bucket=bucket.name,
        key=key,
    )
    return None if row is None else dict(orjson.loads(row["answer"]))


def described(upload: Upload, part: Part) -> dict[str, Any]:
    """A part as ListParts answers it."""
    return {
        "PartNumber": part.number,
        "LastModified": part.modified_at,
        "ETag": f'"{part.etag}"',
        "Size": part.size,
        member(upload.algorithm): part.checksum,
    }
