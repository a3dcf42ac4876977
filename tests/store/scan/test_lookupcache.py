"""What lookups decoded is found again, within its bounds, and never changes an answer."""

import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format.parquet.parquetfile import DataFileOptions
from tablestore.format.parquet.parquetread import ParquetFileReader
from tablestore.io.memory import MemoryFileStore
from tablestore.store.scan import lookupcache
from tablestore.store.scan.lookup import find_rows, sorted_keys
from tablestore.store.scan.lookupcache import CachedFile, LookupCache
from tablestore.store.scan.splitreader import SplitReader
from tablestore.table.table import Table
from tablestore.testing.lab import Lab

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("v", pa.string())])


def _rows(start, count=100):
    return pa.record_batch([pa.array(range(start, start + count)), [f"v{i}" for i in range(start, start + count)]], schema=SCHEMA)


def test_a_kept_row_group_comes_back_as_it_was_and_stays_readable_when_more_are_kept():
    cached = CachedFile()
    cached.put(3, _rows(0))
    first = cached.get(3)
    cached.put(7, _rows(500, 5000))
    assert cached.get(7).equals(_rows(500, 5000))
    assert first.equals(_rows(0)) and cached.get(3).equals(_rows(0))
    assert cached.get(4) is None
    cached.close()
    assert first.equals(_rows(0)), "what was handed out outlives the file"


def test_kept_row_groups_hold_no_open_files():
    cached = CachedFile()
    before = len(os.listdir("/dev/fd"))
    for number in range(20):
        cached.put(number, _rows(number))
    assert len(os.listdir("/dev/fd")) == before
    assert cached.get(13).equals(_rows(13))


def test_a_file_is_worth_keeping_from_its_second_lookup_on():
    cache = LookupCache(1 << 20)
    assert [cache.begin("a"), cache.begin("b"), cache.begin("a"), cache.begin("a")] == [False, False, True, True]
    assert cache.get("a", 0) is None


def test_a_file_that_comes_into_a_bucket_that_is_looked_up_again_and_again_is_kept_at_once():
    cache = LookupCache(4 * _rows(0, 1000).nbytes)
    assert [cache.begin("a", 1), cache.begin("b", 1), cache.begin("b", 1)] == [False, False, True]
    assert cache.begin("c", 1) and not cache.begin("d", 2)
    cache.put("c", 0, _rows(0, 1000))
    for name in "efgh":
        cache.put(name, 0, _rows(0, 1000))
    assert cache.get("c", 0) is None and not cache.begin("i", 1), "there is no room for all of them"
    assert cache.begin("b", 1) and cache.begin("j", 1)


def test_files_that_left_their_bucket_are_forgotten():
    cache = LookupCache(1 << 20)
    for name, bucket in (("a", 1), ("b", 1), ("b", 1), ("other", 2)):
        cache.begin(name, bucket)
        cache.put(name, 0, _rows(0))
    used = cache.used_bytes
    cache.keep_only(1, {"b", "c"})
    assert cache.get("a", 0) is None and cache.used_bytes < used
    assert cache.get("b", 0).equals(_rows(0)) and cache.get("other", 0).equals(_rows(0))
    assert cache.begin("c", 1), "the process goes on in this bucket"


def test_a_file_is_kept_for_each_choice_of_columns_until_it_leaves():
    cache = LookupCache(1 << 20)
    for columns in ("x", "y"):
        cache.begin(("a", columns), 1, "a")
        cache.put(("a", columns), 0, _rows(0))
    cache.keep_only(1, {"a"})
    assert all(cache.get(("a", columns), 0).equals(_rows(0)) for columns in ("x", "y"))
    cache.keep_only(1, {"b"})
    assert cache.used_bytes == 0


def test_the_least_recently_used_file_goes_when_the_budget_is_reached():
    cache = LookupCache(4 * _rows(0, 1000).nbytes)
    for name in ("a", "b", "c"):
        cache.put(name, 0, _rows(0, 1000))
    assert cache.get("a", 0) is not None
    cache.put("d", 0, _rows(0, 1000))
    kept = [name for name in "abcd" if cache.get(name, 0) is not None]
    assert "b" not in kept and {"a", "d"} <= set(kept)
    assert cache.used_bytes <= cache.budget_bytes + 4096
    cache.put("e", 0, _rows(0, 100_000))
    assert cache.get("e", 0) is None, "more than the budget is not kept"


