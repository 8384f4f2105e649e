"""CBOR reads what it wrote, reads what botocore writes, and ends on whatever bytes come in."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.wire import cbor
from muster.wire.message import Misread

scalars: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.floats(-1e9, 1e9).map(cbor.Instant)
)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)


@given(value=trees)
def test_value_is_read_as_it_was_written(value: Any) -> None:
    assert cbor.loads(cbor.dumps(value)) == value


@given(body=st.binary(max_size=40))
def test_any_bytes_end_in_a_value_or_a_refusal(body: bytes) -> None:
    with contextlib.suppress(Misread):
        cbor.loads(body)


def test_indefinite_lengths_are_read() -> None:
    assert cbor.loads(bytes.fromhex("bf6161 9f0102ff 6162 7f61786179ff ff".replace(" ", ""))) == {
        "a": [1, 2],
        "b": "xy",
    }


def test_short_floats_are_read() -> None:
    assert cbor.loads(bytes.fromhex("f93c00")) == 1.0
    assert cbor.loads(bytes.fromhex("fa3fc00000")) == 1.5


@pytest.mark.parametrize(
    "hexadecimal",
    ["", "9bffffffffffffffff", "5bffffffffffffffff00", "8" * 2000, "c2410a", "a10102", "0000", "ff", "81ff", "1c"],
)
def test_broken_or_boundless_bodies_are_refused(hexadecimal: str) -> None:
    with pytest.raises(Misread):
        cbor.loads(bytes.fromhex(hexadecimal))
