"""A function's settings: what may be set, what is refused, what holds when nothing is said.

Keeps true: stored settings are complete and within AWS's limits, so that whoever reads them need not check again.
Does not know where they are stored nor how a runtime is started.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from muster.errors import ServiceError, unsupported

# Python and Node functions run on the interpreters of this machine; "provided" ones bring their own `bootstrap`.
RUNTIME = re.compile(r"python3\.(8|9|1[0-4])|nodejs(16|18|20|22|24)\.x|provided(\.al2|\.al2023)?")

# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
TIMEOUT_SECONDS_MAX = 900
MEMORY_MB = range(128, 10_241)
ENVIRONMENT_BYTES_MAX = 4096
DESCRIPTION_CHARACTERS_MAX = 256
# Of an account's 1,000 concurrent executions, 100 stay unreserved.
RESERVED_MAX = 900

# https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
RESERVED_VARIABLES = frozenset(
    {
        "_HANDLER",
        "_X_AMZN_TRACE_ID",
        "AWS_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_DEFAULT_REGION",
        "AWS_EXECUTION_ENV",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
        "AWS_LAMBDA_FUNCTION_NAME",
        "AWS_LAMBDA_FUNCTION_VERSION",
        "AWS_LAMBDA_INITIALIZATION_TYPE",
        "AWS_LAMBDA_LOG_GROUP_NAME",
        "AWS_LAMBDA_LOG_STREAM_NAME",
        "AWS_LAMBDA_RUNTIME_API",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "LAMBDA_RUNTIME_DIR",
        "LAMBDA_TASK_ROOT",
    }
)

LOG_LEVELS = frozenset({"ApplicationLogLevel", "SystemLogLevel"})

# Settings that UpdateFunctionConfiguration may change; each is also one of CreateFunction.
CHANGEABLE = frozenset(
    {
        "DeadLetterConfig",
        "Description",
        "Environment",
        "EphemeralStorage",
        "FileSystemConfigs",
        "Handler",
        "Layers",
        "LoggingConfig",
        "MemorySize",
        "Role",
        "Runtime",
        "SnapStart",
        "Timeout",
        "TracingConfig",
        "VpcConfig",
    }
)


def initial(request: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a new function: the request's, completed by AWS's defaults."""
    package = request.get("PackageType", "Zip")
    if package != "Zip":
        raise unsupported(f"PackageType {package} (container images)")
    for needed in ("Runtime", "Handler"):
        if needed not in request:
            raise _invalid(
                f"{needed} is mandatory for functions created with deployment packages as .zip file archives."
            )
    defaults: dict[str, Any] = {
        "Description": "",
        "Timeout": 3,
        "MemorySize": 128,
        "TracingConfig": {"Mode": "PassThrough"},
        "Architectures": ["x86_64"],
        "EphemeralStorage": {"Size": 512},
        "LoggingConfig": {"LogFormat": "Text", "LogGroup": f"/aws/lambda/{request['FunctionName']}"},
    }
    if "Architectures" in request:
        defaults["Architectures"] = list(request["Architectures"])
    return changed(defaults, request)


