"""Event source mappings: from which source a function gets its batches, and how; each is a row.

Keeps true: one source and function have one mapping; a mapping's settings are complete. Does not know how a source is
read: see `queue_source` and `stream_source`. The states Creating, Updating and Deleting are over with the request.
"""

from collections.abc import Mapping as Dict
from dataclasses import dataclass
from typing import Any

import orjson

from muster.arn import Arn, Realm, arn
from muster.clock import Instant
from muster.errors import ServiceError
from muster.services.lambda_.names import Name, function_arn
from muster.transaction import Delivery, Row, Transaction

# A poll for which there is a cause: a message, a record, a place. And one that is due at its own time.
POLL = "lambda.poll"
POLL_LATER = "lambda.poll_later"
# A batch's invocation has ended.
BATCH = "lambda.batch"

# What became of the last batch, in the API's words.
NOTHING_YET = "No records processed"
OK = "OK"
FAILED = "PROBLEM: Function call failed"


@dataclass(frozen=True, slots=True)
class Mapping:
    """An event source mapping."""

    id: str
    function: Name
    source_arn: str
    settings: Dict[str, Any]
    enabled: bool
    tags: Dict[str, str]
    last_result: str
    window_began_at: Instant | None
    modified_at: Instant

    @property
    def service(self) -> str:
        """The service of the source."""
        return Arn.parse(self.source_arn).service

    @property
    def batch_size(self) -> int:
        return int(self.settings["BatchSize"])

    @property
    def window_seconds(self) -> int:
        return int(self.settings["MaximumBatchingWindowInSeconds"])

    @property
    def partial(self) -> bool:
        """Whether the function reports which records failed."""
        return "ReportBatchItemFailures" in self.settings["FunctionResponseTypes"]

    @property
    def patterns(self) -> list[str]:
        """The filters; none lets everything through."""
        return [each["Pattern"] for each in self.settings.get("FilterCriteria", {}).get("Filters", [])]


def _mapping(row: Row) -> Mapping:
    return Mapping(
        id=row["id"],
        function=Name(row["function"], row["qualifier"]),
        source_arn=row["source_arn"],
        settings=orjson.loads(row["settings"]),
        enabled=bool(row["enabled"]),
        tags=orjson.loads(row["tags"]),
        last_result=row["last_result"],
        window_began_at=row["window_began_at"],
        modified_at=row["modified_at"],
    )


def find(tx: Transaction, id_: str) -> Mapping | None:
    row = tx.one("SELECT * FROM lambda_mappings WHERE id = :id", id=id_)
    return None if row is None else _mapping(row)


def get(tx: Transaction, id_: str) -> Mapping:
    """The mapping with that UUID; ResourceNotFoundException when there is none."""
    found = find(tx, id_)
    if found is None:
        raise ServiceError(
            "ResourceNotFoundException", "The resource you requested does not exist.", fields={"Type": "User"}
        )
    return found


def create(
    tx: Transaction,
    function: Name,
    source_arn: str,
    settings: Dict[str, Any],
    *,
    enabled: bool,
    tags: Dict[str, str],
) -> Mapping:
    """A new mapping; ResourceConflictException when the source and the function have one."""
    refuse_twin(tx, function, source_arn)
    id_ = tx.new_id()
    tx.run(
        "INSERT INTO lambda_mappings (id, function, qualifier, source_arn, settings, enabled, tags, last_result,"
        " created_at, modified_at) VALUES (:id, :function, :qualifier, :source, :settings, :enabled, :tags, :result,"
        " :now, :now)",
        id=id_,
        function=function.function,
        qualifier=function.qualifier,
        source=source_arn,
        settings=orjson.dumps(settings).decode(),
        enabled=int(enabled),
        tags=orjson.dumps(tags).decode(),
        result=NOTHING_YET,
        now=tx.now,
    )
    return get(tx, id_)


