"""AWS Lambda: functions, versions, aliases, and their invocations as rows."""

from muster.services.lambda_.operations import SERVICE

__all__ = ["SERVICE"]
