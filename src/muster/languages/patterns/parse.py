"""From the text of a pattern to its alternatives: what is asked of each path.

Keeps true: only what is understood is accepted; an unknown operator never widens a pattern. `$or` multiplies the
alternatives, and a path that is asked twice keeps the later question, both as in EventBridge's own compiler. The
sentences are those of InvalidEventPatternException.
"""

from collections.abc import Callable, Mapping
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, NoReturn

from muster.languages.patterns import operators as ops
from muster.languages.patterns.document import Members, read
from muster.languages.patterns.event import Leaf, leaf
from muster.languages.patterns.operators import Operator
from muster.languages.patterns.problem import InvalidPattern
from muster.languages.patterns.wildcard import wildcard

Alternative = dict[str, tuple[Operator, ...]]

# The most combinations of `$or` branches in one pattern (EventBridge user guide, "Comparison operators").
_MOST_ALTERNATIVES = 1000

_ONE_KEY = "Only one key allowed in match expression"
_ANYTHING_BUT = "Value of anything-but must be an array or single string/number value."


def alternatives(text: str) -> list[Alternative]:
    """The alternatives of a pattern, any of which makes it match; InvalidPattern when the text is none."""
    document = read(text)
    found: list[Alternative] = [{}]
    _object(found, "", document, inside_or=False)
    return found


def _refuse(reason: str) -> NoReturn:
    raise InvalidPattern(reason)


def _object(found: list[Alternative], prefix: str, members: Members, *, inside_or: bool) -> None:
    if not members.pairs:
        _refuse("Empty objects are not allowed")
    for name, value in members.pairs:
        if name == "$or":
            _or(found, prefix, value)
            continue
        if inside_or and name in _RESERVED:
            _refuse(f"{name} is Ruler reserved fieldName which cannot be used inside $or.")
        if isinstance(value, Members):
            _object(found, f"{prefix}{name}.", value, inside_or=inside_or)
        elif isinstance(value, list):
            if not value:
                _refuse("Empty arrays are not allowed")
            asked = tuple(_element(element) for element in value)
            for alternative in found:
                alternative[prefix + name] = asked
        else:
            _refuse(f'"{name}" must be an object or an array')


def _or(found: list[Alternative], prefix: str, branches: Any) -> None:
    if not isinstance(branches, list):
        _refuse("It must be an Array followed with $or.")
    multiplied: list[Alternative] = []
    for branch in branches:
        if not isinstance(branch, Members):
            _refuse("Only JSON object is allowed in array of $or relationship.")
        copies = [dict(alternative) for alternative in found]
        _object(copies, prefix, branch, inside_or=True)
        multiplied += copies
        if len(multiplied) > _MOST_ALTERNATIVES:
            _refuse("Rule is too complex - try using fewer conditions inside $or")
    if len(branches) < 2:
        _refuse("There must have at least 2 Objects in $or relationship.")
    found[:] = multiplied


def _element(element: Any) -> Operator:
    if isinstance(element, list):
        _refuse("Match value must be String, number, true, false, or null")
    if not isinstance(element, Members):
        return _exact(element)
    if not element.pairs:
        _refuse("Match expression name not found")
    name, value = element.pairs[0]
    read_operator = _OPERATORS.get(name)
    if read_operator is None:
        _refuse(f"Unrecognized match type {name}")
    operator = read_operator(value)
    if len(element.pairs) > 1:
        _refuse("Too many elements in numeric expression" if name in ("numeric", "anything-but") else _ONE_KEY)
    return operator


