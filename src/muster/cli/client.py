"""How commands reach a server: boto3 clients for one endpoint."""

import os
from collections.abc import Callable
from typing import Any

import boto3
from botocore.config import Config

DEFAULT_ENDPOINT = "http://127.0.0.1:4566"

Client = Any
Clients = Callable[[str], Client]


def endpoint_of(given: str | None) -> str:
    """The endpoint asked for, or the environment's, or the default port on this machine."""
    return (given or os.environ.get("AWS_ENDPOINT_URL") or DEFAULT_ENDPOINT).rstrip("/")


def clients(endpoint: str, region: str | None = None) -> Clients:
    """A maker of boto3 clients; each service's client is made once."""
    session = boto3.Session(
        aws_access_key_id=os.environ.get("AWS_ACCESS_KEY_ID") or "muster",
        aws_secret_access_key=os.environ.get("AWS_SECRET_ACCESS_KEY") or "muster",
        region_name=region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1",
    )
    config = Config(
        retries={"total_max_attempts": 2}, connect_timeout=5, read_timeout=120, s3={"addressing_style": "path"}
    )
    made: dict[str, Client] = {}

    def client(service: str) -> Client:
        if service not in made:
            made[service] = session.client(service, endpoint_url=endpoint, config=config)
        return made[service]

    return client


def pages(client: Client, operation: str, member: str, **parameters: Any) -> list[Any]:
    """All that a listing operation answers, page after page."""
    found: list[Any] = []
    for page in client.get_paginator(operation).paginate(**parameters):
        found.extend(page.get(member, []))
    return found
