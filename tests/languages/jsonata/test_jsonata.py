"""JSONata: the language on Step Functions' documents, the functions AWS adds, what is refused and with which words."""

import copy
import math
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.ids import SeededIds
from muster.languages.jsonata import (
    INVALID,
    UNDEFINED,
    UNSUPPORTED,
    ExpressionFailed,
    ExpressionInvalid,
    compile_expression,
)

VARIABLES: dict[str, Any] = {
    "states": {
        "input": {
            "items": [{"n": 3, "t": "a"}, {"n": 9, "t": "b"}],
            "one": [1],
            "none": [],
            "nulls": [1, None, {"a": None}],
            "text": "abc",
            "deep": {"er": {"value": 7.5}},
        },
        "context": {"State": {"EnteredTime": "2024-01-01T00:00:00Z"}},
    },
    "x": 41,
    "list": [[0], [1, 2]],
    "nothing": None,
    "hash": "shadowed",
}


def evaluate(text: str, **variables: Any) -> Any:
    return compile_expression(text).evaluate({**VARIABLES, **variables}, SeededIds(1))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$states.input.items.n", [3, 9]),
        ("$states.input.one", [1]),
        ("$states.input.none", []),
        ("$states.input.nulls", [1, None, {"a": None}]),
        ("$nothing", None),
        ("$list", [[0], [1, 2]]),
        ("$states.input.deep.er.value", 7.5),
        ("$x + 1", 42),
        ("$x / 2", 20.5),
        ("$x * 2.0", 82),
        ("$states.input.items[n > 5].t", "b"),
        ("$states.input.items[n > 2].t", ["a", "b"]),
        ("$states.input.items[-1].t", "b"),
        ("$map($states.input.items, function($i) { $i.n * 2 })", [6, 18]),
        ("$reduce([1..5], function($a, $b) { $a + $b })", 15),
        ("$count($list)", 2),
        ("$count([1..5])", 5),
        ("$states.input.items{t: n}", {"a": 3, "b": 9}),
        ("$states.input.items^(>n).t", ["b", "a"]),
        ("$states.input.items.{'k': n}", [{"k": 3}, {"k": 9}]),
        ("$states.input.**.er.value", 7.5),
        ("($y := $x; $y & '!')", "41!"),
        ("[1..5]", [1, 2, 3, 4, 5]),
        ("{'a': 1, 'gone': $missing}", {"a": 1}),
        ("$merge([{'a': 1}, {'b': null}])", {"a": 1, "b": None}),
        ("$states.input.nulls[2].a = null", True),
        ("$nothing = null", True),
        ("$string($states.input.nulls)", '[1,null,{"a":null}]'),
        ("$not($states.input.text = 'x')", True),
        ("$states.input.text = '\"'", False),
        ("$variable := 1", 1),
        ("'2016-03-14T01:59:00Z'", "2016-03-14T01:59:00Z"),
        ("null", None),
        ("$x in [41, 42] and $exists($states.input)", True),
        ("$missing", UNDEFINED),
        ("$states.input.missing.deeper", UNDEFINED),
        ("$states.input.text.deeper", UNDEFINED),
        ("$x + $missing", UNDEFINED),
    ],
)
def test_expression_gives(text: str, value: Any) -> None:
    before = copy.deepcopy(VARIABLES)
    result = evaluate(text)
    assert result == value
    assert type(result) is type(value)
    assert before == VARIABLES


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$partition([1..5], 2)", [[1, 2], [3, 4], [5]]),
        ("$partition([0], 1)", [[0]]),
        ("$range(0, 10, 3)", [0, 3, 6, 9]),
        ("$range(1, 9, 9)", 1),
        ("$range(0, 6, 2)", [0, 2, 4, 6]),
        ("$range(3, -3, -3)", [3, 0, -3]),
        ("$range(0, 0.3, 0.1) ~> $count()", 4),
        ("$random(42)", 0.7275636800328681),
        ("$uuid()", SeededIds(1).new_id()),
        ("$random()", SeededIds(1).random()),
        ("$parse('{\"a\": [1, null]}')", {"a": [1, None]}),
        ("$parse('{\"a\": 1}').a", 1),
        ("$now()", "2024-01-01T00:00:00.000Z"),
        ("$millis()", 1704067200000),
        ("$sort($shuffle([1..9]))", [1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ],
)
def test_function_of_step_functions_gives(text: str, value: Any) -> None:
    assert evaluate(text) == value


