"""Holds a file store to what it promises: tests to subclass.

    class TestMine(FileStoreContract, PublishContract):
        @pytest.fixture
        def store(self, tmp_path):
            return MyFileStore(tmp_path / "root")

``store`` is empty for every test. Leave :class:`PublishContract` out where ``can_publish`` is false. A test that a store cannot
keep is taken out by name: ``test_x = None``.
"""

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore.clock import SystemClock
from tablestore.errors import AlreadyExistsError, FormatError, InvalidInputError, NotFoundError, StorageError, TablestoreError
from tablestore.ids import SystemIds
from tablestore.io.filestore import ExchangesDirectories, FileStore, RenamesDirectories, copy_file
from tablestore.store.history.storeclock import check_clock
from tablestore.testing.deterministic import ManualClock

HOSTILE_PATHS = [
    "",
    "/",
    "//",
    "/etc/passwd",
    "//etc/passwd",
    ".",
    "..",
    "../outside",
    "../../outside",
    "a/../outside",
    "a/../../outside",
    "a/..",
    "./a",
    "a/./b",
    "a/.",
    "a//b",
    "a/",
    "a/b/",
    "a\\b",
    "..\\outside",
    "C:\\outside",
    "a\0b",
    "\0",
    "a\nb",
    "a\rb",
    "a\tb",
    "a\x1bb",
    "a\x7fb",
    "a\x85b",
    "x" * 256,
    "a/" + "x" * 256 + "/b",
    "é" * 128,
    "lone-\ud800-surrogate",
]

NAMES_THAT_ARE_FINE = [
    "data-1.parquet",
    "day=2024-01-01/bucket-0/data-1.parquet",
    "*",
    "a?b",
    "[ab]",
    "{a,b}",
    "a b",
    "%2e%2e",
    "...",
    "..a",
    "a..",
    "~",
    "$HOME",
    "a#b",
    "a::b",
    "a:b",
    "Größe=größer/日本",
    "x" * 255,
    ".hidden",
    "a?versionId=b",
]


