"""AWS::StepFunctions: state machines with their definition substitutions, versions, aliases and activities."""

import re
from typing import Any

import orjson
import yaml

from muster.stacks.problem import Problem
from muster.stacks.resources.kind import (
    Kind,
    Made,
    Properties,
    Work,
    changed,
    object_in,
    properties,
    set_tags,
    tag_list,
    text_in,
)

_TOKEN = re.compile(r"\$\{([A-Za-z0-9_.:]+)\}")


def definition_of(work: Work, new: Properties) -> str:
    """The definition as JSON text, every `${Token}` in it replaced; Problem names the tokens that have no value.

    https://docs.aws.amazon.com/step-functions/latest/dg/concepts-sam-sfn.html
    """
    given = [name for name in ("Definition", "DefinitionString", "DefinitionS3Location") if name in new]
    if len(given) != 1:
        raise Problem("Give exactly one of the properties Definition, DefinitionString and DefinitionS3Location.")
    value = _stored(work, new[given[0]]) if given == ["DefinitionS3Location"] else new[given[0]]
    text = value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    values = object_in(new, "DefinitionSubstitutions") or {}
    missing = sorted({token for token in _TOKEN.findall(text) if token not in values})
    if missing:
        named = ", ".join(f"${{{token}}}" for token in missing)
        raise Problem(f"The definition has {named} without a value in DefinitionSubstitutions.")
    return _as_json(_TOKEN.sub(lambda found: text_in(values, found[1]) or "", text))


def _stored(work: Work, place: Any) -> str:
    """The text of a definition that lies in a bucket."""
    if not isinstance(place, dict) or not {"Bucket", "Key"} <= place.keys() <= {"Bucket", "Key", "Version"}:
        raise Problem("The property DefinitionS3Location takes Bucket, Key and Version.")
    return work.stored(place["Bucket"], place["Key"], place.get("Version")).decode()


def _as_json(text: str) -> str:
    """The text itself when it is JSON, and as JSON when it is YAML; anything else is the states service's to refuse."""
    if text.lstrip().startswith("{"):
        return text
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Problem(f"The definition is neither JSON nor YAML ({' '.join(str(error).split())}).") from None
    return orjson.dumps(found, option=orjson.OPT_NON_STR_KEYS).decode() if isinstance(found, dict) else text


def _create(work: Work, new: Properties) -> Made:
    name = new.get("StateMachineName") or work.name(80)
    machine = work.arn("states", f"stateMachine:{name}")
    work.must_be_new(name, "stepfunctions", "DescribeStateMachine", stateMachineArn=machine)
    answer = work.call(
        "stepfunctions",
        "CreateStateMachine",
        name=name,
        definition=definition_of(work, new),
        roleArn=new.get("RoleArn"),
        type=new.get("StateMachineType"),
        loggingConfiguration=new.get("LoggingConfiguration"),
        tracingConfiguration=new.get("TracingConfiguration"),
        encryptionConfiguration=new.get("EncryptionConfiguration"),
        tags=tag_list(new),
    )
    return Made(answer["stateMachineArn"], {"Arn": answer["stateMachineArn"], "Name": name, **_revision(answer)})


def _revision(answer: dict[str, Any]) -> dict[str, str]:
    """CloudFormation calls a machine that was never updated INITIAL."""
    return {"StateMachineRevisionId": answer.get("revisionId") or "INITIAL"}


