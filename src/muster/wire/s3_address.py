"""Which bucket, which key and which operation an S3 request means.

Keeps true: a key is the path's bytes decoded once, and nothing else: no slash is folded, no dot resolved. A bucket may
stand in the path or before the host's name. Does not read bodies, but for knowing that a form is one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote_to_bytes

from muster import models
from muster.errors import ServiceError
from muster.wire.message import query_pairs

# Hosts in front of which a bucket may stand, as clients make them up from an endpoint.
_HOST_ENDS = (".s3.localhost", ".localhost")
_AWS_END = ".amazonaws.com"
# Replaced long ago by operations of the same address.
_DEPRECATED = frozenset({"GetBucketLifecycle", "PutBucketLifecycle", "GetBucketNotification", "PutBucketNotification"})
POST_FORM = "PostObject"

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a request points: neither bucket nor key (the service), a bucket, or a key in it."""

    bucket: str | None
    key: str | None

    @property
    def resource(self) -> str:
        """As errors name it."""
        return "/" + "/".join(part for part in (self.bucket, self.key) if part is not None)

    def uri(self) -> dict[str, str]:
        """The values in the operation's path by the model's names."""
        found = {"Bucket": self.bucket, "Key": self.key}
        return {name: value for name, value in found.items() if value is not None}


def bucket_in_host(host: str) -> str | None:
    """The bucket before the endpoint's name, if there is one."""
    name = host.rsplit(":", 1)[0] if ":" in host and not host.endswith("]") else host
    name = name.lower()
    for end in _HOST_ENDS:
        if name.endswith(end):
            return None if name == f"s3{end}" else name.removesuffix(end)
    if name.endswith(_AWS_END):
        bucket, mark, _ = name.removesuffix(_AWS_END).rpartition(".s3")
        return bucket if mark and bucket else None
    return None


def address(path: str, host: str) -> Address:
    """The address in an undecoded path and a Host header; InvalidURI when the path is not UTF-8."""
    bucket = bucket_in_host(host)
    rest = path.removeprefix("/")
    try:
        if bucket is None:
            first, _, rest = rest.partition("/")
            bucket = unquote_to_bytes(first).decode() or None
        key = unquote_to_bytes(rest).decode() or None
    except UnicodeDecodeError:
        raise ServiceError("InvalidURI", "Couldn't parse the specified URI.", status=400) from None
    if bucket is None and key is not None:
        raise ServiceError("InvalidBucketName", "The specified bucket is not valid.", status=400)
    return Address(bucket, key)


def query(text: str) -> Pairs:
    """The pairs of a query; InvalidURI when they are not UTF-8."""
    try:
        return query_pairs(text)
    except UnicodeDecodeError:
        raise ServiceError("InvalidURI", "Couldn't parse the specified URI.", status=400) from None


@dataclass(frozen=True, slots=True)
class _Template:
    """One operation's address: what its query must hold, and which further parameters it cannot do without."""

    operation: str
    query: frozenset[tuple[str, str]]
    needs: frozenset[str]
    copies: bool


@cache
def _templates() -> Mapping[tuple[str, int], list[_Template]]:
    found: dict[tuple[str, int], list[_Template]] = {}
    for name in models.service("s3").operation_names:
        if name in _DEPRECATED:
            continue
        model = models.operation("s3", name)
        path, _, stated = model.http["requestUri"].partition("?")
        depth = path.count("{")
        shape = model.input_shape
        members = {} if shape is None else shape.members
        needed = () if shape is None else shape.required_members
        needs = {
            members[member].serialization["name"]
            for member in needed
            if members[member].serialization.get("location") == "querystring"
        }
        template = _Template(name, frozenset(query_pairs(stated)), frozenset(needs), "CopySource" in needed)
        found.setdefault((model.http["method"], depth), []).append(template)
    for templates in found.values():
        # The most particular first.
        templates.sort(key=lambda one: (len(one.query) + len(one.needs), one.copies), reverse=True)
    return found


def operation(method: str, where: Address, pairs: Pairs, headers: Mapping[str, str]) -> str:
    """The operation's name; MethodNotAllowed when AWS has none there."""
    depth = 2 if where.key is not None else 1 if where.bucket is not None else 0
    if method == "POST" and depth == 1 and headers.get("content-type", "").lower().startswith("multipart/form-data"):
        return POST_FORM
    stated = frozenset(pairs)
    names = {name for name, _ in pairs}
    copies = "x-amz-copy-source" in headers
    for template in _templates().get((method, depth), ()):
        if template.query <= stated and template.needs <= names and template.copies <= copies:
            return template.operation
    raise ServiceError(
        "MethodNotAllowed", "The specified method is not allowed against this resource.", status=405,
        fields={"Method": method, "ResourceType": ("SERVICE", "BUCKET", "OBJECT")[depth]},
    )  # fmt: skip
