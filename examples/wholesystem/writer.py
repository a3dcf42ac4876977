"""Writes orders of a shop through the catalog service, for ever: the demo of docker-compose.yml.

    orders.sql    shop.orders, keyed by the order: the writer upserts and deletes
    sales.sql     shop.sales, what was sold of each item: the scheduler of the service keeps it fresh

The names come from the service, the files are written to S3, and each commit goes through the service. Each table has a topic.
Orders have numbers below ``ORDERS``, which come again: the tables do not grow for ever.

    CATALOG_URI, CATALOG_TOKEN    the address of the service, and its token as `file:PATH` or `env:NAME`
    KAFKA_SERVERS                 the broker of the tables' topics
    ALIVE_FILE                    a file that is touched after each commit, for the health check
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import tablestore as ts
from tablestore.clock import SystemClock

TABLES = Path(__file__).parent / "tables"
ITEMS = ("ink", "pad", "paper", "pen", "ruler", "stamp")
STATES = ("new", "paid", "sent")
ORDERS, ROWS_PER_COMMIT = 20_000, 50
# Of a hundred commits so many delete.
_DELETES = 20
_PAUSE_S = 2.0


def make_tables(options: dict[str, str]) -> None:
    """Makes the tables, or does nothing where they are as the files say; its environment closes, and refreshes nothing later."""
    with ts.TableEnvironment.create(options, engine="duckdb") as environment:
        for change in environment.apply_folder(TABLES):
            sys.stdout.write(f"{change.action}: {change.name}\n")


def changes(schema: pa.Schema, chance: np.random.Generator) -> Iterator[tuple[str, pa.Table]]:
    """Endless changes, as ``("upsert" | "delete", rows)``: ``ROWS_PER_COMMIT`` rows of the schema, a delete's the key alone."""
    while True:
        ids = chance.choice(ORDERS, ROWS_PER_COMMIT, replace=False)
        if chance.integers(100) < _DELETES:
            yield "delete", pa.table({"id": ids})
            continue
        columns = {
            "id": ids,
            "item": np.asarray(ITEMS)[chance.integers(0, len(ITEMS), len(ids))],
            "price": pa.array(chance.integers(1, 100, len(ids), np.int32)).cast(pa.decimal128(12, 2)).cast(pa.decimal128(10, 2)),
            "state": np.asarray(STATES)[chance.integers(0, len(STATES), len(ids))],
        }
        yield "upsert", pa.table(columns, schema=schema)


def main() -> int:
    """Returns 1 when the service or the store refuses: whoever runs this starts it again."""
    options = {
        "metastore": "rest",
        "uri": os.environ["CATALOG_URI"],
        "token": os.environ["CATALOG_TOKEN"],
        "table-default.log.kafka.bootstrap.servers": os.environ["KAFKA_SERVERS"],
    }
    alive, clock = Path(os.environ["ALIVE_FILE"]), SystemClock()
    try:
        make_tables(options)
        orders = ts.open_catalog(options).table("shop.orders")
        assert isinstance(orders, ts.Table), "orders.sql declares a managed table"
        for kind, rows in changes(orders.schema, np.random.default_rng()):
            orders.upsert(rows) if kind == "upsert" else orders.delete(rows)
            alive.touch()
            clock.sleep(_PAUSE_S)
    except ts.TablestoreError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
