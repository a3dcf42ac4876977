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


@pytest.mark.deep
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


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("args", [("--help",), ("table", "--help"), ("mt", "--help")], ids=" ".join)
def test_a_list_of_commands_loads_none_of_them(args: tuple[str, ...]) -> None:
    printed, modules = loaded(*args)
    assert "Commands" in printed
    assert not {name for name in modules if name.startswith((f"{commands.__name__}.", "pyarrow", "numpy"))}


def test_no_help_of_any_command_loads_arrow_or_what_opens_tables() -> None:
    # A help is a command that is loaded and not run. All in one process: it is enough that together they load none of it.
    asked = f"""
import sys, typer.main
from tablestore.cli.main import program_app
program = typer.main.get_command(program_app())
for path in {[path for path, _ in ALL]!r}:
    command = program
    for name in path:
        command = command.commands[name]
    assert command.help
print(*sys.modules, sep="\\n")
"""
    assert not heavy(asked)


def test_no_completion_loads_arrow_or_opens_a_table(tmp_path: Path) -> None:
    catalog = ts.open_catalog(tmp_path)
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", schema=pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    table.create_tag("beta")
    table.create_branch("trial")
    table.reset_consumer("billing", next_snapshot=1)
    found = {
        "ta": "table",
        "import --ov": "--overwrite",
        "table read sh": "shop.t",
        "import shop.t --columns i": "id",
        "table read 'shop.t$branch_trial' --filter i": "id",
        f"table read '{tmp_path}/shop.db/t' --columns i": "id",
        "table read 'shop.t$fi' ": "shop.t$files",
        "table show shop.t files --columns file_p": "file_path",
        "delete shop.t --where 'id > 1 AND i'": "id > 1 AND id",
        "table read shop.t --tag b": "beta",
        "table read shop.t --snapshot 1": "1",
        "branch delete shop.t t": "trial",
        "consumer delete shop.t b": "billing",
        "table alter set shop.t write-only=t": "write-only=true",
        "table alter unset shop.t buck": "bucket",
        "mt refresh sh": "shop.t",
        "db drop s": "shop",
    }
    asked = f"""
import io, os, shlex, sys
from contextlib import redirect_stdout, suppress
from tablestore.cli.main import program_app
os.environ.update(_TABLESTORE_COMPLETE="complete_bash", TABLESTORE_WAREHOUSE={str(tmp_path)!r})
for words, wanted in {found!r}.items():
    os.environ.update(COMP_WORDS="tablestore " + words, COMP_CWORD=str(len(shlex.split(words))))
    with redirect_stdout(io.StringIO()) as shown, suppress(SystemExit):
        program_app()(prog_name="tablestore")
    assert wanted in shown.getvalue().splitlines(), (words, shown.getvalue())
print(*sys.modules, sep="\\n")
"""
    assert not heavy(asked)


def heavy(program: str) -> set[str]:
    """Of the modules that a program has loaded and prints: those that a shell's user would wait for."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wrong = (
        "pyarrow",
        "numpy",
        "duckdb",
        "pyspark",
        "sqlglot",
        "fastavro",
        "tablestore.table.table",
        "tablestore.store.context",
    )
    return {name for name in done.stdout.split() for other in wrong if name == other or name.startswith(f"{other}.")}
