"""The Amazon States Language: a definition's text, compiled; an execution's state, stepped.

`parse` makes a Machine or says what is wrong; `beginning` is the state of a new execution; `step` decides what follows
from a cause. Nothing here does I/O.
"""

from muster.languages.asl.definition import Machine
from muster.languages.asl.diagnostics import Diagnostic, InvalidDefinition
from muster.languages.asl.failures import Failure
from muster.languages.asl.messages import Decision, Outcome
from muster.languages.asl.parsing import examine, examine_state, parse
from muster.languages.asl.run import World, beginning
from muster.languages.asl.stepping import BUDGET, inspect, step

__all__ = [
    "BUDGET",
    "Decision",
    "Diagnostic",
    "Failure",
    "InvalidDefinition",
    "Machine",
    "Outcome",
    "World",
    "beginning",
    "examine",
    "examine_state",
    "inspect",
    "parse",
    "step",
]
