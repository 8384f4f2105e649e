"""boto3 against S3 over HTTP: what its users do, with its own defaults."""

import hashlib
import http.client
import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import orjson
import pytest
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from tests.aws.s3_server import S3Server, serving
from tests.services.s3.conftest import EVENTS

MIB = 1024 * 1024
AWKWARD = [
    "plain.csv",
    "with space.csv",
    "with+plus.csv",
    "with%20percent.csv",
    "a:b=c,d;e@f&g$h!.csv",
    "double//slash",
    "/leading",
    "trailing/",
    "../up",
    "a/./b/../c",
    "grüße/año.csv",
    "日本語.txt",
    "\U0001f600",
    "(brackets)[x]{y}'\"`^~|<>#?\\*",
    "new\nline",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with serving(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture(scope="module")
def s3(server: S3Server) -> Any:
    return server.client()


@pytest.fixture
def bucket(s3: Any, request: pytest.FixtureRequest) -> str:
    name = "b-" + hashlib.md5(request.node.nodeid.encode()).hexdigest()
    s3.create_bucket(Bucket=name)
    return name


def refused(call: Any, **request: Any) -> tuple[str, int]:
    with pytest.raises(ClientError) as error:
        call(**request)
    response = error.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


@pytest.mark.parametrize("key", AWKWARD)
def test_an_awkward_key_makes_the_round_trip(s3: Any, bucket: str, key: str) -> None:
    s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == key.encode()
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]] == [key]
    assert [entry["Key"] for entry in s3.list_objects(Bucket=bucket)["Contents"]] == [key]
    s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": key})
    assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == key.encode()
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key}]})
    assert [entry["Key"] for entry in answer["Deleted"]] == [key]
    assert refused(s3.head_object, Bucket=bucket, Key=key) == ("404", 404)


def test_virtual_hosts_reach_the_same_bucket(server: S3Server, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="a/b c", Body=b"hello")
    for host in (f"{bucket}.localhost:{server.port}", f"{bucket}.s3.localhost", f"{bucket}.s3.us-east-1.amazonaws.com"):
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("GET", "/a/b%20c", headers={"Host": host})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"hello")
        connection.close()


@pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"])
def test_the_sdk_checks_what_it_sent_and_what_it_gets(s3: Any, bucket: str, algorithm: str) -> None:
    data = os.urandom(200_000)
    put = s3.put_object(Bucket=bucket, Key="a", Body=io.BytesIO(data), ChecksumAlgorithm=algorithm)
    assert put[f"Checksum{algorithm}"]
    got = s3.get_object(Bucket=bucket, Key="a", ChecksumMode="ENABLED")
    assert got["Body"].read() == data
    assert got["ResponseMetadata"]["ChecksumAlgorithm"] == algorithm.lower()


@pytest.mark.parametrize("size", [0, 1, 8 * MIB, 20 * MIB + 1])
def test_the_transfer_manager_moves_files_of_any_size(s3: Any, bucket: str, size: int) -> None:
    data = os.urandom(size)
    s3.upload_fileobj(io.BytesIO(data), bucket, "big")
    back = io.BytesIO()
    s3.download_fileobj(bucket, "big", back)
    assert back.getvalue() == data
    head = s3.head_object(Bucket=bucket, Key="big", ChecksumMode="ENABLED")
    assert head["ContentLength"] == size
    assert ("-" in head["ETag"]) == (size >= 8 * MIB)


def test_the_transfer_manager_copies_in_parts(s3: Any, bucket: str) -> None:
    data = os.urandom(12 * MIB)
    s3.upload_fileobj(io.BytesIO(data), bucket, "big")
    s3.copy({"Bucket": bucket, "Key": "big"}, bucket, "copy", Config=TransferConfig(multipart_threshold=5 * MIB))
    assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == data
    copied = s3.copy_object(Bucket=bucket, Key="again", CopySource=f"{bucket}/big")
    assert copied["CopyObjectResult"]["ETag"] == f'"{hashlib.md5(data).hexdigest()}"'


def test_paginators_lead_through_everything(s3: Any, bucket: str) -> None:
    keys = sorted(f"d{number % 3}/é {number:03}" for number in range(25))
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key)
    for name in ("list_objects_v2", "list_objects"):
        pages = s3.get_paginator(name).paginate(Bucket=bucket, PaginationConfig={"PageSize": 4})
        assert [entry["Key"] for page in pages for entry in page.get("Contents", [])] == keys
        pages = s3.get_paginator(name).paginate(Bucket=bucket, Delimiter="/", PaginationConfig={"PageSize": 1})
        assert [entry["Prefix"] for page in pages for entry in page.get("CommonPrefixes", [])] == ["d0/", "d1/", "d2/"]


