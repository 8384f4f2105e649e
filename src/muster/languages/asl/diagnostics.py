"""What is wrong with a definition: findings with AWS's codes, locations and messages.

Does not know how they are found.
"""

from dataclasses import dataclass

SCHEMA = "SCHEMA_VALIDATION_FAILED"
TARGET = "MISSING_TRANSITION_TARGET"
END = "MISSING_END_STATE"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding; `location` is a JSON pointer into the definition, or None when there is no place to point to."""

    code: str
    message: str
    location: str | None = None
    severity: str = "ERROR"


class InvalidDefinition(Exception):
    """A definition that AWS would refuse to create; carries every finding."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        super().__init__("; ".join(found.message for found in diagnostics))
        self.diagnostics = diagnostics

    def sentence(self) -> str:
        """The findings in the form of AWS's InvalidDefinition message."""
        # Observed: a finding without a location is at null.
        found = ", ".join(f"{one.code}: {one.message} at {one.location or 'null'}" for one in self.diagnostics)
        return f"Invalid State Machine Definition: '{found}'"
