"""The client's side of a deployment: local code and definitions leave the disk, then the stack is made through the API.

Keeps true: the same folder gives the same zip, byte for byte, under a name made of its content, so that what has not
changed is neither sent nor deployed again. Reads files and speaks to a server through boto3 clients; knows nothing of
how the server deploys.
"""

import hashlib
import io
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from muster.errors import MusterError
from muster.stacks import document
from muster.stacks.problem import Problem
from muster.stacks.template import SERVERLESS

Clients = Callable[[str], Any]

TEMPLATE_NAMES = ("template.yaml", "template.yml", "template.json")
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
# Lambda's quotas: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
UNPACKED_BYTES_MAX = 262_144_000
INLINE_BYTES_MAX = 1_048_576
_LEFT_OUT = frozenset((".git", "__pycache__", ".venv", ".aws-sam", ".mypy_cache", ".pytest_cache", ".ruff_cache"))
_LEFT_OUT_SUFFIXES = (".pyc", ".pyo")
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


class DeployFailed(MusterError):
    """A deployment that did not come about; the text names what failed, and nothing of it is left behind."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file to be put into the artifact bucket before the stack is deployed."""

    key: str
    content: bytes
    source: Path


@dataclass(frozen=True, slots=True)
class Packaged:
    """A template without local paths, and the artifacts that it refers to."""

    body: str
    artifacts: tuple[Artifact, ...]
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def is_serverless(self) -> bool:
        return SERVERLESS in self.body


@dataclass(frozen=True, slots=True)
class Deployed:
    """A stack after its deployment."""

    name: str
    id: str
    action: str  # created, updated, unchanged
    outputs: dict[str, str]
    warnings: tuple[str, ...] = ()


def template_of(app: Path) -> Path:
    """The template file that a path means: itself, or the one in the folder."""
    if app.is_file():
        return app
    if not app.exists():
        raise MusterError(f"There is no {app}.")
    for name in TEMPLATE_NAMES:
        if (app / name).is_file():
            return app / name
    raise MusterError(f"The folder {app} has no template: none of {', '.join(TEMPLATE_NAMES)}.")


def package(app: Path, bucket: str) -> Packaged:
    """Read an application and replace its local paths: code by places in `bucket`, definitions by their text.

    Raises MusterError with the template's name when a path leads nowhere or the template cannot be read.
    """
    file = template_of(app)
    try:
        template = document.read(file.read_text(encoding="utf-8"), aliases=True)
        artifacts = _Packer(file.parent, bucket).pack(template)
    except (Problem, UnicodeDecodeError) as problem:
        raise MusterError(f"{file}: {problem}") from problem
    declared = template.get("Parameters")
    return Packaged(document.write(template), artifacts, declared if isinstance(declared, dict) else {})


