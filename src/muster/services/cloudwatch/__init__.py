"""CloudWatch: what is measured, and alarms on it. The faces are `operations` and `alarm_operations`; `points` and
`sources` hold and read what is measured, `judgement` decides, `watching` looks, `transitions` act."""

from muster.operation import Service
from muster.services.cloudwatch import points, watching
from muster.services.cloudwatch.operations import OPERATIONS
from muster.services.cloudwatch.schema import MIGRATIONS

__all__ = ["SERVICE"]

SERVICE = Service(
    "cloudwatch",
    OPERATIONS,
    MIGRATIONS,
    {watching.EVALUATE: watching.carry, watching.DEPTH: watching.carry_depth, points.EXPIRE: points.expire},
)
