"""Works out what a table holds, the slow and simple way.

The auditor shares no code with the engine's reader: JSON, fastavro and pyarrow straight on the files, lists and dicts, one row
at a time. It finds files by walking the directory, replays the deltas of the snapshots in id order, and lets the later row
of a key win because it comes later, not because of any number that is stored.

    snapshot-1 base, delta -> snapshot-2 delta -> ...      ADD: the file's rows count from here on, DELETE: they no longer do
"""

import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow.parquet as pq
from pyroaring import BitMap

from tablestore.io.filestore import FileStore

Row = dict[str, Any]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class AuditedFile:
    """A live data file: where it lies, and the snapshot that added it (0: before the earliest retained one)."""

    snapshot_id: int
    path: str
    bucket: tuple[bytes, int]
    record: dict[str, Any]


class Auditor:
    """Reads the table in ``files`` (rooted at its directory) as it is now."""

    def __init__(self, files: FileStore) -> None:
        self._files = files
        self._paths: dict[str, str] = {}

    def ids(self) -> list[int]:
        """The ids of the history that is retained, ascending: from EARLIEST on, nothing below a gap."""
        names = {info.name for info in self._files.list("snapshot")}
        found = sorted(int(name.removeprefix("snapshot-")) for name in names if name.startswith("snapshot-"))
        tail = [i for i in found if found[-1] - i == sum(other > i for other in found)]
        earliest = int(self._files.read("snapshot/EARLIEST")) if "EARLIEST" in names else 0
        return [i for i in tail if i >= earliest]

    def snapshot(self, snapshot_id: int) -> dict[str, Any]:
        """The parsed JSON of one snapshot."""
        parsed: dict[str, Any] = json.loads(self._files.read(f"snapshot/snapshot-{snapshot_id}"))
        return parsed

    def snapshots(self) -> list[dict[str, Any]]:
        """All snapshots, oldest first."""
        return [self.snapshot(snapshot_id) for snapshot_id in self.ids()]

    def entries(self, manifest_list: str) -> list[dict[str, Any]]:
        """The manifest entries that a manifest list leads to, in order."""
        names = [record["_FILE_NAME"] for record in self.records(manifest_list)]
        return [entry for name in names for entry in self.records(name)]

    def live_files(self, upto: int | None = None) -> list[AuditedFile]:
        """The live files of a snapshot (None: the newest), those added first in front."""
        ids = [i for i in self.ids() if upto is None or i <= upto]
        live: dict[tuple[Any, ...], AuditedFile] = {}
        for position, snapshot_id in enumerate(ids):
            snapshot = self.snapshot(snapshot_id)
            if position == 0:
                self._replay(live, self.entries(snapshot["baseManifestList"]), 0)
            self._replay(live, self.entries(snapshot["deltaManifestList"]), snapshot_id)
        return list(live.values())

    def rows(self, upto: int | None = None) -> list[Row]:
        """The rows of an append table, in the order of their commits, without those that deletion vectors name."""
        deleted = self.deleted_positions(upto)
        found = []
        for file in self.live_files(upto):
            gone = deleted.get(file.record["_FILE_NAME"], set())
            assert all(position < file.record["_ROW_COUNT"] for position in gone), f"{file.path} has fewer rows than its vector"
            found += [row for position, row in enumerate(self._rows(file)) if position not in gone]
        return found

    def index_entries(self, upto: int | None = None) -> list[dict[str, Any]]:
        """The index files of a snapshot (None: the newest)."""
        ids = [i for i in self.ids() if upto is None or i <= upto]
        name = self.snapshot(ids[-1]).get("indexManifest") if ids else None
        return self.records(name) if name else []

    def deleted_positions(self, upto: int | None = None) -> dict[str, set[int]]:
        """The rows that deletion vectors name, by data file; one index file a bucket."""
        found: dict[str, set[int]] = {}
        buckets: set[tuple[bytes, int]] = set()
        for entry in self.index_entries(upto):
            if entry["_INDEX_TYPE"] != "DELETION_VECTORS":
                continue
            assert (entry["_PARTITION"], entry["_BUCKET"]) not in buckets, "a bucket has two index files of deletion vectors"
            buckets.add((entry["_PARTITION"], entry["_BUCKET"]))
            data = self._files.read(f"index/{entry['_FILE_NAME']}")
            assert len(data) == entry["_FILE_SIZE"]
            for vector in entry["_DELETIONS_VECTORS_RANGES"]:
                payload = data[vector["f1"] + 4 : vector["f1"] + 4 + vector["f2"]]
                assert vector["f0"] not in found, f"{vector['f0']} has two vectors"
                found[vector["f0"]] = set(BitMap.deserialize(payload[4:]))
        return found

    def rows_by_key(self, key: tuple[str, ...], upto: int | None = None) -> dict[Key, Row]:
        """The rows of a keyed table; of one key the row that was committed last, without those that deletion vectors name."""
        deleted = self.deleted_positions(upto)
        table: dict[Key, Row] = {}
        for file in by_age(self.live_files(upto)):
            gone = deleted.get(file.record["_FILE_NAME"], set())
            for position, row in enumerate(self._rows(file)):
                if position in gone:
                    continue
                identity = tuple(row[name] for name in key)
                table.pop(identity, None)
                if row["_VALUE_KIND"] in (0, 2):
                    table[identity] = {name: value for name, value in row.items() if not name.startswith("_")}
        return table

    def check_metadata(self) -> None:
        """Check what holds for every table: gapless ids, ascending times, distinct commits, counts that add up, no file missing."""
        ids = self.ids()
        assert ids == list(range(ids[0], ids[-1] + 1)) if ids else True, f"snapshot ids have gaps: {ids}"
        snapshots = self.snapshots()
        uuids = [snapshot["uuid"] for snapshot in snapshots]
        assert len(set(uuids)) == len(uuids), "a commit landed twice"
        times = [snapshot["timeMillis"] for snapshot in snapshots]
        assert times == sorted(set(times)), f"commit times do not ascend with the ids: {times}"
        for snapshot in snapshots:
            live = self.live_files(snapshot["id"])
            both: dict[tuple[Any, ...], AuditedFile] = {}
            self._replay(both, self.entries(snapshot["baseManifestList"]), 0)
            self._replay(both, self.entries(snapshot["deltaManifestList"]), 0)
            assert {file.path for file in both.values()} == {file.path for file in live}, f"base of {snapshot['id']} forgot files"
            count = sum(file.record["_ROW_COUNT"] for file in live)
            assert snapshot["totalRecordCount"] == count, f"snapshot {snapshot['id']} counts {snapshot['totalRecordCount']} rows"
            for file in live:
                assert self._files.size(file.path) == file.record["_FILE_SIZE"]

    def check_sequence_order(self, key: tuple[str, ...]) -> None:
        """In every bucket, a file whose rows came later has higher numbers than any live file before it that it meets."""
        by_bucket: dict[tuple[bytes, int], list[AuditedFile]] = {}
        for file in by_age(self.live_files()):
            by_bucket.setdefault(file.bucket, []).append(file)
        for files in by_bucket.values():
            bounds = [_key_range(list(self._rows(file)), key) for file in files]
            for position, file in enumerate(files):
                for earlier in range(position):
                    if bounds[earlier][0] > bounds[position][1] or bounds[position][0] > bounds[earlier][1]:
                        continue
                    high, low = files[earlier].record["_MAX_SEQUENCE_NUMBER"], file.record["_MIN_SEQUENCE_NUMBER"]
                    assert high < low, f"{file.path} has number {low}, {files[earlier].path} before it has {high}"

    def check_dynamic_buckets(self, key: tuple[str, ...]) -> None:
        """Every key lies in one bucket, and every bucket has one hash index file whose hashes no other has."""
        bucket_of: dict[Key, tuple[bytes, int]] = {}
        for file in self.live_files():
            for row in self._rows(file):
                identity = tuple(row[name] for name in key)
                assert bucket_of.setdefault(identity, file.bucket) == file.bucket, f"key {identity} lies in two buckets"
        indexes = [entry for entry in self.index_entries() if entry["_INDEX_TYPE"] == "HASH"]
        places = [(entry["_PARTITION"], entry["_BUCKET"]) for entry in indexes]
        assert len(set(places)) == len(places), "a bucket has two hash index files"
        assert set(bucket_of.values()) <= set(places), "a bucket has no hash index file"
        seen: dict[bytes, set[bytes]] = {}
        for entry in indexes:
            data = self._files.read(f"index/{entry['_FILE_NAME']}")
            hashes = {data[start : start + 4] for start in range(0, len(data), 4)}
            assert len(hashes) * 4 == len(data) == entry["_ROW_COUNT"] * 4
            known = seen.setdefault(entry["_PARTITION"], set())
            assert not hashes & known, "a hash lies in two buckets"
            known |= hashes

    def metadata(self, ids: Iterable[int]) -> set[str]:
        """The paths of the manifest lists, manifests, index manifests and index files that these snapshots need."""
        snapshots = [self.snapshot(i) for i in ids]
        lists = {snapshot[key] for snapshot in snapshots for key in ("baseManifestList", "deltaManifestList")}
        names = lists | {record["_FILE_NAME"] for name in lists for record in self.records(name)}
        indexes = {snapshot["indexManifest"] for snapshot in snapshots if snapshot.get("indexManifest")}
        files = {f"index/{record['_FILE_NAME']}" for name in indexes for record in self.records(name)}
        return {f"manifest/{name}" for name in names | indexes} | files

    def referenced(self) -> set[str]:
        """The paths of all metadata and data files that a snapshot needs."""
        entries = [e for s in self.snapshots() for key in ("baseManifestList", "deltaManifestList") for e in self.entries(s[key])]
        return self.metadata(self.ids()) | {self.path_of(entry["_FILE"]["_FILE_NAME"]) for entry in entries}

    def orphans(self) -> set[str]:
        """Data files, index files, manifests and lists that no retained snapshot needs."""
        kept = self.referenced()
        prefixes = ("manifest/", "index/", "bucket-")
        return {path for path in walk(self._files) if path.startswith(prefixes) or "/bucket-" in path} - kept

    def path_of(self, file_name: str) -> str:
        """The path of a data file; the bare name if it is gone."""
        if file_name not in self._paths:
            self._paths = {path.rpartition("/")[2]: path for path in walk(self._files)}
        return self._paths.get(file_name, file_name)

    def _replay(self, live: dict[tuple[Any, ...], AuditedFile], entries: list[dict[str, Any]], snapshot_id: int) -> None:
        for entry in entries:
            file = entry["_FILE"]
            identity = (entry["_PARTITION"], entry["_BUCKET"], file["_LEVEL"], file["_FILE_NAME"])
            if entry["_KIND"] == 1:
                assert live.pop(identity, None) is not None, f"snapshot {snapshot_id} deletes {identity}, which is not live"
                continue
            assert identity not in live, f"snapshot {snapshot_id} adds {identity} a second time"
            live[identity] = AuditedFile(
                snapshot_id, self.path_of(file["_FILE_NAME"]), (entry["_PARTITION"], entry["_BUCKET"]), file
            )

    def records(self, name: str) -> list[dict[str, Any]]:
        """The records of one file in the manifest directory."""
        data = self._files.read(f"manifest/{name}")
        return [dict(record) for record in fastavro.reader(io.BytesIO(data)) if isinstance(record, dict)]

    def _rows(self, file: AuditedFile) -> Iterator[Row]:
        yield from pq.ParquetFile(io.BytesIO(self._files.read(file.path))).read(use_threads=False).to_pylist()


def by_age(files: Iterable[AuditedFile]) -> list[AuditedFile]:
    """Files with the oldest rows first: the higher its level, the older a file; in level 0 by the order of commits."""
    return sorted(files, key=lambda file: -int(file.record["_LEVEL"]))


def _key_range(rows: list[Row], key: tuple[str, ...]) -> tuple[Key, Key]:
    keys = [tuple(row[name] for name in key) for row in rows]
    return min(keys), max(keys)


def walk(files: FileStore, directory: str = "") -> Iterator[str]:
    """The paths of all files below a directory."""
    for info in files.list(directory):
        path = f"{directory}/{info.name}" if directory else info.name
        if info.is_dir:
            yield from walk(files, path)
        else:
            yield path
