"""How a function's runtime is started: the command and the environment of its process.

Keeps true: a worker sees the function's own variables and what AWS promises, and nothing of the server's environment
but PATH. Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html. Does not start anything.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from muster.errors import ServiceError

BOOTSTRAP = Path(__file__).parent / "runtime" / "bootstrap.mjs"
LAUNCH = Path(__file__).parent / "runtime" / "launch.py"
_PROBE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all functions of a server share."""

    endpoint_url: str
    region: str
    home: Path
    access_key: str = "function"
    secret_key: str = "function"
    session_token: str = "function"


@dataclass(frozen=True, slots=True)
class Revision:
    """One version of a function at one revision: what a worker is started for."""

    function: str
    version: str
    revision: str
    settings: Mapping[str, Any]
    code_sha256: str

    @property
    def logging(self) -> Mapping[str, Any]:
        """The function's LoggingConfig."""
        found: Mapping[str, Any] = self.settings.get("LoggingConfig", {})
        return found

    @property
    def log_group(self) -> str:
        group = self.logging.get("LogGroup")
        return str(group or f"/aws/lambda/{self.function}")


class InvalidEntrypoint(Exception):
    """The package has no program to run."""


def command(revision: Revision, root: Path) -> list[str]:
    """The command line of the runtime; ServiceError when this machine has no such interpreter."""
    runtime = str(revision.settings["Runtime"])
    handler = str(revision.settings["Handler"])
    if runtime.startswith("python"):
        return [python(runtime.removeprefix("python")), "-m", "awslambdaric", handler]
    if runtime.startswith("nodejs"):
        return [node(), str(BOOTSTRAP)]
    bootstrap = root / "bootstrap"
    if not os.access(bootstrap, os.X_OK) or not bootstrap.is_file():
        raise InvalidEntrypoint(f"Couldn't find valid bootstrap(s): [{bootstrap}]")
    return [str(bootstrap)]


@cache
def python(version: str) -> str:
    """An interpreter for Python functions: of the very version if one on PATH has awslambdaric, else Muster's own."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    found = shutil.which(f"python{version}")
    if found is not None:
        try:
            probe = subprocess.run(
                [found, "-c", "import awslambdaric"], capture_output=True, timeout=_PROBE_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return sys.executable
        if probe.returncode == 0:
            return found
    return sys.executable


def node() -> str:
    """The `node` on PATH."""
    found = shutil.which("node")
    if found is None:
        raise ServiceError(
            "InvalidRuntimeException", "Functions for Node.js need the program `node`, which is not on PATH."
        )
    return found


def environment(
    revision: Revision, root: Path, runtime_api: str, log_stream: str, around: Surroundings
) -> dict[str, str]:
    """The whole environment of a worker."""
    settings = revision.settings
    runtime = str(settings["Runtime"])
    variables = {
        str(key): str(value) for key, value in (settings.get("Environment", {}).get("Variables") or {}).items()
    }
    found: dict[str, str] = {
        "LANG": "C.UTF-8",
        "TZ": ":UTC",
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(around.home),
        "AWS_ENDPOINT_URL": around.endpoint_url,
        "AWS_ACCESS_KEY_ID": around.access_key,
        "AWS_SECRET_ACCESS_KEY": around.secret_key,
        "AWS_SESSION_TOKEN": around.session_token,
        **variables,
        "AWS_REGION": around.region,
        "AWS_DEFAULT_REGION": around.region,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{runtime}",
        "AWS_LAMBDA_FUNCTION_NAME": revision.function,
        "AWS_LAMBDA_FUNCTION_VERSION": revision.version,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(settings["MemorySize"]),
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": revision.log_group,
        "AWS_LAMBDA_LOG_STREAM_NAME": log_stream,
        "AWS_LAMBDA_RUNTIME_API": runtime_api,
        "LAMBDA_TASK_ROOT": str(root),
        "LAMBDA_RUNTIME_DIR": str(LAUNCH.parent),
        "_HANDLER": str(settings["Handler"]),
    }
    if revision.logging.get("LogFormat") == "JSON":
        found["AWS_LAMBDA_LOG_FORMAT"] = "JSON"
        found["AWS_LAMBDA_LOG_LEVEL"] = str(revision.logging.get("ApplicationLogLevel", "INFO"))
    if re.match("nodejs", runtime):
        found.setdefault("NODE_PATH", str(root / "node_modules"))
    return found
