"""Executions move: a cause comes in, the machine runs through every state it can take, and all of it is one commit.

Keeps true: one history row per transaction, whose ids go on where the last one ended; what an execution's integrations
did and its own new state are written together; an execution that has ended is not touched again. Long runs are cut and
go on in a delivery of their own. Does not know the States Language; knows how its commands are carried out.
"""

from collections import deque
from typing import Any

import orjson

from muster.arn import Arn
from muster.languages import asl
from muster.languages.asl import timestamps
from muster.languages.asl.definition import Map, State, Task
from muster.languages.asl.failures import Failure
from muster.languages.asl.history import Entry
from muster.languages.asl.messages import (
    Aborted,
    Call,
    Cause,
    ChildEnded,
    CloseMapRun,
    Command,
    Continued,
    Fired,
    Gather,
    Offer,
    OpenMapRun,
    Outcome,
    ReadItems,
    Redriven,
    Release,
    Spawn,
    Started,
    Taken,
    TimedOut,
    Timer,
    Tuned,
    Unusable,
)
from muster.operation import Answer, Request
from muster.services.stepfunctions import (
    activities,
    calling,
    logged,
    machines,
    mapdata,
    mapruns,
    mocking,
    notices,
    tokens,
    warnings,
)
from muster.services.stepfunctions.calling import Errand
from muster.services.stepfunctions.machines import Revision
from muster.services.stepfunctions.names import addressed, subject
from muster.transaction import Carried, Delivery, Row, Transaction


def row_of(tx: Transaction, execution_arn: str) -> Row | None:
    """The execution's row, if it is there and still running."""
    row = tx.one("SELECT * FROM states_executions WHERE arn = :arn", arn=execution_arn)
    return row if row is not None and row["status"] == "RUNNING" else None


def context_of(row: Row, role_arn: str) -> dict[str, Any]:
    """What the context object says of an execution and its machine."""
    return {
        "Execution": {
            "Id": row["arn"],
            "Input": orjson.loads(row["input"]),
            "StartTime": timestamps.text(row["started_at"]),
            "Name": row["name"],
            "RoleArn": role_arn,
            **({} if row["express"] else {"RedriveCount": row["redrives"]}),
            **({"RedriveTime": timestamps.text(row["redriven_at"])} if row["redriven_at"] is not None else {}),
        },
        "StateMachine": {"Id": row["machine_arn"], "Name": Arn.parse(row["machine_arn"]).resource.split(":")[1]},
    }


