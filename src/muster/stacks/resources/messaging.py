"""AWS::Events, AWS::SQS and AWS::SNS."""

from typing import Any

import orjson

from muster.stacks.problem import Problem
from muster.stacks.resources.kind import (
    Kind,
    Made,
    Properties,
    Work,
    changed,
    document,
    objects_in,
    properties,
    set_tags,
    tag_changes,
    tag_list,
    tag_map,
)

# --- rules -----------------------------------------------------------------------------------------------------------


def _advise(work: Work, pattern: Any) -> None:
    """Point out a rule that misses large files: an upload in parts raises CompleteMultipartUpload, not PutObject.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
    """
    found = orjson.loads(pattern) if isinstance(pattern, str) and pattern.lstrip().startswith("{") else pattern
    detail = found.get("detail") if isinstance(found, dict) else None
    reasons = detail.get("reason") if isinstance(detail, dict) else None
    if isinstance(reasons, list) and "PutObject" in reasons and "CompleteMultipartUpload" not in reasons:
        work.warn(
            f"Warning: the rule {work.logical_id} listens to the reason PutObject but not to CompleteMultipartUpload:"
            " files that clients upload in parts (usually from 8 MB on) will be missed."
        )


def _checked_pattern(work: Work, new: Properties) -> Any:
    pattern = new.get("EventPattern")
    if pattern is not None:
        try:
            _advise(work, pattern)
        except orjson.JSONDecodeError:
            raise Problem("The property EventPattern is not JSON.") from None
    return document(pattern)


def _put_rule(work: Work, name: str, new: Properties, tags: Any) -> str:
    answer = work.call(
        "events",
        "PutRule",
        Name=name,
        EventBusName=new.get("EventBusName"),
        EventPattern=_checked_pattern(work, new),
        ScheduleExpression=new.get("ScheduleExpression"),
        State=new.get("State"),
        Description=new.get("Description"),
        RoleArn=new.get("RoleArn"),
        Tags=tags,
    )
    return str(answer["RuleArn"])


def _put_targets(work: Work, name: str, old: Properties, new: Properties) -> None:
    bus = new.get("EventBusName")
    before = {target["Id"]: target for target in objects_in(old, "Targets", "Id")}
    after = {target["Id"]: target for target in objects_in(new, "Targets", "Id")}
    gone = [key for key in before if key not in after]
    if gone:
        _all_went(work.call("events", "RemoveTargets", Rule=name, EventBusName=bus, Ids=gone))
    put = [target for key, target in after.items() if before.get(key) != target]
    if put:
        _all_went(work.call("events", "PutTargets", Rule=name, EventBusName=bus, Targets=put))


def _all_went(answer: dict[str, Any]) -> None:
    if answer.get("FailedEntryCount"):
        failed = answer["FailedEntries"][0]
        raise Problem(f"The property Targets: {failed.get('TargetId')}: {failed.get('ErrorMessage')}")


def _bus_name(new: Properties) -> str:
    return str(new.get("EventBusName") or "default").rsplit("/", 1)[-1]


def _rule_name(made: Made) -> str:
    """What Ref answers has the bus before the name where it is not the default one."""
    return made.physical_id.rsplit("|", 1)[-1]


def _create_rule(work: Work, new: Properties) -> Made:
    name = new.get("Name") or work.name(64)
    bus = _bus_name(new)
    work.must_be_new(name, "events", "DescribeRule", Name=name, EventBusName=bus)
    arn = _put_rule(work, name, new, tag_list(new))
    _put_targets(work, name, {}, new)
    return Made(name if bus == "default" else f"{bus}|{name}", {"Arn": arn})


