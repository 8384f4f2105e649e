"""What an expression can see: the document, the context object, variables, chance.

Keeps true: nothing in it changes while a state is evaluated, so all expressions of a state see the values at the
state's entry. The context object is built only when something asks for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.ids import Ids

NOTHING: Any = object()


@dataclass(slots=True)
class Environment:
    """The surroundings of one state's expressions.

    `document` is what `$` means in JSONPath at this point of the state's data flow; `states` holds `input`, `result`
    and `errorOutput` as JSONata's `$states` has them.
    """

    document: Any
    variables: Mapping[str, Any]
    chance: Ids
    make_context: Callable[[], dict[str, Any]]
    states: dict[str, Any]
    _context: dict[str, Any] | None = None

    def context(self) -> dict[str, Any]:
        """The context object (`$$`, `$states.context`)."""
        if self._context is None:
            self._context = self.make_context()
        return self._context

    def seeing(self, document: Any) -> "Environment":
        """The same surroundings with another document."""
        return Environment(document, self.variables, self.chance, self.context, self.states)

    def bindings(self) -> dict[str, Any]:
        """The variables of a JSONata expression."""
        return {**self.variables, "states": {**self.states, "context": self.context()}}
