"""Work that survives a second delivery: a record, written before the work, says which events have been dealt with.

Keeps true: of the deliveries of one event that come at once, one runs; work that finished is not done again while its
record lasts; work that a crash left unfinished is never taken for done: it is repeated after its lease, or stops for a
person, as the user chooses. All of it rests on conditional writes to one DynamoDB table whose whole key is the event's
id. Does not know where the event came from, what the work is, or whether the table is Muster's or AWS's: this file needs
boto3 and nothing else, so it can be put into a deployment package by itself.

    seen = Records("orders-seen")

    @idempotent(seen)
    def charge(event, context, *, idempotency_key):
        payments.charge(event["detail"]["customer"], idempotency_key=idempotency_key)
        return {"charged": event["detail"]["customer"]}
"""

import contextvars
import functools
import hashlib
import inspect
import json
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote_plus

Item = dict[str, Any]
Unfinished = Literal["repeat", "unknown outcome"]

# Nobody redelivers later than this: SQS keeps a message for at most 14 days (SetQueueAttributes, MessageRetentionPeriod).
KEPT_SECONDS = 14 * 86400.0
# A function runs for at most 15 minutes (Lambda quotas): after that long, whoever held the record is certainly gone.
LEASE_SECONDS_MAX = 900.0
# The clocks of two machines may differ a little; the one who takes over waits that much longer.
SKEW_SECONDS = 1.0
# An item holds at most 400 KB (DynamoDB quotas); the rest of it is left for the user's record.
RESULT_BYTES_MAX = 256 * 1024
RECORD = "record"


class InProgress(Exception):
    """Another delivery of the event is at work; raised so that the queue delivers this one again later."""


class UnknownOutcome(Exception):
    """The work began and never reported back; a person has to look, and then call `Records.settle`.

    Work may raise it as well, when it cannot tell whether its side effect took place.
    """


class LeaseLost(Exception):
    """The work took longer than its lease, and another delivery has taken it over meanwhile."""


class MissingContext(UserWarning):
    """The remaining time of the invocation is not known, so the lease is as long as any function may run."""


class ResultNotKept(UserWarning):
    """What the work returned is too large or not JSON; the record says that it finished, without the result."""


class Skipped(dict[str, Any]):
    """The answer to a repeat: `status` is "skipped"; `event_id`, `finished_at`, `attempts` and `result` are the proof."""


@dataclass(frozen=True, slots=True)
class Claim:
    """This delivery's right to do the work, until `lease_ends_at`."""

    event_id: str
    owner: str
    attempts: int
    lease_ends_at: float