def _exact(value: Any) -> Operator:
    if isinstance(value, str) and ":" in value:
        try:
            address = ip_address(value)
        except ValueError:
            return ops.Exact(value)
        if isinstance(address, IPv6Address):
            return ops.SameAddress(address)
    return ops.Exact(leaf(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _comparable(value: float) -> float:
    if not -ops.LARGEST <= value <= ops.LARGEST:
        _refuse(f"Value must be between -5.0E9 and 5.0E9, inclusive, got {value}")
    return value


def _text(of: ops.OfText, name: str) -> Callable[[Any], Operator]:
    def read_text(value: Any) -> Operator:
        if not isinstance(value, str):
            _refuse(f"{name} match pattern must be a string")
        return of(value)

    return read_text


def _affix(name: str, plain: ops.OfText, folded: ops.OfText) -> Callable[[Any], Operator]:
    """`prefix` and `suffix`: a text, or `equals-ignore-case` with one."""

    def read_affix(value: Any) -> Operator:
        if isinstance(value, Members):
            operator, text = _only(value, name)
            if operator != "equals-ignore-case":
                _refuse(f"Unsupported {name} pattern: {operator}")
            if not isinstance(text, str):
                _refuse("equals-ignore-case match pattern must be a string")
            return folded(ops.fold(text))
        if not isinstance(value, str):
            _refuse(f"{name} match pattern must be a string")
        return plain(value)

    return read_affix


def _only(members: Members, name: str) -> tuple[str, Any]:
    if not members.pairs:
        _refuse(f"{name.capitalize()} expression name not found")
    if len(members.pairs) > 1:
        _refuse(_ONE_KEY)
    return members.pairs[0]


def _exists(value: Any) -> Operator:
    if not isinstance(value, bool):
        _refuse("exists match pattern must be either true or false.")
    return ops.Exists() if value else ops.Absent()


def _cidr(value: Any) -> Operator:
    if not isinstance(value, str):
        _refuse("prefix match pattern must be a string")
    parts = value.split("/")
    if len(parts) != 2:
        _refuse("Malformed CIDR, one '/' required")
    address, bits = parts
    if not bits.removeprefix("-").isdecimal():
        _refuse("Malformed CIDR, mask bits must be an integer")
    if bits.startswith("-"):
        _refuse("Malformed CIDR, mask bits must not be negative")
    try:
        version = ip_address(address).version
    except ValueError:
        _refuse(f"Nonstandard IP address: {address}")
    most = 32 if version == 4 else 128
    if int(bits) > most:
        _refuse(f"IPv{version} mask bits must be < {most}")
    return ops.InNetwork(ip_network(f"{address}/{int(bits)}", strict=False))


def _numeric(value: Any) -> Operator:
    """`[op, number]` or `[">"|">=", number, "<"|"<=", number]`."""
    if not isinstance(value, list):
        _refuse("Value of numeric must be an array.")
    if not value or not isinstance(value[0], str):
        _refuse(f"Invalid member in numeric match: {value[0] if value else ']'}")
    operator = value[0]
    if operator not in ("=", "<", "<=", ">", ">="):
        _refuse(f"Unrecognized numeric range operator: {operator}")
    if len(value) < 2 or not _is_number(value[1]):
        _refuse(f"Value of {'equals' if operator == '=' else operator} must be numeric")
    number = _comparable(value[1])
    if len(value) == 2:
        low = -ops.LARGEST if operator[0] == "<" else number
        high = ops.LARGEST if operator[0] == ">" else number
        return ops.Between(low, high, above=operator == ">", below=operator == "<")
    if operator in ("=", "<", "<="):
        _refuse("Too many elements in numeric expression")
    return _range(number, operator == ">", value[2:])


def _range(low: float, above: bool, upper: list[Any]) -> Operator:
    operator = upper[0]
    if not isinstance(operator, str):
        _refuse(f"Bad value in numeric range: {operator}")
    if operator not in ("<", "<="):
        _refuse(f"Bad numeric range operator: {operator}")
    if len(upper) < 2 or not _is_number(upper[1]):
        _refuse(f"Value of {operator} must be numeric")
    if len(upper) > 2:
        _refuse("Too many terms in numeric range expression")
    high = _comparable(upper[1])
    if high < low or (high == low and (above or operator == "<")):
        _refuse("Bottom must be less than top")
    return ops.Between(low, high, above=above, below=operator == "<")


def _anything_but(value: Any) -> Operator:
    if isinstance(value, Members):
        return _anything_but_operator(value)
    listed = value if isinstance(value, list) else [value]
    if isinstance(value, list):
        if not all(isinstance(one, str) or _is_number(one) for one in value):
            _refuse("Inside anything but list, start|null|boolean is not supported.")
        if len({isinstance(one, str) for one in value}) != 1:
            _refuse("Inside anything but list, either all values are number or string, mixed type is not supported")
    elif not isinstance(value, str) and not _is_number(value):
        _refuse(_ANYTHING_BUT)
    values: list[Leaf] = [one if isinstance(one, str) else _comparable(one) for one in listed]
    return ops.NoneOf(frozenset(values))


def _anything_but_operator(members: Members) -> Operator:
    name, value = _only(members, "anything-but")
    read_operator = _INSIDE_ANYTHING_BUT.get(name)
    if read_operator is None:
        _refuse(f"Unsupported anything-but pattern: {name}")
    if not isinstance(value, str | int | float | list) or isinstance(value, bool):
        _refuse(_ANYTHING_BUT)
    listed: list[Any] = value if isinstance(value, list) else [value]
    if not listed:
        _refuse("Empty arrays are not allowed")
    for text in listed:
        if not isinstance(text, str):
            _refuse(
                "prefix/suffix match pattern must be a string"
                if name in ("prefix", "suffix")
                else f"Inside anything-but/{name} list, number|start|null|boolean is not supported."
            )
        if not text and name in ("prefix", "suffix"):
            _refuse("Null prefix/suffix not allowed")
    return ops.Neither(tuple(read_operator(text) for text in listed))


def _ignoring_case(text: str) -> Operator:
    return ops.EqualsIgnoreCase(ops.fold(text))


def _like(text: str) -> Operator:
    return ops.Like(wildcard(text))


_INSIDE_ANYTHING_BUT: Mapping[str, ops.OfText] = {
    "prefix": ops.Prefix,
    "suffix": ops.Suffix,
    "equals-ignore-case": _ignoring_case,
    "wildcard": _like,
}

_OPERATORS: Mapping[str, Callable[[Any], Operator]] = {
    "exactly": _text(ops.Exact, "exact"),
    "prefix": _affix("prefix", ops.Prefix, ops.PrefixIgnoreCase),
    "suffix": _affix("suffix", ops.Suffix, ops.SuffixIgnoreCase),
    "equals-ignore-case": _text(_ignoring_case, "equals-ignore-case"),
    "wildcard": _text(_like, "wildcard"),
    "anything-but": _anything_but,
    "numeric": _numeric,
    "exists": _exists,
    "cidr": _cidr,
}

_RESERVED = frozenset(_OPERATORS) | {"=", "<", "<=", ">", ">="}
