"""What the adapter does with tables of tablestore, beside what dbt's suites ask of every adapter."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.cli.main import dbtRunner

import tablestore as ts

PROJECT = {"name": "p", "version": "1.0", "config-version": 2, "profile": "p", "model-paths": ["models"], "seed-paths": ["seeds"]}


class Project:
    """A project in a folder, its models as texts, and its warehouse."""

    def __init__(self, folder: Path, target: dict[str, Any], engine: str) -> None:
        self.folder, self.target, self.engine = folder, {**target, "warehouse": str(folder / "warehouse"), "schema": "shop"}, engine
        for part in ("models", "seeds"):
            (folder / part).mkdir()
        (folder / "dbt_project.yml").write_text(yaml.safe_dump(PROJECT))
        self.profile(self.target)

    def profile(self, target: dict[str, Any]) -> None:
        (self.folder / "profiles.yml").write_text(yaml.safe_dump({"p": {"target": "dev", "outputs": {"dev": target}}}))

    def models(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.folder / "models" / f"{name}.sql").write_text(text)

    def properties(self, text: str) -> None:
        (self.folder / "models" / "schema.yml").write_text(text)

    def dbt(self, *arguments: str) -> Any:
        return dbtRunner().invoke([*arguments, "--project-dir", str(self.folder), "--profiles-dir", str(self.folder)])

    def run(self, *arguments: str) -> None:
        done = self.dbt("run", *arguments)
        assert done.success, done.exception or [one.message for one in done.result]

    @contextmanager
    def warehouse(self) -> Iterator[ts.TableEnvironment]:
        with ts.TableEnvironment.create(str(self.folder / "warehouse"), engine="duckdb") as env:
            env.execute_sql("CREATE DATABASE IF NOT EXISTS shop")
            env.use_database("shop")
            yield env

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self.warehouse() as env:
            return sorted(tuple(row.values()) for row in env.execute_sql(sql).to_arrow().to_pylist())


@pytest.fixture
def shop(tmp_path: Path, own_adapter: None, dbt_profile_target: dict[str, Any], engine: str) -> Project:
    return Project(tmp_path, dbt_profile_target, engine)


def incremental(strategy: str, more: str = "") -> str:
    return f"""
    {{{{ config(materialized='incremental', incremental_strategy='{strategy}'{more}) }}}}
    {{% if is_incremental() %}}
    select 2 as id, 'new' as name union all select 3, 'new'
    {{% else %}}
    select 1 as id, 'old' as name union all select 2, 'old'
    {{% endif %}}
    """


def test_config_says_key_partitions_buckets_and_options(shop: Project) -> None:
    shop.models(
        orders="""
        {{ config(materialized='table', primary_key=['id', 'day'], partition_by='day', buckets=3,
                  properties={'merge-engine': 'first-row'}) }}
        select 1 as id, 'mon' as day
        """
    )
    shop.run()
    with shop.warehouse() as env:
        table = env.catalog().table("shop.orders")
        assert (table.primary_key, table.partition_by) == (("id", "day"), ("day",))
        assert (table.options()["bucket"], table.options()["merge-engine"]) == ("3", "first-row")


def test_a_table_whose_model_fails_keeps_its_rows(shop: Project) -> None:
    shop.models(orders="{{ config(materialized='table') }} select '1' as id")
    shop.run()
    shop.models(
        orders="""
        {{ config(materialized='table') }}
        select cast(id as string) as id from (select cast(concat('x', id) as int) as id from {{ this }})
        """
    )
    assert not shop.dbt("run").success
    assert shop.rows("SELECT * FROM orders") == [("1",)]


@pytest.mark.parametrize(
    ("strategy", "more", "rows"),
    [
        ("append", "", [(1, "old"), (2, "new"), (2, "old"), (3, "new")]),
        ("merge", ", unique_key='id'", [(1, "old"), (2, "new"), (3, "new")]),
        ("merge", ", unique_key='id', primary_key='id'", [(1, "old"), (2, "new"), (3, "new")]),
        ("merge", ", unique_key='id', merge_exclude_columns=['name']", [(1, "old"), (2, "old"), (3, "new")]),
        ("delete+insert", ", unique_key='id'", [(1, "old"), (2, "new"), (3, "new")]),
        ("delete+insert", ", unique_key='id', primary_key='id'", [(1, "old"), (2, "new"), (3, "new")]),
        ("delete+insert", ", unique_key='id', incremental_predicates=['id > 2']", [(1, "old"), (2, "new"), (2, "old"), (3, "new")]),
        ("insert_overwrite", "", [(2, "new"), (3, "new")]),
        ("insert_overwrite", ", partition_by='id'", [(1, "old"), (2, "new"), (3, "new")]),
    ],
)
def test_an_incremental_run_is_one_snapshot(shop: Project, strategy: str, more: str, rows: list[tuple[int, str]]) -> None:
    shop.models(t=incremental(strategy, more))
    shop.run()
    with shop.warehouse() as env:
        before = env.catalog().table("shop.t").snapshots()[-1].id
    shop.run()
    assert shop.rows("SELECT * FROM t") == rows
    with shop.warehouse() as env:
        assert env.catalog().table("shop.t").snapshots()[-1].id == before + 1


def test_a_run_says_how_many_rows_it_changed(shop: Project) -> None:
    shop.models(t=incremental("append", ""))
    for rows in (2, 2):
        done = shop.dbt("run")
        assert done.success, done.exception
        assert done.result.results[0].adapter_response["rows_affected"] == rows


def test_a_materialized_table_is_altered_by_a_run_and_made_anew_by_a_full_refresh(shop: Project) -> None:
    config = "{{ config(materialized='materialized_table', target_freshness='5 minutes', primary_key='item'%s) }}"
    shop.models(
        orders="{{ config(materialized='table') }} select 1 as id, 'ink' as item, 2 as price union all select 2, 'ink', 3",
        sales=config % "" + "select item, sum(price) as total from {{ ref('orders') }} group by item",
    )
    shop.run()
    with shop.warehouse() as env:
        assert "FRESHNESS = INTERVAL '5' MINUTE" in str(env.execute_sql("SHOW CREATE MATERIALIZED TABLE sales").text)
        env.execute_sql("INSERT INTO orders VALUES (3, 'pen', 1)")
    assert shop.rows("SELECT * FROM sales") == [("ink", 5)]
    shop.run("--select", "sales")
    assert shop.rows("SELECT * FROM sales") == [("ink", 5), ("pen", 1)]

    shop.models(sales=config % "" + "select item, sum(price) as total, count(*) as n from {{ ref('orders') }} group by item")
    shop.run("--select", "sales")
    assert shop.rows("SELECT * FROM sales") == [("ink", 5, 2), ("pen", 1, 1)]

    shop.models(sales=config % "" + "select item, count(*) as n from {{ ref('orders') }} group by item")
    assert not shop.dbt("run", "--select", "sales").success
    shop.run("--select", "sales", "--full-refresh")
    assert shop.rows("SELECT * FROM sales") == [("ink", 2), ("pen", 1)]
    with shop.warehouse() as env:
        assert env.list_tables() == ("orders", "sales")

    shop.models(sales="{{ config(materialized='table') }} select 1 as id")
    shop.run("--select", "sales")
    assert shop.rows("SELECT * FROM sales") == [(1,)]


def test_grants_are_a_warning_that_names_what_decides(shop: Project, capsys: pytest.CaptureFixture[str]) -> None:
    shop.models(orders="{{ config(materialized='table', grants={'select': ['ada']}) }} select 1 as id")
    shop.run()
    assert "tablestore has none" in " ".join(capsys.readouterr().out.split())


def test_debug_opens_the_warehouse_and_shows_no_secret(shop: Project, capsys: pytest.CaptureFixture[str]) -> None:
    shop.profile({**shop.target, "options": {"table-default.bucket": "2"}, "config": {"table.insert.missing-columns": "keep"}})
    assert shop.dbt("debug").success
    shown = capsys.readouterr().out
    assert "warehouse: " in shown
    assert "options" not in shown


def test_a_profile_without_a_warehouse_says_what_to_add(shop: Project, capsys: pytest.CaptureFixture[str]) -> None:
    shop.profile({"type": "tablestore", "schema": "shop", "threads": 1})
    assert not shop.dbt("debug").success
    assert "add warehouse" in capsys.readouterr().out


def test_models_build_in_another_catalog_of_the_profile(shop: Project) -> None:
    other = str(shop.folder / "other")
    shop.profile({**shop.target, "catalogs": {"lake": other}})
    shop.models(
        here="select 1 as id",
        there="{{ config(materialized='table', database='lake') }} select id + 1 as id from {{ ref('here') }}",
    )
    shop.run()
    with ts.TableEnvironment.create(other, engine="duckdb") as env:
        assert env.execute_sql("SELECT id FROM shop.there").to_arrow()["id"].to_pylist() == [2]


def test_types_of_a_contract_mean_what_a_cast_means(shop: Project) -> None:
    shop.models(t="{{ config(materialized='table') }} select 1 as id, 'x' as name, timestamp '2026-01-01 00:00:00' as at")
    shop.properties(
        """
models:
  - name: t
    config: {contract: {enforced: true}}
    columns:
      - {name: at, data_type: timestamp}
      - {name: id, data_type: int, constraints: [{type: primary_key}]}
      - {name: name, data_type: text}
"""
    )
    shop.run()
    with shop.warehouse() as env:
        described = env.execute_sql("DESCRIBE t").to_arrow().to_pylist()
    assert [(one["name"], one["type"], one["null"]) for one in described] == [
        ("at", "TIMESTAMP(6) WITH LOCAL TIME ZONE", True),
        ("id", "INT", False),
        ("name", "STRING", True),
    ]
