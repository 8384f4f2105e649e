"""What a pattern can ask of one leaf: equal, begins with, lies between, is anything but …

Keeps true: an operator answers for one value at a time. Where it can, it also names its anchors: lookups of which at
least one must succeed for any value it matches, so that an index finds it without asking it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Protocol

from muster.languages.patterns.event import Leaf
from muster.languages.patterns.wildcard import Wildcard


@dataclass(frozen=True, slots=True)
class Anchor:
    """A lookup: `by` is "value", "prefix", "suffix" or "folded"; `key` what has to be found by it."""

    by: str
    key: Leaf


class Operator(Protocol):
    """A question to a leaf."""

    def matches(self, value: Leaf) -> bool:
        """Whether the value is asked for."""
        ...

    def anchors(self) -> tuple[Anchor, ...]:
        """Lookups one of which finds every value that matches; none when there are no such."""
        ...


def fold(text: str) -> str:
    """The text without the difference of upper and lower case."""
    return text.lower()


@dataclass(frozen=True, slots=True)
class Exact:
    """Equal, as JSON values are: 300, 300.0 and 3e2 are one number, and no text equals a number."""

    value: Leaf

    def matches(self, value: Leaf) -> bool:
        return value == self.value

    def anchors(self) -> tuple[Anchor, ...]:
        return (Anchor("value", self.value),)


@dataclass(frozen=True, slots=True)
class Prefix:
    text: str

    def matches(self, value: Leaf) -> bool:
        return isinstance(value, str) and value.startswith(self.text)

    def anchors(self) -> tuple[Anchor, ...]:
        return (Anchor("prefix", self.text),) if self.text else ()


@dataclass(frozen=True, slots=True)
class Suffix:
    text: str

    def matches(self, value: Leaf) -> bool:
        return isinstance(value, str) and value.endswith(self.text)

    def anchors(self) -> tuple[Anchor, ...]:
        return (Anchor("suffix", self.text),) if self.text else ()


@dataclass(frozen=True, slots=True)
class EqualsIgnoreCase:
    folded: str

    def matches(self, value: Leaf) -> bool:
        return isinstance(value, str) and fold(value) == self.folded

    def anchors(self) -> tuple[Anchor, ...]:
        return (Anchor("folded", self.folded),)


@dataclass(frozen=True, slots=True)
class PrefixIgnoreCase:
    folded: str

    def matches(self, value: Leaf) -> bool:
        return isinstance(value, str) and fold(value).startswith(self.folded)

    def anchors(self) -> tuple[Anchor, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class SuffixIgnoreCase:
    folded: str

    def matches(self, value: Leaf) -> bool:
        return isinstance(value, str) and fold(value).endswith(self.folded)

    def anchors(self) -> tuple[Anchor, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Like:
    """Of the form of a wildcard pattern."""

    form: Wildcard

    def matches(self, value: Leaf) -> bool:
        return isinstance(value, str) and self.form.fits(value)

    def anchors(self) -> tuple[Anchor, ...]:
        first, last = self.form.pieces[0], self.form.pieces[-1]
        if len(self.form.pieces) == 1:
            return (Anchor("value", first),)
        if first:
            return (Anchor("prefix", first),)
        return (Anchor("suffix", last),) if last else ()


# EventBridge compares numbers between -5e9 and 5e9; larger ones only as they are written.
LARGEST = 5_000_000_000


@dataclass(frozen=True, slots=True)
class Between:
    """A number in a range; each end may be left out of it."""

    low: float
    high: float
    above: bool = False  # the low end itself is left out
    below: bool = False  # the high end itself is left out

    def matches(self, value: Leaf) -> bool:
        if not isinstance(value, int | float) or not -LARGEST <= value <= LARGEST:
            return False
        return (value > self.low if self.above else value >= self.low) and (
            value < self.high if self.below else value <= self.high
        )

    def anchors(self) -> tuple[Anchor, ...]:
        return (Anchor("value", self.low),) if self.low == self.high else ()


@dataclass(frozen=True, slots=True)
class InNetwork:
    """A text that is an IP address of the network."""

    network: IPv4Network | IPv6Network

    def matches(self, value: Leaf) -> bool:
        address = address_of(value)
        return address is not None and address.version == self.network.version and address in self.network

    def anchors(self) -> tuple[Anchor, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class SameAddress:
    """A text that is this IPv6 address, however it is abbreviated."""

    address: IPv6Address

    def matches(self, value: Leaf) -> bool:
        return address_of(value) == self.address

    def anchors(self) -> tuple[Anchor, ...]:
        return ()


def address_of(value: Leaf) -> IPv4Address | IPv6Address | None:
    """The IP address that a text is."""
    if not isinstance(value, str) or len(value) > 45 or not ("." in value or ":" in value):
        return None
    try:
        return ip_address(value)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Exists:
    """Any leaf at all."""

    def matches(self, value: Leaf) -> bool:
        return True

    def anchors(self) -> tuple[Anchor, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Absent:
    """No leaf: the one operator that is satisfied where there is nothing to ask."""

    def matches(self, value: Leaf) -> bool:
        return False

    def anchors(self) -> tuple[Anchor, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class NoneOf:
    """Anything but a set of values. A null is a value like any other; an absent field is none."""

    values: frozenset[Leaf]

    def matches(self, value: Leaf) -> bool:
        return value not in self.values

    def anchors(self) -> tuple[Anchor, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Neither:
    """Anything but what any of some operators match."""

    operators: tuple[Operator, ...]

    def matches(self, value: Leaf) -> bool:
        return not any(operator.matches(value) for operator in self.operators)

    def anchors(self) -> tuple[Anchor, ...]:
        return ()


OfText = Callable[[str], Operator]
