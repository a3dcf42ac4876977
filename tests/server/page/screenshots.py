"""Takes the screenshots of docs/guides/pages.md: ``python -m tests.server.page.screenshots docs/images``.

Needs a browser (apt-get install -y chromium) and Playwright (pip install playwright).
"""

import os
import sys
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import numpy as np
import pyarrow as pa

import tablestore as ts
from tablestore.server.access.roles import Grant, Principal, Resource, Role
from tablestore.server.page.pagecontext import AccessLine
from tablestore.server.page.pageroutes import PageService
from tablestore.server.page.queryrunner import DuckdbRunner
from tests.server.page.pageserver import serving
from tests.support.browsing import open_browser

SQL = quote(
    "SELECT o.item, sum(o.price) AS sold FROM shop.orders o JOIN shop.items i ON o.item = i.item GROUP BY o.item ORDER BY 2 DESC"
)
SHOTS = {
    "warehouse": ("/page", 1200, "light"),
    "storage": ("/page/tables/shop/orders/storage", 1200, "light"),
    "history": ("/page/tables/shop/orders/history", 1200, "light"),
    "graph": ("/page/graph", 1200, "light"),
    "plan": (f"/page/query?show=plan&sql={SQL}", 1200, "dark"),
    "phone": ("/page/tables/shop/orders", 390, "dark"),
}
HEIGHT = 780


def fill(folder: Path) -> ts.Catalog:
    """A shop with a history, and tables that are made from it."""
    catalog, chance = ts.open_catalog(folder), np.random.default_rng(7)
    catalog.create_database("shop")
    catalog.create_database("reports")
    items = ["ink", "pad", "paper", "pen", "ruler", "stamp"]
    catalog.create_table("shop.items", "item STRING, weight INT", "item", comment="what is sold").upsert(
        pa.table({"item": items, "weight": pa.array(range(6), pa.int32())})
    )
    schema = "id BIGINT, item STRING COMMENT 'see shop.items', price DECIMAL(10, 2), day DATE"
    orders = catalog.create_table(
        "shop.orders", schema, "id", options={"bucket": 2, "write-only": True}, comment="every order, as it is now"
    )
    for number in range(6):
        start = int(chance.integers(0, 4_000)) if number else 0
        ids = np.arange(start, start + (8_000 if number == 0 else 900))
        prices = pa.array(chance.integers(100, 9_000, len(ids)) // 100, pa.int64())
        days = [date(2026, 1, 1) + timedelta(days=int(day)) for day in chance.integers(0, 90, len(ids))]
        names = [items[place] for place in chance.integers(0, 6, len(ids))]
        orders.upsert(pa.table({"id": ids, "item": names, "price": prices, "day": days}))
        if number == 0:
            orders.compact(full=True)
            orders.create_tag("begin-of-year")
    orders.delete("id < 20")
    orders.create_branch("what-if", tag="begin-of-year")
    with ts.TableEnvironment.create(catalog, engine="duckdb") as environment:
        for text in (
            "CREATE VIEW shop.cheap AS SELECT id, item FROM shop.orders WHERE price < 10",
            "CREATE MATERIALIZED TABLE reports.by_item (PRIMARY KEY (item) NOT ENFORCED) FRESHNESS = INTERVAL '1' HOUR "
            "REFRESH_MODE = FULL AS SELECT o.item, count(*) AS orders, sum(price) AS total FROM shop.orders o JOIN shop.items i "
            "ON o.item = i.item GROUP BY o.item",
            "ALTER MATERIALIZED TABLE reports.by_item REFRESH",
            "CREATE MATERIALIZED TABLE reports.best FRESHNESS = INTERVAL '12' HOUR REFRESH_MODE = FULL AS "
            "SELECT item FROM reports.by_item ORDER BY total DESC LIMIT 3",
            "ALTER MATERIALIZED TABLE reports.best REFRESH",
            "ALTER MATERIALIZED TABLE reports.best SUSPEND",
        ):
            environment.execute_sql(text).to_arrow()
    return catalog


def main(folder: Path) -> None:
    """Writes each screenshot into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    principal = Principal(name="ann", grants=(Grant(Role.ADMIN),))
    with TemporaryDirectory() as scratch, open_browser(os.environ) as browser:
        catalog = fill(Path(scratch) / "warehouse")
        service = PageService(
            catalog=catalog,
            runner=DuckdbRunner(catalog=catalog),
            grants=lambda resource: (AccessLine(name="ann", role="admin", scope=str(Resource())),),
        )
        with serving(service, principal) as address:
            for name, (path, width, theme) in SHOTS.items():
                page = browser.new_page(viewport={"width": width, "height": HEIGHT}, color_scheme=theme)
                page.goto(f"{address}{path}")
                # The scratch folder has another name each time.
                page.evaluate("scratch => document.body.innerHTML = document.body.innerHTML.replaceAll(scratch, '/data')", scratch)
                page.screenshot(path=folder / f"page-{name}.png")
                page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