class Records:
    """The records in a table whose partition key `key` is a string, and which has no sort key.

    A sort key would make the condition "there is none yet" speak of the pair instead of the event. Turn on the table's
    TTL for the attribute `expires_at`; only finished work has it, so an open question is never thrown away.
    """

    def __init__(
        self,
        table: str,
        *,
        key: str = "id",
        client: Any = None,
        kept_seconds: float = KEPT_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.table = table
        self.key = key
        self.kept_seconds = kept_seconds
        self.clock = clock
        self._client = client

    @property
    def client(self) -> Any:
        """The DynamoDB client; made when first needed, in the function's own region and with its own role."""
        if self._client is None:
            import boto3

            self._client = boto3.client("dynamodb")
        return self._client

    def put_if_absent(self, event_id: str, record: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Write `record` (JSON) under the event's id unless there is one. None: it is written, and this delivery is the
        first. Otherwise what was written before stays, and is the answer: the proof. Writes no lease, so nothing is
        ever taken over: `idempotent` is the same with that gap closed. The record lasts for `kept_seconds`."""
        owner = str(uuid.uuid4())
        done = {"status": _s("COMPLETED"), "owner": _s(owner), "finished_at": _n(self.clock())}
        found = self._put(event_id, {**done, "expires_at": self._expiry()}, record)
        # One's own record is found when the answer to the write was lost and boto3 asked again.
        return None if found is None or found["owner"] == _s(owner) else dict(self._record(found))

    def claim(
        self, event_id: str, lease_seconds: float, record: Mapping[str, Any] | None = None, *, unfinished: Unfinished
    ) -> Claim | Skipped:
        """Take the event for this delivery, before any work; Skipped when its work has finished.

        InProgress while another delivery holds it; UnknownOutcome when one began, never reported back, and
        `unfinished` does not say "repeat"."""
        owner = str(uuid.uuid4())
        # Another delivery may change the record between a write refused and the next; each time it is read anew.
        for _ in range(5):
            now = self.clock()
            ends = now + lease_seconds
            held = {"status": _s("STARTED"), "owner": _s(owner), "lease_ends_at": _n(ends), "attempts": _n(1)}
            found = self._put(event_id, {**held, "started_at": _n(now)}, record)
            if found is None:
                return Claim(event_id, owner, 1, ends)
            status = found["status"]["S"]
            if found["owner"] == _s(owner):
                # The answer to the write was lost, and boto3 asked again: the record is one's own.
                return Claim(event_id, owner, int(found["attempts"]["N"]), ends)
            match status:
                case "COMPLETED":
                    return self._proof(event_id, found)
                case "UNKNOWN":
                    raise UnknownOutcome(_unknown(event_id))
                case "STARTED" if float(found["lease_ends_at"]["N"]) + SKEW_SECONDS > now:
                    raise InProgress(f"Another delivery of the event {event_id} is at work.")
                case "STARTED" if unfinished != "repeat":
                    if not self._change(event_id, found["owner"]["S"], "STARTED", status=_s("UNKNOWN")):
                        continue
                    raise UnknownOutcome(_unknown(event_id))
            # Left by a crash, its lease over; or given back by work that failed.
            attempts = int(found["attempts"]["N"]) + 1
            if self._change(event_id, found["owner"]["S"], status, **{**held, "attempts": _n(attempts)}):
                return Claim(event_id, owner, attempts, ends)
        raise InProgress(f"Other deliveries of the event {event_id} are at work.")

    def finish(self, claim: Claim, result: Any = None) -> None:
        """Record that the work finished, and its result (JSON); LeaseLost when somebody else holds the event now."""
        now = self.clock()
        done = {"status": _s("COMPLETED"), "finished_at": _n(now), "expires_at": self._expiry()}
        if not self._change(claim.event_id, claim.owner, "STARTED", **done, result=_s(_kept(result))):
            found = self.read(claim.event_id) or _GONE
            if found["owner"] == _s(claim.owner) and found["status"] == _s("COMPLETED"):
                return  # Written by the first of two tries, whose answer was lost.
            raise LeaseLost(
                f"The work for the event {claim.event_id} outlasted its lease, and another has taken it over."
            )

    def give_back(self, claim: Claim, error: BaseException) -> None:
        """Record that the work says it failed: the next delivery may try at once. Somebody else's claim is left alone."""
        status = "UNKNOWN" if isinstance(error, UnknownOutcome) else "FAILED"
        words = f"{type(error).__name__}: {error}"[:2000]
        self._change(claim.event_id, claim.owner, "STARTED", status=_s(status), error=_s(words))

    def settle(self, event_id: str, *, finished: bool, result: Any = None) -> None:
        """A person's answer to an unknown outcome: the work took place after all, or it may be done by the next delivery.
        LookupError when the event's outcome is not unknown."""
        found = self.read(event_id)
        owner = found["owner"]["S"] if found and found["status"]["S"] == "UNKNOWN" else ""
        done = {"status": _s("COMPLETED"), "expires_at": self._expiry(), "finished_at": _n(self.clock())}
        values = {**done, "result": _s(_kept(result))} if finished else {"status": _s("FAILED")}
        if not owner or not self._change(event_id, owner, "UNKNOWN", **values):
            raise LookupError(f"The outcome of the event {event_id} is not unknown.")

    def read(self, event_id: str) -> Item | None:
        """The item as it stands, as DynamoDB has it; None when there is none."""
        answer = self.client.get_item(TableName=self.table, Key={self.key: _s(event_id)}, ConsistentRead=True)
        item: Item | None = answer.get("Item")
        return item

    def _put(self, event_id: str, values: Item, record: Mapping[str, Any] | None) -> Item | None:
        """Write the first record of an event; otherwise the one that is there. DynamoDB deletes what has expired in its
        own time ("within a few days"), so a record that has counts as none."""
        kept = {} if record is None else {RECORD: _s(json.dumps(dict(record)))}
        try:
            self.client.put_item(
                TableName=self.table,
                Item={self.key: _s(event_id), **values, **kept},
                ConditionExpression="attribute_not_exists(#key) OR #expires <= :now",
                ExpressionAttributeNames={"#key": self.key, "#expires": "expires_at"},
                ExpressionAttributeValues={":now": _n(self.clock())},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except Exception as error:
            if not _is_refusal(error):
                raise
            response: Mapping[str, Any] = getattr(error, "response", {})
            return dict(response.get("Item") or self.read(event_id) or _GONE)
        return None

    def _change(self, event_id: str, owner: str, expected: str, /, **values: Item) -> bool:
        """Change the record if `owner` still holds it and it still has the `expected` status; whether it did."""
        names = {f"#{name}": name for name in (*values, "owner", "status")}
        given = {f":{name}": value for name, value in values.items()}
        try:
            self.client.update_item(
                TableName=self.table,
                Key={self.key: _s(event_id)},
                UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
                ConditionExpression="#owner = :held_by AND #status = :expected",
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={**given, ":held_by": _s(owner), ":expected": _s(expected)},
            )
        except Exception as error:
            if not _is_refusal(error):
                raise
            return False
        return True

    def _expiry(self) -> Item:
        return {"N": str(int(self.clock() + self.kept_seconds) + 1)}

    def _record(self, item: Item) -> Mapping[str, Any]:
        kept: Mapping[str, Any] = json.loads(item.get(RECORD, {}).get("S", "{}"))
        return kept

    def _proof(self, event_id: str, item: Item) -> Skipped:
        numbers = {name: float(item[name]["N"]) for name in ("started_at", "finished_at") if name in item}
        return Skipped(
            status="skipped",
            event_id=event_id,
            **numbers,
            attempts=int(item.get("attempts", {}).get("N", "1")),
            record=self._record(item),
            result=json.loads(item.get("result", {}).get("S", "null")),
        )


# What a record that vanished between a refused write and its reading is taken for: given back, by nobody.
_GONE: Item = {"status": {"S": "FAILED"}, "owner": {"S": "nobody"}, "attempts": {"N": "0"}}
_invocation: contextvars.ContextVar[Any] = contextvars.ContextVar("invocation", default=None)


def idempotent(
    records: Records,
    *,
    key: Callable[[Any], str] | None = None,
    unfinished: Unfinished = "repeat",
    lease_seconds: float | None = None,
    record: Callable[[Any], Mapping[str, Any]] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function of an event (or of one record of a batch) do its work once per event.

    `key` gives the event's id (`event_id` when not given); a function that declares `idempotency_key` is handed it, to
    hand it on. `unfinished` says what becomes of work that a crash interrupted: "repeat" when what it does can be asked
    for twice with the same idempotency key, "unknown outcome" when it cannot. The lease lasts as long as the invocation
    may, known from the Lambda context: an argument, or `invocation` around the call. `record` adds facts to the record.

    The function's own exceptions are its word that it failed: the next delivery tries again."""
    if unfinished not in ("repeat", "unknown outcome"):
        raise ValueError(f'unfinished is "repeat" or "unknown outcome", not {unfinished!r}.')

    def decorate(work: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(work):
            raise TypeError(
                f"{work.__name__} is a coroutine function; its work would begin after the record is closed."
            )
        takes_key = "idempotency_key" in inspect.signature(work).parameters

        @functools.wraps(work)
        def once(event: Any, *arguments: Any, **options: Any) -> Any:
            id_ = (key or event_id)(event)
            lease = lease_seconds if lease_seconds is not None else _lease((*arguments, *options.values()))
            claimed = records.claim(id_, lease, record(event) if record else None, unfinished=unfinished)
            if isinstance(claimed, Skipped):
                return claimed
            if takes_key:
                options["idempotency_key"] = id_
            try:
                result = work(event, *arguments, **options)
            except Exception as error:
                records.give_back(claimed, error)
                raise
            records.finish(claimed, result)
            return result

        return once

    return decorate


@contextmanager
def invocation(context: Any) -> Iterator[None]:
    """Within it, idempotent functions know how long the invocation may still run. Of the same thread only."""
    token = _invocation.set(context)
    try:
        yield
    finally:
        _invocation.reset(token)


def each_record(event: Mapping[str, Any], work: Callable[[Any], Any], context: Any) -> dict[str, Any]:
    """Do the work for each record of an SQS batch; the answer is what `ReportBatchItemFailures` asks for, so that only
    records that failed are delivered again. In a FIFO queue's batch the first failure ends it, to keep the order."""
    failed: list[dict[str, str]] = []
    with invocation(context):
        for record in event["Records"]:
            if failed and str(record.get("eventSourceARN", "")).endswith(".fifo"):
                failed.append({"itemIdentifier": record["messageId"]})
                continue
            try:
                work(record)
            except Exception as error:  # noqa: BLE001 - told below and to Lambda, which delivers the record again
                print(f"The record {record['messageId']} failed: {type(error).__name__}: {error}")
                failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}


def event_id(event: Any) -> str:
    """The id of the event itself, whatever carried it, within an SQS or SNS record as well: an EventBridge event's `id`,
    a CloudEvent's `source` and `id`, a stream record's `eventID`, `event_id` or `eventId` in a message of one's own; of
    an event of S3, the bucket, the key and the sequencer, which are the same however often S3 tells of it.

    Neither the id of the transport's message will do, for an event that was sent twice has two, nor the `id` of a
    business object, for one order may rightly come as two events. ValueError when the event has no id of its own: then
    say with `key=` what tells one event from another."""
    if isinstance(event, Mapping):
        if isinstance(event.get("Sns"), Mapping):
            return event_id(_parsed(event["Sns"].get("Message")))
        if event.get("Type") == "Notification" and "Message" in event:
            return event_id(_parsed(event["Message"]))
        if "body" in event and "messageId" in event:
            return event_id(_parsed(event["body"]))
        records = event.get("Records")
        if isinstance(records, list) and len(records) == 1:
            return event_id(records[0])
        if found := _s3_id(event):
            return found
        if "specversion" in event and event.get("id"):
            return f"{event.get('source', '')}#{event['id']}"
        for name in ("id",) if "detail-type" in event else ("event_id", "eventId", "eventID"):
            if isinstance(event.get(name), str) and event[name]:
                return str(event[name])
    raise ValueError("The event has no id of its own; say with key= what tells one event from another.")


def _s3_id(event: Mapping[str, Any]) -> str | None:
    """Of an S3 notification's record, whose key is form-URL-encoded, or of S3's event on the bus, whose key is plain."""
    told = event.get("s3")
    key_of: Callable[[str], str] = unquote_plus
    if told is None and event.get("source") == "aws.s3":
        told, key_of = event.get("detail"), str
    if not isinstance(told, Mapping) or not told.get("object", {}).get("sequencer"):
        return None
    return f"{told['bucket']['name']}/{key_of(told['object']['key'])}#{told['object']['sequencer']}"


def message_body(record: Mapping[str, Any]) -> str:
    """A key for messages without an id in them: the digest of the body. Two equal bodies are then one event."""
    return "sha256:" + hashlib.sha256(str(record["body"]).encode()).hexdigest()


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None


def _lease(arguments: tuple[Any, ...]) -> float:
    """How long this invocation may still run, and nobody takes its work over meanwhile."""
    for context in (*arguments, _invocation.get()):
        remaining = getattr(context, "get_remaining_time_in_millis", None)
        if callable(remaining):
            return float(remaining()) / 1000
    warnings.warn(
        f"No Lambda context: work that a crash interrupts is taken over only after {LEASE_SECONDS_MAX:.0f} seconds. Pass"
        " the context to the function, call it within `invocation(context)`, or set lease_seconds.",
        MissingContext,
        stacklevel=3,
    )
    return LEASE_SECONDS_MAX


def _kept(result: Any) -> str:
    """The result as JSON. The work has been done, so a result that cannot be kept must not undo its record."""
    try:
        text = json.dumps(result)
    except (TypeError, ValueError):
        text = ""
    if not text or len(text.encode()) > RESULT_BYTES_MAX:
        warnings.warn("The result is too large or not JSON; it is not kept.", ResultNotKept, stacklevel=4)
        return "null"
    return text


def _unknown(event_id: str) -> str:
    return (
        f"The work for the event {event_id} began and never reported back: whether it took place is unknown. Find out,"
        " and then say so with Records.settle."
    )


def _is_refusal(error: Exception) -> bool:
    """Whether a write was refused by its condition; told by the code, so that any client with boto3's errors will do."""
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    return bool(response.get("Error", {}).get("Code") == "ConditionalCheckFailedException")


def _s(text: str) -> Item:
    return {"S": text}


def _n(number: float) -> Item:
    return {"N": f"{number:.3f}" if isinstance(number, float) else str(number)}
