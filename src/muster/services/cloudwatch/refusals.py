"""The errors of metrics and alarms, by AWS's codes and texts."""

from muster.errors import ServiceError


def invalid_value(message: str) -> ServiceError:
    """A parameter's value that the API refuses."""
    return ServiceError("InvalidParameterValue", message, status=400)


def invalid_combination(message: str) -> ServiceError:
    """Parameters that do not go together."""
    return ServiceError("InvalidParameterCombination", message, status=400)


def missing(message: str) -> ServiceError:
    """A parameter that the request must contain."""
    return ServiceError("MissingParameter", message, status=400)


def validation(message: str) -> ServiceError:
    """What PutMetricAlarm refuses beyond the shape of its request."""
    return ServiceError("ValidationError", message, status=400)


def no_such_alarm(message: str = "") -> ServiceError:
    return ServiceError("ResourceNotFound", message, status=404)


def bad_token() -> ServiceError:
    return ServiceError("InvalidNextToken", "The next token is invalid.", status=400)
