"""File name → file type and correlation id. Replace this function to read names of your own."""

import re

NAME = re.compile(r"(?P<file_type>sales|warehouse)_(?P<correlation_id>\d{4}_(0[1-9]|1[0-2]))\.parquet")


class UnknownFileName(Exception):
    """A name that means nothing here; the execution fails with it, so that somebody sees the file."""


def handler(event, context):
    """`{"key": "2023/sales_2023_10.parquet"}` → `{"file_type": "sales", "correlation_id": "2023_10"}`."""
    name = event["key"].rsplit("/", 1)[-1]
    found = NAME.fullmatch(name)
    if found is None:
        raise UnknownFileName(f"{name!r} is not called sales_YYYY_MM.parquet or warehouse_YYYY_MM.parquet")
    return {"file_type": found["file_type"], "correlation_id": found["correlation_id"]}
