"""EventBridge as its API shows it: one row per operation.

Does not decide anything: names and shapes are AWS's, the ideas are in the modules beside. Connections, API
destinations, endpoints and partner sources are not offered.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import orjson

from muster.operation import Answer, Operation, Request
from muster.services.events import archives, buses, permissions, publishing, replays, rules, tags, targets
from muster.services.events.pages import page
from muster.services.events.refusals import invalid_parameter
from muster.transaction import Transaction


def _dead_letter_arn(request: Request) -> str | None:
    config = request.get("DeadLetterConfig")
    return None if config is None else config.get("Arn", "")


def _bus_settings(tx: Transaction, name: str) -> Answer:
    row = buses.get(tx, name)
    answer: Answer = {}
    if row["description"]:
        answer["Description"] = row["description"]
    if row["dead_letter_arn"]:
        answer["DeadLetterConfig"] = {"Arn": row["dead_letter_arn"]}
    return answer


def create_event_bus(tx: Transaction, request: Request) -> Answer:
    name = request["Name"]
    buses.create(tx, name, request.get("Description"), _dead_letter_arn(request), tags.as_dict(request.get("Tags")))
    return {"EventBusArn": buses.bus_arn(tx, name), **_bus_settings(tx, name)}


def update_event_bus(tx: Transaction, request: Request) -> Answer:
    name = buses.get(tx, request.get("Name"))["name"]
    buses.update(tx, name, request.get("Description"), _dead_letter_arn(request))
    return {"Arn": buses.bus_arn(tx, name), "Name": name, **_bus_settings(tx, name)}


def delete_event_bus(tx: Transaction, request: Request) -> Answer:
    buses.delete(tx, buses.name_of(request["Name"]))
    return {}


def describe_event_bus(tx: Transaction, request: Request) -> Answer:
    row = buses.get(tx, request.get("Name"))
    return {**buses.described(tx, row), **_bus_settings(tx, row["name"])}


def list_event_buses(tx: Transaction, request: Request) -> Answer:
    shown, more = page(request, buses.starting_with(tx, request.get("NamePrefix") or ""))
    return {"EventBuses": [buses.described(tx, row) for row in shown], **more}


def put_permission(tx: Transaction, request: Request) -> Answer:
    permissions.put(tx, request)
    return {}


def remove_permission(tx: Transaction, request: Request) -> Answer:
    permissions.remove(tx, request)
    return {}


def put_rule(tx: Transaction, request: Request) -> Answer:
    return {"RuleArn": rules.put(tx, request, tags.as_dict(request.get("Tags")))}


def describe_rule(tx: Transaction, request: Request) -> Answer:
    row = rules.get(tx, request.get("EventBusName"), request["Name"])
    return {**rules.described(tx, row), "CreatedBy": tx.account}


def list_rules(tx: Transaction, request: Request) -> Answer:
    found = rules.starting_with(tx, request.get("EventBusName"), request.get("NamePrefix") or "")
    shown, more = page(request, found)
    return {"Rules": [rules.described(tx, row) for row in shown], **more}


def enable_rule(tx: Transaction, request: Request) -> Answer:
    rules.set_state(tx, request, "ENABLED")
    return {}


def disable_rule(tx: Transaction, request: Request) -> Answer:
    rules.set_state(tx, request, "DISABLED")
    return {}


def delete_rule(tx: Transaction, request: Request) -> Answer:
    rules.delete(tx, request)
    return {}


def put_targets(tx: Transaction, request: Request) -> Answer:
    targets.put(tx, request)
    return {"FailedEntryCount": 0, "FailedEntries": []}


def remove_targets(tx: Transaction, request: Request) -> Answer:
    targets.remove(tx, request)
    return {"FailedEntryCount": 0, "FailedEntries": []}


def list_targets_by_rule(tx: Transaction, request: Request) -> Answer:
    rule = rules.get(tx, request.get("EventBusName"), request["Rule"])
    shown, more = page(request, targets.of_rule(tx, rule["bus"], rule["name"]))
    return {"Targets": shown, **more}


def list_rule_names_by_target(tx: Transaction, request: Request) -> Answer:
    bus = buses.get(tx, request.get("EventBusName"))["name"]
    shown, more = page(request, targets.rules_of(tx, bus, request["TargetArn"]))
    return {"RuleNames": shown, **more}


# What an event has to have to be tested (TestEventPattern in the API reference).
_ENVELOPE = ("id", "account", "source", "time", "region", "detail-type")


def test_event_pattern(tx: Transaction, request: Request) -> Answer:
    pattern = rules.pattern_of(request["EventPattern"])
    try:
        event = orjson.loads(request["Event"])
    except orjson.JSONDecodeError:
        event = None
    if not isinstance(event, dict) or any(member not in event for member in _ENVELOPE):
        raise invalid_parameter("Event")
    return {"Result": pattern.matches(event)}


def tag_resource(tx: Transaction, request: Request) -> Answer:
    tags.change(tx, request["ResourceARN"], tags.as_dict(request["Tags"]))
    return {}


def untag_resource(tx: Transaction, request: Request) -> Answer:
    tags.change(tx, request["ResourceARN"], {}, request["TagKeys"])
    return {}


def list_tags_for_resource(tx: Transaction, request: Request) -> Answer:
    found = tags.of(tx, request["ResourceARN"])
    return {"Tags": [{"Key": key, "Value": value} for key, value in found.items()]}


def _archive_state(tx: Transaction, row: Any) -> Answer:
    return {
        "ArchiveArn": archives.archive_arn(tx, row["name"]),
        "State": "ENABLED",
        "CreationTime": row["created_at"],
    }


def create_archive(tx: Transaction, request: Request) -> Answer:
    return _archive_state(tx, archives.create(tx, request))


def update_archive(tx: Transaction, request: Request) -> Answer:
    return _archive_state(tx, archives.update(tx, request))


def delete_archive(tx: Transaction, request: Request) -> Answer:
    archives.delete(tx, request["ArchiveName"])
    return {}


def describe_archive(tx: Transaction, request: Request) -> Answer:
    return archives.described(tx, archives.get(tx, request["ArchiveName"]))


def list_archives(tx: Transaction, request: Request) -> Answer:
    shown, more = page(request, archives.selected(tx, request))
    return {"Archives": [archives.summary(tx, row) for row in shown], **more}


def _instant(value: Any) -> float:
    return value.timestamp() if isinstance(value, datetime) else float(value)


def start_replay(tx: Transaction, request: Request) -> Answer:
    row = replays.start(tx, request, _instant(request["EventStartTime"]), _instant(request["EventEndTime"]))
    return {
        "ReplayArn": replays.replay_arn(tx, row["name"]),
        "State": row["state"],
        "ReplayStartTime": row["started_at"],
    }


def cancel_replay(tx: Transaction, request: Request) -> Answer:
    row = replays.cancel(tx, request["ReplayName"])
    return {"ReplayArn": replays.replay_arn(tx, row["name"]), "State": row["state"]}


def describe_replay(tx: Transaction, request: Request) -> Answer:
    return replays.described(tx, replays.get(tx, request["ReplayName"]))


def list_replays(tx: Transaction, request: Request) -> Answer:
    shown, more = page(request, replays.selected(tx, request))
    return {"Replays": [replays.summary(tx, row) for row in shown], **more}


def _row(
    run: Callable[[Transaction, Request], Answer], accepts: str, *, reads: bool = False, internal: bool = False
) -> Operation:
    return Operation(run, frozenset(accepts.split()), reads=reads, internal=internal)


_PAGE = "NextToken Limit"

OPERATIONS: dict[str, Operation] = {
    "CreateEventBus": _row(create_event_bus, "Name Description DeadLetterConfig Tags"),
    "UpdateEventBus": _row(update_event_bus, "Name Description DeadLetterConfig"),
    "DeleteEventBus": _row(delete_event_bus, "Name"),
    "DescribeEventBus": _row(describe_event_bus, "Name", reads=True),
    "ListEventBuses": _row(list_event_buses, f"NamePrefix {_PAGE}", reads=True),
    "PutPermission": _row(put_permission, "EventBusName Action Principal StatementId Condition Policy"),
    "RemovePermission": _row(remove_permission, "EventBusName StatementId RemoveAllPermissions"),
    "PutRule": _row(put_rule, "Name ScheduleExpression EventPattern State Description RoleArn Tags EventBusName"),
    "DescribeRule": _row(describe_rule, "Name EventBusName", reads=True),
    "ListRules": _row(list_rules, f"NamePrefix EventBusName {_PAGE}", reads=True),
    "EnableRule": _row(enable_rule, "Name EventBusName"),
    "DisableRule": _row(disable_rule, "Name EventBusName"),
    "DeleteRule": _row(delete_rule, "Name EventBusName Force"),
    "PutTargets": _row(put_targets, "Rule EventBusName Targets"),
    "RemoveTargets": _row(remove_targets, "Rule EventBusName Ids Force"),
    "ListTargetsByRule": _row(list_targets_by_rule, f"Rule EventBusName {_PAGE}", reads=True),
    "ListRuleNamesByTarget": _row(list_rule_names_by_target, f"TargetArn EventBusName {_PAGE}", reads=True),
    "PutEvents": _row(publishing.put_events, "Entries"),
    "PublishServiceEvent": _row(
        publishing.publish_service_event, "Source DetailType Detail Resources Time", internal=True
    ),
    "TestEventPattern": _row(test_event_pattern, "EventPattern Event", reads=True),
    "TagResource": _row(tag_resource, "ResourceARN Tags"),
    "UntagResource": _row(untag_resource, "ResourceARN TagKeys"),
    "ListTagsForResource": _row(list_tags_for_resource, "ResourceARN", reads=True),
    "CreateArchive": _row(create_archive, "ArchiveName EventSourceArn Description EventPattern RetentionDays"),
    "UpdateArchive": _row(update_archive, "ArchiveName Description EventPattern RetentionDays"),
    "DeleteArchive": _row(delete_archive, "ArchiveName"),
    "DescribeArchive": _row(describe_archive, "ArchiveName", reads=True),
    "ListArchives": _row(list_archives, f"NamePrefix EventSourceArn State {_PAGE}", reads=True),
    "StartReplay": _row(start_replay, "ReplayName Description EventSourceArn EventStartTime EventEndTime Destination"),
    "CancelReplay": _row(cancel_replay, "ReplayName"),
    "DescribeReplay": _row(describe_replay, "ReplayName", reads=True),
    "ListReplays": _row(list_replays, f"NamePrefix State EventSourceArn {_PAGE}", reads=True),
}
