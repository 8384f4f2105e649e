"""The errors of EventBridge, by AWS's codes and texts."""

from muster.errors import ServiceError


def invalid(message: str) -> ServiceError:
    """A value or combination that the API refuses."""
    return ServiceError("ValidationException", message, status=400)


def invalid_parameter(name: str, reason: str | None = None) -> ServiceError:
    """The API's usual sentence about a parameter."""
    return invalid(f"Parameter {name} is not valid." + (f" Reason: {reason}" if reason else ""))


def not_found(what: str) -> ServiceError:
    """`what` is of the form "Event bus x" or "Rule x"."""
    return ServiceError("ResourceNotFoundException", f"{what} does not exist.", status=400)


def already_exists(what: str) -> ServiceError:
    return ServiceError("ResourceAlreadyExistsException", f"{what} already exists.", status=400)


def too_many() -> ServiceError:
    return ServiceError(
        "LimitExceededException", "The requested resource exceeds the maximum number allowed.", status=400
    )
