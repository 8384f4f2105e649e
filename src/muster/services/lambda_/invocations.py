"""Invocations: each is a row that waits for a place, runs, and ends; a delivery carries it while it runs.

Keeps true: no more run at once than there are places, nor more of one function than its reserved concurrency; what
waits is a row and starts, oldest first, when a place is free; a request id is one invocation's for all its attempts.
Does not know how a function is run, nor what happens after an asynchronous failure (see `aftermath`).
"""

from dataclasses import dataclass

from muster.clock import Instant
from muster.errors import ServiceError
from muster.services.lambda_.functions import Version
from muster.transaction import Delivery, Row, Transaction

INVOKE = "lambda.invoke"
KILL = "lambda.kill"
EXPIRE = "lambda.expire"

# How many run at once on this machine. What somebody waits for may use more places: a function that calls another one
# and waits holds a place itself, and with one limit for both all of them could wait for each other.
PLACES = 32
PLACES_URGENT = 64

# Ended invocations are kept so long, for whoever looks; a synchronous one, which carries its result, not as long.
KEPT_SECONDS = 3600.0
KEPT_SYNCHRONOUS_SECONDS = 120.0
PRUNED_AT_ONCE = 50

# https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
EVENT_AGE_SECONDS_MAX = 21_600


@dataclass(frozen=True, slots=True)
class Reply:
    """Where the outcome goes: a delivery of that kind and subject."""

    kind: str
    subject: str


def begin(
    tx: Transaction,
    version: Version,
    qualifier: str | None,
    payload: bytes,
    *,
    type: str,
    client_context: str | None = None,
    reply: Reply | None = None,
    event_age_seconds: int = EVENT_AGE_SECONDS_MAX,
) -> str:
    """Write an invocation down and start it if there is a place; its id.

    TooManyRequestsException when somebody waits for it and the function's reserved concurrency is used up.
    """
    reserved = _reserved(tx, version.function)
    if type != "Event" and reserved is not None and running(tx, version.function) >= reserved:
        raise ServiceError(
            "TooManyRequestsException",
            "Rate Exceeded.",
            fields={"Reason": "ReservedFunctionConcurrentInvocationLimitExceeded", "Type": "User"},
        )
    id_ = tx.new_id()
    tx.run(
        "INSERT INTO lambda_invocations (id, function, qualifier, version, type, urgent, status, payload, client_context,"
        " reply_kind, reply_subject, created_at, queued_at)"
        " VALUES (:id, :function, :qualifier, :version, :type, :urgent, 'queued', :payload, :client_context,"
        " :reply_kind, :reply_subject, :now, :now)",
        id=id_,
        function=version.function,
        qualifier=qualifier,
        version=version.version,
        type=type,
        urgent=1 if type == "RequestResponse" else 0,
        payload=payload,
        client_context=client_context,
        reply_kind=reply.kind if reply else None,
        reply_subject=reply.subject if reply else None,
        now=tx.now,
    )
    admit(tx)
    if type == "Event" and status(tx, id_) == "queued":
        tx.post(Delivery(EXPIRE, id_, {}, due_at=tx.now + event_age_seconds))
    return id_


def find(tx: Transaction, id_: str) -> Row | None:
    """The invocation's row."""
    return tx.one("SELECT * FROM lambda_invocations WHERE id = :id", id=id_)


def status(tx: Transaction, id_: str) -> str | None:
    """The invocation's status; None when it is not (or no longer) there."""
    row = tx.one("SELECT status FROM lambda_invocations WHERE id = :id", id=id_)
    return None if row is None else str(row["status"])


def _reserved(tx: Transaction, function: str) -> int | None:
    row = tx.one("SELECT reserved FROM lambda_functions WHERE name = :name", name=function)
    return None if row is None else row["reserved"]


def running(tx: Transaction, function: str | None = None) -> int:
    """How many invocations run now, of one function or of all."""
    count = "SELECT COUNT(*) AS count FROM lambda_invocations WHERE status = 'running'"
    row = tx.one(count) if function is None else tx.one(count + " AND function = :function", function=function)
    assert row is not None, "a count is always answered"
    return int(row["count"])


def admit(tx: Transaction) -> None:
    """Start what waits, oldest first, as far as there are places."""
    free = PLACES_URGENT - running(tx)
    free -= _admit(tx, urgent=1, places=free)
    free -= PLACES_URGENT - PLACES
    free -= _admit(tx, urgent=0, places=free)
    if free > 0:
        _tell_seekers(tx)


def _admit(tx: Transaction, *, urgent: int, places: int) -> int:
    started = 0
    while started < places:
        row = _next(tx, urgent)
        if row is None:
            break
        tx.run("UPDATE lambda_invocations SET status = 'running', attempts = attempts + 1 WHERE id = :id", id=row["id"])
        if row["type"] == "Event" and row["queued_at"] < tx.now:
            tx.cancel(EXPIRE, row["id"])
        tx.post(Delivery(INVOKE, row["id"], {}))
        started += 1
    return started