class _Packer:
    """Walks a template's resources once, in place."""

    def __init__(self, folder: Path, bucket: str) -> None:
        self._folder = folder
        self._bucket = bucket
        self._artifacts: dict[str, Artifact] = {}

    def pack(self, template: dict[str, Any]) -> tuple[Artifact, ...]:
        resources = template.get("Resources")
        if isinstance(resources, dict):
            shared = _path_of((template.get("Globals") or {}).get("Function"), "CodeUri")
            for logical_id, resource in resources.items():
                if isinstance(resource, dict):
                    self._resource(str(logical_id), resource, shared)
        if shared_is_local(template):
            del template["Globals"]["Function"]["CodeUri"]
        return tuple(self._artifacts.values())

    def _resource(self, logical_id: str, resource: dict[str, Any], shared: str | None) -> None:
        kind = resource.get("Type")
        properties = resource.setdefault("Properties", {})
        if kind in ("AWS::CloudFormation::Stack", "AWS::Serverless::Application"):
            raise Problem(f"Muster does not support nested stacks: resource {logical_id} is {kind}.")
        if not isinstance(properties, dict):
            return
        if kind == "AWS::Serverless::Function":
            self._serverless_function(logical_id, properties, shared)
        elif kind == "AWS::Lambda::Function":
            local = properties.get("Code")
            if isinstance(local, str) and not local.startswith("s3://"):
                key = self._code(logical_id, "Code", local)
                properties["Code"] = {"S3Bucket": self._bucket, "S3Key": key}
        elif kind == "AWS::Serverless::StateMachine":
            self._definition(logical_id, properties, "DefinitionUri")
        elif kind == "AWS::StepFunctions::StateMachine":
            self._definition(logical_id, properties, "DefinitionS3Location")

    def _serverless_function(self, logical_id: str, properties: dict[str, Any], shared: str | None) -> None:
        if "ImageUri" in properties or properties.get("PackageType") == "Image":
            raise Problem(f"Muster does not support container images: resource {logical_id} has one.")
        if "InlineCode" in properties:
            return
        local = properties.get("CodeUri", shared)
        if isinstance(local, str) and not local.startswith("s3://"):
            key = self._code(logical_id, "CodeUri", local)
            properties["CodeUri"] = {"Bucket": self._bucket, "Key": key}

    def _local(self, logical_id: str, name: str, path: str) -> Path:
        found = self._folder / path
        if not found.exists():
            raise Problem(f"Resource {logical_id}, property {name}: there is no {found}.")
        return found

    def _code(self, logical_id: str, name: str, path: str) -> str:
        place = self._local(logical_id, name, path)
        try:
            content = zipped(place)
        except Problem as problem:
            raise Problem(f"Resource {logical_id}, property {name}: {problem}") from None
        key = f"code/{hashlib.sha256(content).hexdigest()}.zip"
        self._artifacts.setdefault(key, Artifact(key, content, place))
        return key

    def _definition(self, logical_id: str, properties: dict[str, Any], name: str) -> None:
        path = properties.get(name)
        if not isinstance(path, str) or path.startswith("s3://"):
            return
        text = self._local(logical_id, name, path).read_text(encoding="utf-8")
        if len(text.encode()) > INLINE_BYTES_MAX:
            raise Problem(f"Resource {logical_id}, property {name}: the definition is longer than 1 MB.")
        del properties[name]
        properties["DefinitionString"] = text


def shared_is_local(template: Mapping[str, Any]) -> bool:
    """Whether Globals give a local CodeUri, which every function has taken over by now."""
    globals_ = template.get("Globals")
    path = _path_of(globals_.get("Function"), "CodeUri") if isinstance(globals_, dict) else None
    return path is not None and not path.startswith("s3://")


def _path_of(section: Any, name: str) -> str | None:
    path = section.get(name) if isinstance(section, dict) else None
    return path if isinstance(path, str) else None


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir(), key=lambda one: one.name):
        if path.name in _LEFT_OUT or path.name.endswith(_LEFT_OUT_SUFFIXES):
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path


def zipped(place: Path) -> bytes:
    """A folder (or a single source file) as a zip that depends on names and contents alone; a zip as it is."""
    if place.is_file():
        content = place.read_bytes()
        if zipfile.is_zipfile(io.BytesIO(content)):
            return content
        files = [(place.name, place)]
    else:
        files = [(path.relative_to(place).as_posix(), path) for path in _files(place)]
    if not files:
        raise Problem(f"the folder {place} is empty.")
    size = sum(path.stat().st_size for _, path in files)
    if size > UNPACKED_BYTES_MAX:
        raise Problem(f"{place} holds {size} bytes; a function may have at most {UNPACKED_BYTES_MAX}.")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, path in files:
            entry = zipfile.ZipInfo(name, _ZIP_EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if path.stat().st_mode & 0o100 else 0o100644) << 16
            archive.writestr(entry, path.read_bytes())
    return packed.getvalue()


def stack_name_of(app: Path) -> str:
    """The name that a stack gets when none is given: the application's folder, in letters that names may have."""
    folder = template_of(app).resolve().parent.name
    name = re.sub(r"[^A-Za-z0-9-]+", "-", folder).strip("-")
    return name if name[:1].isalpha() else f"stack-{name}".rstrip("-")


def artifact_bucket(clients: Clients) -> str:
    """The bucket for artifacts of the server's account and region."""
    account = clients("sts").get_caller_identity()["Account"]
    return f"muster-artifacts-{account}-{clients('cloudformation').meta.region_name}"


def upload(clients: Clients, bucket: str, artifacts: tuple[Artifact, ...]) -> None:
    """Put the artifacts that are not there yet into the bucket; make the bucket first if need be."""
    if not artifacts:
        return
    s3 = clients("s3")
    _make_bucket(s3, bucket)
    for artifact in artifacts:
        try:
            s3.head_object(Bucket=bucket, Key=artifact.key)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
                raise
            s3.put_object(Bucket=bucket, Key=artifact.key, Body=artifact.content)


