"""XML is read without entities and written well-formed, whatever the text."""

import time
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.wire import timestamp, xml_shapes
from muster.wire.message import Misread

BOMB = b"""<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><Tagging>&c;</Tagging>"""


@pytest.mark.parametrize(
    "body",
    [
        BOMB,
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>',
        b'<!DOCTYPE x [<!ENTITY y SYSTEM "file:///etc/passwd">]><x>&y;</x>',
        b"<x>&undeclared;</x>",
        b"<a><b></a></b>",
        b"",
        b"\xff\xfe\x00",
        b'<?xml version="1.0" encoding="no-such-encoding"?><x/>',
        b"<a>" * 500 + b"</a>" * 500,
        b"<x/><y/>",
    ],
)
def test_dangerous_or_broken_xml_is_refused(body: bytes) -> None:
    began = time.perf_counter()
    with pytest.raises(Misread):
        xml_shapes.parse(body)
    assert time.perf_counter() - began < 1


def test_namespaces_do_not_matter() -> None:
    root = xml_shapes.parse(b'<t:A xmlns:t="urn:t"><t:B>1</t:B></t:A>')
    assert root.tag == "A"
    assert root.findtext("B") == "1"


@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")))
def test_text_is_read_as_it_was_escaped(text: str) -> None:
    assert (fromstring(f"<x>{xml_shapes.escape(text)}</x>").text or "") == text


def test_carriage_return_survives() -> None:
    written = xml_shapes.escape("a\r\nb")
    assert fromstring(f"<x>{written}</x>").text == "a\r\nb"


@given(milliseconds=st.integers(0, 253_402_300_799_000))
def test_instant_is_read_to_the_millisecond(milliseconds: int) -> None:
    instant = milliseconds / 1000
    assert round(timestamp.read(timestamp.write_iso8601(instant)) * 1000) == milliseconds
    assert timestamp.read(timestamp.write_http_date(instant)) == milliseconds // 1000
    assert round(timestamp.read(str(timestamp.write_epoch(instant))) * 1000) == milliseconds


@pytest.mark.parametrize("text", ["", "yesterday", "nan", "inf", "2020-13-01", "Mon, 99 Foo", "1e999"])
def test_text_that_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        timestamp.read(text)
