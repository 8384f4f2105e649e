"""Operations on one object: put, get, head, copy, delete, attributes and tags. AWS's shapes in and out.

Does not know how bytes arrive: a body is Content from the wire, or small and at hand.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from muster.errors import ServiceError
from muster.operation import Answer, Operation, Request, Wait
from muster.services.s3 import attributes, buckets, checksums, conditions, content, events, multipart, objects, ranges
from muster.services.s3 import tagging as tags_of
from muster.services.s3.buckets import Bucket
from muster.services.s3.checksums import ALGORITHMS, DEFAULT, MEMBERS
from muster.services.s3.digests import Digests, with_digests
from muster.services.s3.names import check_key
from muster.services.s3.objects import Checksum, Draft, Version
from muster.services.s3.refusals import invalid_argument, refusal
from muster.store.blobs import Blobs
from muster.transaction import Transaction

PUT_BYTES_MAX = 5 * 1024**3
DELETE_KEYS_MAX = 1000

COMMON = frozenset({"Bucket", "Key", "ExpectedBucketOwner", "RequestPayer"})
CHECKSUMS = frozenset(MEMBERS)
# What a sibling may read at once: the largest package that a function may have, unpacked.
READ_BYTES_MAX = 262_144_000
RESPONSE_OVERRIDES = {
    "ResponseCacheControl": "CacheControl",
    "ResponseContentDisposition": "ContentDisposition",
    "ResponseContentEncoding": "ContentEncoding",
    "ResponseContentLanguage": "ContentLanguage",
    "ResponseContentType": "ContentType",
    "ResponseExpires": "Expires",
}
READ_CONDITIONS = frozenset({"IfMatch", "IfNoneMatch", "IfModifiedSince", "IfUnmodifiedSince"})
COPY_CONDITIONS = frozenset(
    {"CopySourceIfMatch", "CopySourceIfNoneMatch", "CopySourceIfModifiedSince", "CopySourceIfUnmodifiedSince"}
)


def operations(blobs: Blobs) -> dict[str, Operation]:
    """The operations of this module, by name."""
    faces = _Faces(blobs)
    read = (
        COMMON | READ_CONDITIONS | frozenset(RESPONSE_OVERRIDES) | {"VersionId", "Range", "PartNumber", "ChecksumMode"}
    )
    put = (
        COMMON
        | CHECKSUMS
        | attributes.ACCEPTED
        | {"Body", "ContentLength", "ContentMD5", "ChecksumAlgorithm", "IfMatch", "IfNoneMatch"}
    )
    tags = COMMON | {"VersionId"}
    return {
        "PutObject": Operation(lambda tx, request: put_object(tx, request, "PutObject"), put),
        # What a browser's form upload becomes: the same as PutObject, but for the reason in its event.
        "PostObject": Operation(lambda tx, request: put_object(tx, request, "POST Object"), put),
        "GetObject": Operation(faces.get_object, read, reads=True),
        "HeadObject": Operation(faces.head_object, read, reads=True),
        # For siblings that need an object whole and at once: a function's code, a template.
        "ReadObject": Operation(faces.read_object, read, reads=True, internal=True),
        "CopyObject": Operation(
            faces.copy_object,
            COMMON
            | COPY_CONDITIONS
            | attributes.ACCEPTED
            | {
                "CopySource",
                "MetadataDirective",
                "TaggingDirective",
                "ChecksumAlgorithm",
                "IfMatch",
                "IfNoneMatch",
                "ExpectedSourceBucketOwner",
            },
        ),
        "DeleteObject": Operation(delete_object, COMMON | {"VersionId", "IfMatch"}),
        "DeleteObjects": Operation(
            delete_objects, frozenset({"Bucket", "Delete", "ExpectedBucketOwner", "RequestPayer", "ChecksumAlgorithm"})
        ),
        "GetObjectAttributes": Operation(
            get_object_attributes,
            COMMON | {"VersionId", "MaxParts", "PartNumberMarker", "ObjectAttributes"},
            reads=True,
        ),
        "GetObjectTagging": Operation(get_object_tagging, tags, reads=True),
        "PutObjectTagging": Operation(put_object_tagging, tags | {"Tagging", "ContentMD5", "ChecksumAlgorithm"}),
        "DeleteObjectTagging": Operation(delete_object_tagging, tags),
        "GetObjectAcl": Operation(get_object_acl, tags, reads=True),
        "PutObjectAcl": Operation(
            put_object_acl, tags | {"ACL", "AccessControlPolicy", "ContentMD5", "ChecksumAlgorithm"}
        ),
    }


def put_object(tx: Transaction, request: Request, reason: str) -> Answer:
    bucket = buckets.asked(tx, request)
    key = request["Key"]
    check_key(key)
    given_attributes = attributes.given(request)
    tags = tags_of.from_header(request.get("Tagging"))
    named = request.get("ChecksumAlgorithm")
    if named is not None and named not in ALGORITHMS:
        raise refusal("InvalidRequest", f"Muster does not support the checksum algorithm {named}.")
    body = content.received(request, *([named] if named else []))
    if body.size > PUT_BYTES_MAX:
        raise refusal("EntityTooLarge", ProposedSize=str(body.size), MaxSizeAllowed=str(PUT_BYTES_MAX))
    checksums.check_content_md5(request.get("ContentMD5"), body.md5)
    stated = checksums.given(request)
    checksums.check(body.checksums, stated)
    conditions.check_write(key, objects.present(tx, bucket, key), request)
    algorithm = next(iter(stated), named or DEFAULT)
    owner = tx.new_id()
    content.store(tx, owner, 1, body)
    draft = Draft(
        owner,
        body.size,
        body.md5,
        Checksum(algorithm, "FULL_OBJECT", body.checksums[algorithm]),
        given_attributes,
        tags,
    )
    version = objects.write(tx, bucket, key, draft)
    events.created(tx, bucket, version, reason)
    return _written(bucket, version)


def _written(bucket: Bucket, version: Version) -> Answer:
    assert version.checksum is not None
    answer: Answer = {
        "ETag": version.quoted_etag,
        **version.checksum.members(),
        "ServerSideEncryption": "AES256",
    }
    if bucket.versioned:
        answer["VersionId"] = version.version_id
    return answer


class _Faces:
    """The operations that read blobs."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    def get_object(self, tx: Transaction, request: Request) -> Answer:
        version, asked, answer = _described(tx, request)
        answer["Body"] = content.body(tx, self._blobs, version.content, asked.start, asked.length)
        return answer

    def read_object(self, tx: Transaction, request: Request) -> Answer:
        version, asked, answer = _described(tx, request)
        if asked.length > READ_BYTES_MAX:
            raise refusal("EntityTooLarge", ProposedSize=str(asked.length), MaxSizeAllowed=str(READ_BYTES_MAX))
        answer["Body"] = content.read(self._blobs, content.slices(tx, version.content, asked.start, asked.length))
        return answer

    def head_object(self, tx: Transaction, request: Request) -> Answer:
        return _described(tx, request)[2]

    def copy_object(self, tx: Transaction, request: Request) -> Answer | Wait:
        bucket = buckets.asked(tx, request)
        key = request["Key"]
        check_key(key)
        source = copy_source(tx, request)
        if source.size > PUT_BYTES_MAX:
            raise refusal(
                "InvalidRequest",
                "The specified copy source is larger than the maximum allowable size for a copy source: 5368709120",
            )
        replace = _directive(request, "MetadataDirective") == "REPLACE"
        if (source.bucket, source.key) == (bucket.name, key) and not replace and "VersionId" not in request:
            changed = request.get("StorageClass") or request.get("WebsiteRedirectLocation")
            if not changed and "versionId=" not in request["CopySource"]:
                raise refusal(
                    "InvalidRequest",
                    "This copy request is illegal because it is trying to copy an object to itself without changing the"
                    " object's metadata, storage class, website redirect location or encryption attributes.",
                )
        conditions.check_write(key, objects.present(tx, bucket, key), request)
        algorithm = request.get("ChecksumAlgorithm") or (source.checksum.algorithm if source.checksum else DEFAULT)
        if algorithm not in ALGORITHMS:
            raise refusal("InvalidRequest", f"Muster does not support the checksum algorithm {algorithm}.")
        known = source.checksum
        if not source.parts and known is not None and known.algorithm == algorithm and known.type == "FULL_OBJECT":
            return _copied(tx, request, source, Digests(source.etag, {algorithm: known.value}), algorithm)
        return with_digests(
            tx,
            self._blobs,
            source.content,
            0,
            source.size,
            algorithm,
            lambda tx, digests: _copied(tx, request, copy_source(tx, request), digests, algorithm, source.content),
        )


