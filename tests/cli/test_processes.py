"""The command as people run it: a process with pipes, signals and a terminal."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tablestore as ts
from tests.support.commandline import run_command

COMMAND = (sys.executable, "-W", "error", "-m", "tablestore")


def process(*args: str, **options: object) -> subprocess.Popen[bytes]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*COMMAND, *args], **{**pipes, **options})  # type: ignore[call-overload, no-any-return]


@pytest.fixture
def long_table(catalog: ts.Catalog) -> ts.Table:
    table = catalog.create_table("shop.long", schema=pa.schema([("n", pa.int64()), ("t", pa.string())]))
    table.append(pa.table({"n": list(range(60_000)), "t": ["x" * 20] * 60_000}))
    return table


@pytest.mark.deep
@pytest.mark.parametrize(
    "args",
    [
        ("table", "read", "shop.long", "--format", "json"),
        ("table", "read", "shop.long", "--format", "csv"),
        # What the statement held of DuckDB is gone before the interpreter ends, which would name it.
        ("sql", "--engine", "duckdb", "-e", "SELECT * FROM shop.long"),
    ],
    ids=["json", "csv", "sql"],
)
def test_a_reader_that_leaves_ends_the_command_without_a_word(long_table: ts.Table, args: tuple[str, ...]) -> None:
    running = process(*args)
    assert running.stdout is not None
    assert running.stderr is not None
    assert running.stdout.read(10)
    running.stdout.close()
    assert running.stderr.read() == b""
    running.stderr.close()
    assert running.wait(300) == 141


@pytest.mark.deep
def test_ctrl_c_ends_a_command_without_a_word(orders: ts.Table) -> None:
    running = process("consume", "shop.orders", "--scan", "full", "--follow", "--json")
    assert running.stdout is not None
    lines = [json.loads(running.stdout.readline()) for _ in range(4)]
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert sorted(line["id"] for line in lines) == [1, 2, 3, 4]
    assert (out, err, running.returncode) == (b"", b"", 130)


@pytest.mark.deep
def test_a_select_in_streaming_mode_prints_changes_until_ctrl_c(orders: ts.Table) -> None:
    query = "SELECT id, price FROM shop.orders WHERE id > 1"
    running = process("sql", "--set", "execution.runtime-mode=streaming", "--json", "-e", query, "-e", "SELECT 1")
    assert running.stdout is not None
    lines = [json.loads(running.stdout.readline()) for _ in range(3)]
    assert sorted((line["_row_kind"], line["id"]) for line in lines) == [("+I", 2), ("+I", 3), ("+I", 4)]
    orders.delete([{"id": 3}])
    line = json.loads(running.stdout.readline())
    assert (line["_row_kind"], line["id"]) == ("-D", 3)
    running.send_signal(signal.SIGINT)
    assert running.communicate(timeout=300) == (b"", b"")
    assert running.returncode == 130


@pytest.mark.deep
def test_an_insert_in_streaming_mode_runs_until_ctrl_c(orders: ts.Table, catalog: ts.Catalog) -> None:
    target = catalog.create_table("shop.cheap", schema=orders.schema, primary_key=["id"])
    running = process("sql", "--set", "execution.runtime-mode=streaming", "-e", "INSERT INTO shop.cheap SELECT * FROM shop.orders")
    while target.refresh().scan().count() < 4:
        assert running.poll() is None
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert (out, running.returncode) == (b"", 130)
    assert b"runs until it is canceled" in err and b"Traceback" not in err


@pytest.mark.deep
def test_the_compaction_service_ends_with_ctrl_c(orders: ts.Table) -> None:
    running = process("compact", "shop.orders", "--full", "--watch", "--interval", "1 h", "--json")
    assert running.stdout is not None
    assert json.loads(running.stdout.readline())["snapshot_ids"] == [3]
    running.send_signal(signal.SIGINT)
    assert running.communicate(timeout=300) == (b"", b"")
    assert running.returncode == 130


@pytest.mark.deep
@pytest.mark.parametrize(
    ("commit_every", "said"),
    [
        ((), b"Interrupted: nothing was committed.\n"),
        (("--commit-every", "2"), b"snapshots 3 to 4 of shop.orders were committed"),
        (("--commit-every", "4"), b"Interrupted: snapshot 3 of shop.orders was committed.\n"),
    ],
    ids=["no commit", "two commits", "one commit"],
)
def test_ctrl_c_says_what_was_committed(orders: ts.Table, tmp_path: Path, commit_every: tuple[str, ...], said: bytes) -> None:
    pq.write_table(pa.table({"id": [5, 6, 7, 8], "item": [None] * 4, "price": [1.0] * 4}), tmp_path / "a.parquet")
    os.mkfifo(tmp_path / "b.jsonl")
    running = process("import", "shop.orders", str(tmp_path / "a.parquet"), str(tmp_path / "b.jsonl"), *commit_every)
    # It is opened for reading when the first file is done, and takes more than a pipe holds when it is being read.
    with open(tmp_path / "b.jsonl", "wb") as rows:
        rows.write(b"\n" * 1_000_000)
        running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (out, running.returncode) == (b"", 130)
    assert said in err
    assert b"Traceback" not in err


def test_ctrl_c_while_the_program_is_still_being_loaded() -> None:
    begin = "import signal, sys, tablestore.__main__ as program\nprogram.leave_at_ctrl_c()\n"
    assert not subprocess.run([sys.executable, "-c", f"{begin}assert 'typer' not in sys.modules"], check=False).returncode
    ended = subprocess.run([sys.executable, "-c", f"{begin}signal.raise_signal(signal.SIGINT)"], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"Interrupted: nothing was committed.\n")


@pytest.mark.parametrize(
    ("before", "ended"),
    [("", (130, b"Interrupted: nothing was committed.\n")), ("ids.uuid()", (0, b"interrupted"))],
    ids=["nothing can have landed", "something may have landed"],
)
def test_ctrl_c_in_an_import_ends_the_program_while_nothing_can_have_landed(
    tmp_path: Path, before: str, ended: tuple[int, bytes]
) -> None:
    (tmp_path / "slow.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    program = f"""
