"""An expression's text as tokens, and the syntax error that points at one of them.

Does not know what the tokens mean; a character that belongs nowhere is a token of its own, for the parser to refuse.
"""

import re
from dataclasses import dataclass
from typing import NoReturn

from muster.languages.expressions.problem import ExpressionError

NAME, PLACEHOLDER, VALUE, INDEX, SIGN, END = "name", "placeholder", "value", "index", "sign", "end"

# "Expression size has exceeded the maximum allowed size": 4 KB ("Quotas", expression length).
TEXT_BYTES_MAX = 4096

_TOKEN = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<placeholder>#[A-Za-z0-9_]+)|(?P<value>:[A-Za-z0-9_]+)|(?P<index>[0-9]+)"
    r"|(?P<sign><>|<=|>=|[^\s])"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text, and where it begins and ends in it."""

    kind: str
    text: str
    start: int
    end: int


class Tokens:
    """The tokens of one expression, read from left to right."""

    def __init__(self, text: str) -> None:
        size = len(text.encode())
        if size > TEXT_BYTES_MAX:
            raise ExpressionError(f"Expression size has exceeded the maximum allowed size; expression size: {size}")
        self._text = text
        self._tokens = [
            Token(match.lastgroup or SIGN, match[0], match.start(), match.end()) for match in _TOKEN.finditer(text)
        ]
        if not self._tokens:
            raise ExpressionError("The expression can not be empty;")
        self._tokens.append(Token(END, "<EOF>", len(text), len(text)))
        self._at = 0

    @property
    def next(self) -> Token:
        """The token that comes next; it stays."""
        return self._tokens[self._at]

    @property
    def after_next(self) -> Token:
        """The token behind the next one."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def take(self) -> Token:
        """The next token, consumed."""
        token = self._tokens[self._at]
        if token.kind != END:
            self._at += 1
        return token

    def word(self) -> str:
        """The next token in upper case when it is a plain name, to be compared with a keyword; else nothing."""
        token = self.next
        return token.text.upper() if token.kind == NAME else ""

    def sees(self, sign: str) -> bool:
        """Whether the next token is this sign."""
        token = self.next
        return token.kind == SIGN and token.text == sign

    def skip(self, sign: str) -> bool:
        """Consume the sign if it comes next; whether it did."""
        if self.sees(sign):
            self._at += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        """Consume the sign, or refuse what stands in its place."""
        if not self.skip(sign):
            self.refuse()

    def refuse(self) -> NoReturn:
        """The syntax error at the next token; "near" shows it between its neighbours."""
        first = self._tokens[max(self._at - 1, 0)]
        last = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        near = self._text[first.start : last.end].strip()
        raise ExpressionError(f'Syntax error; token: "{self.next.text}", near: "{near}"')
