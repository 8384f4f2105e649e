"""Parquet tables in and out of buckets, and what both processing functions agree on."""

import io
import os

import boto3
import pyarrow as pa
import pyarrow.parquet as pq

s3 = boto3.client("s3")


class UnusableFile(Exception):
    """The file is not what it should be; the text says in what."""


def read(bucket: str, key: str, columns: list[str]) -> pa.Table:
    """The table in an object; UnusableFile when it is none or lacks a column."""
    body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    try:
        table = pq.read_table(io.BytesIO(body))
    except pa.ArrowInvalid as error:
        raise UnusableFile(f"s3://{bucket}/{key} is not a Parquet file: {error}") from error
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise UnusableFile(f"s3://{bucket}/{key} has no column {', '.join(missing)}")
    return table.select(columns)


def write(key: str, table: pa.Table) -> dict[str, object]:
    """Put a table into the bucket of results; where it is and how long."""
    bucket = os.environ["FORECAST_BUCKET"]
    packed = io.BytesIO()
    pq.write_table(table, packed)
    s3.put_object(Bucket=bucket, Key=key, Body=packed.getvalue())
    return {"bucket": bucket, "key": key, "rows": table.num_rows}


def warehouse_key(correlation_id: str) -> str:
    """Where the processed warehouse file of a month lies."""
    return f"warehouse/warehouse_{correlation_id}.parquet"