class Advance:
    """One execution's move within one transaction."""

    def __init__(self, tx: Transaction, row: Row) -> None:
        self.tx = tx
        self.row = row
        self.arn: str = row["arn"]
        revision: Revision = machines.revision(tx, row["revision"])
        self.revision = revision
        # Express children of a Map Run belong to a machine that need not be Express as a whole.
        self.machine = machines.machine(revision, express=bool(row["express"]) and row["map_run"] is None)
        self.world = asl.World(tx.now, tx, tx.region, tx.account, context_of(row, revision.role_arn))
        self.state: dict[str, Any] = orjson.loads(row["state"])
        self.first: int = self.state["next"]
        self.errands: dict[str, list[str]] = orjson.loads(row["errands"])
        self.entries: list[Entry] = []
        self.outcome: Outcome | None = None

    def take(self, cause: Cause) -> None:
        """Follow the cause, and whatever it causes at once, to where the execution must wait; write it all down."""
        causes: deque[Cause] = deque([cause])
        budget = asl.BUDGET
        more = False
        while causes and self.outcome is None:
            if budget <= 0:
                self._later(causes)
                break
            decision = asl.step(self.machine, self.state, causes.popleft(), self.world, budget=budget)
            self.state = decision.state
            self.entries += decision.entries
            budget -= decision.transitions + 1
            self.outcome = decision.outcome
            more = decision.more
            for command in decision.commands:
                answer = self._carry_out(command)
                if answer is not None:
                    causes.append(answer)
        self._write()
        if more and self.outcome is None:
            self.tx.post(Delivery("states.run", self.arn, {}))

    def _later(self, causes: deque[Cause]) -> None:
        """Answers that this transaction has no more room for; they are carried in the next one."""
        for cause in causes:
            self.tx.post(tokens.answer_delivery(self.arn, cause))

    def _write(self) -> None:
        outcome = self.outcome
        failure = outcome.failure if outcome is not None and outcome.failure is not None else Failure(None, None)
        touched = self.tx.run(
            "UPDATE states_executions SET state = :state, errands = :errands, status = :status, output = :output,"
            " error = :error, cause = :cause, stopped_at = :stopped WHERE arn = :arn AND status = 'RUNNING'",
            arn=self.arn,
            state=orjson.dumps(self.state).decode(),
            errands=orjson.dumps(self.errands).decode(),
            status=outcome.status if outcome is not None else "RUNNING",
            output=outcome.output if outcome is not None else None,
            error=failure.error,
            cause=failure.cause,
            stopped=self.tx.now if outcome is not None else None,
        )
        if not touched:
            return  # the execution was stopped by one of its own calls
        if self.entries:
            self.tx.run(
                "INSERT INTO states_history (execution_arn, first_id, events, at, entries)"
                " VALUES (:arn, :first, :events, :now, :entries)",
                arn=self.arn,
                first=self.first,
                events=len(self.entries),
                now=self.tx.now,
                entries=orjson.dumps(self.entries).decode(),
            )
            logging = self.revision.settings["loggingConfiguration"]
            logged.deliver(self.tx, logging, self.arn, self.row["redrives"], self.first, self.entries)
            warnings.look(self.tx, self.arn, self.first, self.entries, history=not self.row["express"])
        if outcome is not None:
            self._ended(outcome)

    def _ended(self, outcome: Outcome) -> None:
        if self.machine.timeout_seconds is not None or self.row["express"]:
            self.tx.cancel("states.timeout", self.arn)
        ended = self.tx.one("SELECT * FROM states_executions WHERE arn = :arn", arn=self.arn)
        assert ended is not None
        if ended["parent"] is not None:
            parent, frame, attempt, index = orjson.loads(ended["parent"])
            payload = {"Index": index, "Status": ended["status"]} if index is not None else ending(ended)
            self.tx.post(Delivery("states.reply", subject(parent, frame, attempt), {"Ended": payload}))
        notices.status_changed(self.tx, ended)
        self.tx.wake(f"states.execution {self.arn}")

    # Commands

    def _carry_out(self, command: Command) -> Cause | None:
        tx = self.tx
        match command:
            case Call():
                return self._call(command)
            case Timer(frame, attempt, purpose, due_at):
                payload = {"Frame": frame, "Attempt": attempt, "Purpose": purpose}
                tx.post(Delivery("states.timer", subject(self.arn, frame, attempt), payload, due_at))
            case Offer():
                return self._mocked(command) or activities.offer(tx, self.arn, command)
            case Release():
                self._release(command)
            case OpenMapRun():
                mapruns.opened(tx, self.row, command)
                self.errands[str(command.attempt)] = ["map run", command.map_run]
            case ReadItems():
                return mapdata.read(tx, command)
            case Spawn():
                mapruns.spawn(tx, self.row, self.machine, self.state, command)
            case Gather():
                return mapdata.gather(tx, command)
            case CloseMapRun(map_run, status):
                close_map_run(tx, map_run, status)
        return None

    def _mocked(self, asked: Call | Offer) -> Cause | None:
        return mocking.answer(self.tx, self.arn, self.state["frames"][str(asked.frame)]["at"], asked)

    def _call(self, call: Call) -> Cause | None:
        mocked = self._mocked(call)
        if mocked is not None:
            return mocked
        if call.token is not None:
            tokens.hand_out(self.tx, call.token, self.arn, call.frame, call.attempt, call.heartbeat_seconds)
        answer, errand = calling.perform(self.tx, call, self.arn)
        if errand is not None:
            self.errands[str(call.attempt)] = [errand.kind, errand.name]
        return answer if answer is not None else Taken(call.frame, call.attempt)

    def _release(self, release: Release) -> None:
        self.tx.cancel("states.timer", subject(self.arn, release.frame, release.attempt))
        errand = self.errands.pop(str(release.attempt), None)
        if not release.abandoned:
            return
        tokens.close(self.tx, self.arn, release.attempt)
        if errand is not None:
            call_back(self.tx, Errand(*errand))


def call_back(tx: Transaction, errand: Errand) -> None:
    """What works for an attempt that is over need not go on."""
    if errand.kind == "execution":
        stop(tx, errand.name, None, None)
    elif errand.kind == "map run":
        close_map_run(tx, errand.name, "ABORTED")
    elif errand.kind == "poll":
        activities.give_up(tx, errand.name)
    elif tx.offers("lambda", "CancelInvocation"):
        tx.call("lambda", "CancelInvocation", {"InvocationId": errand.name})


def close_map_run(tx: Transaction, map_run: str, status: str) -> None:
    """A Map Run is over; children that still run are stopped."""
    for child in mapruns.closed(tx, map_run, status):
        stop(tx, child, None, None)


def tune_map_run(tx: Transaction, request: Request) -> Answer:
    """UpdateMapRun: the children that run go on; more start when there is room for them now."""
    changed = mapruns.changed(tx, request)
    row = row_of(tx, changed["execution_arn"])
    if row is None:
        return {}
    advance = Advance(tx, row)
    for frame in advance.state["frames"].values():
        if (frame.get("fan") or {}).get("map_run") == changed["arn"]:
            advance.take(
                Tuned(
                    frame["n"],
                    frame["attempt"],
                    changed["concurrency"],
                    changed["tolerated_count"],
                    changed["tolerated_percentage"],
                )
            )
            break
    return {}