def _copied(
    tx: Transaction,
    request: Request,
    source: Version,
    digests: Digests,
    algorithm: str,
    digested: str | None = None,
) -> Answer:
    if digested is not None and source.content != digested:
        raise refusal("PreconditionFailed", "The source was replaced while it was being copied; try again.")
    bucket = buckets.asked(tx, request)
    key = request["Key"]
    conditions.check_write(key, objects.present(tx, bucket, key), request)
    given_attributes = dict(attributes.given(request))
    if _directive(request, "MetadataDirective") == "COPY":
        kept = {name: value for name, value in source.attributes.items() if name != "StorageClass"}
        given_attributes = kept | {
            name: given_attributes[name]
            for name in ("StorageClass", "WebsiteRedirectLocation")
            if name in given_attributes
        }
    tags = source.tags
    if _directive(request, "TaggingDirective") == "REPLACE":
        tags = tags_of.from_header(request.get("Tagging"))
    owner = tx.new_id()
    content.copy(tx, source.content, 0, source.size, owner, 1)
    draft = Draft(
        owner,
        source.size,
        digests.md5,
        Checksum(algorithm, "FULL_OBJECT", digests.checksums[algorithm]),
        given_attributes,
        tags,
    )
    version = objects.write(tx, bucket, key, draft)
    events.created(tx, bucket, version, "CopyObject")
    assert version.checksum is not None
    answer: Answer = {
        "CopyObjectResult": {
            "ETag": version.quoted_etag,
            "LastModified": version.modified_at,
            **version.checksum.members(),
        },
        "ServerSideEncryption": "AES256",
    }
    if bucket.versioned:
        answer["VersionId"] = version.version_id
    if source.version_id != objects.NULL_VERSION:
        answer["CopySourceVersionId"] = source.version_id
    return answer


