"""What is wrong with an expression, in AWS's words. Does not know which operation was asked for."""


class ExpressionError(ValueError):
    """An expression, a placeholder or a value that DynamoDB refuses; `message` as AWS words it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
