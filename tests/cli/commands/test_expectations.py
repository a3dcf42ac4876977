"""``check``, and the commands that add and drop constraints."""

from collections.abc import Callable
from pathlib import Path

import tablestore as ts
from tests.support.commandline import Ran

Run = Callable[..., Ran]


def test_check_shows_counts_and_rows_and_returns_3_if_a_row_violates_a_rule(run: Run, orders: ts.Table, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nnot_null = ["id"]\n[[rule]]\nname = "none"\ncondition = "id < 0"\n')
    document = run("check", "shop.orders", "--rules", rules, "--samples", 1, "--json", code=3).json
    assert (document["table"], document["holds"]) == ("shop.orders", False)
    first, second = document["expectations"]
    rows = orders.scan().count()
    assert (first["name"], first["rows"], first["violations"], first["holds"]) == ("not_null(id)", rows, 0, True)
    assert (second["name"], second["violations"], len(second["samples"])) == ("none", rows, 1)
    shown = run("check", "shop.orders", "--rules", rules, code=3).out
    assert "ok  not_null(id)" in shown
    assert f"problem  none: {rows} of {rows} row(s)" in shown
    assert "2 expectation(s), 1 violated" in shown
    rules.write_text('[[rule]]\nunique = ["id"]\n')
    assert run("check", "shop.orders", "--rules", rules, "--json").json["holds"] is True


def test_check_without_rules_compares_the_constraints(run: Run, orders: ts.Table) -> None:
    run("table", "alter", "add-check", "shop.orders", "known", "id IS NOT NULL")
    assert [one["name"] for one in run("check", "shop.orders", "--json").json["expectations"]] == ["known"]
    assert run("table", "describe", "shop.orders", "--json").json["constraints"] == {"known": "id IS NOT NULL"}
    assert "known: id IS NOT NULL" in run("table", "describe", "shop.orders").out
    run("table", "alter", "drop-check", "shop.orders", "known")
    assert run("check", "shop.orders", "--json").json["expectations"] == []


def test_a_file_that_cannot_be_read_is_an_error_of_its_own(run: Run, orders: ts.Table, tmp_path: Path) -> None:
    assert "cannot be read" in run("check", "shop.orders", "--rules", tmp_path / "none.toml", code=1).err
    (tmp_path / "bad.toml").write_text("[[rule]]\n")
    assert "expected exactly one of" in run("check", "shop.orders", "--rules", tmp_path / "bad.toml", code=1).err


def test_a_table_is_created_with_constraints(run: Run, orders: ts.Table) -> None:
    run("table", "create", "shop.new", "--schema", "id INT, price DOUBLE", "--check", "positive=price > 0", "--check", "one=id = 1")
    assert run("table", "describe", "shop.new", "--json").json["constraints"] == {"one": "id = 1", "positive": "price > 0"}
    failed = run("insert", "shop.new", '{"id": 1, "price": -1}', code=1)
    assert "'positive', CHECK (price > 0): price = -1.0" in failed.err
