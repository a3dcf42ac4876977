"""Clients of the oracles: other implementations of the table format, each a process that answers JSON lines.

    java      the Java core of Paimon (java/PaimonOracle.java)
    pypaimon  pypaimon, pure Python or with its native code (pypaimon_oracle.py)

``setup_oracles.py`` fetches them. All take the same commands with a table named by its path,
``<warehouse>/<database>.db/<table>``; rows are in the encoding of ``canonical.py``:

    create     columns, primary_key, partition_by, options
    write      rows, kinds; one commit; user + identifier give it an identity; overwrite = partition
    read       snapshot or tag, equals = {column: value}, columns -> rows
    changes    from (exclusive), to (inclusive) -> (row kind, row) as a streaming reader delivers them
    system     name -> columns, rows of a system table (Java only)
    compact    partition, bucket, full (Java only)
    expire     retain = how many snapshots stay (Java only)
    orphans    older_than_millis: files that nothing names go (Java only)
    branch     name, tag or none; delete_tag: name (Java only); a branch is read and written as the table ``<table>$branch_<name>``
    alter      changes: {"action": "add" | "rename" | "drop" | "widen" | "set", …}
    names      database -> tables of the catalog of the warehouse; rename: to; drop
    catalog    call: "view" | "function" | "tag" | …: what a catalog of a service keeps (``java/CatalogCalls.java``)
    snapshots, files, info, tag

A command goes through the catalog of directories, or the one whose options ``through`` gives.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import setup_oracles
from canonical import Column, Row

Path_ = str | os.PathLike[str]
# In milliseconds: all files are older.
_EVER = 2**53


class OracleError(Exception):
    """The oracle refused a command. ``kind`` is the class name of its exception."""

    def __init__(self, oracle: str, command: str, kind: str, message: str) -> None:
        super().__init__(f"{oracle} refused {command!r}: {kind}: {message}")
        self.kind = kind
        self.message = message


class OracleDied(Exception):
    """The oracle's process ended, or did not answer in time (it is killed then)."""


