"""State machines, their revisions, versions, aliases and tags."""

from typing import Any

import orjson
import pytest

from muster.errors import ServiceError
from muster.services.stepfunctions import SERVICE
from tests.services.stepfunctions.machinery import ROLE, Machinery, one, passing


def text(result: Any = None) -> str:
    return orjson.dumps(one("A", passing(Result=result))).decode()


def refused(code: str, world: Machinery, operation: str, **request: Any) -> str:
    with pytest.raises(ServiceError) as refusal:
        world.call("stepfunctions", operation, **request)
    assert refusal.value.code == code
    return refusal.value.message


def test_creating_the_same_machine_again_answers_the_same_and_another_is_refused(world: Machinery) -> None:
    first = world.call("stepfunctions", "CreateStateMachine", name="m", definition=text(1), roleArn=ROLE)
    world.clock.advance(5)
    assert world.call("stepfunctions", "CreateStateMachine", name="m", definition=text(1), roleArn=ROLE) == first
    refused("StateMachineAlreadyExists", world, "CreateStateMachine", name="m", definition=text(2), roleArn=ROLE)


def test_machines_are_listed_by_name_page_by_page(world: Machinery) -> None:
    for _ in range(5):
        world.create(one("A", passing()))
    page = world.call("stepfunctions", "ListStateMachines", maxResults=3)
    rest = world.call("stepfunctions", "ListStateMachines", maxResults=3, nextToken=page["nextToken"])
    names = [row["name"] for row in page["stateMachines"] + rest["stateMachines"]]
    assert names == [f"machine-{n}" for n in range(1, 6)]
    refused("InvalidToken", world, "ListStateMachines", nextToken="made up")


def test_update_without_change_makes_no_revision(world: Machinery) -> None:
    machine = world.create(one("A", passing(Result=1)))
    assert "revisionId" not in world.call("stepfunctions", "UpdateStateMachine", stateMachineArn=machine, roleArn=ROLE)
    changed = world.call("stepfunctions", "UpdateStateMachine", stateMachineArn=machine, definition=text(2))
    again = world.call("stepfunctions", "UpdateStateMachine", stateMachineArn=machine, definition=text(2))
    assert changed["revisionId"] == again["revisionId"]
    assert world.call("stepfunctions", "DescribeStateMachine", stateMachineArn=machine)["definition"] == text(2)


def test_alias_routes_to_its_versions_by_weight(world: Machinery) -> None:
    machine = world.create(one("A", passing(Result=1)), publish=True)
    world.call("stepfunctions", "UpdateStateMachine", stateMachineArn=machine, definition=text(2), publish=True)
    routes = [{"stateMachineVersionArn": f"{machine}:{n}", "weight": 50} for n in (1, 2)]
    alias = world.call("stepfunctions", "CreateStateMachineAlias", name="live", routingConfiguration=routes)
    outputs = [world.output(world.start(alias["stateMachineAliasArn"])) for _ in range(20)]
    assert set(outputs) == {1, 2}
    described = world.described(world.start(f"{machine}:1"))
    assert described["stateMachineVersionArn"] == f"{machine}:1"
    refused("ConflictException", world, "DeleteStateMachineVersion", stateMachineVersionArn=f"{machine}:1")


def test_deleted_machine_is_gone_and_its_executions_run_on(world: Machinery) -> None:
    machine = world.create(one("Sleep", {"Type": "Wait", "Seconds": 5, "End": True}))
    execution = world.start(machine)
    world.call("stepfunctions", "DeleteStateMachine", stateMachineArn=machine)
    refused("StateMachineDoesNotExist", world, "StartExecution", stateMachineArn=machine)
    world.pass_time(5)
    assert world.status(execution) == "SUCCEEDED"


def test_tags_are_set_replaced_and_taken_away(world: Machinery) -> None:
    machine = world.create(one("A", passing()), tags=[{"key": "a", "value": "1"}])
    world.call("stepfunctions", "TagResource", resourceArn=machine, tags=[{"key": "a", "value": "2"}, {"key": "b"}])
    world.call("stepfunctions", "UntagResource", resourceArn=machine, tagKeys=["b", "c"])
    tags = world.call("stepfunctions", "ListTagsForResource", resourceArn=machine)["tags"]
    assert tags == [{"key": "a", "value": "2"}]
    many = [{"key": str(n), "value": ""} for n in range(51)]
    refused("TooManyTags", world, "TagResource", resourceArn=machine, tags=many)


def test_every_operation_is_refused_a_parameter_it_does_not_know(world: Machinery) -> None:
    for name in SERVICE.operations:
        refused("NotImplemented", world, name, nonsense=1)
