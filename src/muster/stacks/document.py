"""Template text ↔ plain data: JSON, or YAML with CloudFormation's short forms (`!Ref`, `!Sub`, …).

Keeps true: reading never makes anything but plain data (no YAML object tags), a short form reads exactly as its long
form, and keys are texts. Does not know what a template means.
"""

from collections.abc import Mapping
from typing import Any

import orjson
import yaml

from muster.stacks.problem import Problem

# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/intrinsic-function-reference.html
_SHORT = (
    "And Base64 Cidr Equals FindInMap GetAZs If ImportValue Join Length Not Or Select Split Sub ToJsonString Transform"
)
_LONG = {"Ref": "Ref", "Condition": "Condition", **{name: f"Fn::{name}" for name in _SHORT.split()}}

# Far deeper than any template that means something; what follows walks templates recursively.
LEVELS_MAX = 100
TOO_DEEP = "Template format error: the template is nested too deeply."


class _Loader(yaml.SafeLoader):
    """Safe YAML without dates: CloudFormation reads 2012-10-17 as the text that it is."""


def _plain(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    assert isinstance(node, yaml.MappingNode)
    return loader.construct_mapping(node, deep=True)


def _short(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
    value = _plain(loader, node)
    if suffix == "GetAtt":
        return {"Fn::GetAtt": value.split(".", 1) if isinstance(value, str) else value}
    if suffix not in _LONG:
        raise Problem(f"Template format error: unknown function !{suffix} at line {node.start_mark.line + 1}.")
    return {_LONG[suffix]: value}


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    made: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        # CloudFormation's keys are texts, also where YAML sees a number: an account id, say.
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else loader.construct_object(key_node, deep=True)
        if key in made:
            raise Problem(f"Template format error: duplicate key {key} at line {key_node.start_mark.line + 1}.")
        made[key] = loader.construct_object(value_node, deep=True)
    return made


def _yaml(text: str, aliases: bool) -> Any:
    for event in () if aliases else yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise Problem(
                "Template error: YAML aliases are not allowed in CloudFormation templates:"
                f" *{event.anchor} at line {event.start_mark.line + 1 if event.start_mark else 0}."
            )
    return yaml.load(text, _Loader)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_multi_constructor("!", _short)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def read(text: str, *, aliases: bool = False) -> dict[str, Any]:
    """The template that `text` holds; Problem when it holds none.

    CloudFormation takes no YAML aliases; a client that writes the template anew before it is sent may allow them.
    """
    if not text.strip():
        raise Problem("Template format error: the template is empty.")
    try:
        found = orjson.loads(text) if text.lstrip().startswith("{") else _yaml(text, aliases)
    except orjson.JSONDecodeError as error:
        try:
            found = _yaml(text, aliases)
        except yaml.YAMLError:
            raise Problem(f"Template format error: JSON not well-formed ({error}).") from None
    except yaml.YAMLError as error:
        raise Problem(f"Template format error: YAML not well-formed ({' '.join(str(error).split())}).") from None
    except RecursionError:
        raise Problem(TOO_DEEP) from None
    if not isinstance(found, dict):
        raise Problem("Template format error: the template is not an object.")
    if _deeper(found, LEVELS_MAX):
        raise Problem(TOO_DEEP)
    return found


def _deeper(value: Any, levels: int) -> bool:
    """Whether a value is nested more than `levels` deep; without recursion, which is what this guards."""
    row = [value]
    for _ in range(levels):
        row = [
            inner
            for outer in row
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not row:
            return False
    return True


def write(template: Mapping[str, Any]) -> str:
    """The template as JSON text, keys in their own order."""
    return orjson.dumps(template, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
