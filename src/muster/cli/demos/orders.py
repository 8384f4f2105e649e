"""Scenario 2, start to finish: a burst in front of a limit, every event twice, poisonous orders, and a killed server.

Everything is looked at through AWS's protocols and the payment service's own books, on real processes.
"""

import atexit
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from muster.cli.client import Client, Clients, clients, pages
from muster.cli.demos.payment import Payments
from muster.cli.demos.story import Story
from muster.errors import MusterError
from muster.stacks.package import deploy
from muster.testing import ServerProcess

LIMIT = 20
ATTEMPTS = 3
ORDERS_MIN = 100
POISONOUS = 10
# The first act is short: it is lost after a moment anyway.
DIRECT = 100
DIRECT_TRIES = 5
TWICE = 5
UPLOADERS = 8
# A message that failed comes back after so long; a function that may not run longer than this holds its record no longer.
VISIBILITY_SECONDS = 12
FUNCTION_SECONDS = 7
BURST_SECONDS_MAX = 420.0
LOOK_SECONDS = 0.25


def order(number: int) -> dict[str, Any]:
    """An order of the burst; the poisonous ones are in a currency that the payment service does not know yet."""
    name = f"{number:04}"
    currency = "CHF" if is_poisonous(number) else "EUR"
    return {"order": name, "customer": f"customer-{name}", "amount": 100 + number, "currency": currency}


def is_poisonous(number: int) -> bool:
    """Ten of them, spread over the beginning of the burst."""
    return number % 10 == 7 and number < 10 * POISONOUS


def key_of(number: int) -> str:
    """Where an order is uploaded."""
    return f"orders/{number:04}.json"


