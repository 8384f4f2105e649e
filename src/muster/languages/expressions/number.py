"""DynamoDB's numbers: exact decimals of up to 38 significant digits, from 1E-130 to below 1E+126.

Keeps true: a number has one text (plain notation, no needless zeros), so equal numbers are equal texts, and what is
stored is what arithmetic gave, exactly, or a refusal. Source: the developer guide, "Supported data types and naming
rules", Number.
"""

import re
from decimal import Context, Decimal

from muster.languages.expressions.problem import ExpressionError

DIGITS_MAX = 38
MAGNITUDE_MAX = 125
MAGNITUDE_MIN = -130

# Wide enough for the exact sum of the largest and the smallest number there is.
EXACT = Context(prec=300, Emax=999_999, Emin=-999_999)

_NUMBER = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?", re.ASCII)


def normal_number(text: str) -> str:
    """The one text of the number that `text` writes; ExpressionError when it is none or out of range."""
    if text.isdigit() and text.isascii() and len(text) <= DIGITS_MAX:
        return text.lstrip("0") or "0"
    match = _NUMBER.fullmatch(text)
    whole, fraction = (match[2], match[3] or "") if match else ("", "")
    if match is None or not (whole or fraction):
        raise ExpressionError(f"The parameter cannot be converted to a numeric value{': ' + text if text else ''}")
    digits = whole + fraction
    significant = digits.strip("0")
    if not significant:
        return "0"
    exponent_text = match[4] or "0"
    if len(exponent_text) > 20:
        exponent_text = exponent_text[:20]
    # The power of ten of the first digit that is not zero.
    magnitude = len(whole) - 1 - (len(digits) - len(digits.lstrip("0"))) + int(exponent_text)
    if magnitude > MAGNITUDE_MAX:
        raise ExpressionError(
            "Number overflow. Attempting to store a number with magnitude larger than supported range"
        )
    if magnitude < MAGNITUDE_MIN:
        raise ExpressionError(
            "Number underflow. Attempting to store a number with magnitude smaller than supported range"
        )
    if len(significant) > DIGITS_MAX:
        raise ExpressionError(f"Attempting to store more than {DIGITS_MAX} significant digits in a Number")
    sign = "-" if match[1] == "-" else ""
    return sign + _plain(significant, magnitude)


def _plain(digits: str, magnitude: int) -> str:
    if magnitude < 0:
        return "0." + "0" * (-magnitude - 1) + digits
    if magnitude + 1 >= len(digits):
        return digits + "0" * (magnitude + 1 - len(digits))
    return f"{digits[: magnitude + 1]}.{digits[magnitude + 1 :]}"


def add(left: str, right: str) -> str:
    """The exact sum; ExpressionError when it is out of range."""
    return normal_number(str(EXACT.add(Decimal(left), Decimal(right))))


def subtract(left: str, right: str) -> str:
    """The exact difference; ExpressionError when it is out of range."""
    return normal_number(str(EXACT.subtract(Decimal(left), Decimal(right))))
