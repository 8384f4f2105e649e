"""The commands, a module for what belongs together; importing them adds them to the application."""

from muster.cli.commands import (
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
