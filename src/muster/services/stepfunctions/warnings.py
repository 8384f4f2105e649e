"""Word of limits before they are hit: at four fifths of an execution's history, or of a payload.

Keeps true: an execution is warned of once per limit, in the server's log and, where there is a logs service, in the log
group `/muster/executions`, in a stream of the execution's own. Does not stop anything.

Source: "Quotas" of Step Functions: 25,000 events, 256 KiB.
"""

import logging

from muster.arn import Arn
from muster.errors import ServiceError
from muster.languages.asl.failures import HISTORY_MAX, PAYLOAD_MAX
from muster.languages.asl.history import Entry
from muster.transaction import Transaction

log = logging.getLogger(__name__)

GROUP = "/muster/executions"
HISTORY_WARNED = HISTORY_MAX * 4 // 5
PAYLOAD_WARNED = PAYLOAD_MAX * 4 // 5


def look(tx: Transaction, execution_arn: str, first: int, entries: list[Entry], *, history: bool) -> None:
    """Warn of what these entries, the first of which has the id `first`, have come close to."""
    if history and first <= HISTORY_WARNED < first + len(entries):
        _warn(
            tx,
            execution_arn,
            f"history has {first + len(entries) - 1:,} of {HISTORY_MAX:,} events; at the limit the execution fails.",
        )
    for kind, _, details in entries:
        text = details.get("output")
        if text is None or len(text) * 4 <= PAYLOAD_WARNED:
            continue
        size = len(text.encode())
        if size > PAYLOAD_WARNED and kind != "ExecutionSucceeded":
            if not _warned(tx, execution_arn, "payload"):
                name = f" of {details['name']}" if "name" in details else ""
                _warn(
                    tx,
                    execution_arn,
                    f"payload: the output{name} has {size:,} of {PAYLOAD_MAX:,} bytes; a larger one fails the execution.",
                )
            return


def stream(execution_arn: str) -> str:
    """The name of the execution's stream: its machine and its name."""
    return "/".join(Arn.parse(execution_arn).resource.split(":")[1:])


def _warned(tx: Transaction, execution_arn: str, about: str) -> bool:
    if not tx.offers("logs", "GetLogEvents"):
        return False
    try:
        found = tx.call("logs", "GetLogEvents", {"logGroupName": GROUP, "logStreamName": stream(execution_arn)})
    except ServiceError:
        return False
    return any(event["message"].startswith(about) for event in found["events"])


def _warn(tx: Transaction, execution_arn: str, sentence: str) -> None:
    log.warning("%s: %s", execution_arn, sentence)
    if tx.offers("logs", "RecordEvents"):
        event = {"timestamp": int(tx.now * 1000), "message": sentence}
        request = {"logGroupName": GROUP, "logStreamName": stream(execution_arn), "logEvents": [event]}
        tx.call("logs", "RecordEvents", request)