def _update(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    request: dict[str, Any] = {}
    if changed(old, new, "Definition", "DefinitionString", "DefinitionS3Location", "DefinitionSubstitutions"):
        request["definition"] = definition_of(work, new)
    if changed(old, new, "RoleArn"):
        request["roleArn"] = new.get("RoleArn")
    if changed(old, new, "LoggingConfiguration"):
        request["loggingConfiguration"] = new.get("LoggingConfiguration") or {"level": "OFF"}
    if changed(old, new, "TracingConfiguration"):
        request["tracingConfiguration"] = new.get("TracingConfiguration") or {"enabled": False}
    if changed(old, new, "EncryptionConfiguration"):
        request["encryptionConfiguration"] = new.get("EncryptionConfiguration") or {"type": "AWS_OWNED_KEY"}
    attributes = dict(made.attributes)
    if request:
        answer = work.call("stepfunctions", "UpdateStateMachine", stateMachineArn=made.physical_id, **request)
        attributes |= _revision(answer)
    set_tags(work, "stepfunctions", "resourceArn", made.physical_id, old, new, keys="tagKeys")
    return Made(made.physical_id, attributes)


def _delete(work: Work, made: Made, old: Properties) -> None:
    work.call("stepfunctions", "DeleteStateMachine", stateMachineArn=made.physical_id)


MACHINE = Kind(
    "AWS::StepFunctions::StateMachine",
    properties(
        "Definition DefinitionString DefinitionS3Location DefinitionSubstitutions RoleArn LoggingConfiguration"
        " TracingConfiguration EncryptionConfiguration Tags",
        replace="StateMachineName StateMachineType",
    ),
    _create,
    _update,
    _delete,
    frozenset(("Arn", "Name", "StateMachineRevisionId")),
    required=("RoleArn",),
    name="StateMachineName",
)


def _publish(work: Work, new: Properties) -> Made:
    revision = new.get("StateMachineRevisionId")
    answer = work.call(
        "stepfunctions",
        "PublishStateMachineVersion",
        stateMachineArn=new.get("StateMachineArn"),
        revisionId=None if revision == "INITIAL" else revision,
        description=new.get("Description"),
    )
    return Made(answer["stateMachineVersionArn"], {"Arn": answer["stateMachineVersionArn"]})


def _delete_version(work: Work, made: Made, old: Properties) -> None:
    work.call("stepfunctions", "DeleteStateMachineVersion", stateMachineVersionArn=made.physical_id)


VERSION = Kind(
    "AWS::StepFunctions::StateMachineVersion",
    properties(replace="StateMachineArn StateMachineRevisionId Description"),
    _publish,
    delete=_delete_version,
    attributes=frozenset(("Arn",)),
    required=("StateMachineArn",),
)


def _routing(new: Properties) -> list[Any]:
    preference = object_in(new, "DeploymentPreference")
    if preference is None:
        routing = new.get("RoutingConfiguration")
        if not isinstance(routing, list):
            raise Problem("Give one of the properties RoutingConfiguration and DeploymentPreference.")
        return routing
    if preference.get("Type") != "ALL_AT_ONCE":
        raise Problem(
            f"Muster does not support the property DeploymentPreference of type {preference.get('Type')};"
            " supported is ALL_AT_ONCE."
        )
    return [{"StateMachineVersionArn": preference.get("StateMachineVersionArn"), "Weight": 100}]


def _create_alias(work: Work, new: Properties) -> Made:
    routing = _routing(new)
    name = new.get("Name") or work.name(80)
    answer = work.call(
        "stepfunctions",
        "CreateStateMachineAlias",
        name=name,
        description=new.get("Description"),
        routingConfiguration=routing,
    )
    return Made(answer["stateMachineAliasArn"], {"Arn": answer["stateMachineAliasArn"]})


def _update_alias(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    work.call(
        "stepfunctions",
        "UpdateStateMachineAlias",
        stateMachineAliasArn=made.physical_id,
        description=new.get("Description", ""),
        routingConfiguration=_routing(new),
    )
    return made


def _delete_alias(work: Work, made: Made, old: Properties) -> None:
    work.call("stepfunctions", "DeleteStateMachineAlias", stateMachineAliasArn=made.physical_id)


ALIAS = Kind(
    "AWS::StepFunctions::StateMachineAlias",
    properties("RoutingConfiguration DeploymentPreference Description", replace="Name"),
    _create_alias,
    _update_alias,
    _delete_alias,
    frozenset(("Arn",)),
    name="Name",
)


def _create_activity(work: Work, new: Properties) -> Made:
    answer = work.call("stepfunctions", "CreateActivity", name=new.get("Name"), tags=tag_list(new))
    return Made(answer["activityArn"], {"Arn": answer["activityArn"], "Name": new["Name"]})


def _update_activity(work: Work, made: Made, old: Properties, new: Properties) -> Made:
    set_tags(work, "stepfunctions", "resourceArn", made.physical_id, old, new, keys="tagKeys")
    return made


def _delete_activity(work: Work, made: Made, old: Properties) -> None:
    work.call("stepfunctions", "DeleteActivity", activityArn=made.physical_id)


ACTIVITY = Kind(
    "AWS::StepFunctions::Activity",
    properties("Tags", replace="Name"),
    _create_activity,
    _update_activity,
    _delete_activity,
    frozenset(("Arn", "Name")),
    required=("Name",),
    name="Name",
)

KINDS = (MACHINE, VERSION, ALIAS, ACTIVITY)
