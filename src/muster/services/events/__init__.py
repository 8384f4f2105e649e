"""EventBridge: events are put on buses, matched by rules and carried to their targets. The face is `operations`."""

from muster.operation import Service
from muster.services.events import delivery, replays, routes, schedules
from muster.services.events.operations import OPERATIONS
from muster.services.events.schema import MIGRATIONS

__all__ = ["SERVICE"]

SERVICE = Service(
    "events",
    OPERATIONS,
    MIGRATIONS,
    {routes.KIND: delivery.carry, schedules.KIND: schedules.carry, replays.KIND: replays.carry},
)
