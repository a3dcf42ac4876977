"""A command loads what it needs, and nothing of what the others need."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pyarrow as pa
import pytest
import typer

import tablestore as ts
from tablestore.cli import commands
from tests.cli.test_help import ALL

# What a query by DuckDB over a table without newer rows has no use for: packages of others, rooms and modules of ours.
NOT_FOR_A_QUERY = (
    *("pyspark", "confluent_kafka", "pandas", "rich", "fsspec", "sqlalchemy", "botocore", "prompt_toolkit", "pyarrow.dataset"),
    *(f"tablestore.log.{room}" for room in ("publish", "follow", "early", "port", "settings", "filestorelog")),
    *(f"tablestore.store.{room}" for room in ("changes", "commit", "compact", "history", "write")),
    *(f"tablestore.table.{room}" for room in ("inspect", "write", "read.changes", "system.systemrows", "upkeep.compaction")),
    *(f"tablestore.environment.{room}" for room in ("definition", "inspection", "procedures", "rows.change", "rows.insert")),
    *(f"tablestore.sql.statements.{module}" for module in ("alter", "definition", "session")),
    *("tablestore.lsm.compaction", "tablestore.lsm.write", "tablestore.distributed.change", "tablestore_duckdb.writing"),
)

RUN = """
import sys
from tablestore.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("\\n".join(sys.modules), file=sys.stderr)
"""


def loaded(*args: str) -> tuple[str, set[str]]:
    """What a command printed, and the modules that it had loaded at its end."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", RUN, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, set(done.stderr.split())


def test_every_command_is_a_part_of_the_program() -> None:
    modules = [import_module(found.name) for found in walk_packages(commands.__path__, f"{commands.__name__}.")]
    groups = [value for module in modules for value in vars(module).values() if isinstance(value, typer.Typer)]
    assert sum(len(group.registered_commands) for group in groups) == len(ALL)


def test_a_query_by_duckdb_loads_neither_other_commands_nor_what_writes_or_follows_a_log(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    catalog = ts.open_catalog(tmp_path)
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.t", schema=pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())]), primary_key=["id"]
    )
    table.upsert(pa.table({"id": [1, 2], "v": ["a", None]}))
    printed, modules = loaded(
        "sql", "--warehouse", str(tmp_path), "--engine", "duckdb", "-e", "SELECT count(*) AS n FROM shop.t WHERE v = 'a'"
    )
    assert printed == "n\n1\n"
    beside = {name for name in modules if name.startswith(f"{commands.__name__}.")}
    assert beside == {f"{commands.__name__}.sql"}
    wrong = {name for name in modules for other in NOT_FOR_A_QUERY if name == other or name.startswith(f"{other}.")}
    assert not wrong


@pytest.mark.parametrize("args", [("--help",), ("table", "--help"), ("mt", "--help")], ids=" ".join)
def test_a_list_of_commands_loads_none_of_them(args: tuple[str, ...]) -> None:
    printed, modules = loaded(*args)
    assert "Commands" in printed
    assert not {name for name in modules if name.startswith((f"{commands.__name__}.", "pyarrow", "numpy"))}


@pytest.mark.parametrize("verb", ["read", "show", "count", "explain"])
def test_the_help_of_a_command_that_reads_loads_nothing_of_tables(verb: str) -> None:
    printed, modules = loaded("table", verb, "--help")
    assert "Example" in printed
    assert not {name for name in modules if name.startswith(("pyarrow", "numpy", "tablestore.table.", "tablestore.store."))}


def test_completing_the_name_of_a_table_opens_none(tmp_path: Path) -> None:
    catalog = ts.open_catalog(tmp_path)
    catalog.create_database("shop")
    catalog.create_table("shop.t", schema=pa.schema([("id", pa.int64())]))
    asked = "from types import SimpleNamespace as N; import sys; from tablestore.cli.command import complete_table; "
    asked += f"asked = N(params={{'warehouse': {str(tmp_path)!r}}}, args=[], command=N(params=[])); "
    asked += "print(*complete_table(asked, 'sh')); print(*sys.modules, sep='\\n', file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["shop.t"]
    assert not {name for name in done.stderr.split() if name.startswith(("tablestore.table.", "tablestore.store.scan."))}
