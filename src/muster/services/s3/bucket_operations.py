"""Operations on buckets and their settings. AWS's shapes in and out.

Settings are accepted when Muster honours them or when they say what is true anyway: ownership enforced by the owner,
encryption with AES256 (AWS's default; at rest it is the disk's matter), public access blocked (nothing is public),
policies that only allow (one account, which may do everything). Whatever would have to be enforced and is not, such
as a policy that denies, is refused by name.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from muster.errors import unsupported
from muster.operation import Answer, Operation, Request
from muster.services.s3 import attributes, buckets, events, listing, notifications
from muster.services.s3 import tagging as tags_of
from muster.services.s3.object_operations import owner_only
from muster.services.s3.refusals import refusal
from muster.transaction import Transaction

BUCKET = frozenset({"Bucket", "ExpectedBucketOwner"})
DIGESTED = BUCKET | {"ContentMD5", "ChecksumAlgorithm"}

# What is never configured here: operation → the error that says so, as AWS answers for a bucket without it.
ABSENT = {
    "GetBucketCors": "NoSuchCORSConfiguration",
    "GetBucketLifecycleConfiguration": "NoSuchLifecycleConfiguration",
    "GetBucketWebsite": "NoSuchWebsiteConfiguration",
    "GetBucketReplication": "ReplicationConfigurationNotFoundError",
    "GetObjectLockConfiguration": "ObjectLockConfigurationNotFoundError",
}
# What has a default that holds here.
FIXED: dict[str, Answer] = {
    "GetBucketRequestPayment": {"Payer": "BucketOwner"},
    "GetBucketLogging": {},
    "GetBucketAccelerateConfiguration": {},
}
DEFAULT_ENCRYPTION: Answer = {
    "Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}, "BucketKeyEnabled": False}]
}
ALL_BLOCKED = dict.fromkeys(("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True)


def operations() -> dict[str, Operation]:
    """The operations of this module, by name."""
    table = {
        "CreateBucket": Operation(
            create_bucket,
            frozenset({"Bucket", "ACL", "CreateBucketConfiguration", "ObjectOwnership", "ObjectLockEnabledForBucket"}),
        ),
        "ListBuckets": Operation(
            list_buckets, frozenset({"MaxBuckets", "ContinuationToken", "Prefix", "BucketRegion"}), reads=True
        ),
        "HeadBucket": Operation(head_bucket, BUCKET, reads=True),
        "DeleteBucket": Operation(delete_bucket, BUCKET),
        "GetBucketLocation": Operation(get_bucket_location, BUCKET, reads=True),
        "GetBucketVersioning": Operation(get_bucket_versioning, BUCKET, reads=True),
        "PutBucketVersioning": Operation(put_bucket_versioning, DIGESTED | {"VersioningConfiguration"}),
        "GetBucketNotificationConfiguration": Operation(get_notification, BUCKET, reads=True),
        "PutBucketNotificationConfiguration": Operation(
            put_notification, BUCKET | {"NotificationConfiguration", "SkipDestinationValidation"}
        ),
        "GetBucketTagging": Operation(get_bucket_tagging, BUCKET, reads=True),
        "PutBucketTagging": Operation(put_bucket_tagging, DIGESTED | {"Tagging"}),
        "DeleteBucketTagging": Operation(_deleter("tagging"), BUCKET),
        "GetBucketPolicy": Operation(get_bucket_policy, BUCKET, reads=True),
        "GetBucketPolicyStatus": Operation(get_bucket_policy_status, BUCKET, reads=True),
        "PutBucketPolicy": Operation(put_bucket_policy, DIGESTED | {"Policy", "ConfirmRemoveSelfBucketAccess"}),
        "DeleteBucketPolicy": Operation(_deleter("policy"), BUCKET),
        "GetBucketAcl": Operation(get_bucket_acl, BUCKET, reads=True),
        "PutBucketAcl": Operation(put_bucket_acl, DIGESTED | {"ACL", "AccessControlPolicy"}),
        "GetBucketEncryption": Operation(get_bucket_encryption, BUCKET, reads=True),
        "PutBucketEncryption": Operation(put_bucket_encryption, DIGESTED | {"ServerSideEncryptionConfiguration"}),
        "DeleteBucketEncryption": Operation(_deleter("encryption"), BUCKET),
        "GetPublicAccessBlock": Operation(get_public_access_block, BUCKET, reads=True),
        "PutPublicAccessBlock": Operation(put_public_access_block, DIGESTED | {"PublicAccessBlockConfiguration"}),
        "DeletePublicAccessBlock": Operation(delete_public_access_block, BUCKET),
        "GetBucketOwnershipControls": Operation(get_ownership_controls, BUCKET, reads=True),
        "PutBucketOwnershipControls": Operation(put_ownership_controls, DIGESTED | {"OwnershipControls"}),
        # Deleting what is not there is no error in AWS.
        "DeleteBucketCors": Operation(_nothing, BUCKET),
        "DeleteBucketLifecycle": Operation(_nothing, BUCKET),
        "DeleteBucketWebsite": Operation(_nothing, BUCKET),
        "DeleteBucketReplication": Operation(_nothing, BUCKET),
        "DeleteBucketOwnershipControls": Operation(_nothing, BUCKET),
    }
    for name, code in ABSENT.items():
        table[name] = Operation(_absent(code), BUCKET, reads=True)
    for name, answer in FIXED.items():
        table[name] = Operation(_fixed(answer), BUCKET, reads=True)
    return table


Run = Callable[[Transaction, Request], Answer]


def _absent(code: str) -> Run:
    def run(tx: Transaction, request: Request) -> Answer:
        bucket = buckets.asked(tx, request)
        raise refusal(code, BucketName=bucket.name)

    return run


def _fixed(answer: Answer) -> Run:
    def run(tx: Transaction, request: Request) -> Answer:
        buckets.asked(tx, request)
        return dict(answer)

    return run


def _nothing(tx: Transaction, request: Request) -> Answer:
    buckets.asked(tx, request)
    return {}


def _deleter(kind: str) -> Run:
    def run(tx: Transaction, request: Request) -> Answer:
        buckets.delete_setting(tx, buckets.asked(tx, request), kind)
        return {}

    return run


def create_bucket(tx: Transaction, request: Request) -> Answer:
    attributes.check_acl(request)
    if request.get("ObjectLockEnabledForBucket"):
        raise unsupported("object lock")
    if request.get("ObjectOwnership") not in (None, "BucketOwnerEnforced"):
        raise unsupported(f"the object ownership {request['ObjectOwnership']}")
    configuration = request.get("CreateBucketConfiguration") or {}
    strange = configuration.keys() - {"LocationConstraint", "Tags"}
    if strange:
        raise unsupported(f"{', '.join(sorted(strange))} in CreateBucketConfiguration")
    name = request["Bucket"]
    buckets.create(tx, name, configuration.get("LocationConstraint") or None)
    if configuration.get("Tags"):
        tags = tags_of.from_set({"TagSet": configuration["Tags"]}, tags_of.BUCKET_TAGS_MAX)
        buckets.put_setting(tx, buckets.named(tx, name), "tagging", tags)
    location = f"/{name}" if tx.region == buckets.FIRST_REGION else f"http://{name}.s3.amazonaws.com/"
    return {"Location": location, "BucketArn": f"arn:aws:s3:::{name}"}


def list_buckets(tx: Transaction, request: Request) -> Answer:
    most = request.get("MaxBuckets") or 10_000
    token = request.get("ContinuationToken")
    prefix = request.get("Prefix") or ""
    after = listing.from_token(token) if token else ""
    region = request.get("BucketRegion")
    some = [] if region not in (None, tx.region) else buckets.page(tx, prefix, after, most + 1)
    answer: Answer = {
        "Buckets": [
            {
                "Name": bucket.name,
                "CreationDate": bucket.created_at,
                "BucketArn": bucket.arn,
                **({"BucketRegion": bucket.region} if request else {}),
            }
            for bucket in some[:most]
        ],
        "Owner": buckets.owner(tx),
    }
    if prefix:
        answer["Prefix"] = prefix
    if len(some) > most:
        answer["ContinuationToken"] = listing.token(some[most - 1].name)
    return answer


def head_bucket(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    return {"BucketArn": bucket.arn, "BucketRegion": bucket.region, "AccessPointAlias": False}


def delete_bucket(tx: Transaction, request: Request) -> Answer:
    buckets.delete(tx, buckets.asked(tx, request))
    return {}


def get_bucket_location(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    # AWS answers nothing for its first region.
    return {} if bucket.region == buckets.FIRST_REGION else {"LocationConstraint": bucket.region}


def get_bucket_versioning(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    return {"Status": bucket.versioning} if bucket.versioning else {}


def put_bucket_versioning(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    configuration = request["VersioningConfiguration"]
    if configuration.get("MFADelete") == "Enabled":
        raise unsupported("MFA delete")
    status = configuration.get("Status")
    if status not in ("Enabled", "Suspended"):
        raise refusal("MalformedXML")
    buckets.set_versioning(tx, bucket, status)
    return {}


def get_notification(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    return dict(buckets.setting(tx, bucket, notifications.SETTING) or {})


def put_notification(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    stated: Mapping[str, Any] = request["NotificationConfiguration"]
    count = sum(len(stated.get(kind) or []) for kind in notifications.DESTINATIONS)
    checked = notifications.checked(stated, [tx.new_id() for _ in range(count)])
    if "EventBridgeConfiguration" in checked and not tx.offers("events", "PublishServiceEvent"):
        raise unsupported("EventBridge in this process")
    if not request.get("SkipDestinationValidation"):
        for entry in notifications.entries(checked):
            events.send_test(tx, bucket, entry)
    if checked:
        buckets.put_setting(tx, bucket, notifications.SETTING, checked)
    else:
        buckets.delete_setting(tx, bucket, notifications.SETTING)
    return {}


def get_bucket_tagging(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    tags = buckets.setting(tx, bucket, "tagging")
    if not tags:
        raise refusal("NoSuchTagSet", BucketName=bucket.name)
    return {"TagSet": tags_of.to_set(tags)}


def put_bucket_tagging(tx: Transaction, request: Request) -> Answer:
    tags = tags_of.from_set(request["Tagging"], tags_of.BUCKET_TAGS_MAX)
    buckets.put_setting(tx, buckets.asked(tx, request), "tagging", tags)
    return {}


def _policy(tx: Transaction, request: Request) -> str:
    bucket = buckets.asked(tx, request)
    policy: str | None = buckets.setting(tx, bucket, "policy")
    if policy is None:
        raise refusal("NoSuchBucketPolicy", BucketName=bucket.name)
    return policy


def get_bucket_policy(tx: Transaction, request: Request) -> Answer:
    return {"Policy": _policy(tx, request)}


def get_bucket_policy_status(tx: Transaction, request: Request) -> Answer:
    _policy(tx, request)
    return {"PolicyStatus": {"IsPublic": False}}


def put_bucket_policy(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    try:
        policy = orjson.loads(request["Policy"])
        stated = policy["Statement"]
        statements = stated if isinstance(stated, list) else [stated]
        effects = {statement["Effect"] for statement in statements}
    except (ValueError, KeyError, TypeError) as error:
        raise refusal("MalformedPolicy") from error
    if not effects <= {"Allow", "Deny"}:
        raise refusal("MalformedPolicy", "Invalid effect in the policy")
    if "Deny" in effects:
        raise unsupported("bucket policies that deny")
    buckets.put_setting(tx, bucket, "policy", request["Policy"])
    return {}


def get_bucket_acl(tx: Transaction, request: Request) -> Answer:
    buckets.asked(tx, request)
    return owner_only(tx)


def put_bucket_acl(tx: Transaction, request: Request) -> Answer:
    buckets.asked(tx, request)
    if request.get("AccessControlPolicy") is not None or request.get("ACL") is None:
        raise refusal("AccessControlListNotSupported")
    attributes.check_acl(request)
    return {}


def get_bucket_encryption(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    configuration = buckets.setting(tx, bucket, "encryption") or DEFAULT_ENCRYPTION
    return {"ServerSideEncryptionConfiguration": configuration}


def put_bucket_encryption(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    configuration = request["ServerSideEncryptionConfiguration"]
    for rule in configuration.get("Rules") or []:
        algorithm = (rule.get("ApplyServerSideEncryptionByDefault") or {}).get("SSEAlgorithm", "AES256")
        if algorithm != "AES256":
            raise unsupported(f"server-side encryption with {algorithm}")
    buckets.put_setting(tx, bucket, "encryption", configuration)
    return {}


def get_public_access_block(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    configuration = buckets.setting(tx, bucket, "public-access-block")
    if configuration == {}:
        raise refusal("NoSuchPublicAccessBlockConfiguration", BucketName=bucket.name)
    return {"PublicAccessBlockConfiguration": configuration or ALL_BLOCKED}


def put_public_access_block(tx: Transaction, request: Request) -> Answer:
    bucket = buckets.asked(tx, request)
    stated = request["PublicAccessBlockConfiguration"]
    configuration = {name: bool(stated.get(name, False)) for name in ALL_BLOCKED}
    buckets.put_setting(tx, bucket, "public-access-block", configuration)
    return {}


def delete_public_access_block(tx: Transaction, request: Request) -> Answer:
    buckets.put_setting(tx, buckets.asked(tx, request), "public-access-block", {})
    return {}


def get_ownership_controls(tx: Transaction, request: Request) -> Answer:
    buckets.asked(tx, request)
    return {"OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}}


def put_ownership_controls(tx: Transaction, request: Request) -> Answer:
    buckets.asked(tx, request)
    for rule in request["OwnershipControls"].get("Rules") or []:
        if rule.get("ObjectOwnership") != "BucketOwnerEnforced":
            raise unsupported(f"the object ownership {rule.get('ObjectOwnership')}")
    return {}
