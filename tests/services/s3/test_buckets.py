"""Buckets: names, creation, deletion, and settings that are honoured or refused by name."""

import pytest

from tests.services.s3.conftest import Bucketed


@pytest.mark.parametrize(
    "name", ["ab", "a" * 64, "Upper", "under_score", "-dash", "dash-", "two..dots", "192.168.5.4", "xn--a", "a-s3alias"]
)
def test_a_bucket_name_that_aws_forbids_is_refused(s3_world: Bucketed, name: str) -> None:
    assert s3_world.refused("CreateBucket", Bucket=name).code == "InvalidBucketName"


@pytest.mark.parametrize("name", ["abc", "a" * 63, "with.dots", "with-dash", "1digit", "amzn-s3-demo-bucket"])
def test_a_bucket_name_that_aws_allows_is_taken(s3_world: Bucketed, name: str) -> None:
    s3_world("CreateBucket", Bucket=name)
    assert s3_world("HeadBucket", Bucket=name)["BucketRegion"] == "us-east-1"


def test_creating_ones_own_bucket_again_is_no_error_in_the_first_region(s3_world: Bucketed) -> None:
    assert s3_world("CreateBucket", Bucket="bucket")["Location"] == "/bucket"


def test_a_location_other_than_the_region_is_refused(s3_world: Bucketed) -> None:
    other = s3_world.refused(
        "CreateBucket", Bucket="other", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
    )
    first = s3_world.refused(
        "CreateBucket", Bucket="other", CreateBucketConfiguration={"LocationConstraint": "us-east-1"}
    )
    assert (other.code, first.code) == ("IllegalLocationConstraintException", "InvalidLocationConstraint")
    assert s3_world("GetBucketLocation", Bucket="bucket") == {}


def test_a_bucket_goes_only_when_it_is_empty(s3_world: Bucketed) -> None:
    s3_world.put("a")
    assert s3_world.refused("DeleteBucket", Bucket="bucket").code == "BucketNotEmpty"
    s3_world("DeleteObject", Bucket="bucket", Key="a")
    s3_world("DeleteBucket", Bucket="bucket")
    missing = s3_world.refused("HeadBucket", Bucket="bucket")
    assert (missing.code, missing.status) == ("NoSuchBucket", 404)


def test_every_operation_on_a_missing_bucket_says_so(s3_world: Bucketed) -> None:
    for operation in ("ListObjectsV2", "ListObjects", "ListObjectVersions", "ListMultipartUploads", "GetBucketPolicy"):
        assert s3_world.refused(operation, Bucket="nowhere").code == "NoSuchBucket"
    for operation in ("PutObject", "GetObject", "DeleteObject", "CreateMultipartUpload"):
        assert s3_world.refused(operation, Bucket="nowhere", Key="k").code == "NoSuchBucket"


def test_buckets_are_listed_in_pages_by_name(s3_world: Bucketed) -> None:
    for name in ("delta", "alpha", "charlie"):
        s3_world("CreateBucket", Bucket=name)
    names, token = [], None
    while True:
        page = s3_world("ListBuckets", MaxBuckets=3, **({"ContinuationToken": token} if token else {}))
        names += [bucket["Name"] for bucket in page["Buckets"]]
        token = page.get("ContinuationToken")
        if token is None:
            break
    assert names == ["alpha", "bucket", "charlie", "delta"]


def test_another_owner_is_refused(s3_world: Bucketed) -> None:
    refused = s3_world.refused("HeadBucket", Bucket="bucket", ExpectedBucketOwner="111111111111")
    assert (refused.code, refused.status) == ("AccessDenied", 403)
    s3_world("HeadBucket", Bucket="bucket", ExpectedBucketOwner="000000000000")


def test_tags_come_back_as_they_were_given(s3_world: Bucketed) -> None:
    assert s3_world.refused("GetBucketTagging", Bucket="bucket").code == "NoSuchTagSet"
    tags = [{"Key": "team", "Value": "sales"}]
    s3_world("PutBucketTagging", Bucket="bucket", Tagging={"TagSet": tags})
    assert s3_world("GetBucketTagging", Bucket="bucket")["TagSet"] == tags
    twice = s3_world.refused("PutBucketTagging", Bucket="bucket", Tagging={"TagSet": tags * 2})
    assert twice.code == "InvalidTag"


def test_a_policy_that_allows_is_kept_and_one_that_denies_is_refused_by_name(s3_world: Bucketed) -> None:
    allow = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"*"}]}'
    s3_world("PutBucketPolicy", Bucket="bucket", Policy=allow)
    assert s3_world("GetBucketPolicy", Bucket="bucket")["Policy"] == allow
    denied = s3_world.refused("PutBucketPolicy", Bucket="bucket", Policy=allow.replace("Allow", "Deny"))
    assert denied.code == "NotImplemented"
    assert "deny" in denied.message
    assert s3_world.refused("PutBucketPolicy", Bucket="bucket", Policy="{").code == "MalformedPolicy"
    s3_world("DeleteBucketPolicy", Bucket="bucket")
    assert s3_world.refused("GetBucketPolicy", Bucket="bucket").code == "NoSuchBucketPolicy"


def test_encryption_with_keys_of_a_service_is_refused_by_name(s3_world: Bucketed) -> None:
    def rules(algorithm: str) -> dict[str, object]:
        return {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": algorithm}}]}

    s3_world("PutBucketEncryption", Bucket="bucket", ServerSideEncryptionConfiguration=rules("AES256"))
    refused = s3_world.refused(
        "PutBucketEncryption", Bucket="bucket", ServerSideEncryptionConfiguration=rules("aws:kms")
    )
    assert "aws:kms" in refused.message
    assert s3_world.refused("PutObject", Bucket="bucket", Key="k", ServerSideEncryption="aws:kms").status == 501


def test_what_is_not_supported_is_refused_by_name(s3_world: Bucketed) -> None:
    cors = s3_world.refused("PutBucketCors", Bucket="bucket", CORSConfiguration={})
    assert "PutBucketCors" in cors.message
    lock = s3_world.refused("PutObject", Bucket="bucket", Key="k", ObjectLockMode="COMPLIANCE")
    assert "ObjectLockMode" in lock.message
    acl = s3_world.refused("PutObject", Bucket="bucket", Key="k", ACL="public-read")
    assert acl.code == "AccessControlListNotSupported"
    glacier = s3_world.refused("PutObject", Bucket="bucket", Key="k", StorageClass="GLACIER")
    assert "GLACIER" in glacier.message
    unknown = s3_world.refused("PutObject", Bucket="bucket", Key="k", StorageClass="CHEAP")
    assert unknown.code == "InvalidStorageClass"


def test_what_was_never_configured_is_answered_as_absent(s3_world: Bucketed) -> None:
    assert s3_world.refused("GetBucketCors", Bucket="bucket").code == "NoSuchCORSConfiguration"
    assert s3_world.refused("GetBucketLifecycleConfiguration", Bucket="bucket").code == "NoSuchLifecycleConfiguration"
    assert s3_world("GetBucketRequestPayment", Bucket="bucket") == {"Payer": "BucketOwner"}