def _directive(request: Request, name: str) -> str:
    stated = request.get(name)
    if stated not in (None, "COPY", "REPLACE"):
        raise invalid_argument(f"Unknown {name[:-9].lower()} directive.", name, stated)
    return str(stated or "COPY")


def copy_source(tx: Transaction, request: Request) -> Version:
    """The version that CopySource names ("bucket/key", URL-encoded, with ?versionId=), once its conditions are met."""
    stated: Any = request["CopySource"]
    if isinstance(stated, Mapping):
        bucket_name, key, version_id = stated["Bucket"], stated["Key"], stated.get("VersionId")
    else:
        path, _, query = str(stated).partition("?versionId=")
        version_id = unquote(query) if query else None
        bucket_name, slash, key = unquote(path).removeprefix("/").partition("/")
        if not slash or not bucket_name or not key:
            raise invalid_argument(
                "Copy Source must mention the source bucket and key: sourcebucket/sourcekey",
                "x-amz-copy-source",
                stated,
            )
    bucket = buckets.named(tx, bucket_name, request.get("ExpectedSourceBucketOwner"))
    try:
        found = objects.readable(tx, bucket, key, version_id)
    except ServiceError as error:
        if error.code == "MethodNotAllowed":
            raise refusal(
                "InvalidRequest",
                "The source of a copy request may not specifically refer to a delete marker by version id.",
            ) from error
        raise
    conditions.check_copy_source(found, request)
    return found


