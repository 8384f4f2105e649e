"""Operations of multipart uploads. AWS's shapes in and out; the ideas are in `multipart`."""

from muster.operation import Answer, Operation, Request, Wait
from muster.services.s3 import (
    attributes,
    buckets,
    checksums,
    conditions,
    content,
    events,
    listing,
    multipart,
    objects,
    ranges,
)
from muster.services.s3 import tagging as tags_of
from muster.services.s3.checksums import member
from muster.services.s3.digests import Digests, with_digests
from muster.services.s3.listing import Place
from muster.services.s3.multipart import Upload
from muster.services.s3.names import check_key
from muster.services.s3.object_operations import CHECKSUMS, COMMON, COPY_CONDITIONS, copy_source
from muster.services.s3.refusals import refusal
from muster.store.blobs import Blobs
from muster.transaction import Row, Transaction


def operations(blobs: Blobs) -> dict[str, Operation]:
    """The operations of this module, by name."""
    copier = _Copier(blobs)
    one = COMMON | {"UploadId"}
    return {
        "CreateMultipartUpload": Operation(
            create_multipart_upload, COMMON | attributes.ACCEPTED | {"ChecksumAlgorithm", "ChecksumType"}
        ),
        "UploadPart": Operation(
            upload_part,
            one | CHECKSUMS | {"Body", "PartNumber", "ContentLength", "ContentMD5", "ChecksumAlgorithm"},
        ),
        "UploadPartCopy": Operation(
            copier.upload_part_copy,
            one | COPY_CONDITIONS | {"PartNumber", "CopySource", "CopySourceRange", "ExpectedSourceBucketOwner"},
        ),
        "ListParts": Operation(list_parts, one | {"MaxParts", "PartNumberMarker"}, reads=True),
        "ListMultipartUploads": Operation(
            list_multipart_uploads,
            frozenset(
                {
                    "Bucket",
                    "Delimiter",
                    "EncodingType",
                    "KeyMarker",
                    "MaxUploads",
                    "Prefix",
                    "UploadIdMarker",
                    "ExpectedBucketOwner",
                    "RequestPayer",
                }
            ),
            reads=True,
        ),
        "CompleteMultipartUpload": Operation(
            complete_multipart_upload,
            one | CHECKSUMS | {"MultipartUpload", "ChecksumType", "MpuObjectSize", "IfMatch", "IfNoneMatch"},
        ),
        "AbortMultipartUpload": Operation(abort_multipart_upload, one),
    }


