"""How long SNS waits before it tries a delivery again, by its phases.

Source: the SNS developer guide, "Message delivery retries": endpoints that AWS runs get three retries at once, two a
second apart, ten with growing delays from one to twenty seconds and 100,000 twenty seconds apart; HTTP(S) endpoints
get what their delivery policy says, three retries twenty seconds apart without one. Does not know what is delivered.
"""

from collections.abc import Mapping
from typing import Any

from muster.services.sns.refusals import invalid

# The rows of a topic's EffectiveDeliveryPolicy, as AWS shows them.
HTTP_RETRIES: Mapping[str, Any] = {
    "minDelayTarget": 20,
    "maxDelayTarget": 20,
    "numRetries": 3,
    "numMaxDelayRetries": 0,
    "numNoDelayRetries": 0,
    "numMinDelayRetries": 0,
    "backoffFunction": "linear",
}
MANAGED_RETRIES: Mapping[str, Any] = {
    "minDelayTarget": 1,
    "maxDelayTarget": 20,
    "numRetries": 100_015,
    "numMaxDelayRetries": 100_000,
    "numNoDelayRetries": 3,
    "numMinDelayRetries": 2,
    "backoffFunction": "exponential",
}
FUNCTIONS = ("linear", "arithmetic", "geometric", "exponential")
# The total that an HTTP(S) policy may spend on retries, a hard limit of AWS's.
HTTP_SECONDS_MAX = 3600


def delay_seconds(policy: Mapping[str, Any], failed: int) -> float | None:
    """How long to wait after the attempt number `failed` (from 1); None when that was the last."""
    if failed > policy["numRetries"]:
        return None
    low, high = float(policy["minDelayTarget"]), float(policy["maxDelayTarget"])
    if failed <= policy["numNoDelayRetries"]:
        return 0.0
    failed -= policy["numNoDelayRetries"]
    if failed <= policy["numMinDelayRetries"]:
        return low
    failed -= policy["numMinDelayRetries"]
    growing = policy["numRetries"] - sum(
        policy[phase] for phase in ("numNoDelayRetries", "numMinDelayRetries", "numMaxDelayRetries")
    )
    if failed > growing:
        return high
    return low + (high - low) * _share(policy["backoffFunction"], (failed - 1) / max(1, growing - 1))


def _share(function: str, progress: float) -> float:
    """How far from the lowest to the highest delay, when `progress` of the growing phase is over."""
    match function:
        case "arithmetic":
            return progress * (progress + 1) / 2
        case "geometric":
            return progress**2
        case "exponential":
            return float((2 ** (10 * progress) - 1) / 1023)
        case _:
            return progress


def checked(retries: Any, where: str) -> dict[str, Any]:
    """A retry policy as the API takes it, with its defaults; InvalidParameter when a member is wrong."""
    if not isinstance(retries, dict):
        raise invalid(f"{where} Reason: must be an object")
    unknown = retries.keys() - HTTP_RETRIES.keys()
    if unknown:
        raise invalid(f"{where} Reason: unexpected name {min(unknown)}")
    policy = {**HTTP_RETRIES, **retries}
    if policy["backoffFunction"] not in FUNCTIONS:
        raise invalid(f"{where}.backoffFunction Reason: must be one of {', '.join(FUNCTIONS)}")
    for name in HTTP_RETRIES.keys() - {"backoffFunction"}:
        value = policy[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise invalid(f"{where}.{name} Reason: must be an integer that is not negative")
    if policy["numRetries"] > 100:
        raise invalid(f"{where}.numRetries Reason: value must be less than or equal to 100")
    if not 1 <= policy["minDelayTarget"] <= policy["maxDelayTarget"] <= HTTP_SECONDS_MAX:
        raise invalid(f"{where}.maxDelayTarget Reason: value must be greater than or equal to minDelayTarget")
    phases = sum(policy[name] for name in ("numNoDelayRetries", "numMinDelayRetries", "numMaxDelayRetries"))
    if phases > policy["numRetries"]:
        raise invalid(f"{where}.numRetries Reason: must be at least the sum of the retries of its phases")
    if sum(delay_seconds(policy, failed) or 0 for failed in range(1, policy["numRetries"] + 1)) > HTTP_SECONDS_MAX:
        raise invalid(f"{where} Reason: the total time of all retries must not exceed {HTTP_SECONDS_MAX} seconds")
    return policy
