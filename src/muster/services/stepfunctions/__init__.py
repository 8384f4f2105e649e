"""Step Functions: state machines that run durably, each step one commit."""

from dataclasses import replace
from functools import partial

from muster.operation import Service
from muster.services.stepfunctions import executions
from muster.services.stepfunctions.mocking import Cases
from muster.services.stepfunctions.operations import OPERATIONS
from muster.services.stepfunctions.running import CARRIERS
from muster.services.stepfunctions.schema import MIGRATIONS

__all__ = ["SERVICE", "Cases", "service"]

SERVICE = Service("stepfunctions", OPERATIONS, MIGRATIONS, CARRIERS)


def service(cases: Cases) -> Service:
    """Step Functions with test cases: `ARN#CASE` starts an execution whose tasks are answered by the case."""
    begun = {"StartExecution": executions.start, "StartSyncExecution": executions.start_sync}
    mocked = {name: replace(OPERATIONS[name], run=partial(run, cases=cases)) for name, run in begun.items()}
    return replace(SERVICE, operations={**OPERATIONS, **mocked})