import sys
from tablestore.cli.interruption import RememberedIds, leave_at_ctrl_c, raise_at_ctrl_c
leave_at_ctrl_c()
ids = RememberedIds()
raise_at_ctrl_c(ids)
{before}
try:
    import slow
except KeyboardInterrupt:
    sys.stderr.write("interrupted")
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, cwd=tmp_path)
    assert (run.returncode, run.stderr) == ended


def test_a_program_that_ignores_ctrl_c_goes_on_doing_so() -> None:
    begin = (
        "import signal, tablestore.__main__ as program\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprogram.leave_at_ctrl_c()\n"
    )
    ended = subprocess.run([sys.executable, "-c", f"{begin}signal.raise_signal(signal.SIGINT)"], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.deep
def test_output_of_one_command_is_the_input_of_the_next(long_table: ts.Table, catalog: ts.Catalog) -> None:
    target = catalog.create_table("shop.copy", schema=long_table.schema)
    reading = process("table", "read", "shop.long", "--format", "json")
    importing = process("import", "shop.copy", "-", "--file-format", "json", "--json", stdin=reading.stdout)
    assert reading.stdout is not None
    reading.stdout.close()
    out, err = importing.communicate(timeout=300)
    assert reading.wait(300) == 0
    assert reading.stderr is not None
    reading.stderr.close()
    assert (json.loads(out)["rows"], err, importing.returncode) == (60_000, b"", 0)
    assert target.scan(filter="n = 59999").to_arrow().to_pylist() == [{"n": 59_999, "t": "x" * 20}]


def on_a_terminal(*args: str, asks: bool = False, **variables: str) -> tuple[str, int]:
    """Run a command whose output (``asks``: and input) is a terminal; what it showed, and what it returned."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **variables}
    stdin = theirs if asks else None
    running = subprocess.Popen([*COMMAND, *args], stdin=stdin, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(ours)
    return shown.decode(), running.wait(300)


def test_a_terminal_gets_a_table_and_is_told_that_there_is_more(long_table: ts.Table) -> None:
    shown, code = on_a_terminal("table", "read", "shop.long")
    assert code == 0
    assert "the first 100 rows" in shown
    assert shown.count("x" * 20) == 100
    assert "\t" not in shown


@pytest.mark.deep
@pytest.mark.parametrize(("words", "paged"), [((), True), (("--no-pager",), False)])
def test_a_long_result_goes_through_the_pager_of_a_user_at_a_terminal(
    catalog: ts.Catalog, warehouse: str, words: tuple[str, ...], paged: bool
) -> None:
    statement = ["sql", "--engine", "duckdb", "--warehouse", warehouse, *words, "-e", "SELECT * FROM range(90)"]
    shown, code = on_a_terminal(*statement, asks=True, PAGER="sed s/^/paged/", LINES="20")
    assert (code, shown.count("paged")) == (0, 91 if paged else 0)
    assert "90 rows, " in shown
    if paged:
        # A script that reads from elsewhere waits for nobody.
        assert "paged" not in on_a_terminal(*statement, PAGER="sed s/^/paged/", LINES="20")[0]


def test_an_argument_that_is_no_text_is_an_error_and_no_trace(catalog: ts.Catalog) -> None:
    done = subprocess.run([*map(os.fsencode, COMMAND), b"table", b"read", b"shop.\xff\xfe"], capture_output=True, check=False)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr


@pytest.mark.deep
@pytest.mark.slow_after(1)
@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", "<&-", ">&-", "2>&-"])
def test_a_command_runs_where_standard_streams_are_closed(catalog: ts.Catalog, warehouse: str, closed: str) -> None:
    statement = "CREATE TABLE shop.made (id INT)"
    words = [*COMMAND, "sql", "--engine", "duckdb", "--warehouse", warehouse, "-e", statement]
    assert subprocess.run(["bash", "-c", f'"$@" {closed}', "bash", *words], check=False).returncode == 0
    assert catalog.table_exists("shop.made")


@pytest.mark.deep
def test_a_script_from_a_closed_standard_input_is_empty(catalog: ts.Catalog, warehouse: str) -> None:
    words = [*COMMAND, "sql", "--warehouse", warehouse]
    done = subprocess.run(["bash", "-c", '"$@" <&-', "bash", *words], capture_output=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 0)


def test_the_console_script_is_declared(project: Path) -> None:
    assert 'tablestore = "tablestore.__main__:main"' in (project / "pyproject.toml").read_text()


@pytest.mark.deep
def test_a_server_of_materialized_tables_ends_with_sigterm(orders: ts.Table) -> None:
    query = "SELECT id, item FROM shop.orders"
    with ts.TableEnvironment.create(orders.location.removesuffix("/shop.db/orders"), engine="duckdb") as environment:
        environment.execute_sql(
            f"CREATE MATERIALIZED TABLE shop.copy FRESHNESS = INTERVAL '1' SECOND REFRESH_MODE = FULL AS {query}"
        )
    running = process("mt", "serve", "--interval", "100 ms", "--json")
    assert running.stdout is not None
    refreshed = json.loads(running.stdout.readline())
    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=300)
    assert (refreshed["table"], refreshed["mode"]) == ("tablestore.shop.copy", "full")
    assert (out, err, running.returncode) == (b"", b"", 0)


def test_an_output_that_is_a_pipe_or_a_link_stays_one(orders: ts.Table, tmp_path: Path) -> None:
    pipe, link, file = tmp_path / "pipe", tmp_path / "link.csv", tmp_path / "file.csv"
    os.mkfifo(pipe)
    link.symlink_to(file)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    for output in (pipe, link):
        run_command("table", "read", "shop.orders", "--columns", "id", "--limit", "1", "--format", "csv", "--output", str(output))
    assert os.read(reader, 100) == file.read_bytes()
    os.close(reader)
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.csv", "link.csv", "pipe", "warehouse"]


def test_text_that_is_not_utf_8_and_a_row_too_long_are_named(orders: ts.Table, tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes("id,item\n5,café\n".encode("latin-1"))
    said = run_command("import", "shop.orders", str(tmp_path / "latin.csv"), code=1).err
    assert "latin.csv, line 2, column 'item': expected UTF-8 text, found other bytes; convert it with iconv" in said
    (tmp_path / "open.csv").write_text('id,item\n5,"pen\n' + "x" * 9_000_000)
    said = run_command("import", "shop.orders", str(tmp_path / "open.csv"), code=1).err
    assert "has a row of more than 4 MB, or a quote that is never closed" in said
