"""AWS's recorded answers: every case passes, but for those named here with the reason."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from muster.clock import SimulatedClock
from muster.services.stepfunctions import SERVICE
from muster.testing import World
from tests.services.stepfunctions.recorded import Different, run_case

NOT_YET = {
    "list_secrets": "Muster has no Secrets Manager, and refuses the machine",
    "create_update_state_machine_same_parameters": "the case as written has lost its second role: both are the same",
}


def _short(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def test_every_recorded_case_is_answered_as_aws_answered_it(conformance: Path) -> None:
    cases: list[dict[str, Any]] = [
        orjson.loads(line) for line in (conformance / "states.jsonl").read_bytes().splitlines() if line
    ]
    differing: dict[str, str] = {}
    for case in cases:
        try:
            run_case(World([SERVICE], clock=SimulatedClock(1_735_000_000.0)), case)
        except Different as difference:
            differing[_short(case["case"])] = str(difference)
    unexpected = {name: why for name, why in differing.items() if name not in NOT_YET}
    assert not unexpected
    assert not NOT_YET.keys() - differing.keys() - _absent(cases), "these pass now: take them off the list"


def _absent(cases: list[dict[str, Any]]) -> set[str]:
    return NOT_YET.keys() - {_short(case["case"]) for case in cases}


@pytest.mark.parametrize("recorded", [{"a": 1}, [1, 2], "text", 1, True, None])
def test_comparison_is_strict(recorded: Any) -> None:
    from tests.services.stepfunctions.recorded import Comparison

    Comparison().same(recorded, recorded)
    with pytest.raises(Different):
        Comparison().same(recorded, {"a": 2})
