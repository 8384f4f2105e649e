"""What an expression can come to other than a value: unreadable, failed while evaluated, or nothing at all."""

INVALID = "INVALID_JSONATA_EXPRESSION"
UNSUPPORTED = "UNSUPPORTED_JSONATA_EXPRESSION"


class ExpressionInvalid(ValueError):
    """The text is not an expression that Step Functions takes; the message says why.

    `code` is that of AWS's diagnostic: INVALID_JSONATA_EXPRESSION or UNSUPPORTED_JSONATA_EXPRESSION.
    """

    def __init__(self, message: str, code: str = INVALID) -> None:
        super().__init__(message)
        self.code = code


class ExpressionFailed(Exception):
    """An evaluation that failed. The text is `T2001: The left side of …`, or a message alone where AWS gives no code.

    `ending` is what AWS puts after "threw an error during evaluation": ". T2001: …", or ": …" when there is no code.
    """

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(f"{code}: {message}" if code else message)
        self.code = code
        self.message = message

    @property
    def ending(self) -> str:
        return f". {self}" if self.code else f": {self}"


class Undefined:
    """The type of UNDEFINED."""

    def __repr__(self) -> str:
        return "UNDEFINED"

    def __bool__(self) -> bool:
        return False


UNDEFINED = Undefined()
