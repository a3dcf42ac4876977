"""A small table to experiment on: several writers, each with handles and caches of its own, over one store.

lab = Lab(MemoryFileStore("x"))            # keyed: id BIGINT, v STRING; append: the same without a key
lab.open().upsert(lab.rows((1, "a")))      # another process, as it were
table, faults = lab.faulty()               # one whose calls a test can pause or fail
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tablestore.format.sealed import CHECKSUM_KEY
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore
from tablestore.store.context import open_context
from tablestore.store.schemas import TABLE_UUID_OPTION, Schemas
from tablestore.table.table import Table
from tablestore.testing.auditor import Auditor
from tablestore.testing.deterministic import ManualClock, SeededIds
from tablestore.testing.expirer import expire
from tablestore.testing.files import Faults, FaultyFileStore, FileCall
from tablestore.types.newschema import new_schema

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())])


class Lab:
    """One table over ``files``, created here, unless it ``is_there`` already."""

    def __init__(
        self,
        files: FileStore,
        *,
        keyed: bool = True,
        schema: pa.Schema = COLUMNS,
        primary_key: Sequence[str] = ("id",),
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        seed: int = 0,
        clock: ManualClock | None = None,
        is_there: bool = False,
    ) -> None:
        self.files, self.keyed, self.seed = files, keyed, seed
        self.primary_key = tuple(primary_key) if keyed else ()
        self.clock = clock or ManualClock()
        self._opened = 0
        self._made = new_schema(
            schema=schema,
            primary_key=self.primary_key,
            partition_by=partition_by,
            options=_with_one_snapshot_a_commit(options or {}),
            comment=None,
            time_millis=self.clock.now_ms(),
        )
        if not is_there:
            self.create()

    def create(self) -> None:
        """Create the table (again): a new identity each time."""
        made = replace(self._made, options={**self._made.options, TABLE_UUID_OPTION: self.new_ids().uuid()})
        assert Schemas(self.files).publish(made), "the table is there already"

    def drop(self) -> None:
        """Drop the table as a catalog does."""
        self.files.delete_directory("schema")
        for info in self.files.list(""):
            if info.is_dir:
                self.files.delete_directory(info.name)

    def new_ids(self) -> SeededIds:
        """Ids that no other writer of this lab draws."""
        self._opened += 1
        return SeededIds(self.seed * 1_000_003 + self._opened)

    def open(self, files: FileStore | None = None, *, ids: Ids | None = None, clock: ManualClock | None = None) -> Table:
        """A handle that shares nothing with the others but the files and the clock."""
        store = self.files if files is None else files
        return Table(open_context(store, clock=clock or self.clock, ids=ids or self.new_ids()), "lab")

    def faulty(self, *, clock: ManualClock | None = None) -> tuple[Table, Faults]:
        """A handle whose calls can be paused, failed and looked at."""
        faults = Faults()
        return self.open(FaultyFileStore(self.files, faults), clock=clock), faults

    def rows(self, *rows: tuple[Any, ...]) -> pa.Table:
        """Rows of the table's columns."""
        schema = self._made.arrow_schema
        names = schema.names
        return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema)

    def write(self, table: Table, *rows: tuple[Any, ...]) -> Any:
        """Upsert or append, whichever the table takes."""
        return table.upsert(self.rows(*rows)) if self.keyed else table.append(self.rows(*rows))

    def write_new(self, *rows: tuple[Any, ...]) -> Any:
        """As :meth:`write`, with a handle opened for it: another process, as it were."""
        return self.write(self.open(), *rows)

    def read(self, **options: Any) -> list[tuple[Any, ...]]:
        """All rows through the engine, sorted."""
        rows = self.open().scan(**options).to_arrow().to_pylist()
        return sorted((tuple(row.values()) for row in rows), key=repr)

    @property
    def auditor(self) -> Auditor:
        """The slow and simple reader."""
        return Auditor(self.files)

    def audited(self) -> list[tuple[Any, ...]]:
        """All rows as the auditor sees them, sorted; the table's invariants are checked on the way."""
        auditor = self.auditor
        auditor.check_metadata()
        if self.keyed:
            auditor.check_sequence_order(self.primary_key)
            found = list(auditor.rows_by_key(self.primary_key).values())
        else:
            found = auditor.rows()
        return sorted((tuple(row.values()) for row in found), key=repr)

    def check(self, expected: Sequence[tuple[Any, ...]]) -> None:
        """Engine and auditor both see exactly these rows."""
        wanted = sorted(expected, key=repr)
        assert self.audited() == wanted, f"the auditor sees {self.audited()}, expected {wanted}"
        assert self.read() == wanted, f"the engine sees {self.read()}, expected {wanted}"

    def expire(self, *, keep: int = 1, hint: bool = True) -> int:
        """Expire all but the newest snapshots, oldest first."""
        return expire(self.files, keep=keep, hint=hint)

    def make_foreign(self, snapshot_id: int, **changes: Any) -> None:
        """Rewrite a snapshot as an engine would that knows nothing of our properties and checks."""
        path = f"snapshot/snapshot-{snapshot_id}"
        content = json.loads(self.files.read(path))
        content.pop("properties", None)
        content["writerVersion"] = "another engine"
        self.files.overwrite(path, json.dumps({**content, **changes}).encode())

    def drop_properties(self, snapshot_id: int) -> None:
        """As :meth:`make_foreign`."""
        self.make_foreign(snapshot_id)
        assert CHECKSUM_KEY not in self.files.read(f"snapshot/snapshot-{snapshot_id}").decode()


def _with_one_snapshot_a_commit(options: Mapping[str, str]) -> dict[str, str]:
    """No compaction after commits, so that scenes can count snapshots; unless rows are seen, or changes told, only after one."""
    if any(key in options for key in ("changelog-producer", "deletion-vectors.enabled", "merge-engine")):
        return dict(options)
    return {"write-only": "true", **options}


def is_snapshot(call: FileCall) -> bool:
    """True if a call is about a snapshot file (not a hint, not the directory)."""
    return "snapshot/snapshot-" in call.path