def test_hash_is_the_named_digest() -> None:
    bare = compile_expression("$hash('a', 'SHA-256')")
    digest = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    assert bare.evaluate({}, SeededIds(1)) == digest


def test_time_is_the_callers() -> None:
    assert compile_expression("$millis()").evaluate(VARIABLES, SeededIds(1), now=12.5) == 12500


def test_chance_repeats_with_its_seed() -> None:
    assert evaluate("[$random(), $uuid(), $shuffle([1..9])]") == evaluate("[$random(), $uuid(), $shuffle([1..9])]")


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("'a' + 1", '. T2001: The left side of the "+" operator must evaluate to a number'),
        ("1 - 'a'", '. T2002: The right side of the "-" operator must evaluate to a number'),
        ("$x ~> 5", ". T2006: The right side of the function application operator ~> must be a function"),
        ("5 < 'a'", '. T2009: The values 5 and "a" either side of operator "<" must be of the same data type'),
        ("$abs('a')", '. T0410: Argument 1 of function "abs" does not match function signature'),
        ("$sum('a')", '. T0412: Argument 1 of function "sum" must be an array of "numbers"'),
        ("$random('a')", '. T0410: Argument 1 of function "random" does not match function signature'),
        ("$number('zz')", '. D3030: Unable to cast value to a number: "zz"'),
        ("-'a'", '. D1002: Cannot negate a non-numeric value: "a"'),
        ("$error('boom')", ". D3137: boom"),
        ("$eval('1')", ". T1006: Attempted to invoke a non-function"),
        ("$missing()", ". T1006: Attempted to invoke a non-function"),
        ("$count([1..873783])", ": Expression evaluation memory limit exceeded: Check for excessive memory usage"),
        ("$range(1, 1000000000, 1)", ": Expression evaluation memory limit exceeded: Check for excessive memory usage"),
        ("$pad('a', 100000000)", ": Expression evaluation memory limit exceeded: Check for excessive memory usage"),
        (
            "($f := function($s, $n) { $n = 0 ? $s : $f($s & $s, $n - 1) }; $f('x', 23))",
            ": Expression evaluation memory limit exceeded: Check for excessive memory usage",
        ),
    ],
)
def test_failure_is_worded_as_on_aws(text: str, ending: str) -> None:
    with pytest.raises(ExpressionFailed) as failed:
        evaluate(text)
    assert failed.value.ending == ending


@pytest.mark.parametrize(
    "text",
    [
        "1 / 0",
        "function($x) { $x }",
        "$partition([1], 0)",
        "$range(1, 2, 0)",
        "$hash('a', 'CRC')",
        "$parse('{')",
        "($f := function($x) { $f($x + 1) }; $f(1))",
        "($f := function($x) { 1 + $f($x + 1) }; $f(1))",
        "1" + "+1" * 200,
    ],
)
def test_evaluation_that_has_no_value_fails(text: str) -> None:
    with pytest.raises(ExpressionFailed):
        compile_expression(text).evaluate({}, SeededIds(1))


