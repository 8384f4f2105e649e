"""AWS Lambda: functions, versions, aliases, and their invocations as rows."""

from muster.services.lambda_.operations import SERVICE, service

__all__ = ["SERVICE", "service"]
