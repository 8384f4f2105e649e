"""S3's own wire: addresses, streams, presigned URLs and forms, where a model cannot say it.

Keeps true: an upload is whole, hashed and on disk before its operation is asked, and leaves nothing when it is refused
or the client goes away; an answer streams in bounded memory; HEAD has no body; every error has AWS's shape. Does not
decide anything: the operation does. Does not verify signatures.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from email.header import Header
from typing import Any, Protocol

from muster import models
from muster.arn import Realm
from muster.clock import Clock, SystemClock
from muster.errors import ServiceError, unsupported
from muster.operation import Answer, Request
from muster.services.s3 import checksums
from muster.services.s3.content import Content, Slices
from muster.services.s3.object_operations import PUT_BYTES_MAX
from muster.services.s3.operations import operations
from muster.store.blobs import Blobs
from muster.transaction import Caller
from muster.wire import codec, s3_address, s3_body, s3_form, timestamp
from muster.wire.faults import fault
from muster.wire.s3_address import Address, Pairs
from muster.wire.s3_body import ClientGone, Receive, Upload
from muster.wire.s3_chunks import ChunkDecoder, incomplete, is_chunked
from muster.wire.xml_shapes import escape

log = logging.getLogger(__name__)

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[str, str]]

# Bodies that are documents: the longest honest one lists 10,000 parts with their checksums.
DOCUMENT_BYTES_MAX = 8 * 1024 * 1024
STREAMED = frozenset({"PutObject", "UploadPart"})
BODY_THREADS = 8
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BREAKS = str.maketrans("\r\n\x00", "   ")
# Members of an error that are headers and not elements: how each is written.
_ERROR_HEADERS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "DeleteMarker": ("x-amz-delete-marker", lambda value: "true" if value else "false"),
    "ETag": ("ETag", str),
    "LastModified": ("Last-Modified", lambda value: str(timestamp.write_http_date(value))),
}


class Engine(Protocol):
    async def operate(self, service: str, operation: str, request: Request, caller: Caller) -> Answer: ...


@dataclass(slots=True)
class Asked:
    """One request's head, read; trailers join the headers when the body is over."""

    method: str
    where: Address
    pairs: Pairs
    headers: dict[str, str]
    caller: Caller
    receive: Receive
    send: Send

    @property
    def decoder(self) -> ChunkDecoder | None:
        return ChunkDecoder() if is_chunked(self.headers) else None


