"""The lines that Lambda's platform itself writes around each invocation, as text or as JSON.

Keeps true: they read as AWS's do. Sources: https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs.html
and https://docs.aws.amazon.com/lambda/latest/dg/telemetry-schema-reference.html. Does not know where they go.
"""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from muster.clock import Instant


@dataclass(frozen=True, slots=True)
class Report:
    """What an invocation took, and how it ended: status "timeout" or "error" (with its type) when the worker died."""

    duration_seconds: float
    memory_mb: int
    used_mb: int
    init_seconds: float | None = None
    status: str | None = None
    error_type: str | None = None

    @property
    def duration_ms(self) -> float:
        return self.duration_seconds * 1000

    @property
    def billed_ms(self) -> int:
        """Whole milliseconds, rounded up."""
        return int(self.duration_ms) + (self.duration_ms > int(self.duration_ms))


def instant(at: Instant) -> str:
    """An instant as the platform writes it."""
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


class TextFrame:
    """The lines of LogFormat Text."""

    def start(self, at: Instant, request_id: str, version: str) -> list[str]:
        return [f"START RequestId: {request_id} Version: {version}"]

    def end(self, at: Instant, request_id: str, report: Report) -> list[str]:
        fields = [
            f"REPORT RequestId: {request_id}",
            f"Duration: {report.duration_ms:.2f} ms",
            f"Billed Duration: {report.billed_ms} ms",
            f"Memory Size: {report.memory_mb} MB",
            f"Max Memory Used: {report.used_mb} MB",
        ]
        if report.init_seconds is not None:
            fields.append(f"Init Duration: {report.init_seconds * 1000:.2f} ms")
        if report.status is not None:
            fields.append(f"Status: {report.status}")
        if report.error_type is not None:
            fields.append(f"Error Type: {report.error_type}")
        return [f"END RequestId: {request_id}", "\t".join(fields) + "\t"]


class JsonFrame:
    """The records of LogFormat JSON; with a SystemLogLevel of WARN, only of what went wrong."""

    def __init__(self, level: str) -> None:
        self._quiet = level == "WARN"

    def start(self, at: Instant, request_id: str, version: str) -> list[str]:
        return [] if self._quiet else [_record(at, "start", {"requestId": request_id, "version": version})]

    def end(self, at: Instant, request_id: str, report: Report) -> list[str]:
        if self._quiet and report.status is None:
            return []
        metrics: dict[str, Any] = {
            "durationMs": round(report.duration_ms, 3),
            "billedDurationMs": report.billed_ms,
            "memorySizeMB": report.memory_mb,
            "maxMemoryUsedMB": report.used_mb,
        }
        if report.init_seconds is not None:
            metrics["initDurationMs"] = round(report.init_seconds * 1000, 3)
        record: dict[str, Any] = {"requestId": request_id, "metrics": metrics, "status": report.status or "success"}
        if report.error_type is not None:
            record["errorType"] = report.error_type
        return [_record(at, "report", record)]


Frame = TextFrame | JsonFrame


def _record(at: Instant, kind: str, record: Mapping[str, Any]) -> str:
    return orjson.dumps({"time": instant(at), "type": f"platform.{kind}", "record": record}).decode()


def frame(logging: Mapping[str, Any]) -> Frame:
    """The frame for a function's LoggingConfig."""
    if logging.get("LogFormat") == "JSON":
        return JsonFrame(logging.get("SystemLogLevel", "INFO"))
    return TextFrame()
