"""`muster put`: upload files."""

from pathlib import Path
from typing import Annotated

import typer
from boto3.s3.transfer import TransferConfig
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from muster.cli import show
from muster.cli.app import Endpoint, Json, app, server
from muster.errors import MusterError


@app.command("put")
def put(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="The files to upload.")],
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="BUCKET[/PREFIX]", help="Where to; needed when there are several buckets."),
    ] = None,
    endpoint: Endpoint = None,
    json: Json = False,
) -> None:
    """Upload files, with progress."""
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        raise MusterError(f"There is no such file: {', '.join(missing)}.")
    s3 = server(endpoint).clients("s3")
    bucket, prefix = _target(s3, to)
    done = []
    total = sum(file.stat().st_size for file in files)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=show.err, transient=True, disable=not show.err.is_terminal) as progress:
        bar = progress.add_task("uploading", total=total)
        for file in files:
            progress.update(bar, description=file.name)
            key = prefix + file.name
            s3.upload_file(
                str(file),
                bucket,
                key,
                Callback=lambda sent: progress.advance(bar, sent),
                Config=TransferConfig(multipart_threshold=16 * 1024 * 1024, multipart_chunksize=16 * 1024 * 1024),
            )
            done.append({"file": str(file), "bucket": bucket, "key": key, "size": file.stat().st_size})
    if json:
        show.as_json(done)
        return
    for one in done:
        show.out.print(f"s3://{one['bucket']}/{one['key']}  [dim]{one['size']:,} bytes[/dim]")


def _target(s3: object, to: str | None) -> tuple[str, str]:
    """The bucket and prefix that --to names; without it, the only bucket there is."""
    if to is not None:
        bucket, _, prefix = to.removeprefix("s3://").partition("/")
        return bucket, prefix if not prefix or prefix.endswith("/") else prefix + "/"
    names = [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]  # type: ignore[attr-defined]
    if len(names) != 1:
        raise MusterError(f"Say where to with --to BUCKET[/PREFIX]; there are: {', '.join(names) or 'no buckets yet'}.")
    return names[0], ""
