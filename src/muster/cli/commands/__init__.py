"""The commands, a module for what belongs together; importing them adds them to the application."""

from muster.cli.commands import demo, doctor, environment, executions, logs, objects, serve, stacks, status

__all__ = ["demo", "doctor", "environment", "executions", "logs", "objects", "serve", "stacks", "status"]
