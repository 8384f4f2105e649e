"""`muster alerts`: what is wrong right now, since when, why, and who was told."""

from muster.cli import show
from muster.cli.app import Endpoint, Json, app, server
from muster.cli.client import pages


@app.command("alerts")
def alerts(endpoint: Endpoint = None, json: Json = False) -> None:
    """List the alarms in ALARM: since when, why, and what they act on."""
    client = server(endpoint).clients("cloudwatch")
    found = pages(client, "describe_alarms", "MetricAlarms", StateValue="ALARM")
    rows = [
        {
            "alarm": alarm["AlarmName"],
            "description": alarm.get("AlarmDescription"),
            "since": alarm.get("StateTransitionedTimestamp") or alarm["StateUpdatedTimestamp"],
            "why": alarm["StateReason"],
            "acts_on": alarm.get("AlarmActions", []) if alarm["ActionsEnabled"] else [],
        }
        for alarm in sorted(found, key=lambda alarm: alarm["StateUpdatedTimestamp"])
    ]
    if json:
        show.as_json(rows)
        return
    show.table(
        ("alarm", "since", "why", "acts on"),
        [
            (row["alarm"], row["since"], row["why"], ", ".join(arn.rpartition(":")[2] for arn in row["acts_on"]))
            for row in rows
        ],
        empty="No alarm is in ALARM.",
    )
