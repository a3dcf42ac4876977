"""What a shell offers for the word before the cursor: names of tables, and of what tables are made of."""

import shlex

import pytest
from typer.testing import CliRunner

import tablestore as ts
from tablestore.cli.main import program_app


def test_names_of_tables_are_completed(orders: ts.Table, catalog: ts.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog.create_database("other")
    assert completed("table read sh") == ["shop.orders"]
    assert completed("db drop o") == ["other"]
    monkeypatch.setenv("TABLESTORE_WAREHOUSE", "nothing://knows")
    assert completed("table read sh") == []


@pytest.mark.deep_after(15)
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("table read shop.orders --columns i", ["id", "item"]),
        ("table read shop.orders --columns id,i", ["id,item"]),
        ("table read 'shop.orders$tags' --columns tag", ["tag_name"]),
        ("table read shop.orders --columns none", []),
        ("table read shop.absent --columns i", []),
        ("table read --columns i", []),
        ("table show shop.orders snapshots --columns snap", ["snapshot_id"]),
        ("table show shop.orders ta", ["tags"]),
        ("table read shop.orders --filter pr", ["price"]),
        ("table read shop.orders --filter 'price > 1 AND i'", ["price > 1 AND id", "price > 1 AND item"]),
        ("table read shop.orders --tag be", ["before-import", "beta"]),
        ("table read 'shop.orders$files' --tag be", ["before-import", "beta"]),
        ("tag delete shop.orders bet", ["beta"]),
        ("table read shop.orders --snapshot ''", ["2", "1"]),
        ("snapshot rollback shop.orders 1", ["1"]),
        ("table read 'shop.orders$s'", ["shop.orders$snapshots", "shop.orders$schemas"]),
        ("table read 'shop.orders$b'", ["shop.orders$branch_trial", "shop.orders$buckets", "shop.orders$branches"]),
        ("table count 'shop.orders$b'", ["shop.orders$branch_trial"]),
        ("branch delete shop.orders tr", ["trial"]),
        ("consumer delete shop.orders bi", ["billing"]),
        ("compact shop.", ["shop.orders"]),
        ("table alter drop-column shop.orders pr", ["price"]),
        ("table alter add-column shop.orders 'note STRING' --after it", ["item"]),
        ("table alter set shop.orders write-o", ["write-only="]),
        ("table alter set shop.orders write-only=", ["write-only=true", "write-only=false"]),
        ("table alter set shop.orders nothing=", []),
        ("table alter unset shop.orders w", ["write-only"]),
        ("table create shop.t --option merge-e", ["merge-engine="]),
        ("update shop.orders --set pr", ["price="]),
        ("delete shop.orders --where pr", ["price"]),
    ],
)
def test_parts_of_a_table_are_completed(parts: ts.Table, words: str, found: list[str]) -> None:
    assert completed(words) == found


@pytest.fixture
def parts(orders: ts.Table) -> ts.Table:
    for tag in ("before-import", "beta"):
        orders.create_tag(tag)
    orders.create_branch("trial")
    orders.reset_consumer("billing", next_snapshot=1)
    return orders


def completed(words: str) -> list[str]:
    """What bash is offered for the last of the words."""
    environment = {
        "_TABLESTORE_COMPLETE": "complete_bash",
        "COMP_WORDS": f"tablestore {words}",
        "COMP_CWORD": str(len(shlex.split(words))),
    }
    shown = CliRunner().invoke(program_app(), [], prog_name="tablestore", env=environment).stdout
    return [line for line in shown.splitlines() if line]
