"""What functions print, as lines."""

import base64

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.clock import SimulatedClock
from muster.runners import function_log
from muster.runners.function_log import FunctionLog, stream_name
from muster.runners.platform_log import Report, frame


def log() -> FunctionLog:
    return FunctionLog(SimulatedClock(), "group", "stream")


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_lines_do_not_depend_on_how_they_were_read(pieces: list[bytes]) -> None:
    whole, parts = log(), log()
    whole.feed(b"".join(pieces))
    for piece in pieces:
        parts.feed(piece)
    assert [line.message for line in whole.take()] == [line.message for line in parts.take()]


def test_invocation_is_framed_as_aws_does_and_an_open_line_belongs_to_it() -> None:
    printed = log()
    printed.start("id", "$LATEST")
    printed.feed(b"one\ntwo")
    printed.end("id", Report(0.00123, 128, 40, 0.5))
    assert [line.message for line in printed.take()] == [
        "START RequestId: id Version: $LATEST\n",
        "one\n",
        "two\n",
        "END RequestId: id\n",
        "REPORT RequestId: id\tDuration: 1.23 ms\tBilled Duration: 2 ms\tMemory Size: 128 MB\tMax Memory Used: 40 MB"
        "\tInit Duration: 500.00 ms\t\n",
    ]


def test_json_frame_tells_the_same_as_records() -> None:
    printed = FunctionLog(SimulatedClock(), "group", "stream", frame({"LogFormat": "JSON"}))
    printed.start("id", "$LATEST")
    printed.end("id", Report(0.00123, 128, 40, status="timeout"))
    start, end = (orjson.loads(line.message) for line in printed.take())
    assert start == {
        "time": "2023-11-14T22:13:20.000Z",
        "type": "platform.start",
        "record": {"requestId": "id", "version": "$LATEST"},
    }
    assert (end["type"], end["record"]["status"]) == ("platform.report", "timeout")
    assert end["record"]["metrics"] == {
        "durationMs": 1.23,
        "billedDurationMs": 2,
        "memorySizeMB": 128,
        "maxMemoryUsedMB": 40,
    }


def test_json_frame_of_level_warn_speaks_only_of_failures() -> None:
    printed = FunctionLog(SimulatedClock(), "group", "stream", frame({"LogFormat": "JSON", "SystemLogLevel": "WARN"}))
    printed.start("id", "$LATEST")
    printed.end("id", Report(0.00123, 128, 40))
    assert printed.take() == []
    printed.end("id", Report(0.00123, 128, 40, status="error", error_type="Runtime.ExitError"))
    assert orjson.loads(printed.take()[0].message)["record"]["errorType"] == "Runtime.ExitError"


def test_tail_is_the_last_four_kilobytes_of_the_invocation() -> None:
    printed = log()
    printed.feed(b"before\n")
    printed.start("id", "1")
    for number in range(1000):
        printed.feed(f"line {number}\n".encode())
    tail = base64.b64decode(printed.tail())
    assert len(tail) == 4096
    assert tail.endswith(b"line 999\n")
    printed.start("id", "1")
    assert b"before" not in base64.b64decode(printed.tail())


def test_what_is_printed_too_fast_is_left_out_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_log, "WAITING_LINES_MAX", 3)
    printed = log()
    printed.feed(b"a\nb\nc\nd\ne\n")
    assert [line.message for line in printed.take()][-2:] == [
        "c\n",
        "[muster] 2 lines were left out: printed too fast\n",
    ]
    printed.feed(b"f\n")
    assert [line.message for line in printed.take()] == ["f\n"]


def test_overlong_line_is_cut_into_events() -> None:
    printed = log()
    printed.feed(b"x" * (function_log.LINE_BYTES_MAX + 5) + b"\n")
    assert [len(line.message) for line in printed.take()] == [function_log.LINE_BYTES_MAX + 1, 6]


def test_record_of_many_lines_is_one_event() -> None:
    printed = log()
    printed.feed(b"[ERROR] ValueError: no\rTraceback (most recent call last):\r  File x\n")
    assert [line.message for line in printed.take()] == [
        "[ERROR] ValueError: no\nTraceback (most recent call last):\n  File x\n"
    ]


def test_stream_is_named_by_date_version_and_token() -> None:
    assert stream_name(1_700_000_000.0, "$LATEST", "abc") == "2023/11/14/[$LATEST]abc"
