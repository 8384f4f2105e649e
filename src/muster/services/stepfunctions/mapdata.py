"""What a distributed Map reads from S3 and writes to it: items in, results out.

Keeps true: items are read whole and in order; results stand in the order of the items. Does not know children while
they run.

Sources: "ItemReader (Map)" and "ResultWriter (Map)" in the developer guide.
"""

import csv
import gzip
import io
import itertools
import zlib
from collections.abc import Iterable
from typing import Any

import orjson

from muster.arn import Arn
from muster.errors import ServiceError
from muster.languages.asl import timestamps
from muster.languages.asl.maps import DELIMITERS
from muster.languages.asl.messages import Cause, Failed, Gather, Gathered, Items, ReadItems
from muster.transaction import Row, Transaction

ITEMS_MAX = 100_000_000  # "the Map state stops reading items beyond MaxItems"; AWS's own limit
GZIP = b"\x1f\x8b"
RESULT_BYTES_MAX = 250_000  # of one result file, so that it can be handed to S3 inside the transaction


def read(tx: Transaction, command: ReadItems) -> Cause:
    """The items that the reader finds."""
    at = (command.frame, command.attempt)
    most = int(command.most) if command.most is not None else ITEMS_MAX
    try:
        items = _listed(tx, command.parameters, most) if command.operation == "ListObjectsV2" else _read(tx, command)
    except ServiceError as refusal:
        return Failed(*at, None, f"{refusal.message} (Service: Amazon S3; Error Code: {refusal.code})")
    except ValueError as why:
        return Failed(*at, None, str(why))
    return Items(*at, items[: most or ITEMS_MAX])


def _listed(tx: Transaction, parameters: Any, most: int) -> list[Any]:
    request = dict(parameters)
    items: list[Any] = []
    while len(items) < most:
        answer = tx.call("s3", "ListObjectsV2", request)
        items += [
            {
                "Etag": found["ETag"],
                "Key": found["Key"],
                "LastModified": int(found["LastModified"]),
                "Size": found["Size"],
                "StorageClass": found.get("StorageClass", "STANDARD"),
            }
            for found in answer.get("Contents", ())
        ]
        if not answer.get("IsTruncated"):
            break
        request["ContinuationToken"] = answer["NextContinuationToken"]
    return items


def _read(tx: Transaction, command: ReadItems) -> list[Any]:
    body = bytes(tx.call("s3", "ReadObject", command.parameters)["Body"])
    match command.format["InputType"]:
        case "JSON":
            items = _json(body)
            if not isinstance(items, list):
                raise ValueError("Attempting to map over non-iterable node.")
            return items
        case "JSONL":
            return [_json(line) for line in body.splitlines() if line.strip()]
        case "MANIFEST":
            return list(itertools.islice(_inventory(tx, command, _json(body)), int(command.most or ITEMS_MAX)))
        case _:
            return list(_csv(body, command.format))


def _inventory(tx: Transaction, command: ReadItems, manifest: Any) -> Iterable[dict[str, str]]:
    """The rows of an S3 inventory, whose manifest names its files and their columns."""
    try:
        if manifest["fileFormat"] != "CSV":
            raise ValueError(f"Muster reads inventories in CSV, not {manifest['fileFormat']}.")
        header = [name.strip() for name in manifest["fileSchema"].split(",")]
        keys = [file["key"] for file in manifest["files"]]
    except (KeyError, TypeError, AttributeError) as why:
        raise ValueError("The object is not the manifest of an S3 inventory.") from why
    bucket = str(manifest.get("destinationBucket") or command.parameters["Bucket"]).removeprefix("arn:aws:s3:::")
    for key in keys:
        body = bytes(tx.call("s3", "ReadObject", {"Bucket": bucket, "Key": key})["Body"])
        try:
            plain = gzip.decompress(body) if body[:2] == GZIP else body
        except (OSError, EOFError, zlib.error) as why:
            raise ValueError(f"The inventory's file {key} could not be unpacked: {why}") from why
        yield from _csv(plain, {"CSVHeaderLocation": "GIVEN", "CSVHeaders": header})


