"""Make the sample files: two Parquet files a month, and the shipping data that lies beside the functions.

The same numbers every time. The warehouse files have the faults that real ones have: articles with stray blanks and
capitals, counts made twice, counts below zero, and a line without an article.
"""

import datetime
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
MONTHS = [(2023, 8), (2023, 9), (2023, 10), (2023, 11), (2023, 12), (2024, 1)]
ARTICLES = ["anvil", "bellows", "chisel", "drill", "file", "hammer", "lathe", "plane", "rasp", "saw", "tongs", "vice"]
WAREHOUSES = {"north": (3, 0.80), "south": (5, 0.55), "harbour": (9, 0.30)}


def days(year: int, month: int, chance: random.Random) -> datetime.date:
    return datetime.date(year, month, chance.randint(1, 28))


def warehouse(year: int, month: int) -> pa.Table:
    chance = random.Random(f"warehouse {year} {month}")
    rows = []
    for article in ARTICLES:
        for place in WAREHOUSES:
            for _ in range(chance.choice([1, 1, 2])):
                spelled = chance.choice([article, article, article.upper(), f" {article} "])
                rows.append((spelled, place, chance.randint(0, 400), days(year, month, chance)))
    rows.append(("anvil", "north", -7, days(year, month, chance)))
    rows.append((None, "south", 12, days(year, month, chance)))
    chance.shuffle(rows)
    return pa.table(
        {
            "article": pa.array([row[0] for row in rows], pa.string()),
            "warehouse": pa.array([row[1] for row in rows], pa.string()),
            "stock": pa.array([row[2] for row in rows], pa.int64()),
            "counted_on": pa.array([row[3] for row in rows], pa.date32()),
        }
    )


def sales(year: int, month: int) -> pa.Table:
    chance = random.Random(f"sales {year} {month}")
    prices = {article: round(random.Random(article).uniform(5, 250), 2) for article in ARTICLES}
    rows = [
        (article, place, days(year, month, chance), chance.randint(1, 12), prices[article])
        for _ in range(300)
        for article, place in [(chance.choice(ARTICLES), chance.choice(list(WAREHOUSES)))]
    ]
    return pa.table(
        {
            "article": pa.array([row[0] for row in rows], pa.string()),
            "warehouse": pa.array([row[1] for row in rows], pa.string()),
            "sold_on": pa.array([row[2] for row in rows], pa.date32()),
            "units": pa.array([row[3] for row in rows], pa.int64()),
            "price": pa.array([row[4] for row in rows], pa.float64()),
        }
    )


def shipping() -> pa.Table:
    return pa.table(
        {
            "warehouse": list(WAREHOUSES),
            "lead_days": [lead for lead, _ in WAREHOUSES.values()],
            "cost_per_unit": [cost for _, cost in WAREHOUSES.values()],
        }
    )


def make(folder: Path) -> None:
    """Write all files below `folder`."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "functions" / "processing").mkdir(parents=True, exist_ok=True)
    for year, month in MONTHS:
        name = f"{year}_{month:02}"
        pq.write_table(warehouse(year, month), folder / "data" / f"warehouse_{name}.parquet")
        pq.write_table(sales(year, month), folder / "data" / f"sales_{name}.parquet")
    pq.write_table(shipping(), folder / "functions" / "processing" / "shipping.parquet")


if __name__ == "__main__":
    make(HERE)
