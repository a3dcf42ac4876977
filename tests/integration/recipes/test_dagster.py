"""The recipe for Dagster: assets of a warehouse, materialized by Dagster itself."""

from pathlib import Path

import pytest

dg = pytest.importorskip("dagster", reason="make test-recipes installs Dagster into an environment of its own")

from examples.orchestration.dagster_assets import definitions  # noqa: E402
from tests.support.boards import warehouse_of_boards  # noqa: E402

TOTALS, DEAR = dg.AssetKey(["default", "totals"]), dg.AssetKey(["default", "dear"])


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return warehouse_of_boards(tmp_path)


def test_each_materialized_table_is_an_asset_that_depends_on_what_its_query_reads(warehouse: str) -> None:
    graph = definitions(warehouse).get_repository_def().asset_graph
    assert graph.get(DEAR).parent_keys == {TOTALS}
    assert graph.get(TOTALS).parent_keys == {dg.AssetKey(["default", "orders"])}
    assert graph.get(TOTALS).freshness_policy is not None


def test_materializing_refreshes_sources_first_and_checks_freshness(warehouse: str) -> None:
    result = dg.materialize(definitions(warehouse).assets)
    assert result.success
    order = [event.asset_key for event in result.get_asset_materialization_events()]
    assert order.index(TOTALS) < order.index(DEAR)
    metadata = {event.asset_key: event.materialization.metadata for event in result.get_asset_materialization_events()}
    assert metadata[TOTALS]["rows"].value == 2
    assert all(check.passed for check in result.get_asset_check_evaluations())
    assert len(result.get_asset_check_evaluations()) == 2
