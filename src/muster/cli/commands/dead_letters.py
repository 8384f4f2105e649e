"""`muster dlq`: dead-letter queues listed, their messages shown, sent back or discarded. What changes something shows what
it is about to do, and asks."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from muster.cli import show
from muster.cli.app import Endpoint, Json, app, server
from muster.cli.client import Client
from muster.cli.queues import Queue, all_queues, attempts, consumers, described, looking, name_in, named, sources
from muster.errors import MusterError

dlq = typer.Typer(help="Look at dead letters, send them back or discard them.", no_args_is_help=False)
app.add_typer(dlq, name="dlq")

Name = Annotated[str, typer.Argument(metavar="QUEUE", help="A dead-letter queue's name or ARN.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
Message = Annotated[str | None, typer.Option("--message", metavar="ID", help="Only the message with this id.")]
# To find one message, all are received; a queue has at most so many in flight (SQS quotas: 120,000).
EVERY = 120_000
# While a person thinks about one message, it stays out of sight for others.
QUESTION_SECONDS = 600
POLL_SECONDS = 0.2
BODY_SHOWN = 200


@dlq.callback(invoke_without_command=True)
def default(context: typer.Context, endpoint: Endpoint = None, json: Json = False) -> None:
    """Without a subcommand: list them."""
    if context.invoked_subcommand is None:
        listed(endpoint, json)


@dlq.command("list")
def listed(endpoint: Endpoint = None, json: Json = False) -> None:
    """List the dead-letter queues: how many messages each has, and what sends to it."""
    clients = server(endpoint).clients
    queues = all_queues(clients("sqs"))
    senders = sources(clients, queues)
    found = [(queue, senders[queue.name]) for queue in queues if queue.name in senders]
    if json:
        show.as_json([{"queue": queue.name, **queue.counts, "sources": names} for queue, names in found])
        return
    show.table(
        ("queue", "waiting", "in flight", "delayed", "from"),
        [(queue.name, *queue.counts.values(), ", ".join(names)) for queue, names in found],
        empty="No dead-letter queues: no queue or function names one.",
    )


@dlq.command("show")
def shown(
    queue: Name,
    limit: Annotated[int, typer.Option(help="How many messages to show.", min=1)] = 10,
    endpoint: Endpoint = None,
    json: Json = False,
) -> None:
    """Show messages of a dead-letter queue, and what is known of why they failed.

    They are received for that and made visible again at once; the receives count in this queue only, and no longer
    when a message is sent back. A queue with dead letters of its own is left alone.
    """
    clients = server(endpoint).clients
    sqs = clients("sqs")
    found = named(sqs, queue)
    with looking(sqs, found, limit) as messages:
        told = [facts(message) for message in messages]
    functions: dict[str, list[str]] = {}
    for fact, message in zip(told, messages, strict=True):
        source = message["Attributes"].get("DeadLetterQueueSourceArn")
        if source and source not in functions:
            functions[source] = consumers(clients, source)
        fact["attempts"] = [
            run for function in functions.get(source, []) for run in attempts(clients, function, message)
        ]
    if json:
        show.as_json(told)
        return
    for fact in told:
        one_told(fact)
    waiting = found.counts["visible"]
    if len(told) < waiting:
        show.err.print(f"{len(told)} of {waiting} messages; --limit shows more.")
    if not told and show.out.is_terminal:
        show.out.print("[dim]No messages to be seen.[/dim]")


def facts(message: dict[str, Any]) -> dict[str, Any]:
    """What a message says of itself."""
    system = message["Attributes"]
    source = system.get("DeadLetterQueueSourceArn")
    return {
        "id": message["MessageId"],
        "sent_at": datetime.fromtimestamp(int(system["SentTimestamp"]) / 1000, UTC),
        "source": name_in(source) if source else None,
        "group": system.get("MessageGroupId"),
        "receives_here": int(system["ApproximateReceiveCount"]),
        "attributes": {
            name: value.get("StringValue", value.get("BinaryValue"))
            for name, value in message.get("MessageAttributes", {}).items()
        },
        "body": message["Body"],
    }


def one_told(fact: dict[str, Any]) -> None:
    """A message for a person; in a pipe its id, time, source and body in a line."""
    if not show.out.is_terminal:
        body = fact["body"].replace("\t", " ").replace("\n", " ")
        print("\t".join((fact["id"], show.cell(fact["sent_at"]), fact["source"] or "", body)))
        return
    show.out.print(f"[bold]{fact['id']}[/bold]  sent {show.cell(fact['sent_at'])}  from {fact['source'] or 'unknown'}")
    for name, value in fact["attributes"].items():
        show.out.print(f"  {name}: {value}", markup=False)
    body = fact["body"]
    show.out.print("  " + (body if len(body) <= BODY_SHOWN else body[:BODY_SHOWN] + "…"), markup=False)
    for run in fact["attempts"]:
        show.out.print(f"  {show.cell(run['at'])} {run['function']}:", style="dim")
        for line in run["lines"]:
            show.out.print(f"    {line}", markup=False, style="dim")


@dlq.command("redrive")
def redriven(
    queue: Name,
    to: Annotated[
        str | None, typer.Option("--to", metavar="QUEUE", help="Where to; to where each came from when not given.")
    ] = None,
    rate: Annotated[int | None, typer.Option(help="At most so many messages a second.", min=1, max=500)] = None,
    message: Message = None,
    yes: Yes = False,
    endpoint: Endpoint = None,
    json: Json = False,
) -> None:
    """Send dead letters back to where they came from, once the cause is mended."""
    clients = server(endpoint).clients
    sqs = clients("sqs")
    found = named(sqs, queue)
    target = named(sqs, to) if to else None
    if message is not None:
        with one_message(sqs, found, message) as one:
            source = one["Attributes"].get("DeadLetterQueueSourceArn")
            if target is None and source is None:
                raise MusterError(f"The message {message} does not say where it came from; say where to with --to.")
            target = target or named(sqs, str(source))
            ask(f"Send the message {message} from {found.name} to {target.name}: {excerpt(one)}", yes)
            send_back(sqs, found, target, one)
        finished({"queue": found.name, "moved": 1, "status": "COMPLETED"}, json)
        return
    senders = [name_in(url) for url in sqs_sources(sqs, found)]
    count = found.counts["visible"]
    where = target.name if target else f"where they came from ({', '.join(senders) or 'unknown'})"
    pace = f", at most {rate} a second" if rate else ""
    if count == 0 and sum(found.counts.values()) == 0:
        finished({"queue": found.name, "moved": 0, "status": "COMPLETED"}, json)
        return
    ask(f"Send {counted(count)} from {found.name} to {where}{pace}", yes)
    request: dict[str, Any] = {"SourceArn": found.arn}
    if target:
        request["DestinationArn"] = target.arn
    if rate:
        request["MaxNumberOfMessagesPerSecond"] = rate
    sqs.start_message_move_task(**request)
    task = followed(sqs, found)
    moved = task.get("ApproximateNumberOfMessagesMoved", 0)
    if task["Status"] != "COMPLETED":
        raise MusterError(
            f"The redrive of {found.name} is {task['Status']} after {counted(moved)}:"
            f" {task.get('FailureReason', 'no reason given')}. The others are still there."
        )
    finished({"queue": found.name, "moved": moved, "status": task["Status"]}, json)


def sqs_sources(sqs: Client, queue: Queue) -> list[str]:
    """The URLs of the queues whose dead letters come here."""
    found: list[str] = sqs.list_dead_letter_source_queues(QueueUrl=queue.url).get("queueUrls", [])
    return found


def followed(sqs: Client, queue: Queue) -> dict[str, Any]:
    """The queue's newest move task once it has ended, with progress on the way. Ctrl-C leaves it running."""
    columns = (TextColumn("redriving"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=show.err, transient=True, disable=not show.err.is_terminal) as progress:
        bar = progress.add_task("redriving", total=None)
        try:
            while True:
                task: dict[str, Any] = sqs.list_message_move_tasks(SourceArn=queue.arn, MaxResults=1)["Results"][0]
                done, total = task.get("ApproximateNumberOfMessagesMoved", 0), task["ApproximateNumberOfMessagesToMove"]
                progress.update(bar, completed=done, total=max(done, total))
                if task["Status"] not in ("RUNNING", "CANCELLING"):
                    return task
                time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            show.err.print("The redrive goes on in the server; CancelMessageMoveTask stops it.")
            raise


def send_back(sqs: Client, queue: Queue, target: Queue, message: dict[str, Any]) -> None:
    """Move one message: sent first and deleted then, so that a crash between leaves two of it and never none."""
    attributes = {
        name: {part: value[part] for part in ("DataType", "StringValue", "BinaryValue") if part in value}
        for name, value in message.get("MessageAttributes", {}).items()
    }
    system = message["Attributes"]
    request: dict[str, Any] = {"QueueUrl": target.url, "MessageBody": message["Body"], "MessageAttributes": attributes}
    for name in ("MessageGroupId", "MessageDeduplicationId"):
        if name in system:
            request[name] = system[name]
    sqs.send_message(**request)
    sqs.delete_message(QueueUrl=queue.url, ReceiptHandle=message["ReceiptHandle"])


@dlq.command("discard")
def discarded(
    queue: Name,
    message: Message = None,
    yes: Yes = False,
    endpoint: Endpoint = None,
    json: Json = False,
) -> None:
    """Delete dead letters for ever: all of a queue, or one."""
    clients = server(endpoint).clients
    sqs = clients("sqs")
    found = named(sqs, queue)
    if message is not None:
        with one_message(sqs, found, message) as one:
            ask(f"Delete the message {message} of {found.name} for ever: {excerpt(one)}", yes)
            sqs.delete_message(QueueUrl=found.url, ReceiptHandle=one["ReceiptHandle"])
        finished({"queue": found.name, "discarded": 1}, json)
        return
    if found.name not in sources(clients, all_queues(sqs)):
        raise MusterError(f"The queue {found.name} is nobody's dead-letter queue; its messages are not discarded.")
    count = sum(described(sqs, found.url).counts.values())
    if count:
        ask(f"Delete {counted(count)} of {found.name} for ever", yes)
        sqs.purge_queue(QueueUrl=found.url)
    finished({"queue": found.name, "discarded": count}, json)


@contextmanager
def one_message(sqs: Client, queue: Queue, id_: str) -> Iterator[dict[str, Any]]:
    """One message, out of sight for others until the end; the rest of the queue only while it is searched for."""
    with looking(sqs, queue, EVERY) as messages:
        one = next((message for message in messages if message["MessageId"] == id_), None)
        if one is None:
            raise MusterError(
                f"No message {id_} is to be seen in {queue.name}; `muster dlq show {queue.name}` lists them."
            )
        messages.remove(one)
    handle = {"QueueUrl": queue.url, "ReceiptHandle": one["ReceiptHandle"]}
    sqs.change_message_visibility(**handle, VisibilityTimeout=QUESTION_SECONDS)
    try:
        yield one
    except BaseException:
        sqs.change_message_visibility(**handle, VisibilityTimeout=0)
        raise


def excerpt(message: dict[str, Any]) -> str:
    """The beginning of a message's body."""
    body = str(message["Body"])
    return body if len(body) <= BODY_SHOWN else body[:BODY_SHOWN] + "…"


def ask(what: str, yes: bool) -> None:
    """Say what is about to happen and have it confirmed; MusterError where nobody can, typer.Abort when refused."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise MusterError(f"{what}? Nobody is there to answer: add --yes.")
    typer.confirm(f"{what}?", abort=True, err=True)


def finished(done: dict[str, Any], json: bool) -> None:
    """Say what was done."""
    if json:
        show.as_json(done)
        return
    if "moved" in done:
        show.out.print(f"{counted(done['moved'])} sent back from {done['queue']}.")
    else:
        show.out.print(f"{counted(done['discarded'])} deleted from {done['queue']}.")


def counted(messages: int) -> str:
    """So many messages, in words."""
    return f"{messages} message" if messages == 1 else f"{messages} messages"