class Application:
    """The deployed example: a bucket to upload to, queues to look into."""

    def __init__(self, example: Path, made: Clients, payment_url: str) -> None:
        parameters = {
            "PaymentUrl": payment_url,
            "FunctionSeconds": str(FUNCTION_SECONDS),
            "VisibilitySeconds": str(VISIBILITY_SECONDS),
        }
        self.deployed = deploy(example, made, name="orders", parameters=parameters)
        self.names = self.deployed.outputs
        self.use(made)

    def use(self, made: Clients) -> None:
        """Speak to the server through these clients from now on."""
        self.s3: Client = made("s3")
        self.sqs: Client = made("sqs")
        self.events: Client = made("events")
        self.dynamodb: Client = made("dynamodb")
        self.cloudwatch: Client = made("cloudwatch")

    def deliver_twice(self) -> None:
        """A second rule sends every event to the queue once more; not the poisonous ones, which come again anyway."""
        name = self.names["UploadsBucketName"]
        keys = [key_of(number) for number in range(10 * POISONOUS) if is_poisonous(number)]
        pattern = {
            "source": ["aws.s3"],
            "detail-type": ["Object Created"],
            "detail": {"bucket": {"name": [name]}, "object": {"key": [{"anything-but": keys}]}},
        }
        self.events.put_rule(Name="orders-once-more", EventPattern=json.dumps(pattern))
        target = {"Id": "queue", "Arn": self.names["OrderQueueArn"]}
        self.events.put_targets(Rule="orders-once-more", Targets=[target])

    def upload(self, number: int) -> None:
        """Upload an order until it is acknowledged, also over a crash: on condition that it is not there, for a second
        upload would rightly be a second event."""
        body = json.dumps(order(number)).encode()
        for _ in range(600):
            try:
                self.s3.put_object(
                    Bucket=self.names["UploadsBucketName"], Key=key_of(number), Body=body, IfNoneMatch="*"
                )
                return
            except ClientError as error:
                if error.response["Error"]["Code"] == "PreconditionFailed":
                    return
            except BotoCoreError:
                pass
            time.sleep(0.2)
        raise MusterError(f"The demo stopped: the order {number} could not be uploaded.")

    def depth(self, queue: str) -> int:
        """How many messages a queue holds, in flight or not."""
        found = self.sqs.get_queue_attributes(QueueUrl=self.names[queue], AttributeNames=["All"])["Attributes"]
        return sum(int(value) for name, value in found.items() if name.startswith("ApproximateNumberOfMessages"))

    def alarm(self) -> str:
        """The state of the alarm on the dead-letter queue."""
        name = self.names["DeadOrdersAlarmName"]
        return str(self.cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"][0]["StateValue"])

    def alert(self, before: str, state: str) -> dict[str, Any] | None:
        """The alert of the alarm's change to a state, taken from the alerts' queue, once it is there."""
        url = self.names["AlertQueueUrl"]
        for message in self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
            self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            alert: dict[str, Any] = json.loads(message["Body"])
            if (alert["OldStateValue"], alert["NewStateValue"]) == (before, state):
                return alert
        return None

    def records(self) -> list[dict[str, Any]]:
        """What the table says of each event."""
        found = pages(self.dynamodb, "scan", "Items", TableName=self.names["SeenTableName"], ConsistentRead=True)
        return [{name: next(iter(value.values())) for name, value in item.items()} for item in found]


def tell(story: Story, example: Path, data: Path, *, orders: int, keep: bool) -> ServerProcess:
    """Run the demo with a burst of so many orders; the server, stopped unless it is to be kept."""
    if orders < ORDERS_MIN:
        raise MusterError(f"The demo needs at least {ORDERS_MIN} orders; ten of them are poisonous.")
    story.title("A burst in front of a limit, and every event twice: nothing lost, nobody charged twice")
    program = example / "payments.py"
    data.mkdir(parents=True, exist_ok=True)
    with Payments(program, data / "direct.sqlite") as payments:
        without_buffer(story, payments)
        without_record(story, payments)
    server = ServerProcess(data / "muster")
    payments = Payments(program, data / "payments.sqlite")
    try:
        payments.start()
        with story.step("Start a server, deploy the application: uploads, rule, queue, function, payment service"):
            server.start()
            application = Application(example, clients(server.endpoint), payments.endpoint)
            story.check(application.names, f"stack {application.deployed.name} {application.deployed.action}")
            application.deliver_twice()
            story.say("A second rule on the bucket sends every event to the queue once more.")
        burst = Burst(story, application, payments, server, orders)
        with story.step(f"Upload {orders} orders in a burst, and kill the server with SIGKILL in the middle"):
            seconds = burst.run()
        with story.step("Hear the alarm"):
            alarmed(story, application)
        with story.step("Look into the books"):
            books(story, application, payments, orders)
        with story.step("Mend the cause, and send the dead letters back"):
            redriven(story, application, payments, orders)
        figures = payments.figures()
        story.end(
            [
                (f"{orders} orders, from the first upload to the last charge", f"{seconds:.1f} s"),
                ("orders a second, through the crash", f"{orders / seconds:.0f}"),
                ("calls of the payment service at once, at most", str(figures["at_once_max"])),
                ("calls that it turned away", str(figures["throttled"])),
                ("start of the server after SIGKILL", f"{server.start_seconds:.2f} s"),
            ]
        )
    except BaseException:
        server.stop()
        payments.stop()
        raise
    if keep:
        # Whoever uploads another order wants it charged; both end with the command.
        atexit.register(payments.stop)
    else:
        payments.stop()
        server.stop()
    return server


def without_buffer(story: Story, payments: Payments) -> None:
    """Direct calls: most are turned away, and trying again at once makes more calls of it, not more charges."""
    with story.step(f"Without the buffer: {DIRECT} uploads call the payment service at once"):
        statuses = at_once(DIRECT, lambda number: payments.post("/charges", order(1000 + 10 * number)))
        lost = statuses.count(429)
        story.check(lost > 0, f"{statuses.count(201)} are charged, {lost} are answered 429 and lost")
        before = payments.figures()

        def insist(number: int) -> int:
            for _ in range(DIRECT_TRIES):
                status = payments.post("/charges", order(5000 + 10 * number))
                if status != 429:
                    break
            return status

        statuses = at_once(DIRECT, insist)
        after = payments.figures()
        calls, refused = after["calls"] - before["calls"], after["throttled"] - before["throttled"]
        story.check(
            refused > lost,
            f"each tries up to {DIRECT_TRIES} times at once: {calls} calls for {DIRECT} orders, {refused} turned away"
            f" instead of {lost}, and {statuses.count(429)} orders are lost all the same",
        )


def without_record(story: Story, payments: Payments) -> None:
    """A handler without a record charges for each delivery."""
    with story.step(f"Without the record: {TWICE} events are delivered twice"):
        for number in range(TWICE):
            for _ in range(2):
                payments.post("/charges", order(9000 + 10 * number))
        wanted = {order(9000 + 10 * number)["customer"] for number in range(TWICE)}
        charged = Counter(one["customer"] for one in payments.read("/charges"))
        twice = [customer for customer in wanted if charged[customer] == 2]
        story.check(len(twice) == TWICE, f"{len(twice)} customers are charged twice")


def at_once(count: int, call: Callable[[int], int]) -> list[int]:
    """The results of calls that all begin at the same moment."""
    gate = threading.Barrier(count)

    def wait(number: int) -> int:
        gate.wait()
        return call(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(wait, range(count)))


class Burst:
    """The uploads under way, and what has become of them so far."""

    def __init__(
        self, story: Story, application: Application, payments: Payments, server: ServerProcess, orders: int
    ) -> None:
        self.story = story
        self.application = application
        self.payments = payments
        self.server = server
        self.orders = orders
        self.good = orders - POISONOUS
        self.uploaded = 0
        self._lock = threading.Lock()

    def run(self) -> float:
        """Upload all, kill the server once, and wait until every order is charged or a dead letter; the seconds that
        the good orders took."""
        began = self.story.now()
        columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.story.console) as progress, ThreadPoolExecutor(UPLOADERS) as pool:
            bars = {
                "uploaded": progress.add_task("uploaded", total=self.orders),
                "charged": progress.add_task("charged", total=self.good),
                "dead": progress.add_task("dead letters", total=POISONOUS),
            }
            uploads = [pool.submit(self._upload, number) for number in range(self.orders)]
            self._until_half(progress, bars)
            self._kill()
            charged_at = self._until_done(progress, bars)
            for upload in uploads:
                upload.result()
        figures = self.payments.figures()
        self.story.check(
            figures["at_once_max"] <= LIMIT and not figures["throttled"],
            f"the payment service never saw more than {LIMIT} calls at once: {figures['at_once_max']} at most, none"
            " turned away",
        )
        return charged_at - began

    def _upload(self, number: int) -> None:
        self.application.upload(number)
        with self._lock:
            self.uploaded += 1

    def _show(self, progress: Progress, bars: dict[str, TaskID], dead: int = 0) -> int:
        charges = self.payments.figures()["charges"]
        progress.update(bars["uploaded"], completed=self.uploaded)
        progress.update(bars["charged"], completed=charges)
        progress.update(bars["dead"], completed=dead)
        return charges

    def _until_half(self, progress: Progress, bars: dict[str, TaskID]) -> None:
        end = time.monotonic() + BURST_SECONDS_MAX
        while self._show(progress, bars) < self.orders // 10 or self.uploaded < self.orders // 2:
            if time.monotonic() > end:
                raise MusterError("The demo stopped: the burst does not get on.")
            time.sleep(LOOK_SECONDS)

    def _kill(self) -> None:
        charges = self.payments.figures()["charges"]
        self.server.kill()
        self.story.say(f"Killed after {self.uploaded} uploads and {charges} charges; starting it again.")
        self.server.start()

    def _until_done(self, progress: Progress, bars: dict[str, TaskID]) -> float:
        charged_at = 0.0
        end = time.monotonic() + BURST_SECONDS_MAX
        while True:
            dead = self.application.depth("DeadOrdersUrl")
            charges = self._show(progress, bars, dead)
            if charges >= self.good and not charged_at:
                charged_at = self.story.now()
            if charged_at and dead >= POISONOUS and not self.application.depth("OrderQueueUrl"):
                return charged_at
            if time.monotonic() > end:
                raise MusterError(
                    f"The demo stopped: after {BURST_SECONDS_MAX:.0f} s {charges} of {self.good} orders are charged,"
                    f" {dead} are dead letters and {self.application.depth('OrderQueueUrl')} messages still wait."
                )
            time.sleep(LOOK_SECONDS)


