"""The client's side: local paths leave the template, zips depend on content alone, and a stack is brought about."""

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from muster.errors import MusterError, ServiceError
from muster.services import lambda_, logs, s3, sqs, stepfunctions, sts
from muster.stacks import SERVICE
from muster.stacks.document import read
from muster.stacks.package import DeployFailed, deploy, package, stack_name_of, template_of, zipped
from muster.store import blobs as blob_rows
from muster.store.blobs import Blobs
from muster.testing import World

SAM = """\
Transform: AWS::Serverless-2016-10-31
Globals: {Function: {CodeUri: src/, Runtime: python3.11}}
Parameters: {Comment: {Type: String, Default: none}}
Resources:
  One:
    Type: AWS::Serverless::Function
    Properties: {Handler: app.handler}
  Two:
    Type: AWS::Serverless::Function
    Properties: {Handler: app.handler, CodeUri: other.zip}
  Machine:
    Type: AWS::Serverless::StateMachine
    Properties:
      Role: arn:aws:iam::000000000000:role/any
      DefinitionUri: machine.asl.json
      DefinitionSubstitutions: {Comment: !Ref Comment}
Outputs:
  Machine: {Value: !Ref Machine}
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    folder = tmp_path / "my app"
    (folder / "src" / "__pycache__").mkdir(parents=True)
    (folder / "template.yaml").write_text(SAM)
    (folder / "src" / "app.py").write_text("def handler(event, context): return event\n")
    (folder / "src" / "__pycache__" / "app.pyc").write_bytes(b"")
    (folder / "machine.asl.json").write_text(
        '{"Comment": "${Comment}", "StartAt": "A", "States": {"A": {"Type": "Pass", "End": true}}}'
    )
    with zipfile.ZipFile(folder / "other.zip", "w") as archive:
        archive.writestr("app.py", "")
    return folder


class Client:
    """A boto3 client's manners in front of a world."""

    def __init__(self, world: World, service: str) -> None:
        self._world = world
        self._service = service
        self.meta = type("Meta", (), {"region_name": "us-east-1"})

    def __getattr__(self, method: str) -> Callable[..., Any]:
        operation = "".join(part.title() for part in method.split("_"))

        def call(**request: Any) -> Any:
            try:
                return self._world.call(self._service, operation, **request)
            except ServiceError as error:
                status = error.status or (404 if error.code in ("NoSuchBucket", "NoSuchKey", "NotFound") else 400)
                response: Any = {
                    "Error": {"Code": error.code, "Message": error.message},
                    "ResponseMetadata": {"HTTPStatusCode": 404 if error.code == "404" else status},
                }
                raise ClientError(response, operation) from error

        return call

    def get_paginator(self, method: str) -> Any:
        call = getattr(self, method)

        class Pages:
            def paginate(self, **request: Any) -> Any:
                yield call(**request)

        return Pages()


@pytest.fixture
def world(tmp_path: Path) -> World:
    blobs = Blobs(tmp_path / "blobs")
    return World(
        [
            s3.service(blobs),
            sqs.SERVICE,
            lambda_.service(blobs),
            logs.SERVICE,
            stepfunctions.SERVICE,
            sts.SERVICE,
            SERVICE,
        ],
        parts={blob_rows.PART: blob_rows.MIGRATIONS},
        runners={blob_rows.REMOVE: blobs.carry_removal, **s3.runners(blobs)},
    )


@pytest.fixture
def clients(world: World) -> Callable[[str], Any]:
    return lambda service: Client(world, service)


def test_local_paths_become_places_in_the_bucket_and_text(app: Path) -> None:
    packaged = package(app, "artifacts")
    resources = read(packaged.body)["Resources"]
    places = [resources[name]["Properties"]["CodeUri"] for name in ("One", "Two")]
    assert [place["Bucket"] for place in places] == ["artifacts", "artifacts"]
    assert sorted(place["Key"] for place in places) == sorted(artifact.key for artifact in packaged.artifacts)
    machine = resources["Machine"]["Properties"]
    assert machine["DefinitionString"] == (app / "machine.asl.json").read_text()
    assert "DefinitionUri" not in machine
    assert "CodeUri" not in read(packaged.body)["Globals"]["Function"]


