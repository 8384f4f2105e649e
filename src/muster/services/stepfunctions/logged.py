"""Executions in CloudWatch Logs, as a machine's logging configuration asks: ALL, ERROR, FATAL or OFF.

Keeps true: a history event and its log event are one commit; without `includeExecutionData` no input, output, parameter
or variable is logged. Does not know where log groups are kept.

Source: "Using CloudWatch Logs to log execution history in Step Functions", "Log levels for execution events".
"""

from typing import Any

import orjson

from muster.arn import Arn
from muster.languages.asl import timestamps
from muster.languages.asl.history import Entry, expand
from muster.transaction import Transaction

# "If escaped input or escaped output sent to CloudWatch Logs exceeds 248KB, it will be truncated."
DATA_BYTES_MAX = 248 * 1024

_FATAL = frozenset({"ExecutionAborted", "ExecutionFailed", "ExecutionTimedOut"})
_ERROR_ENDINGS = ("Failed", "TimedOut", "Aborted")


def _wanted(level: str, kind: str) -> bool:
    if level == "ALL":
        return True
    if level == "FATAL":
        return kind in _FATAL
    return level == "ERROR" and (kind.endswith(_ERROR_ENDINGS) or kind == "FailStateEntered")


def deliver(
    tx: Transaction, configuration: dict[str, Any], execution_arn: str, redrives: int, first: int, entries: list[Entry]
) -> None:
    """Log these entries, the first of which has the id `first`."""
    level = configuration.get("level", "OFF")
    if level == "OFF" or not tx.offers("logs", "RecordEvents"):
        return
    included = bool(configuration.get("includeExecutionData"))
    at_ms = int(tx.now * 1000)
    events = [
        {"timestamp": at_ms, "message": _message(event, at_ms, execution_arn, redrives)}
        for event in expand(entries, first, tx.now, include_data=included)
        if _wanted(level, event["type"])
    ]
    if not events:
        return
    group = configuration["destinations"][0]["cloudWatchLogsLogGroup"]["logGroupArn"]
    name = group.split(":log-group:", 1)[1].removesuffix(":*")
    request = {"logGroupName": name, "logStreamName": _stream(tx, execution_arn), "logEvents": events}
    tx.call("logs", "RecordEvents", request)


def _stream(tx: Transaction, execution_arn: str) -> str:
    """One stream per machine and hour."""
    machine = Arn.parse(execution_arn).resource.split(":")[1].split("/")[0]
    hour = timestamps.text(tx.now)[:13].replace("T", "-")
    return f"states/{machine}/{hour}-00"


def _message(event: dict[str, Any], at_ms: int, execution_arn: str, redrives: int) -> str:
    details: dict[str, Any] = next((value for name, value in event.items() if name.endswith("EventDetails")), {})
    return orjson.dumps(
        {
            "id": str(event["id"]),
            "type": event["type"],
            "details": _truncated(details),
            "redrive_count": str(redrives),
            "previous_event_id": str(event["previousEventId"]),
            "event_timestamp": str(at_ms),
            "execution_arn": execution_arn,
        }
    ).decode()


def _truncated(details: dict[str, Any]) -> dict[str, Any]:
    shown = dict(details)
    for name in ("input", "output"):
        text = shown.get(name)
        if isinstance(text, str) and len(text) * 6 > DATA_BYTES_MAX and len(orjson.dumps(text)) > DATA_BYTES_MAX:
            shown[name] = text[: DATA_BYTES_MAX // 6]
            shown[f"{name}Details"] = {"truncated": True}
    return shown
