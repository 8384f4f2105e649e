"""Why a text is no event pattern, in the words that EventBridge answers with."""


class InvalidPattern(Exception):
    """A text that is no event pattern. `str(problem)` is the message of AWS's InvalidEventPatternException."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Event pattern is not valid. Reason: {reason}")
        self.reason = reason
