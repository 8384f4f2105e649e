"""Names and chance as arguments: where unique ids, tokens and random numbers come from."""

import os
import random
import uuid
from typing import Protocol


class Ids(Protocol):
    """A source of ids and chance."""

    def new_id(self) -> str:
        """A fresh UUID (version 4) as text."""
        ...

    def random(self) -> float:
        """A number in [0, 1)."""
        ...

    def token(self, n_bytes: int) -> str:
        """An unguessable text of `n_bytes` random bytes in hexadecimal."""
        ...


class SystemIds:
    """Ids from the operating system's randomness."""

    def new_id(self) -> str:
        return str(uuid.UUID(bytes=os.urandom(16), version=4))

    def random(self) -> float:
        return random.random()

    def token(self, n_bytes: int) -> str:
        return os.urandom(n_bytes).hex()


class SeededIds:
    """Ids that repeat for the same seed; for tests and simulation."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def new_id(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def random(self) -> float:
        return self._random.random()

    def token(self, n_bytes: int) -> str:
        return self._random.randbytes(n_bytes).hex()