def _next(tx: Transaction, urgent: int) -> Row | None:
    """The oldest waiting invocation of a function that has room."""
    waiting = tx.all(
        "SELECT DISTINCT function FROM lambda_invocations WHERE status = 'queued' AND urgent = :urgent", urgent=urgent
    )
    heads: list[Row] = []
    for entry in waiting:
        function = entry["function"]
        reserved = _reserved(tx, function)
        if reserved is not None and running(tx, function) >= reserved:
            continue
        head = tx.one(
            "SELECT id, type, queued_at FROM lambda_invocations WHERE status = 'queued' AND urgent = :urgent"
            " AND function = :function ORDER BY queued_at, id LIMIT 1",
            urgent=urgent,
            function=function,
        )
        if head is not None:
            heads.append(head)
    return min(heads, key=lambda head: (head["queued_at"], head["id"]), default=None)


def free_places(tx: Transaction) -> int:
    """How many invocations that nobody waits for could start now; what is still queued has no claim on them."""
    return PLACES - running(tx)


def has_room(tx: Transaction, function: str) -> bool:
    """Whether the function's reserved concurrency lets another one of it run."""
    reserved = _reserved(tx, function)
    return reserved is None or running(tx, function) < reserved


def seek_place(tx: Transaction, kind: str, subject: str) -> None:
    """Have one delivery of that kind and subject posted when there may be a place."""
    tx.run(
        "INSERT INTO lambda_place_seekers (kind, subject) VALUES (:kind, :subject) ON CONFLICT DO NOTHING",
        kind=kind,
        subject=subject,
    )


def seek_no_place(tx: Transaction, kind: str, subject: str) -> None:
    tx.run("DELETE FROM lambda_place_seekers WHERE kind = :kind AND subject = :subject", kind=kind, subject=subject)


def _tell_seekers(tx: Transaction) -> None:
    seekers = tx.all("SELECT kind, subject FROM lambda_place_seekers")
    for row in seekers:
        tx.post(Delivery(row["kind"], row["subject"], {}))
    if seekers:
        tx.run("DELETE FROM lambda_place_seekers")


def close(
    tx: Transaction,
    id_: str,
    status: str,
    *,
    result: bytes | None = None,
    function_error: str | None = None,
    error: ServiceError | None = None,
    log_tail: str | None = None,
) -> None:
    """End an invocation; its payload is not needed any more, and whoever waits for it is woken."""
    tx.run(
        "UPDATE lambda_invocations SET status = :status, ended_at = :now, payload = NULL, result = :result,"
        " function_error = :function_error, error_code = :code, error_message = :message, log_tail = :log_tail"
        " WHERE id = :id",
        status=status,
        now=tx.now,
        result=result,
        function_error=function_error,
        code=error.code if error else None,
        message=error.message if error else None,
        log_tail=log_tail,
        id=id_,
    )
    tx.wake(topic(id_))


def topic(id_: str) -> str:
    """What is woken when the invocation ends."""
    return f"lambda:{id_}"


def requeue(tx: Transaction, id_: str, due_at: Instant, kind: str) -> None:
    """Have an asynchronous invocation wait until `due_at` before it queues again."""
    tx.run("UPDATE lambda_invocations SET status = 'retrying' WHERE id = :id", id=id_)
    tx.post(Delivery(kind, id_, {}, due_at=due_at))


def queue_again(tx: Transaction, id_: str) -> None:
    """The wait is over: queue for a place."""
    tx.run(
        "UPDATE lambda_invocations SET status = 'queued', queued_at = :now WHERE id = :id AND status = 'retrying'",
        now=tx.now,
        id=id_,
    )
    admit(tx)


def cancel(tx: Transaction, id_: str) -> None:
    """Best effort: what waits is dropped, what runs is killed; nobody is answered."""
    row = find(tx, id_)
    if row is None or row["ended_at"] is not None:
        return
    close(tx, id_, "cancelled")
    tx.cancel(EXPIRE, id_)
    if row["status"] == "running":
        tx.cancel(INVOKE, id_)
        tx.post(Delivery(KILL, id_, {}))
    admit(tx)


def prune(tx: Transaction) -> None:
    """Forget a few of those that ended long ago."""
    tx.run(
        "DELETE FROM lambda_invocations WHERE id IN (SELECT id FROM lambda_invocations WHERE ended_at < :synchronous"
        " AND (ended_at < :all OR type = 'RequestResponse') ORDER BY ended_at LIMIT :count)",
        synchronous=tx.now - KEPT_SYNCHRONOUS_SECONDS,
        all=tx.now - KEPT_SECONDS,
        count=PRUNED_AT_ONCE,
    )


def abandoned(tx: Transaction) -> list[str]:
    """Those whose caller went away with the process before this one: nobody waits for their answer."""
    return [
        row["id"]
        for row in tx.all(
            "SELECT id FROM lambda_invocations WHERE type = 'RequestResponse' AND status IN ('queued', 'running')"
        )
    ]
