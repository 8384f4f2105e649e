"""AWS::S3::Bucket and AWS::DynamoDB::Table."""

from collections.abc import Mapping
from typing import Any

from muster.stacks.problem import Problem
from muster.stacks.resources.kind import (
    Kind,
    Made,
    Properties,
    Work,
    changed,
    document,
    object_in,
    objects_in,
    properties,
    set_tags,
    tag_list,
)

# --- buckets ---------------------------------------------------------------------------------------------------------


def _filter(given: Mapping[str, Any]) -> dict[str, Any] | None:
    found = given.get("Filter")
    if found is None:
        return None
    try:
        return {"Key": {"FilterRules": found["S3Key"]["Rules"]}}
    except (TypeError, KeyError):
        raise Problem("The property NotificationConfiguration: Filter must hold S3Key with Rules.") from None


def _notices(given: Mapping[str, Any], section: str, target: str, member: str) -> list[dict[str, Any]] | None:
    """One kind of notification, from the template's spelling to the API's."""
    if section not in given:
        return None
    made = []
    for item in objects_in(given, section):
        strange = item.keys() - {"Event", "Filter", target}
        if strange or "Event" not in item or target not in item:
            raise Problem(f"The property NotificationConfiguration.{section} takes Event, Filter and {target}.")
        made.append({member: item[target], "Events": [item["Event"]]})
        if "Filter" in item:
            made[-1]["Filter"] = _filter(item)
    return made