@pytest.mark.parametrize(
    ("text", "message", "code"),
    [
        ("$x[1,2)", 'Expected "]", got ","', INVALID),
        ('"unterminated', "String literal must be terminated by a matching quote", INVALID),
        ("1 +", "Unexpected end of expression", INVALID),
        ('{"a":}', 'The symbol "}" cannot be used as a unary operator', INVALID),
        ("$x :=", "Unexpected end of expression", INVALID),
        ('$match("a", /abc', "No terminating / in regular expression", INVALID),
        ("phone", "Reference to 'phone' at the top level is not supported.", UNSUPPORTED),
        ("{'a': phone.number}", "Reference to 'phone' at the top level is not supported.", UNSUPPORTED),
        ("$sum(items.n)", "Reference to 'items' at the top level is not supported.", UNSUPPORTED),
        ("$", "Reference to '$' at the top level is not supported.", UNSUPPORTED),
        ("$$.a", "Reference to '$$' at the top level is not supported.", UNSUPPORTED),
    ],
)
def test_text_that_is_refused_is_refused_with_awss_diagnostic(text: str, message: str, code: str) -> None:
    with pytest.raises(ExpressionInvalid) as refused:
        compile_expression(text)
    assert (str(refused.value), refused.value.code) == (message, code)


def test_expression_tells_the_variables_it_reads() -> None:
    assert compile_expression("$x + $sum($states.input.items[n > $limit].n)").variables == {
        "x",
        "sum",
        "states",
        "limit",
    }
    assert compile_expression("$states.input").variables == {"states"}


def test_one_expression_may_be_evaluated_by_many_threads_at_once() -> None:
    expression = compile_expression("$map([1..20], function($i) { $i + $x }) ~> $sum()")
    answers: list[Any] = []

    def work(x: int) -> None:
        answers.extend((x, expression.evaluate({"x": x}, SeededIds(x))) for _ in range(20))

    threads = [threading.Thread(target=work, args=(x,)) for x in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 80
    assert all(answer == 210 + 20 * x for x, answer in answers)


scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, "", "a", "null"])
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=12,
)


@given(document=documents, keys=st.lists(st.sampled_from(["a", "b", "c"]), max_size=3))
def test_path_of_names_gives_what_the_engine_gives(document: Any, keys: list[str]) -> None:
    expression = compile_expression(".".join(["$v", *keys]))
    quick = expression.evaluate({"v": document}, SeededIds(1))
    slow = expression.parsed().evaluate({"v": document}, SeededIds(1), None)
    assert quick is UNDEFINED if slow is UNDEFINED else quick == slow


@given(document=documents, keys=st.lists(st.sampled_from(["a", "b", "c"]), max_size=3))
def test_path_within_an_expression_gives_what_it_gives_alone(document: Any, keys: list[str]) -> None:
    path = ".".join(["$v", *keys])
    alone = compile_expression(path).evaluate({"v": document}, SeededIds(1))
    boxed = compile_expression(f"{{'k': {path}}}").evaluate({"v": document}, SeededIds(1))
    assert boxed == ({} if alone is UNDEFINED else {"k": alone})


PIECES = """$v 1 'a' null + & .a [0] [a=1] ( ) { } : , ~> $sum $count( function($x){$x} .. ? := ; * ** ^( /a/ ` % @$i
#$i | in $map($v, $each( $string( $formatNumber(1, $match( $sift( and or not - . [ ] true"""
pieces = st.sampled_from(PIECES.split())


@settings(max_examples=200, deadline=None)
@given(text=st.lists(pieces, max_size=7).map("".join) | st.text(max_size=12), document=documents)
def test_any_text_gives_json_or_one_of_our_errors(text: str, document: Any) -> None:
    try:
        expression = compile_expression(text)
    except ExpressionInvalid:
        return
    try:
        result = expression.evaluate({"v": document}, SeededIds(1), now=0.0)
    except ExpressionFailed:
        return
    assert result is UNDEFINED or is_json(result)


def is_json(value: Any) -> bool:
    if type(value) is list:
        return all(is_json(inner) for inner in value)
    if type(value) is dict:
        return all(type(name) is str and is_json(inner) for name, inner in value.items())
    return value is None or type(value) in (str, bool, int) or (type(value) is float and math.isfinite(value))