class S3Wire:
    """The S3 endpoint."""

    def __init__(self, engine: Engine, blobs: Blobs, realm: Realm, clock: Clock | None = None) -> None:
        self._engine = engine
        self._blobs = blobs
        self._realm = realm
        self._clock = clock or SystemClock()
        self._offered = operations(blobs).keys()
        self._pool = ThreadPoolExecutor(BODY_THREADS, thread_name_prefix="muster-bodies")

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send, caller: Caller) -> None:
        """Answer one request."""
        headers = _headers(scope)
        method = scope["method"]
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        resource = raw_path.decode("latin-1")
        try:
            where = s3_address.address(resource, headers.get("host", ""))
            resource = where.resource
            pairs = s3_address.query(scope["query_string"].decode("latin-1"))
            self._presigned(pairs, headers)
            await self._answer(Asked(method, where, pairs, headers, caller, receive, send))
        except ClientGone:
            return
        except ServiceError as error:
            await _send_error(send, method, error, resource, caller.request_id)
        except Exception:
            log.exception("S3 request %s failed: %s %s", caller.request_id, method, resource)
            failure = ServiceError(
                "InternalError",
                "We encountered an internal error. Please try again. The server's log tells more under this"
                " request's id.",
                status=500,
            )
            await _send_error(send, method, failure, resource, caller.request_id)

    def _presigned(self, pairs: Pairs, headers: dict[str, str]) -> None:
        """A presigned URL carries headers in its query, and a time after which it is worth nothing."""
        stated = {name.lower(): value for name, value in pairs if name.lower().startswith("x-amz-")}
        if "x-amz-signature" not in stated:
            self._presigned_of_old(dict(pairs))
            return
        for name, value in stated.items():
            headers.setdefault(name, value)
        try:
            begin = datetime.strptime(stated["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
            end = begin + int(stated["x-amz-expires"])
        except (KeyError, ValueError):
            raise ServiceError(
                "AuthorizationQueryParametersError",
                "Query-string authentication version 4 requires the X-Amz-Date and X-Amz-Expires parameters.",
                status=400,
            ) from None
        self._check_expiry(end)

    def _presigned_of_old(self, stated: Mapping[str, str]) -> None:
        """The presigned URLs of signature version 2, which boto3 still makes for S3 by default."""
        if "Signature" in stated and "AWSAccessKeyId" in stated:
            if not stated.get("Expires", "").isdigit():
                raise ServiceError(
                    "AccessDenied", "Query-string authentication requires the Expires parameter.", status=403
                )
            self._check_expiry(int(stated["Expires"]))

    def _check_expiry(self, end: float) -> None:
        if self._clock.now() > end:
            raise ServiceError(
                "AccessDenied", "Request has expired", status=403, fields={"Expires": timestamp.write_iso8601(end)}
            )

    async def _answer(self, asked: Asked) -> None:
        name = s3_address.operation(asked.method, asked.where, asked.pairs, asked.headers)
        if name not in self._offered:
            raise unsupported(f"the operation s3:{name}")
        if name == s3_address.POST_FORM:
            await self._form(asked)
        elif name in STREAMED:
            await self._upload(asked, name)
        else:
            await self._ask(asked, name)

    async def _ask(self, asked: Asked, name: str) -> None:
        decoder = asked.decoder
        body = await s3_body.whole(s3_body.plain(asked.receive, decoder), DOCUMENT_BYTES_MAX)
        if decoder is not None:
            asked.headers.update(decoder.trailers)
        if body:
            _check_document(body, asked.headers)
        request = _request(asked, name, body)
        answer = await self._engine.operate("s3", name, request, asked.caller)
        await self._send(asked, name, request, answer)

    async def _upload(self, asked: Asked, name: str) -> None:
        headers = asked.headers
        decoder = asked.decoder
        length = _stated_length(headers, decoder is not None)
        upload = self._new_upload(headers)
        try:
            size = 0
            async for piece in s3_body.plain(asked.receive, decoder):
                size += len(piece)
                if size > PUT_BYTES_MAX:
                    raise _too_large(size)
                await upload.add(piece)
            if length is not None and size != length:
                raise incomplete("You did not provide the number of bytes specified by the Content-Length HTTP header")
            if decoder is not None:
                headers.update(decoder.trailers)
                _drop_aws_chunked(headers)
            request = _request(asked, name, b"")
            content = await upload.finish()
        except BaseException:
            await upload.discard()
            raise
        answer = await self.store(name, request, content, headers, asked.caller)
        await self._send(asked, name, request, answer)

    async def store(
        self, name: str, request: dict[str, Any], content: Content, headers: Mapping[str, str], caller: Caller
    ) -> Answer:
        """Ask the operation with a received body; if it refuses, nothing of the body stays."""
        try:
            _check_signed_digest(content, headers)
            return await self._engine.operate("s3", name, {**request, "Body": content}, caller)
        except Exception:
            # A cancelled change may still be committed: then the file stays, and the sweep at the next start decides.
            if content.blob is not None:
                await asyncio.get_running_loop().run_in_executor(self._pool, self._blobs.remove, content.blob.id)
            raise

    def _new_upload(self, headers: Mapping[str, str]) -> Upload:
        return Upload(self._blobs, self._pool, _algorithms(headers))

    async def _form(self, asked: Asked) -> None:
        form = s3_form.Form(asked.headers.get("content-type", ""))
        upload: Upload | None = None
        try:
            async for piece in s3_body.plain(asked.receive, asked.decoder):
                for data in form.feed(piece):
                    if form.size > PUT_BYTES_MAX:
                        raise _too_large(form.size)
                    # The fields before the file are all there by now, and with them the checksums to compute.
                    upload = upload or self._new_upload(form.headers())
                    await upload.add(data)
            form.end()
            form.check_policy(asked.where.bucket or "", self._clock.now())
            key = form.key()
            where = Address(asked.where.bucket, key)
            as_put = Asked("PUT", where, (), form.headers(), asked.caller, asked.receive, asked.send)
            request = _request(as_put, "PutObject", b"")
            upload = upload or self._new_upload(form.headers())
            content = await upload.finish()
        except BaseException:
            if upload is not None:
                await upload.discard()
            raise
        answer = await self.store(s3_address.POST_FORM, request, content, {}, asked.caller)
        status, headers, body = form.answer(asked.where.bucket or "", key, answer)
        await _send(asked.send, asked.method, status, headers, body, asked.caller.request_id)

    async def _send(self, asked: Asked, name: str, request: Request, answer: Answer) -> None:
        body = answer.get("Body")
        with ExitStack() as held:
            # No other task has run since the answer was read from its snapshot: what it names is still there.
            if isinstance(body, Slices):
                held.enter_context(self._blobs.held(*body.blob_ids))
            encoded = codec.encode_answer(models.operation("s3", name), answer)
            status, headers = encoded.status, encoded.headers
            content: Any = encoded.body
            if "ContentRange" in answer:
                status = 206
            if isinstance(content, Slices):
                await self._stream(asked, status, headers, content)
            else:
                await _send(asked.send, asked.method, status, headers, content, asked.caller.request_id)

    async def _stream(self, asked: Asked, status: int, headers: Headers, content: Slices) -> None:
        gone = asyncio.ensure_future(_disconnected(asked.receive))
        try:
            async with aclosing(s3_body.read(self._blobs, self._pool, content)) as buffers:  # type: ignore[type-var]
                # The first bytes are read before anything is sent, so that a fault can still be told as an error.
                first = await anext(buffers)
                await asked.send(
                    {
                        "type": "http.response.start",
                        "status": status,
                        "headers": _raw(headers, asked.caller.request_id, content.length),
                    }
                )
                await asked.send({"type": "http.response.body", "body": first, "more_body": True})
                async for data in buffers:
                    if gone.done():
                        return
                    await asked.send({"type": "http.response.body", "body": data, "more_body": True})
            await asked.send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _headers(scope: Mapping[str, Any]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1").lower()
        value = raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers


def _request(asked: Asked, name: str, body: bytes) -> dict[str, Any]:
    model = models.operation("s3", name)
    request = codec.decode_parameters(model, asked.where.uri(), asked.pairs, asked.headers, body)
    if name in STREAMED:
        request.pop("ContentLength", None)
    models.validate("s3", name, request)
    return request


def _stated_length(headers: Mapping[str, str], chunked: bool) -> int | None:
    text = headers.get("x-amz-decoded-content-length") if chunked else headers.get("content-length")
    if text is None:
        if chunked or "transfer-encoding" in headers:
            return None
        raise ServiceError("MissingContentLength", "You must provide the Content-Length HTTP header.", status=411)
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ServiceError("InvalidArgument", f"The length {text[:64]!r} is not a number.", status=400)
    if int(text) > PUT_BYTES_MAX:
        raise _too_large(int(text))
    return int(text)


def _too_large(size: int) -> ServiceError:
    return ServiceError(
        "EntityTooLarge",
        "Your proposed upload exceeds the maximum allowed size",
        status=400,
        fields={"ProposedSize": str(size), "MaxSizeAllowed": str(PUT_BYTES_MAX)},
    )


def _algorithms(headers: Mapping[str, str]) -> set[str]:
    """Which digests of an upload will be asked for: of headers, of trailers, and S3's own."""
    found = {checksums.DEFAULT}
    trailers = [name.strip().lower() for name in headers.get("x-amz-trailer", "").split(",")]
    for algorithm in checksums.ALGORITHMS:
        name = f"x-amz-checksum-{algorithm.lower()}"
        if name in headers or name in trailers:
            found.add(algorithm)
        if headers.get("x-amz-sdk-checksum-algorithm", "").upper() == algorithm:
            found.add(algorithm)
    if _SHA256.fullmatch(headers.get("x-amz-content-sha256", "")):
        found.add("SHA256")
    return found


def _check_signed_digest(content: Content, headers: Mapping[str, str]) -> None:
    stated = headers.get("x-amz-content-sha256", "")
    if _SHA256.fullmatch(stated) and content.checksums["SHA256"] != checksums.text(bytes.fromhex(stated)):
        raise ServiceError(
            "XAmzContentSHA256Mismatch",
            "The provided 'x-amz-content-sha256' header does not match what was computed.",
            status=400,
            fields={"ClientComputedContentSHA256": stated},
        )


def _check_document(body: bytes, headers: Mapping[str, str]) -> None:
    """A document is checked against whatever digests came with it."""
    stated = {
        algorithm: headers[name]
        for algorithm in checksums.ALGORITHMS
        if (name := f"x-amz-checksum-{algorithm.lower()}") in headers
    }
    content = Content.of(body, {"SHA256", *stated})
    checksums.check_content_md5(headers.get("content-md5"), content.md5)
    # CompleteMultipartUpload's checksum is the object's, not the document's.
    if "x-amz-sdk-checksum-algorithm" in headers:
        checksums.check(content.checksums, stated)
    _check_signed_digest(content, headers)


def _drop_aws_chunked(headers: dict[str, str]) -> None:
    """aws-chunked is the upload's encoding, not the object's."""
    codings = [one.strip() for one in headers.get("content-encoding", "").split(",")]
    kept = ",".join(one for one in codings if one and one.lower() != "aws-chunked")
    if kept:
        headers["content-encoding"] = kept
    else:
        headers.pop("content-encoding", None)


async def _send(send: Send, method: str, status: int, headers: Headers, body: bytes, request_id: str) -> None:
    length: int | None = len(body)
    if method == "HEAD" or status in (204, 304):
        # A head's length is the object's, which stands among the headers.
        length, body = None, b""
    await send({"type": "http.response.start", "status": status, "headers": _raw(headers, request_id, length)})
    await send({"type": "http.response.body", "body": body})


def _raw(headers: Headers, request_id: str, length: int | None) -> list[tuple[bytes, bytes]]:
    raw = [
        (name.lower().encode("latin-1"), _header_value(value))
        for name, value in headers
        if length is None or name.lower() != "content-length"
    ]
    raw.append((b"x-amz-request-id", request_id.encode("latin-1")))
    raw.append((b"x-amz-id-2", f"muster/{request_id}".encode("latin-1")))
    if length is not None:
        raw.append((b"content-length", b"%d" % length))
    return raw


def _header_value(value: str) -> bytes:
    """A header's bytes; text that HTTP cannot carry is encoded as mail does it, as S3 answers metadata."""
    value = value.translate(_BREAKS)
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return Header(value, "utf-8", maxlinelen=10_000).encode().encode("ascii")


async def _send_error(send: Send, method: str, error: ServiceError, resource: str, request_id: str) -> None:
    status = fault("s3", error).status
    headers: Headers = [("Content-Type", "application/xml")]
    fields = dict(error.fields)
    for name, (header, written) in _ERROR_HEADERS.items():
        if name == "ETag" and status != 304:
            continue
        if name in fields:
            headers.append((header, written(fields.pop(name))))
    if status == 405 and "DeleteMarker" in error.fields:
        headers.append(("Allow", "DELETE"))
    if "VersionId" in fields:
        headers.append(("x-amz-version-id", str(fields["VersionId"])))
    out = [
        '<?xml version="1.0" encoding="UTF-8"?>\n<Error>',
        f"<Code>{escape(error.code)}</Code><Message>{escape(error.message)}</Message>",
        *(f"<{name}>{escape(str(value))}</{name}>" for name, value in fields.items()),
        f"<Resource>{escape(resource)}</Resource><RequestId>{escape(request_id)}</RequestId>",
        f"<HostId>muster/{escape(request_id)}</HostId></Error>",
    ]
    body = "".join(out).encode("utf-8", "surrogatepass")
    await _send(send, method, status, headers, body, request_id)
