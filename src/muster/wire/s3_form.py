"""Uploads by an HTML form: multipart/form-data with the file as its last field.

Bytes in, bytes out; no I/O. Keeps true: the file's bytes pass through and are not kept; fields behind the file do not
count; a policy that comes along is held against the form. Does not verify the policy's signature.
Source: "POST Object" of the Amazon S3 API reference, "Creating an HTML form" and "POST policy" of its user guide.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from muster import models
from muster.clock import Instant
from muster.errors import ServiceError
from muster.wire import codec, timestamp
from muster.wire.xml_shapes import escape

FIELDS_BYTES_MAX = 20 * 1024
# Fields that are about the form or its signature, and need no condition in the policy.
_UNCONDITIONED = frozenset({"policy", "x-amz-signature", "file", "awsaccesskeyid", "signature"})
_HEADER_FIELDS = frozenset(
    {"acl", "cache-control", "content-type", "content-disposition", "content-encoding", "content-language", "expires"}
)
_STATUSES = {"200": 200, "201": 201, "204": 204}


def malformed(reason: str) -> ServiceError:
    return ServiceError(
        "MalformedPOSTRequest", f"The body of your POST request is not well-formed: {reason}", status=400
    )


class Form:
    """One form on its way in."""

    def __init__(self, content_type: str) -> None:
        _, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if not boundary:
            raise malformed("multipart/form-data needs a boundary.")
        self.fields: dict[str, str] = {}
        self.filename = ""
        self.size = 0
        self._seen_file = False
        self._in_file = False
        self._ended = False
        self._name = ""
        self._value = bytearray()
        self._field_bytes = 0
        self._header: tuple[bytearray, bytearray] = (bytearray(), bytearray())
        self._file: list[bytes] = []
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._part_begin,
                "on_header_field": lambda data, start, end: self._header[0].extend(data[start:end]),
                "on_header_value": lambda data, start, end: self._header[1].extend(data[start:end]),
                "on_header_end": self._header_end,
                "on_part_data": self._part_data,
                "on_part_end": self._part_end,
                "on_end": self._end,
            },
        )

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The file's bytes in the next piece of the body."""
        try:
            self._parser.write(data)
        except FormParserError as problem:
            raise malformed(str(problem)) from None
        pieces, self._file = self._file, []
        yield from pieces

    def end(self) -> None:
        """The body is over."""
        try:
            self._parser.finalize()
        except FormParserError as problem:
            raise malformed(str(problem)) from None
        if not self._ended:
            raise malformed("it ends before its last boundary.")
        if not self._seen_file:
            raise ServiceError("InvalidArgument", "POST requires exactly one file upload per request.", status=400)

    def key(self) -> str:
        """The object's key, with the file's own name where the form asks for it."""
        if not self.fields.get("key"):
            raise ServiceError(
                "InvalidArgument", "Bucket POST must contain a field named 'key'.  If it is specified, please check the"
                " order of the fields.", status=400
            )  # fmt: skip
        return self.fields["key"].replace("${filename}", self.filename)

    def headers(self) -> dict[str, str]:
        """The fields that a PutObject would have as headers."""
        found: dict[str, str] = {}
        for name, value in self.fields.items():
            if name == "acl":
                found["x-amz-acl"] = value
            elif name in _HEADER_FIELDS or (name.startswith("x-amz-") and not _is_signature(name)):
                found[name] = value
        if self.fields.get("tagging"):
            found["x-amz-tagging"] = _tagging(self.fields["tagging"])
        return found

    def answer(self, bucket: str, key: str, answer: Mapping[str, Any]) -> tuple[int, list[tuple[str, str]], bytes]:
        """Status, headers and body, as the form asked for them."""
        etag = str(answer["ETag"])
        location = f"/{bucket}/{quote(key)}"
        headers = [("ETag", etag), ("Location", location)]
        if "VersionId" in answer:
            headers.append(("x-amz-version-id", str(answer["VersionId"])))
        redirect = self.fields.get("success_action_redirect") or self.fields.get("redirect")
        if redirect and redirect.startswith(("http://", "https://")):
            query = urlencode({"bucket": bucket, "key": key, "etag": etag})
            target = f"{redirect}{'&' if '?' in redirect else '?'}{query}"
            return 303, [*headers[:1], ("Location", target), *headers[2:]], b""
        status = _STATUSES.get(self.fields.get("success_action_status", ""), 204)
        if status != 201:
            return status, headers, b""
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<PostResponse>'
            f"<Location>{escape(location)}</Location><Bucket>{escape(bucket)}</Bucket><Key>{escape(key)}</Key>"
            f"<ETag>{escape(etag)}</ETag></PostResponse>"
        )
        return 201, [*headers, ("Content-Type", "application/xml")], body.encode("utf-8", "surrogatepass")

    def check_policy(self, bucket: str, now: Instant) -> None:
        """AccessDenied unless the form meets the policy that it carries, if it carries one."""
        if "policy" not in self.fields:
            return
        try:
            policy = orjson.loads(base64.b64decode(self.fields["policy"], validate=True))
            end = timestamp.read(policy["expiration"])
            conditions = [_condition(stated) for stated in policy["conditions"]]
        except (binascii.Error, ValueError, KeyError, TypeError, AttributeError):
            raise ServiceError("InvalidPolicyDocument", "Invalid Policy: Invalid JSON.", status=400) from None
        if now > end:
            raise _denied("Invalid according to Policy: Policy expired.")
        fields = {**self.fields, "bucket": bucket}
        covered = set(_UNCONDITIONED)
        for kind, name, value in conditions:
            covered.add(name)
            self._check_condition(kind, name, value, fields)
        extra = [name for name in self.fields if name not in covered and not name.startswith("x-ignore-")]
        if extra:
            raise _denied(f"Invalid according to Policy: Extra input fields: {', '.join(sorted(extra))}")

    def _check_condition(self, kind: str, name: str, value: Any, fields: Mapping[str, str]) -> None:
        stated = fields.get(name, "")
        match kind:
            case "eq":
                met = stated == value
            case "starts-with":
                met = stated.startswith(value)
            case _:
                least, most = value
                if self.size > most:
                    raise ServiceError(
                        "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size", status=400
                    )
                if self.size < least:
                    raise ServiceError(
                        "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size", status=400
                    )
                met = True
        if not met:
            raise _denied(f'Invalid according to Policy: Policy Condition failed: ["{kind}", "${name}", "{value}"]')

    def _end(self) -> None:
        self._ended = True

    def _part_begin(self) -> None:
        self._name = ""
        self._in_file = False
        self._value.clear()

    def _header_end(self) -> None:
        name, value = (bytes(part) for part in self._header)
        self._header[0].clear()
        self._header[1].clear()
        if name.lower() != b"content-disposition":
            return
        _, options = parse_options_header(value)
        self._name = options.get(b"name", b"").decode("utf-8", "replace").lower()
        if self._name == "file" and not self._seen_file:
            self._in_file = self._seen_file = True
            self.filename = options.get(b"filename", b"").decode("utf-8", "replace").rpartition("/")[2]

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            self.size += end - start
            self._file.append(data[start:end])
            return
        self._field_bytes += end - start
        if self._field_bytes > FIELDS_BYTES_MAX:
            raise ServiceError(
                "MaxPostPreDataLengthExceeded",
                "Your POST request fields preceding the upload file were too large.",
                status=400,
            )
        self._value += data[start:end]

    def _part_end(self) -> None:
        if not self._seen_file and self._name:
            try:
                self.fields[self._name] = self._value.decode()
            except UnicodeDecodeError:
                raise malformed(f"the field {self._name} is not UTF-8.") from None


def _is_signature(name: str) -> bool:
    return name in ("x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature", "x-amz-security-token")


def _tagging(document: str) -> str:
    """The tags of a form are an XML document; those of a header are form-encoded."""
    request = codec.decode_parameters(models.operation("s3", "PutObjectTagging"), {}, (), {}, document.encode())
    return urlencode([(tag["Key"], tag["Value"]) for tag in request["Tagging"].get("TagSet", [])])


def _condition(stated: Any) -> tuple[str, str, Any]:
    if isinstance(stated, dict):
        ((name, value),) = stated.items()
        return "eq", str(name).lower(), str(value)
    kind, name, value = stated
    if kind == "content-length-range":
        return kind, "file", (int(name), int(value))
    if kind not in ("eq", "starts-with") or not str(name).startswith("$"):
        raise ValueError(kind)
    return kind, str(name)[1:].lower(), str(value)


def _denied(message: str) -> ServiceError:
    return ServiceError("AccessDenied", message, status=403)
