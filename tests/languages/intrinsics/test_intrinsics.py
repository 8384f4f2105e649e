"""Intrinsic functions: what each gives, what each refuses, and how calls are written."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.ids import SeededIds
from muster.languages.intrinsics import IntrinsicFailed, IntrinsicInvalid, compile_intrinsic
from muster.languages.intrinsics.functions import number_text
from muster.languages.jsonpath import compile_path

DOCUMENT: dict[str, Any] = {
    "name": "Ann",
    "n": 5,
    "f": 1.1,
    "yes": True,
    "nothing": None,
    "list": [1, 2, 2, "2", True, {"a": [1]}, {"a": [1.0]}],
    "object": {"b": 1, "a": {"c": [1, 2.0, "é"]}},
    "rows": [{"id": "a)b,c"}, {"id": "x"}],
    "template": "It's {} \\{}!",
    "long": "x" * 10_001,
}


def evaluate(text: str) -> Any:
    return compile_intrinsic(text).evaluate(lambda path: compile_path(path).read(DOCUMENT), SeededIds(1))


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("States.Format('Hello, {}!', $.name)", "Hello, Ann!"),
        ("States.Format('{} {} {} {} {}', $.n, $.f, $.yes, $.nothing, 'x')", "5 1.1 true null x"),
        ("States.Format('no arguments')", "no arguments"),
        (r"States.Format('\{\} {} \\ it\'s', 1)", r"{} 1 \ it's"),
        ("States.Format('{}', 1.50)", "1.5"),
        ("States.Format('{}', States.Format('<{}>', 'in'))", "<in>"),
        ("States.StringToJson('{\"a\": [1, null]}')", {"a": [1, None]}),
        ("States.JsonToString($.object)", '{"b":1,"a":{"c":[1,2.0,"é"]}}'),
        ("States.Array()", []),
        ("States.Array(1, 'a', null, true, -2.5, $.n)", [1, "a", None, True, -2.5, 5]),
        ("States.ArrayPartition($.list, 3)", [[1, 2, 2], ["2", True, {"a": [1]}], [{"a": [1.0]}]]),
        ("States.ArrayContains($.list, '2')", True),
        ("States.ArrayContains($.list, false)", False),
        ("States.ArrayContains($.list, $.list[5])", True),
        ("States.ArrayRange(1, 9, 2)", [1, 3, 5, 7, 9]),
        ("States.ArrayRange(3, -3, -3)", [3, 0, -3]),
        ("States.ArrayRange(3, 1, 1)", []),
        ("States.ArrayGetItem($.list, 3)", "2"),
        ("States.ArrayLength($.list)", 7),
        ("States.ArrayUnique($.list)", [1, 2, "2", True, {"a": [1]}]),
        ("States.Base64Encode('Data to encode')", "RGF0YSB0byBlbmNvZGU="),
        ("States.Base64Decode('RGF0YSB0byBlbmNvZGU=')", "Data to encode"),
        ("States.Hash('input data', 'SHA-1')", "aaff4a450a104cd177d28d18d74485e8cae074b7"),
        ("States.JsonMerge($.object, States.StringToJson('{\"b\":2}'), false)", {**DOCUMENT["object"], "b": 2}),
        ("States.MathAdd($.n, -1)", 4),
        ("States.StringSplit('1,2;;3', ',;')", ["1", "2", "3"]),
        ("States.StringSplit('This.is+a,test', '.+,')", ["This", "is", "a", "test"]),
        ("States.ArrayGetItem(States.StringSplit('a/b/c', '/'), 1)", "b"),
        ("States.Array($.rows[?(@.id == 'a)b,c')].id, 1)", [["a)b,c"], 1]),
        ("  States.ArrayLength( $.list )  ", 7),
    ],
)
def test_call_gives(call: str, value: Any) -> None:
    assert evaluate(call) == value


def test_escapes_of_a_template_that_comes_from_data_are_not_escapes() -> None:
    assert evaluate("States.Format('{}', $.template)") == DOCUMENT["template"]
    assert evaluate("States.Format($.template, 1, 2)") == "It's 1 \\2!"


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [(1.49, 1.5, 3), (-1.49, -1.5, -2), (-1.5, -1.51, -3), (-0.5, 0.5, 1), (-0.5, 0, 0), (2.5, 0, 3), (-2.5, 0, -2)],
)
def test_addition_rounds_each_half_up_as_recorded_on_aws(left: float, right: float, total: int) -> None:
    assert evaluate(f"States.MathAdd({left}, {right})") == total


def test_random_number_lies_between_and_repeats_for_a_seed() -> None:
    numbers = {evaluate(f"States.MathRandom(1, 4, {seed})") for seed in range(50)}
    assert numbers == {1, 2, 3}
    assert evaluate("States.MathRandom(1, 999999, 7)") == evaluate("States.MathRandom(1, 999999, 7)")
    assert evaluate("States.MathRandom(-2, -1)") == -2


def test_uuid_comes_from_the_ids_given() -> None:
    assert evaluate("States.UUID()") == SeededIds(1).new_id()


@pytest.mark.parametrize(
    "call",
    [
        "States.Format('{}')",
        "States.Format('x', 1)",
        "States.Format('{}', $.object)",
        "States.Format($.n)",
        "States.StringToJson('{')",
        "States.StringToJson('NaN')",
        "States.StringToJson($.n)",
        "States.ArrayPartition($.list, 0)",
        "States.ArrayPartition($.list, 'x')",
        "States.ArrayPartition($.n, 1)",
        "States.ArrayRange(0, 1000, 1)",
        "States.ArrayRange(0, 99999999999999999999, 1)",
        "States.ArrayRange(0, 1, 0)",
        "States.ArrayGetItem($.list, 7)",
        "States.ArrayGetItem($.list, -1)",
        "States.ArrayLength($.name)",
        "States.Base64Encode($.long)",
        "States.Base64Encode($.n)",
        "States.Base64Decode('!')",
        "States.Base64Decode('/w==')",
        "States.Hash('a', 'SHA-3')",
        "States.Hash('a', 1)",
        "States.Hash($.long, 'MD5')",
        "States.JsonMerge($.object, $.object, true)",
        "States.JsonMerge($.object, $.n, false)",
        "States.MathAdd('1', 1)",
        "States.MathAdd(true, 1)",
        "States.MathRandom(2, 2)",
        "States.StringSplit($.n, ',')",
    ],
)
def test_call_refuses(call: str) -> None:
    with pytest.raises(IntrinsicFailed):
        evaluate(call)


def test_range_may_have_a_thousand_elements() -> None:
    assert len(evaluate("States.ArrayRange(1, 1000, 1)")) == 1000


@pytest.mark.parametrize(
    "call",
    [
        "",
        "$.a",
        "States",
        "States.Nope()",
        "states.UUID()",
        "States.UUID(",
        "States.UUID() x",
        "States.UUID(1)",
        "States.MathAdd(1)",
        "States.Format()",
        "States.Array(1,)",
        "States.Array('a)",
        "States.Array(a)",
        "States.Array($.)",
        "States.Array(" * 11 + ")" * 11,
    ],
)
def test_text_that_is_no_call_is_refused(call: str) -> None:
    with pytest.raises(IntrinsicInvalid):
        compile_intrinsic(call)


def test_ten_calls_may_be_nested() -> None:
    assert evaluate("States.ArrayLength(" + "States.Array(" * 9 + ")" * 10) == 1


def test_call_tells_its_paths() -> None:
    assert compile_intrinsic("States.Array($.a, States.Array($$.b, $c.d[?(@.e == ')')]))").paths == (
        "$.a",
        "$$.b",
        "$c.d[?(@.e == ')')]",
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.00015, "1.5E-4"),
        (1e7, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (-1e21, "-1.0E21"),
    ],
)
def test_number_reads_as_java_prints_it(number: float, text: str) -> None:
    assert number_text(number) == text


@given(number=st.floats(allow_nan=False, allow_infinity=False))
def test_printed_number_is_the_number(number: float) -> None:
    assert float(number_text(number)) == number


names = st.sampled_from(
    ["Format", "Array", "ArrayRange", "ArrayPartition", "StringToJson", "Hash", "MathAdd", "JsonMerge"]
)
arguments = st.sampled_from(
    ["1", "-2.5", "'a'", "''", "'{}'", "'SHA-1'", "null", "true", "$.list", "$.object", "$.n", "$.nothing"]
)
calls = st.builds(lambda name, given: f"States.{name}({', '.join(given)})", names, st.lists(arguments, max_size=4))


@given(call=calls)
def test_any_call_gives_a_value_or_is_refused(call: str) -> None:
    with suppress(IntrinsicInvalid, IntrinsicFailed):
        evaluate(call)


@given(
    text=st.text(max_size=20) | st.text(alphabet="States.Array()'\\,{}$.[]1", max_size=30).map("States.Array(".__add__)
)
def test_any_text_is_a_call_or_refused(text: str) -> None:
    with suppress(IntrinsicInvalid):
        compile_intrinsic(text)
