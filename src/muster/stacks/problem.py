"""What is wrong with a template or a value in it, told so that its author finds the place.

The face turns a Problem into CloudFormation's `ValidationError`; while resources are being made it becomes the
reason of the resource that failed.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class Problem(Exception):
    """A sentence for the template's author."""


def suggestion(wrong: str, right: Iterable[str]) -> str:
    """` Did you mean X?`, when one of the `right` words looks like the `wrong` one; else nothing."""
    words = {word.lower(): word for word in right}
    lower = wrong.lower()
    near = [word for word in words if word.endswith(lower) or lower.endswith(word)]
    near = get_close_matches(lower, near, n=1, cutoff=0.0) or get_close_matches(lower, words, n=1, cutoff=0.6)
    return f" Did you mean {words[near[0]]}?" if near else ""