def test_little_free_disk_bounds_what_is_kept(monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(lookupcache.shutil, "disk_usage", lambda _path: usage)
    cache = LookupCache(1 << 30)
    cache.put("a", 0, _rows(0, 1000))
    assert cache.get("a", 0) is None and cache.used_bytes == 0


def test_a_disk_that_fails_is_no_error_and_what_lay_there_is_forgotten(monkeypatch):
    cache = LookupCache(1 << 30)
    cache.put("a", 0, _rows(0))

    def fail(_self, _number, _rows):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(CachedFile, "put", fail)
    cache.put("a", 1, _rows(0))
    assert cache.get("a", 0) is None and cache.used_bytes == 0


def test_a_forked_process_begins_anew(monkeypatch):
    cache = LookupCache(1 << 30)
    cache.put("a", 0, _rows(0))
    pid = lookupcache.os.getpid()
    monkeypatch.setattr(lookupcache.os, "getpid", lambda: pid + 1)
    assert cache.get("a", 0) is None and cache.used_bytes == 0
    cache.put("b", 0, _rows(5000))
    assert cache.get("b", 0).equals(_rows(5000))


def test_handles_of_one_catalog_share_what_lookups_kept_and_others_begin_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(lookupcache, "LEAST_FILE_BYTES", 0)
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
    made = catalog.create_table("shop.t", schema, primary_key=["id"], options={"changelog-producer": "lookup"})
    made.upsert(pa.table({"id": range(1000), "v": ["a"] * 1000}, schema=schema))
    made.compact(full=True)
    for turn in range(3):
        catalog.table("shop.t").upsert([{"id": turn, "v": "b"}])
    kept = made.context.shared.once(LookupCache)
    assert kept.used_bytes > 0 and made.refresh().context.shared.once(LookupCache) is kept
    assert ts.open_table(made.location).context.shared.once(LookupCache).used_bytes == 0


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("seed", range(4))
def test_lookups_find_the_same_rows_with_and_without_a_cache(request, monkeypatch, seed):
    monkeypatch.setattr(lookupcache, "LEAST_FILE_BYTES", 0)
    rng = np.random.default_rng(seed)
    lab = Lab(MemoryFileStore(request.node.name))
    opened = lab.open()
    settings = replace(opened.context.settings, data_files=DataFileOptions(row_group_rows=50))
    table = Table(replace(opened.context, settings=settings), "small groups")
    for _ in range(3):
        table.upsert(lab.rows(*((int(i), f"v{i}") for i in rng.choice(2000, 400, replace=False))))
    context = table.context
    reader = SplitReader.of(context, (), None)
    entries = context.manifests.live(context.snapshots.latest())
    cache = LookupCache(1 << 30)
    decoded = []
    read = ParquetFileReader.read
    monkeypatch.setattr(ParquetFileReader, "read", lambda *args, **named: decoded.append(1) or read(*args, **named))

    def find(keys, kept):
        hits = find_rows(reader, entries[0].partition, 0, [e.file for e in entries], keys, columns, cache=kept)
        return [
            (h.file.file_name, position, key, tuple(row.values()))
            for h in hits
            for position, key, row in zip(h.positions.tolist(), h.keys.tolist(), h.rows.to_pylist(), strict=True)
        ]

    columns = ["v", "id"] if seed % 2 else ["v"]
    for turn in range(4):
        keys = sorted_keys(pa.table({"id": np.sort(rng.choice(2500, 900, replace=False))}), context.schema.key_fields)
        plain = find(keys, None)
        before = len(decoded)
        assert find(keys, cache) == plain and plain
        if turn == 3:
            assert len(decoded) - before <= 2, "nearly every row group was kept by then"
    assert cache.used_bytes > 0
