"""Code that comes from a bucket."""

import base64
import hashlib
import io
import random
import zipfile
from pathlib import Path

import pytest

from muster.errors import ServiceError
from muster.operation import Answer
from muster.services import lambda_, s3
from muster.services.s3.content import Content
from muster.store import blobs as blob_rows
from muster.store.blobs import Blobs
from muster.testing import World


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs")


@pytest.fixture
def world(blobs: Blobs) -> World:
    world = World(
        [s3.service(blobs), lambda_.service(blobs)],
        parts={blob_rows.PART: blob_rows.MIGRATIONS},
        runners={**s3.runners(blobs), blob_rows.REMOVE: blobs.carry_removal},
    )
    world.call("s3", "CreateBucket", Bucket="code")
    return world


def package(size_bytes: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("app.py", "def handler(event, context): pass")
        archive.writestr("data", random.Random(1).randbytes(size_bytes))
    return buffer.getvalue()


def create(world: World, key: str) -> Answer:
    return world.call(
        "lambda",
        "CreateFunction",
        FunctionName="f",
        Runtime="python3.11",
        Handler="app.handler",
        Role="arn:aws:iam::000000000000:role/any",
        Code={"S3Bucket": "code", "S3Key": key},
    )


def test_small_package_comes_from_a_bucket(world: World) -> None:
    body = package(10)
    world.call("s3", "PutObject", Bucket="code", Key="f.zip", Body=body)
    assert create(world, "f.zip")["CodeSha256"] == base64.b64encode(hashlib.sha256(body).digest()).decode()


def test_large_package_comes_from_a_blob(world: World, blobs: Blobs) -> None:
    body = package(2_000_000)
    staging = blobs.stage()
    staging.write(body)
    digested = Content.of(body)
    received = Content(len(body), digested.md5, digested.checksums, blob=staging.finish())
    world.call("s3", "PutObject", Bucket="code", Key="f.zip", Body=received)
    assert create(world, "f.zip")["CodeSize"] == len(body)
    answer = world.change(lambda tx: tx.call("lambda", "GetCode", {"CodeSha256": sha256(body)}))
    assert answer["ZipFile"] == body


def sha256(body: bytes) -> str:
    return base64.b64encode(hashlib.sha256(body).digest()).decode()


def test_missing_object_is_told_with_the_code_of_s3(world: World) -> None:
    with pytest.raises(ServiceError) as caught:
        create(world, "nothing.zip")
    assert caught.value.code == "InvalidParameterValueException"
    assert "S3 Error Code: NoSuchKey" in caught.value.message
