"""The parts an expression is made of, with its name placeholders resolved.

A path is a tuple of attribute names and list indexes. Does not know how they are evaluated.
"""

from collections.abc import Iterator
from dataclasses import dataclass

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """A document path."""

    path: Path


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A value given beside the expression, by its name with the colon."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function and its operands."""

    function: str
    operands: tuple["Operand", ...]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A sum or a difference (update expressions only)."""

    sign: str
    left: "Operand"
    right: "Operand"


Operand = Attribute | Placeholder | Call | Arithmetic


@dataclass(frozen=True, slots=True)
class Compare:
    """`left sign right`."""

    sign: str
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Between:
    """`operand BETWEEN low AND high`."""

    operand: Operand
    low: Operand
    high: Operand


@dataclass(frozen=True, slots=True)
class In:
    """`operand IN (choices)`."""

    operand: Operand
    choices: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class And:
    """Both."""

    left: "Test"
    right: "Test"


@dataclass(frozen=True, slots=True)
class Or:
    """Either."""

    left: "Test"
    right: "Test"


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    test: "Test"


Test = Compare | Between | In | And | Or | Not | Call
Node = Test | Operand


def children(node: Node) -> tuple[Node, ...]:
    """The parts directly inside `node`, from left to right."""
    match node:
        case Call(operands=operands):
            return operands
        case Arithmetic(left=a, right=b) | Compare(left=a, right=b):
            return (a, b)
        case And(left=x, right=y) | Or(left=x, right=y):
            return (x, y)
        case Between(operand=operand, low=low, high=high):
            return (operand, low, high)
        case In(operand=operand, choices=choices):
            return (operand, *choices)
        case Not(test=test):
            return (test,)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything inside it, parts before the whole, from left to right."""
    for child in children(node):
        yield from walk(child)
    yield node


def shown(path: Path) -> str:
    """A path as AWS's messages write it: `[a, [0], b]`."""
    return "[" + ", ".join(f"[{part}]" if isinstance(part, int) else part for part in path) + "]"