class FileStoreContract:
    """The promises of every store, whether it can publish or not."""

    entries = 35
    """Of the directory that takes more than one page to list."""

    @pytest.fixture
    def store(self) -> FileStore:
        """An empty store."""
        raise NotImplementedError("override the fixture `store`")

    # ---- reading and writing

    def test_what_was_written_is_read_back(self, store: FileStore) -> None:
        store.write("a/b/file", b"some bytes")
        assert store.read("a/b/file") == b"some bytes"
        assert store.size("a/b/file") == 10
        assert store.exists("a/b/file")

    def test_an_empty_file_is_a_file(self, store: FileStore) -> None:
        store.write("empty", b"")
        with store.open_output("empty-too"):
            pass
        for path in ("empty", "empty-too"):
            assert store.exists(path)
            assert store.size(path) == 0
            assert store.read(path) == b""

    def test_a_missing_file_is_gone(self, store: FileStore) -> None:
        store.write("present/file", b"x")
        for path in ("missing", "present/missing", "missing/missing", "present"):
            assert not store.exists(path)
            for verb in (store.read, store.size, store.open_input):
                with pytest.raises(NotFoundError, match=path):
                    verb(path)

    def test_a_file_over_the_limit_is_not_read(self, store: FileStore) -> None:
        store.write("large", b"x" * 101)
        assert store.read("large", max_bytes=101) == b"x" * 101
        with pytest.raises(FormatError, match="101") as refused:
            store.read("large", max_bytes=100)
        assert refused.value.kind == "too-large"

    def test_write_refuses_a_name_that_is_taken_and_keeps_the_content(self, store: FileStore) -> None:
        store.write("d/file", b"first")
        with pytest.raises(AlreadyExistsError, match="d/file"):
            store.write("d/file", b"second")
        assert store.read("d/file") == b"first"
        assert names(store, "d") == ["file"]

    def test_overwrite_makes_and_replaces(self, store: FileStore) -> None:
        store.overwrite("hint/LATEST", b"1")
        store.overwrite("hint/LATEST", b"22")
        assert store.read("hint/LATEST") == b"22"
        assert names(store, "hint") == ["LATEST"]

    @pytest.mark.parametrize("path", NAMES_THAT_ARE_FINE)
    def test_unusual_names_are_plain_names(self, store: FileStore, path: str) -> None:
        store.write(path, b"mine")
        store.write(f"beside/{path}", b"other")
        assert store.read(path) == b"mine"
        assert all_files(store) == {path, f"beside/{path}"}
        assert store.delete(path)
        assert all_files(store) == {f"beside/{path}"}

    def test_a_copy_is_a_file_of_its_own(self, store: FileStore) -> None:
        store.write("a/file", b"some bytes")
        copy_file(store, "a/file", "b/c/file")
        store.delete("a/file")
        assert store.read("b/c/file") == b"some bytes" and store.names("a") == []
        with pytest.raises(NotFoundError):
            copy_file(store, "a/file", "b/other")
        assert store.names("b") == ["c"]

    def test_directories_change_names_and_places_in_one_step_where_the_store_can(self, store: FileStore) -> None:
        store.write("a/x/file", b"first")
        store.write("b/file", b"second")
        if isinstance(store, ExchangesDirectories):
            store.exchange_directories("a", "b")
            assert store.read("a/file") == b"second" and store.read("b/x/file") == b"first" and store.names("a") == ["file"]
            with pytest.raises(NotFoundError):
                store.exchange_directories("a", "nothing")
            store.exchange_directories("b", "a")
        if isinstance(store, RenamesDirectories):
            with pytest.raises(AlreadyExistsError):
                store.rename_directory("a", "b")
            with pytest.raises(NotFoundError):
                store.rename_directory("nothing", "c/d")
            store.rename_directory("a", "c/d")
            assert store.read("c/d/x/file") == b"first" and "a" not in [info.name for info in store.list("")]

    def test_at_is_the_same_store_rooted_deeper(self, store: FileStore) -> None:
        deeper = store.at("db/table")
        deeper.write("snapshot/one", b"x")
        assert store.read("db/table/snapshot/one") == b"x"
        assert deeper.at("snapshot").read("one") == b"x"
        assert deeper.root_uri == f"{store.root_uri}/db/table"
        assert names(deeper) == ["snapshot"]

    def test_several_files_are_written_at_once(self, store: FileStore) -> None:
        files = {f"d/{number}": b"%d" % number for number in range(20)}
        store.write_all(files)
        assert {path: store.read(path) for path in files} == files
        store.write_all({})
        with pytest.raises(AlreadyExistsError):
            store.write_all({"d/new": b"", "d/7": b"other"})
        assert store.read("d/7") == b"7"

    # ---- listing

    def test_a_missing_directory_lists_as_empty(self, store: FileStore) -> None:
        assert list(store.list("")) == []
        assert list(store.list("nowhere/at/all")) == []
        store.write("file", b"x")
        assert list(store.list("file")) == []
        assert list(store.names("")) == ["file"]
        assert list(store.names("nowhere/at/all")) == list(store.names("file")) == []

    def test_a_listing_is_sorted_fresh_and_one_level_deep(self, store: FileStore) -> None:
        assert names(store, "d") == []
        for name in ("b", "a", "sub/deep/file", "B", "a-1", "a0"):
            store.write(f"d/{name}", name.encode())
        store.write("d-sibling/file", b"")
        listed = store.list("d")
        assert [info.name for info in listed] == ["B", "a", "a-1", "a0", "b", "sub"]
        assert [info.name for info in listed if info.is_dir] == ["sub"]
        assert [info.size for info in listed if not info.is_dir] == [1, 1, 3, 2, 1]
        assert store.delete("d/a")
        store.write("d/c", b"")
        assert names(store, "d") == ["B", "a-1", "a0", "b", "c", "sub"]
        assert names(store) == ["d", "d-sibling"]

    def test_a_listing_can_be_narrowed_by_prefix(self, store: FileStore) -> None:
        for name in ("snapshot-1", "snapshot-10", "LATEST", "snap", "snapshot-dir/file"):
            store.write(f"snapshot/{name}", b"")
        assert names(store, "snapshot", "snapshot-1") == ["snapshot-1", "snapshot-10"]
        assert names(store, "snapshot", "snapshot-d") == ["snapshot-dir"]
        assert names(store, "snapshot", "*") == []
        assert names(store, "", "snap") == ["snapshot"]

    def test_the_clock_of_a_store_is_read_and_leaves_nothing(self, store: FileStore) -> None:
        now = check_clock(store, SystemClock(), SystemIds())
        # Some stores keep seconds.
        assert SystemClock().now_ms() - 60_000 < now <= SystemClock().now_ms()
        assert not store.list("tablestore-expiry")
        ahead = ManualClock(start_ms=SystemClock().now_ms() + 25 * 3_600_000)
        with pytest.raises(StorageError) as refused:
            check_clock(store, ahead, SystemIds())
        assert refused.value.kind == "clock-skew" and not store.list("tablestore-expiry")

    def test_a_listing_tells_when_files_were_made(self, store: FileStore) -> None:
        store.write("old", b"")
        (info,) = store.list("")
        assert info.modified_ms > 1_600_000_000_000

    def test_a_listing_has_more_entries_than_one_page(self, store: FileStore) -> None:
        expected = [f"{n:04}" for n in range(self.entries)]
        for name in expected:
            store.overwrite(f"many/{name}", b"")
        assert names(store, "many") == expected
        assert names(store, "many", "003") == [name for name in expected if name.startswith("003")]
        store.delete_directory("many")
        assert names(store, "many") == []

    # ---- removing

    def test_delete_tells_whether_the_file_was_there(self, store: FileStore) -> None:
        store.write("d/file", b"x")
        assert store.delete("d/file") is True
        assert store.delete("d/file") is False
        assert store.delete("never/there") is False
        assert not store.exists("d/file")

    def test_delete_takes_files_only(self, store: FileStore) -> None:
        store.write("d/file", b"x")
        assert store.delete("d") is False
        assert store.read("d/file") == b"x"

    def test_delete_directory_takes_all_below_and_nothing_beside(self, store: FileStore) -> None:
        for path in ("t/a", "t/b/c", "t/b/d/e", "t2/a", "ta", "t*/a", "?/a"):
            store.write(path, b"x")
        store.delete_directory("t*")
        store.delete_directory("?")
        assert all_files(store) == {"t/a", "t/b/c", "t/b/d/e", "t2/a", "ta"}
        store.delete_directory("t")
        assert all_files(store) == {"t2/a", "ta"}
        assert names(store, "t") == []
        store.delete_directory("t")
        store.delete_directory("never/there")

    def test_the_root_is_never_deleted(self, store: FileStore) -> None:
        store.write("file", b"x")
        with pytest.raises(InvalidInputError):
            store.delete_directory("")
        assert store.read("file") == b"x"

    # ---- files for pyarrow

    def test_parquet_is_written_and_read(self, store: FileStore) -> None:
        table = pa.table({"id": list(range(10_000)), "name": [f"name {n}" for n in range(10_000)]})
        with store.open_output("bucket-0/data.parquet") as file, pq.ParquetWriter(file, table.schema) as writer:
            for start in range(0, 10_000, 1000):
                writer.write_table(table.slice(start, 1000))
        store.sync("bucket-0")
        with store.open_input("bucket-0/data.parquet") as file:
            assert pq.ParquetFile(file, pre_buffer=True).read().equals(table)
        with store.open_input("bucket-0/data.parquet") as file:
            part = pq.ParquetFile(file).read_row_group(5, columns=["id"])
        assert part["id"].to_pylist() == list(range(5000, 6000))

    def test_an_output_refuses_a_name_that_is_taken(self, store: FileStore) -> None:
        store.write("file", b"first")
        with pytest.raises(AlreadyExistsError), store.open_output("file") as file:
            file.write(b"second")
        assert store.read("file") == b"first"

    @pytest.mark.parametrize("size", [0, 10, 40 * 1024 * 1024], ids=["empty", "small", "many parts"])
    def test_an_output_that_fails_leaves_nothing(self, store: FileStore, size: int) -> None:
        with pytest.raises(KeyError), store.open_output("d/file") as file:
            file.write(b"x" * size)
            raise KeyError("the writer's own error")
        assert not store.exists("d/file")
        assert names(store, "d") == []
        store.write("d/file", b"again")
        assert store.read("d/file") == b"again"

    def test_an_output_of_many_parts_is_whole(self, store: FileStore) -> None:
        with store.open_output("large") as file:
            for n in range(35):
                file.write(bytes([n]) * 1024 * 1024)
        data = store.read("large")
        assert len(data) == 35 * 1024 * 1024
        assert all(data[n * 1024 * 1024] == n and data[(n + 1) * 1024 * 1024 - 1] == n for n in range(35))

    def test_an_output_may_be_closed_by_its_writer(self, store: FileStore) -> None:
        with store.open_output("file") as file:
            file.write(b"bytes")
            file.close()
        assert store.read("file") == b"bytes"

    def test_inputs_of_one_file_are_independent(self, store: FileStore) -> None:
        store.write("file", b"0123456789")
        with store.open_input("file") as one, store.open_input("file") as other:
            one.seek(5)
            assert other.read(3) == b"012"
            assert one.read(2) == b"56"
            assert one.tell() == 7
            assert other.read() == b"3456789"
            assert other.read(1) == b""

    # ---- boundaries

    @pytest.mark.parametrize("path", HOSTILE_PATHS, ids=ascii)
    def test_a_hostile_path_is_refused_by_every_verb(self, store: FileStore, tmp_path: Path, path: str) -> None:
        outside = tmp_path / "outside"
        outside.write_bytes(b"precious")
        store.write("a/b", b"inside")
        beside = set(tmp_path.iterdir())

        def output(path: str) -> None:
            with store.open_output(path) as file:
                file.write(b"x")

        verbs: list[Callable[[str], object]] = [
            store.read,
            store.size,
            store.exists,
            store.open_input,
            output,
            lambda path: store.write(path, b"x"),
            lambda path: store.overwrite(path, b"x"),
            lambda path: store.publish_if_absent(path, b"x"),
            store.delete,
            store.delete_directory,
            store.at,
        ]
        if path:  # which stands for the root here
            verbs += [store.list, store.names, store.sync]
        for verb in verbs:
            with pytest.raises(InvalidInputError) as refused:
                verb(path)
            assert refused.value.kind == "path"
        assert all_files(store) == {"a/b"}
        assert outside.read_bytes() == b"precious"
        assert set(tmp_path.iterdir()) == beside

    def test_a_store_survives_pickling(self, store: FileStore) -> None:
        store.write("file", b"x")
        again = pickle.loads(pickle.dumps(store))
        assert again.read("file") == b"x"
        assert again.root_uri == store.root_uri
        again.at("deeper").write("file", b"y")
        assert store.read("deeper/file") == b"y"

    def test_many_threads_may_use_one_store(self, store: FileStore) -> None:
        def work(n: int) -> bytes:
            store.write(f"d{n % 3}/{n}", b"%d" % n)
            data = store.read(f"d{n % 3}/{n}")
            store.list(f"d{n % 3}")
            return data

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, range(24))) == [b"%d" % n for n in range(24)]
        assert len(all_files(store)) == 24

    def test_every_error_is_ours(self, store: FileStore) -> None:
        store.write("file", b"x")
        for verb in (
            lambda: store.read("missing"),
            lambda: store.read("file/below"),
            lambda: store.open_input("file/below"),
            lambda: store.size("file/below"),
            lambda: store.write("file", b"y"),
        ):
            with pytest.raises(TablestoreError):
                verb()


