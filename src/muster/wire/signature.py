"""Who says that they sent a request, and to which service: the form of SigV4, not yet its proof.

Keeps true: a request that carries a signature carries a complete one. Does not verify it; until it does, the server
listens on loopback only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from muster.errors import ServiceError

ALGORITHMS = ("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256")


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose key, and the service and region that the signature is for; empty where it does not say."""

    access_key: str = ""
    service: str = ""
    region: str = ""


ANONYMOUS = Scope()


def incomplete(reason: str) -> ServiceError:
    """The refusal of a signature that is not one. The codec spells the code as the protocol does."""
    return ServiceError("IncompleteSignature", reason)


def scope_of(headers: Mapping[str, str], query: str) -> Scope:
    """The scope from the Authorization header, or from a presigned URL's query; ANONYMOUS when there is neither."""
    authorization = headers.get("authorization")
    if authorization is not None:
        return _from_header(authorization)
    if "X-Amz-Credential=" in query:
        return _presigned(query)
    if "AWSAccessKeyId=" in query and "Signature=" in query:
        # The older presigned URLs, which only S3 had.
        return Scope(access_key=_parameter(query, "AWSAccessKeyId"), service="s3")
    return ANONYMOUS


def _from_header(text: str) -> Scope:
    algorithm, _, rest = text.partition(" ")
    if algorithm == "AWS":  # the older signature of S3: AWS key:signature
        key, colon, signature = rest.strip().partition(":")
        if not (key and colon and signature):
            raise incomplete("Authorization header requires an access key and a signature.")
        return Scope(access_key=key, service="s3")
    if algorithm not in ALGORITHMS:
        raise incomplete(f"Unsupported authorization type: '{algorithm[:64]}'.")
    parts: dict[str, str] = {}
    for piece in rest.split(","):
        name, equals, value = piece.strip().partition("=")
        if not equals:
            raise incomplete(
                f"'{piece.strip()[:64]}' not a valid key=value pair (missing equal-sign) in Authorization."
            )
        parts[name] = value
    missing = [name for name in ("Credential", "Signature", "SignedHeaders") if not parts.get(name)]
    if missing:
        raise incomplete(" ".join(f"Authorization header requires '{name}' parameter." for name in missing))
    if not _dated(parts["SignedHeaders"]):
        # Some clients sign Date, some X-Amz-Date; a signature over neither could be replayed for ever.
        raise incomplete("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header.")
    return _credential(parts["Credential"], regional=algorithm == ALGORITHMS[0])


@lru_cache(maxsize=1024)
def _dated(signed_headers: str) -> bool:
    """Whether the signature covers a date."""
    return not {"x-amz-date", "date"}.isdisjoint(signed_headers.lower().split(";"))


def _presigned(query: str) -> Scope:
    for name in ("X-Amz-Algorithm", "X-Amz-Signature", "X-Amz-Date", "X-Amz-SignedHeaders"):
        if not _parameter(query, name):
            raise incomplete(f"AWS query-string parameters must include '{name}'.")
    regional = _parameter(query, "X-Amz-Algorithm") == ALGORITHMS[0]
    return _credential(_parameter(query, "X-Amz-Credential"), regional=regional)


def _parameter(query: str, name: str) -> str:
    for piece in query.split("&"):
        key, _, value = piece.partition("=")
        if key == name:
            return value.replace("%2F", "/").replace("%2f", "/").replace("%3B", ";")
    return ""


@lru_cache(maxsize=1024)
def _credential(text: str, *, regional: bool) -> Scope:
    """`key/date/region/service/aws4_request`; the asymmetric signature has no region in it."""
    parts = text.rsplit("/", 4 if regional else 3)
    if len(parts) != (5 if regional else 4) or parts[-1] != "aws4_request" or not all(parts):
        raise incomplete(
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term,"
            f" got '{text[:128]}'."
        )
    if not (len(parts[1]) == 8 and parts[1].isascii() and parts[1].isdigit()):
        raise incomplete(f"Date in Credential scope is not of the form YYYYMMDD: '{parts[1][:16]}'.")
    return Scope(parts[0], parts[-2], parts[2] if regional else "")
