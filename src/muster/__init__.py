"""Muster: pipelines for files that depend on each other, on a durable runtime that speaks AWS's own protocols."""

__version__ = "0.1.0"
