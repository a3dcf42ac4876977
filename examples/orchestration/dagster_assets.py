"""Makes each materialized table of a warehouse an asset of Dagster: WAREHOUSE=/data/wh dagster dev -m
examples.orchestration.dagster_assets

An asset depends on the tables that its query reads. To materialize it is to refresh the table, a check says whether its rows are
fresh enough, and Dagster's policy of freshness is the table's.
"""

import os
from datetime import timedelta

import dagster as dg

from examples.orchestration.warehouse import RefreshedTable, is_fresh, refresh, tables

# Dagster has no shorter windows.
MINUTE = timedelta(minutes=1)


def asset_of(warehouse: str, table: RefreshedTable) -> dg.AssetsDefinition:
    """The asset that refreshes a table, with its check."""

    @dg.asset(
        key=dg.AssetKey(table.parts),
        deps=[dg.AssetKey(source.split(".")) for source in table.sources],
        kinds={"tablestore"},
        freshness_policy=dg.FreshnessPolicy.time_window(fail_window=max(table.freshness, MINUTE)),
        check_specs=[dg.AssetCheckSpec("fresh", asset=dg.AssetKey(table.parts))],
    )
    def refreshed() -> dg.MaterializeResult:
        metadata = refresh(warehouse, table)
        check = dg.AssetCheckResult(check_name="fresh", passed=is_fresh(warehouse, table))
        return dg.MaterializeResult(metadata=metadata, check_results=[check])

    return refreshed


def definitions(warehouse: str) -> dg.Definitions:
    """All materialized tables of a warehouse, and a job that refreshes them, sources before what is made from them."""
    assets = [asset_of(warehouse, table) for table in tables(warehouse)]
    return dg.Definitions(assets=assets, jobs=[dg.define_asset_job("refresh_all", dg.AssetSelection.all())])


if "WAREHOUSE" in os.environ:
    defs = definitions(os.environ["WAREHOUSE"])