def refuse_twin(tx: Transaction, function: Name, source_arn: str, but: str = "") -> None:
    """ResourceConflictException when another mapping joins this source and this function."""
    row = tx.one(
        "SELECT id FROM lambda_mappings WHERE source_arn = :source AND function = :function"
        " AND COALESCE(qualifier, '') = :qualifier AND id <> :but",
        source=source_arn,
        function=function.function,
        qualifier=function.qualifier or "",
        but=but,
    )
    if row is None:
        return
    shown = function_arn(tx, function.function, function.qualifier)
    if Arn.parse(source_arn).service == "sqs":
        twin = f'An event source mapping with SQS arn (" {source_arn} ") and function (" {shown} ") already exists.'
    else:
        twin = f'The event source arn (" {source_arn} ") and function (" {shown} ") provided mapping already exists.'
    raise ServiceError(
        "ResourceConflictException",
        f"{twin} Please update or delete the existing mapping with UUID {row['id']}",
        fields={"Type": "User"},
    )


def change(tx: Transaction, mapping: Mapping, function: Name, settings: Dict[str, Any], *, enabled: bool) -> Mapping:
    """Store what an update asks for."""
    tx.run(
        "UPDATE lambda_mappings SET function = :function, qualifier = :qualifier, settings = :settings,"
        " enabled = :enabled, window_began_at = NULL, modified_at = :now WHERE id = :id",
        function=function.function,
        qualifier=function.qualifier,
        settings=orjson.dumps(settings).decode(),
        enabled=int(enabled),
        now=tx.now,
        id=mapping.id,
    )
    return get(tx, mapping.id)


def remove(tx: Transaction, mapping: Mapping) -> None:
    """Forget the mapping; batches under way end as they would have."""
    tx.run("DELETE FROM lambda_lanes WHERE mapping = :id", id=mapping.id)
    tx.run("DELETE FROM lambda_mappings WHERE id = :id", id=mapping.id)


def listed(tx: Transaction, source_arn: str | None, function: Name | None) -> list[Mapping]:
    """The mappings of a source, of a function, or all, the oldest first."""
    found = [_mapping(row) for row in tx.all("SELECT * FROM lambda_mappings ORDER BY created_at, id")]
    return [
        each
        for each in found
        if (source_arn is None or each.source_arn == source_arn) and (function is None or each.function == function)
    ]


def note_result(tx: Transaction, mapping: Mapping, result: str) -> None:
    """Remember what became of the last batch."""
    if mapping.last_result != result:
        tx.run("UPDATE lambda_mappings SET last_result = :result WHERE id = :id", result=result, id=mapping.id)


def set_tags(tx: Transaction, mapping: Mapping, tags: Dict[str, str]) -> None:
    tx.run(
        "UPDATE lambda_mappings SET tags = :tags WHERE id = :id", tags=orjson.dumps(dict(tags)).decode(), id=mapping.id
    )


def schedule(tx: Transaction, mapping: Mapping, due_at: Instant) -> None:
    """Poll at `due_at`, besides what wakes the mapping earlier."""
    tx.cancel(POLL_LATER, mapping.id)
    tx.post(Delivery(POLL_LATER, mapping.id, {}, due_at=due_at))


def arn_of(realm: Realm, id_: str) -> str:
    return arn(realm, "lambda", f"event-source-mapping:{id_}")


def described(tx: Transaction, mapping: Mapping, state: str | None = None) -> dict[str, Any]:
    """EventSourceMappingConfiguration; `state` while a request is under way, as the answer to it shows."""
    stream = mapping.service != "sqs"
    answer: dict[str, Any] = {
        "UUID": mapping.id,
        "EventSourceArn": mapping.source_arn,
        "EventSourceMappingArn": arn_of(tx, mapping.id),
        "FunctionArn": function_arn(tx, mapping.function.function, mapping.function.qualifier),
        "LastModified": mapping.modified_at,
        "State": state or ("Enabled" if mapping.enabled else "Disabled"),
        "StateTransitionReason": "User action" if stream else "USER_INITIATED",
        **mapping.settings,
    }
    if stream:
        answer["LastProcessingResult"] = mapping.last_result
    return answer
