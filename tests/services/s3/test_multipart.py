"""Multipart uploads: nothing is there before completion, everything after it, and a wrong list is refused exactly."""

import base64
import hashlib
import zlib
from typing import Any

import pytest

from muster.services.s3 import checksums
from muster.services.s3.checksums import Hasher
from muster.services.s3.content import Content
from tests.services.s3.conftest import Bucketed
from tests.services.s3.test_objects import whole

MIB = 1024 * 1024
FIRST = b"a" * (5 * MIB)
LAST = b"the end"


class Uploading:
    """One upload, in the words of the test."""

    def __init__(self, s3: Bucketed, key: str = "big", **more: Any) -> None:
        self.s3 = s3
        self.key = key
        self.id = s3("CreateMultipartUpload", Bucket="bucket", Key=key, **more)["UploadId"]
        self.ask = {"Bucket": "bucket", "Key": key, "UploadId": self.id}

    def body(self, data: bytes, *algorithms: str) -> Content | bytes:
        if len(data) <= 1000:
            return Content.of(data, ("CRC64NVME", *algorithms))
        staging = self.s3.blobs.stage()
        staging.write(data)
        hasher = Hasher(("CRC64NVME", *algorithms))
        hasher.update(data)
        return Content(len(data), hasher.md5, hasher.checksums(), blob=staging.finish())

    def part(self, number: int, data: bytes, *algorithms: str) -> dict[str, Any]:
        answer = self.s3("UploadPart", **self.ask, PartNumber=number, Body=self.body(data, *algorithms))
        kept = {name: value for name, value in answer.items() if name == "ETag" or name.startswith("Checksum")}
        return {"PartNumber": number, **kept}

    def complete(self, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        return self.s3("CompleteMultipartUpload", **self.ask, MultipartUpload={"Parts": list(parts)}, **more)

    def refused(self, *parts: dict[str, Any], **more: Any) -> str:
        return self.s3.refused(
            "CompleteMultipartUpload", **self.ask, MultipartUpload={"Parts": list(parts)}, **more
        ).code


@pytest.fixture
def upload(s3_world: Bucketed) -> Uploading:
    return Uploading(s3_world, ContentType="text/plain", Metadata={"team": "sales"})


def test_parts_become_one_object_with_the_entity_tag_of_parts(s3_world: Bucketed, upload: Uploading) -> None:
    one, two = upload.part(1, FIRST), upload.part(2, LAST)
    assert s3_world.refused("GetObject", Bucket="bucket", Key="big").code == "NoSuchKey"
    done = upload.complete(one, two)
    digests = hashlib.md5(FIRST).digest() + hashlib.md5(LAST).digest()
    assert done["ETag"] == f'"{hashlib.md5(digests).hexdigest()}-2"'
    got = s3_world.get("big")
    assert whole(s3_world, got) == FIRST + LAST
    assert (got["ContentType"], got["Metadata"]) == ("text/plain", {"team": "sales"})
    assert whole(s3_world, s3_world.get("big", Range=f"bytes={len(FIRST) - 2}-{len(FIRST) + 2}")) == b"aathe"
    assert s3_world("ListMultipartUploads", Bucket="bucket")["Uploads"] == []


def test_one_part_is_read_by_its_number(s3_world: Bucketed, upload: Uploading) -> None:
    upload.complete(upload.part(3, FIRST), upload.part(7, LAST))
    got = s3_world.get("big", PartNumber=2)
    assert (got["Body"], got["PartsCount"]) == (LAST, 2)
    assert got["ContentRange"] == f"bytes {len(FIRST)}-{len(FIRST) + len(LAST) - 1}/{len(FIRST) + len(LAST)}"
    assert s3_world.refused("GetObject", Bucket="bucket", Key="big", PartNumber=3).status == 416


def test_completing_again_answers_the_same(upload: Uploading) -> None:
    part = upload.part(1, LAST)
    assert upload.complete(part) == upload.complete(part)
    assert len(upload.s3.world.rows("SELECT key FROM s3_objects")) == 1


def test_a_part_uploaded_again_takes_the_place_of_the_first(s3_world: Bucketed, upload: Uploading) -> None:
    old = upload.part(1, b"x" * 2000)
    new = upload.part(1, b"new")
    assert upload.refused(old) == "InvalidPart"
    upload.complete(new)
    s3_world.world.settle()
    assert s3_world.get("big")["Body"] == b"new"
    assert s3_world.blob_files() == []


def test_what_is_not_listed_is_let_go_of(s3_world: Bucketed, upload: Uploading) -> None:
    upload.part(1, b"x" * 2000)
    upload.complete(upload.part(2, LAST))
    s3_world.world.settle()
    assert s3_world.get("big")["Body"] == LAST
    assert s3_world.blob_files() == []
    assert len(s3_world.world.rows("SELECT number FROM s3_parts")) == 1


def test_a_wrong_list_of_parts_is_refused_exactly(upload: Uploading) -> None:
    small, last = upload.part(1, b"small"), upload.part(2, LAST)
    assert upload.refused(last, small) == "InvalidPartOrder"
    assert upload.refused(small, small) == "InvalidPartOrder"
    assert upload.refused({**small, "ETag": '"00"'}) == "InvalidPart"
    assert upload.refused(small, {**last, "PartNumber": 9}) == "InvalidPart"
    assert upload.refused(small, last) == "EntityTooSmall"
    assert upload.refused() == "MalformedXML"
    assert upload.refused(last, MpuObjectSize=1) == "InvalidRequest"
    assert upload.refused(last, IfMatch='"x"') == "NoSuchKey"


def test_completing_if_absent_refuses_when_there_is_something(s3_world: Bucketed, upload: Uploading) -> None:
    part = upload.part(1, LAST)
    s3_world.put("big", b"there")
    assert upload.refused(part, IfNoneMatch="*") == "PreconditionFailed"
    assert s3_world.get("big")["Body"] == b"there"


def test_an_aborted_upload_leaves_nothing(s3_world: Bucketed, upload: Uploading) -> None:
    part = upload.part(1, b"x" * 2000)
    assert s3_world.refused("DeleteBucket", Bucket="bucket").code == "BucketNotEmpty"
    s3_world("AbortMultipartUpload", **upload.ask)
    s3_world.world.settle()
    assert s3_world.blob_files() == []
    assert upload.refused(part) == "NoSuchUpload"
    assert s3_world.refused("AbortMultipartUpload", **upload.ask).code == "NoSuchUpload"
    assert s3_world.refused("UploadPart", **upload.ask, PartNumber=1, Body=b"").code == "NoSuchUpload"
    s3_world("DeleteBucket", Bucket="bucket")


def test_part_numbers_go_from_1_to_10000(upload: Uploading) -> None:
    for number in (0, 10_001):
        assert upload.s3.refused("UploadPart", **upload.ask, PartNumber=number, Body=b"").code == "InvalidArgument"


def test_parts_and_uploads_are_listed_in_pages(s3_world: Bucketed, upload: Uploading) -> None:
    for number in (1, 2, 5):
        upload.part(number, LAST)
    page = s3_world("ListParts", **upload.ask, MaxParts=2)
    assert ([part["PartNumber"] for part in page["Parts"]], page["IsTruncated"]) == ([1, 2], True)
    page = s3_world("ListParts", **upload.ask, PartNumberMarker=page["NextPartNumberMarker"])
    assert ([part["PartNumber"] for part in page["Parts"]], page["IsTruncated"]) == ([5], False)
    others = [Uploading(s3_world, key) for key in ("dir/a", "dir/b", "big")]
    found: list[str] = []
    more: dict[str, Any] = {}
    while True:
        page = s3_world("ListMultipartUploads", Bucket="bucket", MaxUploads=1, **more)
        found += [one["UploadId"] for one in page["Uploads"]]
        if not page["IsTruncated"]:
            break
        more = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}
    assert sorted(found) == sorted([upload.id, *(other.id for other in others)])
    assert found[2:] == [others[0].id, others[1].id]
    rolled = s3_world("ListMultipartUploads", Bucket="bucket", Delimiter="/")
    assert rolled["CommonPrefixes"] == [{"Prefix": "dir/"}]


@pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "SHA1", "SHA256"])
def test_a_composite_checksum_is_the_checksum_of_checksums(s3_world: Bucketed, algorithm: str) -> None:
    upload = Uploading(s3_world, ChecksumAlgorithm=algorithm)
    one, two = upload.part(1, FIRST, algorithm), upload.part(2, LAST, algorithm)
    member = f"Checksum{algorithm}"
    assert upload.refused({"PartNumber": 1, "ETag": one["ETag"]}, two) == "InvalidRequest"
    assert upload.refused({**one, member: two[member]}, two) == "InvalidPart"
    done = upload.complete(one, two)
    digests = base64.b64decode(one[member]) + base64.b64decode(two[member])
    assert done[member] == checksums.composite(algorithm, [one[member], two[member]])
    hasher = Hasher([algorithm])
    hasher.update(digests)
    assert done[member] == hasher.checksums()[algorithm] + "-2"
    got = s3_world.get("big", ChecksumMode="ENABLED")
    assert (got[member], got["ChecksumType"]) == (done[member], "COMPOSITE")


@pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "CRC64NVME"])
def test_a_full_object_checksum_is_that_of_all_bytes(s3_world: Bucketed, algorithm: str) -> None:
    upload = Uploading(s3_world, ChecksumAlgorithm=algorithm, ChecksumType="FULL_OBJECT")
    one, two = upload.part(1, FIRST, algorithm), upload.part(2, LAST, algorithm)
    hasher = Hasher([algorithm])
    hasher.update(FIRST + LAST)
    expected = hasher.checksums()[algorithm]
    member = f"Checksum{algorithm}"
    other = upload.refused(one, two, ChecksumType="FULL_OBJECT", **{member: one[member]})
    assert other == "BadDigest"
    assert upload.complete(one, two, ChecksumType="FULL_OBJECT", **{member: expected})[member] == expected
    if algorithm == "CRC32":
        assert expected == base64.b64encode(zlib.crc32(FIRST + LAST).to_bytes(4, "big")).decode()


