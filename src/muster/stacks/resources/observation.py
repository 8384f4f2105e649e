"""AWS::Logs::LogGroup, AWS::CloudWatch::Alarm and the wait condition handle."""

from muster.stacks.resources.kind import Kind, Made, Properties, Work, changed, properties, set_tags, tag_list, tag_map


def _create_group(work: Work, new: Properties) -> Made:
    name = new.get("LogGroupName") or work.name(512)
    work.call("logs", "CreateLogGroup", logGroupName=name, kmsKeyId=new.get("KmsKeyId"), tags=tag_map(new))
    _set_retention(work, name, {}, new)
    return Made(name, {"Arn": work.arn("logs", f"log-group:{name}:*")})


def _set_retention(work: Work, name: str, old: Properties, new: Properties) -> None:
    if not changed(old, new, "RetentionInDays"):
        return
    days = new.get("RetentionInDays")
    if days is None:
        work.call("logs", "DeleteRetentionPolicy", logGroupName=name)
    else:
        work.call("logs", "PutRetentionPolicy", logGroupName=name, retentionInDays=days)


def _update_group(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    _set_retention(work, made.physical_id, old, new)
    arn = str(made.attributes["Arn"]).removesuffix(":*")
    set_tags(work, "logs", "resourceArn", arn, old, new, keys="tagKeys")
    return made


def _delete_group(work: Work, made: Made, old: Properties) -> None:
    work.call("logs", "DeleteLogGroup", logGroupName=made.physical_id)


LOG_GROUP = Kind(
    "AWS::Logs::LogGroup",
    properties("RetentionInDays Tags", replace="LogGroupName KmsKeyId"),
    _create_group,
    _update_group,
    _delete_group,
    frozenset(("Arn",)),
    name="LogGroupName",
)


def _put_alarm(work: Work, name: str, new: Properties) -> None:
    work.call("cloudwatch", "PutMetricAlarm", **{**new, "AlarmName": name})


def _create_alarm(work: Work, new: Properties) -> Made:
    name = new.get("AlarmName") or work.name(255)
    _put_alarm(work, name, {**new, "Tags": tag_list(new)})
    return Made(name, {"Arn": work.arn("cloudwatch", f"alarm:{name}")})


def _update_alarm(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    _put_alarm(work, made.physical_id, {**new, "Tags": None})
    set_tags(work, "cloudwatch", "ResourceARN", made.attributes["Arn"], old, new, keys="TagKeys")
    return made


def _delete_alarm(work: Work, made: Made, old: Properties) -> None:
    work.call("cloudwatch", "DeleteAlarms", AlarmNames=[made.physical_id])


ALARM = Kind(
    "AWS::CloudWatch::Alarm",
    properties(
        "ActionsEnabled AlarmActions AlarmDescription ComparisonOperator DatapointsToAlarm Dimensions"
        " EvaluateLowSampleCountPercentile EvaluationPeriods ExtendedStatistic InsufficientDataActions MetricName"
        " Metrics Namespace OKActions Period Statistic Tags Threshold ThresholdMetricId TreatMissingData Unit",
        replace="AlarmName",
    ),
    _create_alarm,
    _update_alarm,
    _delete_alarm,
    frozenset(("Arn",)),
    required=("ComparisonOperator", "EvaluationPeriods"),
    name="AlarmName",
)


def _create_handle(work: Work, new: Properties) -> Made:
    place = f"cloudformation-waitcondition-{work.tx.region}.s3.amazonaws.com"
    return Made(f"https://{place}/{work.stack_id}/{work.logical_id}")


HANDLE = Kind("AWS::CloudFormation::WaitConditionHandle", {}, _create_handle)

KINDS = (LOG_GROUP, ALARM, HANDLE)
