"""A definition's text becomes a Machine, or a list of everything that is wrong with it.

Keeps true: a definition without findings is compiled completely, so that nothing about its form can fail later. Does not
know whether the resources it names exist.

Findings are worded after the answers recorded from ValidateStateMachineDefinition and CreateStateMachine.
"""

import re
from typing import Any

import orjson

from muster.languages.asl.definition import Machine, Scope, State
from muster.languages.asl.diagnostics import END, SCHEMA, TARGET, Diagnostic, InvalidDefinition
from muster.languages.asl.fields import BRANCH, JSONATA, JSONPATH, MACHINE, PROCESSOR, REQUIRED_OF_SCOPE, SHARED, TYPES
from muster.languages.asl.states import StateCompiler

DEFINITION_BYTES_MAX = 1_048_576
NAME_MAX = 80

_VARIABLE = re.compile(r"(?<![$\w])\$([A-Za-z_][A-Za-z0-9_]*)\b(?!\s*\()")


def parse(text: str, *, express: bool = False) -> Machine:
    """The machine that `text` defines; InvalidDefinition with every finding when AWS would refuse it."""
    machine, found = examine(text, express=express)
    if machine is None:
        raise InvalidDefinition(found)
    return machine


def examine(text: str, *, express: bool = False) -> tuple[Machine | None, list[Diagnostic]]:
    """What ValidateStateMachineDefinition asks: the findings, and the machine when there is none."""
    document, finding = _document(text)
    if finding is not None:
        return None, [finding]
    parser = _Parser(express)
    try:
        timeout = parser.machine(document)
    except RecursionError:
        return None, [Diagnostic(SCHEMA, "Definition is nested too deeply")]
    if parser.found:
        return None, parser.found
    return Machine(tuple(parser.scopes), timeout, parser.references), []


def examine_state(
    text: str, name: str = "StateName", *, express: bool = False
) -> tuple[Machine | None, list[Diagnostic]]:
    """A single state as TestState takes it: in a machine of its own, whose targets need not exist."""
    document, finding = _document(text)
    if finding is not None:
        return None, [finding]
    parser = _Parser(express, alone=True)
    parser.machine({"StartAt": name, "States": {name: document}})
    if parser.found:
        return None, parser.found
    return Machine(tuple(parser.scopes), None, parser.references), []


def _document(text: str) -> tuple[Any, Diagnostic | None]:
    nonsense = Diagnostic(SCHEMA, "Definition must be a valid JSON object")
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        word = re.match(r"\s*([A-Za-z_][\w]*)", text)
        if word is None or word[1] in ("true", "false", "null"):
            return None, nonsense
        place = f'[Source: (String)"{text}"; line: 1, column: {word.end() + 1}]'
        return None, Diagnostic(
            "INVALID_JSON_DESCRIPTION",
            f"Unrecognized token '{word[1]}': was expecting (JSON String, Number, Array, Object or token 'null', "
            f"'true' or 'false')\n at {place}",
            place,
        )
    return (document, None) if isinstance(document, dict) else (None, nonsense)


