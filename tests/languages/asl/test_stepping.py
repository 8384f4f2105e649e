"""What states do: data flow, variables, retries and catches, branches and iterations."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.languages.asl.messages import Failed
from tests.languages.asl.driving import Driver

TASK = "arn:aws:lambda:us-east-1:000000000000:function:f"


def machine(start: str = "A", **states: Any) -> dict[str, Any]:
    return {"StartAt": start, "States": states}


def ending(**members: Any) -> dict[str, Any]:
    return {"Type": "Pass", "End": True, **members}


def task(**members: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": TASK, **({} if "Next" in members else {"End": True}), **members}


def failing(*errors: str | None) -> Callable[[Any], Any]:
    """A worker that fails with each of these errors in turn (None: succeeds), and succeeds from then on."""
    left = list(errors)

    def work(parameters: Any) -> Any:
        error = left.pop(0) if left else None
        return {"ok": True} if error is None else Failed(0, 0, error, f"cause of {error}")

    return work


def test_data_flows_in_awss_order() -> None:
    state = task(
        InputPath="$.in",
        Parameters={"v.$": "$.x", "whole.$": "$$.Execution.Input.other"},
        ResultSelector={"sum.$": "States.MathAdd($.v, $.whole)"},
        ResultPath="$.result",
        OutputPath="$.result",
    )
    run = Driver(machine(A=state), {"in": {"x": 1}, "other": 2})
    assert run.calls == [{"v": 1, "whole": 2}]
    assert run.output == {"sum": 3}


def test_null_paths_drop_what_they_stand_for() -> None:
    assert Driver(machine(A=task(ResultPath=None)), {"kept": 1}).output == {"kept": 1}
    assert Driver(machine(A=ending(InputPath=None)), {"dropped": 1}).output == {}
    assert Driver(machine(A=ending(OutputPath=None)), {"dropped": 1}).output == {}


@pytest.mark.parametrize("field", ["$.nope.deep", "States.Format('{}', $.nope)"])
def test_path_that_finds_nothing_fails_with_path_field_and_input_named(field: str) -> None:
    """sfn-jsonpath-01"""
    error, cause = Driver(machine(A=ending(Parameters={"missing.$": field})), {"other": 1}).failure
    assert error == "States.Runtime"
    assert "$.nope" in (cause or "")
    assert "missing.$" in (cause or "")
    assert '{"other":1}' in (cause or "")


def test_all_expressions_of_a_state_see_the_variables_at_its_entry() -> None:
    """sfn-jsonata-04"""
    first = {"Type": "Pass", "Assign": {"x": 3, "y": 6}, "Next": "Swap"}
    swap = {
        "Type": "Pass",
        "Assign": {"x": "{% $y %}", "y": "{% $x %}"},
        "Output": {"x": "{% $x %}"},
        "Next": "Look",
    }
    look = {
        "Type": "Pass",
        "Output": {"before": "{% $states.input.x %}", "x": "{% $x %}", "y": "{% $y %}"},
        "End": True,
    }
    definition = {"QueryLanguage": "JSONata", **machine(A=first, Swap=swap, Look=look)}
    assert Driver(definition).output == {"before": 3, "x": 6, "y": 3}


def test_jsonata_reaches_arguments_assign_and_condition() -> None:
    """sfn-jsonata-02, sfn-jsonata-03"""
    assign = {"Type": "Pass", "Assign": {"myList": "{% $states.input.items %}"}, "Next": "Count"}
    count = {
        "Type": "Choice",
        "Choices": [{"Condition": "{% $count($myList) = 2 %}", "Next": "Call"}],
        "Default": "Other",
    }
    call = task(Arguments={"total": "{% $states.input.items.n %}"}, Output="{% $states.result %}")
    definition = {"QueryLanguage": "JSONata", **machine(A=assign, Count=count, Call=call, Other=ending())}
    run = Driver(definition, {"items": [{"n": 3}, {"n": 9}]})
    assert run.output == {"total": [3, 9]}


def test_jsonata_has_the_functions_that_step_functions_adds_and_not_eval() -> None:
    """sfn-jsonata-06"""
    output = {
        "uuid": "{% $length($uuid()) %}",
        "partition": "{% $partition([1..5], 2) %}",
        "range": "{% $range(0, 10, 3) %}",
        "hash": "{% $length($hash('a', 'SHA-256')) %}",
        "random": "{% $random(7) < 1 %}",
        "parse": "{% $parse('{\"a\":1}').a %}",
    }
    run = Driver({"QueryLanguage": "JSONata", **machine(A=ending(Output=output))})
    assert run.output == {
        "uuid": 36,
        "partition": [[1, 2], [3, 4], [5]],
        "range": [0, 3, 6, 9],
        "hash": 64,
        "random": True,
        "parse": 1,
    }
    run = Driver({"QueryLanguage": "JSONata", **machine(A=ending(Output="{% $eval('1') %}"))})
    assert run.failure[0] == "States.QueryEvaluationError"


def test_jsonata_error_names_the_field_and_is_written_down() -> None:
    definition = {"QueryLanguage": "JSONata", **machine(A=ending(Output={"a": "{% $states.input.nope %}"}))}
    run = Driver(definition)
    error, cause = run.failure
    assert error == "States.QueryEvaluationError"
    assert "'Output/a'" in (cause or "")
    assert run.types[-2:] == ["EvaluationFailed", "ExecutionFailed"]


def test_retry_has_its_defaults() -> None:
    """sfn-retry-01"""
    run = Driver(
        machine(A=task(Parameters={"count.$": "$$.State.RetryCount"}, Retry=[{"ErrorEquals": ["E"]}])),
        worker=failing("E", "E"),
    )
    assert run.output == {"ok": True}
    assert run.waits == [1, 2]
    assert [call["count"] for call in run.calls] == [0, 1, 2]


def test_each_retrier_counts_for_itself_and_an_exhausted_one_falls_through_to_catch() -> None:
    """sfn-retry-01"""
    retry = [
        {"ErrorEquals": ["A"], "MaxAttempts": 2, "IntervalSeconds": 1, "BackoffRate": 1},
        {"ErrorEquals": ["B"], "MaxAttempts": 1, "IntervalSeconds": 5},
    ]
    catch = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Caught"}]
    definition = machine(A=task(Retry=retry, Catch=catch), Caught=ending())
    run = Driver(definition, worker=failing("A", "B", "A", "B"))
    assert run.waits == [1, 5, 1]
    assert run.output == {"error": {"Error": "B", "Cause": "cause of B"}}


def test_delay_is_capped_and_jitter_spreads_it() -> None:
    """sfn-retry-01"""
    retry = [{"ErrorEquals": ["E"], "IntervalSeconds": 2, "BackoffRate": 3, "MaxDelaySeconds": 10, "MaxAttempts": 4}]
    assert Driver(machine(A=task(Retry=retry)), worker=failing(*"EEEE")).waits == [2, 6, 10, 10]
    jittered = [{**retry[0], "JitterStrategy": "FULL"}]
    waits = Driver(machine(A=task(Retry=jittered)), worker=failing(*"EEEE")).waits
    assert all(0 <= wait < most for wait, most in zip(waits, [2, 6, 10, 10], strict=True))
    assert waits != [2, 6, 10, 10]


def test_runtime_errors_are_neither_retried_nor_caught() -> None:
    state = ending()
    broken = task(
        Parameters={"a.$": "$.nope"},
        Retry=[{"ErrorEquals": ["States.ALL"]}],
        Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Caught"}],
    )
    run = Driver(machine(A=broken, Caught=state))
    assert run.failure[0] == "States.Runtime"
    assert run.waits == []


def test_runtime_error_in_a_branch_ends_the_execution_at_once() -> None:
    broken = machine("B", B=ending(Parameters={"a.$": "$.nope"}))
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]
    parallel = {"Type": "Parallel", "Branches": [broken], "Catch": catch, "End": True}
    run = Driver(machine(A=parallel, Caught=ending()))
    assert run.types[2:] == ["ParallelStateStarted", "PassStateEntered", "ExecutionFailed"]
    assert "executing the state 'B' (entered at the event id #4)" in (run.failure[1] or "")


def test_task_failed_stands_for_everything_but_timeouts() -> None:
    catch = [{"ErrorEquals": ["States.TaskFailed"], "Next": "Caught"}]
    definition = machine(A=task(Catch=catch, TimeoutSeconds=5), Caught=ending(Result="caught"))
    assert Driver(definition, worker=failing("Mine")).output == "caught"
    assert Driver(definition, worker=lambda parameters: None).failure == ("States.Timeout", None)


def test_result_over_the_limit_fails_and_output_over_it_cannot_be_caught() -> None:
    """sfn-limits-02, sfn-limits-03"""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]
    merged = machine(A=task(ResultPath="$.result", Catch=catch), Caught=ending())
    run = Driver(merged, {"input": "y" * 5_000}, worker=lambda parameters: "x" * 262_000)
    assert run.failure[0] == "States.DataLimitExceeded"
    run = Driver(machine(A=task(Catch=catch), Caught=ending()), worker=lambda parameters: "x" * 300_000)
    assert run.failure[0] == "States.DataLimitExceeded"
    assert "TaskFailed" not in run.types
    assert "LambdaFunctionFailed" in run.types


def test_choice_without_a_match_and_without_a_default_fails() -> None:
    choice = {"Type": "Choice", "Choices": [{"Variable": "$.a", "NumericEquals": 1, "Next": "B"}]}
    assert Driver(machine(A=choice, B=ending()), {"a": 2}).failure[0] == "States.NoChoiceMatched"


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ({"Variable": "$.s", "StringEquals": "text"}, True),
        ({"Variable": "$.s", "StringMatches": "t*t"}, True),
        ({"Variable": "$.star", "StringMatches": r"a\*b"}, True),
        ({"Variable": "$.s", "StringMatches": r"t\*t"}, False),
        ({"Variable": "$.n", "NumericGreaterThanEquals": 3}, True),
        ({"Variable": "$.s", "NumericEquals": 3}, False),
        ({"Variable": "$.n", "NumericLessThanPath": "$.m"}, True),
        ({"Variable": "$.b", "BooleanEquals": True}, True),
        ({"Variable": "$.t", "TimestampLessThan": "2024-01-01T00:00:00+01:00"}, True),
        ({"Variable": "$.nothing", "IsNull": True}, True),
        ({"Variable": "$.absent", "IsPresent": False}, True),
        ({"Variable": "$.absent", "IsPresent": True}, False),
        ({"Variable": "$.t", "IsTimestamp": True}, True),
        ({"Variable": "$.b", "IsNumeric": False}, True),
        ({"And": [{"Variable": "$.n", "IsNumeric": True}, {"Variable": "$.n", "NumericEquals": 3}]}, True),
        ({"Or": [{"Variable": "$.n", "NumericEquals": 4}, {"Variable": "$.n", "NumericEquals": 3}]}, True),
        ({"Not": {"Variable": "$.n", "NumericEquals": 3}}, False),
    ],
)
def test_choice_rules_hold_as_the_language_says(rule: dict[str, Any], holds: bool) -> None:
    choice = {"Type": "Choice", "Choices": [{**rule, "Next": "Yes"}], "Default": "No"}
    document = {
        "s": "text",
        "star": "a*b",
        "n": 3,
        "m": 4.5,
        "b": True,
        "t": "2023-12-31T22:59:59Z",
        "nothing": None,
    }
    run = Driver(machine(A=choice, Yes=ending(Result=True), No=ending(Result=False)), document)
    assert run.output is holds


def test_branches_share_the_input_and_their_outputs_stand_in_order() -> None:
    sleep = {"Type": "Wait", "Seconds": 5, "Next": "D"}
    branches = [machine("B", B=task()), machine("C", C=sleep, D=ending(Result="late"))]
    parallel = {"Type": "Parallel", "Branches": branches, "End": True}
    assert Driver(machine(A=parallel), {"x": 1}).output == [{"x": 1}, "late"]


def test_failing_branch_stops_the_others() -> None:
    fail = {"Type": "Fail", "Error": "Bad", "Cause": "x"}
    slow = {"Type": "Wait", "Seconds": 500, "End": True}
    catch = [{"ErrorEquals": ["Bad"], "Next": "Caught"}]
    parallel = {
        "Type": "Parallel",
        "Branches": [machine("B", B=slow), machine("C", C=fail)],
        "Catch": catch,
        "End": True,
    }
    run = Driver(machine(A=parallel, Caught=ending(Result="caught")))
    assert run.output == "caught"
    assert run.now == 1_735_000_000
    assert "WaitStateAborted" in run.types
    assert "ParallelStateFailed" in run.types


def test_no_more_iterations_run_than_allowed() -> None:
    processor = machine(Sleep={"Type": "Wait", "Seconds": 10, "End": True}, start="Sleep")
    state = {"Type": "Map", "MaxConcurrency": 2, "ItemProcessor": processor, "End": True}
    run = Driver(machine(A=state), [1, 2, 3, 4, 5])
    assert run.output == [1, 2, 3, 4, 5]
    assert run.now - 1_735_000_000 == 30


def test_iteration_sees_its_item_and_its_index() -> None:
    processor = machine(One=ending(Parameters={"inside.$": "$$.Map.Item.Index", "v.$": "$.v"}), start="One")
    selector = {"v.$": "$$.Map.Item.Value", "from.$": "$.from"}
    state = {"Type": "Map", "ItemsPath": "$.items", "ItemSelector": selector, "ItemProcessor": processor, "End": True}
    run = Driver(machine(A=state), {"items": ["a", "b"], "from": "x"})
    assert run.output == [{"inside": 0, "v": "a"}, {"inside": 1, "v": "b"}]


def test_inner_scope_reads_outer_variables_and_keeps_its_own() -> None:
    processor = machine(
        One=ending(Assign={"mine.$": "$"}, Parameters={"sum.$": "States.MathAdd($, $base)"}), start="One"
    )
    assign = {"Type": "Pass", "Assign": {"base": 10}, "Next": "Each"}
    each = {"Type": "Map", "ItemProcessor": processor, "Next": "Look"}
    look = ending(Parameters={"outer.$": "$mine"})
    run = Driver(machine(A=assign, Each=each, Look=look), [1, 2])
    assert run.failure[0] == "States.Runtime"
    assert "$mine" in (run.failure[1] or "")


def test_wait_waits_until_its_instant() -> None:
    until = {"Type": "Wait", "TimestampPath": "$.at", "End": True}
    run = Driver(machine(A=until), {"at": "2024-12-24T00:27:00Z"})
    assert run.now == 1_735_000_020


def test_long_run_is_cut_and_goes_on() -> None:
    states = {f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(40)}
    definition = {"StartAt": "S0", "States": {**states, "S40": ending()}}
    cut, whole = Driver(definition, budget=7), Driver(definition)
    assert cut.types == whole.types
    assert cut.output == whole.output


def test_last_event_of_a_full_history_is_the_failure() -> None:
    """sfn-limits-01"""
    again = {"Type": "Choice", "Choices": [{"Variable": "$.stop", "IsPresent": True, "Next": "C"}], "Default": "A"}
    loop = machine(A={"Type": "Pass", "Next": "B"}, B=again, C=ending())
    run = Driver(loop, history_max=100)
    assert len(run.entries) == 100
    assert run.types[-1] == "ExecutionFailed"
    assert run.failure[0] == "States.Runtime"
