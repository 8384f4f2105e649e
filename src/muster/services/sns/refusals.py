"""The errors of topics, by AWS's codes and texts."""

from muster.errors import ServiceError


def invalid(what: str) -> ServiceError:
    """A parameter that the API refuses; its texts begin alike."""
    return ServiceError("InvalidParameter", f"Invalid parameter: {what}", status=400)


def invalid_attribute_value(message: str) -> ServiceError:
    """A message attribute that the API refuses."""
    return ServiceError("ParameterValueInvalid", message, status=400)


def no_such_topic() -> ServiceError:
    return ServiceError("NotFound", "Topic does not exist", status=404)


def no_such_subscription() -> ServiceError:
    return ServiceError("NotFound", "Subscription does not exist", status=404)


def no_such_resource() -> ServiceError:
    return ServiceError("ResourceNotFound", "Resource does not exist", status=404)
