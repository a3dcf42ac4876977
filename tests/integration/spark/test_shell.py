"""``tablestore sql --engine spark`` in a process of its own, with a Spark session of its own."""

import os
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
