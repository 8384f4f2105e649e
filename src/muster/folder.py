"""The data folder: where a server's database, blobs and unpacked functions lie, held by one process at a time.

Keeps true: two servers never work on one folder; a folder keeps the account and region it was made with.
"""

import fcntl
import os
from pathlib import Path

import orjson

from muster.errors import MusterError
from muster.store.port import Realm


class DataFolder:
    """A folder, locked by this process until it is closed."""

    def __init__(self, path: Path, realm: Realm | None) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise MusterError(
                f"The data folder {path} cannot be used: {error.strerror}. Give another with --data."
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise MusterError(
                f"Another Muster works on the data folder {path}. Stop it first, or give another folder with --data."
            ) from error
        self.realm = self._settle(realm)

    @property
    def database(self) -> Path:
        return self.path / "muster.db"

    @property
    def blobs(self) -> Path:
        return self.path / "blobs"

    @property
    def functions(self) -> Path:
        return self.path / "functions"

    def close(self) -> None:
        """Let another process have the folder."""
        os.close(self._lock)

    def _settle(self, asked: Realm | None) -> Realm:
        """The realm that the folder was made with; on its first use, the one asked for is written down."""
        file = self.path / "realm.json"
        if not file.exists():
            realm = asked or Realm()
            staged = file.with_suffix(".new")
            staged.write_bytes(orjson.dumps({"account": realm.account, "region": realm.region}))
            staged.replace(file)
            return realm
        kept = orjson.loads(file.read_bytes())
        realm = Realm(kept["account"], kept["region"])
        if asked is not None and asked != realm:
            raise MusterError(
                f"The data folder {self.path} belongs to account {realm.account} in {realm.region},"
                f" not to {asked.account} in {asked.region}. Give another folder with --data."
            )
        return realm
