"""The engine: operations asked from outside, waits for answers that come later, and deliveries carried after commit."""

from muster.engine.dispatcher import Dispatcher, Runner
from muster.engine.engine import Engine

__all__ = ["Dispatcher", "Engine", "Runner"]
