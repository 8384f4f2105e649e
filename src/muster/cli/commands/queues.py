"""`muster queues`: how deep every queue is."""

from muster.cli import show
from muster.cli.app import Endpoint, Json, app, server
from muster.cli.queues import all_queues


@app.command("queues")
def queues(endpoint: Endpoint = None, json: Json = False) -> None:
    """List the queues: messages waiting, in flight and delayed, and where dead letters go."""
    found = all_queues(server(endpoint).clients("sqs"))
    rows = [
        {
            "queue": queue.name,
            **queue.counts,
            "dead_letter_target": queue.dead_letter_target,
            "attempts": int(queue.policy["maxReceiveCount"]) if queue.policy else None,
        }
        for queue in found
    ]
    if json:
        show.as_json(rows)
        return
    show.table(
        ("queue", "waiting", "in flight", "delayed", "dead letters to", "after attempts"),
        [list(row.values()) for row in rows],
        empty="No queues.",
    )
