"""Operations that list objects and versions in pages. AWS's shapes in and out; the paging is in `listing`."""

from muster.operation import Answer, Operation, Request
from muster.services.s3 import attributes, buckets, listing, objects
from muster.services.s3.buckets import Bucket
from muster.services.s3.listing import Page, Place
from muster.services.s3.objects import COLUMNS, Version
from muster.services.s3.refusals import invalid_argument
from muster.transaction import Row, Transaction

COMMON = frozenset({"Bucket", "Delimiter", "EncodingType", "MaxKeys", "Prefix", "RequestPayer", "ExpectedBucketOwner"})


def operations() -> dict[str, Operation]:
    """The operations of this module, by name."""
    return {
        "ListObjects": Operation(list_objects, COMMON | {"Marker"}, reads=True),
        "ListObjectsV2": Operation(
            list_objects_v2, COMMON | {"ContinuationToken", "FetchOwner", "StartAfter"}, reads=True
        ),
        "ListObjectVersions": Operation(list_object_versions, COMMON | {"KeyMarker", "VersionIdMarker"}, reads=True),
    }


def _objects(tx: Transaction, bucket: Bucket, request: Request, place: Place, most: int) -> Page[Version]:
    def source(place: Place, count: int) -> list[Row]:
        beyond = ">=" if place.inclusive else ">"
        return tx.all(
            f"SELECT {COLUMNS}, '' AS tie FROM s3_objects WHERE bucket = :bucket AND current = 1"
            f" AND delete_marker = 0 AND key {beyond} :key ORDER BY key LIMIT :count",
            bucket=bucket.name,
            key=place.key,
            count=count,
        )

    prefix, delimiter = request.get("Prefix") or "", request.get("Delimiter") or ""
    return listing.page(source, objects.version, place, prefix, delimiter, most)


def _entry(version: Version, key: str) -> Answer:
    entry: Answer = {
        "Key": key,
        "LastModified": version.modified_at,
        "ETag": version.quoted_etag,
        "Size": version.size,
        "StorageClass": attributes.storage_class(version.attributes),
    }
    if version.checksum is not None:
        entry |= {"ChecksumAlgorithm": [version.checksum.algorithm], "ChecksumType": version.checksum.type}
    return entry


def _frame(bucket: Bucket, request: Request, most: int) -> Answer:
    written = listing.encoder(request.get("EncodingType"))
    answer: Answer = {"Name": bucket.name, "Prefix": written(request.get("Prefix") or ""), "MaxKeys": most}
    if request.get("Delimiter"):
        answer["Delimiter"] = written(request["Delimiter"])
    if request.get("EncodingType"):
        answer["EncodingType"] = request["EncodingType"]
    return answer


def list_objects(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    written = listing.encoder(request.get("EncodingType"))
    most = listing.count_asked(request.get("MaxKeys"), "max-keys")
    marker, delimiter = request.get("Marker") or "", request.get("Delimiter") or ""
    page = _objects(tx, bucket, request, listing.after(marker, request.get("Prefix") or "", delimiter), most)
    owner = buckets.owner(tx)
    answer = _frame(bucket, request, most) | {
        "Marker": written(marker),
        "IsTruncated": page.truncated,
        "Contents": [{**_entry(version, written(version.key)), "Owner": owner} for version in page.items],
        "CommonPrefixes": [{"Prefix": written(prefix)} for prefix in page.prefixes],
    }
    # AWS names the next marker only where the last key answered would not do.
    if page.truncated and delimiter and page.last is not None:
        answer["NextMarker"] = written(page.last if isinstance(page.last, str) else page.last.key)
    return answer


def list_objects_v2(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    written = listing.encoder(request.get("EncodingType"))
    most = listing.count_asked(request.get("MaxKeys"), "max-keys")
    continuation = request.get("ContinuationToken")
    if continuation is not None:
        place = _continued(listing.from_token(continuation), continuation)
    else:
        place = Place(request.get("StartAfter") or "")
    page = _objects(tx, bucket, request, place, most)
    owner = {"Owner": buckets.owner(tx)} if request.get("FetchOwner") else {}
    answer = _frame(bucket, request, most) | {
        "IsTruncated": page.truncated,
        "KeyCount": len(page.items) + len(page.prefixes),
        "Contents": [{**_entry(version, written(version.key)), **owner} for version in page.items],
        "CommonPrefixes": [{"Prefix": written(prefix)} for prefix in page.prefixes],
    }
    if continuation is not None:
        answer["ContinuationToken"] = continuation
    if request.get("StartAfter"):
        answer["StartAfter"] = written(request["StartAfter"])
    if page.truncated and page.last is not None:
        prefix = isinstance(page.last, str)
        last = page.last if isinstance(page.last, str) else page.last.key
        answer["NextContinuationToken"] = listing.token(("p" if prefix else "k") + last)
    return answer


def _continued(token: str, stated: str) -> Place:
    kind, text = token[:1], token[1:]
    if kind == "k":
        return Place(text)
    beyond = listing.successor(text) if kind == "p" else None
    if beyond is None:
        raise invalid_argument("The continuation token provided is incorrect", "continuation-token", stated)
    return Place(beyond, inclusive=True)


def list_object_versions(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    written = listing.encoder(request.get("EncodingType"))
    most = listing.count_asked(request.get("MaxKeys"), "max-keys")
    prefix, delimiter = request.get("Prefix") or "", request.get("Delimiter") or ""
    key_marker, id_marker = request.get("KeyMarker") or "", request.get("VersionIdMarker") or ""
    if id_marker and not key_marker:
        raise invalid_argument(
            "A version-id marker cannot be specified without a key marker.", "version-id-marker", id_marker
        )
    place = listing.after(key_marker, prefix, delimiter)
    if id_marker:
        found = objects.with_id(tx, bucket, key_marker, id_marker)
        place = Place(key_marker, str(found.sequence) if found else "")

    def source(place: Place, count: int) -> list[Row]:
        beyond = "key >= :key" if place.inclusive else "key > :key"
        tied = " OR (key = :key AND sequence < :tie)" if place.tie else ""
        return tx.all(
            f"SELECT {COLUMNS}, sequence AS tie FROM s3_objects WHERE bucket = :bucket AND ({beyond}{tied})"
            " ORDER BY key, sequence DESC LIMIT :count",
            bucket=bucket.name,
            key=place.key,
            tie=int(place.tie or 0),
            count=count,
        )

    page = listing.page(source, objects.version, place, prefix, delimiter, most)
    owner = buckets.owner(tx)
    answer = _frame(bucket, request, most) | {
        "KeyMarker": written(key_marker),
        "VersionIdMarker": id_marker,
        "IsTruncated": page.truncated,
        "Versions": [
            {
                **_entry(version, written(version.key)),
                "VersionId": version.version_id,
                "IsLatest": version.current,
                "Owner": owner,
            }
            for version in page.items
            if not version.delete_marker
        ],
        "DeleteMarkers": [
            {
                "Key": written(version.key),
                "VersionId": version.version_id,
                "IsLatest": version.current,
                "LastModified": version.modified_at,
                "Owner": owner,
            }
            for version in page.items
            if version.delete_marker
        ],
        "CommonPrefixes": [{"Prefix": written(common)} for common in page.prefixes],
    }
    if isinstance(page.last, Version):
        answer |= {"NextKeyMarker": written(page.last.key), "NextVersionIdMarker": page.last.version_id}
    elif page.truncated and page.last is not None:
        answer["NextKeyMarker"] = written(page.last)
    return answer
