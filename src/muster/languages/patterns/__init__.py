"""EventBridge's event patterns: `Pattern(text).matches(event)`, and `Index` for many patterns at once."""

from muster.languages.patterns.index import Index
from muster.languages.patterns.match import Pattern
from muster.languages.patterns.problem import InvalidPattern

__all__ = ["Index", "InvalidPattern", "Pattern"]