def test_zip_depends_on_names_and_contents_alone(app: Path, tmp_path: Path) -> None:
    first = zipped(app / "src")
    os.utime(app / "src" / "app.py", (0, 1_000_000_000))
    assert zipped(app / "src") == first
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert archive.namelist() == ["app.py"]
    (app / "src" / "app.py").write_text("changed")
    assert zipped(app / "src") != first


def test_executables_stay_executable(tmp_path: Path) -> None:
    (tmp_path / "bootstrap").write_text("#!/bin/sh\n")
    (tmp_path / "bootstrap").chmod(0o755)
    with zipfile.ZipFile(io.BytesIO(zipped(tmp_path))) as archive:
        assert archive.infolist()[0].external_attr >> 16 & 0o111


def test_template_is_found_in_its_folder(app: Path, tmp_path: Path) -> None:
    assert template_of(app) == app / "template.yaml"
    assert template_of(app / "template.yaml") == app / "template.yaml"
    assert stack_name_of(app) == "my-app"
    with pytest.raises(MusterError, match=r"has no template: none of template\.yaml, template\.yml, template\.json"):
        template_of(app / "src")
    with pytest.raises(MusterError, match="There is no"):
        template_of(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("CodeUri: other.zip", "CodeUri: absent/", "Resource Two, property CodeUri: there is no .*absent"),
        ("machine.asl.json", "absent.json", r"Resource Machine, property DefinitionUri: there is no .*absent\.json"),
        ("AWS::Serverless::StateMachine", "AWS::CloudFormation::Stack", "nested stacks: resource Machine"),
        ("CodeUri: other.zip", "PackageType: Image", "container images: resource Two"),
        ("Resources:", "Resources: [", "YAML not well-formed"),
    ],
)
def test_what_cannot_be_packaged_is_named(app: Path, before: str, after: str, told: str) -> None:
    (app / "template.yaml").write_text(SAM.replace(before, after))
    with pytest.raises(MusterError, match=told):
        package(app, "artifacts")


def test_deploy_creates_updates_and_leaves_alone(app: Path, clients: Callable[[str], Any], world: World) -> None:
    first = deploy(app, clients, parameters={"Comment": "hello"})
    assert (first.name, first.action, first.warnings) == ("my-app", "created", ())
    arn = first.outputs["Machine"]
    definition = world.call("stepfunctions", "DescribeStateMachine", stateMachineArn=arn)["definition"]
    assert '"Comment": "hello"' in definition
    assert deploy(app, clients).action == "unchanged"
    (app / "src" / "app.py").write_text("def handler(event, context): return 2\n")
    assert deploy(app, clients, parameters={"Comment": "bye"}).action == "updated"
    definition = world.call("stepfunctions", "DescribeStateMachine", stateMachineArn=arn)["definition"]
    assert '"Comment": "bye"' in definition
    buckets = world.call("s3", "ListBuckets")["Buckets"]
    assert [bucket["Name"] for bucket in buckets] == ["muster-artifacts-000000000000-us-east-1"]


def test_failed_deployment_says_what_failed_and_can_be_repeated(app: Path, clients: Callable[[str], Any]) -> None:
    template = app / "template.yaml"
    template.write_text(SAM.replace("DefinitionSubstitutions: {Comment: !Ref Comment}", "Tags: {a: b}"))
    with pytest.raises(
        DeployFailed, match=r"Machine \(AWS::StepFunctions::StateMachine\).*\$\{Comment\} without a value"
    ):
        deploy(app, clients)
    template.write_text(SAM)
    assert deploy(app, clients).action == "created"
    template.write_text(SAM.replace("Handler: app.handler}", "Handler: app.handler, Timeout: 0}"))
    with pytest.raises(DeployFailed, match=r"One \(AWS::Lambda::Function\), property Timeout"):
        deploy(app, clients)


def test_unknown_parameters_and_bad_templates_are_refused(app: Path, clients: Callable[[str], Any]) -> None:
    with pytest.raises(DeployFailed, match="The template has no parameter Nothing"):
        deploy(app, clients, parameters={"Nothing": "x"})
    (app / "template.yaml").write_text(SAM + "Rules: {}\n")
    with pytest.raises(DeployFailed, match="does not support the section Rules"):
        deploy(app, clients)
