"""Texts with `*` in them: the pieces between the wildcards, and whether they occur one after another.

Keeps true: matching takes one search per piece, so its time is bounded by the text times the number of pieces; the
leftmost place of a piece is never worse than a later one.
"""

from dataclasses import dataclass

from muster.languages.patterns.problem import InvalidPattern

# EventBridge refuses wildcards whose evaluation branches too much, and publishes no number. It is known to refuse
# "*:*:*:*:*:event-bus/*" and its matcher to take "a*a*a*a*a*a*"; the line is drawn between them: a pattern that may
# begin anywhere has less room for wildcards before the same character than one that begins at a fixed place.
_MOST_REPEATED_FLOATING = 4
_MOST_REPEATED = 8


@dataclass(frozen=True, slots=True)
class Wildcard:
    """A pattern cut at its wildcards; without any, `pieces` is the text alone."""

    pieces: tuple[str, ...]

    def fits(self, text: str) -> bool:
        """Whether the whole of `text` is of this form."""
        first, *middle = self.pieces
        if not middle:
            return text == first
        last = middle.pop()
        if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
            return False
        at, end = len(first), len(text) - len(last)
        for piece in middle:
            at = text.find(piece, at, end)
            if at < 0:
                return False
            at += len(piece)
        return True


def wildcard(text: str) -> Wildcard:
    """Read a wildcard pattern; `\\*` and `\\\\` stand for the character itself."""
    pieces: list[str] = []
    piece: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        if character == "\\":
            if text[at + 1 : at + 2] not in ("*", "\\") or at + 1 == len(text):
                raise InvalidPattern(f"Invalid escape character at pos {at + 1}")
            piece.append(text[at + 1])
            at += 1
        elif character == "*":
            if text[at + 1 : at + 2] == "*":
                raise InvalidPattern(f"Consecutive wildcard characters at pos {at + 1}")
            pieces.append("".join(piece))
            piece = []
        else:
            piece.append(character)
        at += 1
    pieces.append("".join(piece))
    follows = [piece[0] for piece in pieces[1:] if piece]
    most = _MOST_REPEATED if pieces[0] else _MOST_REPEATED_FLOATING
    if any(follows.count(character) > most for character in set(follows)):
        raise InvalidPattern(
            "Rule is too complex - try using fewer wildcard characters or fewer repeating character sequences "
            "after a wildcard character"
        )
    return Wildcard(tuple(pieces))
