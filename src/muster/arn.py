"""Amazon Resource Names: `arn:partition:service:region:account:resource`."""

from dataclasses import dataclass
from typing import Protocol


class Realm(Protocol):
    """Whatever knows which account and region it speaks for."""

    @property
    def account(self) -> str: ...
    @property
    def region(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Arn:
    """One resource's name, taken apart; `resource` keeps its own colons and slashes."""

    partition: str
    service: str
    region: str
    account: str
    resource: str

    @classmethod
    def parse(cls, text: str) -> "Arn":
        """The parts of `text`; ValueError when it is no ARN."""
        parts = text.split(":", 5)
        if len(parts) != 6 or parts[0] != "arn" or not parts[1] or not parts[2] or not parts[5]:
            raise ValueError(f"not an ARN: {text!r}")
        return cls(*parts[1:])

    def __str__(self) -> str:
        return f"arn:{self.partition}:{self.service}:{self.region}:{self.account}:{self.resource}"


def arn(realm: Realm, service: str, resource: str) -> str:
    """The ARN of `resource` of `service` in the realm's account and region."""
    return f"arn:aws:{service}:{realm.region}:{realm.account}:{resource}"
