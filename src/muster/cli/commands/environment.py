"""`muster env`: the settings that point AWS tools at the server."""

import os
import shlex

from muster.cli import show
from muster.cli.app import Endpoint, Json, app, server


@app.command("env")
def env(endpoint: Endpoint = None, json: Json = False) -> None:
    """Print the exports that point AWS tools at the server: eval "$(muster env)"."""
    values = {
        "AWS_ENDPOINT_URL": server(endpoint).endpoint,
        "AWS_ACCESS_KEY_ID": os.environ.get("AWS_ACCESS_KEY_ID") or "muster",
        "AWS_SECRET_ACCESS_KEY": os.environ.get("AWS_SECRET_ACCESS_KEY") or "muster",
        "AWS_DEFAULT_REGION": os.environ.get("AWS_DEFAULT_REGION") or os.environ.get("AWS_REGION") or "us-east-1",
    }
    if json:
        show.as_json(values)
        return
    for name, value in values.items():
        print(f"export {name}={shlex.quote(value)}")
