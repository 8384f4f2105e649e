"""The commands, a module for what belongs together; importing them adds them to the application."""

from muster.cli.commands import (
    alerts,
    dead_letters,
    demo,
    doctor,
    environment,
    executions,
    logs,
    objects,
    queues,
    serve,
    stacks,
    status,
)

__all__ = [
    "alerts",
    "dead_letters",
    "demo",
    "doctor",
    "environment",
    "executions",
    "logs",
    "objects",
    "queues",
    "serve",
    "stacks",
    "status",
]
