"""A bucket's notification configuration: checked, and matched against what happened.

Keeps true: a stored configuration names events that Muster really sends, at most one prefix and one suffix per filter,
and no two entries that would both receive the same event. Does not send anything.
Source: "Amazon S3 Event Notifications" in the user guide.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from muster.arn import Arn
from muster.errors import unsupported
from muster.services.s3.refusals import invalid_argument, refusal

SETTING = "notification"

SENT = frozenset(
    {
        "s3:ObjectCreated:*",
        "s3:ObjectCreated:Put",
        "s3:ObjectCreated:Post",
        "s3:ObjectCreated:Copy",
        "s3:ObjectCreated:CompleteMultipartUpload",
        "s3:ObjectRemoved:*",
        "s3:ObjectRemoved:Delete",
        "s3:ObjectRemoved:DeleteMarkerCreated",
    }
)
# Events that AWS knows and that never happen here.
UNSENT_FAMILIES = (
    "s3:ObjectRestore:",
    "s3:ReducedRedundancyLostObject",
    "s3:Replication:",
    "s3:LifecycleExpiration:",
    "s3:LifecycleTransition",
    "s3:IntelligentTiering",
    "s3:ObjectTagging:",
    "s3:ObjectAcl:Put",
)

# Configuration list → (the member that names the destination, its service in an ARN)
DESTINATIONS = {
    "QueueConfigurations": ("QueueArn", "sqs"),
    "TopicConfigurations": ("TopicArn", "sns"),
    "LambdaFunctionConfigurations": ("LambdaFunctionArn", "lambda"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One destination with the events and keys it wants."""

    id: str
    service: str
    arn: str
    events: tuple[str, ...]
    prefix: str
    suffix: str

    def wants(self, event: str, key: str) -> bool:
        """Whether `event` ("s3:ObjectCreated:Put") on `key` goes to this destination."""
        return (
            any(covers(pattern, event) for pattern in self.events)
            and key.startswith(self.prefix)
            and key.endswith(self.suffix)
        )


def covers(pattern: str, event: str) -> bool:
    return pattern == event or (pattern.endswith("*") and event.startswith(pattern[:-1]))


def entries(configuration: Mapping[str, Any]) -> Iterator[Entry]:
    """The destinations of a stored configuration."""
    for kind, (arn_member, service) in DESTINATIONS.items():
        for stated in configuration.get(kind, []):
            prefix, suffix = _filter(stated)
            yield Entry(stated["Id"], service, stated[arn_member], tuple(stated["Events"]), prefix, suffix)


def checked(configuration: Mapping[str, Any], new_id: Sequence[str]) -> dict[str, Any]:
    """The configuration as it will be stored and answered: every entry with an id; `new_id` has enough for all."""
    ids = iter(new_id)
    stored: dict[str, Any] = {}
    for kind, (arn_member, service) in DESTINATIONS.items():
        stated = configuration.get(kind) or []
        if stated:
            stored[kind] = [_entry(one, arn_member, service, next(ids)) for one in stated]
    if configuration.get("EventBridgeConfiguration") is not None:
        stored["EventBridgeConfiguration"] = {}
    found = list(entries(stored))
    if len({entry.id for entry in found}) < len(found):
        raise refusal("InvalidArgument", "Same ID used for multiple configurations.")
    for one, other in combinations(found, 2):
        if _overlap(one, other):
            raise refusal(
                "InvalidArgument",
                "Configurations overlap. Configurations on the same bucket cannot share a common event type.",
            )
    return stored


def _entry(stated: Mapping[str, Any], arn_member: str, service: str, new_id: str) -> dict[str, Any]:
    arn = stated[arn_member]
    try:
        parsed = Arn.parse(arn)
    except ValueError as error:
        raise invalid_argument("The ARN could not be parsed", arn_member, arn) from error
    if parsed.service != service:
        raise invalid_argument(f"The ARN is not of the service {service}", arn_member, arn)
    if service == "sqs" and parsed.resource.endswith(".fifo"):
        raise invalid_argument("FIFO SQS queues are not supported.", arn_member, arn)
    for event in stated["Events"]:
        if event not in SENT:
            if event.startswith(UNSENT_FAMILIES):
                raise unsupported(f"the notification event {event}, which never happens here,")
            raise invalid_argument("The event is not supported for notifications", "Event", event)
    _filter(stated)
    entry = {"Id": stated.get("Id") or new_id, arn_member: arn, "Events": list(stated["Events"])}
    if stated.get("Filter"):
        entry["Filter"] = stated["Filter"]
    return entry


def _filter(stated: Mapping[str, Any]) -> tuple[str, str]:
    found: dict[str, str] = {}
    for rule in ((stated.get("Filter") or {}).get("Key") or {}).get("FilterRules") or []:
        name = str(rule.get("Name", "")).lower()
        if name not in ("prefix", "suffix"):
            raise refusal("InvalidArgument", "filter rule name must be either prefix or suffix")
        if name in found:
            raise refusal("InvalidArgument", f"Cannot specify more than one {name} rule in a filter.")
        found[name] = rule.get("Value", "")
    return found.get("prefix", ""), found.get("suffix", "")


def _overlap(one: Entry, other: Entry) -> bool:
    return (
        any(covers(a, b) or covers(b, a) for a in one.events for b in other.events)
        and (one.prefix.startswith(other.prefix) or other.prefix.startswith(one.prefix))
        and (one.suffix.endswith(other.suffix) or other.suffix.endswith(one.suffix))
    )