def alarmed(story: Story, application: Application) -> None:
    """The alarm on the dead-letter queue is on, and has told so."""
    story.until(lambda: application.alarm() == "ALARM", "the alarm is in ALARM")
    alert = story.until(lambda: application.alert("OK", "ALARM"), "the alert is received")
    story.check(alert, "the alarm on the dead-letter queue is in ALARM, and the alert is received by the topic's queue")
    story.say(f"It says: {alert['AlarmDescription']}. {alert['NewStateReason']}")


def books(story: Story, application: Application, payments: Payments, orders: int) -> None:
    """Each good order is charged once, each poisonous one a dead letter."""
    good = {order(number)["customer"] for number in range(orders) if not is_poisonous(number)}
    once_each(story, payments, good)
    records = application.records()
    done = [record for record in records if record["status"] == "COMPLETED"]
    story.check(len(done) == len(good), f"{len(done)} events are recorded as done; their second deliveries did nothing")
    poison = {key_of(number) for number in range(orders) if is_poisonous(number)}
    letters = dead_letters(application)
    story.check(
        letters == poison, f"{len(letters)} orders lie in the dead-letter queue: the poisonous ones, and no other"
    )
    attempts: dict[str, int] = {}
    for refusal in payments.read("/refusals"):
        attempts[refusal["customer"]] = max(refusal["attempt"], attempts.get(refusal["customer"], 0))
    story.check(
        len(attempts) == len(poison) and set(attempts.values()) == {ATTEMPTS},
        f"each got there after {ATTEMPTS} attempts, and its last refusal was at the third",
    )


