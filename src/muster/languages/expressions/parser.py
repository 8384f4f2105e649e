"""Text to syntax: conditions, updates and projections, by recursive descent.

Keeps true: a syntax error is reported before any other, and of the other problems the one that AWS reports first.
What depends on the values given beside the expression is not decided here. Source of the grammar: the developer
guide, "Condition and filter expressions, operators, and functions" and "Using update expressions".
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from muster.languages.expressions.lexer import END, INDEX, NAME, PLACEHOLDER, VALUE, Tokens
from muster.languages.expressions.problem import ExpressionError
from muster.languages.expressions.reserved import is_reserved
from muster.languages.expressions.syntax import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Compare,
    In,
    Node,
    Not,
    Operand,
    Or,
    Path,
    Placeholder,
    Test,
    shown,
)

COMPARATORS = frozenset({"=", "<>", "<", "<=", ">", ">="})
CONDITION_WORDS = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN"})
UPDATE_WORDS = frozenset({"SET", "REMOVE", "ADD", "DELETE"})

CONDITION_FUNCTIONS = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
    "size": 1,
}
UPDATE_FUNCTIONS = {"if_not_exists": 2, "list_append": 2}

# "Operators and functions": an IN list has at most 100 values; an expression has at most 300 operators.
CHOICES_MAX = 100
OPERATORS_MAX = 300

# No limit of AWS's is known; this one keeps the reader's own stack shallow.
DEPTH_MAX = 60

# The order in which AWS reports what is wrong with an expression that can be parsed.
PARENTHESES, UNKNOWN_FUNCTION, MISUSED_FUNCTION, RESERVED, SECTION, UNDEFINED, COUNT, PATHS, DISTINCT, FUNCTION = range(
    10
)


@dataclass(slots=True)
class Problems:
    """What was found wrong so far; of each rank the first."""

    found: dict[int, str] = field(default_factory=dict)

    def note(self, rank: int, message: str) -> None:
        self.found.setdefault(rank, message)

    def settle(self) -> None:
        """ExpressionError with the problem of the lowest rank, if there is any."""
        if self.found:
            raise ExpressionError(self.found[min(self.found)])


class Reader:
    """What all expressions share: paths and values. Records the placeholders it meets."""

    words: frozenset[str] = frozenset()

    def __init__(self, text: str, names: Mapping[str, str]) -> None:
        self.tokens = Tokens(text)
        self.problems = Problems()
        self.used_names: set[str] = set()
        self.used_values: set[str] = set()
        self.operators = 0
        self.depth = 0
        self._names = names

    def path(self) -> Path:
        parts: list[str | int] = [self._name()]
        while True:
            if self.tokens.skip("."):
                parts.append(self._name())
            elif self.tokens.skip("["):
                if self.tokens.next.kind != INDEX:
                    self.tokens.refuse()
                parts.append(int(self.tokens.take().text))
                self.tokens.expect("]")
            else:
                return tuple(parts)

    def _name(self) -> str:
        token = self.tokens.next
        if token.kind == PLACEHOLDER:
            self.tokens.take()
            self.used_names.add(token.text)
            if token.text not in self._names:
                self.problems.note(
                    UNDEFINED,
                    "An expression attribute name used in the document path is not defined; "
                    f"attribute name: {token.text}",
                )
                return token.text
            return self._names[token.text]
        if token.kind != NAME or token.text.upper() in self.words:
            self.tokens.refuse()
        self.tokens.take()
        if is_reserved(token.text):
            self.problems.note(RESERVED, f"Attribute name is a reserved keyword; reserved keyword: {token.text}")
        return token.text

    def value(self) -> Placeholder:
        if self.tokens.next.kind != VALUE:
            self.tokens.refuse()
        name = self.tokens.take().text
        self.used_values.add(name)
        return Placeholder(name)

    def count_operator(self) -> None:
        self.operators += 1

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """One level further in; ExpressionError when that is too deep."""
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise ExpressionError(f"The expression is nested too deeply; maximum depth: {DEPTH_MAX}")
        yield
        self.depth -= 1

    def end(self) -> None:
        """Refuse whatever is left over, then whatever was noted."""
        if self.tokens.next.kind != END:
            self.tokens.refuse()
        self.problems.settle()
        if self.operators > OPERATORS_MAX:
            raise ExpressionError(f"The expression contains too many operators; operator count: {self.operators}")

    def note_count(self, function: str, count: int) -> None:
        self.problems.note(
            COUNT,
            "Incorrect number of operands for operator or function; "
            f"operator or function: {function}, number of operands: {count}",
        )

    def note_path_needed(self, function: str) -> None:
        self.problems.note(FUNCTION, f"Operator or function requires a document path; operator or function: {function}")


class ConditionReader(Reader):
    """Conditions, filters and key conditions."""

    words = CONDITION_WORDS

    # What the parenthesis that was closed last enclosed.
    _enclosed: Node | None = None

    def condition(self) -> Test:
        """The whole text as a condition."""
        test = self._test(self._or())
        self.end()
        return test

    # An opening parenthesis may begin a condition or an operand, so an operand may come out of each of these; `_test`
    # refuses it where a condition has to stand.
    def _or(self) -> Node:
        left = self._and()
        while self.tokens.word() == "OR":
            first = self._test(left)
            self.tokens.take()
            self.count_operator()
            left = Or(first, self._test(self._and()))
        return left

    def _and(self) -> Node:
        left = self._not()
        while self.tokens.word() == "AND":
            first = self._test(left)
            self.tokens.take()
            self.count_operator()
            left = And(first, self._test(self._not()))
        return left

    def _not(self) -> Node:
        if self.tokens.word() == "NOT":
            self.tokens.take()
            self.count_operator()
            with self.deeper():
                return Not(self._test(self._not()))
        return self._comparison()

    def _test(self, node: Node) -> Test:
        if isinstance(node, Attribute | Placeholder | Arithmetic):
            self.tokens.refuse()
        if isinstance(node, Call) and node.function == "size":
            self._note_misused(node)
        return node

    def _comparison(self) -> Node:
        left = self._primary()
        if not isinstance(left, Attribute | Placeholder | Call):
            return left
        token, word = self.tokens.next, self.tokens.word()
        if token.text in COMPARATORS:
            self.tokens.take()
            self.count_operator()
            right = self._operand()
            if left == right and isinstance(left, Attribute):
                self._note_same(token.text, left)
            return Compare(token.text, self._usable(left), self._usable(right))
        if word == "BETWEEN":
            self.tokens.take()
            self.count_operator()
            low = self._operand()
            if self.tokens.word() != "AND":
                self.tokens.refuse()
            self.tokens.take()
            return Between(self._usable(left), self._usable(low), self._usable(self._operand()))
        if word == "IN":
            self.tokens.take()
            self.count_operator()
            choices = tuple(self._usable(choice) for choice in self._operands())
            if len(choices) > CHOICES_MAX:
                self.note_count("IN", len(choices))
            return In(self._usable(left), choices)
        return left

    def _primary(self) -> Node:
        if not self.tokens.skip("("):
            return self._bare_operand()
        with self.deeper():
            inner = self._or()
        if inner is self._enclosed:
            self.problems.note(PARENTHESES, "The expression has redundant parentheses;")
        self.tokens.expect(")")
        self._enclosed = inner
        return inner

    def _bare_operand(self) -> Operand:
        token = self.tokens.next
        if token.kind == VALUE:
            return self.value()
        following = self.tokens.after_next
        if token.kind == NAME and following.text == "(" and token.text.upper() not in self.words:
            self.tokens.take()
            self.count_operator()
            call = Call(token.text, self._operands())
            self.check_call(call)
            return call
        return Attribute(self.path())

    def _operand(self) -> Operand:
        if not self.tokens.skip("("):
            return self._bare_operand()
        if self.tokens.sees("("):
            self.problems.note(PARENTHESES, "The expression has redundant parentheses;")
        with self.deeper():
            inner = self._operand()
        self.tokens.expect(")")
        return inner

    def _operands(self) -> tuple[Operand, ...]:
        self.tokens.expect("(")
        with self.deeper():
            operands = [self._operand()]
            while self.tokens.skip(","):
                operands.append(self._operand())
        self.tokens.expect(")")
        return tuple(operands)

    def _usable(self, operand: Operand) -> Operand:
        if isinstance(operand, Call) and operand.function != "size":
            self._note_misused(operand)
        return operand

    def _note_misused(self, call: Call) -> None:
        if call.function in CONDITION_FUNCTIONS:
            self.problems.note(
                MISUSED_FUNCTION,
                f"The function is not allowed to be used this way in an expression; function: {call.function}",
            )

    def _note_same(self, operator: str, operand: Attribute) -> None:
        self.problems.note(
            DISTINCT,
            "The first operand must be distinct from the remaining operands for this operator or function; "
            f"operator: {operator}, first operand: {shown(operand.path)}",
        )

    def check_call(self, call: Call) -> None:
        """Note what is wrong with a call by its looks alone."""
        function, operands = call.function, call.operands
        for operand in operands:
            self._usable(operand)
        wanted = CONDITION_FUNCTIONS.get(function)
        if wanted is None:
            known = "The function is not allowed in a condition expression" if function in UPDATE_FUNCTIONS else None
            self.problems.note(UNKNOWN_FUNCTION, f"{known or 'Invalid function name'}; function: {function}")
        elif len(operands) != wanted:
            self.note_count(function, len(operands))
        elif function in ("attribute_exists", "attribute_not_exists") and not isinstance(operands[0], Attribute):
            self.note_path_needed(function)
        elif wanted == 2 and operands[0] == operands[1] and isinstance(operands[0], Attribute):
            self._note_same(function, operands[0])


@dataclass(frozen=True, slots=True)
class Action:
    """One thing an update does: `SET path = operand`, `REMOVE path`, `ADD path value`, `DELETE path value`."""

    verb: str
    path: Path
    operand: Operand | None


class UpdateReader(Reader):
    """Updates: sections of actions."""

    words = UPDATE_WORDS

    def update(self) -> tuple[Action, ...]:
        """The whole text as an update."""
        actions: list[Action] = []
        seen: set[str] = set()
        while True:
            verb = self.tokens.word()
            if verb not in UPDATE_WORDS:
                self.tokens.refuse()
            self.tokens.take()
            if verb in seen:
                self.problems.note(SECTION, f'The "{verb}" section can only be used once in an update expression;')
            seen.add(verb)
            actions.append(self._action(verb))
            while self.tokens.skip(","):
                actions.append(self._action(verb))
            if self.tokens.next.kind == END:
                break
        note_overlaps([action.path for action in actions], self.problems)
        self.end()
        return tuple(actions)

    def _action(self, verb: str) -> Action:
        path = self.path()
        self.count_operator()
        if verb == "REMOVE":
            return Action(verb, path, None)
        if verb == "SET":
            self.tokens.expect("=")
            return Action(verb, path, self._assigned())
        return Action(verb, path, self.value())

    def _assigned(self) -> Operand:
        left = self._operand()
        if self.tokens.sees("+") or self.tokens.sees("-"):
            sign = self.tokens.take().text
            self.count_operator()
            return Arithmetic(sign, left, self._operand())
        return left

    def _operand(self) -> Operand:
        if self.tokens.skip("("):
            with self.deeper():
                inner = self._assigned()
            self.tokens.expect(")")
            return inner
        token = self.tokens.next
        if token.kind == VALUE:
            return self.value()
        if token.kind == NAME and self.tokens.after_next.text == "(" and token.text.upper() not in self.words:
            return self._call()
        return Attribute(self.path())

    def _call(self) -> Call:
        function = self.tokens.take().text
        self.count_operator()
        self.tokens.expect("(")
        with self.deeper():
            operands = [self._operand()]
            while self.tokens.skip(","):
                operands.append(self._operand())
        self.tokens.expect(")")
        wanted = UPDATE_FUNCTIONS.get(function)
        if wanted is None:
            known = "The function is not allowed in an update expression" if function in CONDITION_FUNCTIONS else None
            self.problems.note(UNKNOWN_FUNCTION, f"{known or 'Invalid function name'}; function: {function}")
        elif len(operands) != wanted:
            self.note_count(function, len(operands))
        elif function == "if_not_exists" and not isinstance(operands[0], Attribute):
            self.note_path_needed(function)
        return Call(function, tuple(operands))


class ProjectionReader(Reader):
    """Projections: paths with commas between them."""

    def projection(self) -> tuple[Path, ...]:
        """The whole text as a projection."""
        paths = [self.path()]
        while self.tokens.skip(","):
            paths.append(self.path())
        note_overlaps(paths, self.problems)
        self.end()
        return tuple(paths)


def note_overlaps(paths: list[Path], problems: Problems) -> None:
    """Note two paths of which one lies inside the other, or that take one value for a map and for a list."""
    for number, second in enumerate(paths):
        for first in paths[:number]:
            note_overlap(first, second, problems)


def note_overlap(first: Path, second: Path, problems: Problems) -> None:
    """Note it when the two paths cannot stand beside each other."""
    how = "overlap"
    for one, other in zip(first, second, strict=False):
        if type(one) is not type(other):
            how = "conflict"
            break
        if one != other:
            return
    problems.note(
        PATHS,
        f"Two document paths {how} with each other; must remove or rewrite one of these paths; "
        f"path one: {shown(first)}, path two: {shown(second)}",
    )