def create_multipart_upload(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    key = request["Key"]
    check_key(key)
    upload = multipart.create(
        tx,
        bucket,
        key,
        request.get("ChecksumAlgorithm"),
        request.get("ChecksumType"),
        attributes.given(request),
        tags_of.from_header(request.get("Tagging")),
    )
    answer: Answer = {
        "Bucket": bucket.name,
        "Key": key,
        "UploadId": upload.id,
        "ServerSideEncryption": "AES256",
    }
    if upload.asked:
        answer |= {"ChecksumAlgorithm": upload.algorithm, "ChecksumType": upload.type}
    return answer


def _asked(tx: Transaction, request: Request) -> Upload:
    return multipart.found(tx, buckets.asked(tx, request), request["Key"], request["UploadId"])


def upload_part(tx: Transaction, request: Request) -> Answer:
    number = request["PartNumber"]
    multipart.check_number(number)
    upload = _asked(tx, request)
    body = content.received(request, upload.algorithm)
    if body.size > multipart.PART_BYTES_MAX:
        raise refusal("EntityTooLarge", ProposedSize=str(body.size), MaxSizeAllowed=str(multipart.PART_BYTES_MAX))
    checksums.check_content_md5(request.get("ContentMD5"), body.md5)
    stated = checksums.given(request)
    checksum = multipart.part_checksum(upload, stated, body.checksums)
    checksums.check(body.checksums, stated)
    content.forget(tx, upload.id, number)
    content.store(tx, upload.id, number, body)
    multipart.record_part(tx, upload, number, body.size, body.md5, checksum)
    return {
        "ETag": f'"{body.md5}"',
        "ServerSideEncryption": "AES256",
        member(upload.algorithm): checksum,
    }


class _Copier:
    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    def upload_part_copy(self, tx: Transaction, request: Request) -> Answer | Wait:
        number = request["PartNumber"]
        multipart.check_number(number)
        upload = _asked(tx, request)
        source = copy_source(tx, request)
        part = ranges.of_copy(request.get("CopySourceRange"), source.size)
        if part.length > multipart.PART_BYTES_MAX:
            raise refusal(
                "InvalidRequest",
                "The specified copy source is larger than the maximum allowable size for a copy source: 5368709120",
            )

        def copied(tx: Transaction, digests: Digests) -> Answer:
            upload = _asked(tx, request)
            again = copy_source(tx, request)
            if again.content != source.content:
                raise refusal("PreconditionFailed", "The source was replaced while it was being copied; try again.")
            checksum = multipart.part_checksum(upload, {}, digests.checksums)
            content.forget(tx, upload.id, number)
            content.copy(tx, source.content, part.start, part.length, upload.id, number)
            multipart.record_part(tx, upload, number, part.length, digests.md5, checksum)
            answer: Answer = {
                "CopyPartResult": {"ETag": f'"{digests.md5}"', "LastModified": tx.now},
                "ServerSideEncryption": "AES256",
            }
            answer["CopyPartResult"][member(upload.algorithm)] = checksum
            if source.version_id != objects.NULL_VERSION:
                answer["CopySourceVersionId"] = source.version_id
            return answer

        known = source.checksum
        whole = part.length == source.size and not source.parts
        if whole and known is not None and known.algorithm == upload.algorithm:
            return copied(tx, Digests(source.etag, {known.algorithm: known.value}))
        return with_digests(tx, self._blobs, source.content, part.start, part.length, upload.algorithm, copied)


def list_parts(tx: Transaction, request: Request) -> Answer:
    upload = _asked(tx, request)
    most = listing.count_asked(request.get("MaxParts"), "max-parts")
    marker = int(request.get("PartNumberMarker") or 0)
    some = multipart.parts(tx, upload.id, marker, most + 1)
    shown = some[:most]
    owner = buckets.owner(tx)
    answer: Answer = {
        "Bucket": upload.bucket,
        "Key": upload.key,
        "UploadId": upload.id,
        "PartNumberMarker": marker,
        "NextPartNumberMarker": shown[-1].number if shown else 0,
        "MaxParts": most,
        "IsTruncated": len(some) > most,
        "Parts": [multipart.described(upload, part) for part in shown],
        "Initiator": owner,
        "Owner": owner,
        "StorageClass": attributes.storage_class(upload.attributes),
    }
    if upload.asked:
        answer |= {"ChecksumAlgorithm": upload.algorithm, "ChecksumType": upload.type}
    return answer


def list_multipart_uploads(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    prefix, delimiter = request.get("Prefix") or "", request.get("Delimiter") or ""
    key_marker, id_marker = request.get("KeyMarker") or "", request.get("UploadIdMarker") or ""
    most = listing.count_asked(request.get("MaxUploads"), "max-uploads")
    written = listing.encoder(request.get("EncodingType"))
    # Without an upload id the marker stands for all uploads of its key.
    place = Place(key_marker, id_marker) if id_marker else listing.after(key_marker, prefix, delimiter)

    def source(place: Place, count: int) -> list[Row]:
        beyond = "key >= :key" if place.inclusive else "key > :key"
        tied = " OR (key = :key AND id > :tie)" if place.tie else ""
        return tx.all(
            f"SELECT s3_uploads.*, id AS tie FROM s3_uploads WHERE bucket = :bucket AND ({beyond}{tied})"
            " ORDER BY key, id LIMIT :count",
            bucket=bucket.name,
            key=place.key,
            tie=place.tie,
            count=count,
        )

    page = listing.page(source, multipart.upload, place, prefix, delimiter, most)
    owner = buckets.owner(tx)
    answer: Answer = {
        "Bucket": bucket.name,
        "KeyMarker": written(key_marker),
        "UploadIdMarker": id_marker,
        "Prefix": written(prefix),
        "MaxUploads": most,
        "IsTruncated": page.truncated,
        "Uploads": [
            {
                "UploadId": upload.id,
                "Key": written(upload.key),
                "Initiated": upload.initiated_at,
                "StorageClass": attributes.storage_class(upload.attributes),
                "Owner": owner,
                "Initiator": owner,
                **({"ChecksumAlgorithm": upload.algorithm, "ChecksumType": upload.type} if upload.asked else {}),
            }
            for upload in page.items
        ],
        "CommonPrefixes": [{"Prefix": written(common)} for common in page.prefixes],
    }
    if delimiter:
        answer["Delimiter"] = written(delimiter)
    if request.get("EncodingType"):
        answer["EncodingType"] = request["EncodingType"]
    if isinstance(page.last, Upload):
        answer |= {"NextKeyMarker": written(page.last.key), "NextUploadIdMarker": page.last.id}
    elif page.truncated and page.last is not None:
        answer["NextKeyMarker"] = written(page.last)
    return answer


def complete_multipart_upload(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    key = request["Key"]
    before = multipart.answered_before(tx, bucket, key, request["UploadId"])
    if before is not None:
        return before
    upload = multipart.found(tx, bucket, key, request["UploadId"])
    conditions.check_write(key, objects.present(tx, bucket, key), request)
    stated = (request.get("MultipartUpload") or {}).get("Parts") or []
    draft = multipart.assemble(tx, upload, stated, request)
    version = objects.write(tx, bucket, key, draft)
    events.created(tx, bucket, version, "CompleteMultipartUpload")
    return multipart.completed_answer(tx, bucket, version)


def abort_multipart_upload(tx: Transaction, request: Request) -> Answer:
    multipart.abort(tx, _asked(tx, request))
    return {}