def test_metadata_and_headers_come_back(s3: Any, bucket: str) -> None:
    s3.put_object(
        Bucket=bucket,
        Key="a",
        Body=b"x",
        Metadata={"Team": "sales"},
        ContentType="text/csv",
        ContentEncoding="gzip",
        ContentDisposition="attachment",
        CacheControl="no-cache",
        ContentLanguage="de",
        Expires="Wed, 01 Jan 2031 00:00:00 GMT",
        StorageClass="STANDARD_IA",
        Tagging="a=b",
    )
    head = s3.head_object(Bucket=bucket, Key="a")
    assert head["Metadata"] == {"team": "sales"}
    assert (head["ContentType"], head["ContentEncoding"], head["ContentDisposition"]) == (
        "text/csv",
        "gzip",
        "attachment",
    )
    assert (head["CacheControl"], head["ContentLanguage"], head["StorageClass"]) == ("no-cache", "de", "STANDARD_IA")
    assert head["ExpiresString"] == "Wed, 01 Jan 2031 00:00:00 GMT"


def test_errors_reach_the_client_by_name(s3: Any, bucket: str) -> None:
    assert refused(s3.get_object, Bucket=bucket, Key="none") == ("NoSuchKey", 404)
    assert refused(s3.list_objects_v2, Bucket="no-such-bucket-here") == ("NoSuchBucket", 404)
    s3.put_object(Bucket=bucket, Key="a", Body=b"hello")
    assert refused(s3.delete_bucket, Bucket=bucket) == ("BucketNotEmpty", 409)
    assert refused(s3.get_object, Bucket=bucket, Key="a", Range="bytes=9-") == ("InvalidRange", 416)
    assert refused(s3.put_object, Bucket=bucket, Key="a", IfNoneMatch="*") == ("PreconditionFailed", 412)
    assert refused(s3.get_object, Bucket=bucket, Key="a", IfMatch='"x"') == ("PreconditionFailed", 412)
    etag = s3.head_object(Bucket=bucket, Key="a")["ETag"]
    assert refused(s3.get_object, Bucket=bucket, Key="a", IfNoneMatch=etag) == ("304", 304)
    upload = {"Bucket": bucket, "Key": "a", "UploadId": "none"}
    assert refused(s3.abort_multipart_upload, **upload) == ("NoSuchUpload", 404)
    with pytest.raises(s3.exceptions.NoSuchKey):
        s3.get_object(Bucket=bucket, Key="none")
    assert refused(s3.put_bucket_cors, Bucket=bucket, CORSConfiguration={"CORSRules": []})[0] == "NotImplemented"


def test_versions_and_settings_by_the_client(s3: Any, bucket: str) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
    versions = [s3.put_object(Bucket=bucket, Key="a", Body=str(n).encode())["VersionId"] for n in range(2)]
    s3.delete_object(Bucket=bucket, Key="a")
    listed = s3.list_object_versions(Bucket=bucket)
    assert [version["VersionId"] for version in listed["Versions"]] == versions[::-1]
    assert listed["DeleteMarkers"][0]["IsLatest"] is True
    got = s3.get_object(Bucket=bucket, Key="a", VersionId=versions[0])
    assert got["Body"].read() == b"0"
    s3.put_object_tagging(
        Bucket=bucket, Key="a", VersionId=versions[0], Tagging={"TagSet": [{"Key": "k", "Value": "v"}]}
    )
    tags = s3.get_object_tagging(Bucket=bucket, Key="a", VersionId=versions[0])
    assert tags["TagSet"] == [{"Key": "k", "Value": "v"}]
    assert s3.get_bucket_location(Bucket=bucket)["LocationConstraint"] is None
    assert s3.get_bucket_acl(Bucket=bucket)["Grants"][0]["Permission"] == "FULL_CONTROL"
    assert s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]["BlockPublicAcls"] is True
    assert s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    attributes = s3.get_object_attributes(
        Bucket=bucket, Key="a", VersionId=versions[0], ObjectAttributes=["ETag", "ObjectSize", "Checksum"]
    )
    assert attributes["ObjectSize"] == 1


def test_presigned_urls_put_and_get(s3: Any, bucket: str) -> None:
    ask = {"Bucket": bucket, "Key": "in/a b+c.csv"}
    put = Request(s3.generate_presigned_url("put_object", ask), data=b"hello", method="PUT")
    with urlopen(put) as answer:
        assert answer.status == 200
    with urlopen(s3.generate_presigned_url("get_object", {**ask, "ResponseContentType": "text/csv"})) as answer:
        assert (answer.read(), answer.headers["content-type"]) == (b"hello", "text/csv")