def _json(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as why:
        raise ValueError(f"The item reader could not parse the object as JSON: {why}") from why


def _csv(body: bytes, form: Any) -> Iterable[dict[str, str]]:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as why:
        raise ValueError("The item reader could not read the object as UTF-8 text.") from why
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=DELIMITERS[form.get("CSVDelimiter", "COMMA")])
    header = form["CSVHeaders"] if form["CSVHeaderLocation"] == "GIVEN" else next(rows, [])
    for row in rows:
        if row:
            filled = [*row, *[""] * (len(header) - len(row))]
            yield dict(zip(header, filled, strict=False))


def gather(tx: Transaction, command: Gather) -> Cause:
    """The results of all children in order, or, with a target, where they were written."""
    at = (command.frame, command.attempt)
    rows = tx.all(
        "SELECT e.* FROM states_items i JOIN states_executions e ON e.arn = i.execution_arn"
        " WHERE i.map_run = :run ORDER BY i.place",
        run=command.map_run,
    )
    if command.target is None:
        return Gathered(*at, _combined(rows, command.transformation if command.transformation != "NONE" else "COMPACT"))
    try:
        return Gathered(*at, _write(tx, command, rows))
    except ServiceError as refusal:
        return Failed(*at, None, f"{refusal.message} (Service: Amazon S3; Error Code: {refusal.code})")


def _combined(rows: list[Row], transformation: str) -> list[Any]:
    """The outputs of the children that succeeded: a tolerated failure contributes nothing, observed."""
    results: list[Any] = []
    for row in rows:
        if row["status"] != "SUCCEEDED":
            continue
        result = orjson.loads(row["output"])
        if transformation == "FLATTEN" and isinstance(result, list):
            results += result
        else:
            results.append(result)
    return results


def _error(row: Row) -> dict[str, str]:
    shown = {"Error": row["error"], "Cause": row["cause"]}
    return {name: text for name, text in shown.items() if text is not None}


def _write(tx: Transaction, command: Gather, rows: list[Row]) -> dict[str, Any]:
    """Result files by status and a manifest that names them, under a folder of the Map Run."""
    bucket, prefix = command.target["Bucket"], command.target.get("Prefix", "")
    folder = f"{prefix.rstrip('/')}/" if prefix else ""
    folder += Arn.parse(command.map_run).resource.rsplit(":", 1)[1]
    manifest: dict[str, Any] = {
        "DestinationBucket": bucket,
        "MapRunArn": command.map_run,
        "ResultFiles": {"FAILED": [], "PENDING": [], "SUCCEEDED": []},
    }
    for status in ("SUCCEEDED", "FAILED"):
        chosen = [row for row in rows if (row["status"] == "SUCCEEDED") == (status == "SUCCEEDED")]
        for number, text in enumerate(_files(command, chosen)):
            key = f"{folder}/{status}_{number}.{'jsonl' if command.lines else 'json'}"
            tx.call("s3", "PutObject", {"Bucket": bucket, "Key": key, "Body": text})
            manifest["ResultFiles"][status].append({"Key": key, "Size": len(text)})
    key = f"{folder}/manifest.json"
    tx.call("s3", "PutObject", {"Bucket": bucket, "Key": key, "Body": orjson.dumps(manifest)})
    return {"MapRunArn": command.map_run, "ResultWriterDetails": {"Bucket": bucket, "Key": key}}


def _files(command: Gather, rows: list[Row]) -> Iterable[bytes]:
    """The results in files of bounded size."""
    values = (
        [_described(row) for row in rows]
        if command.transformation == "NONE"
        else _combined(rows, command.transformation)
    )
    batch: list[bytes] = []
    used = 0
    for value in values:
        text = orjson.dumps(value)
        if batch and used + len(text) > RESULT_BYTES_MAX:
            yield _joined(command, batch)
            batch, used = [], 0
        batch.append(text)
        used += len(text) + 1
    if batch:
        yield _joined(command, batch)


def _joined(command: Gather, texts: list[bytes]) -> bytes:
    return b"\n".join(texts) if command.lines else b"[" + b",".join(texts) + b"]"


def _described(row: Row) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "ExecutionArn": row["arn"],
        "Input": row["input"],
        "InputDetails": {"Included": True},
        "Name": row["name"],
        "Output": row["output"],
        "OutputDetails": {"Included": True} if row["output"] is not None else None,
        "StartDate": timestamps.text(row["started_at"]),
        "StateMachineArn": row["machine_arn"],
        "Status": row["status"],
        "StopDate": timestamps.text(row["stopped_at"]) if row["stopped_at"] is not None else None,
        **_error(row),
    }
    return {name: value for name, value in shown.items() if value is not None}
