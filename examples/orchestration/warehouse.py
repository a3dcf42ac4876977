"""Reads which materialized tables a warehouse has, and refreshes one: what the recipes for Dagster and Airflow share.

No rows are read and no engine is started to list them, so an orchestrator may do so whenever it loads its definitions.
"""

from dataclasses import dataclass
from datetime import timedelta

import tablestore as ts


@dataclass(frozen=True)
class RefreshedTable:
    """A materialized table: ``sources`` are the names of what it is made from, ``freshness`` how old its rows may be."""

    name: str
    sources: tuple[str, ...]
    freshness: timedelta

    @property
    def parts(self) -> list[str]:
        """Database and table."""
        return self.name.split(".")


def tables(warehouse: str) -> list[RefreshedTable]:
    """The materialized tables of a warehouse."""
    with ts.TableEnvironment.create(warehouse) as env:
        return [
            RefreshedTable(
                name=(name := f"{figures.table.database}.{figures.table.name}"),
                sources=env.sources_of(name),
                freshness=timedelta(milliseconds=figures.target_ms),
            )
            for figures in env.freshness()
        ]


def refresh(warehouse: str, table: RefreshedTable, engine: str = "duckdb") -> dict[str, str | int]:
    """Refreshes a table, and returns what an orchestrator shows of it."""
    with ts.TableEnvironment.create(warehouse, engine=engine) as env:
        (report,) = env.execute_sql(f"ALTER MATERIALIZED TABLE {table.name} REFRESH").to_arrow().to_pylist()
        return {"mode": report["mode"], "rows": env.catalog().table(table.name).count()}


def is_fresh(warehouse: str, table: RefreshedTable) -> bool:
    """True if the rows of a table are no older than they may be."""
    with ts.TableEnvironment.create(warehouse) as env:
        figures = env.freshness_of(*table.parts)
        return figures is not None and figures.error is None and not figures.is_late
