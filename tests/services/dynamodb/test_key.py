"""Keys as bytes: their order is the keys' order."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from muster.languages.expressions.number import normal_number
from muster.services.dynamodb.key import SLOTS, after_prefix, encode, encode_hash, segment_bounds

NUMBERS = st.one_of(
    st.integers(-1000, 1000).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-1000, max_value=1000).map(str),
    st.builds(lambda digits, exponent: f"{digits}E{exponent}", st.integers(-(10**20), 10**20), st.integers(-120, 100)),
)


@given(NUMBERS, NUMBERS)
def test_encoded_numbers_are_in_the_order_of_the_numbers(left: str, right: str) -> None:
    one, other = normal_number(left), normal_number(right)
    encoded = encode({"N": one}), encode({"N": other})
    assert (encoded[0] < encoded[1]) == (Decimal(one) < Decimal(other))
    assert (encoded[0] == encoded[1]) == (Decimal(one) == Decimal(other))


@given(st.text(), st.text())
def test_encoded_texts_are_in_the_order_of_their_utf_8(left: str, right: str) -> None:
    assert (encode({"S": left}) < encode({"S": right})) == (left.encode() < right.encode())


@given(st.binary(min_size=1), st.binary())
def test_what_begins_with_a_prefix_lies_between_it_and_its_successor(prefix: bytes, other: bytes) -> None:
    after = after_prefix(prefix)
    inside = other >= prefix and (after is None or other < after)
    assert inside == other.startswith(prefix)


@given(st.integers(1, 2000), st.text(min_size=1))
def test_every_partition_lies_in_exactly_one_segment(total: int, text: str) -> None:
    encoded = encode_hash({"S": text})
    hits = 0
    for segment in range(total):
        first, below = segment_bounds(segment, total)
        hits += encoded >= first and (below is None or encoded < below)
    assert hits == 1


def test_more_segments_than_slots_still_cover_each_partition_once() -> None:
    total = SLOTS * 3
    encoded = encode_hash({"S": "x"})
    bounds = [segment_bounds(segment, total) for segment in range(total)]
    assert sum(encoded >= first and (below is None or encoded < below) for first, below in bounds) == 1