class PublishContract:
    """The promises of ``publish_if_absent``, the one atomic step of a commit."""

    races = 50

    @pytest.fixture
    def store(self) -> FileStore:
        """An empty store."""
        raise NotImplementedError("override the fixture `store`")

    def test_publish_takes_a_free_name_and_no_other(self, store: FileStore) -> None:
        assert store.publish_if_absent("snapshot/snapshot-1", b"mine") is True
        assert store.publish_if_absent("snapshot/snapshot-1", b"mine") is False
        assert store.publish_if_absent("snapshot/snapshot-1", b"yours") is False
        assert store.read("snapshot/snapshot-1") == b"mine"
        assert names(store, "snapshot") == ["snapshot-1"]
        assert names(store) == ["snapshot"]

    def test_publish_does_not_replace_a_file_however_it_was_made(self, store: FileStore) -> None:
        store.write("written", b"1")
        store.overwrite("overwritten", b"2")
        with store.open_output("streamed") as file:
            file.write(b"3")
        for path in ("written", "overwritten", "streamed"):
            assert store.publish_if_absent(path, b"other") is False
        assert [store.read(path) for path in ("written", "overwritten", "streamed")] == [b"1", b"2", b"3"]

    def test_a_name_that_was_deleted_is_free_again(self, store: FileStore) -> None:
        assert store.publish_if_absent("s/1", b"first")
        assert store.delete("s/1")
        assert store.publish_if_absent("s/1", b"second")
        assert store.read("s/1") == b"second"

    def test_of_two_that_publish_the_same_name_exactly_one_wins(self, store: FileStore) -> None:
        for n in range(self.races):
            barrier = threading.Barrier(2)

            def publish(who: bytes, path: str = f"snapshot/snapshot-{n}", barrier: threading.Barrier = barrier) -> bool:
                barrier.wait()
                return store.publish_if_absent(path, who * 1000)

            with ThreadPoolExecutor(2) as pool:
                won = dict(zip((b"a", b"b"), pool.map(publish, (b"a", b"b")), strict=True))
            assert sorted(won.values()) == [False, True]
            winner = next(who for who, mine in won.items() if mine)
            assert store.read(f"snapshot/snapshot-{n}") == winner * 1000
        assert len(names(store, "snapshot")) == self.races

    def test_a_reader_never_sees_a_part_of_a_published_file(self, store: FileStore) -> None:
        data = bytes(range(250)) * 12_000
        rounds = 5
        seen: list[int] = []
        done = threading.Event()

        def poll() -> None:
            n = 0
            while n < rounds:
                finished = done.is_set()
                try:
                    seen.append(len(store.read(f"s/{n}")))
                    n += 1
                except NotFoundError:
                    if finished:
                        return

        reader = threading.Thread(target=poll)
        reader.start()
        try:
            for n in range(rounds):
                assert store.publish_if_absent(f"s/{n}", data)
        finally:
            done.set()
            reader.join()
        assert seen == [len(data)] * rounds


def names(store: FileStore, directory: str = "", prefix: str = "") -> list[str]:
    """The names that a listing gives, in its order; the listing of names alone agrees."""
    found = [info.name for info in store.list(directory, prefix)]
    assert list(store.names(directory, prefix)) == found, "the names alone are those of the whole listing"
    return found


def all_files(store: FileStore, directory: str = "") -> set[str]:
    """The paths of all files below a directory."""
    found: set[str] = set()
    for info in store.list(directory):
        path = f"{directory}/{info.name}" if directory else info.name
        found |= all_files(store, path) if info.is_dir else {path}
    return found