def once_each(story: Story, payments: Payments, customers: set[str]) -> None:
    """Every one of these customers has one charge and one receipt, and nobody else has any."""
    charges, receipts = payments.read("/charges"), payments.read("/receipts")
    charged = Counter(one["customer"] for one in charges)
    story.check(charged == Counter(customers), f"{len(charged)} customers are charged, each exactly once")
    sent = Counter(one["customer"] for one in receipts)
    story.check(
        sent == Counter(customers) and {one["charge"] for one in receipts} == {one["id"] for one in charges},
        f"{len(sent)} receipts: one for each charge",
    )


def dead_letters(application: Application) -> set[str]:
    """The keys of the orders in the dead-letter queue, which stay there."""
    url = application.names["DeadOrdersUrl"]
    held: list[dict[str, Any]] = []
    while found := application.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        held.extend(found)
    for message in held:
        application.sqs.change_message_visibility(
            QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
        )
    return {json.loads(message["Body"])["detail"]["object"]["key"] for message in held}


def redriven(story: Story, application: Application, payments: Payments, orders: int) -> None:
    """The payment service learns the currency; the dead letters go back and are charged."""
    payments.post("/currencies", {"currency": "CHF"})
    story.say("The payment service has learned the currency of the ten.")
    application.sqs.start_message_move_task(SourceArn=application.names["DeadOrdersArn"])
    story.until(lambda: payments.figures()["receipts"] >= orders, "the dead letters are charged")
    story.until(lambda: not application.depth("OrderQueueUrl"), "the queue is empty")
    story.check(not application.depth("DeadOrdersUrl"), "the dead-letter queue is empty")
    once_each(story, payments, {order(number)["customer"] for number in range(orders)})
    figures = payments.figures()
    story.check(
        figures["at_once_max"] <= LIMIT and not figures["throttled"], f"still never more than {LIMIT} calls at once"
    )
    story.until(lambda: application.alarm() == "OK", "the alarm is in OK")
    story.until(lambda: application.alert("ALARM", "OK"), "the all-clear is received")
    story.check(application.alarm() == "OK", "the alarm is back in OK, and the all-clear is received")
