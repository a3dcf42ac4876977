"""pypaimon behind JSON lines, timed where it runs. Started by ``peers.py`` with pypaimon's own interpreter.

``python peer_worker.py pure|native``. In native mode a silent fallback to pypaimon's Python code is an error, so that a number of
the native code never is one of the other.

    load   name, path                     read rows into memory (Arrow IPC)
    create path, name, primary_key, …     an empty table with the columns of the rows
    write  path, name                     one commit of the rows            -> wall, cpu (seconds)
    plan   path, question                 a plan: all, day=<ISO date>, id=<number> -> wall, cpu, files
    read   path                           all rows as one Arrow table       -> wall, cpu, rows, sum (see digest.py)
"""

import gc
import json
import os
import sys
import time
import traceback
from datetime import date
from importlib.metadata import version
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import pyarrow as pa
from digest import digest
from pypaimon import CatalogFactory, Schema
from pypaimon.common.identifier import Identifier
from pypaimon.read import table_read
from pypaimon.write.native_write import NativeTableWrite

NATIVE_OPTIONS = {"read.native.enabled": "true", "write.native.enabled": "true"}


class Worker:
    """Answers requests."""

    def __init__(self, *, native: bool) -> None:
        self._native = native
        self._rows: dict[str, pa.Table] = {}
        self._fallbacks: list[str] = []
        original = table_read.TableRead._native_fallback

        def note_fallback(read: Any, reason: str, *args: Any, **kwargs: Any) -> Any:
            self._fallbacks.append(reason)
            return original(read, reason, *args, **kwargs)

        table_read.TableRead._native_fallback = note_fallback

    def do_hello(self, request: dict[str, Any]) -> Any:
        return {"pypaimon": version("pypaimon"), "pypaimon-rust": version("pypaimon-rust"), "pyarrow": pa.__version__}

    def do_load(self, request: dict[str, Any]) -> Any:
        with pa.OSFile(request["path"], "rb") as source:
            self._rows[request["name"]] = pa.ipc.open_file(source).read_all()
        return {}

    def do_forget(self, request: dict[str, Any]) -> Any:
        self._rows.clear()
        return {}

    def do_create(self, request: dict[str, Any]) -> Any:
        schema = Schema.from_pyarrow_schema(
            self._rows[request["name"]].schema, primary_keys=request["primary_key"], options=request["options"]
        )
        catalog, identifier = _catalog(request["path"])
        catalog.create_database(identifier.get_database_name(), True)
        catalog.create_table(identifier, schema, False)
        return {}

    def do_write(self, request: dict[str, Any]) -> Any:
        rows = self._rows[request["name"]]
        catalog, identifier = _catalog(request["path"])
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        table = catalog.get_table(identifier).copy(NATIVE_OPTIONS if self._native else {})
        builder = table.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        if self._native and not isinstance(write, NativeTableWrite):
            raise RuntimeError("the native writer does not take this table")
        write.write_arrow(rows)
        commit.commit(write.prepare_commit())
        seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        if self._native and getattr(write, "_python_writer", None) is not None:
            raise RuntimeError("the native writer handed over to the Python writer")
        write.close()
        commit.close()
        return seconds

    def do_plan(self, request: dict[str, Any]) -> Any:
        catalog, identifier = _catalog(request["path"])
        name, _, value = request["question"].partition("=")
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        table = catalog.get_table(identifier).copy(NATIVE_OPTIONS if self._native else {})
        builder = table.new_read_builder()
        if value:
            wanted = date.fromisoformat(value) if name == "day" else int(value)
            builder = builder.with_filter(builder.new_predicate_builder().equal(name, wanted))
        splits = builder.new_scan().plan().splits()
        seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        return {**seconds, "files": sum(len(split.files) for split in splits)}

    def do_read(self, request: dict[str, Any]) -> Any:
        self._fallbacks.clear()
        catalog, identifier = _catalog(request["path"])
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        table = catalog.get_table(identifier).copy(NATIVE_OPTIONS if self._native else {})
        builder = table.new_read_builder()
        rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        if self._native and self._fallbacks:
            raise RuntimeError(f"the native reader fell back: {'; '.join(self._fallbacks)}")
        count, total = digest(rows, "id")
        return {**seconds, "rows": count, "sum": total}


def _catalog(path: str) -> tuple[Any, Identifier]:
    database, table = os.path.split(path)
    warehouse, folder = os.path.split(database)
    return CatalogFactory.create({"warehouse": warehouse}), Identifier.create(folder.removesuffix(".db"), table)


def main() -> None:
    """Answers until the end of stdin."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # Whatever a library prints must not be taken for an answer.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    worker = Worker(native=sys.argv[1] == "native")
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": getattr(worker, "do_" + request["command"])(request)}
        except Exception:
            answer = {"error": traceback.format_exc(limit=-6)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
