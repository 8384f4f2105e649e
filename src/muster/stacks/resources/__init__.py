"""The table of resource types: everything a template may declare, and nothing else."""

from muster.stacks.resources import functions, identity, machines, messaging, observation, storage
from muster.stacks.resources.kind import Change, Kind, Made, Properties, Work

KINDS: dict[str, Kind] = {
    kind.type: kind
    for kind in (
        *storage.KINDS,
        *functions.KINDS,
        *machines.KINDS,
        *messaging.KINDS,
        *observation.KINDS,
        *identity.KINDS,
    )
}

__all__ = ["KINDS", "Change", "Kind", "Made", "Properties", "Work"]
