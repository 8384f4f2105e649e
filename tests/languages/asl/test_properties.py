"""Random machines: none crashes the stepper, all end or wait for something nameable, and replays are the same."""

from typing import Any

import orjson
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from muster.languages import asl
from muster.languages.asl.messages import Failed
from tests.languages.asl.driving import Driver

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "items"]), inner, max_size=3)
    ),
    max_leaves=8,
)
PATHS = st.sampled_from(
    ["$", "$.a", "$.b", "$.items", "$.a.b", "$.items[0]", "$$.State.Name", "$$.Execution.Input", "$v"]
)
ERRORS = st.sampled_from(["E1", "E2", "States.ALL", "States.TaskFailed", "States.Timeout"])
TASK = "arn:aws:lambda:us-east-1:000000000000:function:f"


@st.composite
def scopes(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """A set of states; names are made distinct afterwards."""
    names = [f"S{n}" for n in range(draw(st.integers(1, 4)))]
    return {"StartAt": names[0], "States": {name: draw(states(names, depth)) for name in names}}


@st.composite
def states(draw: st.DrawFn, names: list[str], depth: int) -> dict[str, Any]:
    target = st.sampled_from([*names, None])
    kinds = ["Pass", "Task", "Choice", "Wait", "Succeed", "Fail"] + (["Parallel", "Map"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    state: dict[str, Any] = {"Type": kind}
    if kind not in ("Choice", "Succeed", "Fail"):
        following = draw(target)
        state |= {"End": True} if following is None else {"Next": following}
    if kind in ("Pass", "Task", "Parallel", "Map") and draw(st.booleans()):
        state["ResultPath"] = draw(st.sampled_from(["$.a", "$.b.a", "$", None]))
    if kind in ("Pass", "Task", "Choice", "Wait", "Succeed", "Map") and draw(st.integers(0, 3)) == 0:
        state["InputPath"] = draw(PATHS)
    if kind in ("Pass", "Task") and draw(st.integers(0, 2)) == 0:
        state["Parameters"] = {"a.$": draw(PATHS), "b": draw(DOCUMENTS)}
    if kind in ("Pass", "Task") and draw(st.integers(0, 3)) == 0:
        state["Assign"] = {"v.$": draw(PATHS)}
    if kind in ("Task", "Parallel", "Map"):
        if draw(st.booleans()):
            state["Retry"] = [{"ErrorEquals": [draw(ERRORS)], "MaxAttempts": draw(st.integers(0, 2))}]
        if draw(st.booleans()):
            state["Catch"] = [
                {"ErrorEquals": [draw(ERRORS)], "Next": draw(st.sampled_from(names)), "ResultPath": "$.a"}
            ]
    match kind:
        case "Task":
            state["Resource"] = TASK
            if draw(st.booleans()):
                state["TimeoutSeconds"] = draw(st.integers(1, 9))
        case "Choice":
            rule = {"Variable": draw(PATHS), "IsPresent": draw(st.booleans()), "Next": draw(st.sampled_from(names))}
            state["Choices"] = [rule]
            if draw(st.booleans()):
                state["Default"] = draw(st.sampled_from(names))
        case "Wait":
            state["Seconds"] = draw(st.integers(0, 9))
        case "Fail":
            state["Error"] = draw(st.sampled_from(["E1", "E2"]))
        case "Parallel":
            state["Branches"] = draw(st.lists(scopes(depth=depth - 1), min_size=1, max_size=3))
        case "Map":
            state["ItemProcessor"] = draw(scopes(depth=depth - 1))
            state["ItemsPath"] = draw(PATHS)
            if draw(st.booleans()):
                state["MaxConcurrency"] = draw(st.integers(1, 2))
    return state


def distinct(scope: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The scope with its unreachable states taken out and every name used once in the whole machine."""
    reached: list[str] = []
    waiting = [scope["StartAt"]]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.append(name)
        state = scope["States"][name]
        waiting += [state[field] for field in ("Next", "Default") if field in state]
        waiting += [rule["Next"] for field in ("Choices", "Catch") for rule in state.get(field, ())]

    def renamed(state: dict[str, Any], name: str) -> dict[str, Any]:
        new = dict(state)
        for field in ("Next", "Default"):
            if field in new:
                new[field] = prefix + new[field]
        for field in ("Choices", "Catch"):
            if field in new:
                new[field] = [{**rule, "Next": prefix + rule["Next"]} for rule in new[field]]
        if "Branches" in new:
            new["Branches"] = [distinct(one, f"{prefix}{name}.{place}.") for place, one in enumerate(new["Branches"])]
        if "ItemProcessor" in new:
            new["ItemProcessor"] = distinct(new["ItemProcessor"], f"{prefix}{name}.")
        return new

    return {
        "StartAt": prefix + scope["StartAt"],
        "States": {prefix + name: renamed(scope["States"][name], name) for name in reached},
    }


class Mood:
    """A worker whose answers depend only on how often it was asked, and on a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.asked = 0

    def __call__(self, parameters: Any) -> Any:
        self.asked += 1
        match (self.seed * 31 + self.asked * 7) % 5:
            case 0:
                return Failed(0, 0, "E1", "no")
            case 1:
                return Failed(0, 0, "E2", None)
            case 2:
                return None
            case _:
                return {"a": self.asked}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(scope=scopes(), document=DOCUMENTS, seed=st.integers(0, 99))
def test_random_machine_ends_or_waits_and_replays_the_same(scope: dict[str, Any], document: Any, seed: int) -> None:
    definition = distinct(scope)
    assume(asl.examine(orjson.dumps(definition).decode())[0] is not None)  # some have no end, which AWS refuses

    def run() -> Driver:
        return Driver(definition, document, worker=Mood(seed), seed=seed, history_max=300)

    first, again = run(), run()
    assert orjson.dumps(first.entries) == orjson.dumps(again.entries)
    assert first.outcome == again.outcome
    for number, (kind, previous, _) in enumerate(first.entries, 1):
        assert 0 <= previous < number, (number, kind, previous)
    if first.outcome is None:
        waiting = [frame for frame in first.state["frames"].values() if "attempt" in frame]
        assert waiting, "an execution that has not ended waits for an answer"
        assert not first.state["ready"]
    else:
        assert first.types[-1] in ("ExecutionSucceeded", "ExecutionFailed")
        assert first.types.count("ExecutionSucceeded") + first.types.count("ExecutionFailed") == 1
        assert not first.state["ready"]
        if first.types[-1] == "ExecutionSucceeded":
            assert first.state["frames"] == {}