def changed(settings: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` with what `request` says in their place; InvalidParameterValueException beyond AWS's limits."""
    new = {name: request[name] for name in CHANGEABLE & request.keys() if request[name] is not None}
    _refuse_unsupported(new)
    result = {**settings, **new}
    if "Environment" in new:
        _check_variables(new["Environment"].get("Variables", {}))
    if "LoggingConfig" in new:
        result["LoggingConfig"] = _logging(settings["LoggingConfig"], new["LoggingConfig"])
    if "DeadLetterConfig" in new:
        check_target(new["DeadLetterConfig"].get("TargetArn", ""), "DeadLetterConfig", ("sqs", "sns"))
    _check_limits(result)
    for name in ("Layers", "FileSystemConfigs", "VpcConfig", "SnapStart"):
        result.pop(name, None)
    return result


def _refuse_unsupported(new: Mapping[str, Any]) -> None:
    # An empty list or block asks for nothing; templates often carry them.
    if new.get("Layers"):
        raise unsupported("Layers of a function; put their content into its package")
    if new.get("FileSystemConfigs"):
        raise unsupported("FileSystemConfigs of a function")
    vpc = new.get("VpcConfig") or {}
    if vpc.get("SubnetIds") or vpc.get("SecurityGroupIds"):
        raise unsupported("VpcConfig of a function; functions run in this machine's network")
    if (new.get("SnapStart") or {}).get("ApplyOn", "None") != "None":
        raise unsupported("SnapStart of a function")


def _logging(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-advanced.html: levels are JSON's alone."""
    strange = sorted(new.keys() - {"LogFormat", "LogGroup", *LOG_LEVELS})
    if strange:
        raise unsupported(f"{', '.join(strange)} in LoggingConfig of a function")
    merged = {**old, **new}
    if merged["LogFormat"] == "JSON":
        return {**dict.fromkeys(LOG_LEVELS, "INFO"), **merged}
    if LOG_LEVELS & new.keys():
        raise _invalid("Log levels can only be set when the log format is JSON.")
    return {name: value for name, value in merged.items() if name not in LOG_LEVELS}


def _check_limits(settings: Mapping[str, Any]) -> None:
    runtime = settings["Runtime"]
    if RUNTIME.fullmatch(runtime) is None:
        raise unsupported(f"the runtime {runtime} (python3.8 to 3.14, nodejs16.x to 24.x and provided run here)")
    if not 1 <= settings["Timeout"] <= TIMEOUT_SECONDS_MAX:
        raise _invalid_value(settings["Timeout"], "timeout", f"less than or equal to {TIMEOUT_SECONDS_MAX}")
    if settings["MemorySize"] not in MEMORY_MB:
        bound = "less than or equal to 10240" if settings["MemorySize"] > 10_240 else "greater than or equal to 128"
        raise ServiceError(
            "InvalidParameterValueException",
            f"'MemorySize' value failed to satisfy constraint: Member must have value {bound}",
        )
    if len(settings["Description"]) > DESCRIPTION_CHARACTERS_MAX:
        raise _invalid_value(
            settings["Description"], "description", f"of length less than or equal to {DESCRIPTION_CHARACTERS_MAX}"
        )


def _check_variables(variables: Mapping[str, str]) -> None:
    prefix = (
        "Lambda was unable to configure your environment variables because the environment variables you have provided "
    )
    reserved = sorted(RESERVED_VARIABLES & variables.keys())
    if reserved:
        raise _invalid(
            f"{prefix}contains reserved keys that are currently not supported for modification. "
            f"Reserved keys used in this request: {', '.join(reserved)}"
        )
    measured = orjson.dumps(dict(variables))
    if len(measured) > ENVIRONMENT_BYTES_MAX:
        raise _invalid(f"{prefix}exceeded the 4KB limit. String measured: {measured.decode()}")


def check_target(target: str, what: str, services: tuple[str, ...]) -> None:
    """Refuse a target that is not an ARN of one of `services`; an empty one means there is none."""
    if not target:
        return
    parts = target.split(":", 5)
    if len(parts) < 6 or parts[0] != "arn":
        raise _invalid(f"The provided {what} ARN is invalid: {target}")
    if parts[2] not in services:
        raise unsupported(f"a {what} of the service {parts[2]}")


def _invalid(message: str) -> ServiceError:
    return ServiceError("InvalidParameterValueException", message, fields={"Type": "User"})


def _invalid_value(value: object, member: str, rule: str) -> ServiceError:
    return ServiceError(
        "ValidationException",
        f"1 validation error detected: Value '{value}' at '{member}' failed to satisfy constraint: "
        f"Member must have value {rule}",
        status=400,
    )
