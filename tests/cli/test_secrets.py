"""A secret that somebody stored, or gave openly, is in nothing that the command prints."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import tablestore as ts
from tests.support.attacks.canary import CANARY, SECRETS
from tests.support.commandline import Ran


def test_what_another_engine_stored_is_shown_without_secrets(run: Callable[..., Ran], catalog: ts.Catalog) -> None:
    catalog.create_database("shop", ignore_if_exists=True)
    table = catalog.create_table("shop.t", {"id": "int"})
    schema = Path(table.location) / "schema" / "schema-0"
    stored = {key: value for key, value in json.loads(schema.read_text()).items() if not key.startswith("tablestore.")}
    stored["options"] |= dict.fromkeys(SECRETS, CANARY)
    schema.write_text(json.dumps(stored))
    for command in (
        ["table", "describe", "shop.t"],
        ["table", "read", "shop.t$options"],
        ["table", "read", "shop.t$schemas"],
        *(["sql", "-e", f"{what} shop.t"] for what in ("SHOW CREATE TABLE", "DESCRIBE EXTENDED", "SHOW OPTIONS", "SELECT * FROM")),
    ):
        for more in ([], ["--json"]):
            done = run(*command, *more)
            assert CANARY not in done.out + done.err
            assert "***" in done.out or "sql" in command


def test_a_secret_given_openly_is_said_and_not_repeated(run: Callable[..., Ran], tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    database = ["-w", str(tmp_path), "--storage", "metastore=jdbc", "--storage", f"uri=postgresql://me:{CANARY}@127.0.0.1:1/db"]
    for more in ([], ["--json"], ["--debug"]):
        done = run("db", "list", *database, "--storage", f"jdbc.password={CANARY}", *more, code=1)
        assert CANARY not in done.out + done.err and "jdbc.password=env:NAME" in done.err
    assert "env:NAME" not in run("db", "list", *database, "--storage", "jdbc.password=env:NOT_THERE", code=1).err