class Oracle:
    """One process, started by the first command. Not for several threads."""

    name: str

    def __init__(self, command: Sequence[str], *, name: str, timeout_s: float = 60.0) -> None:
        self.name = name
        self.commits = 0
        self._command = list(command)
        self._timeout_s = timeout_s
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._log: IO[bytes] | None = None
        self._next_id = 0
        self._catalog: Mapping[str, str] = {}

    @contextmanager
    def through(self, catalog: Mapping[str, str]) -> Iterator[None]:
        """Commands go through the catalog with these options."""
        self._catalog = catalog
        try:
            yield
        finally:
            self._catalog = {}

    # ---- commands --------------------------------------------------------------------------------------------------

    def hello(self) -> dict[str, Any]:
        """Which implementation and version answers."""
        return self.call("hello")

    def create(
        self,
        path: Path_,
        columns: Sequence[Column],
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Creates a table."""
        self.call(
            "create",
            path,
            columns=list(columns),
            primary_key=list(primary_key),
            partition_by=list(partition_by),
            options=dict(options or {}),
        )

    def write(
        self,
        path: Path_,
        rows: Sequence[Row],
        *,
        kinds: Sequence[str] | None = None,
        user: str | None = None,
        identifier: int | None = None,
        overwrite: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> int:
        """One commit; the id of the latest snapshot afterwards."""
        return self.call(
            "write",
            path,
            rows=list(rows),
            kinds=None if kinds is None else list(kinds),
            user=user,
            identifier=identifier,
            overwrite=None if overwrite is None else dict(overwrite),
            options=dict(options or {}),
        )["snapshot"]

    def read(
        self,
        path: Path_,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        equals: Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        options: Mapping[str, str] | None = None,
        allow_fallback: bool = False,
    ) -> list[Row]:
        """The rows of a batch read, in any order."""
        return self.call(
            "read",
            path,
            snapshot=snapshot,
            tag=tag,
            equals=None if equals is None else dict(equals),
            columns=None if columns is None else list(columns),
            options=dict(options or {}),
            allow_fallback=allow_fallback,
        )["rows"]

    def system(self, path: Path_, name: str) -> dict[str, Any]:
        """A system table (Java only): its ``columns`` with name and SQL type, and its ``rows``."""
        return self.call("system", path, name=name)

    def changes(self, path: Path_, *, from_snapshot: int, to_snapshot: int) -> list[tuple[str, Row]]:
        """The changes of the snapshots after ``from_snapshot`` up to ``to_snapshot``, in order."""
        answer = self.call("changes", path, **{"from": from_snapshot, "to": to_snapshot})
        return [(kind, row) for kind, row in answer["changes"]]

    def compact(
        self,
        path: Path_,
        *,
        partition: Mapping[str, str] | None = None,
        bucket: int | None = None,
        full: bool = True,
        options: Mapping[str, str] | None = None,
    ) -> int:
        """Compacts; the id of the latest snapshot afterwards."""
        return self.call("compact", path, partition=dict(partition or {}), bucket=bucket, full=full, options=dict(options or {}))[
            "snapshot"
        ]

    def alter(self, path: Path_, *changes: Mapping[str, Any]) -> None:
        """Evolves the schema."""
        self.call("alter", path, changes=[dict(change) for change in changes])

    def expire(self, path: Path_, *, retain: int) -> int:
        """Expires all but the newest ``retain`` snapshots; how many went."""
        return self.call("expire", path, retain=retain)["expired"]

    def remove_orphans(self, path: Path_) -> int:
        """Removes every file that nothing names, however young; how many went."""
        return self.call("orphans", path, older_than_millis=_EVER)["removed"]

    def snapshots(self, path: Path_) -> list[dict[str, Any]]:
        """All snapshots, oldest first."""
        return self.call("snapshots", path)

    def files(self, path: Path_) -> list[dict[str, Any]]:
        """The live data files of the latest snapshot."""
        return self.call("files", path)

    def names(self, path: Path_) -> dict[str, list[str]]:
        """The tables by database, ascending, of the catalog in whose warehouse the table lies."""
        return {name: sorted(tables) for name, tables in sorted(self.call("names", path).items())}

    def rename(self, path: Path_, to: str) -> None:
        """Gives a table another name in its database."""
        self.call("rename", path, to=to)

    def drop(self, path: Path_) -> None:
        """Removes a table."""
        self.call("drop", path)

    def info(self, path: Path_) -> dict[str, Any]:
        """Schema, bucket mode and latest snapshot id."""
        return self.call("info", path)

    # ---- the process -----------------------------------------------------------------------------------------------

    def call(self, command: str, path: Path_ | None = None, **arguments: Any) -> Any:
        """Sends one command and waits for its answer. Raises OracleError or OracleDied."""
        process = self._started()
        self._next_id += 1
        request = {"id": self._next_id, "command": command, **arguments}
        if self._catalog:
            request["catalog"] = dict(self._catalog)
        if path is not None:
            request["path"] = os.fspath(path)
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = self._answers.get(timeout=self._timeout_s)
        except (OSError, queue.Empty) as error:
            self._kill()
            raise OracleDied(
                f"{self.name} gave no answer to {command!r} in {self._timeout_s:g} s; its last words:\n{self._last_words()}"
            ) from error
        if line is None:
            self._kill()
            raise OracleDied(f"{self.name} ended during {command!r}; its last words:\n{self._last_words()}")
        answer = json.loads(line)
        assert answer["id"] == self._next_id, f"{self.name} answered out of turn: {line[:200]}"
        if "error" in answer:
            raise OracleError(self.name, command, answer["error"], answer["message"])
        return answer["ok"]

    def close(self) -> None:
        """Ends the process, kindly at first."""
        if self._process is not None and self._process.poll() is None:
            try:
                self.call("shutdown")
                self._process.wait(timeout=10)
            except (OracleDied, OracleError, subprocess.TimeoutExpired):
                pass
        self._kill()
        if self._log is not None:
            self._log.close()
            self._log = None

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            if self._log is None:
                self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close())
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                encoding="utf-8",
            )
            threading.Thread(target=self._pump, args=(self._process, self._answers), daemon=True).start()
        return self._process

    @staticmethod
    def _pump(process: subprocess.Popen[str], answers: "queue.Queue[str | None]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            answers.put(line)
        answers.put(None)

    def _kill(self) -> None:
        # The next command starts a new process: one stuck command must not fail every later test.
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
        self._process = None
        self._answers = queue.Queue()

    def _last_words(self) -> str:
        if self._log is None:
            return ""
        self._log.seek(0)
        return self._log.read()[-3000:].decode(errors="replace")


class JavaOracle(Oracle):
    """The Java core of Paimon. ``home`` is what setup_oracles.ensure_java() returns."""

    def __init__(self, home: Path, *, timeout_s: float = 90.0) -> None:
        java = setup_oracles.java_command()
        super().__init__(
            [
                java,
                "-Xmx1g",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-Xshare:auto",
                "-Djava.awt.headless=true",
                "-Duser.timezone=UTC",
                "-cp",
                os.pathsep.join([str(home / "classes"), str(home / "lib" / "*")]),
                "PaimonOracle",
                tempfile.gettempdir(),
            ],
            name="java",
            timeout_s=timeout_s,
        )


class PypaimonOracle(Oracle):
    """pypaimon; ``native`` switches its Rust code on, and a silent fallback to Python is refused."""

    def __init__(self, python: Path, *, native: bool, timeout_s: float = 60.0) -> None:
        script = Path(__file__).with_name("pypaimon_oracle.py")
        super().__init__(
            [str(python), "-W", "ignore", str(script), "native" if native else "pure"],
            name="pypaimon-native" if native else "pypaimon-pure",
            timeout_s=timeout_s,
        )


if __name__ == "__main__":
    sys.exit("this module holds clients; run setup_oracles.py to fetch the oracles")
