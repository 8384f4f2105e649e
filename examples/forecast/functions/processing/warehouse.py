"""The warehouse file: clean the counts, and join them with what shipping from each warehouse takes and costs."""

from pathlib import Path

import files
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SHIPPING = pq.read_table(Path(__file__).with_name("shipping.parquet"))


def clean(counts: pa.Table) -> pa.Table:
    """Names trimmed, impossible counts left out, and of several counts of one article in one warehouse the latest."""
    counts = counts.set_column(0, "article", pc.utf8_trim_whitespace(pc.utf8_lower(counts["article"])))
    possible = pc.and_(pc.is_valid(counts["article"]), pc.greater_equal(counts["stock"], 0))
    counts = counts.filter(pc.fill_null(possible, False))
    latest = counts.group_by(["article", "warehouse"]).aggregate([("counted_on", "max")])
    latest = latest.rename_columns(["article", "warehouse", "counted_on"])
    kept = counts.join(latest, keys=["article", "warehouse", "counted_on"], join_type="inner")
    return (
        kept.group_by(["article", "warehouse"])
        .aggregate([("stock", "max"), ("counted_on", "max")])
        .rename_columns(["article", "warehouse", "stock", "counted_on"])
    )


def join_shipping(counts: pa.Table) -> pa.Table:
    """Each count with its warehouse's lead time and cost; a warehouse that shipping does not know is an error."""
    joined = counts.join(SHIPPING, keys="warehouse", join_type="left outer")
    unknown = joined.filter(pc.is_null(joined["lead_days"]))["warehouse"].unique().to_pylist()
    if unknown:
        raise files.UnusableFile(f"shipping does not know the warehouse {', '.join(sorted(unknown))}")
    return joined.sort_by([("article", "ascending"), ("warehouse", "ascending")])


def handler(event, context):
    """Process `{"bucket", "key", "correlation_id"}`; the answer says where the result lies."""
    raw = files.read(event["bucket"], event["key"], ["article", "warehouse", "stock", "counted_on"])
    result = join_shipping(clean(raw))
    print(f"{event['key']}: {raw.num_rows} counts, {result.num_rows} kept")
    return {
        **files.write(files.warehouse_key(event["correlation_id"]), result),
        "dropped": raw.num_rows - result.num_rows,
    }