def _described(tx: Transaction, request: Request) -> tuple[Version, ranges.Range, Answer]:
    bucket = buckets.asked(tx, request)
    version = objects.readable(tx, bucket, request["Key"], request.get("VersionId"))
    conditions.check_read(version, request)
    answer: Answer = {
        "AcceptRanges": "bytes",
        "LastModified": version.modified_at,
        "ETag": version.quoted_etag,
        **attributes.answered(version.attributes),
    }
    if bucket.versioned:
        answer["VersionId"] = version.version_id
    if version.tags:
        answer["TagCount"] = len(version.tags)
    for override, name in RESPONSE_OVERRIDES.items():
        if request.get(override) is not None:
            answer[name] = request[override]
    asked = _asked_range(tx, version, request, answer)
    if asked is None:
        asked = ranges.Range(0, version.size)
        if request.get("ChecksumMode") == "ENABLED" and version.checksum is not None:
            answer |= version.checksum.members()
    else:
        answer["ContentRange"] = asked.header(version.size)
    answer["ContentLength"] = asked.length
    return version, asked, answer


def _asked_range(tx: Transaction, version: Version, request: Request, answer: Answer) -> ranges.Range | None:
    number = request.get("PartNumber")
    if number is None:
        return ranges.asked(request.get("Range"), version.size)
    if request.get("Range") is not None:
        raise refusal("InvalidRequest", "Cannot specify both Range header and partNumber query parameter")
    multipart.check_number(number)
    if not version.parts:
        if number != 1:
            raise refusal("InvalidPartNumber", PartNumberRequested=str(number), ActualPartCount="1")
        return ranges.Range(0, version.size) if version.size else None
    if number > version.parts:
        raise refusal("InvalidPartNumber", PartNumberRequested=str(number), ActualPartCount=str(version.parts))
    all_parts = multipart.parts(tx, version.content)
    answer["PartsCount"] = version.parts
    part = all_parts[number - 1]
    if request.get("ChecksumMode") == "ENABLED" and version.checksum is not None:
        answer[checksums.member(version.checksum.algorithm)] = part.checksum
        answer["ChecksumType"] = version.checksum.type
    return ranges.Range(sum(before.size for before in all_parts[: number - 1]), part.size)


