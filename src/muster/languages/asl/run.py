"""The working of one step: the frames of an execution, the history it writes, the commands it gives.

Keeps true: history ids have no gaps; a frame's events form a chain through `last`. Does not know what the types of
states do.

An execution's state is plain data: `{"next": id of the next event, "serial": last number given out, "frames": {number:
frame}, "ready": [frame numbers]}`. A frame is a place where the execution stands:

- `n` its number, `up` and `index` the frame it is a branch or iteration of, `scope` the states it moves among;
- `at` the state it is in, `input` that state's raw input, `last` the id of its latest event, `vars` its variables;
- `since` and `event`: when it entered the state and the id of that event; absent while it has yet to enter;
- `item` what `$$.Map.Item` shows in an iteration; `attempt`, `armed`, `token` what it waits for; `tries` the counters of
  its retriers; `fan` the book-keeping of a Parallel or Map state.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.ids import Ids
from muster.languages.asl import timestamps
from muster.languages.asl.definition import Machine, State
from muster.languages.asl.environment import Environment
from muster.languages.asl.failures import HISTORY_MAX
from muster.languages.asl.history import Entry
from muster.languages.asl.messages import Command, Outcome, Release

Frame = dict[str, Any]


@dataclass(frozen=True, slots=True)
class World:
    """Time, chance, and what the context object says of the execution; `context` has `Execution` and `StateMachine`."""

    now: float
    chance: Ids
    region: str
    account: str
    context: Mapping[str, Any]
    history_max: int = HISTORY_MAX
    override: Mapping[str, Any] | None = None  # what TestState says of the context object instead


class HistoryFull(Exception):
    """The last event an execution may have is its failure."""


def beginning(
    machine: Machine, document: Any, *, scope: int = 0, variables: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The state of an execution that has not made a step yet."""
    root: Frame = {
        "n": 0,
        "up": None,
        "scope": scope,
        "at": machine.scopes[scope].start_at,
        "input": document,
        "last": 0,
        "vars": dict(variables or {}),
    }
    return {"next": 1, "serial": 0, "frames": {"0": root}, "ready": [0]}


class Run:
    """One step in the making."""

    def __init__(self, machine: Machine, state: dict[str, Any], world: World) -> None:
        self.machine = machine
        self.world = world
        self.next: int = state["next"]
        self.first = self.next
        self.serial: int = state["serial"]
        self.frames: dict[str, Frame] = {number: dict(frame) for number, frame in state["frames"].items()}
        # In the order in which they came about: frames that can move (their numbers), and frames that ended, with their
        # output or their Failure.
        self.queue: deque[int | tuple[Frame, Any]] = deque(state["ready"])
        self.entries: list[Entry] = []
        self.commands: list[Command] = []
        self.outcome: Outcome | None = None
        self.transitions = 0
        self.trace: dict[str, Any] | None = None  # the stages of the data flow, when somebody wants to see them
        self.mock: Any = None  # what a Map or Parallel state answers without running: a boxed value or a Failure
        self.stopped: dict[str, Frame] | None = None  # the frames when a failure began its way outwards

    def state(self) -> dict[str, Any]:
        """The execution state as it now stands."""
        return {"next": self.next, "serial": self.serial, "frames": self.frames, "ready": self.ready()}

    def ready(self) -> list[int]:
        """The frames that can move."""
        return [number for number in self.queue if isinstance(number, int)]

    def keep(self) -> None:
        """Remember where the execution stands, in case it ends here and is redriven."""
        if self.stopped is None:
            self.stopped = {number: dict(frame) for number, frame in self.frames.items()}

    # History

    def record(self, frame: Frame, kind: str, details: dict[str, Any] | None = None, *, leaf: bool = False) -> int:
        """Write a history event after the frame's latest; a `leaf` is not followed by the next one."""
        number = self.next
        if number >= self.world.history_max:
            raise HistoryFull
        self.entries.append((kind, frame["last"], details or {}))
        self.next = number + 1
        if not leaf:
            frame["last"] = number
        return number

    # Frames

    def number(self) -> int:
        """A number that has not been used in this execution."""
        self.serial += 1
        return self.serial

    def frame(self, number: int, attempt: int) -> Frame | None:
        """The frame, if it still makes this attempt."""
        frame = self.frames.get(str(number))
        return frame if frame is not None and frame.get("attempt") == attempt else None

    def state_of(self, frame: Frame) -> State:
        """The state the frame is in."""
        return self.machine.scopes[frame["scope"]].states[frame["at"]]

    def branch(self, parent: Frame, scope: int, index: int, document: Any, last: int) -> Frame:
        """A new frame inside `parent`, about to enter its scope's first state."""
        number = self.number()
        frame: Frame = {
            "n": number,
            "up": parent["n"],
            "index": index,
            "scope": scope,
            "at": self.machine.scopes[scope].start_at,
            "input": document,
            "last": last,
            "vars": {},
        }
        self.frames[str(number)] = frame
        self.queue.append(number)
        return frame

    def children(self, parent: Frame) -> list[Frame]:
        """The frames directly inside `parent`."""
        return [frame for frame in self.frames.values() if frame["up"] == parent["n"]]

    def drop(self, frame: Frame) -> None:
        """Take a frame out, and everything in it; what it waits for is abandoned."""
        for child in self.children(frame) if "fan" in frame else ():
            self.drop(child)
        self.release(frame, abandoned=True)
        del self.frames[str(frame["n"])]
        if frame["n"] in self.queue:
            self.queue.remove(frame["n"])

    def release(self, frame: Frame, *, abandoned: bool = False) -> None:
        """The frame's attempt is over."""
        attempt = frame.pop("attempt", None)
        armed = frame.pop("armed", False)
        frame.pop("token", None)
        if attempt is not None and (armed or abandoned):
            self.commands.append(Release(frame["n"], attempt, abandoned))

    # What expressions see

    def variables(self, frame: Frame) -> Mapping[str, Any]:
        """The frame's variables and those of the scopes around it."""
        if frame["up"] is None:
            found: Mapping[str, Any] = frame["vars"]
            return found
        return {**self.variables(self.frames[str(frame["up"])]), **frame["vars"]}

    def environment(self, frame: Frame, document: Any, **states: Any) -> Environment:
        """The surroundings of the frame's expressions; `states` are members of `$states` besides `input`."""
        return Environment(
            document,
            self.variables(frame),
            self.world.chance,
            lambda: self.context(frame),
            {"input": frame["input"], **states},
        )

    def context(self, frame: Frame) -> dict[str, Any]:
        """The context object."""
        context: dict[str, Any] = dict(self.world.context)
        state: dict[str, Any] = {
            "Name": frame["at"],
            "EnteredTime": timestamps.text(frame.get("since", self.world.now)),
        }
        if self.state_of(frame).kind in ("Task", "Map", "Parallel"):
            state["RetryCount"] = sum(frame.get("tries", ()))
        context["State"] = state
        item = self.item(frame)
        if item is not None:
            context["Map"] = {"Item": item}
        if "token" in frame:
            context["Task"] = {"Token": frame["token"]}
        if self.world.override is not None:
            context.update(self.world.override)
        return context

    def item(self, frame: Frame) -> dict[str, Any] | None:
        """The Map item around the frame."""
        while True:
            if "item" in frame:
                item: dict[str, Any] = frame["item"]
                return item
            if frame["up"] is None:
                return None
            frame = self.frames[str(frame["up"])]
