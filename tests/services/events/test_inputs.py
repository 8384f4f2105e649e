"""What targets receive: templates stay JSON whatever the event holds."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.errors import ServiceError
from muster.services.events import inputs

MATCHED = inputs.Matched("arn:aws:events:us-east-1:000000000000:rule/r", "r", "2026-12-01T00:00:00Z")


def event(**detail: Any) -> dict[str, Any]:
    return {"version": "0", "id": "1", "source": "app", "resources": ["a", "b"], "detail": detail}


def transformed(template: str, paths: dict[str, str], detail: dict[str, Any]) -> str:
    target = {"Id": "t", "InputTransformer": {"InputPathsMap": paths, "InputTemplate": template}}
    inputs.check(target)
    return inputs.render(target, event(**detail), MATCHED)


def test_a_placeholder_in_a_string_is_text_and_an_object_is_embedded() -> None:
    text = transformed(
        '{"at": "files/<key>", "all": <body>}',
        {"key": "$.detail.object.key", "body": "$.detail"},
        {"object": {"key": "in/a.csv"}},
    )
    assert json.loads(text) == {"at": "files/in/a.csv", "all": {"object": {"key": "in/a.csv"}}}


@given(st.recursive(st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(), lambda v: st.lists(v)))
def test_a_json_template_stays_json(value: Any) -> None:
    text = transformed('{"in": "<v>", "as": <v>, "none": <w>}', {"v": "$.detail.v", "w": "$.detail.w"}, {"v": value})
    filled = json.loads(text)
    assert filled["as"] == value
    assert filled["in"] == (
        value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    )
    assert filled["none"] is None


def test_reserved_variables_stand_for_the_rule_and_the_event() -> None:
    text = transformed('{"rule": <aws.events.rule-name>, "whole": <aws.events.event.json>}', {}, {"a": 1})
    assert json.loads(text) == {"rule": "r", "whole": event(a=1)}


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("$", event(a=[{"b": 1}, {"b": 2}])),
        ("$.detail.a[0].b", 1),
        ("$.detail.a[*].b", [1, 2]),
        ("$['detail']['a'][-1]", {"b": 2}),
        ("$.resources[1]", "b"),
        ("$.detail.nowhere", None),
    ],
)
def test_an_input_path_takes_a_part(path: str, part: Any) -> None:
    target = {"Id": "t", "InputPath": path}
    inputs.check(target)
    assert json.loads(inputs.render(target, event(a=[{"b": 1}, {"b": 2}]), MATCHED)) == part


@pytest.mark.parametrize(
    "target",
    [
        {"InputPath": "detail"},
        {"InputPath": "$.a["},
        {"Input": "{"},
        {"Input": "{}", "InputPath": "$"},
        {"InputTransformer": {"InputTemplate": "<unknown>"}},
        {"InputTransformer": {"InputPathsMap": {"a": "x"}, "InputTemplate": "<a>"}},
    ],
)
def test_inputs_that_make_no_sense_are_refused(target: dict[str, Any]) -> None:
    with pytest.raises(ServiceError) as refused:
        inputs.check({"Id": "t", **target})
    assert refused.value.code == "ValidationException"
