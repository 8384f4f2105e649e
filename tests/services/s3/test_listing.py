"""Listings agree with a naive model: sorted by UTF-8, filtered, rolled up, cut into pages."""

from typing import Any
from urllib.parse import unquote_plus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.services.s3 import listing
from muster.services.s3.listing import Page, Place
from tests.services.s3.conftest import Bucketed

KEYS = ["a.csv", "in/2023/a", "in/2023/b", "in/2024/a", "in/x", "out/", "z", "é", "\U0001f600", "\uffff"]


class Rows:
    """A source of rows as the database gives them, from a list of keys."""

    def __init__(self, keys: set[str]) -> None:
        self.keys = sorted(keys, key=lambda key: key.encode())
        self.asked = 0

    def __call__(self, place: Place, count: int) -> list[Any]:
        self.asked += 1
        after = place.key.encode()
        found = [key for key in self.keys if key.encode() > after or (place.inclusive and key.encode() == after)]
        return [{"key": key, "tie": ""} for key in found[:count]]


def rolled(keys: set[str], prefix: str, delimiter: str) -> list[str]:
    """What a listing without pages answers, said naively."""
    found: list[str] = []
    for key in sorted(keys, key=lambda key: key.encode()):
        if key.startswith(prefix):
            at = key.find(delimiter, len(prefix)) if delimiter else -1
            shown = f"<{key[: at + len(delimiter)]}>" if at >= 0 else key
            if shown not in found:
                found.append(shown)
    return found


def shown(page: Page[str]) -> list[str]:
    return [*page.items, *(f"<{prefix}>" for prefix in page.prefixes)]


texts = st.text(st.sampled_from("ab/é\U0010ffff\ud7ff"), max_size=5)


@given(
    keys=st.sets(texts.filter(bool), max_size=20),
    prefix=texts,
    delimiter=st.sampled_from(["", "/", "a", "b/"]),
    most=st.integers(1, 4),
)
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_pages_together_are_the_naive_listing(keys: set[str], prefix: str, delimiter: str, most: int) -> None:
    rows = Rows(keys)
    found: list[str] = []
    place = Place("")
    for _ in range(50):
        page: Page[str] = listing.page(rows, lambda row: str(row["key"]), place, prefix, delimiter, most)
        assert len(shown(page)) <= most
        found += shown(page)
        if not page.truncated:
            break
        assert page.last is not None
        if page.prefixes and page.last == page.prefixes[-1]:
            beyond = listing.successor(page.last)
            assert beyond is not None
            place = Place(beyond, inclusive=True)
        else:
            place = Place(page.last)
    assert sorted(found) == sorted(rolled(keys, prefix, delimiter))


@given(text=texts.filter(bool), other=texts)
def test_the_successor_is_behind_everything_with_the_prefix_and_nothing_else(text: str, other: str) -> None:
    beyond = listing.successor(text)
    if beyond is None:
        assert set(text) == {"\U0010ffff"}
    else:
        assert (text + other).encode() < beyond.encode()
        assert other.startswith(text) or other.encode() < text.encode() or other.encode() >= beyond.encode()


def test_rolled_up_keys_are_jumped_over() -> None:
    rows = Rows({f"in/{number:05}" for number in range(5000)} | {"out"})
    page = listing.page(rows, lambda row: str(row["key"]), Place(""), "", "/", 1000)
    assert (page.prefixes, page.items) == (["in/"], ["out"])
    assert rows.asked <= 3


@pytest.fixture
def filled(s3_world: Bucketed) -> Bucketed:
    for key in KEYS:
        s3_world.put(key, key.encode())
    return s3_world


def test_version_two_lists_in_utf8_order(filled: Bucketed) -> None:
    page = filled("ListObjectsV2", Bucket="bucket")
    assert [entry["Key"] for entry in page["Contents"]] == sorted(KEYS, key=lambda key: key.encode())
    assert (page["KeyCount"], page["IsTruncated"], page["Name"]) == (10, False, "bucket")
    assert page["Contents"][0]["Size"] == 5


def test_continuation_tokens_lead_through_all_pages(filled: Bucketed) -> None:
    keys: list[str] = []
    prefixes: list[str] = []
    more: dict[str, Any] = {}
    while True:
        page = filled("ListObjectsV2", Bucket="bucket", Delimiter="/", MaxKeys=1, **more)
        keys += [entry["Key"] for entry in page["Contents"]]
        prefixes += [entry["Prefix"] for entry in page["CommonPrefixes"]]
        if not page["IsTruncated"]:
            break
        more = {"ContinuationToken": page["NextContinuationToken"]}
    assert prefixes == ["in/", "out/"]
    assert keys == ["a.csv", "z", "é", "\uffff", "\U0001f600"]


def test_a_token_of_somebody_else_is_refused(filled: Bucketed) -> None:
    for token in ("", "!!!", "eA=="):
        refused = filled.refused("ListObjectsV2", Bucket="bucket", ContinuationToken=token)
        assert refused.code == "InvalidArgument"


def test_markers_lead_through_version_one(filled: Bucketed) -> None:
    page = filled("ListObjects", Bucket="bucket", Delimiter="/", MaxKeys=2)
    assert ([entry["Key"] for entry in page["Contents"]], page["NextMarker"]) == (["a.csv"], "in/")
    page = filled("ListObjects", Bucket="bucket", Delimiter="/", MaxKeys=2, Marker="in/")
    assert (page["CommonPrefixes"], [entry["Key"] for entry in page["Contents"]]) == ([{"Prefix": "out/"}], ["z"])
    page = filled("ListObjects", Bucket="bucket", MaxKeys=1)
    assert "NextMarker" not in page


def test_a_start_a_prefix_and_nothing_asked_for(filled: Bucketed) -> None:
    page = filled("ListObjectsV2", Bucket="bucket", Prefix="in/", StartAfter="in/2023/b")
    assert [entry["Key"] for entry in page["Contents"]] == ["in/2024/a", "in/x"]
    page = filled("ListObjectsV2", Bucket="bucket", Prefix="in/2023", Delimiter="/")
    assert page["CommonPrefixes"] == [{"Prefix": "in/2023/"}]
    assert filled("ListObjectsV2", Bucket="bucket", MaxKeys=0)["Contents"] == []
    assert filled.refused("ListObjectsV2", Bucket="bucket", MaxKeys=-1).code == "InvalidArgument"


def test_url_encoded_listings_decode_to_the_keys(s3_world: Bucketed) -> None:
    keys = ["a b+c", "a%20b", "ü/é", "line\nbreak"]
    for key in keys:
        s3_world.put(key)
    page = s3_world("ListObjectsV2", Bucket="bucket", EncodingType="url")
    assert sorted(unquote_plus(entry["Key"]) for entry in page["Contents"]) == sorted(keys)
    assert s3_world.refused("ListObjectsV2", Bucket="bucket", EncodingType="base64").code == "InvalidArgument"


def test_versions_are_listed_in_pages_newest_first(s3_world: Bucketed) -> None:
    s3_world("PutBucketVersioning", Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})
    expected = []
    for key in ("a", "b"):
        ids = [s3_world.put(key, str(n))["VersionId"] for n in range(3)]
        expected += [(key, version_id) for version_id in reversed(ids)]
    found: list[tuple[str, str]] = []
    more: dict[str, Any] = {}
    while True:
        page = s3_world("ListObjectVersions", Bucket="bucket", MaxKeys=2, **more)
        found += [(version["Key"], version["VersionId"]) for version in page["Versions"]]
        if not page["IsTruncated"]:
            break
        more = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}
    assert found == expected
