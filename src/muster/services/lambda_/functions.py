"""Functions and their versions: created, changed, published, deleted, and found by name and qualifier.

Keeps true: `$LATEST` can change and numbered versions cannot; a revision id changes with every change. Does not know
how functions are called.
"""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from muster.clock import Instant
from muster.errors import ServiceError
from muster.services.lambda_ import code, settings
from muster.services.lambda_.code import Code, ReadBlob
from muster.services.lambda_.names import LATEST, Name, function_arn, not_found
from muster.transaction import Row, Transaction

TAGS_MAX = 50


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a function: its settings and which code it runs."""

    function: str
    version: str
    settings: Mapping[str, Any]
    code: Code
    revision: str
    modified_at: Instant

    @property
    def timeout_seconds(self) -> int:
        return int(self.settings["Timeout"])


def _version(row: Row) -> Version:
    return Version(
        function=row["function"],
        version=row["version"],
        settings=orjson.loads(row["settings"]),
        code=Code(row["code_sha256"], row["code_size"]),
        revision=row["revision"],
        modified_at=row["modified_at"],
    )


def create(tx: Transaction, request: Mapping[str, Any], name: str, read_blob: ReadBlob) -> Version:
    """A new function; ResourceConflictException when the name is taken."""
    if exists(tx, name):
        raise ServiceError("ResourceConflictException", f"Function already exist: {name}", fields={"Type": "User"})
    complete = settings.initial({**request, "FunctionName": name})
    package = code.keep(tx, request["Code"], read_blob)
    tags = request.get("Tags") or {}
    _check_tags(tags)
    tx.run(
        "INSERT INTO lambda_functions (name, tags, created_at) VALUES (:name, :tags, :now)",
        name=name,
        tags=orjson.dumps(tags).decode(),
        now=tx.now,
    )
    return _write(tx, Version(name, LATEST, complete, package, tx.new_id(), tx.now))


def _write(tx: Transaction, version: Version) -> Version:
    tx.run(
        "INSERT INTO lambda_versions (function, version, settings, code_sha256, code_size, revision, modified_at)"
        " VALUES (:function, :version, :settings, :sha256, :size, :revision, :modified_at)"
        " ON CONFLICT (function, version) DO UPDATE SET settings = excluded.settings,"
        " code_sha256 = excluded.code_sha256, code_size = excluded.code_size, revision = excluded.revision,"
        " modified_at = excluded.modified_at",
        function=version.function,
        version=version.version,
        settings=orjson.dumps(version.settings).decode(),
        sha256=version.code.sha256,
        size=version.code.size_bytes,
        revision=version.revision,
        modified_at=version.modified_at,
    )
    return version


def exists(tx: Transaction, name: str) -> bool:
    """Whether there is a function of that name."""
    return tx.one("SELECT 1 AS found FROM lambda_functions WHERE name = :name", name=name) is not None


def require(tx: Transaction, name: str) -> None:
    """ResourceNotFoundException unless the function exists."""
    if not exists(tx, name):
        raise not_found(tx, name)


def exact(tx: Transaction, function: str, version: str) -> Version:
    """That version of that function, no alias; ResourceNotFoundException when it is not there."""
    row = tx.one(
        "SELECT * FROM lambda_versions WHERE function = :function AND version = :version",
        function=function,
        version=version,
    )
    if row is None:
        raise not_found(tx, function, None if version == LATEST else version)
    return _version(row)


def resolved(tx: Transaction, name: Name) -> Version:
    """The version that a name means, through an alias if the qualifier is one (its main version)."""
    qualifier = name.qualifier or LATEST
    alias = tx.one(
        "SELECT version FROM lambda_aliases WHERE function = :function AND name = :alias",
        function=name.function,
        alias=qualifier,
    )
    if alias is not None:
        return exact(tx, name.function, alias["version"])
    row = tx.one(
        "SELECT * FROM lambda_versions WHERE function = :function AND version = :version",
        function=name.function,
        version=qualifier,
    )
    if row is None:
        raise not_found(tx, name.function, name.qualifier)
    return _version(row)


def update_code(
    tx: Transaction, name: str, request: Mapping[str, Any], read_blob: ReadBlob, *, dry_run: bool
) -> Version:
    """Give `$LATEST` other code."""
    latest = exact(tx, name, LATEST)
    _check_revision(latest, request.get("RevisionId"))
    source = {
        member: request[member]
        for member in ("ZipFile", "S3Bucket", "S3Key", "S3ObjectVersion", "S3ObjectStorageMode")
        if member in request
    }
    package = code.keep(tx, source, read_blob)
    complete = dict(latest.settings)
    if "Architectures" in request:
        complete["Architectures"] = list(request["Architectures"])
    new = Version(name, LATEST, complete, package, tx.new_id(), tx.now)
    if dry_run:
        code.drop_unused(tx, package.sha256)
        return new
    _write(tx, new)
    code.drop_unused(tx, latest.code.sha256)
    return new


def update_settings(tx: Transaction, name: str, request: Mapping[str, Any]) -> Version:
    """Give `$LATEST` other settings."""
    latest = exact(tx, name, LATEST)
    _check_revision(latest, request.get("RevisionId"))
    return _write(
        tx, Version(name, LATEST, settings.changed(latest.settings, request), latest.code, tx.new_id(), tx.now)
    )


def publish(tx: Transaction, name: str, request: Mapping[str, Any]) -> Version:
    """A numbered copy of `$LATEST`; the last one again when nothing has changed since, as AWS does."""
    latest = exact(tx, name, LATEST)
    _check_revision(latest, request.get("RevisionId"))
    wanted = request.get("CodeSha256")
    if wanted and wanted != latest.code.sha256:
        raise ServiceError(
            "InvalidParameterValueException",
            f"CodeSHA256 ({wanted}) is different from current CodeSHA256 in $LATEST ({latest.code.sha256}). "
            "Please try again with the CodeSHA256 in $LATEST.",
        )
    row = tx.one("SELECT last_version FROM lambda_functions WHERE name = :name", name=name)
    assert row is not None, "a version belongs to a function"
    number: int = row["last_version"]
    complete = dict(latest.settings)
    if request.get("Description"):
        complete["Description"] = request["Description"]
    last = tx.one(
        "SELECT * FROM lambda_versions WHERE function = :name AND version = :number", name=name, number=str(number)
    )
    if last is not None:
        known = _version(last)
        if known.code == latest.code and known.settings == complete:
            return known
    tx.run("UPDATE lambda_functions SET last_version = :number WHERE name = :name", number=number + 1, name=name)
    return _write(tx, Version(name, str(number + 1), complete, latest.code, tx.new_id(), tx.now))


def _check_revision(version: Version, revision: str | None) -> None:
    if revision is not None and revision != version.revision:
        raise ServiceError(
            "PreconditionFailedException",
            "The Revision Id provided does not match the latest Revision Id. "
            "Call the GetFunction/GetAlias API to retrieve the latest Revision Id",
            fields={"Type": "User"},
        )


def delete(tx: Transaction, name: str, qualifier: str | None) -> None:
    """Delete one version, or the function with all that belongs to it."""
    require(tx, name)
    if qualifier is None:
        _delete_whole(tx, name)
        return
    if qualifier == LATEST:
        raise ServiceError(
            "InvalidParameterValueException", "$LATEST version cannot be deleted without deleting the function."
        )
    version = exact(tx, name, qualifier)
    alias = tx.one(
        "SELECT name FROM lambda_aliases WHERE function = :name AND version = :version", name=name, version=qualifier
    )
    if alias is not None:
        raise ServiceError(
            "ResourceConflictException",
            f"Could not delete version {qualifier} because aliases still point to it: ({alias['name']})",
        )
    tx.run("DELETE FROM lambda_versions WHERE function = :name AND version = :version", name=name, version=qualifier)
    code.drop_unused(tx, version.code.sha256)


def _delete_whole(tx: Transaction, name: str) -> None:
    packages = {
        row["code_sha256"]
        for row in tx.all("SELECT code_sha256 FROM lambda_versions WHERE function = :name", name=name)
    }
    for table in ("lambda_versions", "lambda_aliases", "lambda_statements", "lambda_invoke_configs"):
        tx.run(f"DELETE FROM {table} WHERE function = :name", name=name)
    tx.run("DELETE FROM lambda_functions WHERE name = :name", name=name)
    for sha256 in sorted(packages):
        code.drop_unused(tx, sha256)


def listed(tx: Transaction, after: str, count: int) -> list[Version]:
    """`$LATEST` of up to `count` functions, by name, after the one called `after`."""
    return [
        _version(row)
        for row in tx.all(
            "SELECT * FROM lambda_versions WHERE version = :latest AND function > :after ORDER BY function LIMIT :count",
            latest=LATEST,
            after=after,
            count=count,
        )
    ]


def versions(tx: Transaction, name: str) -> list[Version]:
    """All versions of a function, `$LATEST` first, then by number."""
    require(tx, name)
    found = [_version(row) for row in tx.all("SELECT * FROM lambda_versions WHERE function = :name", name=name)]
    return sorted(found, key=lambda version: -1 if version.version == LATEST else int(version.version))


def described(tx: Transaction, version: Version, qualifier: str | None) -> dict[str, Any]:
    """FunctionConfiguration as the API shows it; its ARN carries the qualifier that was asked for."""
    shown = qualifier if version.version == LATEST else qualifier or version.version
    answer: dict[str, Any] = {
        "FunctionName": version.function,
        "FunctionArn": function_arn(tx, version.function, shown),
        "CodeSize": version.code.size_bytes,
        "CodeSha256": version.code.sha256,
        "LastModified": _modified(version.modified_at),
        "Version": version.version,
        "RevisionId": version.revision,
        "State": "Active",
        "LastUpdateStatus": "Successful",
        "PackageType": "Zip",
        "SnapStart": {"ApplyOn": "None", "OptimizationStatus": "Off"},
    }
    for name, value in version.settings.items():
        if name == "Environment" and not value.get("Variables"):
            continue
        if name == "DeadLetterConfig" and not value.get("TargetArn"):
            continue
        answer[name] = value
    return answer


def _modified(at: Instant) -> str:
    instant = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return instant.strftime("%Y-%m-%dT%H:%M:%S.") + f"{instant.microsecond // 1000:03d}+0000"


def tags(tx: Transaction, name: str) -> dict[str, str]:
    """The function's tags."""
    row = tx.one("SELECT tags FROM lambda_functions WHERE name = :name", name=name)
    if row is None:
        raise not_found(tx, name)
    found: dict[str, str] = orjson.loads(row["tags"])
    return found


def set_tags(tx: Transaction, name: str, new: Mapping[str, str]) -> None:
    """Replace the function's tags."""
    _check_tags(new)
    tx.run(
        "UPDATE lambda_functions SET tags = :tags WHERE name = :name", tags=orjson.dumps(dict(new)).decode(), name=name
    )


def _check_tags(new: Mapping[str, str]) -> None:
    if len(new) > TAGS_MAX:
        raise ServiceError("InvalidParameterValueException", f"The number of tags exceeds the limit of {TAGS_MAX}.")
