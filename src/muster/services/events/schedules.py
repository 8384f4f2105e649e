"""Rules that are due by the clock: each has one timer, a posted delivery that posts its successor.

Keeps true: an enabled schedule rule has exactly one timer; it never fires early, and what was missed while nobody ran
fires once. The event of a schedule goes to the targets of its own rule only.
"""

from muster.languages.cron import InvalidSchedule, Schedule, schedule
from muster.services.events import occurrence, routes
from muster.services.events.refusals import invalid_parameter
from muster.transaction import Carried, Delivery, Transaction

KIND = "events.schedule"


def checked(text: str) -> Schedule:
    """The schedule; ValidationException when the text is none."""
    try:
        return schedule(text)
    except InvalidSchedule:
        raise invalid_parameter("ScheduleExpression") from None


def restart(tx: Transaction, bus: str, rule: str, expression: str | None) -> None:
    """Set the rule's timer anew; with no expression, only take it away."""
    subject = f"{bus}/{rule}"
    tx.cancel(KIND, subject)
    if expression is not None:
        due_at = checked(expression).following(tx.now)
        if due_at is not None:
            tx.post(Delivery(KIND, subject, {"bus": bus, "rule": rule, "expression": expression}, due_at))


def carry(tx: Transaction, timer: Carried) -> None:
    """The schedule is due: send its event, and set the timer for the next time."""
    bus, rule, expression = timer.payload["bus"], timer.payload["rule"], timer.payload["expression"]
    found = routes.of(tx, bus)
    event = occurrence.scheduled(tx, rule, timer.due_at)
    if found is not None:
        routes.send(tx, bus, event, {rule: found.targets.get(rule, ())})
    plan = checked(expression)
    due_at = plan.following(timer.due_at)
    if due_at is not None and due_at <= tx.now:
        due_at = plan.following(tx.now)
    if due_at is not None:
        tx.post(Delivery(KIND, timer.subject, timer.payload, due_at))
