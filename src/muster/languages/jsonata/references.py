"""What an expression reads: the variables it names, and names that stand on their own.

Keeps true: nothing is evaluated. Step Functions evaluates without a context item, so AWS refuses a definition in which
a bare name, `$` or `$$` is read outside of a path's later steps, predicates and the like (observed: "Reference to
'phone' at the top level is not supported.").
"""

from collections.abc import Callable, Iterator
from typing import Any

from jsonata import Parser

from muster.languages.jsonata.failures import UNSUPPORTED, ExpressionInvalid

_Symbol = Parser.Symbol
# Parts that see the same context item as the expression they belong to; all others are given one.
_SAME_CONTEXT = frozenset(
    ("expressions", "expression", "lhs", "rhs", "arguments", "procedure", "condition", "then", "_else", "body")
)
_PARTS = (*sorted(_SAME_CONTEXT), "stages", "predicate", "group", "lhs_object", "rhs_object", "terms", "rhs_terms")
_OWN_CONTEXT = ("pattern", "update", "delete", "expr", "index")


def survey(tree: Any, visit: Callable[[Any], None]) -> frozenset[str]:
    """The names of all variables read, functions included; every part of the tree is shown to `visit`.

    Raises ExpressionInvalid for a reference to no context.
    """
    variables: set[str] = set()
    waiting: list[tuple[Any, bool]] = [(tree, False)]
    seen: set[tuple[int, bool]] = set()
    while waiting:
        node, has_context = waiting.pop()
        if isinstance(node, list | tuple):
            waiting.extend((part, has_context) for part in node)
            continue
        if not isinstance(node, _Symbol) or (id(node), has_context) in seen:
            continue
        seen.add((id(node), has_context))
        kind = getattr(node, "type", None)
        if kind == "name" and not has_context:
            raise ExpressionInvalid(f"Reference to '{node.value}' at the top level is not supported.", UNSUPPORTED)
        if kind == "variable":
            if node.value == "$" or (node.value == "" and not has_context):
                raise ExpressionInvalid(f"Reference to '${node.value}' at the top level is not supported.", UNSUPPORTED)
            variables.add(str(node.value))
        visit(node)
        waiting.extend(_parts(node, kind, has_context))
    return frozenset(variables)


def _parts(node: Any, kind: str | None, has_context: bool) -> Iterator[tuple[Any, bool]]:
    if kind == "path":
        for place, step in enumerate(node.steps or ()):
            yield step, has_context or place > 0
        yield getattr(node, "group", None), True
        return
    for name in _PARTS:
        # An object on its own sees what its surroundings see; one that groups sees what it groups.
        same = name in _SAME_CONTEXT or (kind == "unary" and name == "lhs_object")
        given = kind in ("transform", "sort") or not same
        yield getattr(node, name, None), given or has_context
    for name in _OWN_CONTEXT:
        yield getattr(node, name, None), True
