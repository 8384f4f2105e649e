"""A function's code on disk: each deployment package unpacked once, in a folder named by its content.

Keeps true: a folder that has its final name is complete; nothing is written outside it; no more is unpacked than AWS
allows. Does not know where packages are stored.
"""

import base64
import io
import os
import shutil
import stat
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from muster.errors import ServiceError

UNZIPPED_BYTES_MAX = 262_144_000
ENTRIES_MAX = 100_000
_COPY_BYTES = 1 << 20


def folder_name(sha256: str) -> str:
    """A file name for a base64 SHA-256."""
    return base64.b64decode(sha256).hex()


def unpacked(cache: Path, sha256: str, body: bytes) -> Path:
    """The folder with the package's files, unpacked if need be; InvalidZipFileException when that cannot be done."""
    final = cache / folder_name(sha256)
    if final.is_dir():
        return final
    cache.mkdir(parents=True, exist_ok=True)
    partial = cache / f".{final.name}.{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            _extract(archive, partial)
        partial.rename(final)
    except (zipfile.BadZipFile, OSError, RuntimeError, EOFError, ValueError) as fault:
        shutil.rmtree(partial, ignore_errors=True)
        if final.is_dir():
            return final
        raise ServiceError("InvalidZipFileException", f"Could not unzip the function's code: {fault}") from fault
    return final


def sweep(cache: Path, in_use: Iterable[str]) -> None:
    """Remove the folders of packages that are not in use, and what was left half unpacked."""
    kept = {folder_name(sha256) for sha256 in in_use}
    if cache.is_dir():
        for folder in cache.iterdir():
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)


def _extract(archive: zipfile.ZipFile, root: Path) -> None:
    entries = archive.infolist()
    if len(entries) > ENTRIES_MAX:
        raise ValueError(f"more than {ENTRIES_MAX} entries")
    left = UNZIPPED_BYTES_MAX
    for entry in entries:
        target = root / _inside(entry.filename)
        mode = entry.external_attr >> 16
        if entry.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif stat.S_ISLNK(mode):
            _link(archive.read(entry).decode(), target, root)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            left = _copy(archive, entry, target, root, left)
            # Zips made without modes (0) get what a file usually has; all must be readable here.
            target.chmod((stat.S_IMODE(mode) & 0o755) | 0o444 if mode else 0o644)


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in path.parts[0:1] or "\0" in name:
        raise ValueError(f"the entry {name!r} leads outside the package")
    return path


def _link(to: str, target: Path, root: Path) -> None:
    # Node packages carry links within themselves; one that leads out would be a way to read the machine's files.
    reached = Path(os.path.normpath(target.parent / to))
    if os.path.isabs(to) or not reached.is_relative_to(root):
        raise ValueError(f"the link {target.relative_to(root)} leads outside the package")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(to)


def _copy(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, root: Path, left: int) -> int:
    if target.is_symlink() or not target.parent.resolve().is_relative_to(root.resolve()):
        raise ValueError(f"the entry {entry.filename!r} writes through a link")
    with archive.open(entry) as source, target.open("wb") as sink:
        while chunk := source.read(_COPY_BYTES):
            left -= len(chunk)
            if left < 0:
                raise ValueError(f"more than {UNZIPPED_BYTES_MAX} bytes")
            sink.write(chunk)
    return left
