"""What the names in a template mean while it is deployed: parameters, pseudo parameters, mappings, conditions, and the
resources made so far.

Keeps true: a name that means nothing is a Problem, never an empty value.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/pseudo-parameter-reference.html
"""

from collections.abc import Callable, Mapping
from typing import Any

from muster.arn import Realm
from muster.stacks import intrinsics, parameters
from muster.stacks.intrinsics import NO_VALUE
from muster.stacks.problem import Problem, suggestion
from muster.stacks.resources import KINDS, Made
from muster.stacks.template import Template

PSEUDO = frozenset(
    f"AWS::{name}"
    for name in ["AccountId", "NotificationARNs", "NoValue", "Partition", "Region", "StackId", "StackName", "URLSuffix"]
)


class Names:
    """The scope of one deployment of a template."""

    def __init__(
        self,
        template: Template,
        values: Mapping[str, str],
        realm: Realm,
        stack_name: str,
        stack_id: str,
        exported: Callable[[str], Any],
    ) -> None:
        self._template = template
        self._values = values
        self._exported = exported
        self._conditions: dict[str, bool | None] = {}
        self.made: dict[str, Made] = {}
        self.imports: set[str] = set()
        region = realm.region
        self.zones = tuple(f"{region}{letter}" for letter in "abc")
        self._pseudo: dict[str, Any] = {
            "AWS::AccountId": realm.account,
            "AWS::NotificationARNs": [],
            "AWS::NoValue": NO_VALUE,
            "AWS::Partition": "aws",
            "AWS::Region": region,
            "AWS::StackId": stack_id,
            "AWS::StackName": stack_name,
            "AWS::URLSuffix": "amazonaws.com",
        }

    @property
    def known(self) -> frozenset[str]:
        """The names that are not resources."""
        return PSEUDO | self._template.parameters.keys()

    def ref(self, name: str) -> Any:
        if name in self.made:
            return self.made[name].physical_id
        if name in self._pseudo:
            return self._pseudo[name]
        if name in self._template.parameters:
            return parameters.value(self._template.parameters[name], self._values[name])
        raise self._unresolved(name)

    def attribute(self, resource: str, name: str) -> Any:
        made = self.made.get(resource)
        if made is None:
            raise self._unresolved(resource)
        if name not in made.attributes:
            kind = self._template.resources[resource].type
            known = KINDS[kind].attributes
            if name in known:
                raise Problem(f"Resource {resource} ({kind}) has no {name} as it is declared.")
            raise Problem(
                f"Template error: resource {resource} does not support attribute type {name} in Fn::GetAtt."
                + suggestion(name, known)
            )
        return made.attributes[name]

    def _unresolved(self, name: str) -> Problem:
        known = self.known | self._template.resources.keys()
        return Problem(f"Template format error: Unresolved dependency {name}.{suggestion(name, known)}")

    def mapped(self, table: str, first: str, second: str) -> Any:
        return self._template.mappings[table][first][second]

    def condition(self, name: str) -> bool:
        if name not in self._conditions:
            if name not in self._template.conditions:
                raise Problem(f"Template format error: Unresolved condition dependency {name} in the template")
            self._conditions[name] = None
            self._conditions[name] = intrinsics.holds(self._template.conditions[name], self)
        found = self._conditions[name]
        if found is None:
            raise Problem(f"Template error: Found circular condition dependency at {name}")
        return found

    def imported(self, name: str) -> Any:
        value = self._exported(name)
        if value is None:
            raise Problem(f"No export named {name} found.")
        self.imports.add(name)
        return value
