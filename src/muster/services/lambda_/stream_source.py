"""A table's stream as a function's event source: its records in order, in as many lanes as may run at once.

Keeps true: all records of one item are in one lane, and a lane runs one batch at a time, in the order of the stream; a
lane passes a record only when the function has done it, when no filter wants it, or when it is given up and its place
in the stream is told to the destination. Source:
https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html. A lane is where it stands and, while a batch
is not done, the pieces that it has been cut into. Does not know how a source is woken, beyond asking the stream to tell.
"""

import datetime
import zlib
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace
from typing import Any

import orjson

from muster.clock import Instant
from muster.errors import ServiceError
from muster.services.lambda_ import aftermath, batch_response, batches, filters, invocations, mappings
from muster.services.lambda_.functions import Version
from muster.services.lambda_.mapping_settings import invalid
from muster.services.lambda_.mappings import Mapping
from muster.services.lambda_.names import LATEST, function_arn
from muster.transaction import Delivery, Row, Transaction

Record = dict[str, Any]

# Between attempts: doubling from one second to a minute.
RETRY_SECONDS_MAX = 60.0
# A change is short: so many records are looked at, then the next poll goes on.
RECORDS_AT_ONCE = 10_000
# While a window is open, new records are looked at this often.
LOOK_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a batch, from where its lane stands: through which record, how often it failed, when it may run."""

    through: int
    failures: int = 0
    not_before: Instant = 0.0


@dataclass(frozen=True, slots=True)
class Lane:
    """Where a lane stands in the stream."""

    mapping: str
    number: int
    after: int
    pieces: tuple[Piece, ...]
    window_began_at: Instant | None


def _lanes(tx: Transaction, mapping: Mapping) -> list[Lane]:
    return [
        Lane(
            row["mapping"],
            row["lane"],
            row["after_sequence"],
            tuple(Piece(*each) for each in orjson.loads(row["pieces"])),
            row["window_began_at"],
        )
        for row in tx.all("SELECT * FROM lambda_lanes WHERE mapping = :id ORDER BY lane", id=mapping.id)
    ]


def _store(tx: Transaction, lane: Lane) -> Lane:
    tx.run(
        "INSERT INTO lambda_lanes (mapping, lane, after_sequence, pieces, window_began_at)"
        " VALUES (:mapping, :lane, :after, :pieces, :window) ON CONFLICT (mapping, lane) DO UPDATE SET"
        " after_sequence = excluded.after_sequence, pieces = excluded.pieces, window_began_at = excluded.window_began_at",
        mapping=lane.mapping,
        lane=lane.number,
        after=lane.after,
        pieces=orjson.dumps([[each.through, each.failures, each.not_before] for each in lane.pieces]).decode(),
        window=lane.window_began_at,
    )
    return lane


def check(tx: Transaction, source_arn: str) -> None:
    """Refuse a stream that is not there."""
    try:
        _read(tx, source_arn, after=0, limit=1)
    except ServiceError:
        raise invalid(f"Stream not found: {source_arn}") from None


def start(tx: Transaction, mapping: Mapping) -> None:
    """Put the lanes where they begin; when their number has changed, where the slowest stands.

    What ran in the old lanes is not waited for: its records come again, in the new ones.
    """
    lanes = _lanes(tx, mapping)
    count = mapping.settings["ParallelizationFactor"]
    if len(lanes) == count:
        return
    if lanes:
        after = min(lane.after for lane in lanes)
        tx.run("DELETE FROM lambda_lanes WHERE mapping = :id", id=mapping.id)
        tx.run("DELETE FROM lambda_batches WHERE mapping = :id", id=mapping.id)
    else:
        found = _read(tx, mapping.source_arn, after=0, limit=1)
        after = found["Last"] if mapping.settings["StartingPosition"] == "LATEST" else found["FirstKept"] - 1
    for number in range(count):
        _store(tx, Lane(mapping.id, number, after, (), None))


def _read(tx: Transaction, arn: str, *, after: int, through: int | None = None, limit: int = 1000) -> Dict[str, Any]:
    request = {"StreamArn": arn, "After": after, "Limit": limit}
    return tx.call("dynamodbstreams", "ReadStream", request if through is None else {**request, "Through": through})


def stop(tx: Transaction, mapping: Mapping) -> None:
    """Be woken by the stream no more."""
    request = {"StreamArn": mapping.source_arn, "Kind": mappings.POLL, "Subject": mapping.id}
    tx.call("dynamodbstreams", "Unlisten", request)


def poll(tx: Transaction, mapping: Mapping, version: Version) -> None:
    """Begin a batch in each lane that has none under way and has records; ask to be woken for what is missing."""
    busy = {row["lane"] for row in tx.all("SELECT lane FROM lambda_batches WHERE mapping = :id", id=mapping.id)}
    read_to: list[int] = []
    due: list[Instant] = []
    for lane in _lanes(tx, mapping):
        if lane.number in busy:
            continue
        if invocations.free_places(tx) <= 0 or not invocations.has_room(tx, version.function):
            invocations.seek_place(tx, mappings.POLL, mapping.id)
            break
        waits = _advance(tx, mapping, lane)
        if isinstance(waits, Waits):
            read_to.append(waits.after)
            due += [] if waits.until is None else [waits.until]
    if read_to:
        # A record that a lane has yet to see wakes; while a window is open, not too often.
        not_before = tx.now + LOOK_SECONDS if mapping.window_seconds and due else 0.0
        request = {"StreamArn": mapping.source_arn, "Kind": mappings.POLL, "Subject": mapping.id}
        tx.call("dynamodbstreams", "Listen", {**request, "After": min(read_to), "NotBefore": not_before})
    if due:
        mappings.schedule(tx, mapping, min(due))


@dataclass(frozen=True, slots=True)
class Waits:
    """A lane has nothing to do until there is a record after `after`, or `until` has come."""

    after: int
    until: Instant | None = None


def _advance(tx: Transaction, mapping: Mapping, lane: Lane) -> Waits | None:
    """Begin the lane's next batch, or say what it waits for."""
    while lane.pieces:
        piece = lane.pieces[0]
        if piece.not_before > tx.now:
            last = _read(tx, mapping.source_arn, after=0, limit=1)["Last"]
            return Waits(last, piece.not_before)
        records = list(_wanted(tx, mapping, lane, piece.through))
        young = _young(tx, mapping, records, piece.failures)
        if young:
            _begin(tx, mapping, lane, young)
            return None
        lane = _store(tx, replace(lane, after=piece.through, pieces=lane.pieces[1:]))
    return _gather(tx, mapping, lane)


