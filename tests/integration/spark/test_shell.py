"""``tablestore sql --engine spark`` in a process of its own, with a Spark session of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def run(warehouse: Path, *statements: str) -> "subprocess.CompletedProcess[str]":
    environment = {key: value for key, value in os.environ.items() if key != "PYSPARK_PYTHON"}
    command = [sys.executable, "-m", "tablestore", "sql", "-w", str(warehouse), "--engine", "spark", "--format", "csv"]
    given = [part for statement in statements for part in ("-e", statement)]
    return subprocess.run([*command, *given], capture_output=True, text=True, env=environment, check=False)


def test_ctrl_c_ends_the_statement_that_runs(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYSPARK_PYTHON"}
    endless = "SELECT sum(hash(id)) FROM range(100000000000000)"
    started = [sys.executable, "-m", "tablestore", "sql", "-w", str(tmp_path), "--engine", "spark"]
    command = [*started, "-e", "SELECT 42", "-e", endless]
    # A group of its own: a terminal sends the signal to all processes of the group, Spark's JVM too.
    shell = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    assert shell.stdout is not None
    while "42" not in shell.stdout.readline():
        pass
    for _ in range(60):
        # A signal that comes before the job has begun finds nothing to cancel.
        os.killpg(shell.pid, signal.SIGINT)
        try:
            _, said = shell.communicate(timeout=2)
            break
        except subprocess.TimeoutExpired:
            continue
    assert shell.returncode == 130
    assert "cancelled" in said
    assert not any(sign in said for sign in ("Traceback", "py4j", "\tat "))


def test_statements_run_end_to_end_and_spark_says_nothing_of_its_own(tmp_path: Path) -> None:
    done = run(
        tmp_path / "wh",
        "CREATE TABLE t (id BIGINT, note STRING, PRIMARY KEY (id) NOT ENFORCED)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "UPDATE t SET note = 'z' WHERE id = 2",
        "SELECT id, note FROM t ORDER BY id",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["1,a", "2,z"] or done.stdout.splitlines()[-2:] == ['1,"a"', '2,"z"']
    assert not [line for line in done.stderr.splitlines() if any(sign in line for sign in ("WARN", "spark", "{"))]
    for text, said in (("SELECT nix\nFROM t", "line 1, column 8"), ("SELECT 1 / (id - 1) FROM t", "line 1, column 8")):
        failed = run(tmp_path / "wh", text)
        assert failed.returncode != 0
        assert said in failed.stderr
        assert not any(sign in failed.stderr for sign in ("WARN", "Logger", "py4j", "\tat ", "Traceback", "_pyspark_"))
