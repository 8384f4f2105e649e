"""Objects: bytes and attributes go in and come out; ranges, conditions, copies, versions, and exact refusals."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.errors import ServiceError
from muster.services import s3
from muster.services.s3 import ranges
from muster.services.s3.checksums import Hasher
from muster.services.s3.content import Content, Slices
from muster.store import blobs as blob_rows
from muster.store.blobs import Blobs
from muster.testing import World
from muster.transaction import Transaction
from tests.services.s3.conftest import Bucketed

MD5_HELLO = hashlib.md5(b"hello").hexdigest()


def large(world: Bucketed, data: bytes) -> Content:
    """A body that lies in a blob, as the wire hands it over."""
    staging = world.blobs.stage()
    staging.write(data)
    hasher = Hasher()
    hasher.update(data)
    return Content(len(data), hasher.md5, hasher.checksums(), blob=staging.finish())


def whole(world: Bucketed, answer: dict[str, Any]) -> bytes:
    body = answer["Body"]
    if isinstance(body, Slices):
        return b"".join(
            piece if isinstance(piece, bytes) else world.blobs.read(piece.id, piece.start, piece.length)
            for piece in body.pieces
        )
    assert isinstance(body, bytes)
    return body


def test_what_was_put_is_got(s3_world: Bucketed) -> None:
    put = s3_world.put("a", b"hello", ContentType="text/plain", Metadata={"Team": "sales"}, CacheControl="no-cache")
    assert put["ETag"] == f'"{MD5_HELLO}"'
    got = s3_world.get("a")
    assert got["Body"] == b"hello"
    assert (got["ContentLength"], got["ETag"], got["ContentType"]) == (5, f'"{MD5_HELLO}"', "text/plain")
    assert (got["Metadata"], got["CacheControl"]) == ({"team": "sales"}, "no-cache")
    head = s3_world("HeadObject", Bucket="bucket", Key="a")
    assert head == {name: value for name, value in got.items() if name != "Body"}


def test_a_body_may_be_text_or_json_when_a_sibling_puts_it(s3_world: Bucketed) -> None:
    s3_world.put("text", "grüße")
    s3_world.put("json", {"a": [1, 2]})
    assert s3_world.get("text")["Body"] == "grüße".encode()
    assert s3_world.get("json")["Body"] == b'{"a":[1,2]}'


def test_a_body_too_large_for_a_transaction_is_refused_clearly(s3_world: Bucketed) -> None:
    s3_world.put("fits", b"x" * 256 * 1024)
    assert len(s3_world.get("fits")["Body"]) == 256 * 1024
    refused = s3_world.refused("PutObject", Bucket="bucket", Key="k", Body=b"x" * (256 * 1024 + 1))
    assert refused.code == "EntityTooLarge"
    assert "262144" in refused.message


def test_an_overwritten_object_lets_go_of_its_blob(s3_world: Bucketed) -> None:
    data = bytes(range(256)) * 2000
    s3_world.put("a", large(s3_world, data))
    assert whole(s3_world, s3_world.get("a")) == data
    assert whole(s3_world, s3_world.get("a", Range="bytes=100-399999")) == data[100:400000]
    assert len(s3_world.blob_files()) == 1
    s3_world.put("a", b"small")
    s3_world.world.settle()
    assert s3_world.blob_files() == []
    assert s3_world.get("a")["Body"] == b"small"


def test_a_missing_key_says_so(s3_world: Bucketed) -> None:
    for operation in ("GetObject", "HeadObject", "GetObjectTagging"):
        refused = s3_world.refused(operation, Bucket="bucket", Key="none")
        assert (refused.code, refused.status, refused.fields["Key"]) == ("NoSuchKey", 404, "none")


@pytest.mark.parametrize(
    "key",
    [
        "a b",
        "a+b",
        "a%20b",
        "a:b=c",
        "a//b",
        "/a",
        "../a",
        "a/../b",
        "grüße/año.csv",
        "\U0001f600",
        "a?b#c",
        "&<>\"'",
        " ",
        ".",
    ],
)
def test_an_awkward_key_is_its_own_object(s3_world: Bucketed, key: str) -> None:
    for other in ("a b", "a+b", "a%20b"):
        s3_world.put(other, other.encode())
    s3_world.put(key, b"mine:" + key.encode())
    assert s3_world.get(key)["Body"] == b"mine:" + key.encode()
    assert key in [entry["Key"] for entry in s3_world("ListObjectsV2", Bucket="bucket")["Contents"]]


def test_a_key_of_more_than_1024_bytes_is_refused(s3_world: Bucketed) -> None:
    s3_world.put("é" * 512)
    refused = s3_world.refused("PutObject", Bucket="bucket", Key="é" * 513)
    assert (refused.code, refused.status) == ("KeyTooLongError", 400)


def test_a_range_that_begins_behind_the_end_is_refused(s3_world: Bucketed) -> None:
    s3_world.put("a", b"hello")
    got = s3_world.get("a", Range="bytes=1-3")
    assert (got["Body"], got["ContentRange"], got["ContentLength"]) == (b"ell", "bytes 1-3/5", 3)
    assert s3_world.get("a", Range="bytes=-2")["Body"] == b"lo"
    assert s3_world.get("a", Range="bytes=3-")["Body"] == b"lo"
    assert s3_world.get("a", Range="bytes=0-999")["Body"] == b"hello"
    assert "ContentRange" not in s3_world.get("a", Range="lines=1-2")
    refused = s3_world.refused("GetObject", Bucket="bucket", Key="a", Range="bytes=5-")
    assert (refused.code, refused.status) == ("InvalidRange", 416)


@given(size=st.integers(0, 50), first=st.none() | st.integers(0, 60), last=st.none() | st.integers(0, 60))
@settings(max_examples=200)
def test_a_range_is_what_slicing_would_give(size: int, first: int | None, last: int | None) -> None:
    data = bytes(range(size))
    header = f"bytes={'' if first is None else first}-{'' if last is None else last}"
    if first is None:
        expected = data[max(0, size - (last or 0)) :] if last is not None else data
    elif last is not None and last < first:
        expected = data
    else:
        expected = data[first:] if last is None else data[first : last + 1]
    try:
        found = ranges.asked(header, size)
    except Exception:  # noqa: BLE001 - the only refusal there is
        assert expected == b""
        return
    assert expected == (data if found is None else data[found.start : found.start + found.length])


def test_conditions_decide_what_is_read(s3_world: Bucketed) -> None:
    s3_world.put("a", b"hello")
    etag, now = f'"{MD5_HELLO}"', s3_world.world.clock.now()
    assert s3_world.get("a", IfMatch=etag)["Body"] == b"hello"
    assert s3_world.get("a", IfMatch=etag, IfUnmodifiedSince=now - 100)["Body"] == b"hello"
    ask = {"Bucket": "bucket", "Key": "a"}
    assert s3_world.refused("GetObject", **ask, IfMatch='"other"').status == 412
    assert s3_world.refused("GetObject", **ask, IfUnmodifiedSince=now - 100).code == "PreconditionFailed"
    assert s3_world.refused("GetObject", **ask, IfNoneMatch=etag).status == 304
    assert s3_world.refused("HeadObject", **ask, IfModifiedSince=now + 100).status == 304
    assert s3_world.get("a", IfNoneMatch='"other"', IfModifiedSince=now + 100)["Body"] == b"hello"


def test_put_if_absent_happens_once(s3_world: Bucketed) -> None:
    s3_world.put("a", b"first", IfNoneMatch="*")
    refused = s3_world.refused("PutObject", Bucket="bucket", Key="a", Body=b"second", IfNoneMatch="*")
    assert (refused.code, refused.status) == ("PreconditionFailed", 412)
    assert s3_world.get("a")["Body"] == b"first"
    assert s3_world.refused("PutObject", Bucket="bucket", Key="a", IfNoneMatch='"x"').code == "NotImplemented"


def test_put_if_unchanged_needs_the_object_that_is_there(s3_world: Bucketed) -> None:
    assert s3_world.refused("PutObject", Bucket="bucket", Key="a", IfMatch='"x"').code == "NoSuchKey"
    etag = s3_world.put("a", b"first")["ETag"]
    assert s3_world.refused("PutObject", Bucket="bucket", Key="a", IfMatch='"x"').code == "PreconditionFailed"
    s3_world.put("a", b"second", IfMatch=etag)
    assert s3_world.get("a")["Body"] == b"second"


def test_wrong_digests_are_refused_and_nothing_is_stored(s3_world: Bucketed) -> None:
    ask = {"Bucket": "bucket", "Key": "a", "Body": b"hello"}
    other = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    assert s3_world.refused("PutObject", **ask, ContentMD5=other).code == "BadDigest"
    assert s3_world.refused("PutObject", **ask, ContentMD5="nonsense").code == "InvalidDigest"
    assert s3_world.refused("PutObject", **ask, ChecksumCRC32="AAAAAA==").code == "BadDigest"
    assert s3_world.refused("PutObject", **ask, ChecksumCRC32="AAAA").code == "InvalidRequest"
    both = s3_world.refused("PutObject", **ask, ChecksumCRC32="AAAAAA==", ChecksumCRC32C="AAAAAA==")
    assert both.code == "InvalidRequest"
    assert s3_world.refused("GetObject", Bucket="bucket", Key="a").code == "NoSuchKey"


@pytest.mark.parametrize(
    ("algorithm", "value"),
    [
        ("CRC32", "y/Q5Jg=="),
        ("CRC32C", "4waSgw=="),
        ("CRC64NVME", "rosUhgp5mIg="),
        ("SHA1", "98O8HYCOBHMq31eZZczKNfN4w2Y="),
        ("SHA256", "FeKwI0ymsJ3Gm/vH7aZdPcFa0Q0qFkPtNcEFmnjkVyU="),
    ],
)
def test_a_checksum_is_checked_kept_and_answered(s3_world: Bucketed, algorithm: str, value: str) -> None:
    # The digests of "123456789", the check value of the CRC catalogues.
    if algorithm == "SHA256":
        value = base64.b64encode(hashlib.sha256(b"123456789").digest()).decode()
    if algorithm == "SHA1":
        value = base64.b64encode(hashlib.sha1(b"123456789").digest()).decode()
    member = f"Checksum{algorithm}"
    assert s3_world.put("a", b"123456789", **{member: value})[member] == value
    got = s3_world.get("a", ChecksumMode="ENABLED")
    assert (got[member], got["ChecksumType"]) == (value, "FULL_OBJECT")
    assert member not in s3_world.get("a")
    assert s3_world.put("b", b"123456789", ChecksumAlgorithm=algorithm)[member] == value


def test_without_a_checksum_s3_computes_its_own(s3_world: Bucketed) -> None:
    assert s3_world.put("a", b"123456789")["ChecksumCRC64NVME"] == "rosUhgp5mIg="


def test_answer_headers_can_be_overridden(s3_world: Bucketed) -> None:
    s3_world.put("a", b"x", ContentType="text/plain")
    got = s3_world.get("a", ResponseContentType="text/csv", ResponseContentDisposition="attachment")
    assert (got["ContentType"], got["ContentDisposition"]) == ("text/csv", "attachment")


def test_metadata_of_more_than_two_kilobytes_is_refused(s3_world: Bucketed) -> None:
    assert (
        s3_world.refused("PutObject", Bucket="bucket", Key="a", Metadata={"k": "v" * 2048}).code == "MetadataTooLarge"
    )


def test_object_tags_are_counted_and_changed(s3_world: Bucketed) -> None:
    s3_world.put("a", b"x", Tagging="team=sales&month=2023%2F10")
    assert s3_world.get("a")["TagCount"] == 2
    ask = {"Bucket": "bucket", "Key": "a"}
    assert s3_world("GetObjectTagging", **ask)["TagSet"] == [
        {"Key": "team", "Value": "sales"},
        {"Key": "month", "Value": "2023/10"},
    ]
    many = [{"Key": str(n), "Value": ""} for n in range(11)]
    assert s3_world.refused("PutObjectTagging", **ask, Tagging={"TagSet": many}).code == "InvalidTag"
    s3_world("PutObjectTagging", **ask, Tagging={"TagSet": many[:10]})
    s3_world("DeleteObjectTagging", **ask)
    assert s3_world("GetObjectTagging", **ask)["TagSet"] == []


def test_a_copy_is_an_object_of_its_own(s3_world: Bucketed) -> None:
    s3_world("CreateBucket", Bucket="other")
    s3_world.put("a b+c", b"hello", Metadata={"team": "sales"}, ContentType="text/plain", Tagging="k=v")
    copied = s3_world("CopyObject", Bucket="other", Key="copy", CopySource="bucket/a%20b%2Bc")
    assert copied["CopyObjectResult"]["ETag"] == f'"{MD5_HELLO}"'
    s3_world("DeleteObject", Bucket="bucket", Key="a b+c")
    got = s3_world.get("copy", bucket="other")
    assert (got["Body"], got["Metadata"], got["ContentType"], got["TagCount"]) == (
        b"hello",
        {"team": "sales"},
        "text/plain",
        1,
    )


def test_a_copy_can_replace_metadata_and_onto_itself_must(s3_world: Bucketed) -> None:
    s3_world.put("a", b"hello", Metadata={"team": "sales"})
    refused = s3_world.refused("CopyObject", Bucket="bucket", Key="a", CopySource="bucket/a")
    assert refused.code == "InvalidRequest"
    s3_world(
        "CopyObject",
        Bucket="bucket",
        Key="a",
        CopySource="/bucket/a",
        MetadataDirective="REPLACE",
        Metadata={"team": "warehouse"},
    )
    assert s3_world.get("a")["Metadata"] == {"team": "warehouse"}
    assert s3_world.get("a")["Body"] == b"hello"


def test_a_copy_of_a_large_object_shares_its_blob(s3_world: Bucketed) -> None:
    data = bytes(300_000)
    s3_world.put("a", large(s3_world, data))
    s3_world("CopyObject", Bucket="bucket", Key="b", CopySource="bucket/a")
    assert len(s3_world.blob_files()) == 1
    s3_world("DeleteObject", Bucket="bucket", Key="a")
    s3_world.world.settle()
    assert whole(s3_world, s3_world.get("b")) == data
    s3_world("DeleteObject", Bucket="bucket", Key="b")
    s3_world.world.settle()
    assert s3_world.blob_files() == []


def test_a_copy_that_needs_another_checksum_reads_the_source_outside(s3_world: Bucketed) -> None:
    data = bytes(300_000)
    s3_world.put("a", large(s3_world, data))
    copied = s3_world("CopyObject", Bucket="bucket", Key="b", CopySource="bucket/a", ChecksumAlgorithm="SHA256")
    expected = base64.b64encode(hashlib.sha256(data).digest()).decode()
    assert copied["CopyObjectResult"]["ChecksumSHA256"] == expected
    assert s3_world.world.rows("SELECT id FROM s3_digests") == []


def test_conditions_of_the_source_are_met_or_nothing_is_copied(s3_world: Bucketed) -> None:
    etag = s3_world.put("a", b"hello")["ETag"]
    ask = {"Bucket": "bucket", "Key": "b", "CopySource": "bucket/a"}
    assert s3_world.refused("CopyObject", **ask, CopySourceIfNoneMatch=etag).code == "PreconditionFailed"
    assert s3_world.refused("CopyObject", **ask, CopySourceIfMatch='"x"').code == "PreconditionFailed"
    assert s3_world.refused("CopyObject", Bucket="bucket", Key="b", CopySource="bucket/none").code == "NoSuchKey"
    assert s3_world.refused("CopyObject", Bucket="bucket", Key="b", CopySource="bucket").code == "InvalidArgument"
    s3_world("CopyObject", **ask, CopySourceIfMatch=etag)


def test_versions_are_kept_read_and_removed_one_by_one(s3_world: Bucketed) -> None:
    s3_world.put("a", b"before")
    s3_world("PutBucketVersioning", Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})
    first = s3_world.put("a", b"first")["VersionId"]
    second = s3_world.put("a", b"second")["VersionId"]
    assert s3_world.get("a", VersionId=first)["Body"] == b"first"
    assert s3_world.get("a", VersionId="null")["Body"] == b"before"
    gone = s3_world("DeleteObject", Bucket="bucket", Key="a")
    assert gone["DeleteMarker"] is True
    refused = s3_world.refused("GetObject", Bucket="bucket", Key="a")
    assert (refused.code, refused.fields["DeleteMarker"]) == ("NoSuchKey", True)
    marker = s3_world.refused("GetObject", Bucket="bucket", Key="a", VersionId=gone["VersionId"])
    assert (marker.code, marker.status) == ("MethodNotAllowed", 405)
    listed = s3_world("ListObjectVersions", Bucket="bucket")
    assert [version["VersionId"] for version in listed["Versions"]] == [second, first, "null"]
    assert [marker["IsLatest"] for marker in listed["DeleteMarkers"]] == [True]
    assert s3_world("ListObjectsV2", Bucket="bucket")["Contents"] == []
    s3_world("DeleteObject", Bucket="bucket", Key="a", VersionId=gone["VersionId"])
    assert s3_world.get("a")["Body"] == b"second"
    s3_world("DeleteObject", Bucket="bucket", Key="a", VersionId=second)
    assert s3_world.get("a")["Body"] == b"first"
    assert s3_world.refused("GetObject", Bucket="bucket", Key="a", VersionId=second).code == "NoSuchVersion"


def test_while_versioning_is_suspended_the_null_version_is_replaced(s3_world: Bucketed) -> None:
    s3_world("PutBucketVersioning", Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})
    kept = s3_world.put("a", b"kept")["VersionId"]
    s3_world("PutBucketVersioning", Bucket="bucket", VersioningConfiguration={"Status": "Suspended"})
    assert s3_world.put("a", b"one")["VersionId"] == "null"
    s3_world.put("a", b"two")
    assert s3_world("DeleteObject", Bucket="bucket", Key="a") == {"DeleteMarker": True, "VersionId": "null"}
    listed = s3_world("ListObjectVersions", Bucket="bucket")
    assert [version["VersionId"] for version in listed["Versions"]] == [kept]


def test_many_keys_are_deleted_each_with_its_own_outcome(s3_world: Bucketed) -> None:
    s3_world.put("a")
    s3_world.put("b")
    asked = [{"Key": "a"}, {"Key": "none"}, {"Key": "b", "VersionId": "nonsense"}]
    answer = s3_world("DeleteObjects", Bucket="bucket", Delete={"Objects": asked})
    assert answer["Deleted"] == [{"Key": "a"}, {"Key": "none"}]
    assert [(error["Key"], error["Code"]) for error in answer["Errors"]] == [("b", "NoSuchVersion")]
    assert s3_world("DeleteObjects", Bucket="bucket", Delete={"Objects": [{"Key": "b"}], "Quiet": True}) == {}
    assert s3_world.refused("DeleteObjects", Bucket="bucket", Delete={"Objects": []}).code == "MalformedXML"
    assert s3_world.refused("DeleteObjects", Bucket="bucket", Delete={"Objects": [{"Key": "a"}] * 1001}).status == 400


def test_objects_uploads_and_their_blobs_survive_a_restart(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    world = World([s3.service(blobs)], parts={blob_rows.PART: blob_rows.MIGRATIONS}, path=tmp_path / "muster.db")
    s3_world = Bucketed(world, blobs)
    s3_world("CreateBucket", Bucket="bucket")
    data = bytes(300_000)
    s3_world.put("a", large(s3_world, data), Metadata={"team": "sales"})
    upload = s3_world("CreateMultipartUpload", Bucket="bucket", Key="b")["UploadId"]
    ask = {"Bucket": "bucket", "Key": "b", "UploadId": upload}
    part = s3_world("UploadPart", **ask, PartNumber=1, Body=large(s3_world, data))
    large(s3_world, b"received, and the process ended before its row was written")
    world.restart()
    assert world.run(blobs.sweep(world.store.read, 4e9)) == 1
    assert whole(s3_world, s3_world.get("a")) == data
    assert s3_world.get("a")["Metadata"] == {"team": "sales"}
    s3_world("CompleteMultipartUpload", **ask, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    assert whole(s3_world, s3_world.get("b")) == data


def test_a_sibling_reads_an_object_whole_and_in_its_transaction(s3_world: Bucketed) -> None:
    data = bytes(300_000)
    s3_world.put("a", large(s3_world, data))
    ask = {"Bucket": "bucket", "Key": "a"}
    assert s3_world.world.change(lambda tx: tx.call("s3", "ReadObject", ask))["Body"] == data
    part = s3_world.world.change(lambda tx: tx.call("s3", "ReadObject", {**ask, "Range": "bytes=0-4"}))
    assert part["Body"] == data[:5]


def test_a_copy_that_would_have_to_be_waited_for_is_refused_to_a_sibling_and_leaves_nothing(s3_world: Bucketed) -> None:
    s3_world.put("a", large(s3_world, bytes(300_000)))
    ask = {"Bucket": "bucket", "Key": "b", "CopySource": "bucket/a", "ChecksumAlgorithm": "SHA256"}

    def copy(tx: Transaction) -> str:
        try:
            tx.call("s3", "CopyObject", ask)
        except ServiceError as error:
            return error.message
        return "copied"

    assert "cannot be waited for inside a transaction" in s3_world.world.change(copy)
    assert s3_world.world.rows("SELECT kind FROM deliveries") == []