class _Parser:
    def __init__(self, express: bool, *, alone: bool = False) -> None:
        self.express = express
        self.alone = alone  # a state by itself: its targets are elsewhere
        self.found: list[Diagnostic] = []
        self.scopes: list[Scope] = []
        self.references: dict[str, list[str]] = {}
        self.names: set[str] = set()

    def say(self, location: str, message: str, code: str = SCHEMA) -> None:
        self.found.append(Diagnostic(code, message, location))

    def machine(self, document: dict[str, Any]) -> float | None:
        self.scope(document, "", MACHINE, jsonata=None)
        timeout = document.get("TimeoutSeconds")
        if timeout is None:
            return None
        if isinstance(timeout, bool) or not isinstance(timeout, int) or timeout < 1:
            self.say("/TimeoutSeconds", "Value is not an integer greater than zero")
            return None
        return float(timeout)

    def scope(self, document: Any, location: str, known: frozenset[str], jsonata: bool | None) -> int:
        """Parse a machine, branch or processor; its number. `jsonata` is the language around it, None at the top."""
        number = len(self.scopes)
        self.scopes.append(Scope("", {}))
        if not isinstance(document, dict):
            self.say(location or "/", "Value is not an object")
            return number
        self.refuse_unknown(document, known, location)
        language = self.language(document, location, jsonata)
        missing = [name for name in REQUIRED_OF_SCOPE if name not in document]
        if missing:
            self.say(location or "/", f"These fields are required: [{', '.join(missing)}]")
            return number
        start, states = document["StartAt"], document["States"]
        if not isinstance(states, dict):
            self.say(f"{location}/States", "Value is not an object")
            return number
        if not states:
            self.say(f"{location}/States", "Value cannot be empty")
            return number
        if not isinstance(start, str) or start not in states:
            self.say(f"{location}/StartAt", f"Missing 'Next' target: {start}", TARGET)
        compiled: dict[str, State] = {}
        for name, body in states.items():
            state = self.state(name, body, f"{location}/States/{name}", language)
            if state is not None:
                compiled[name] = state
        if not self.alone and len(compiled) == len(states):
            self.graph(str(start), compiled, location)
        self.scopes[number] = Scope(str(start), compiled)
        return number

    def language(self, document: dict[str, Any], location: str, around: bool | None) -> bool:
        chosen = document.get("QueryLanguage")
        if chosen is None:
            return bool(around)
        if chosen not in ("JSONPath", "JSONata"):
            self.say(
                f"{location}/QueryLanguage",
                "The field 'QueryLanguage' should have one of these values: [JSONPath, JSONata]",
            )
            return bool(around)
        return bool(chosen == "JSONata")

    def refuse_unknown(self, document: dict[str, Any], known: frozenset[str], location: str) -> None:
        for name in document:
            if name not in known:
                self.say(location or "/", f"Field '{name}' is not supported")

    def state(self, name: str, body: Any, location: str, machine_is_jsonata: bool) -> State | None:
        if not 1 <= len(name) <= NAME_MAX:
            self.say(location, f"State name '{name}' must be between 1 and {NAME_MAX} characters long")
        if name in self.names:
            self.say(location, f"Duplicate State name: {name}", "DUPLICATE_STATE_NAME")
        self.names.add(name)
        if not isinstance(body, dict):
            self.say(location, "Value is not an object")
            return None
        kind = body.get("Type")
        if kind is None:
            self.say(location, "These fields are required: [Type]")
            return None
        if kind not in TYPES:
            self.say(f"{location}/Type", f"The field 'Type' should have one of these values: [{', '.join(TYPES)}]")
            return None
        jsonata = self.language(body, location, machine_is_jsonata)
        if machine_is_jsonata and not jsonata:
            self.say(location, "'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine")
            return None
        own, other = (JSONATA, JSONPATH) if jsonata else (JSONPATH, JSONATA)
        for field in body:
            if field in SHARED[kind] or field in own[kind]:
                continue
            if field in other[kind]:
                here, there = ("JSONata", "JSONPath") if jsonata else ("JSONPath", "JSONata")
                self.say(
                    location,
                    f"The QueryLanguage is set to '{here}', but field '{field}' is only supported for the '{there}' "
                    "QueryLanguage",
                )
            else:
                self.say(location, f"Field '{field}' is not supported")
        self.remember_references(name, body, jsonata)
        before = len(self.found)
        compiler = StateCompiler(self, name, body, location, jsonata, machine_is_jsonata)
        state = compiler.compile()
        return state if len(self.found) == before else None

    def branch(self, document: Any, location: str, jsonata: bool) -> int:
        """A branch of a Parallel state."""
        return self.scope(document, location, BRANCH, jsonata)

    def processor(self, document: Any, location: str, jsonata: bool) -> int:
        """The processor of a Map state."""
        return self.scope(document, location, PROCESSOR, jsonata)

    def graph(self, start: str, states: dict[str, State], location: str) -> None:
        """Every target exists, some state is an end, and every state can be come to; in AWS's order."""
        for name, state in states.items():
            for field, target in targets(state):
                if target not in states:
                    self.say(f"{location}/States/{name}/{field}", f"Missing 'Next' target: {target}", TARGET)
        if not any(is_end(state) for state in states.values()):
            self.found.append(Diagnostic(END, "Workflow has no terminal state"))
            return
        if start not in states:
            return
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name not in seen and name in states:
                seen.add(name)
                waiting += [target for _, target in targets(states[name])]
        for name in states:
            if name not in seen:
                self.say(f"{location}/States/{name}", f'State "{name}" is not reachable.', TARGET)

    def remember_references(self, name: str, body: dict[str, Any], jsonata: bool) -> None:
        """Which variables a state's expressions name (`variableReferences` of DescribeStateMachine)."""
        names: set[str] = set()

        def look(value: Any, key: str = "") -> None:
            if isinstance(value, dict):
                for inner_key, inner in value.items():
                    if inner_key not in ("ItemProcessor", "Iterator", "Branches"):
                        look(inner, inner_key)
            elif isinstance(value, list):
                for inner in value:
                    look(inner, key)
            elif isinstance(value, str) and (
                value.startswith("{%") if jsonata else key.endswith((".$", "Path")) or key == "Variable"
            ):
                names.update(_VARIABLE.findall(value))

        look(body)
        if jsonata:
            names.discard("states")
        if names:
            self.references[name] = sorted(names)


def targets(state: State) -> list[tuple[str, str]]:
    """Where a state may lead: the field that says so, and the name."""
    found = [("Next", state.next)] if state.next is not None else []
    found += [(f"Choices[{place}]/Next", rule.next) for place, rule in enumerate(getattr(state, "rules", ()))]
    if getattr(state, "default", None) is not None:
        found.append(("Default", state.default))  # type: ignore[attr-defined]
    found += [(f"Catch[{place}]/Next", catcher.next) for place, catcher in enumerate(getattr(state, "catchers", ()))]
    return found


def is_end(state: State) -> bool:
    """Whether an execution may end in this state."""
    return state.kind in ("Succeed", "Fail") or (state.kind != "Choice" and state.next is None)