def _gather(tx: Transaction, mapping: Mapping, lane: Lane) -> Waits | None:
    """Make a batch of the records to come, unless its window is to gather more."""
    while True:
        last = _read(tx, mapping.source_arn, after=0, limit=1)["Last"]
        records, through, full = _next(tx, mapping, lane, min(last, lane.after + RECORDS_AT_ONCE))
        if not records:
            _store(tx, replace(lane, after=through, window_began_at=None))
            return Waits(through)
        if mapping.window_seconds and not full:
            began_at = tx.now if lane.window_began_at is None else lane.window_began_at
            if tx.now < began_at + mapping.window_seconds:
                _store(tx, replace(lane, window_began_at=began_at))
                return Waits(through, began_at + mapping.window_seconds)
        lane = replace(lane, pieces=(Piece(through),), window_began_at=None)
        young = _young(tx, mapping, records, 0)
        if young:
            _begin(tx, mapping, _store(tx, lane), young)
            return None
        lane = _store(tx, replace(lane, after=through, pieces=()))


def _next(tx: Transaction, mapping: Mapping, lane: Lane, last: int) -> tuple[list[Record], int, bool]:
    """The records of the lane's next batch, up to `last`; through which one that is, and whether the batch is full."""
    records: list[Record] = []
    size = 0
    for each in _wanted(tx, mapping, lane, last):
        size += len(orjson.dumps(each)) + 1
        if len(records) == mapping.batch_size or (records and size > batches.BYTES_MAX):
            return records, sequence(each) - 1, True
        records.append(each)
    return records, last, len(records) == mapping.batch_size


def _wanted(tx: Transaction, mapping: Mapping, lane: Lane, through: int) -> Iterator[Record]:
    """The records of this lane that a filter wants, after where the lane stands."""
    count = mapping.settings["ParallelizationFactor"]
    passes = filters.passes(mapping.patterns)
    after = lane.after
    many = min((mapping.batch_size + 1) * count, 1000)
    while after < through:
        page = _read(tx, mapping.source_arn, after=after, through=through, limit=many)["Records"]
        if not page:
            return
        for found in page:
            shown = {**found, "eventSourceARN": mapping.source_arn}
            if (count == 1 or lane_of(found, count) == lane.number) and passes(shown):
                yield shown
        after = sequence(page[-1])


def lane_of(record: Record, count: int) -> int:
    """The lane of a record: that of its item's key."""
    return zlib.crc32(orjson.dumps(record["dynamodb"]["Keys"], option=orjson.OPT_SORT_KEYS)) % count


def sequence(record: Record) -> int:
    return int(record["dynamodb"]["SequenceNumber"])


def _young(tx: Transaction, mapping: Mapping, records: list[Record], failures: int) -> list[Record]:
    """The records that are not too old; those that are go to the destination."""
    age = mapping.settings["MaximumRecordAgeInSeconds"]
    if age == -1:
        return records
    oldest = int(tx.now) - age
    old = [each for each in records if each["dynamodb"]["ApproximateCreationDateTime"] < oldest]
    if old:
        _give_up(tx, mapping, (old[0], old[-1]), len(old), "RecordAgeExceeded", {"RequestId": tx.new_id()}, failures)
    return records[len(old) :]