def _update_rule(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    name = _rule_name(made)
    if changed(old, new, "EventPattern", "ScheduleExpression", "State", "Description", "RoleArn"):
        _put_rule(work, name, new, None)
    _put_targets(work, name, old, new)
    set_tags(work, "events", "ResourceARN", made.attributes["Arn"], old, new, keys="TagKeys")
    return made


def _delete_rule(work: Work, made: Made, old: Properties) -> None:
    name = _rule_name(made)
    _put_targets(work, name, old, {**old, "Targets": []})
    work.call("events", "DeleteRule", Name=name, EventBusName=old.get("EventBusName"))


RULE = Kind(
    "AWS::Events::Rule",
    properties("EventPattern ScheduleExpression State Description RoleArn Targets Tags", replace="Name EventBusName"),
    _create_rule,
    _update_rule,
    _delete_rule,
    frozenset(("Arn",)),
    name="Name",
)


def _create_bus(work: Work, new: Properties) -> Made:
    answer = work.call(
        "events",
        "CreateEventBus",
        Name=new.get("Name"),
        Description=new.get("Description"),
        DeadLetterConfig=new.get("DeadLetterConfig"),
        Tags=tag_list(new),
    )
    return Made(str(new["Name"]), {"Arn": answer["EventBusArn"], "Name": new["Name"]})


def _update_bus(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    if changed(old, new, "Description", "DeadLetterConfig"):
        work.call(
            "events",
            "UpdateEventBus",
            Name=made.physical_id,
            Description=new.get("Description", ""),
            DeadLetterConfig=new.get("DeadLetterConfig", {}),
        )
    set_tags(work, "events", "ResourceARN", made.attributes["Arn"], old, new, keys="TagKeys")
    return made


def _delete_bus(work: Work, made: Made, old: Properties) -> None:
    work.call("events", "DeleteEventBus", Name=made.physical_id)


BUS = Kind(
    "AWS::Events::EventBus",
    properties("Description DeadLetterConfig Tags", replace="Name"),
    _create_bus,
    _update_bus,
    _delete_bus,
    frozenset(("Arn", "Name")),
    required=("Name",),
    name="Name",
)


def _create_archive(work: Work, new: Properties) -> Made:
    name = new.get("ArchiveName") or work.name(48)
    answer = work.call(
        "events",
        "CreateArchive",
        ArchiveName=name,
        EventSourceArn=new.get("SourceArn"),
        Description=new.get("Description"),
        EventPattern=document(new.get("EventPattern")),
        RetentionDays=new.get("RetentionDays"),
    )
    return Made(name, {"Arn": answer["ArchiveArn"], "ArchiveName": name})


def _update_archive(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    work.call(
        "events",
        "UpdateArchive",
        ArchiveName=made.physical_id,
        Description=new.get("Description", ""),
        EventPattern=document(new.get("EventPattern")),
        RetentionDays=new.get("RetentionDays", 0),
    )
    return made


def _delete_archive(work: Work, made: Made, old: Properties) -> None:
    work.call("events", "DeleteArchive", ArchiveName=made.physical_id)


ARCHIVE = Kind(
    "AWS::Events::Archive",
    properties("Description EventPattern RetentionDays", replace="ArchiveName SourceArn"),
    _create_archive,
    _update_archive,
    _delete_archive,
    frozenset(("Arn", "ArchiveName")),
    required=("SourceArn",),
    name="ArchiveName",
)

# --- queues ----------------------------------------------------------------------------------------------------------

_QUEUE_IN_PLACE = [
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "DelaySeconds",
    "FifoThroughputLimit",
    "KmsDataKeyReusePeriodSeconds",
    "KmsMasterKeyId",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "RedriveAllowPolicy",
    "RedrivePolicy",
    "SqsManagedSseEnabled",
    "VisibilityTimeout",
]

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
_QUEUE_DEFAULTS = {
    "DelaySeconds": 0,
    "MaximumMessageSize": 1_048_576,
    "MessageRetentionPeriod": 345_600,
    "ReceiveMessageWaitTimeSeconds": 0,
    "VisibilityTimeout": 30,
    "RedrivePolicy": "",
    "RedriveAllowPolicy": "",
    "ContentBasedDeduplication": False,
}


def _is_fifo(new: Properties, member: str) -> bool:
    return str(new.get(member, "false")).lower() == "true"


def _create_queue(work: Work, new: Properties) -> Made:
    fifo = _is_fifo(new, "FifoQueue")
    name = new.get("QueueName") or work.name(80, suffix=".fifo" if fifo else "")
    attributes = {key: document(new[key]) for key in _QUEUE_IN_PLACE if key in new}
    if fifo:
        attributes["FifoQueue"] = "true"
    work.must_be_new(name, "sqs", "GetQueueUrl", QueueName=name)
    answer = work.call("sqs", "CreateQueue", QueueName=name, Attributes=attributes or None, tags=tag_map(new))
    url = answer["QueueUrl"]
    return Made(url, {"Arn": work.arn("sqs", name), "QueueName": name, "QueueUrl": url})


def _update_queue(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    attributes = {
        key: document(new.get(key, _QUEUE_DEFAULTS.get(key, "")))
        for key in _QUEUE_IN_PLACE
        if old.get(key) != new.get(key)
    }
    if attributes:
        work.call("sqs", "SetQueueAttributes", QueueUrl=made.physical_id, Attributes=attributes)
    put, gone = tag_changes(old, new)
    if gone:
        work.call("sqs", "UntagQueue", QueueUrl=made.physical_id, TagKeys=gone)
    if put:
        work.call("sqs", "TagQueue", QueueUrl=made.physical_id, Tags=put)
    return made


def _delete_queue(work: Work, made: Made, old: Properties) -> None:
    work.call("sqs", "DeleteQueue", QueueUrl=made.physical_id)


QUEUE = Kind(
    "AWS::SQS::Queue",
    properties(f"{' '.join(_QUEUE_IN_PLACE)} Tags", replace="QueueName FifoQueue"),
    _create_queue,
    _update_queue,
    _delete_queue,
    frozenset(("Arn", "QueueName", "QueueUrl")),
    name="QueueName",
)

# --- topics ----------------------------------------------------------------------------------------------------------


_TOPIC_IN_PLACE = ["DisplayName", "ContentBasedDeduplication", "KmsMasterKeyId", "SignatureVersion", "TracingConfig"]


def _create_topic(work: Work, new: Properties) -> Made:
    fifo = _is_fifo(new, "FifoTopic")
    name = new.get("TopicName") or work.name(256, suffix=".fifo" if fifo else "")
    attributes = {key: new[key] for key in _TOPIC_IN_PLACE if key in new}
    if fifo:
        attributes["FifoTopic"] = "true"
    work.must_be_new(name, "sns", "GetTopicAttributes", TopicArn=work.arn("sns", name))
    answer = work.call("sns", "CreateTopic", Name=name, Attributes=attributes or None, Tags=tag_list(new))
    for subscription in objects_in(new, "Subscription"):
        _subscribe(work, {"TopicArn": answer["TopicArn"], **subscription})
    return Made(answer["TopicArn"], {"TopicArn": answer["TopicArn"], "TopicName": name})


def _update_topic(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    for key in _TOPIC_IN_PLACE:
        if old.get(key) != new.get(key):
            work.call(
                "sns",
                "SetTopicAttributes",
                TopicArn=made.physical_id,
                AttributeName=key,
                AttributeValue=new.get(key, "false" if key == "ContentBasedDeduplication" else ""),
            )
    set_tags(work, "sns", "ResourceArn", made.physical_id, old, new, keys="TagKeys")
    return made


def _delete_topic(work: Work, made: Made, old: Properties) -> None:
    work.call("sns", "DeleteTopic", TopicArn=made.physical_id)


TOPIC = Kind(
    "AWS::SNS::Topic",
    properties(f"{' '.join(_TOPIC_IN_PLACE)} Tags", replace="TopicName FifoTopic Subscription"),
    _create_topic,
    _update_topic,
    _delete_topic,
    frozenset(("TopicArn", "TopicName")),
    name="TopicName",
)

_SUBSCRIPTION_IN_PLACE = ["FilterPolicy", "FilterPolicyScope", "RawMessageDelivery", "RedrivePolicy", "DeliveryPolicy"]


def _subscribe(work: Work, new: Properties) -> str:
    attributes = {key: document(new[key]) for key in _SUBSCRIPTION_IN_PLACE if key in new}
    answer = work.call(
        "sns",
        "Subscribe",
        TopicArn=new.get("TopicArn"),
        Protocol=new.get("Protocol"),
        Endpoint=new.get("Endpoint"),
        Attributes=attributes or None,
        ReturnSubscriptionArn=True,
    )
    return str(answer["SubscriptionArn"])


def _create_subscription(work: Work, new: Properties) -> Made:
    arn = _subscribe(work, new)
    return Made(arn, {"Arn": arn})


_SUBSCRIPTION_DEFAULTS = {"RawMessageDelivery": "false", "FilterPolicy": "{}", "FilterPolicyScope": "MessageAttributes"}


def _update_subscription(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    for key in _SUBSCRIPTION_IN_PLACE:
        if old.get(key) != new.get(key):
            work.call(
                "sns",
                "SetSubscriptionAttributes",
                SubscriptionArn=made.physical_id,
                AttributeName=key,
                AttributeValue=document(new.get(key, _SUBSCRIPTION_DEFAULTS.get(key, ""))),
            )
    return made


def _unsubscribe(work: Work, made: Made, old: Properties) -> None:
    work.call("sns", "Unsubscribe", SubscriptionArn=made.physical_id)


SUBSCRIPTION = Kind(
    "AWS::SNS::Subscription",
    properties(" ".join(_SUBSCRIPTION_IN_PLACE), replace="TopicArn Protocol Endpoint"),
    _create_subscription,
    _update_subscription,
    _unsubscribe,
    frozenset(("Arn",)),
    required=("TopicArn", "Protocol"),
)

KINDS = (RULE, BUS, ARCHIVE, QUEUE, TOPIC, SUBSCRIPTION)
