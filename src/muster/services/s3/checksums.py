"""Checksums as the SDKs send them: computed in one pass, compared, and combined for objects made of parts.

Keeps true: a checksum is base64 of the big-endian digest. A composite checksum is the digest of the parts' digests,
with "-N" behind it; a full-object checksum of a CRC is put together from the parts' CRCs without reading them.
Source: "Checking object integrity in Amazon S3". Does not know objects.
"""

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from muster.services.s3.refusals import refusal

CRCS = {"CRC32": 4, "CRC32C": 4, "CRC64NVME": 8}
HASHES: dict[str, Callable[[], Any]] = {
    "SHA1": hashlib.sha1,
    "SHA256": hashlib.sha256,
    "SHA512": hashlib.sha512,
    "MD5": hashlib.md5,
}
SIZES = {**CRCS, "SHA1": 20, "SHA256": 32, "SHA512": 64, "MD5": 16}
ALGORITHMS = tuple(SIZES)
# What S3 computes by itself when the client names none.
DEFAULT = "CRC64NVME"
MEMBERS = {f"Checksum{algorithm}": algorithm for algorithm in ALGORITHMS}


def member(algorithm: str) -> str:
    """The request and answer member that carries a checksum of this algorithm."""
    return f"Checksum{algorithm}"


def _crc(algorithm: str) -> Callable[[bytes | memoryview, int], int]:
    if algorithm == "CRC32":
        return zlib.crc32
    crt = _crt()
    chosen: Callable[[bytes | memoryview, int], int] = crt.crc32c if algorithm == "CRC32C" else crt.crc64nvme
    return chosen


def _crt() -> Any:
    """AWS's own routines; imported when first needed, for it takes a tenth of a second that a start should not pay."""
    from awscrt import checksums  # type: ignore[import-untyped,unused-ignore]

    return checksums


class Hasher:
    """Several digests over the same bytes, in one pass."""

    def __init__(self, algorithms: Iterable[str] = (DEFAULT,)) -> None:
        self._md5 = hashlib.md5(usedforsecurity=False)
        wanted = set(algorithms) - {"MD5"}
        self._crcs = {algorithm: (_crc(algorithm), 0) for algorithm in wanted if algorithm in CRCS}
        self._hashes = {algorithm: HASHES[algorithm]() for algorithm in wanted if algorithm in HASHES}
        self.size = 0

    def update(self, data: bytes | bytearray | memoryview) -> None:
        self.size += len(data)
        self._md5.update(data)
        whole = bytes(data) if isinstance(data, bytearray) else data
        for algorithm, (compute, value) in self._crcs.items():
            self._crcs[algorithm] = (compute, compute(whole, value))
        for digest in self._hashes.values():
            digest.update(data)

    @property
    def md5(self) -> str:
        """The MD5 digest in hexadecimal."""
        return self._md5.hexdigest()

    def checksums(self) -> dict[str, str]:
        """Algorithm → base64, MD5 among them."""
        found = {
            algorithm: text(value.to_bytes(CRCS[algorithm], "big")) for algorithm, (_, value) in self._crcs.items()
        }
        found |= {algorithm: text(digest.digest()) for algorithm, digest in self._hashes.items()}
        found["MD5"] = text(self._md5.digest())
        return found


def text(digest: bytes) -> str:
    """A digest as headers carry it."""
    return base64.b64encode(digest).decode()


def digest(checksum: str, algorithm: str) -> bytes:
    """The digest in a given checksum; InvalidRequest when it cannot be one of that algorithm."""
    try:
        raw = base64.b64decode(checksum, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != SIZES[algorithm]:
        raise refusal("InvalidRequest", f"Value for x-amz-checksum-{algorithm.lower()} header is invalid.")
    return raw


def given(request: Mapping[str, Any]) -> dict[str, str]:
    """The checksums that a request names: algorithm → base64. More than one is refused."""
    found = {algorithm: request[name] for name, algorithm in MEMBERS.items() if request.get(name) is not None}
    if len(found) > 1:
        raise refusal(
            "InvalidRequest",
            "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
        )
    return found


def check(computed: Mapping[str, str], stated: Mapping[str, str]) -> None:
    """BadDigest when a stated checksum is not that of the bytes."""
    for algorithm, checksum in stated.items():
        digest(checksum, algorithm)
        if computed[algorithm] != checksum:
            raise refusal(
                "BadDigest",
                f"The {algorithm} you specified did not match the calculated checksum.",
            )


def check_content_md5(stated: str | None, computed_md5: str) -> None:
    """Compare a Content-MD5 header with the bytes' MD5 (hexadecimal): InvalidDigest, BadDigest."""
    if stated is None:
        return
    try:
        raw = base64.b64decode(stated, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 16:
        raise refusal("InvalidDigest", **{"Content-MD5": stated})
    if raw.hex() != computed_md5:
        raise refusal("BadDigest", ExpectedDigest=stated, CalculatedDigest=text(bytes.fromhex(computed_md5)))


def composite(algorithm: str, checksums: Iterable[str]) -> str:
    """The checksum of checksums, with the number of parts behind it."""
    digests = [base64.b64decode(checksum) for checksum in checksums]
    hasher = Hasher([algorithm])
    hasher.update(b"".join(digests))
    return f"{hasher.checksums()[algorithm]}-{len(digests)}"


def full_object(algorithm: str, parts: Iterable[tuple[str, int]]) -> str:
    """The CRC of the whole, from each part's CRC and size."""
    crt = _crt()
    combine: Callable[[int, int, int], int] = {
        "CRC32": crt.combine_crc32,
        "CRC32C": crt.combine_crc32c,
        "CRC64NVME": crt.combine_crc64nvme,
    }[algorithm]
    whole = 0
    for checksum, size in parts:
        whole = combine(whole, int.from_bytes(base64.b64decode(checksum), "big"), size)
    return text(whole.to_bytes(CRCS[algorithm], "big"))


def multipart_etag(etags: Iterable[str]) -> str:
    """The entity tag of an object made of parts: the MD5 of the parts' MD5s, "-" and their number."""
    digests = [bytes.fromhex(etag) for etag in etags]
    return f"{hashlib.md5(b''.join(digests), usedforsecurity=False).hexdigest()}-{len(digests)}"