def delete_object(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    return _deleted(tx, bucket, request["Key"], request.get("VersionId"), request.get("IfMatch"))


def _deleted(tx: Transaction, bucket: Bucket, key: str, version_id: str | None, if_match: str | None) -> Answer:
    check_key(key)
    if if_match is not None:
        conditions.check_write(key, objects.present(tx, bucket, key), {"IfMatch": if_match})
    if version_id is None:
        deletion = objects.delete(tx, bucket, key)
    else:
        if version_id == "":
            raise refusal("InvalidArgument", "Version id cannot be the empty string", ArgumentName="versionId")
        deletion = objects.delete_version(tx, bucket, key, version_id)
        if deletion.removed is None and version_id != objects.NULL_VERSION:
            raise refusal("NoSuchVersion", Key=key, VersionId=version_id)
    events.deleted(tx, bucket, deletion)
    answer: Answer = {}
    if deletion.marker is not None:
        answer = {"DeleteMarker": True, "VersionId": deletion.marker.version_id}
    elif version_id is not None:
        answer = {"VersionId": version_id}
        if deletion.removed is not None and deletion.removed.delete_marker:
            answer["DeleteMarker"] = True
    return answer


def delete_objects(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    stated = request["Delete"]
    asked = stated.get("Objects") or []
    if not 0 < len(asked) <= DELETE_KEYS_MAX:
        raise refusal("MalformedXML")
    deleted: list[Answer] = []
    errors: list[Answer] = []
    for one in asked:
        if one.keys() - {"Key", "VersionId", "ETag"}:
            strange = ", ".join(sorted(one.keys() - {"Key", "VersionId", "ETag"}))
            raise refusal("NotImplemented", f"Muster does not support {strange} in DeleteObjects.")
        key, version_id = one["Key"], one.get("VersionId")
        named: Answer = {"Key": key} | ({"VersionId": version_id} if version_id is not None else {})
        try:
            with tx.savepoint():
                answer = _deleted(tx, bucket, key, version_id, one.get("ETag"))
        except ServiceError as error:
            errors.append(named | {"Code": error.code, "Message": error.message})
        else:
            if answer.get("DeleteMarker"):
                named |= {"DeleteMarker": True, "DeleteMarkerVersionId": answer["VersionId"]}
            deleted.append(named)
    found: Answer = {}
    if deleted and not stated.get("Quiet"):
        found["Deleted"] = deleted
    if errors:
        found["Errors"] = errors
    return found


def get_object_attributes(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    version = objects.readable(tx, bucket, request["Key"], request.get("VersionId"))
    wanted = set(request["ObjectAttributes"])
    answer: Answer = {"LastModified": version.modified_at}
    if bucket.versioned:
        answer["VersionId"] = version.version_id
    if "ETag" in wanted:
        answer["ETag"] = version.etag
    if "Checksum" in wanted and version.checksum is not None:
        answer["Checksum"] = version.checksum.members()
    if "StorageClass" in wanted:
        answer["StorageClass"] = attributes.storage_class(version.attributes)
    if "ObjectSize" in wanted:
        answer["ObjectSize"] = version.size
    if "ObjectParts" in wanted and version.parts:
        answer["ObjectParts"] = _object_parts(tx, version, request)
    return answer


def _object_parts(tx: Transaction, version: Version, request: Request) -> Answer:
    most = min(int(request.get("MaxParts") or 1000), 1000)
    marker = int(request.get("PartNumberMarker") or 0)
    some = multipart.parts(tx, version.content, marker, most + 1)
    shown = some[:most]
    answer: Answer = {
        "TotalPartsCount": version.parts,
        "PartNumberMarker": str(marker),
        "MaxParts": most,
        "IsTruncated": len(some) > most,
        "NextPartNumberMarker": str(shown[-1].number if shown else 0),
    }
    if version.checksum is not None and version.checksum.type == "COMPOSITE":
        name = checksums.member(version.checksum.algorithm)
        answer["Parts"] = [{"PartNumber": part.number, "Size": part.size, name: part.checksum} for part in shown]
    return answer


def _tagged(tx: Transaction, request: Request) -> tuple[Bucket, Version]:
    bucket = buckets.asked(tx, request)
    return bucket, objects.readable(tx, bucket, request["Key"], request.get("VersionId"))


def _version_answer(bucket: Bucket, version: Version) -> Answer:
    return {"VersionId": version.version_id} if bucket.versioned else {}


def get_object_tagging(tx: Transaction, request: Request) -> Answer:
    bucket, version = _tagged(tx, request)
    return {"TagSet": tags_of.to_set(version.tags), **_version_answer(bucket, version)}


def put_object_tagging(tx: Transaction, request: Request) -> Answer:
    bucket, version = _tagged(tx, request)
    objects.set_tags(tx, version, tags_of.from_set(request["Tagging"], tags_of.OBJECT_TAGS_MAX))
    return _version_answer(bucket, version)


def delete_object_tagging(tx: Transaction, request: Request) -> Answer:
    bucket, version = _tagged(tx, request)
    objects.set_tags(tx, version, {})
    return _version_answer(bucket, version)


def get_object_acl(tx: Transaction, request: Request) -> Answer:
    _tagged(tx, request)
    return owner_only(tx)


def owner_only(tx: Transaction) -> Answer:
    """The access control list of everything: the owner, and nobody else."""
    owner = buckets.owner(tx)
    return {
        "Owner": owner,
        "Grants": [{"Grantee": {**owner, "Type": "CanonicalUser"}, "Permission": "FULL_CONTROL"}],
    }


def put_object_acl(tx: Transaction, request: Request) -> Answer:
    _tagged(tx, request)
    if request.get("AccessControlPolicy") is not None or request.get("ACL") is None:
        raise refusal("AccessControlListNotSupported")
    attributes.check_acl(request)
    return {}
