"""Activities: tasks that wait in line for workers who ask for them.

Keeps true: a task is handed to one worker; whoever asks while there is none waits, up to a minute. Does not know what
workers do with it.

Sources: "Activities" in the developer guide; GetActivityTask in the API reference.
"""

from muster.arn import arn
from muster.errors import ServiceError
from muster.languages.asl.messages import Cause, Offer, Picked, Succeeded, Taken, Unusable
from muster.operation import Answer, Request, Wait
from muster.services.stepfunctions import names, pages, tags, tokens
from muster.transaction import Carried, Delivery, Row, Transaction

POLL_SECONDS = 60.0  # "the service holds the HTTP connection open … the poll will return … after 60 seconds"


def create(tx: Transaction, request: Request) -> Answer:
    """CreateActivity; the same name again is the same activity."""
    name = names.check(request["name"])
    activity_arn = arn(tx, "states", f"activity:{name}")
    known = tx.one("SELECT * FROM states_activities WHERE arn = :arn", arn=activity_arn)
    if known is None:
        tx.run(
            "INSERT INTO states_activities (arn, name, created_at) VALUES (:arn, :name, :now)",
            arn=activity_arn,
            name=name,
            now=tx.now,
        )
        tags.add(tx, activity_arn, request.get("tags") or [])
    return {"activityArn": activity_arn, "creationDate": known["created_at"] if known is not None else tx.now}


def _existing(tx: Transaction, activity_arn: str) -> Row:
    names.parse(activity_arn, "activity")
    row = tx.one("SELECT * FROM states_activities WHERE arn = :arn", arn=activity_arn)
    if row is None:
        raise ServiceError("ActivityDoesNotExist", f"Activity Does Not Exist: '{activity_arn}'")
    return row


def describe(tx: Transaction, request: Request) -> Answer:
    """DescribeActivity."""
    return _shown(_existing(tx, request["activityArn"]))


def _shown(row: Row) -> Answer:
    return {"activityArn": row["arn"], "name": row["name"], "creationDate": row["created_at"]}


def delete(tx: Transaction, request: Request) -> Answer:
    """DeleteActivity; one that is not there is already deleted."""
    names.parse(request["activityArn"], "activity")
    tx.run("DELETE FROM states_activities WHERE arn = :arn", arn=request["activityArn"])
    tx.run("DELETE FROM states_tags WHERE arn = :arn", arn=request["activityArn"])
    return {}


def listed(tx: Transaction, request: Request) -> Answer:
    """ListActivities, by name."""
    size, after = pages.size(request), pages.place("activities", request)
    rows = tx.all(
        "SELECT * FROM states_activities WHERE name > :after ORDER BY name LIMIT :most",
        after=after or "",
        most=size + 1,
    )
    answer: Answer = {"activities": [_shown(row) for row in rows[:size]]}
    if len(rows) > size:
        answer["nextToken"] = pages.token("activities", rows[size - 1]["name"])
    return answer


def offer(tx: Transaction, execution_arn: str, task: Offer) -> Cause:
    """Put a task in the activity's line; refused when there is no such activity."""
    if tx.one("SELECT arn FROM states_activities WHERE arn = :arn", arn=task.activity) is None:
        return Unusable(task.frame, task.attempt, f"The activity {task.activity} does not exist.")
    tokens.hand_out(tx, task.token, execution_arn, task.frame, task.attempt, task.heartbeat_seconds)
    tx.run(
        "INSERT INTO states_offers (token, activity_arn, input, offered_at) VALUES (:token, :activity, :input, :now)",
        token=task.token,
        activity=task.activity,
        input=task.input,
        now=tx.now,
    )
    tx.wake(f"states.activity {task.activity}")
    _serve_a_machine(tx, task.activity)
    return Taken(task.frame, task.attempt)


def get_task(tx: Transaction, request: Request) -> Answer | Wait:
    """GetActivityTask: the next task in line, or wait for one; an empty answer after a minute."""
    _existing(tx, request["activityArn"])
    until = tx.now + POLL_SECONDS

    def look(tx: Transaction) -> Answer | Wait:
        found = _pick(tx, request)
        if found is not None:
            return found
        if tx.now >= until:
            return {}
        return Wait(f"states.activity {request['activityArn']}", until, look)

    return look(tx)


def poll(tx: Transaction, request: Request, execution_arn: str, frame: int, attempt: int) -> dict[str, str] | None:
    """GetActivityTask as a state machine asks for it: the task, or None and a place among those who wait for one."""
    _existing(tx, request["activityArn"])
    found = _pick(tx, request)
    if found is not None:
        return _as_result(found)
    waiting = names.subject(execution_arn, frame, attempt)
    tx.run(
        "INSERT INTO states_polls (subject, activity_arn, worker, asked_at) VALUES (:subject, :arn, :worker, :now)",
        subject=waiting,
        arn=request["activityArn"],
        worker=request.get("workerName"),
        now=tx.now,
    )
    tx.post(Delivery("states.poll", waiting, {}, tx.now + POLL_SECONDS))
    return None


def _as_result(found: Answer) -> dict[str, str]:
    return {"TaskToken": found["taskToken"], "Input": found["input"]}


def give_up(tx: Transaction, waiting: str) -> bool:
    """A machine's poll is over; whether it was still waiting."""
    tx.cancel("states.poll", waiting)
    return tx.run("DELETE FROM states_polls WHERE subject = :subject", subject=waiting) > 0


def carry_poll(tx: Transaction, carried: Carried) -> None:
    """A machine has polled for a minute and nothing came: an empty answer."""
    if give_up(tx, carried.subject):
        arn, frame, attempt = names.addressed(carried.subject)
        tx.post(tokens.answer_delivery(arn, Succeeded(frame, attempt, {})))


def _serve_a_machine(tx: Transaction, activity_arn: str) -> None:
    """Hand the task to a machine that polls for it, if one does."""
    row = tx.one(
        "SELECT * FROM states_polls WHERE activity_arn = :arn ORDER BY asked_at, subject LIMIT 1", arn=activity_arn
    )
    if row is None:
        return
    give_up(tx, row["subject"])
    found = _pick(tx, {"activityArn": activity_arn, "workerName": row["worker"]})
    assert found is not None, "a task has just been put in line"
    arn, frame, attempt = names.addressed(row["subject"])
    tx.post(tokens.answer_delivery(arn, Succeeded(frame, attempt, _as_result(found))))


def _pick(tx: Transaction, request: Request) -> Answer | None:
    row = tx.one(
        "SELECT * FROM states_offers WHERE activity_arn = :arn ORDER BY offered_at, token LIMIT 1",
        arn=request["activityArn"],
    )
    if row is None:
        return None
    tx.run("DELETE FROM states_offers WHERE token = :token", token=row["token"])
    token = tx.one("SELECT * FROM states_tokens WHERE token = :token", token=row["token"])
    assert token is not None, "a task in line has a token"
    tx.run("UPDATE states_tokens SET beat_at = :now WHERE token = :token", now=tx.now, token=row["token"])
    tx.post(
        tokens.answer_delivery(
            token["execution_arn"], Picked(token["frame"], token["attempt"], request.get("workerName"))
        )
    )
    return {"taskToken": row["token"], "input": row["input"]}
