"""How an intrinsic function can go wrong: written badly, or called with what it does not take."""


class IntrinsicInvalid(ValueError):
    """The text is not a call of intrinsic functions; `text` and `reason` say which and why."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"{text}: {reason}")
        self.text = text
        self.reason = reason


class IntrinsicFailed(Exception):
    """A call that could not be answered; the message says why. AWS's error name is States.IntrinsicFailure."""
