"""S3's wire by raw bytes: addresses, chunks, trailers, ranges, presigned URLs, forms, and clients that go away."""

import asyncio
import base64
import hashlib
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.clock import SimulatedClock
from muster.engine import Engine
from muster.errors import ServiceError
from muster.services import s3
from muster.store import blobs as blob_rows
from muster.store.blobs import Blobs
from muster.store.port import Realm
from muster.testing import World
from muster.transaction import Caller
from muster.wire import s3_address
from muster.wire.s3 import S3Wire
from muster.wire.s3_address import Address
from muster.wire.s3_chunks import ChunkDecoder

CALLER = Caller("AKID", "127.0.0.1", "REQUEST1")


class Answered:
    """An HTTP answer, gathered."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        assert messages, "nothing was answered"
        self.status: int = messages[0]["status"]
        self.headers = {name.decode(): value.decode("latin-1") for name, value in messages[0]["headers"]}
        self.body = b"".join(message.get("body", b"") for message in messages[1:])

    @property
    def code(self) -> str | None:
        return ElementTree.fromstring(self.body).findtext("Code")


class Wire:
    """The wire on a small world, spoken to in ASGI messages."""

    def __init__(self, folder: Path) -> None:
        self.blobs = Blobs(folder / "blobs")
        self.world = World(
            [s3.service(self.blobs)],
            parts={blob_rows.PART: blob_rows.MIGRATIONS},
            runners={blob_rows.REMOVE: self.blobs.carry_removal, **s3.runners(self.blobs)},
            clock=SimulatedClock(1_700_000_000.0),
        )
        engine = Engine(self.world.store, self.world.operations, self.world.clock)
        self.s3 = S3Wire(engine, self.blobs, Realm(), self.world.clock)

    def messages(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        pieces: Iterable[bytes] = (),
        *,
        gone: bool = False,
    ) -> list[dict[str, Any]]:
        """What is sent for a request whose body comes in pieces; `gone`: the client goes away behind them."""
        incoming = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
        incoming.append({"type": "http.disconnect"} if gone else {"type": "http.request", "body": b""})
        sent: list[dict[str, Any]] = []

        async def send(message: Any) -> None:
            sent.append(message)

        self.send(method, target, send, headers, incoming)
        return sent

    def send(
        self,
        method: str,
        target: str,
        send: Callable[[Any], Awaitable[None]],
        headers: Mapping[str, str] | None = None,
        messages: Iterable[dict[str, Any]] = ({"type": "http.request", "body": b""},),
    ) -> None:
        """Answer one request to `send`."""
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in (headers or {}).items()],
        }
        incoming = list(messages)

        async def receive() -> dict[str, Any]:
            if incoming:
                return incoming.pop(0)
            await asyncio.Event().wait()
            raise AssertionError

        self.world.run(self.s3(scope, receive, send, CALLER))

    def ask(self, method: str, target: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Answered:
        stated = {"content-length": str(len(body)), **(headers or {})}
        return Answered(self.messages(method, target, stated, [body] if body else []))

    def files(self) -> list[Path]:
        return [path for path in self.blobs.folder.rglob("*") if path.is_file()]


@pytest.fixture
def wire(tmp_path: Path) -> Wire:
    made = Wire(tmp_path)
    assert made.ask("PUT", "/bucket").status == 200
    return made


# Addresses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "bucket"),
    [
        ("localhost:4566", None),
        ("127.0.0.1:4566", None),
        ("[::1]:4566", None),
        ("s3.localhost:4566", None),
        ("bucket.localhost:4566", "bucket"),
        ("bucket.s3.localhost", "bucket"),
        ("my.dotted.bucket.s3.localhost:80", "my.dotted.bucket"),
        ("s3.amazonaws.com", None),
        ("bucket.s3.amazonaws.com", "bucket"),
        ("bucket.s3.eu-west-1.amazonaws.com", "bucket"),
        ("my.s3.bucket.s3.amazonaws.com", "my.s3.bucket"),
        ("", None),
    ],
)
def test_a_bucket_may_stand_before_the_host(host: str, bucket: str | None) -> None:
    assert s3_address.bucket_in_host(host) == bucket


@given(key=st.text(min_size=1, max_size=40).filter(lambda key: not any(0xD800 <= ord(c) <= 0xDFFF for c in key)))
def test_every_key_survives_the_path(key: str) -> None:
    for path, host in (
        (f"/bucket/{quote(key, safe='/~')}", "localhost"),
        (f"/{quote(key, safe='')}", "bucket.localhost"),
    ):
        assert s3_address.address(path, host) == Address("bucket", key)


def test_slashes_and_dots_are_parts_of_the_key() -> None:
    for path, key in (("/b//a", "/a"), ("/b/a//b", "a//b"), ("/b/../x", "../x"), ("/b/./", "./"), ("/b/a+b", "a+b")):
        assert s3_address.address(path, "localhost").key == key
    assert s3_address.address("/b/", "localhost") == Address("b", None)
    assert s3_address.address("/", "localhost") == Address(None, None)


@pytest.mark.parametrize(
    ("method", "target", "operation"),
    [
        ("GET", "/", "ListBuckets"),
        ("PUT", "/b", "CreateBucket"),
        ("HEAD", "/b", "HeadBucket"),
        ("GET", "/b", "ListObjects"),
        ("GET", "/b?list-type=2&prefix=a", "ListObjectsV2"),
        ("GET", "/b?versions", "ListObjectVersions"),
        ("GET", "/b?uploads", "ListMultipartUploads"),
        ("GET", "/b?location", "GetBucketLocation"),
        ("GET", "/b?notification", "GetBucketNotificationConfiguration"),
        ("PUT", "/b?lifecycle", "PutBucketLifecycleConfiguration"),
        ("POST", "/b?delete", "DeleteObjects"),
        ("GET", "/b/k?x-id=GetObject", "GetObject"),
        ("HEAD", "/b/k", "HeadObject"),
        ("PUT", "/b/k", "PutObject"),
        ("PUT", "/b/k?partNumber=1&uploadId=u", "UploadPart"),
        ("POST", "/b/k?uploads", "CreateMultipartUpload"),
        ("POST", "/b/k?uploadId=u", "CompleteMultipartUpload"),
        ("GET", "/b/k?uploadId=u", "ListParts"),
        ("DELETE", "/b/k?uploadId=u", "AbortMultipartUpload"),
        ("DELETE", "/b/k?versionId=v", "DeleteObject"),
        ("GET", "/b/k?attributes", "GetObjectAttributes"),
        ("GET", "/b/k?tagging", "GetObjectTagging"),
        ("GET", "/b/k?acl", "GetObjectAcl"),
        ("POST", "/b/k?select&select-type=2", "SelectObjectContent"),
        ("POST", "/b/k?restore", "RestoreObject"),
    ],
)
def test_method_path_and_query_name_the_operation(method: str, target: str, operation: str) -> None:
    path, _, query = target.partition("?")
    where = s3_address.address(path, "localhost")
    assert s3_address.operation(method, where, s3_address.query(query), {}) == operation


def test_a_copy_source_makes_a_put_a_copy() -> None:
    headers = {"x-amz-copy-source": "b/other"}
    where = Address("b", "k")
    assert s3_address.operation("PUT", where, (), headers) == "CopyObject"
    part = s3_address.query("partNumber=1&uploadId=u")
    assert s3_address.operation("PUT", where, part, headers) == "UploadPartCopy"


# Chunks --------------------------------------------------------------------------------------------------------------


def chunked(chunks: Iterable[bytes], trailers: Mapping[str, str], *, signed: bool) -> bytes:
    signature = ";chunk-signature=" + "0" * 64 if signed else ""
    out = b""
    for chunk in (*chunks, b""):
        out += f"{len(chunk):x}{signature}\r\n".encode() + chunk + (b"\r\n" if chunk else b"")
    return out + "".join(f"{name}:{value}\r\n" for name, value in trailers.items()).encode() + b"\r\n"


def cut(data: bytes, places: list[int]) -> Iterator[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    for begin, end in pairwise(edges):
        yield data[begin:end]


@given(
    chunks=st.lists(st.binary(min_size=1, max_size=30), max_size=5),
    places=st.lists(st.integers(0, 1000), max_size=8),
    signed=st.booleans(),
    trailers=st.dictionaries(st.sampled_from(["x-amz-checksum-crc32", "x-amz-trailer-signature"]), st.just("abc=")),
)
def test_chunks_are_decoded_however_they_are_cut(
    chunks: list[bytes], places: list[int], signed: bool, trailers: dict[str, str]
) -> None:
    decoder = ChunkDecoder()
    found = b"".join(
        piece for data in cut(chunked(chunks, trailers, signed=signed), places) for piece in decoder.feed(data)
    )
    decoder.end()
    assert (found, decoder.trailers) == (b"".join(chunks), trailers)


@pytest.mark.parametrize(
    "body",
    [
        b"5\r\nhell",
        b"5\r\nhello",
        b"zz\r\n",
        b"-1\r\n",
        b"2\r\nabc\r\n0\r\n\r\n",
        b"5\nhello",
        b"0\r\n\r\nmore",
        b"f" * 5000,
    ],
)
def test_a_broken_chunked_encoding_is_refused(body: bytes) -> None:
    decoder = ChunkDecoder()
    with pytest.raises(ServiceError) as refused:
        list(decoder.feed(body))
        decoder.end()
    assert refused.value.code == "IncompleteBody"


def crc32(data: bytes) -> str:
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


@pytest.mark.parametrize("size", [0, 5, 65_536, 65_537, 3_000_000])
def test_a_chunked_upload_with_a_trailing_checksum_arrives_whole(wire: Wire, size: int) -> None:
    data = bytes(index % 251 for index in range(size))
    body = chunked(
        [data[at : at + 70_000] for at in range(0, size, 70_000)], {"x-amz-checksum-crc32": crc32(data)}, signed=False
    )
    headers = {
        "content-encoding": "gzip,aws-chunked",
        "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "x-amz-decoded-content-length": str(size),
        "x-amz-trailer": "x-amz-checksum-crc32",
        "content-length": str(len(body)),
    }
    pieces = [body[at : at + 64_000] for at in range(0, len(body), 64_000)]
    put = Answered(wire.messages("PUT", "/bucket/k", headers, pieces))
    assert put.status == 200, put.body
    assert put.headers["x-amz-checksum-crc32"] == crc32(data)
    got = wire.ask("GET", "/bucket/k")
    assert got.body == data
    assert got.headers["content-length"] == str(size)
    assert got.headers["content-encoding"] == "gzip"
    assert got.headers["etag"] == f'"{hashlib.md5(data).hexdigest()}"'
    assert len(wire.files()) == (1 if size > 65_536 else 0)


@pytest.mark.parametrize("size", [5, 200_000])
def test_a_wrong_trailing_checksum_is_refused_and_nothing_stays(wire: Wire, size: int) -> None:
    body = chunked([bytes(size)], {"x-amz-checksum-crc32": crc32(b"other")}, signed=False)
    headers = {
        "content-encoding": "aws-chunked",
        "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "x-amz-decoded-content-length": str(size),
        "x-amz-trailer": "x-amz-checksum-crc32",
    }
    put = wire.ask("PUT", "/bucket/k", headers, body)
    assert (put.status, put.code) == (400, "BadDigest")
    assert wire.ask("GET", "/bucket/k").code == "NoSuchKey"
    assert wire.files() == []


def test_a_length_that_was_not_kept_is_refused(wire: Wire) -> None:
    headers = {"x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "x-amz-decoded-content-length": "6"}
    put = wire.ask("PUT", "/bucket/k", headers, chunked([b"hello"], {}, signed=False))
    assert put.code == "IncompleteBody"
    assert Answered(wire.messages("PUT", "/bucket/k", {}, [b"x"])).status == 411
    assert wire.ask("PUT", "/bucket/k", {"content-length": str(6 * 1024**3)}).code == "EntityTooLarge"


def test_a_signed_digest_that_is_not_the_bodys_is_refused(wire: Wire) -> None:
    other = {"x-amz-content-sha256": hashlib.sha256(b"other").hexdigest()}
    assert wire.ask("PUT", "/bucket/k", other, b"hello").code == "XAmzContentSHA256Mismatch"
    right = {"x-amz-content-sha256": hashlib.sha256(b"hello").hexdigest()}
    assert wire.ask("PUT", "/bucket/k", right, b"hello").status == 200


# Clients that go away ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [10, 100_000, 3_000_000])
def test_a_client_that_goes_away_leaves_no_object_and_no_file(wire: Wire, sent: int) -> None:
    pieces = [bytes(50_000)] * (sent // 50_000) or [bytes(sent)]
    messages = wire.messages("PUT", "/bucket/k", {"content-length": "9000000"}, pieces, gone=True)
    assert messages == []
    assert wire.ask("HEAD", "/bucket/k").status == 404
    assert wire.files() == []


# Answers -------------------------------------------------------------------------------------------------------------


def test_an_error_has_the_shape_of_s3(wire: Wire) -> None:
    got = wire.ask("GET", "/bucket/a%20b")
    assert (got.status, got.headers["content-type"]) == (404, "application/xml")
    error = {node.tag: node.text for node in ElementTree.fromstring(got.body)}
    assert error["Code"] == "NoSuchKey"
    assert error["Key"] == "a b"
    assert error["Resource"] == "/bucket/a b"
    assert error["RequestId"] == got.headers["x-amz-request-id"] == "REQUEST1"
    assert error["HostId"] == got.headers["x-amz-id-2"]


def test_a_head_has_no_body(wire: Wire) -> None:
    wire.ask("PUT", "/bucket/k", {}, b"hello")
    head = wire.ask("HEAD", "/bucket/k")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "5")
    missing = wire.ask("HEAD", "/bucket/none")
    assert (missing.status, missing.body) == (404, b"")
    assert wire.ask("HEAD", "/nowhere").status == 404


def test_ranges_are_answered_as_partial_content(wire: Wire) -> None:
    data = bytes(index % 251 for index in range(3_000_000))
    wire.ask("PUT", "/bucket/k", {}, data)
    got = wire.ask("GET", "/bucket/k", {"range": "bytes=1000000-2999998"})
    assert (got.status, got.body) == (206, data[1_000_000:2_999_999])
    assert got.headers["content-range"] == "bytes 1000000-2999998/3000000"
    few = wire.ask("GET", "/bucket/k", {"range": "bytes=-3"})
    assert (few.status, few.body) == (206, data[-3:])
    assert wire.ask("HEAD", "/bucket/k", {"range": "bytes=0-9"}).headers["content-length"] == "10"
    beyond = wire.ask("GET", "/bucket/k", {"range": "bytes=3000000-"})
    assert (beyond.status, beyond.code) == (416, "InvalidRange")


def test_an_unmodified_object_is_answered_without_a_body(wire: Wire) -> None:
    etag = wire.ask("PUT", "/bucket/k", {}, b"hello").headers["etag"]
    got = wire.ask("GET", "/bucket/k", {"if-none-match": etag})
    assert (got.status, got.body, got.headers["etag"]) == (304, b"", etag)
    since = wire.ask("GET", "/bucket/k", {"if-modified-since": "Wed, 01 Jan 2031 00:00:00 GMT"})
    assert since.status == 304


def test_a_delete_marker_says_that_it_is_one(wire: Wire) -> None:
    body = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    assert wire.ask("PUT", "/bucket?versioning", {}, body).status == 200
    wire.ask("PUT", "/bucket/k", {}, b"hello")
    gone = wire.ask("DELETE", "/bucket/k")
    assert (gone.status, gone.headers["x-amz-delete-marker"]) == (204, "true")
    got = wire.ask("GET", "/bucket/k")
    assert (got.code, got.headers["x-amz-delete-marker"]) == ("NoSuchKey", "true")
    marker = wire.ask("GET", f"/bucket/k?versionId={gone.headers['x-amz-version-id']}")
    assert (marker.status, marker.headers["allow"]) == (405, "DELETE")


def test_what_is_not_supported_is_refused_by_name(wire: Wire) -> None:
    for method, target, headers, name in (
        ("PUT", "/bucket?cors", {}, "PutBucketCors"),
        ("POST", "/bucket/k?restore", {}, "RestoreObject"),
        ("PUT", "/bucket/k", {"x-amz-object-lock-mode": "COMPLIANCE"}, "ObjectLockMode"),
        ("PUT", "/bucket/k", {"x-amz-server-side-encryption-customer-algorithm": "AES256"}, "SSECustomerAlgorithm"),
        ("PUT", "/bucket/k", {"x-amz-checksum-xxhash64": "AAAAAAAAAAA="}, "ChecksumXXHASH64"),
    ):
        refused = wire.ask(method, target, headers)
        assert (refused.status, refused.code) == (501, "NotImplemented"), target
        assert name in refused.body.decode()
    assert wire.ask("PATCH", "/bucket/k").status == 405


@pytest.mark.parametrize("body", [b"<", b"<!DOCTYPE a [<!ENTITY b 'c'>]><Delete>&b;</Delete>", b"\xff\xfe"])
def test_a_document_that_cannot_be_read_is_refused(wire: Wire, body: bytes) -> None:
    assert wire.ask("POST", "/bucket?delete", {}, body).code == "MalformedXML"


def test_a_document_is_held_against_its_digests(wire: Wire) -> None:
    body = b"<Delete><Object><Key>k</Key></Object></Delete>"
    other = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    assert wire.ask("POST", "/bucket?delete", {"content-md5": other}, body).code == "BadDigest"
    stated = {"x-amz-sdk-checksum-algorithm": "CRC32", "x-amz-checksum-crc32": crc32(b"other")}
    assert wire.ask("POST", "/bucket?delete", stated, body).code == "BadDigest"
    stated["x-amz-checksum-crc32"] = crc32(body)
    assert wire.ask("POST", "/bucket?delete", stated, body).status == 200


@pytest.mark.parametrize("path", ["/bucket/%ff", "/%ff/k"])
def test_a_path_that_is_not_utf8_is_refused(wire: Wire, path: str) -> None:
    assert wire.ask("GET", path).code == "InvalidURI"


def test_a_large_object_passes_through_little_memory(wire: Wire) -> None:
    size, piece = 96 * 1024 * 1024, bytes(64 * 1024)
    wire.ask("PUT", "/bucket/small", {}, b"so that everything is loaded")
    peaks = []
    tracemalloc.start()
    try:
        put = Answered(wire.messages("PUT", "/bucket/k", {"content-length": str(size)}, [piece] * (size // len(piece))))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.reset_peak()
        received = 0

        async def send(message: Any) -> None:
            nonlocal received
            received += len(message.get("body", b""))

        wire.send("GET", "/bucket/k", send)
        peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert (put.status, received) == (200, size)
    assert max(peaks) < 8 * 1024 * 1024


# Presigned URLs ------------------------------------------------------------------------------------------------------


def presigned(when: str, seconds: int, **more: str) -> str:
    pairs = {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": "AKID/20231114/us-east-1/s3/aws4_request",
        "X-Amz-Date": when,
        "X-Amz-Expires": str(seconds),
        "X-Amz-SignedHeaders": "host",
        "X-Amz-Signature": "0" * 64,
        **more,
    }
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs.items())


def test_a_presigned_url_works_until_it_expires(wire: Wire) -> None:
    # The simulated clock stands at 2023-11-14T22:13:20Z.
    put = wire.ask(
        "PUT", f"/bucket/k?{presigned('20231114T221000Z', 300, **{'x-amz-meta-team': 'sales'})}", {}, b"hello"
    )
    assert put.status == 200
    got = wire.ask("GET", f"/bucket/k?{presigned('20231114T221000Z', 300)}")
    assert (got.body, got.headers["x-amz-meta-team"]) == (b"hello", "sales")
    late = wire.ask("GET", f"/bucket/k?{presigned('20231114T221000Z', 100)}")
    assert (late.status, late.code) == (403, "AccessDenied")
    assert wire.ask("GET", f"/bucket/k?{presigned('yesterday', 100)}").code == "AuthorizationQueryParametersError"


def test_a_presigned_url_of_the_older_signature_expires_too(wire: Wire) -> None:
    wire.ask("PUT", "/bucket/k", {}, b"hello")
    query = "AWSAccessKeyId=AKID&Signature=x%3D&Expires="
    assert wire.ask("GET", f"/bucket/k?{query}1700000001").body == b"hello"
    for expires in ("1699999999", "", "soon"):
        assert wire.ask("GET", f"/bucket/k?{query}{expires}").code == "AccessDenied"


# Forms ---------------------------------------------------------------------------------------------------------------

BOUNDARY = "----boundary"
FORM = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}


def form(fields: Mapping[str, str], data: bytes, filename: str = "ü a.csv") -> bytes:
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n'
    parts.append(head.encode() + b"Content-Type: text/csv\r\n\r\n" + data + b"\r\n")
    ignored = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="submit"\r\n\r\nUpload\r\n--{BOUNDARY}--\r\n'
    return b"".join(parts) + ignored.encode()


@pytest.mark.parametrize("size", [5, 300_000])
def test_a_form_uploads_its_file(wire: Wire, size: int) -> None:
    data = bytes(index % 251 for index in range(size))
    sha256 = base64.b64encode(hashlib.sha256(data).digest()).decode()
    fields = {
        "key": "in/${filename}",
        "Content-Type": "text/csv",
        "x-amz-meta-team": "sales",
        "x-amz-checksum-sha256": sha256,
    }
    body = form(fields, data)
    pieces = [body[at : at + 10_000] for at in range(0, len(body), 10_000)]
    answer = Answered(wire.messages("POST", "/bucket", FORM, pieces))
    assert answer.status == 204, answer.body
    got = wire.ask("GET", "/bucket/" + quote("in/ü a.csv"))
    assert got.body == data
    assert (got.headers["content-type"], got.headers["x-amz-meta-team"]) == ("text/csv", "sales")


def test_a_form_is_answered_as_it_asks(wire: Wire) -> None:
    created = wire.ask("POST", "/bucket", FORM, form({"key": "k", "success_action_status": "201"}, b"x"))
    assert created.status == 201
    assert ElementTree.fromstring(created.body).findtext("Key") == "k"
    to = {"key": "k", "success_action_redirect": "http://localhost/done"}
    redirected = wire.ask("POST", "/bucket", FORM, form(to, b"x"))
    assert redirected.status == 303
    assert redirected.headers["location"].startswith("http://localhost/done?bucket=bucket&key=k&etag=")


@pytest.mark.parametrize(
    ("fields", "code"),
    [({}, "InvalidArgument"), ({"key": "k", "acl": "public-read"}, "AccessControlListNotSupported")],
)
def test_a_form_that_cannot_be_honoured_is_refused(wire: Wire, fields: dict[str, str], code: str) -> None:
    assert wire.ask("POST", "/bucket", FORM, form(fields, bytes(100_000))).code == code
    assert wire.files() == []


def test_a_form_without_an_end_is_refused(wire: Wire) -> None:
    assert wire.ask("POST", "/bucket", FORM, form({"key": "k"}, b"x")[:-60]).code in (
        "MalformedPOSTRequest",
        "InvalidArgument",
    )
    assert wire.ask("POST", "/bucket", {"content-type": "multipart/form-data"}, b"").code == "MalformedPOSTRequest"


def policy(*conditions: Any, expiration: str = "2030-01-01T00:00:00Z") -> str:
    return base64.b64encode(orjson.dumps({"expiration": expiration, "conditions": list(conditions)})).decode()


def test_a_forms_policy_is_held_against_the_form(wire: Wire) -> None:
    def upload(stated: str, **more: str) -> Answered:
        return wire.ask("POST", "/bucket", FORM, form({"key": "in/k", "policy": stated, **more}, b"hello"))

    good = ({"bucket": "bucket"}, ["starts-with", "$key", "in/"], ["content-length-range", 1, 10])
    assert upload(policy(*good)).status == 204
    assert upload(policy(*good, expiration="2023-01-01T00:00:00Z")).code == "AccessDenied"
    assert upload(policy({"bucket": "other"}, *good[1:])).code == "AccessDenied"
    assert upload(policy(*good[:2], ["content-length-range", 1, 4])).code == "EntityTooLarge"
    assert upload(policy(*good[:2], ["content-length-range", 6, 9])).code == "EntityTooSmall"
    assert upload(policy(*good), **{"x-amz-meta-more": "1"}).code == "AccessDenied"
    assert upload("nonsense").code == "InvalidPolicyDocument"
