"""What the example's functions make of its data, on a bucket that is a dictionary."""

import datetime
import importlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

EXAMPLE = Path(__file__).parents[2] / "examples" / "forecast"


class Bucket:
    """S3 as far as the functions use it."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        return {"Body": io.BytesIO(self.objects[Key])}

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:
        self.objects[Key] = Body

    def table(self, key: str) -> Any:
        return pq.read_table(io.BytesIO(self.objects[key]))

    def put_table(self, key: str, columns: dict[str, Any]) -> None:
        packed = io.BytesIO()
        pq.write_table(pa.table(columns), packed)
        self.objects[key] = packed.getvalue()


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


@pytest.fixture
def processing(monkeypatch: pytest.MonkeyPatch, bucket: Bucket) -> Iterator[dict[str, ModuleType]]:
    monkeypatch.syspath_prepend(str(EXAMPLE / "functions" / "processing"))
    monkeypatch.setenv("FORECAST_BUCKET", "forecast")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    modules = {name: importlib.import_module(name) for name in ("files", "warehouse", "sales")}
    monkeypatch.setattr(modules["files"], "s3", bucket)
    yield modules
    for name in modules:
        sys.modules.pop(name, None)


def process(modules: dict[str, ModuleType], kind: str, month: str = "2023_10") -> dict[str, Any]:
    event = {"bucket": kind, "key": f"{kind}_{month}.parquet", "correlation_id": month}
    answer: dict[str, Any] = modules[kind].handler(event, None)
    return answer


def test_sample_files_become_a_forecast(processing: dict[str, ModuleType], bucket: Bucket) -> None:
    for file in (EXAMPLE / "data").iterdir():
        bucket.objects[file.name] = file.read_bytes()
    stocked = process(processing, "warehouse")
    assert stocked["key"] == "warehouse/warehouse_2023_10.parquet"
    assert stocked["rows"] == 36
    assert stocked["dropped"] > 2
    made = process(processing, "sales")
    assert made["key"] == "forecast/forecast_2023_10.parquet"
    assert made["rows"] == bucket.table(made["key"]).num_rows > 30
    assert made["order"] > 0


def test_warehouse_counts_are_cleaned_and_joined_with_shipping(
    processing: dict[str, ModuleType], bucket: Bucket
) -> None:
    early, late = datetime.date(2023, 10, 2), datetime.date(2023, 10, 9)
    bucket.put_table(
        "warehouse_2023_10.parquet",
        {
            "article": ["Saw", " saw ", "saw", None, "file"],
            "warehouse": ["north", "north", "south", "south", "north"],
            "stock": [10, 20, 5, 7, -1],
            "counted_on": [early, late, early, early, early],
        },
    )
    answer = process(processing, "warehouse")
    assert bucket.table(answer["key"]).to_pylist() == [
        {
            "article": "saw",
            "warehouse": "north",
            "stock": 20,
            "counted_on": late,
            "lead_days": 3,
            "cost_per_unit": 0.8,
        },
        {
            "article": "saw",
            "warehouse": "south",
            "stock": 5,
            "counted_on": early,
            "lead_days": 5,
            "cost_per_unit": 0.55,
        },
    ]


def test_sales_order_what_stock_does_not_cover(processing: dict[str, ModuleType], bucket: Bucket) -> None:
    bucket.put_table(
        "warehouse/warehouse_2023_10.parquet",
        {"article": ["saw"], "warehouse": ["north"], "stock": [20], "lead_days": [3], "cost_per_unit": [0.5]},
    )
    bucket.put_table(
        "sales_2023_10.parquet",
        {
            "article": ["saw", "saw", "plane"],
            "warehouse": ["north", "north", "north"],
            "units": [20, 10, 4],
            "price": [2.0, 2.0, 10.0],
        },
    )
    plane, saw = bucket.table(process(processing, "sales")["key"]).to_pylist()
    assert saw == {
        "article": "saw",
        "warehouse": "north",
        "sold": 30,
        "revenue": 60.0,
        "stock": 20,
        "stock_lasts_days": 20.0,
        "expected_demand": 38,
        "order": 21,
        "shipping_cost": 10.5,
    }
    assert (plane["stock"], plane["order"]) == (0, 7)


@pytest.mark.parametrize("body", [b"", b"not parquet", b"PAR1"])
def test_file_that_is_no_parquet_is_refused_with_its_name(
    processing: dict[str, ModuleType], bucket: Bucket, body: bytes
) -> None:
    bucket.objects["warehouse_2023_10.parquet"] = body
    with pytest.raises(processing["files"].UnusableFile, match=r"warehouse_2023_10\.parquet is not a Parquet file"):
        process(processing, "warehouse")


def test_missing_column_is_named(processing: dict[str, ModuleType], bucket: Bucket) -> None:
    bucket.put_table("warehouse_2023_10.parquet", {"article": ["saw"], "warehouse": ["north"]})
    with pytest.raises(processing["files"].UnusableFile, match="no column stock, counted_on"):
        process(processing, "warehouse")


def test_warehouse_that_shipping_does_not_know_is_named(processing: dict[str, ModuleType], bucket: Bucket) -> None:
    bucket.put_table(
        "warehouse_2023_10.parquet",
        {"article": ["saw"], "warehouse": ["moon"], "stock": [1], "counted_on": [datetime.date(2023, 10, 1)]},
    )
    with pytest.raises(processing["files"].UnusableFile, match="moon"):
        process(processing, "warehouse")


def test_data_is_made_the_same_each_time(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_data", EXAMPLE / "make_data.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.make(tmp_path)
    made = {path.name: pq.read_table(path) for path in tmp_path.rglob("*.parquet")}
    kept = {path.name: pq.read_table(path) for path in EXAMPLE.rglob("*.parquet")}
    assert made == kept