def ending(row: Row) -> dict[str, Any]:
    """How an ended execution looks to its parent: DescribeExecution's members in PascalCase."""
    shown: dict[str, Any] = {
        "ExecutionArn": row["arn"],
        "Input": row["input"],
        "InputDetails": {"Included": True},
        "Name": row["name"],
        "StartDate": int(row["started_at"] * 1000),
        "StateMachineArn": row["machine_arn"],
        "Status": row["status"],
        "StopDate": int(row["stopped_at"] * 1000),
    }
    if row["output"] is not None:
        shown["Output"] = row["output"]
        shown["OutputDetails"] = {"Included": True}
    for name in ("error", "cause"):
        if row[name] is not None:
            shown[name.capitalize()] = row[name]
    return shown


def stop(tx: Transaction, execution_arn: str, error: str | None, cause: str | None) -> bool:
    """Abort an execution, if it still runs; whether it did."""
    row = row_of(tx, execution_arn)
    if row is None:
        return False
    if tx.cancel("states.run", execution_arn) and orjson.loads(row["state"])["next"] == 1:
        begin(tx, row)  # what was started has begun, however soon it is stopped
        row = row_of(tx, execution_arn)
        if row is None:
            return False
        tx.cancel("states.run", execution_arn)
    Advance(tx, row).take(Aborted(error, cause))
    return True


def redrive(tx: Transaction, execution_arn: str) -> None:
    """Let an execution that had ended go on."""
    row = row_of(tx, execution_arn)
    assert row is not None, "the row has just been set running"
    advance = Advance(tx, row)
    if advance.machine.timeout_seconds is not None:
        tx.post(Delivery("states.timeout", execution_arn, {}, tx.now + advance.machine.timeout_seconds))
    notices.status_changed(tx, row)
    advance.take(Redriven(row["redrives"]))


# Carriers


def carry_run(tx: Transaction, carried: Carried) -> None:
    """Start an execution, or go on with a long run."""
    row = row_of(tx, carried.subject)
    if row is None:
        return
    begin(tx, row)


def begin(tx: Transaction, row: Row) -> None:
    """Let an execution make its first move, or go on where a long run was cut."""
    advance = Advance(tx, row)
    if advance.first > 1:
        advance.take(Continued())
        return
    details: dict[str, Any] = {"input": row["input"], "roleArn": advance.revision.role_arn}
    for column, member in (("alias_arn", "stateMachineAliasArn"), ("version_arn", "stateMachineVersionArn")):
        if row[column] is not None:
            details[member] = row[column]
    notices.status_changed(tx, row)
    advance.take(Started(details))


def carry_timer(tx: Transaction, carried: Carried) -> None:
    """A wait, a retry's delay, a timeout or a heartbeat is due."""
    arn, frame, attempt = addressed(carried.subject)
    row = row_of(tx, arn)
    if row is None:
        return
    purpose = carried.payload["Purpose"]
    if purpose == "heartbeat":
        beaten = tokens.next_beat_due(tx, arn, attempt)
        if beaten is not None and beaten > tx.now:
            tx.post(Delivery("states.timer", carried.subject, carried.payload, beaten))
            return
    Advance(tx, row).take(Fired(frame, attempt, purpose))


def carry_timeout(tx: Transaction, carried: Carried) -> None:
    """The machine's own time is over."""
    row = row_of(tx, carried.subject)
    if row is not None:
        time_out(tx, row)


def time_out(tx: Transaction, row: Row) -> None:
    """End an execution whose machine's time is over."""
    tx.cancel("states.run", row["arn"])
    Advance(tx, row).take(TimedOut())


def carry_reply(tx: Transaction, carried: Carried) -> None:
    """An answer from outside: a token's, a function's, a child execution's."""
    arn, frame, attempt = addressed(carried.subject)
    row = row_of(tx, arn)
    if row is None:
        return
    advance = Advance(tx, row)
    waiting = advance.state["frames"].get(str(frame))
    if waiting is None or waiting.get("attempt") != attempt:
        return  # that attempt is over
    state = advance.machine.scopes[waiting["scope"]].states[waiting["at"]]
    if not isinstance(state, Map):
        advance.errands.pop(str(attempt), None)
    advance.take(_answered(tx, state, frame, attempt, carried.payload))


def _answered(tx: Transaction, state: State, frame: int, attempt: int, payload: dict[str, Any]) -> Cause:
    if "Cause" in payload:
        return tokens.written_cause(payload["Cause"])
    if "Ended" in payload:
        ended = payload["Ended"]
        if isinstance(state, Map):
            return ChildEnded(frame, attempt, ended["Index"], ended["Status"] == "SUCCEEDED")
        assert isinstance(state, Task)
        return calling.execution_answer(state.integration, frame, attempt, ended)
    if not isinstance(state, Task):
        return Unusable(frame, attempt, "An answer came for a state that asked for nothing.")
    return calling.function_answer(tx, state.integration, frame, attempt, payload)


CARRIERS = {
    "states.run": carry_run,
    "states.timer": carry_timer,
    "states.timeout": carry_timeout,
    "states.reply": carry_reply,
    "states.poll": activities.carry_poll,
}
