"""Test cases of state machines: executions whose tasks are answered by a file instead of by services.

Keeps true: what a case answers is written down when the execution starts, and an answer is counted in the commit that
uses it, so that a restart, a retry or an edited file changes nothing. A mocked task asks nobody. Does not check that an
answer is one the service could have given.

Source: "Using mocked service integrations for testing in Step Functions Local" and its page on the file.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from muster.errors import MusterError, ServiceError
from muster.languages.asl.messages import Call, Cause, Failed, Offer, Succeeded, Unusable
from muster.transaction import Transaction

_TURNS = re.compile(r"(\d+)(?:-(\d+))?\Z")

Responses = Mapping[str, Any]  # state -> [[first turn, last turn, response]]


@dataclass(frozen=True, slots=True)
class Cases:
    """The file: per machine and test case, the mocked responses of its states."""

    machines: Mapping[str, Mapping[str, Responses]]

    def of(self, machine: str, case: str) -> Responses:
        """What the states of a test case answer; ValidationException when there is no such case."""
        found = self.machines.get(machine, {}).get(case)
        if found is None:
            raise ServiceError(
                "ValidationException",
                f"There is no test case '{case}' of the state machine '{machine}' in the mock configuration",
            )
        return found


def parse(text: str) -> Cases:
    """Read a mock configuration; MusterError says what is wrong with it."""
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as why:
        raise MusterError(f"The mock configuration is not JSON: {why}.") from why
    responses = {
        name: _turns(name, _object(turns, f"MockedResponses.{name}"))
        for name, turns in _member(document, "MockedResponses").items()
    }
    machines: dict[str, dict[str, Responses]] = {}
    for machine, about in _member(document, "StateMachines").items():
        cases = _object(_object(about, f"StateMachines.{machine}").get("TestCases"), f"TestCases of {machine}")
        machines[machine] = {
            case: {state: _named(responses, name, f"{machine}#{case}") for state, name in _object(states, case).items()}
            for case, states in cases.items()
        }
    return Cases(machines)


def _member(document: Any, name: str) -> dict[str, Any]:
    return _object(_object(document, "The file").get(name), name)


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MusterError(f"{what} in the mock configuration has to be an object.")
    return value


def _named(responses: Mapping[str, Any], name: Any, where: str) -> Any:
    if not isinstance(name, str) or name not in responses:
        raise MusterError(f"{where} names the mocked response {name!r}, which the mock configuration does not have.")
    return responses[name]


def _turns(name: str, turns: Mapping[str, Any]) -> list[Any]:
    """Which attempts are answered how: "0" is the first, "1-2" the second and the third."""
    found = []
    for text, response in turns.items():
        range_ = _TURNS.match(text)
        if range_ is None:
            raise MusterError(f'MockedResponses.{name}: "{text}" is neither a number nor a range such as "1-2".')
        if not isinstance(response, dict) or len(response) != 1 or not response.keys() <= {"Return", "Throw"}:
            raise MusterError(f"MockedResponses.{name}.{text} has to hold either Return or Throw.")
        if "Throw" in response:
            thrown = _object(response["Throw"], f"MockedResponses.{name}.{text}.Throw")
            if not isinstance(thrown.get("Error"), str):
                raise MusterError(f"MockedResponses.{name}.{text}.Throw needs an Error.")
        found.append([int(range_[1]), int(range_[2] or range_[1]), response])
    return found


def keep(tx: Transaction, execution_arn: str, responses: Responses) -> None:
    """Let the execution be answered so."""
    for state, turns in responses.items():
        tx.run(
            "INSERT INTO states_mocks (execution_arn, state, turns, used) VALUES (:arn, :state, :turns, 0)",
            arn=execution_arn,
            state=state,
            turns=orjson.dumps(turns).decode(),
        )


def answer(tx: Transaction, execution_arn: str, state: str, asked: Call | Offer) -> Cause | None:
    """The mocked answer to this attempt; None when the state is not mocked."""
    row = tx.one(
        "SELECT turns, used FROM states_mocks WHERE execution_arn = :arn AND state = :state",
        arn=execution_arn,
        state=state,
    )
    if row is None:
        return None
    tx.run(
        "UPDATE states_mocks SET used = used + 1 WHERE execution_arn = :arn AND state = :state",
        arn=execution_arn,
        state=state,
    )
    turn = row["used"]
    for first, last, response in orjson.loads(row["turns"]):
        if first <= turn <= last:
            if "Return" in response:
                return Succeeded(asked.frame, asked.attempt, response["Return"])
            thrown = response["Throw"]
            return Failed(asked.frame, asked.attempt, thrown["Error"], thrown.get("Cause"))
    return Unusable(asked.frame, asked.attempt, f"The mocked response of '{state}' says nothing of invocation {turn}.")
