"""A shop of the shape of dbt's demonstration project builds from a checkout: seeds, views, tables, a snapshot, tests, documents."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.cli.main import dbtRunner

import tablestore as ts

SHOP = Path(__file__).parent / "shop"
Run = Callable[..., Any]


@pytest.fixture
def shop(tmp_path: Path, own_adapter: None, dbt_profile_target: dict[str, Any]) -> Path:
    folder = tmp_path / "shop"
    shutil.copytree(SHOP, folder)
    target = {**dbt_profile_target, "warehouse": str(tmp_path / "warehouse"), "schema": "shop"}
    (folder / "profiles.yml").write_text(yaml.safe_dump({"shop": {"target": "dev", "outputs": {"dev": target}}}))
    return folder


@pytest.fixture
def dbt(shop: Path) -> Run:
    def run(*arguments: str) -> Any:
        done = dbtRunner().invoke([*arguments, "--project-dir", str(shop), "--profiles-dir", str(shop)])
        assert done.success, done.exception or [one.message for one in done.result if one.status not in ("success", "pass")]
        return done.result

    return run


def test_the_shop_builds_twice_and_the_second_time_takes_up_what_changed(dbt: Run, shop: Path, tmp_path: Path) -> None:
    dbt("build")
    with ts.TableEnvironment.create(str(tmp_path / "warehouse"), engine="duckdb") as env:
        env.use_database("shop")
        ada = env.execute_sql("SELECT * FROM customers WHERE first_name = 'Ada'").to_arrow().to_pylist()[0]
        assert (ada["number_of_orders"], str(ada["customer_lifetime_value"])) == (3, "48.00")
        assert (
            env.execute_sql("SELECT count(*) AS n FROM customers WHERE customer_lifetime_value IS NULL").to_arrow()["n"][0].as_py()
            == 1
        )
        assert env.catalog().table("shop.orders").primary_key == ("order_id",)

    orders = shop / "seeds" / "raw_orders.csv"
    orders.write_text(orders.read_text().replace("6,1,2026-01-08,placed", "6,1,2026-01-08,shipped") + "7,5,2026-01-09,placed\n")
    payments = shop / "seeds" / "raw_payments.csv"
    payments.write_text(payments.read_text() + "9,7,coupon,300\n")
    dbt("build")
    with ts.TableEnvironment.create(str(tmp_path / "warehouse"), engine="duckdb") as env:
        env.use_database("shop")
        history = env.execute_sql(
            "SELECT order_id, status, dbt_valid_to IS NULL AS now FROM orders_history WHERE order_id >= 6 ORDER BY order_id, now"
        ).to_arrow()
        assert [tuple(row.values()) for row in history.to_pylist()] == [
            (6, "placed", False),
            (6, "shipped", True),
            (7, "placed", True),
        ]
        events = env.execute_sql("SELECT order_id, status FROM order_events WHERE order_id >= 6 ORDER BY order_id").to_arrow()
        assert events["status"].to_pylist() == ["shipped", "placed"]
        revenue = env.execute_sql("SELECT revenue FROM revenue_by_day WHERE order_date = DATE '2026-01-09'").to_arrow()
        assert [str(value) for value in revenue["revenue"].to_pylist()] == ["3.00"]


def test_documents_have_columns_comments_and_sources(dbt: Run, shop: Path) -> None:
    dbt("build")
    dbt("docs", "generate")
    catalog = json.loads((shop / "target" / "catalog.json").read_text())
    customers = catalog["nodes"]["model.shop.customers"]
    assert customers["metadata"]["comment"] == "What each customer ordered and paid."
    assert customers["columns"]["customer_id"]["comment"] == "The customer's number"
    assert catalog["nodes"]["model.shop.revenue_by_day"]["metadata"]["type"] == "materialized_view"
    assert catalog["nodes"]["model.shop.stg_customers"]["metadata"]["comment"] == "Customers, one a row."
    assert catalog["sources"]["source.shop.raw.raw_orders"]["columns"]["order_date"]["type"] == "DATE"


def test_freshness_of_sources_comes_from_their_snapshots(dbt: Run, shop: Path) -> None:
    dbt("seed")
    dbt("source", "freshness")
    result = json.loads((shop / "target" / "sources.json").read_text())["results"][0]
    assert result["status"] == "pass"
    assert result["max_loaded_at_time_ago_in_s"] < 3600
