"""For tests, ours and yours: the real engine and services on a database in memory under a clock that you move, and a
real server in a process of its own."""

from muster.testing.process import ServerProcess
from muster.testing.world import World

__all__ = ["ServerProcess", "World"]
