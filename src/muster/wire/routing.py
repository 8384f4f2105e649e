"""Which operation of which service a request asks for, and in which protocol.

By the signature's scope first, then by what each protocol says of itself: X-Amz-Target, Smithy's RPC paths, a form's
Action, Lambda's dated paths. What remains is S3's. Does not know which operations Muster offers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import unquote

from muster import models
from muster.errors import ServiceError
from muster.wire import codec
from muster.wire.message import Incoming, query_pairs
from muster.wire.signature import Scope

# The names in credential scopes, and botocore's names for the same services.
SIGNING_NAMES = {
    "cloudformation": "cloudformation",
    "dynamodb": "dynamodb",
    "events": "events",
    "lambda": "lambda",
    "logs": "logs",
    "monitoring": "cloudwatch",
    "s3": "s3",
    "s3express": "s3",
    "sns": "sns",
    "sqs": "sqs",
    "states": "stepfunctions",
    "sts": "sts",
}

# X-Amz-Target's prefixes; tests/wire/test_routing.py holds them against the models.
TARGETS = {
    "AWSEvents": "events",
    "AWSStepFunctions": "stepfunctions",
    "AmazonSQS": "sqs",
    "DynamoDBStreams_20120810": "dynamodbstreams",
    "DynamoDB_20120810": "dynamodb",
    "GraniteServiceVersion20100801": "cloudwatch",
    "Logs_20140328": "logs",
}

# The API versions that a form without a signature names.
VERSIONS = {
    "2010-03-31": "sns",
    "2010-05-15": "cloudformation",
    "2010-08-01": "cloudwatch",
    "2011-06-15": "sts",
    "2012-11-05": "sqs",
}

QUERY_SERVICES = frozenset(VERSIONS.values())

# What SNS's messages invite their receivers to ask for, by an address that names neither service nor version.
INVITED = {"ConfirmSubscription": "sns", "Unsubscribe": "sns"}

_LAMBDA_PATH = re.compile(r"/20\d\d-\d\d-\d\d/")
_RPC_PATH = re.compile(r"/service/([A-Za-z0-9_]+)/operation/([A-Za-z0-9_]+)")


class Route(NamedTuple):
    """What is asked for. An empty operation: the request does not name one. `uri`: the values in its path."""

    service: str
    operation: str
    protocol: str
    uri: Mapping[str, str] = MappingProxyType({})


S3 = Route("s3", "", "rest-xml")


def service_of(incoming: Incoming, scope: Scope) -> tuple[str, str]:
    """The service and the protocol, from the request's head alone."""
    headers = incoming.headers
    service = SIGNING_NAMES.get(scope.service, scope.service)
    if service == "s3":
        return "s3", "rest-xml"
    if headers.get("smithy-protocol") == "rpc-v2-cbor":
        named = _RPC_PATH.search(incoming.path)
        return (TARGETS.get(named[1], service) if named else service) or "unknown", "smithy-rpc-v2-cbor"
    target = headers.get("x-amz-target")
    if target is not None:
        return TARGETS.get(target.rpartition(".")[0], service) or "unknown", "json"
    form = headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
    asks = form or "Action=" in incoming.query
    if service:
        if asks and (service in QUERY_SERVICES or service not in SIGNING_NAMES.values()):
            return service, "query"
        return service, codec.protocol_of(service)
    if asks and not incoming.headers.get("host", "").split(":")[0].endswith(".localhost"):
        return "", "query"  # the form's Version says which
    if _LAMBDA_PATH.match(incoming.path):
        return "lambda", "rest-json"
    return "s3", "rest-xml"


def route(incoming: Incoming, service: str, protocol: str) -> Route:
    """The operation; ServiceError when the request names none that AWS has. Misread when a form cannot be read."""
    match protocol:
        case "rest-xml" if service == "s3":
            return S3
        case "smithy-rpc-v2-cbor":
            named = _RPC_PATH.search(incoming.path)
            return Route(service, named[2] if named else "", protocol)
        case "json":
            return Route(service, incoming.headers.get("x-amz-target", "").rpartition(".")[2], protocol)
        case "query":
            fields = dict(codec.fields(incoming))
            action, version = fields.get("Action", ""), fields.get("Version", "")
            if not service and "Action" not in fields:
                return S3
            unsigned = VERSIONS.get(version, "unknown") if version else INVITED.get(action, "unknown")
            return Route(service or unsigned, action, protocol)
        case _ if service == "lambda":
            return _by_path(incoming, service)
        case _:
            return Route(service, "", protocol)  # not one of ours, whatever it was asked for


@dataclass(frozen=True, slots=True)
class _Template:
    """A requestUri: its segments (those in braces take any value) and what its query must hold."""

    operation: str
    segments: tuple[str, ...]
    query: frozenset[tuple[str, str]]

    def match(self, segments: list[str], query: frozenset[tuple[str, str]]) -> dict[str, str] | None:
        values = {}
        for mine, theirs in zip(self.segments, segments, strict=True):
            if mine.startswith("{"):
                values[mine[1:-1]] = theirs
            elif mine != theirs:
                return None
        return values if self.query <= query else None


def _by_path(incoming: Incoming, service: str) -> Route:
    segments = [unquote(segment) for segment in incoming.path.strip("/").split("/")]
    query = frozenset(query_pairs(incoming.query)) if incoming.query else frozenset()
    for template in _templates(service).get((incoming.method, len(segments)), ()):
        values = template.match(segments, query)
        if values is not None:
            return Route(service, template.operation, "rest-json", values)
    raise ServiceError(
        "UnknownOperationException", f"{service} has no operation at {incoming.method} {incoming.path}.", status=404
    )


@cache
def _templates(service: str) -> dict[tuple[str, int], list[_Template]]:
    """By method and number of segments, the most particular first."""
    found: dict[tuple[str, int], list[_Template]] = {}
    model = models.service(service)
    for name in model.operation_names:
        http = model.operation_model(name).http
        path, _, query = http["requestUri"].partition("?")
        segments = tuple(path.strip("/").split("/"))
        template = _Template(name, segments, frozenset(query_pairs(query)))
        found.setdefault((http["method"], len(segments)), []).append(template)
    for templates in found.values():
        templates.sort(key=lambda one: (-len(one.query), sum(part.startswith("{") for part in one.segments)))
    return found