def _make_bucket(s3: Any, bucket: str) -> None:
    try:
        s3.head_bucket(Bucket=bucket)
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
            raise
        region = s3.meta.region_name
        place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        s3.create_bucket(Bucket=bucket, **place)


def deploy(
    app: Path,
    clients: Clients,
    *,
    name: str | None = None,
    parameters: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
) -> Deployed:
    """Package an application and create its stack, or bring it up to date.

    `clients` makes a boto3 client by a service's name. Parameters that are not given keep their values in an update,
    or take their defaults. Raises DeployFailed with the resource, its property and the reason; a stack that could not
    be created before is replaced.
    """
    name = name or stack_name_of(app)
    bucket = artifact_bucket(clients)
    packaged = package(app, bucket)
    upload(clients, bucket, packaged.artifacts)
    cloudformation = clients("cloudformation")
    before = _described(cloudformation, name)
    if before is not None and before["StackStatus"] in ("ROLLBACK_COMPLETE", "REVIEW_IN_PROGRESS"):
        cloudformation.delete_stack(StackName=name)
        before = None
    request: dict[str, Any] = {
        "StackName": name,
        "TemplateBody": packaged.body,
        "Parameters": _parameters(packaged, parameters or {}, before),
        "Capabilities": CAPABILITIES,
    }
    if tags is not None:
        request["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
    action = "created" if before is None else "updated"
    try:
        if before is None:
            cloudformation.create_stack(**request)
        else:
            cloudformation.update_stack(**request)
    except ClientError as error:
        if "No updates are to be performed" not in error.response["Error"]["Message"]:
            raise DeployFailed(f"{name}: {error.response['Error']['Message']}") from error
        action = "unchanged"
    stack = _settled(cloudformation, name)
    warnings, failures = _told(cloudformation, stack) if action != "unchanged" else ((), ())
    if action != "unchanged" and stack["StackStatus"] not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        reasons = " ".join(failures) or stack.get("StackStatusReason", "")
        raise DeployFailed(f"{name} was not deployed: {reasons}")
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
    return Deployed(name, stack["StackId"], action, outputs, warnings)


def _described(cloudformation: Any, name: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in error.response["Error"]["Message"]:
            return None
        raise
    return found


def _settled(cloudformation: Any, name: str, seconds: float = 1800.0) -> dict[str, Any]:
    """The stack once nothing is in progress: at once with Muster, in its time with AWS."""
    end = time.monotonic() + seconds
    while True:
        stack: dict[str, Any] = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
        if not stack["StackStatus"].endswith("_IN_PROGRESS"):
            return stack
        if time.monotonic() > end:
            raise DeployFailed(f"{name} is still {stack['StackStatus']}.")
        time.sleep(2.0)


def _parameters(packaged: Packaged, given: Mapping[str, str], before: dict[str, Any] | None) -> list[dict[str, Any]]:
    unknown = given.keys() - packaged.parameters.keys()
    if unknown:
        raise DeployFailed(f"The template has no parameter {', '.join(sorted(unknown))}.")
    request: list[dict[str, Any]] = [
        {"ParameterKey": key, "ParameterValue": str(value)} for key, value in given.items()
    ]
    kept = {one["ParameterKey"] for one in (before or {}).get("Parameters", [])}
    for key in packaged.parameters:
        if key in kept and key not in given:
            request.append({"ParameterKey": key, "UsePreviousValue": True})
    return request


def _told(cloudformation: Any, stack: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The warnings and the failures among the events of the latest deployment, in order."""
    warnings: list[str] = []
    failures: list[str] = []
    for page in cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack["StackId"]):
        for event in page["StackEvents"]:
            reason = event.get("ResourceStatusReason", "")
            if reason.startswith("Warning:"):
                warnings.insert(0, reason.removeprefix("Warning:").strip())
            elif event["ResourceStatus"].endswith("_FAILED"):
                failures.insert(0, reason)
            if event["PhysicalResourceId"] == stack["StackId"] and reason == "User Initiated":
                return tuple(warnings), tuple(failures)
    return tuple(warnings), tuple(failures)