def _notification(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise Problem("The property NotificationConfiguration must be an object.")
    known = {"LambdaConfigurations", "QueueConfigurations", "TopicConfigurations", "EventBridgeConfiguration"}
    strange = given.keys() - known
    if strange:
        raise Problem(f"The property NotificationConfiguration has an unknown property {sorted(strange)[0]}.")
    made: dict[str, Any] = {
        "LambdaFunctionConfigurations": _notices(given, "LambdaConfigurations", "Function", "LambdaFunctionArn"),
        "QueueConfigurations": _notices(given, "QueueConfigurations", "Queue", "QueueArn"),
        "TopicConfigurations": _notices(given, "TopicConfigurations", "Topic", "TopicArn"),
    }
    bridge = object_in(given, "EventBridgeConfiguration")
    if bridge is not None and str(bridge.get("EventBridgeEnabled", "true")).lower() == "true":
        made["EventBridgeConfiguration"] = {}
    return {member: value for member, value in made.items() if value is not None}


def _encryption(given: Any) -> dict[str, Any]:
    rules = []
    if not isinstance(given, dict):
        raise Problem("The property BucketEncryption must be an object.")
    for rule in objects_in(given, "ServerSideEncryptionConfiguration"):
        spelled = {
            ("ApplyServerSideEncryptionByDefault" if k == "ServerSideEncryptionByDefault" else k): v
            for k, v in rule.items()
        }
        rules.append(spelled)
    return {"Rules": rules}


# property → the operation that sets it, the member that carries it, how it is spelled, the operation that removes it
_BUCKET_SETTINGS: Mapping[str, tuple[str, str, Any, str | None]] = {
    "VersioningConfiguration": ("PutBucketVersioning", "VersioningConfiguration", None, None),
    "PublicAccessBlockConfiguration": (
        "PutPublicAccessBlock",
        "PublicAccessBlockConfiguration",
        None,
        "DeletePublicAccessBlock",
    ),
    "BucketEncryption": (
        "PutBucketEncryption",
        "ServerSideEncryptionConfiguration",
        _encryption,
        "DeleteBucketEncryption",
    ),
    "OwnershipControls": ("PutBucketOwnershipControls", "OwnershipControls", None, "DeleteBucketOwnershipControls"),
    "NotificationConfiguration": (
        "PutBucketNotificationConfiguration",
        "NotificationConfiguration",
        _notification,
        None,
    ),
}


def _advise(work: Work, given: Properties) -> None:
    """Point out a bucket that tells only of objects put at once: an upload in parts is told of by another name."""
    sections = given.get("NotificationConfiguration", {})
    listed = {item["Event"] for section in sections.values() if isinstance(section, list) for item in section}
    if "s3:ObjectCreated:Put" in listed and not listed & {
        "s3:ObjectCreated:*",
        "s3:ObjectCreated:CompleteMultipartUpload",
    }:
        work.warn(
            f"Warning: the bucket {work.logical_id} tells of s3:ObjectCreated:Put but not of"
            " s3:ObjectCreated:CompleteMultipartUpload: files that clients upload in parts (usually from 8 MB on) will be"
            " missed."
        )


def _set_bucket(work: Work, bucket: str, old: Properties, new: Properties) -> None:
    for name, (put, member, spelled, remove) in _BUCKET_SETTINGS.items():
        if old.get(name) == new.get(name):
            continue
        if name in new:
            value = spelled(new[name]) if spelled else new[name]
            work.call("s3", put, **{"Bucket": bucket, member: value})
        elif remove is not None:
            work.call("s3", remove, Bucket=bucket)
        elif name == "NotificationConfiguration":
            work.call("s3", put, Bucket=bucket, NotificationConfiguration={})
        else:
            work.call("s3", put, Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    if changed(old, new, "NotificationConfiguration"):
        _advise(work, new)
    if changed(old, new, "Tags"):
        tags = tag_list(new)
        if tags:
            work.call("s3", "PutBucketTagging", Bucket=bucket, Tagging={"TagSet": tags})
        else:
            work.call("s3", "DeleteBucketTagging", Bucket=bucket)


def _create_bucket(work: Work, new: Properties) -> Made:
    bucket = new.get("BucketName") or work.name(63, lower=True)
    work.must_be_new(bucket, "s3", "HeadBucket", Bucket=bucket)
    region = work.tx.region
    place = None if region == "us-east-1" else {"LocationConstraint": region}
    work.call("s3", "CreateBucket", Bucket=bucket, CreateBucketConfiguration=place)
    _set_bucket(work, bucket, {}, new)
    return Made(
        bucket,
        {
            "Arn": f"arn:aws:s3:::{bucket}",
            "DomainName": f"{bucket}.s3.amazonaws.com",
            "DualStackDomainName": f"{bucket}.s3.dualstack.{region}.amazonaws.com",
            "RegionalDomainName": f"{bucket}.s3.{region}.amazonaws.com",
            "WebsiteURL": f"http://{bucket}.s3-website-{region}.amazonaws.com",
        },
    )


def _update_bucket(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    _set_bucket(work, made.physical_id, old, new)
    return made


def _delete_bucket(work: Work, made: Made, old: Properties) -> None:
    work.call("s3", "DeleteBucket", Bucket=made.physical_id)


BUCKET = Kind(
    "AWS::S3::Bucket",
    properties(f"{' '.join(_BUCKET_SETTINGS)} Tags", replace="BucketName"),
    _create_bucket,
    _update_bucket,
    _delete_bucket,
    frozenset(("Arn", "DomainName", "DualStackDomainName", "RegionalDomainName", "WebsiteURL")),
    name="BucketName",
)


def _put_policy(work: Work, new: Properties) -> Made:
    work.call("s3", "PutBucketPolicy", Bucket=new.get("Bucket"), Policy=document(new.get("PolicyDocument")))
    return Made(str(new["Bucket"]))


def _update_policy(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    _put_policy(work, new)
    return made


def _delete_policy(work: Work, made: Made, old: Properties) -> None:
    work.call("s3", "DeleteBucketPolicy", Bucket=made.physical_id)


BUCKET_POLICY = Kind(
    "AWS::S3::BucketPolicy",
    properties("PolicyDocument", replace="Bucket"),
    _put_policy,
    _update_policy,
    _delete_policy,
    required=("Bucket", "PolicyDocument"),
)

# --- tables ----------------------------------------------------------------------------------------------------------


def _stream(given: Properties) -> dict[str, Any] | None:
    stream = given.get("StreamSpecification")
    if stream is None:
        return None
    if not isinstance(stream, dict) or set(stream) != {"StreamViewType"}:
        raise Problem("The property StreamSpecification takes StreamViewType.")
    return {"StreamEnabled": True, **stream}


def _encrypted(given: Properties) -> dict[str, Any] | None:
    found = object_in(given, "SSESpecification")
    if found is None:
        return None
    return {("Enabled" if key == "SSEEnabled" else key): value for key, value in found.items()}


def _billing(given: Properties) -> str | None:
    return given.get("BillingMode") or ("PROVISIONED" if "ProvisionedThroughput" in given else None)


def _table_made(table: str, described: Mapping[str, Any]) -> Made:
    attributes = {"Arn": described["TableArn"]}
    if described.get("LatestStreamArn"):
        attributes["StreamArn"] = described["LatestStreamArn"]
    return Made(table, attributes)


def _create_table(work: Work, new: Properties) -> Made:
    table = new.get("TableName") or work.name(255)
    answer = work.call(
        "dynamodb",
        "CreateTable",
        TableName=table,
        AttributeDefinitions=new.get("AttributeDefinitions"),
        KeySchema=new.get("KeySchema"),
        BillingMode=_billing(new),
        ProvisionedThroughput=new.get("ProvisionedThroughput"),
        GlobalSecondaryIndexes=new.get("GlobalSecondaryIndexes"),
        LocalSecondaryIndexes=new.get("LocalSecondaryIndexes"),
        StreamSpecification=_stream(new),
        SSESpecification=_encrypted(new),
        TableClass=new.get("TableClass"),
        DeletionProtectionEnabled=new.get("DeletionProtectionEnabled"),
        Tags=tag_list(new),
    )
    _set_table(work, table, {}, new)
    return _table_made(table, answer["TableDescription"])


def _set_table(work: Work, table: str, old: Properties, new: Properties) -> None:
    """What UpdateTable does not carry."""
    if changed(old, new, "TimeToLiveSpecification"):
        wanted = new.get("TimeToLiveSpecification")
        if wanted is None:
            wanted = {**old["TimeToLiveSpecification"], "Enabled": False}
        work.call("dynamodb", "UpdateTimeToLive", TableName=table, TimeToLiveSpecification=wanted)
    if changed(old, new, "PointInTimeRecoverySpecification"):
        recovery = new.get("PointInTimeRecoverySpecification") or {"PointInTimeRecoveryEnabled": False}
        work.call("dynamodb", "UpdateContinuousBackups", TableName=table, PointInTimeRecoverySpecification=recovery)


def _index_changes(old: Properties, new: Properties) -> list[dict[str, Any]]:
    """GlobalSecondaryIndexUpdates that lead from the old indexes to the new."""
    before = {index["IndexName"]: index for index in objects_in(old, "GlobalSecondaryIndexes", "IndexName")}
    after = {index["IndexName"]: index for index in objects_in(new, "GlobalSecondaryIndexes", "IndexName")}
    gone = [{"Delete": {"IndexName": name}} for name, index in before.items() if after.get(name) != index]
    return gone + [{"Create": index} for name, index in after.items() if before.get(name) != index]


def _update_table(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    table = made.physical_id
    request: dict[str, Any] = {}
    if changed(old, new, "BillingMode", "ProvisionedThroughput"):
        request |= {"BillingMode": _billing(new), "ProvisionedThroughput": new.get("ProvisionedThroughput")}
    if changed(old, new, "StreamSpecification"):
        request["StreamSpecification"] = _stream(new) or {"StreamEnabled": False}
    for name in ("TableClass", "DeletionProtectionEnabled"):
        if changed(old, new, name):
            request[name] = new.get(name, False if name == "DeletionProtectionEnabled" else "STANDARD")
    if changed(old, new, "SSESpecification"):
        request["SSESpecification"] = _encrypted(new) or {"Enabled": False}
    if request:
        work.call("dynamodb", "UpdateTable", TableName=table, **request)
    for change in _index_changes(old, new):
        work.call(
            "dynamodb",
            "UpdateTable",
            TableName=table,
            AttributeDefinitions=new.get("AttributeDefinitions"),
            GlobalSecondaryIndexUpdates=[change],
        )
    _set_table(work, table, old, new)
    set_tags(work, "dynamodb", "ResourceArn", made.attributes["Arn"], old, new, keys="TagKeys")
    if not request:
        return made
    return _table_made(table, work.call("dynamodb", "DescribeTable", TableName=table)["Table"])


def _delete_table(work: Work, made: Made, old: Properties) -> None:
    work.call("dynamodb", "DeleteTable", TableName=made.physical_id)


TABLE = Kind(
    "AWS::DynamoDB::Table",
    properties(
        "AttributeDefinitions BillingMode ProvisionedThroughput GlobalSecondaryIndexes StreamSpecification"
        " SSESpecification TableClass DeletionProtectionEnabled TimeToLiveSpecification"
        " PointInTimeRecoverySpecification Tags",
        replace="TableName KeySchema LocalSecondaryIndexes",
    ),
    _create_table,
    _update_table,
    _delete_table,
    frozenset(("Arn", "StreamArn")),
    required=("KeySchema",),
    name="TableName",
)

KINDS = (BUCKET, BUCKET_POLICY, TABLE)
