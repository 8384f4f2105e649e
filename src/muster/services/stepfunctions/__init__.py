"""Step Functions: state machines that run durably, each step one commit."""

from muster.operation import Service
from muster.services.stepfunctions.operations import OPERATIONS
from muster.services.stepfunctions.running import CARRIERS
from muster.services.stepfunctions.schema import MIGRATIONS

SERVICE = Service("stepfunctions", OPERATIONS, MIGRATIONS, CARRIERS)
