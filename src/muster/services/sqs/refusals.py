"""The errors of queues, by AWS's codes and texts."""

from muster.errors import ServiceError


def invalid(message: str) -> ServiceError:
    """A parameter's value that the API refuses."""
    return ServiceError("InvalidParameterValue", message, status=400)


def invalid_value(value: object, parameter: str, reason: str) -> ServiceError:
    """The API's usual sentence about a value."""
    return invalid(f"Value {value} for parameter {parameter} is invalid. Reason: {reason}")


def missing(parameter: str) -> ServiceError:
    """A parameter that the request must contain."""
    return ServiceError("MissingParameter", f"The request must contain the parameter {parameter}.", status=400)


def no_such_queue() -> ServiceError:
    return ServiceError("QueueDoesNotExist", "The specified queue does not exist.", status=400)


def no_such_resource(parameter: str) -> ServiceError:
    return ServiceError(
        "ResourceNotFoundException", f"The resource that you specified for the {parameter} parameter doesn't exist."
    )


def bad_receipt(handle: str) -> ServiceError:
    return ServiceError("ReceiptHandleIsInvalid", f'The input receipt handle "{handle}" is not a valid receipt handle.')
