"""Schema files that a stranger has changed, and what reading them does to the machine."""

import json
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tablestore as ts
from tablestore.format.sealed import CHECKSUM_KEY, object_checksum
from tests.support.sql.hostile import computed, expressions, texts

SETUP = """
CREATE TABLE s (id BIGINT, v INT, twice AS id * 2, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);
INSERT INTO s VALUES (1, 2, TIMESTAMP '2026-01-01 00:00:00');
CREATE MATERIALIZED TABLE t COMMENT 'c' WITH ('bucket' = '-1') REFRESH_MODE = FULL AS SELECT id, v FROM s;
ALTER MATERIALIZED TABLE t REFRESH;
"""
STATEMENTS = (
    "SELECT * FROM s",
    "SELECT id, v FROM s WHERE id = 1",
    "EXPLAIN SELECT * FROM s",
    "DESCRIBE EXTENDED s",
    "SHOW CREATE TABLE s",
    "INSERT INTO s (id, v) VALUES (2, 3)",
    "ALTER MATERIALIZED TABLE t REFRESH VERIFY",
    "SELECT * FROM t",
    "DESCRIBE EXTENDED t",
    "SHOW CREATE MATERIALIZED TABLE t",
    "SHOW MATERIALIZED TABLES",
    "SHOW TABLES",
)
_QUERY = "materialized-table.definition-query"
_ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1 << 63,
    10**40,
    1.5,
    "",
    "x",
    "\x00",
    "a" * 5_000,
    "../../x",
    "/etc/passwd",
    [],
    {},
    [[]],
    {"a": {}},
    "INT",
    "ROW<",
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_ACTING = (
    "socket.connect",
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "shutil.rmtree",
    "os.remove",
    "os.rename",
)


class Watch:
    """What this process does outside of a folder, while it is watched."""

    def __init__(self) -> None:
        self._inside: Path | None = None
        self.seen: list[str] = []
        # A hook cannot be taken back: it is there once, and looks away where nothing is watched.
        sys.addaudithook(self._hook)

    @contextmanager
    def outside(self, folder: Path) -> Iterator[list[str]]:
        self._inside, self.seen = folder, []
        try:
            yield self.seen
        finally:
            self._inside = None

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._inside is None:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, (str, bytes)) and (int(flags or 0) & _WRITING or "secret" in os.fsdecode(path)):
                self._note(event, os.fsdecode(path))
        elif event in _ACTING:
            self._note(event, str(arguments[0]) if event.startswith(("shutil", "os.re")) else str(arguments))

    def _note(self, event: str, what: str) -> None:
        if not (Path(what).is_absolute() and Path(what).is_relative_to(str(self._inside))):
            self.seen.append(f"{event} {what}")


def mutated(schema: bytes, chance: random.Random, folder: str) -> bytes:
    """A schema file with damage, or with what a stranger wrote into it."""
    if chance.random() < 0.2:
        return _damaged(schema, chance)
    content = json.loads(schema)
    options = content["options"]
    for _ in range(chance.randint(1, 3)):
        match chance.randrange(6):
            case 0:
                options |= computed(
                    chance.choice(("bad", "twice", "id", "a`b")), chance.randint(0, 9), chance.choice(expressions(folder))
                )
            case 1:
                options[chance.choice((_QUERY, "tablestore.materialized-table.original-query"))] = chance.choice(texts(folder))
            case 2:
                options["schema.watermark.0.strategy.expr"] = chance.choice(expressions(folder))
            case 3 if options:
                options[chance.choice(sorted(options))] = chance.choice([one for one in _ODD if isinstance(one, str)])
            case _:
                _replace(content, chance)
    content.pop(CHECKSUM_KEY, None)
    content[CHECKSUM_KEY] = object_checksum(content)
    return json.dumps(content).encode()


def _replace(content: dict[str, Any], chance: random.Random) -> None:
    """Put something odd in the place of one value, or take it away."""
    holder: Any = content
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            return
        key = chance.choice(keys)
        if isinstance(holder[key], (dict, list)) and chance.random() < 0.8:
            holder = holder[key]
        elif chance.random() < 0.2:
            del holder[key]
            return
        else:
            holder[key] = chance.choice(_ODD)
            return


def _damaged(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    match chance.randrange(3):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        case _:
            return data[:at] + chance.choice((b"\xff", b"{", b"[" * 10_000, b'"', b"1e999", b"\x00")) + data[at:]


def run_mutated(folder: Path, count: int, seed: int, watch: Watch, **options: Any) -> int:
    """Read tables under ``count`` changed schemas; how many statements gave an error of ours. Any other error rises."""
    chance, refused = random.Random(seed), 0
    (folder / "secret.csv").write_text("v\nsesame\n")
    warehouse = folder / "wh"
    with ts.TableEnvironment.create(warehouse, **options) as env:
        env.execute_script(SETUP)
    files = [max((warehouse / "default.db" / name / "schema").glob("schema-*"), key=lambda path: path.name) for name in "st"]
    kept = {path: path.read_bytes() for path in warehouse.rglob("*") if path.is_file()}
    for number in range(count):
        for file in chance.sample(files, chance.randint(1, 2)):
            file.write_bytes(mutated(kept[file], chance, str(folder)))
        with ts.TableEnvironment.create(warehouse, **options) as env, watch.outside(warehouse) as seen:
            for statement in STATEMENTS:
                try:
                    result = env.execute_sql(statement)
                    shown = str(result.text) if statement.startswith("SHOW CREATE") else str(result.to_arrow().to_pylist())
                except ts.TablestoreError:
                    refused, shown = refused + 1, ""
                except Exception as error:
                    raise AssertionError(f"seed {seed}, schema {number}, {statement}: {error!r}") from error
                assert "sesame" not in shown, (seed, number, statement)
        assert not seen, (seed, number, seen)
        assert sorted(path.name for path in folder.iterdir()) == ["secret.csv", "wh"], (seed, number)
        _restore(warehouse, kept)
    return refused


def _restore(warehouse: Path, kept: dict[Path, bytes]) -> None:
    for path in warehouse.rglob("*"):
        if path.is_file() and path not in kept:
            path.unlink()
    for path, data in kept.items():
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