def _begin(tx: Transaction, mapping: Mapping, lane: Lane, records: list[Record]) -> None:
    payload = orjson.dumps({"Records": records})
    begun = batches.begin(tx, mapping, lane.number, payload, [each["dynamodb"]["SequenceNumber"] for each in records])
    assert begun, "there was room"


def finish(tx: Transaction, batch: Row, mapping: Mapping | None, answer: Dict[str, Any]) -> None:
    """Move the lane on as far as the function has come; what it failed on is tried again, in parts, or given up."""
    found = [] if mapping is None else _lanes(tx, mapping)
    lane = next((each for each in found if each.number == batch["lane"]), None)
    if mapping is None or lane is None or not lane.pieces:
        return
    numbers: list[str] = orjson.loads(batch["records"])
    failed = batch_response.failures(answer, numbers, partial=bool(batch["partial"]))
    mappings.note_result(tx, mapping, mappings.OK if failed is not None else mappings.FAILED)
    piece, rest = lane.pieces[0], lane.pieces[1:]
    if failed is not None and not failed:
        _store(tx, replace(lane, after=piece.through, pieces=rest))
        return
    first = int(numbers[0] if failed is None else min(failed, key=int))
    left = [int(number) for number in numbers if int(number) >= first]
    bisect = mapping.settings["BisectBatchOnFunctionError"]
    retries = mapping.settings["MaximumRetryAttempts"]
    lane = replace(lane, after=first - 1)
    if bisect and len(left) > 1:
        # "Bisecting a batch does not count towards the retry quota." What was reported is where to cut, if that is not
        # at the beginning.
        middle = left[(len(left) - 1) // 2]
        parts = [piece] if len(left) < len(numbers) else [replace(piece, through=middle), piece]
        _store(tx, replace(lane, pieces=(*parts, *rest)))
        return
    tried = replace(piece, failures=piece.failures + 1, not_before=tx.now + _pause(piece.failures))
    if retries != -1 and tried.failures > retries:
        ends = [_one(tx, mapping, number) for number in (left[0], left[-1])]
        _give_up(tx, mapping, ends, len(left), "RetryAttemptsExhausted", answer, tried.failures)
        _store(tx, replace(lane, after=piece.through, pieces=rest))
        return
    _store(tx, replace(lane, pieces=(tried, *rest)))


def _pause(failures: int) -> float:
    return float(min(2.0 ** min(failures, 16), RETRY_SECONDS_MAX))


def _one(tx: Transaction, mapping: Mapping, number: int) -> Record | None:
    """One record, if it is still kept."""
    found = _read(tx, mapping.source_arn, after=number - 1, through=number)["Records"]
    return found[0] if found else None


def _give_up(
    tx: Transaction,
    mapping: Mapping,
    ends: Sequence[Record | None],
    count: int,
    condition: str,
    answer: Dict[str, Any],
    failures: int,
) -> None:
    """Tell the destination which records were not done, by the first and the last of them: their place in the stream,
    not what is in them."""
    target = mapping.settings["DestinationConfig"]["OnFailure"].get("Destination")
    known = [each["dynamodb"] for each in ends if each is not None]
    if not target or not known:
        return
    function = function_arn(tx, mapping.function.function, mapping.function.qualifier or LATEST)
    first, last = known[0], known[-1]
    shard = _read(tx, mapping.source_arn, after=0, limit=1)["ShardId"]
    request_id = answer["RequestId"]
    envelope: dict[str, Any] = {
        "requestContext": {
            "requestId": request_id,
            "functionArn": function,
            "condition": condition,
            "approximateInvokeCount": failures,
        },
        "version": "1.0",
        "timestamp": _moment(tx.now),
        "DDBStreamBatchInfo": {
            "shardId": shard,
            "startSequenceNumber": first["SequenceNumber"],
            "endSequenceNumber": last["SequenceNumber"],
            "approximateArrivalOfFirstRecord": _moment(first["ApproximateCreationDateTime"]),
            "approximateArrivalOfLastRecord": _moment(last["ApproximateCreationDateTime"]),
            "batchSize": count,
            "streamArn": mapping.source_arn,
        },
    }
    if "StatusCode" in answer:
        envelope["responseContext"] = {"statusCode": 200, "executedVersion": answer["ExecutedVersion"]}
        if answer.get("FunctionError"):
            envelope["responseContext"]["functionError"] = answer["FunctionError"]
    tx.post(Delivery(aftermath.DESTINATION, request_id, {"Target": target, "Body": envelope, "Function": function}))


def _moment(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
