"""CloudWatch Logs, as far as the logs of functions need it."""

from muster.services.logs.operations import SERVICE

__all__ = ["SERVICE"]
