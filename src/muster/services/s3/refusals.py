"""What S3 refuses, by AWS's codes: one row per code with its status and AWS's sentence.

Source: "Error responses" of the Amazon S3 API reference. Knows nothing of how an error is written on the wire.
"""

from typing import Any

from muster.errors import ServiceError

REFUSALS: dict[str, tuple[int, str]] = {
    "AccessControlListNotSupported": (400, "The bucket does not allow ACLs"),
    "AccessDenied": (403, "Access Denied"),
    "BadDigest": (400, "The Content-MD5 you specified did not match what we received."),
    "BucketAlreadyExists": (
        409,
        "The requested bucket name is not available. The bucket namespace is shared by all users of the system."
        " Please select a different name and try again.",
    ),
    "BucketAlreadyOwnedByYou": (
        409,
        "Your previous request to create the named bucket succeeded and you already own it.",
    ),
    "BucketNotEmpty": (409, "The bucket you tried to delete is not empty"),
    "EntityTooLarge": (400, "Your proposed upload exceeds the maximum allowed size"),
    "EntityTooSmall": (400, "Your proposed upload is smaller than the minimum allowed size"),
    "IllegalLocationConstraintException": (
        400,
        "The unspecified location constraint is incompatible for the region specific endpoint this request was sent to.",
    ),
    "InvalidArgument": (400, "Invalid Argument"),
    "InvalidBucketName": (400, "The specified bucket is not valid."),
    "InvalidBucketState": (409, "The request is not valid with the current state of the bucket."),
    "InvalidDigest": (400, "The Content-MD5 you specified was invalid."),
    "InvalidLocationConstraint": (400, "The specified location-constraint is not valid"),
    "InvalidPart": (
        400,
        "One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified"
        " entity tag may not match the part's entity tag.",
    ),
    "InvalidPartNumber": (416, "The requested partnumber is not satisfiable"),
    "InvalidPartOrder": (
        400,
        "The list of parts was not in ascending order. Parts must be ordered by part number.",
    ),
    "InvalidRange": (416, "The requested range is not satisfiable"),
    "InvalidRequest": (400, "Invalid Request"),
    "InvalidStorageClass": (400, "The storage class you specified is not valid"),
    "InvalidTag": (400, "The tag provided was not a valid tag."),
    "KeyTooLongError": (400, "Your key is too long"),
    "MalformedPolicy": (400, "This policy contains invalid Json"),
    "MalformedXML": (
        400,
        "The XML you provided was not well-formed or did not validate against our published schema",
    ),
    "MetadataTooLarge": (400, "Your metadata headers exceed the maximum allowed metadata size"),
    "MethodNotAllowed": (405, "The specified method is not allowed against this resource."),
    "NoSuchBucket": (404, "The specified bucket does not exist"),
    "NoSuchBucketPolicy": (404, "The bucket policy does not exist"),
    "NoSuchCORSConfiguration": (404, "The CORS configuration does not exist"),
    "NoSuchKey": (404, "The specified key does not exist."),
    "NoSuchLifecycleConfiguration": (404, "The lifecycle configuration does not exist"),
    "NoSuchPublicAccessBlockConfiguration": (404, "The public access block configuration was not found"),
    "NoSuchTagSet": (404, "The TagSet does not exist"),
    "NoSuchUpload": (
        404,
        "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or"
        " completed.",
    ),
    "NoSuchVersion": (404, "The specified version does not exist."),
    "NoSuchWebsiteConfiguration": (404, "The specified bucket does not have a website configuration"),
    "NotImplemented": (501, "A header you provided implies functionality that is not implemented"),
    "NotModified": (304, "Not Modified"),
    "ObjectLockConfigurationNotFoundError": (404, "Object Lock configuration does not exist for this bucket"),
    "OwnershipControlsNotFoundError": (404, "The bucket ownership controls were not found"),
    "PreconditionFailed": (412, "At least one of the pre-conditions you specified did not hold"),
    "ReplicationConfigurationNotFoundError": (404, "The replication configuration was not found"),
    "XAmzContentChecksumMismatch": (400, "The provided 'x-amz-checksum' header does not match what was computed."),
}


def refusal(code: str, message: str | None = None, **fields: Any) -> ServiceError:
    """The error of that code, with AWS's sentence unless another is given; `fields` are the error's further members."""
    status, sentence = REFUSALS[code]
    return ServiceError(code, message or sentence, status=status, fields=fields)


def invalid_argument(message: str, name: str, value: Any) -> ServiceError:
    """The refusal of one argument, which it names."""
    return refusal("InvalidArgument", message, ArgumentName=name, ArgumentValue=str(value))
