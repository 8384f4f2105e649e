"""For tests, ours and yours: the real engine and services on a database in memory, under a clock that you move."""

from muster.testing.world import World

__all__ = ["World"]
