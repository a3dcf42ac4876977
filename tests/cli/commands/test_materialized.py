"""``tablestore mt``: figures, refreshes, and the scheduler that is built in."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.cli.command import CommandRun
from tablestore.cli.commands.materialized.serve import Server
from tablestore.cli.text.render import Output
from tablestore.materialized.figures.openmetrics import FreshnessRegistry
from tests.support.commandline import Ran
from tests.support.sql.hostile import set_options

Run = Callable[..., Ran]
TOTALS = (
    "CREATE MATERIALIZED TABLE shop.totals FRESHNESS = INTERVAL '1' SECOND REFRESH_MODE = FULL AS "
    "SELECT item, sum(price) AS total FROM shop.orders GROUP BY item"
)


@pytest.fixture
def totals(run: Run, orders: ts.Table) -> str:
    run("sql", "-e", TOTALS)
    return "shop.totals"


def test_a_table_is_refreshed_and_listed(run: Run, totals: str) -> None:
    (listed,) = run("mt", "list", "--json").json["materialized_tables"]
    assert (listed["table"], listed["status"], listed["mode"], listed["target"]) == (totals, "ACTIVATED", "FULL", 1000)
    assert listed["lag"] > 0
    assert run("mt", "refresh", totals).out.startswith("shop.totals: full refresh; ")
    assert run("mt", "refresh", totals).out == "shop.totals: nothing to refresh.\n"
    (listed,) = run("mt", "list", "shop", "--json").json["materialized_tables"]
    assert (listed["lag"], listed["late"], listed["last_mode"]) == (0, False, "full")
    (past,) = run("mt", "history", totals, "--json").json["refreshes"]
    assert (past["mode"], past["rows_more"]) == ("full", 4)
    assert "0 s" in run("mt", "list").out


def test_the_error_of_a_refresh_is_listed_until_one_goes_well(run: Run, totals: str, orders: ts.Table) -> None:
    run("sql", "-e", "ALTER TABLE shop.orders RENAME COLUMN price TO cost")
    failed = run("mt", "refresh", totals, code=1).err
    (listed,) = run("mt", "list", "--json").json["materialized_tables"]
    assert "price" in failed and "price" in listed["error"] and listed["error_at"] is not None
    assert "price" in run("mt", "list").out
    run("sql", "-e", "ALTER TABLE shop.orders RENAME COLUMN cost TO price")
    run("mt", "refresh", totals)
    (listed,) = run("mt", "list", "--json").json["materialized_tables"]
    assert (listed["error"], listed["error_at"]) == (None, None)


def test_a_suspended_table_is_not_due(run: Run, totals: str, catalog: ts.Catalog) -> None:
    run("mt", "suspend", totals)
    assert run("mt", "refresh", "--due").out == "Nothing is due.\n"
    assert "has been suspended" in run("mt", "suspend", totals, code=1).err
    run("mt", "resume", totals)
    assert "not a materialized table" in run("mt", "resume", "shop.orders", code=1).err
    assert "Usage" in run("mt", "refresh", code=2).err
    assert "Usage" in run("mt", "refresh", totals, "--due", code=2).err
    assert "Usage" in run("mt", "refresh", totals, "--with-upstream", "--partition", "item=ink", code=2).err


def test_a_table_is_refreshed_with_those_that_it_is_made_from(run: Run, totals: str) -> None:
    run("sql", "-e", "CREATE MATERIALIZED TABLE shop.most REFRESH_MODE = FULL AS SELECT max(total) AS most FROM shop.totals")
    lines = run("mt", "refresh", "shop.most", "--with-upstream", "--json").out.splitlines()
    assert [(json.loads(line)["table"], json.loads(line)["mode"]) for line in lines] == [
        ("tablestore.shop.totals", "full"),
        ("tablestore.shop.most", "full"),
    ]
    run("sql", "-e", "ALTER TABLE shop.orders DROP COLUMN price")
    assert "tablestore.shop.totals: " in run("mt", "refresh", "shop.most", "--with-upstream", code=1).err


def test_a_partition_is_refreshed(run: Run, orders: ts.Table) -> None:
    run("sql", "-e", TOTALS.replace("FRESHNESS", "PARTITIONED BY (item) FRESHNESS"))
    run("mt", "refresh", "shop.totals", "--partition", "item=ink")
    assert run("sql", "-e", "SELECT item, total FROM shop.totals").out == "item\ttotal\nink\t9\n"
    assert "unknown partition keys: price" in run("mt", "refresh", "shop.totals", "-p", "price=1", code=1).err
    assert "COLUMN=VALUE" in run("mt", "refresh", "shop.totals", "-p", "ink", code=2).err


@pytest.mark.deep
def test_a_version_is_staged_compared_promoted_taken_back_and_discarded(run: Run, totals: str, orders: ts.Table) -> None:
    run("mt", "refresh", totals)
    before = run("sql", "-e", "SELECT * FROM shop.totals ORDER BY item").out
    query = "SELECT item, max(price) AS most FROM shop.orders WHERE item IS NOT NULL GROUP BY item"
    staged = run("mt", "stage", totals, query, "--primary-key", "item", "--option", "bucket=2", "--comment", "new", "--json")
    assert staged.json == {"staged": totals}
    compared = run("mt", "compare", totals, "--json", code=3).json
    assert (compared["version"], compared["equal"], compared["only_current"]) == ("staged", False, 1)
    assert compared["columns_removed"][0].startswith("total ") and compared["examples"]["only_other"] == []
    assert "columns added: most " in run("mt", "compare", totals, code=3).out
    assert "its previous version is kept" in run("mt", "promote", totals).out
    assert run("sql", "-e", "SELECT * FROM shop.totals").out.startswith("item\tmost\n")
    assert "the version after it is staged" in run("mt", "rollback", totals).out
    assert run("sql", "-e", "SELECT * FROM shop.totals ORDER BY item").out == before
    run("mt", "discard", totals)
    run("mt", "stage", totals, TOTALS.partition(" AS ")[2])
    assert run("mt", "compare", totals).out == "the staged version has the columns and rows of the current one\n"
    run("mt", "discard", totals)
    for action in ("compare", "promote", "rollback", "discard"):
        assert "version" in run("mt", action, totals, code=1).err
    assert "KEY=VALUE" in run("mt", "stage", totals, query, "--option", "x", code=2).err


def server(environment: ts.TableEnvironment, registry: FreshnessRegistry | None = None) -> Server:
    registry = registry or FreshnessRegistry()
    return Server(CommandRun(out=Output(as_json=True, now_millis=0)), environment, registry.show)


def test_the_server_refreshes_what_is_due_until_it_is_ended(
    totals: str, orders: ts.Table, warehouse: str, clock_env: Callable[[], ts.TableEnvironment], capsys: pytest.CaptureFixture[str]
) -> None:
    with clock_env() as environment:
        registry = FreshnessRegistry()
        serving, looks = server(environment, registry), iter([False, False, True])

        def wait(seconds: float) -> bool:
            orders.upsert({"id": [9], "item": ["pen"], "price": [seconds]})
            environment._session.clock.sleep(seconds)
            return next(looks)

        environment._session.clock.sleep(2)
        serving.run(wait, 5.0)
    modes = [json.loads(line)["mode"] for line in capsys.readouterr().out.splitlines()]
    assert modes == ["full", "incremental", "incremental"]
    assert registry.get_sample_value("tablestore_materialized_table_active", {"table": "tablestore.shop.totals"}) == 1


def test_the_server_runs_no_definition_that_a_stranger_stored(
    run: Run, totals: str, tmp_path: Path, warehouse: str, clock_env: Callable[[], ts.TableEnvironment]
) -> None:
    hostile = {"materialized-table.definition-query": f"COPY (SELECT 1) TO '{tmp_path / 'written'}'"}
    set_options(Path(warehouse) / "shop.db" / "totals", hostile)
    with clock_env() as environment:
        looks = iter([False, True])
        environment._session.clock.sleep(2)
        server(environment).run(lambda seconds: next(looks), 5.0)
    assert "definition of the materialized table is not run" in run("mt", "refresh", totals, code=1).err
    run("mt", "list")
    assert not (tmp_path / "written").exists()


def test_a_table_that_fails_is_left_out_more_and_more_often(
    run: Run, totals: str, clock_env: Callable[[], ts.TableEnvironment], capsys: pytest.CaptureFixture[str]
) -> None:
    run("sql", "-e", "CREATE TABLE shop.gone (id BIGINT)")
    run(
        "sql",
        "-e",
        TOTALS.replace("totals", "broken")
        .replace("orders", "gone")
        .replace("item, sum(price) AS total", "id")
        .replace(" GROUP BY item", ""),
    )
    run("sql", "-e", "DROP TABLE shop.gone")
    capsys.readouterr()
    with clock_env() as environment:
        registry, failed = FreshnessRegistry(), []
        serving = server(environment, registry)
        for _ in range(12):
            environment._session.clock.sleep(2)
            serving.look()
            failed.append('"error": "' in capsys.readouterr().out)
    assert [look for look, one in enumerate(failed) if one] == [0, 2, 5, 10]
    failures = "tablestore_materialized_table_refresh_failures_total"
    assert registry.get_sample_value(failures, {"table": "tablestore.shop.broken"}) == 4
    assert registry.get_sample_value(failures, {"table": "tablestore.shop.totals"}) is None


def test_a_folder_is_planned_and_applied(run: Run, orders: ts.Table, tmp_path: Path) -> None:
    (tmp_path / "totals.sql").write_text(TOTALS.replace("CREATE", "CREATE OR ALTER"))
    planned = run("mt", "plan", tmp_path, code=3)
    assert planned.out.startswith("create: tablestore.shop.totals (totals.sql)\n")
    assert run("mt", "apply", tmp_path, "--json").rows[0]["action"] == "create"
    assert run("mt", "plan", tmp_path, "--database", "shop").out == "no change: tablestore.shop.totals (totals.sql)\n"
    declared = TOTALS.replace("CREATE", "CREATE OR ALTER")
    (tmp_path / "totals.sql").write_text(declared.replace("sum(price) AS total", "count(*) AS n"))
    assert "STAGE AS query" in run("mt", "plan", tmp_path, code=1).err
    assert run("mt", "apply", tmp_path, "--blue-green", "--json").rows[0]["action"] == "stage"
    assert "it is staged" in run("mt", "plan", tmp_path, "--blue-green").out
    (tmp_path / "totals.sql").rename(tmp_path / "other.sql")
    (tmp_path / "other.sql").write_text(TOTALS.replace("CREATE", "CREATE OR ALTER").replace("totals", "others"))
    assert run("mt", "plan", tmp_path, "--json", code=3).json["undeclared"] == ["tablestore.shop.totals"]
    assert "is no folder" in run("mt", "apply", tmp_path / "missing", code=1).err
