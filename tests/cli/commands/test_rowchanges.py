"""``insert``, ``update`` and ``delete``: what they write, what they ask before, and what they refuse."""

import json
from collections.abc import Callable

import pytest

from tests.support.commandline import Ran

Run = Callable[..., Ran]


def outcome(ran: Ran) -> tuple[object, ...]:
    """The table, the rows and the snapshot that a command tells of; the others are in test_what_happened."""
    said = json.loads(ran.out)
    return said["table"], said["rows"], said["snapshot"]


@pytest.fixture
def table(run: Run) -> None:
    run("db", "create", "shop")
    run("table", "create", "shop.t", "--primary-key", "id", "--schema", "id BIGINT, item STRING, price DECIMAL(10, 2), day DATE")
    done = run(
        "insert",
        "shop.t",
        '{"id": 1, "item": "ink", "price": 8, "day": "2026-01-31"}',
        '{"id": 2, "item": "it\'s", "price": null, "day": null}',
        "--json",
    )
    assert outcome(done) == ("shop.t", 2, 1)


def rows(run: Run) -> list[dict[str, object]]:
    return sorted(map(json.loads, run("table", "read", "shop.t", "--json").out.splitlines()), key=lambda row: row["id"])


def test_rows_are_inserted_and_replaced(run: Run, table: None) -> None:
    given = '{"id": 2, "item": "pen", "price": 3, "day": null}'
    assert "Inserted 1 row(s) into shop.t (snapshot 2)" in run("insert", "shop.t", given).out
    assert [(row["item"], row["price"]) for row in rows(run)] == [("ink", "8.00"), ("pen", "3.00")]


def test_columns_that_a_row_does_not_name_are_refused_kept_or_null(run: Run, table: None) -> None:
    one = ("insert", "shop.t", '{"id": 1, "item": "pen"}')
    assert "lack price, day" in run(*one, code=1).err
    for uneven in (('{"id": 1, "item": "pen"}', '{"id": 2, "price": 3}'), ('{"id": 1, "item": "pen", "price": 1}', '{"id": 2}')):
        assert "which other lines have" in run("insert", "shop.t", *uneven, code=1).err
    assert [row["item"] for row in rows(run)] == ["ink", "it's"]
    run(*one, "--missing-columns", "keep")
    assert [(row["item"], row["price"]) for row in rows(run)] == [("pen", "8.00"), ("it's", None)]
    run(*one, "--missing-columns", "null")
    assert [(row["item"], row["price"]) for row in rows(run)] == [("pen", None), ("it's", None)]


def test_rows_of_a_table_without_a_key_may_lack_columns(run: Run, table: None) -> None:
    run("table", "create", "shop.log", "--schema", "id BIGINT, item STRING")
    run("insert", "shop.log", '{"id": 1}', '{"item": "x"}')
    read = run("table", "read", "shop.log", "--json").out.splitlines()
    assert [json.loads(line) for line in read] == [{"id": 1, "item": None}, {"id": None, "item": "x"}]


def test_an_update_shows_what_it_would_do_and_waits_for_yes(run: Run, table: None) -> None:
    given = ["update", "shop.t", "--set", "price=price * 2", "--set", "item=upper(item)", "--where", "length(item) = 3"]
    shown = run(*given, code=3)
    assert "price = price * 2, item = upper(item) in 1 row(s) of shop.t" in " ".join(shown.out.split())
    plan = json.loads(run(*given, "--json", code=3).out)
    assert plan["needs"] == "--yes" and plan["plan"]["rows"] == 1
    assert outcome(run(*given, "--yes", "--json")) == ("shop.t", 1, 2)
    assert [(row["item"], row["price"]) for row in rows(run)] == [("INK", "16.00"), ("it's", None)]


def test_a_delete_takes_a_condition_or_all(run: Run, table: None) -> None:
    assert "--where" in run("delete", "shop.t", "--yes", code=2).err
    assert "no snapshot" in run("delete", "shop.t", "--where", "upper(item) = 'PEN'", "--yes").out
    assert "Deleted 1 row(s) of shop.t (snapshot 2)" in run("delete", "shop.t", "--where", "day < '2027-01-01'", "--yes").out
    assert outcome(run("delete", "shop.t", "--all", "--yes", "--json")) == ("shop.t", 1, 3)
    assert rows(run) == []


@pytest.mark.deep_after(4)
@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (["insert", "shop.t", "{"], 1, "JSON"),
        (["insert", "shop.t", '{"id": 3, "itm": "x"}'], 1, "itm"),
        (["insert", "shop.t", '{"item": "x", "price": 1, "day": null}'], 1, "'id'"),
        (["insert", "shop.t", '{"item": "x"}', "--missing-columns", "null"], 1, "id"),
        (["update", "shop.t", "--set", "price", "--all", "--yes"], 2, "--set"),
        (["update", "shop.t", "--set", "prize=1", "--all", "--yes"], 1, "did you mean 'price'"),
        (["update", "shop.t", "--set", "id=id + 1", "--all", "--yes"], 1, "identifies a row"),
        (["update", "shop.t", "--set", "price=1", "--where", "price >", "--yes"], 1, "such as"),
        (["delete", "shop.t", "--where", "prize > 1", "--yes"], 1, "did you mean 'price'"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_changes(run: Run, table: None, given: list[str], code: int, message: str) -> None:
    before = rows(run)
    refused = run(*given, code=code)
    assert message in " ".join(refused.err.split())
    assert rows(run) == before
