"""What a command that writes says of it: rows, files, bytes and seconds."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.cli.rows.landedrows import landed_lines
from tablestore.cli.rows.rowsink import write_rows
from tablestore.cli.text.pager import pick_pager, show_in_pager
from tablestore.cli.text.render import Output
from tests.support.commandline import Ran

Run = Callable[..., Ran]
COUNTS = ("rows_affected", "rows_inserted", "rows_updated", "rows_deleted", "files_added", "files_removed")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich takes standard output for a terminal, without colours."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")


def numbers(document: dict[str, object]) -> tuple[object, ...]:
    assert isinstance(document["seconds"], float) and document["seconds"] >= 0
    added, removed = document["bytes_added"], document["bytes_removed"]
    assert isinstance(added, int) and isinstance(removed, int)
    assert (added > 0, removed > 0) == (bool(document["files_added"]), bool(document["files_removed"]))
    return tuple(document[name] for name in COUNTS)


def test_commands_that_write_say_rows_files_bytes_and_seconds(run: Run, orders: ts.Table, tmp_path: Path) -> None:
    inserted = run("insert", "shop.orders", '{"id": 70, "item": "ink", "price": 9}', "--json").json
    assert numbers(inserted) == (1, None, None, 0, 1, 0)
    updated = run("update", "shop.orders", "--set", "price=1", "--where", "id = 70", "--yes", "--json").json
    assert (numbers(updated), updated["rows"]) == ((1, 0, 1, 0, 1, 0), 1)
    deleted = run("delete", "shop.orders", "--where", "id = 70", "--yes", "--json").json
    assert (numbers(deleted), deleted["rows"]) == ((1, 0, 0, 1, 1, 0), 1)
    none = run("delete", "shop.orders", "--where", "id = 70", "--yes", "--json").json
    assert (numbers(none), none["snapshot"]) == ((0, 0, 0, 0, 0, 0), None)


def test_an_import_in_several_commits_says_what_all_of_them_did(run: Run, catalog: ts.Catalog, tmp_path: Path) -> None:
    catalog.create_table("shop.visits", "id BIGINT", options={"write-only": "true"})
    (tmp_path / "ids.csv").write_text("id\n" + "".join(f"{n}\n" for n in range(5)))
    said = run("import", "shop.visits", tmp_path / "ids.csv", "--commit-every", "2", "--json").json
    assert (numbers(said), len(said["snapshots"])) == ((5, 5, 0, 0, 3, 0), 3)


def test_sql_says_the_rows_of_a_write(run: Run, orders: ts.Table) -> None:
    assert run("sql", "-e", "UPDATE shop.orders SET price = 0 WHERE id < 3").out == "Snapshot 3: 2 rows updated.\n"
    (said,) = run("sql", "--json", "-e", "DELETE FROM shop.orders WHERE id = 1").rows
    assert (said["snapshot_id"], said["num_affected_rows"], said["num_deleted_rows"]) == (4, 1, 1)
    assert (said["files_added"], said["seconds"] >= 0) == (1, True)


def test_a_statement_set_says_what_each_insert_did(orders: ts.Table, catalog: ts.Catalog) -> None:
    with ts.TableEnvironment.create(catalog, engine="duckdb") as env:
        env.execute_sql("CREATE TABLE shop.a (id INT)")
        inserts = "INSERT INTO shop.a VALUES (1), (2); INSERT INTO shop.a SELECT 1 AS id WHERE FALSE"
        result = env.execute_sql(f"EXECUTE STATEMENT SET BEGIN {inserts}; END")
        lines = [line.rpartition(".a: ")[2] for line in landed_lines(result, "")]
    assert lines == ["snapshot 1, 2 rows written.", "nothing to change."]


@pytest.mark.usefixtures("terminal")
def test_a_terminal_says_rows_and_time_after_each_statement(run: Run, orders: ts.Table) -> None:
    ran = run("sql", "-e", "SELECT id FROM shop.orders WHERE id < 3; UPDATE shop.orders SET price = 0 WHERE id = 1; USE shop")
    said = (ran.out + ran.err).splitlines()
    assert [line for line in said if "2 rows, " in line and line.endswith(" s")]
    assert [line for line in said if line.startswith("Snapshot 3: 1 row updated, ") and line.endswith(" s.")]
    assert [line for line in said if line.startswith("OK, ")]
    many = run("sql", "-e", "SELECT * FROM range(150)")
    assert "the first 100 rows, " in many.err + many.out


def test_snapshots_are_listed_with_what_they_did(run: Run, orders: ts.Table) -> None:
    orders.delete("id = 1")
    newest, *_, first = run("snapshot", "list", "shop.orders", "--json").json["snapshots"]
    assert (newest["did"], newest["rows_deleted"], newest["files_added"]) == ("1 row deleted", 1, 1)
    assert first["rows_inserted"] is not None
    history = run("sql", "--json", "-e", "DESCRIBE HISTORY shop.orders LIMIT 1").rows
    assert (history[0]["rows_deleted"], history[0]["files_added"]) == (1, 1)
    assert "1 row deleted" in run("snapshot", "list", "shop.orders").out
    assert run("snapshot", "show", "shop.orders", str(newest["id"]), "--json").json["bytes_added"] == newest["bytes_added"]


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({}, ("less",)),
        ({"PAGER": "more -d"}, ("more", "-d")),
        ({"PAGER": ""}, ()),
        ({"PAGER": "cat"}, ()),
        ({"PAGER": "nowhere"}, ()),
        ({"PAGER": "'"}, ()),
    ],
)
def test_the_pager_is_that_of_the_user_else_less(environ: dict[str, str], words: tuple[str, ...]) -> None:
    assert pick_pager(environ, lambda name: None if name == "nowhere" else f"/bin/{name}") == words
    assert pick_pager(environ, lambda name: None) == ()


def test_a_pager_that_cannot_start_says_so(tmp_path: Path) -> None:
    assert not show_in_pager((str(tmp_path / "nothing"),), "text", environ={})


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(("rows", "works", "paged"), [(3, True, False), (200, True, True), (200, False, True)])
def test_what_is_longer_than_the_terminal_goes_to_the_pager(
    capsys: pytest.CaptureFixture[str], rows: int, works: bool, paged: bool
) -> None:
    out, shown = Output(as_json=False, now_millis=0), list[str]()

    def pager(text: str) -> bool:
        shown.append(text)
        return works

    out.pager = pager
    table = pa.table({"number": list(range(rows))})
    write_rows(out, table.schema, table.to_batches())
    printed = capsys.readouterr().out
    assert bool(shown) is paged
    # Once, wherever it is.
    assert ("number" in printed) is not (paged and works)
    assert not shown or shown[0].splitlines()[0].split() == ["number"]