def test_checksum_kinds_that_aws_does_not_have_are_refused(s3_world: Bucketed) -> None:
    ask = {"Bucket": "bucket", "Key": "big"}
    for algorithm, kind in (("SHA256", "FULL_OBJECT"), ("CRC64NVME", "COMPOSITE"), ("XXHASH64", None)):
        more = {"ChecksumType": kind} if kind else {}
        refused = s3_world.refused("CreateMultipartUpload", **ask, ChecksumAlgorithm=algorithm, **more)
        assert refused.code == "InvalidRequest"


def test_a_part_with_another_algorithm_is_refused(s3_world: Bucketed) -> None:
    upload = Uploading(s3_world, ChecksumAlgorithm="SHA256")
    refused = s3_world.refused("UploadPart", **upload.ask, PartNumber=1, Body=b"x", ChecksumCRC32="jNVsNQ==")
    assert "expected checksum Type: sha256, actual checksum Type: crc32" in refused.message


def test_parts_are_copied_from_objects_without_moving_bytes(s3_world: Bucketed, upload: Uploading) -> None:
    source = FIRST + b"tail of the source"
    staged = upload.body(source)
    s3_world.put("source", staged)
    ask = {**upload.ask, "CopySource": "bucket/source"}
    first = s3_world("UploadPartCopy", **ask, PartNumber=1, CopySourceRange=f"bytes=0-{len(FIRST) - 1}")
    second = s3_world("UploadPartCopy", **ask, PartNumber=2)
    third = s3_world("UploadPartCopy", **ask, PartNumber=3, CopySourceRange=f"bytes={len(FIRST)}-{len(source) - 1}")
    assert first["CopyPartResult"]["ETag"] == f'"{hashlib.md5(FIRST).hexdigest()}"'
    parts = [
        {"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]}
        for number, answer in ((1, first), (2, second), (3, third))
    ]
    assert len(s3_world.blob_files()) == 1
    upload.complete(*parts)
    s3_world("DeleteObject", Bucket="bucket", Key="source")
    s3_world.world.settle()
    assert whole(s3_world, s3_world.get("big")) == FIRST + source + b"tail of the source"
    refused = s3_world.refused("UploadPartCopy", **ask, PartNumber=1)
    assert refused.code == "NoSuchUpload"


def test_a_copied_range_must_lie_within_the_source(s3_world: Bucketed, upload: Uploading) -> None:
    s3_world.put("source", b"hello")
    ask = {**upload.ask, "PartNumber": 1, "CopySource": "bucket/source"}
    for stated in ("bytes=0-5", "bytes=3-1", "0-1", "bytes=-2"):
        assert s3_world.refused("UploadPartCopy", **ask, CopySourceRange=stated).code == "InvalidArgument"


def test_a_copy_of_a_multipart_object_has_the_entity_tag_of_its_bytes(s3_world: Bucketed, upload: Uploading) -> None:
    upload.complete(upload.part(1, FIRST), upload.part(2, LAST))
    copied = s3_world("CopyObject", Bucket="bucket", Key="copy", CopySource="bucket/big")
    assert copied["CopyObjectResult"]["ETag"] == f'"{hashlib.md5(FIRST + LAST).hexdigest()}"'
    assert whole(s3_world, s3_world.get("copy")) == FIRST + LAST


def test_attributes_tell_of_parts_and_checksums(s3_world: Bucketed) -> None:
    upload = Uploading(s3_world, ChecksumAlgorithm="SHA256")
    upload.complete(upload.part(1, FIRST, "SHA256"), upload.part(2, LAST, "SHA256"))
    wanted = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"]
    got = s3_world("GetObjectAttributes", Bucket="bucket", Key="big", ObjectAttributes=wanted)
    assert got["ObjectSize"] == len(FIRST) + len(LAST)
    assert got["Checksum"]["ChecksumType"] == "COMPOSITE"
    assert [part["Size"] for part in got["ObjectParts"]["Parts"]] == [len(FIRST), len(LAST)]
    assert got["ObjectParts"]["TotalPartsCount"] == 2
    assert got["StorageClass"] == "STANDARD"
    assert not got["ETag"].startswith('"')
