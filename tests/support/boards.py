"""A small warehouse of materialized tables, one made from the other, whose sources have rows that they have not."""

from pathlib import Path

import tablestore as ts


def warehouse_of_boards(place: Path) -> str:
    """orders -> totals -> dear, the last row of orders in none of them yet; returns the warehouse."""
    warehouse = str(place / "wh")
    with ts.TableEnvironment.create(warehouse, engine="duckdb") as env:
        env.execute_script(
            """
            CREATE TABLE orders (id BIGINT PRIMARY KEY NOT ENFORCED, shop STRING, price DOUBLE);
            INSERT INTO orders VALUES (1, 'a', 10.0);
            CREATE MATERIALIZED TABLE totals FRESHNESS = INTERVAL '10' MINUTE
                AS SELECT shop, sum(price) AS total FROM orders GROUP BY shop;
            CREATE MATERIALIZED TABLE dear FRESHNESS = INTERVAL '1' HOUR AS SELECT * FROM totals WHERE total > 15;
            INSERT INTO orders VALUES (2, 'b', 20.0);
            """
        )
    return warehouse
