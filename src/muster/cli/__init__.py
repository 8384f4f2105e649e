"""The command line. Every command speaks to a server through the AWS protocols, as any client would; none has logic of
its own about services."""

from muster.cli.app import main

__all__ = ["main"]
