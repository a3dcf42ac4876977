"""Answers requests to one system in JSON lines, timed where the work is done.

``python worker.py MODULE DIRECTORY SETTINGS``: a module beside this one, the system's directory, its settings as JSON. A request is
``{"command": …, arguments}``; an answer ``{"ok": …}``, ``{"cannot": reason}`` or ``{"error": text}``. Timed answers have ``wall``
and ``cpu`` in seconds, and of rows their sums (``sums``). ``peak``: the most bytes of memory that this process has held.
"""

import gc
import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Beside this file, and not the folders above: other interpreters do not have this project.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import pyarrow as pa
from sums import sums
from system import Cannot, Conflict, System


class Worker:
    """Turns requests into calls."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._rows: dict[str, Any] = {}
        self._marks: dict[str, Any] = {}

    def do_hello(self) -> Any:
        return {"versions": {**self._system.versions(), "python": ".".join(map(str, sys.version_info[:3]))}, "peak": _peak()}

    def do_load(self, name: str, path: str) -> Any:
        self._rows[name] = self._system.load(path)
        return {}

    def do_forget(self) -> Any:
        self._rows.clear()
        return {}

    def do_create(self, table: str, rows: str, changes: bool) -> Any:
        self._system.create(table, self._rows[rows].schema, changes=changes)
        return {}

    def do_append(self, table: str, rows: str) -> Any:
        return self._timed(lambda: self._system.append(table, self._rows[rows]))

    def do_upsert(self, table: str, rows: str) -> Any:
        return self._timed(lambda: self._system.upsert(table, self._rows[rows]))

    def do_update(self, table: str) -> Any:
        return self._timed(lambda: self._system.update(table))

    def do_delete(self, table: str) -> Any:
        return self._timed(lambda: self._system.delete(table))

    def do_compact(self, table: str) -> Any:
        return self._timed(lambda: self._system.compact(table))

    def do_read(self, table: str, columns: list[str]) -> Any:
        return self._timed(lambda: self._system.read(table, columns))

    def do_lookup(self, table: str, keys: list[int]) -> Any:
        return self._timed(lambda: self._system.lookup(table, keys))

    def do_mark(self, table: str) -> Any:
        self._marks[table] = self._system.mark(table)
        return {}

    def do_changes(self, table: str) -> Any:
        return self._timed(lambda: self._system.changes(table, self._marks[table]))

    def do_size(self, table: str) -> Any:
        files = [path for path in Path(self._system.location(table)).rglob("*") if path.is_file()]
        return {"bytes": sum(path.stat().st_size for path in files), "files": len(files)}

    def do_commits(self, table: str, rows: str, begin: float, seconds: float) -> Any:
        """Appends ten rows again and again from ``begin`` (Unix seconds) on: the commits, and how many of them lost a race."""
        wanted = self._rows[rows]
        size, landed, lost = 10, 0, 0
        time.sleep(max(begin - time.time(), 0.0))
        end = begin + seconds
        while time.time() < end and (landed + 1) * size <= wanted.num_rows:
            try:
                self._system.append(table, wanted.slice(landed * size, size))
                landed += 1
            except Conflict:
                lost += 1
        return {"commits": landed, "conflicts": lost, "seconds": max(time.time() - begin, seconds)}

    def _timed(self, run: Callable[[], Any]) -> Any:
        gc.collect()
        wall, cpu = time.perf_counter(), self._system.cpu_seconds()
        result = run()
        taken = {"wall": time.perf_counter() - wall, "cpu": self._system.cpu_seconds() - cpu, "peak": _peak()}
        if isinstance(result, pa.Table):
            return {**taken, "sums": sums(result)}
        return taken if result is None else {**taken, "sums": result}


def _peak() -> int:
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def main(module: str, directory: str, settings: str) -> None:
    """Answers until the end of standard input."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # Whatever a library prints must not be taken for an answer.
    worker: Worker | None = None
    for line in sys.stdin:
        request = json.loads(line)
        command = request.pop("command")
        try:
            if worker is None:
                worker = Worker(importlib.import_module(module).open_system(directory, json.loads(settings)))
            answer = {"ok": getattr(worker, "do_" + command)(**request)}
        except Cannot as error:
            answer = {"cannot": str(error)}
        except Exception:
            answer = {"error": traceback.format_exc(limit=-4)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    if worker is not None:
        worker._system.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
