"""The face of Step Functions: AWS's operations, and the members of their requests that are supported."""

from muster.operation import Operation
from muster.services.stepfunctions import (
    activities,
    counting,
    executions,
    machines,
    mapruns,
    running,
    tags,
    tokens,
    trials,
    versions,
)
from muster.services.stepfunctions.activities import get_task


def _accepts(*names: str) -> frozenset[str]:
    return frozenset(names)


_PAGE = ("maxResults", "nextToken")

OPERATIONS = {
    "CreateStateMachine": Operation(
        machines.create,
        _accepts(
            "name",
            "definition",
            "roleArn",
            "type",
            "loggingConfiguration",
            "tags",
            "tracingConfiguration",
            "publish",
            "versionDescription",
            "encryptionConfiguration",
        ),
    ),
    "UpdateStateMachine": Operation(
        machines.update,
        _accepts(
            "stateMachineArn",
            "definition",
            "roleArn",
            "loggingConfiguration",
            "tracingConfiguration",
            "publish",
            "versionDescription",
            "encryptionConfiguration",
        ),
    ),
    "DescribeStateMachine": Operation(machines.describe, _accepts("stateMachineArn", "includedData"), reads=True),
    "ListStateMachines": Operation(machines.listed, _accepts(*_PAGE), reads=True),
    "DeleteStateMachine": Operation(machines.delete, _accepts("stateMachineArn")),
    "ValidateStateMachineDefinition": Operation(
        machines.validate, _accepts("definition", "type", "severity", "maxResults"), reads=True
    ),
    "TagResource": Operation(tags.tag, _accepts("resourceArn", "tags")),
    "UntagResource": Operation(tags.untag, _accepts("resourceArn", "tagKeys")),
    "ListTagsForResource": Operation(tags.listed, _accepts("resourceArn"), reads=True),
    "PublishStateMachineVersion": Operation(versions.publish, _accepts("stateMachineArn", "revisionId", "description")),
    "ListStateMachineVersions": Operation(versions.listed, _accepts("stateMachineArn", *_PAGE), reads=True),
    "DeleteStateMachineVersion": Operation(versions.delete, _accepts("stateMachineVersionArn")),
    "CreateStateMachineAlias": Operation(
        versions.create_alias, _accepts("description", "name", "routingConfiguration")
    ),
    "UpdateStateMachineAlias": Operation(
        versions.update_alias, _accepts("stateMachineAliasArn", "description", "routingConfiguration")
    ),
    "DescribeStateMachineAlias": Operation(versions.describe_alias, _accepts("stateMachineAliasArn"), reads=True),
    "ListStateMachineAliases": Operation(versions.list_aliases, _accepts("stateMachineArn", *_PAGE), reads=True),
    "DeleteStateMachineAlias": Operation(versions.delete_alias, _accepts("stateMachineAliasArn")),
    "StartExecution": Operation(executions.start, _accepts("stateMachineArn", "name", "input", "traceHeader")),
    "StartSyncExecution": Operation(
        executions.start_sync, _accepts("stateMachineArn", "name", "input", "traceHeader", "includedData")
    ),
    "RedriveExecution": Operation(executions.redrive, _accepts("executionArn", "clientToken")),
    "StopExecution": Operation(executions.stop, _accepts("executionArn", "error", "cause")),
    "DescribeExecution": Operation(executions.describe, _accepts("executionArn", "includedData"), reads=True),
    "DescribeStateMachineForExecution": Operation(
        executions.describe_machine, _accepts("executionArn", "includedData"), reads=True
    ),
    "ListExecutions": Operation(
        executions.listed, _accepts("stateMachineArn", "statusFilter", "mapRunArn", *_PAGE), reads=True
    ),
    "CountExecutions": Operation(
        counting.count, _accepts("StateMachineArn", "Event", "Start", "End"), reads=True, internal=True
    ),
    "GetExecutionHistory": Operation(
        executions.history, _accepts("executionArn", "reverseOrder", "includeExecutionData", *_PAGE), reads=True
    ),
    "SendTaskSuccess": Operation(tokens.send_success, _accepts("taskToken", "output")),
    "SendTaskFailure": Operation(tokens.send_failure, _accepts("taskToken", "error", "cause")),
    "SendTaskHeartbeat": Operation(tokens.send_heartbeat, _accepts("taskToken")),
    "CreateActivity": Operation(activities.create, _accepts("name", "tags", "encryptionConfiguration")),
    "DescribeActivity": Operation(activities.describe, _accepts("activityArn"), reads=True),
    "DeleteActivity": Operation(activities.delete, _accepts("activityArn")),
    "ListActivities": Operation(activities.listed, _accepts(*_PAGE), reads=True),
    "GetActivityTask": Operation(get_task, _accepts("activityArn", "workerName")),
    "TestState": Operation(
        trials.test_state,
        _accepts(
            "definition",
            "roleArn",
            "input",
            "inspectionLevel",
            "revealSecrets",
            "variables",
            "stateName",
            "mock",
            "context",
            "stateConfiguration",
        ),
    ),
    "DescribeMapRun": Operation(mapruns.describe, _accepts("mapRunArn"), reads=True),
    "UpdateMapRun": Operation(
        running.tune_map_run,
        _accepts("mapRunArn", "maxConcurrency", "toleratedFailureCount", "toleratedFailurePercentage"),
    ),
    "ListMapRuns": Operation(mapruns.listed, _accepts("executionArn", *_PAGE), reads=True),
}
