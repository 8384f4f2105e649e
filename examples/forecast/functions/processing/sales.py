"""The sales file: correlate what was sold with what the warehouses hold, and forecast what has to be ordered."""

import files
import pyarrow as pa
import pyarrow.compute as pc

DAYS = 30
SAFETY = 1.25  # a quarter more than expected, for a month better than this one


def correlate(sold: pa.Table, stock: pa.Table) -> pa.Table:
    """Units and revenue per article and warehouse, beside its stock and shipping."""
    sold = sold.append_column("revenue", pc.multiply(sold["units"], sold["price"]))
    totals = sold.group_by(["article", "warehouse"]).aggregate([("units", "sum"), ("revenue", "sum")])
    totals = totals.rename_columns(["article", "warehouse", "units", "revenue"])
    joined = totals.join(stock, keys=["article", "warehouse"], join_type="left outer")
    return joined.set_column(joined.column_names.index("stock"), "stock", pc.fill_null(joined["stock"], 0)).sort_by(
        [("article", "ascending"), ("warehouse", "ascending")]
    )


def forecast(correlated: pa.Table) -> pa.Table:
    """Next month's demand, the days that the stock lasts, and the order that keeps it from running out."""
    daily = pc.divide(pc.cast(correlated["units"], pa.float64()), float(DAYS))
    lead = pc.cast(pc.fill_null(correlated["lead_days"], 14), pa.float64())
    demand = pc.ceil(pc.multiply(correlated["units"], SAFETY))
    needed = pc.add(demand, pc.ceil(pc.multiply(daily, lead)))
    order = pc.max_element_wise(pc.subtract(needed, pc.cast(correlated["stock"], pa.float64())), 0.0)
    return pa.table(
        {
            "article": correlated["article"],
            "warehouse": correlated["warehouse"],
            "sold": correlated["units"],
            "revenue": pc.round(correlated["revenue"], 2),
            "stock": correlated["stock"],
            "stock_lasts_days": pc.round(pc.divide(pc.cast(correlated["stock"], pa.float64()), daily), 1),
            "expected_demand": pc.cast(demand, pa.int64()),
            "order": pc.cast(order, pa.int64()),
            "shipping_cost": pc.round(pc.multiply(order, pc.fill_null(correlated["cost_per_unit"], 0.0)), 2),
        }
    )


def handler(event, context):
    """Process `{"bucket", "key", "correlation_id"}`; the answer says where the forecast lies."""
    month = event["correlation_id"]
    sold = files.read(event["bucket"], event["key"], ["article", "warehouse", "units", "price"])
    stock = files.read(
        files.os.environ["FORECAST_BUCKET"],
        files.warehouse_key(month),
        ["article", "warehouse", "stock", "lead_days", "cost_per_unit"],
    )
    result = forecast(correlate(sold, stock))
    print(f"{event['key']}: {sold.num_rows} sales, {result.num_rows} forecasts")
    return {**files.write(f"forecast/forecast_{month}.parquet", result), "order": pc.sum(result["order"]).as_py()}
