"""Errors as each service names them on the wire: the code, the status, whose fault it was, and the shape's members.

Keeps true: an error raised under the model's name, under its wire code or under SQS's historical code looks the same
outside. Does not know how a protocol lays it out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from botocore.model import Shape

from muster import models
from muster.errors import ServiceError

# SQS once spoke the query protocol only, and its clients still branch on those codes: name in the model, historical
# code, status. See "awsQueryCompatible" in Smithy, and the answers recorded in the conformance data.
_SQS = {
    "BatchEntryIdsNotDistinct": ("AWS.SimpleQueueService.BatchEntryIdsNotDistinct", 400),
    "BatchRequestTooLong": ("AWS.SimpleQueueService.BatchRequestTooLong", 400),
    "EmptyBatchRequest": ("AWS.SimpleQueueService.EmptyBatchRequest", 400),
    "InvalidBatchEntryId": ("AWS.SimpleQueueService.InvalidBatchEntryId", 400),
    "InvalidParameterValueException": ("InvalidParameterValue", 400),
    "MessageNotInflight": ("AWS.SimpleQueueService.MessageNotInflight", 400),
    "MissingRequiredParameterException": ("MissingParameter", 400),
    "OverLimit": ("OverLimit", 403),
    "PurgeQueueInProgress": ("AWS.SimpleQueueService.PurgeQueueInProgress", 403),
    "QueueDeletedRecently": ("AWS.SimpleQueueService.QueueDeletedRecently", 400),
    "QueueDoesNotExist": ("AWS.SimpleQueueService.NonExistentQueue", 400),
    "QueueNameExists": ("QueueAlreadyExists", 400),
    "ReceiptHandleIsInvalid": ("ReceiptHandleIsInvalid", 404),
    "RequestThrottled": ("RequestThrottled", 403),
    "ResourceNotFoundException": ("ResourceNotFoundException", 404),
    "TooManyEntriesInBatchRequest": ("AWS.SimpleQueueService.TooManyEntriesInBatchRequest", 400),
    "UnsupportedOperation": ("AWS.SimpleQueueService.UnsupportedOperation", 400),
}

# Errors that every service shares and no model lists, where the status is not 400.
_COMMON = {
    "AccessDenied": 403,
    "AccessDeniedException": 403,
    "IncompleteSignature": 403,
    "IncompleteSignatureException": 400,
    "InternalError": 500,
    "InternalFailure": 500,
    "InternalServerError": 500,
    "InternalServerException": 500,
    "InvalidClientTokenId": 403,
    "InvalidSignatureException": 403,
    "MissingAuthenticationToken": 403,
    "MissingAuthenticationTokenException": 400,
    "NoSuchBucket": 404,
    "NoSuchKey": 404,
    "NotImplemented": 501,
    "RequestEntityTooLargeException": 413,
    "ServiceException": 500,
    "ServiceUnavailable": 503,
    "SignatureDoesNotMatch": 403,
    "UnrecognizedClientException": 403,
}


@dataclass(frozen=True, slots=True)
class Fault:
    """How one error of one service looks outside."""

    name: str  # in JSON's __type and x-amzn-ErrorType
    code: str  # in the query protocol and in XML
    status: int
    sender: bool
    shape: Shape | None
    message_member: str

    @property
    def type(self) -> str:
        """The query protocol's word for whose fault it was."""
        return "Sender" if self.sender else "Receiver"

    def members(self, error: ServiceError) -> dict[str, Any]:
        """The error's shape filled in: the message under the name that the model gives it, and the further fields."""
        return {**error.fields, self.message_member: error.message}


@cache
def _shapes(service: str) -> Mapping[str, Any]:
    """A service's error shapes by name and by wire code; where a code is shared, the name wins."""
    shapes = models.service(service).error_shapes
    by_code = {shape.metadata.get("error", {}).get("code"): shape for shape in shapes}
    return {**by_code, **{shape.name: shape for shape in shapes}}


def fault(service: str, error: ServiceError) -> Fault:
    """The outside of an error raised by a service."""
    found = _fault(service, error.code)
    if error.status is not None and error.status != found.status:
        return Fault(found.name, found.code, error.status, error.status < 500, found.shape, found.message_member)
    return found


@cache
def _fault(service: str, code: str) -> Fault:
    try:
        shapes = _shapes(service)
    except ServiceError:  # a service that botocore does not know either
        shapes = {}
    name = code
    if service == "sqs":
        name = next((known for known, (wire, _) in _SQS.items() if code in (known, wire)), code)
    shape = shapes.get(name)
    traits: Mapping[str, Any] = shape.metadata.get("error", {}) if shape is not None else {}
    if shape is not None:
        name = shape.name
    wire_code = traits.get("code") or code
    status = traits.get("httpStatusCode") or _COMMON.get(code, 400)
    if service == "sqs" and name in _SQS:
        wire_code, status = _SQS[name]
    sender = traits.get("senderFault", status < 500)
    members = shape.members if shape is not None else {}
    message = next((member for member in members if member.lower() == "message"), "message")
    return Fault(name, wire_code, status, sender, shape, message)
