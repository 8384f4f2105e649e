"""A driver of the pure stepper: virtual time, tasks answered by a function, history kept in a list."""

import heapq
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from muster.ids import SeededIds
from muster.languages import asl
from muster.languages.asl.history import Entry
from muster.languages.asl.messages import (
    Call,
    Cause,
    Continued,
    Failed,
    Fired,
    Offer,
    Release,
    Started,
    Succeeded,
    Taken,
    Timer,
)

Worker = Callable[[Any], Any]  # parameters -> a result, a Failed, or None for no answer


def parsed(definition: Mapping[str, Any]) -> asl.Machine:
    return asl.parse(orjson.dumps(definition).decode())


class Driver:
    """One execution, driven to where nothing more can happen by itself."""

    def __init__(
        self,
        definition: Mapping[str, Any],
        document: Any = None,
        *,
        worker: Worker = lambda parameters: parameters,
        seed: int = 0,
        history_max: int = 25_000,
        budget: int = asl.BUDGET,
    ) -> None:
        self.machine = parsed(definition)
        self.worker = worker
        self.now = 1_735_000_000.0
        self.ids = SeededIds(seed)
        self.history_max = history_max
        self.budget = budget
        self.document = {} if document is None else document
        self.state = asl.beginning(self.machine, self.document)
        self.entries: list[Entry] = []
        self.outcome: asl.Outcome | None = None
        self.timers: list[tuple[float, int, Timer]] = []
        self.released: set[int] = set()
        self.waits: list[float] = []
        self.calls: list[Any] = []
        self._follow(Started({"input": orjson.dumps(self.document).decode(), "roleArn": "role"}))
        self._pass_time()

    def _world(self) -> asl.World:
        execution = {"Id": "execution", "Input": self.document, "Name": "name", "RoleArn": "role", "StartTime": "then"}
        context = {"Execution": execution, "StateMachine": {"Id": "machine", "Name": "machine"}}
        return asl.World(self.now, self.ids, "us-east-1", "000000000000", context, history_max=self.history_max)

    def _follow(self, cause: Cause) -> None:
        causes = deque([cause])
        while causes and self.outcome is None:
            # The state survives being written down and read back: it is plain data.
            self.state = orjson.loads(orjson.dumps(self.state))
            decision = asl.step(self.machine, self.state, causes.popleft(), self._world(), budget=self.budget)
            assert decision.first_id == len(self.entries) + 1, "history ids go on without a gap"
            self.state = decision.state
            self.entries += decision.entries
            self.outcome = decision.outcome
            for command in decision.commands:
                match command:
                    case Timer():
                        heapq.heappush(self.timers, (command.due_at, command.attempt, command))
                        self.waits.append(command.due_at - self.now)
                    case Release():
                        self.released.add(command.attempt)
                    case Call() | Offer():
                        causes += self._answers(command)
                    case _:
                        pass
            if decision.more and not causes:
                causes.append(Continued())

    def _answers(self, command: Call | Offer) -> list[Cause]:
        at = (command.frame, command.attempt)
        parameters = command.parameters if isinstance(command, Call) else orjson.loads(command.input)
        self.calls.append(parameters)
        answer = self.worker(parameters)
        if answer is None:
            return [Taken(*at)]
        if isinstance(answer, Failed):
            return [Failed(*at, answer.error, answer.cause)]
        return [Succeeded(*at, answer)]

    def _pass_time(self) -> None:
        while self.timers and self.outcome is None:
            due_at, attempt, timer = heapq.heappop(self.timers)
            if attempt in self.released:
                continue
            self.now = max(self.now, due_at)
            self._follow(Fired(timer.frame, attempt, timer.purpose))

    # What tests look at

    @property
    def output(self) -> Any:
        assert self.outcome is not None
        assert self.outcome.status == "SUCCEEDED", self.outcome
        return orjson.loads(self.outcome.output or "null")

    @property
    def failure(self) -> tuple[str | None, str | None]:
        assert self.outcome is not None
        assert self.outcome.failure is not None, self.outcome
        return self.outcome.failure.error, self.outcome.failure.cause

    @property
    def types(self) -> list[str]:
        return [kind for kind, _, _ in self.entries]
