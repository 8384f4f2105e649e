"""SAM templates become CloudFormation templates, by AWS's own translator, without a network.

The translator is slow to import, so it is imported when the first SAM template comes. Beside it stand what AWS's
service does around it: mistakes named with their place and the right word.
https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-specification.html
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.stacks.problem import Problem, suggestion
from muster.stacks.template import SERVERLESS

_MACHINE = "AWS::Serverless::StateMachine"


@dataclass(frozen=True, slots=True)
class _Session:
    """What the translator wants of a boto3 session: the region alone."""

    region_name: str


def translate(document: Mapping[str, Any], parameters: Mapping[str, str], region: str) -> dict[str, Any]:
    """The CloudFormation template that a SAM template stands for; Problem lists all that the translator refuses.

    A state machine may carry its definition as text in `DefinitionString`, beside SAM's own properties: that is how
    a packaged template holds a definition file word by word.
    """
    from samtranslator.model.exceptions import ExceptionWithMessage, InvalidDocumentException
    from samtranslator.parser.parser import Parser
    from samtranslator.translator.translator import Translator

    working = copy.deepcopy(dict(document))
    _check_words(working)
    texts = _take_texts(working)
    translator = Translator({}, Parser(), boto_session=_Session(region))  # type: ignore[arg-type,unused-ignore]
    try:
        made: dict[str, Any] = translator.translate(working, dict(parameters))
    except InvalidDocumentException as error:
        raise Problem(_told(error.message, [cause.message for cause in error.causes])) from None
    except ExceptionWithMessage as error:
        raise Problem(_told(error.message, [])) from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # The translator takes some malformed values for granted; what it stumbles over is the template's, not ours.
        raise Problem(_told(f"a value has a form that SAM does not know ({error!r}).", [])) from error
    finally:
        translator.metrics.publish()  # to nobody; else the translator logs a warning when it is collected
    for logical_id, text in texts.items():
        made["Resources"][logical_id]["Properties"]["DefinitionString"] = text
    made.pop("Transform", None)
    made.pop("Globals", None)
    return made


def _told(message: str, causes: list[str]) -> str:
    return " ".join([f"Transform {SERVERLESS} failed with: {message}", *sorted(causes)])


def _take_texts(document: dict[str, Any]) -> dict[str, Any]:
    """Remove the definitions given as text, so that the translator sees what it knows; it leaves logical ids alone."""
    texts = {}
    for logical_id, resource in document["Resources"].items():
        properties = resource.get("Properties") or {}
        if resource.get("Type") == _MACHINE and "DefinitionString" in properties:
            if "Definition" in properties or "DefinitionUri" in properties:
                raise Problem(
                    f"Resource {logical_id} has DefinitionString beside Definition or DefinitionUri: give one of them."
                )
            texts[logical_id] = properties.pop("DefinitionString")
            properties["Definition"] = {"StartAt": logical_id}
    return texts


def _check_words(document: Mapping[str, Any]) -> None:
    """Refuse unknown properties of SAM's resources and their events, with the right word where one is near."""
    from samtranslator.model import sam_resources

    classes: list[Any] = [found for found in vars(sam_resources).values() if hasattr(found, "property_types")]
    named = {str(getattr(found, "resource_type", "")): found for found in classes}
    kinds = {name: found for name, found in named.items() if name.startswith("AWS::Serverless::")}
    for logical_id, resource in document["Resources"].items():
        kind = kinds.get(resource["Type"])
        if kind is None:
            if resource["Type"].startswith("AWS::Serverless::"):
                raise Problem(f"Muster does not support the resource type {resource['Type']} of resource {logical_id}.")
            continue
        properties = resource.get("Properties") or {}
        allowed = set(kind.property_types)
        for name in properties:
            if name not in allowed and not (resource["Type"] == _MACHINE and name == "DefinitionString"):
                raise Problem(
                    f"Resource {logical_id} ({resource['Type']}) has an unknown property {name}."
                    + suggestion(str(name), allowed)
                )
        events = properties.get("Events")
        if isinstance(events, dict):
            for event, body in events.items():
                _check_event(logical_id, str(event), body, kind)


def _check_event(logical_id: str, event: str, body: Any, kind: Any) -> None:
    place = f"Event {event} of resource {logical_id}"
    if not isinstance(body, dict) or not isinstance(body.get("Type"), str):
        raise Problem(f"{place} must have a Type.")
    for attribute in body:
        if attribute not in ("Type", "Properties"):
            raise Problem(f"{place} has an unknown attribute {attribute}: its properties belong under Properties.")
    source = _source(kind, body["Type"])
    if source is None:
        raise Problem(f"{place} has a type {body['Type']} that {kind.resource_type} does not know.")
    allowed = set(source.property_types)
    for name in body.get("Properties") or {}:
        if name not in allowed:
            raise Problem(f"{place} ({body['Type']}) has an unknown property {name}." + suggestion(str(name), allowed))


def _source(kind: Any, name: str) -> Any:
    """The translator's class for an event type of a resource."""
    for resolver in (getattr(kind, "event_resolver", None), getattr(kind, "event_type_resolver", None)):
        found = getattr(resolver, "resource_types", {}).get(name)
        if found is not None:
            return found
    return None
