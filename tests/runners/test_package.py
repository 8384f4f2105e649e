"""Deployment packages become folders, safely."""

import base64
import hashlib
import io
import os
import stat
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.errors import ServiceError
from muster.runners import package


def zipped(*entries: tuple[str, bytes, int]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, body, mode in entries:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            archive.writestr(entry, body)
    return buffer.getvalue()


def unpack(folder: Path, body: bytes) -> Path:
    return package.unpacked(folder / "cache", base64.b64encode(hashlib.sha256(body).digest()).decode(), body)


def test_files_keep_their_content_and_whether_they_are_programs(tmp_path: Path) -> None:
    body = zipped(("bootstrap", b"#!/bin/sh\n", stat.S_IFREG | 0o755), ("lib/data.txt", b"x", stat.S_IFREG | 0o600))
    root = unpack(tmp_path, body)
    assert os.access(root / "bootstrap", os.X_OK)
    assert (root / "lib" / "data.txt").read_bytes() == b"x"
    assert stat.S_IMODE((root / "lib" / "data.txt").stat().st_mode) == 0o644


def test_second_unpacking_finds_the_folder(tmp_path: Path) -> None:
    body = zipped(("a", b"1", 0))
    root = unpack(tmp_path, body)
    (root / "mark").touch()
    assert unpack(tmp_path, body) == root
    assert (root / "mark").exists()


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil", "..\\evil"])
def test_entry_that_leads_outside_is_refused_and_nothing_is_left(tmp_path: Path, name: str) -> None:
    with pytest.raises(ServiceError) as caught:
        unpack(tmp_path, zipped(("good", b"1", 0), (name, b"1", 0)))
    assert caught.value.code == "InvalidZipFileException"
    assert list((tmp_path / "cache").iterdir()) == []
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside"])
def test_link_that_leads_outside_is_refused(tmp_path: Path, target: str) -> None:
    with pytest.raises(ServiceError, match="leads outside"):
        unpack(tmp_path, zipped(("link", target.encode(), stat.S_IFLNK | 0o777)))


def test_link_within_the_package_is_kept_but_not_written_through(tmp_path: Path) -> None:
    root = unpack(tmp_path, zipped(("a/real", b"1", 0), ("link", b"a/real", stat.S_IFLNK | 0o777)))
    assert (root / "link").read_bytes() == b"1"
    with pytest.warns(UserWarning, match="Duplicate name"):
        body = zipped(("link", b"a", stat.S_IFLNK | 0o777), ("link", b"2", 0))
    with pytest.raises(ServiceError, match="through a link"):
        unpack(tmp_path, body)


def test_sweep_keeps_only_what_is_in_use(tmp_path: Path) -> None:
    used, unused = zipped(("a", b"1", 0)), zipped(("a", b"2", 0))
    kept, gone = unpack(tmp_path, used), unpack(tmp_path, unused)
    package.sweep(tmp_path / "cache", [base64.b64encode(hashlib.sha256(used).digest()).decode()])
    assert (kept.exists(), gone.exists()) == (True, False)
    package.sweep(tmp_path / "nothing", [])


def test_package_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "UNZIPPED_BYTES_MAX", 100)
    with pytest.raises(ServiceError, match="more than 100 bytes"):
        unpack(tmp_path, zipped(("a", b"x" * 60, 0), ("b", b"x" * 60, 0)))


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}(/[a-z0-9]{1,8}\.py)?", fullmatch=True), st.binary(max_size=50), max_size=5
    )
)
def test_what_was_zipped_is_what_lies_there(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> None:
    folders = {name.split("/")[0] for name in files if "/" in name}
    files = {name: body for name, body in files.items() if name not in folders}
    root = unpack(tmp_path_factory.mktemp("package"), zipped(*((name, body, 0) for name, body in files.items())))
    found = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert found == files
