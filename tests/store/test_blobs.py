"""What blobs keep true: whole or not there, kept while named or read, and leftovers swept."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from muster.errors import ServiceError
from muster.store import blobs as blob_rows
from muster.store.blobs import Blob, Blobs
from muster.testing import World

LATER = 4e9


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs")


@pytest.fixture
def world(blobs: Blobs) -> World:
    return World([], parts={blob_rows.PART: blob_rows.MIGRATIONS}, runners={blob_rows.REMOVE: blobs.carry_removal})


def staged(blobs: Blobs, data: bytes) -> Blob:
    staging = blobs.stage()
    staging.write(data)
    return staging.finish()


def files(blobs: Blobs) -> list[Path]:
    return [path for path in blobs.folder.rglob("*") if path.is_file()]


def test_a_finished_blob_is_read_whole_and_in_part(blobs: Blobs) -> None:
    blob = staged(blobs, b"hello world")
    assert blob.size == 11
    assert blobs.read(blob.id) == b"hello world"
    assert blobs.read(blob.id, 6, 5) == b"world"
    assert blobs.read(blob.id, 11, 0) == b""


def test_a_discarded_staging_leaves_nothing(blobs: Blobs) -> None:
    staging = blobs.stage()
    staging.write(b"half")
    staging.discard()
    staging.discard()
    assert files(blobs) == []


def test_a_blob_that_is_shorter_than_its_row_says_is_an_error(blobs: Blobs) -> None:
    blob = staged(blobs, b"hello")
    with pytest.raises(OSError, match="shorter"):
        blobs.read(blob.id, 0, 6)


def test_the_last_use_takes_the_file_with_it(blobs: Blobs, world: World) -> None:
    blob = staged(blobs, b"x")
    world.change(lambda tx: blob_rows.keep(tx, blob))
    world.change(lambda tx: blob_rows.share(tx, blob.id))
    world.change(lambda tx: blob_rows.drop(tx, blob.id))
    world.settle()
    assert blobs.read(blob.id) == b"x"
    world.change(lambda tx: blob_rows.drop(tx, blob.id))
    assert blobs.path(blob.id).exists()
    world.settle()
    assert files(blobs) == []
    assert world.rows("SELECT id FROM blobs") == []


def test_a_drop_that_is_rolled_back_keeps_the_file(blobs: Blobs, world: World) -> None:
    blob = staged(blobs, b"x")
    world.change(lambda tx: blob_rows.keep(tx, blob))

    def fail(tx: Any) -> None:
        blob_rows.drop(tx, blob.id)
        raise ServiceError("Refused", "after all")

    with pytest.raises(ServiceError):
        world.change(fail)
    world.settle()
    assert blobs.read(blob.id) == b"x"


def test_a_blob_that_is_being_read_outlives_its_removal(blobs: Blobs) -> None:
    blob = staged(blobs, b"x")
    with blobs.held(blob.id):
        with blobs.held(blob.id):
            blobs.remove(blob.id)
        assert blobs.read(blob.id) == b"x"
    assert files(blobs) == []


def test_the_sweep_removes_what_no_row_names(blobs: Blobs, world: World) -> None:
    kept = [staged(blobs, b"kept") for _ in range(3)]
    for blob in kept:
        world.change(lambda tx, blob=blob: blob_rows.keep(tx, blob))  # type: ignore[misc]
    staged(blobs, b"lost")
    half = blobs.stage()
    half.write(b"half")
    assert world.run(blobs.sweep(world.store.read, LATER)) == 2
    assert sorted(path.name for path in files(blobs)) == sorted(blob.id for blob in kept)
    half.discard()


def test_the_sweep_spares_what_is_newer_than_the_process(blobs: Blobs, world: World) -> None:
    staged(blobs, b"about to be named")
    assert world.run(blobs.sweep(world.store.read, 0.0)) == 0
    assert len(files(blobs)) == 1


def test_a_full_disk_is_a_clear_refusal_and_leaves_nothing(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    staging = blobs.stage()
    staging.write(b"fits")

    def full(fd: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(ServiceError) as refused:
        staging.write(b"does not")
    assert (refused.value.code, refused.value.status) == ("InsufficientStorage", 507)
    assert files(blobs) == []


def test_a_short_write_is_carried_on(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data[:3])))
    assert blobs.read(staged(blobs, b"hello world").id) == b"hello world"


def test_a_failed_sync_is_no_blob(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    staging = blobs.stage()
    staging.write(b"x")

    def broken(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output"):
        staging.finish()
    assert files(blobs) == []