def test_an_upload_that_waits_for_100_continue_gets_it(server: S3Server, bucket: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.putrequest("PUT", f"/{bucket}/a")
    connection.putheader("Content-Length", "5")
    connection.putheader("Expect", "100-continue")
    connection.endheaders()
    assert connection.sock.recv(1000).startswith(b"HTTP/1.1 100")
    connection.send(b"hello")
    assert connection.getresponse().status == 200
    connection.close()


def until(holds: Callable[[], object], what: str) -> None:
    """Look again and again; the server's own threads give no signal to wait for."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, f"never: {what}"
        threading.Event().wait(0.01)


def test_a_client_that_hangs_up_midway_leaves_nothing(server: S3Server, s3: Any, bucket: str) -> None:
    before = set(server.files())
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.putrequest("PUT", f"/{bucket}/a")
    connection.putheader("Content-Length", str(10 * MIB))
    connection.endheaders()
    connection.send(bytes(5 * MIB))
    until(lambda: set(server.files()) - before, "the upload is being staged")
    connection.close()
    until(lambda: set(server.files()) <= before, "nothing of it is left")
    assert refused(s3.head_object, Bucket=bucket, Key="a") == ("404", 404)


def test_a_reader_finishes_although_the_object_is_replaced_meanwhile(server: S3Server, s3: Any, bucket: str) -> None:
    data = os.urandom(8 * MIB)
    s3.put_object(Bucket=bucket, Key="a", Body=data)
    body = s3.get_object(Bucket=bucket, Key="a")["Body"]
    first = body.read(100_000)
    s3.put_object(Bucket=bucket, Key="a", Body=b"new")
    s3.delete_object(Bucket=bucket, Key="a")
    assert first + body.read() == data


def test_many_clients_write_one_key_and_one_of_them_wins_whole(s3: Any, bucket: str) -> None:
    bodies = [bytes([number]) * 100_000 for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda body: s3.put_object(Bucket=bucket, Key="a", Body=body), bodies))
    assert s3.get_object(Bucket=bucket, Key="a")["Body"].read() in bodies


def test_of_many_who_put_if_absent_one_succeeds(s3: Any, bucket: str) -> None:
    def put(number: int) -> str:
        try:
            s3.put_object(Bucket=bucket, Key="a", Body=str(number).encode(), IfNoneMatch="*")
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return "written"

    with ThreadPoolExecutor(8) as pool:
        outcomes = sorted(pool.map(put, range(24)))
    assert outcomes == ["PreconditionFailed"] * 23 + ["written"]


def test_the_aws_command_line_copies_lists_and_removes(server: S3Server, bucket: str, tmp_path: Path) -> None:
    source = tmp_path / "big file.bin"
    source.write_bytes(os.urandom(9 * MIB))
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": server.endpoint,
    }

    def aws(*words: str) -> str:
        command = [str(Path(sys.executable).with_name("aws")), "s3", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    aws("cp", str(source), f"s3://{bucket}/in/big file.bin", "--quiet")
    assert "big file.bin" in aws("ls", f"s3://{bucket}/in/")
    aws("cp", f"s3://{bucket}/in/big file.bin", str(tmp_path / "back"), "--quiet")
    assert (tmp_path / "back").read_bytes() == source.read_bytes()
    aws("rb", f"s3://{bucket}", "--force")


def test_sorting_events_by_sequencer_gives_the_order_in_which_a_key_was_written(tmp_path: Path) -> None:
    with serving(tmp_path, siblings=(EVENTS,)) as running:
        s3 = running.client(max_pool_connections=8)
        s3.create_bucket(Bucket="bucket")
        s3.put_bucket_notification_configuration(
            Bucket="bucket", NotificationConfiguration={"EventBridgeConfiguration": {}}
        )

        def write(number: int) -> None:
            s3.put_object(Bucket="bucket", Key="a", Body=b"%d" % number)
            if number % 3 == 0:
                s3.delete_object(Bucket="bucket", Key="a")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(120)))
        rows = running.run(lambda: running.store.read(lambda tx: tx.all("SELECT request FROM events_told ORDER BY id")))
    events = [orjson.loads(orjson.loads(row["request"])["Detail"]) for row in rows]
    sequencers = [event["object"]["sequencer"].ljust(24, "0") for event in events]
    assert len(events) > 120
    assert sequencers == sorted(set(sequencers))
