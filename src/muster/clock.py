"""Time as an argument: instants are seconds since the epoch (UTC), and clocks are handed in."""

import time
from typing import Protocol

Instant = float


class Clock(Protocol):
    """Whatever can say what time it is."""

    def now(self) -> Instant:
        """The present instant, in seconds since the epoch."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> Instant:
        return time.time()


class SimulatedClock:
    """A clock that stands still until it is moved; for tests."""

    def __init__(self, now: Instant = 1_700_000_000.0) -> None:
        self._now = now

    def now(self) -> Instant:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move time forward by `seconds`."""
        assert seconds >= 0, "time does not run backwards"
        self._now += seconds
