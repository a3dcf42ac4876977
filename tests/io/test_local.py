"""Local files: in which order things become durable, what happens when a step fails, and that links lead nowhere."""

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StorageError, TablestoreError, UnsupportedError
from tablestore.io import local, rename
from tablestore.io.filestore import TEMPORARY_PREFIX
from tablestore.io.local import LocalFileStore
from tablestore.testing.deterministic import SeededIds


@pytest.fixture
def store(tmp_path: Path) -> LocalFileStore:
    store = LocalFileStore(tmp_path / "root", ids=SeededIds(1))
    store.write("snapshot/present", b"x")
    return store


def failing(code: int, *, after: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A system call that fails with ``code``, after really doing ``after``."""

    def fail(*args: Any, **kwargs: Any) -> None:
        if after is not None:
            after(*args, **kwargs)
        raise OSError(code, os.strerror(code))

    return fail


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every fsync, link, replace and unlink in order, with the name that it is about."""
    noted: list[str] = []
    real = {name: getattr(os, name) for name in ("fsync", "link", "replace", "unlink")}

    def fsync(descriptor: int) -> None:
        noted.append(f"fsync {shown(os.readlink(f'/proc/self/fd/{descriptor}'))}")
        real["fsync"](descriptor)

    def of(name: str) -> Callable[..., None]:
        def run(*paths: Any, **kwargs: Any) -> None:
            noted.append(" ".join([name, *(shown(str(path)) for path in paths)]))
            real[name](*paths, **kwargs)

        return run

    def shown(path: str) -> str:
        name = os.path.basename(path)
        return "temporary" if name.startswith(TEMPORARY_PREFIX) else name

    monkeypatch.setattr(os, "fsync", fsync)
    for name in ("link", "replace", "unlink"):
        monkeypatch.setattr(os, name, of(name))
    return noted


# ---- order


def test_a_publish_syncs_the_file_then_links_then_syncs_the_directories(store: LocalFileStore, steps: list[str]) -> None:
    assert store.at("snapshot").publish_if_absent("snapshot-1", b"data")
    assert steps == [
        "fsync temporary",
        "link temporary snapshot-1",
        "fsync snapshot",
        "fsync root",
        "unlink temporary",
    ]


def test_an_occupied_name_is_made_durable_before_it_is_reported(store: LocalFileStore, steps: list[str]) -> None:
    assert not store.publish_if_absent("snapshot/present", b"data")
    assert steps == ["fsync snapshot", "fsync root"]


def test_a_written_file_is_synced_before_it_has_its_name_and_its_directories_by_sync(
    store: LocalFileStore, steps: list[str]
) -> None:
    store.write("manifest/one", b"data")
    assert steps == ["fsync temporary", "link temporary one", "unlink temporary"]
    store.sync("manifest")
    assert steps[3:] == ["fsync manifest", "fsync root"]


def test_of_several_files_all_are_written_before_the_first_is_waited_for(
    store: LocalFileStore, tmp_path: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, waiting = os.fsync, []

    def fsync(descriptor: int) -> None:
        waiting.append(sorted(path.read_bytes() for path in (tmp_path / "root/manifest").iterdir()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    store.write_all({"manifest/one": b"1", "manifest/two": b"2"})
    assert waiting[0] == [b"1", b"2"]
    assert steps == ["fsync one", "fsync two"], "nobody knows their names yet, so they are written in place"
    assert list(store.names("manifest")) == ["one", "two"]


def test_of_several_files_none_stays_if_one_cannot_be_written(store: LocalFileStore) -> None:
    store.write("manifest/two", b"another")
    with pytest.raises(AlreadyExistsError):
        store.write_all({"manifest/one": b"1", "manifest/two": b"2", "manifest/three": b"3"})
    assert list(store.names("manifest")) == ["two"]
    assert store.read("manifest/two") == b"another"


def test_a_hint_is_replaced_after_its_content_is_synced(store: LocalFileStore, steps: list[str]) -> None:
    store.overwrite("snapshot/LATEST", b"1")
    assert steps == ["fsync temporary", "replace temporary LATEST", "fsync snapshot"]


def test_a_hint_that_need_not_last_is_whole_all_the_same(store: LocalFileStore, steps: list[str]) -> None:
    store.overwrite("snapshot/LATEST", b"1", lasting=False)
    assert steps == ["replace temporary LATEST"], "nobody waits for a hint"


def test_a_directory_above_is_synced_again_only_if_something_was_made_in_it(
    store: LocalFileStore, steps: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def published(name: str) -> list[str]:
        steps.clear()
        assert store.at("a").publish_if_absent(f"b/{name}", b"")
        return [step for step in steps if step in ("fsync a", "fsync b", "fsync root")]

    # What was made lately may have been made at the very time that the directory shows.
    assert published("1") == published("2") == ["fsync b", "fsync a", "fsync root"]
    monkeypatch.setattr(local, "_CLOCK_TICK_NS", -1)
    assert published("3") == ["fsync b", "fsync a", "fsync root"]
    assert published("4") == published("5") == ["fsync b"]
    directory = Path(store.root_uri) / "a"
    before = directory.stat().st_ctime_ns
    for number in range(100_000):
        # Until the clock of the file system has ticked.
        (directory / f"others-{number}").mkdir()
        if directory.stat().st_ctime_ns != before:
            break
    assert published("6") == ["fsync b", "fsync a"]
    assert published("7") == ["fsync b"]


def test_an_output_is_synced_when_it_closes_and_its_directories_by_sync(store: LocalFileStore, steps: list[str]) -> None:
    with store.open_output("a/b/data") as file:
        file.write(b"x")
        assert steps == []
    assert steps == ["fsync data"]
    store.at("a").sync("b")
    assert steps == ["fsync data", "fsync b", "fsync a", "fsync root"]


def test_a_root_that_is_made_is_synced_into_what_is_above_it(tmp_path: Path, steps: list[str]) -> None:
    LocalFileStore(tmp_path / "x" / "y" / "root").write("file", b"")
    assert steps[:3] == ["fsync y", "fsync x", f"fsync {tmp_path.name}"]


def test_published_names_are_never_renamed_onto(store: LocalFileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rename", "replace", "renames"):
        monkeypatch.setattr(os, name, failing(errno.EIO))
    assert store.publish_if_absent("snapshot/snapshot-1", b"x")


# ---- failures


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_failed_sync_of_the_file_decides_that_nothing_was_published(
    store: LocalFileStore, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(code))
        with pytest.raises(StorageError) as failed:
            store.publish_if_absent("snapshot/snapshot-1", b"x")
    assert failed.value.kind != "unknown-outcome"
    assert [info.name for info in store.list("snapshot")] == ["present"]


@pytest.mark.parametrize("applied", [False, True])
def test_an_io_error_of_the_link_is_an_unknown_outcome_that_a_repetition_resolves(
    store: LocalFileStore, monkeypatch: pytest.MonkeyPatch, applied: bool
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", failing(errno.EIO, after=os.link if applied else None))
        with pytest.raises(StorageError, match="same bytes") as failed:
            store.publish_if_absent("snapshot/snapshot-1", b"x")
    assert failed.value.kind == "unknown-outcome"
    assert store.publish_if_absent("snapshot/snapshot-1", b"x") is not applied
    assert store.read("snapshot/snapshot-1") == b"x"
    assert [info.name for info in store.list("snapshot")] == ["present", "snapshot-1"]


def test_a_failed_sync_of_the_directory_is_an_unknown_outcome(store: LocalFileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(local, "_sync_directory", failing(errno.EIO))
        with pytest.raises(StorageError) as failed:
            store.publish_if_absent("snapshot/snapshot-1", b"x")
        assert failed.value.kind == "unknown-outcome"
        with pytest.raises(StorageError) as failed:
            store.publish_if_absent("snapshot/snapshot-1", b"x")
        assert failed.value.kind == "unknown-outcome"
    assert store.publish_if_absent("snapshot/snapshot-1", b"x") is False


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EMLINK])
def test_a_link_that_the_kernel_refused_was_not_applied(store: LocalFileStore, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", failing(code))
        with pytest.raises(StorageError) as failed:
            store.publish_if_absent("snapshot/snapshot-1", b"x")
    assert failed.value.kind in ("denied", "exhausted", "storage")
    assert not store.exists("snapshot/snapshot-1")


def test_a_link_whose_answer_was_lost_and_that_met_itself_is_ours(store: LocalFileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EEXIST, after=os.link))
    assert store.publish_if_absent("snapshot/snapshot-1", b"x") is True


def test_without_hard_links_a_rename_that_never_replaces_publishes(store: LocalFileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    assert store.publish_if_absent("snapshot/snapshot-1", b"mine") is True
    monkeypatch.setattr(os.path, "lexists", lambda path: False)  # as if another came between look and rename
    assert store.publish_if_absent("snapshot/snapshot-1", b"yours") is False
    assert store.read("snapshot/snapshot-1") == b"mine"
    assert [info.name for info in store.list("snapshot")] == ["present", "snapshot-1"]


def test_without_links_and_renames_the_error_names_the_lock(store: LocalFileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", failing(errno.ENOTSUP))
    monkeypatch.setattr(rename.ctypes, "CDLL", lambda *args, **kwargs: object())
    with pytest.raises(UnsupportedError, match="lock") as refused:
        store.publish_if_absent("snapshot/snapshot-1", b"x")
    assert refused.value.kind == "no-conditional-publish"
    assert [info.name for info in store.list("snapshot")] == ["present"]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.EACCES, "denied"),
        (errno.EPERM, "denied"),
        (errno.EROFS, "denied"),
        (errno.EMFILE, "exhausted"),
        (errno.ENOSPC, "exhausted"),
        (errno.EIO, "storage"),
    ],
)
def test_denied_exhausted_and_failed_are_never_taken_for_gone(
    store: LocalFileStore, monkeypatch: pytest.MonkeyPatch, code: int, kind: str
) -> None:
    def output() -> None:
        with store.open_output("new"):
            pass

    for name in ("open", "stat", "scandir", "unlink"):
        monkeypatch.setattr(os, name, failing(code))
    for verb in (
        lambda: store.read("snapshot/present"),
        lambda: store.size("snapshot/present"),
        lambda: store.exists("snapshot/present"),
        lambda: store.open_input("snapshot/present"),
        lambda: store.list("snapshot"),
        lambda: store.write("new", b"x"),
        lambda: store.overwrite("new", b"x"),
        lambda: store.delete("snapshot/present"),
        lambda: store.sync("snapshot"),
        output,
    ):
        with pytest.raises(StorageError) as failed:
            verb()
        assert failed.value.kind == kind


def test_an_output_whose_disk_is_full_is_a_typed_error_and_leaves_nothing(
    store: LocalFileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local._TypedFile, "write", failing(errno.ENOSPC))
    open_before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="No space left"), store.open_output("data") as file:
        file.write(b"x" * 10)
    assert not store.exists("data")
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_a_really_full_disk_is_a_typed_error() -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    try:
        file = local._TypedFile(descriptor, "wb", closefd=False)
        with pytest.raises(StorageError, match="free some space") as failed:
            file.write(b"x")
        assert failed.value.kind == "exhausted"
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("when", ["body", "sync"])
def test_no_handle_stays_open_after_a_failure(store: LocalFileStore, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    open_before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        if when == "sync":
            patch.setattr(os, "fsync", failing(errno.EIO))
        with pytest.raises(StorageError), store.open_output("data") as file:
            file.write(b"x")
            if when == "body":
                raise StorageError("the writer's own")
        with pytest.raises(NotFoundError):
            store.read("data")
        patch.setattr(os, "fsync", failing(errno.EIO))
        with pytest.raises(StorageError):
            store.write_all({f"data{n}": b"x" for n in range(40)} if when == "body" else {"data": b"x"})
        with pytest.raises(StorageError):
            store.sync("snapshot")
    assert len(os.listdir("/proc/self/fd")) == open_before
    assert list(store.names("")) == ["snapshot"]


def test_bytes_of_a_failed_output_never_reach_another_file(store: LocalFileStore, tmp_path: Path) -> None:
    with pytest.raises(KeyError), store.open_output("data") as file:
        file.write(b"stale")
        raise KeyError("stop")
    with (tmp_path / "other").open("wb") as other:  # likely gets the number that was just freed
        del file
        other.write(b"fresh")
    assert (tmp_path / "other").read_bytes() == b"fresh"


def test_a_file_in_place_of_a_directory_is_not_taken_for_gone(store: LocalFileStore) -> None:
    with pytest.raises(StorageError) as failed:
        store.write("snapshot/present/below", b"x")
    assert failed.value.kind == "not-a-directory"
    with pytest.raises(StorageError) as failed:
        store.write("snapshot/present/below/deeper", b"x")
    assert failed.value.kind == "not-a-directory"


def test_a_pipe_in_place_of_a_file_does_not_block(store: LocalFileStore, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "root" / "pipe")
    for verb in (store.read, store.size, store.open_input):
        with pytest.raises(StorageError) as failed:
            verb("pipe")
        assert failed.value.kind == "not-a-file"


# ---- links


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory beside the root; ``root/link`` and ``root/deep/link`` lead to it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"precious")
    (tmp_path / "root" / "deep").mkdir(parents=True)
    for link in ("link", "deep/link"):
        (tmp_path / "root" / link).symlink_to(outside)
    return outside


@pytest.mark.parametrize("link", ["link", "deep/link"])
def test_writes_and_deletes_do_not_follow_a_link_out_of_the_table(store: LocalFileStore, outside: Path, link: str) -> None:
    def output(path: str) -> None:
        with store.open_output(path) as file:
            file.write(b"x")

    for verb in (
        lambda: store.write(f"{link}/new", b"x"),
        lambda: store.write(f"{link}/new/deeper", b"x"),
        lambda: store.overwrite(f"{link}/precious", b"x"),
        lambda: store.publish_if_absent(f"{link}/new", b"x"),
        lambda: output(f"{link}/new"),
        lambda: store.delete(f"{link}/precious"),
        lambda: store.delete_directory(link),
        lambda: store.delete_directory(f"{link}/precious"),
        lambda: store.at(link).write("new", b"x"),
        lambda: store.at(link).delete("precious"),
        lambda: store.at(f"{link}/deeper").write("new", b"x"),
    ):
        with pytest.raises(InvalidInputError, match="link") as refused:
            verb()
        assert refused.value.kind == "path"
    assert [entry.name for entry in outside.iterdir()] == ["precious"]
    assert (outside / "precious").read_bytes() == b"precious"


def test_a_link_that_appears_later_is_not_followed(store: LocalFileStore, outside: Path, tmp_path: Path) -> None:
    store.write("bucket-0/one", b"x")
    os.rename(tmp_path / "root" / "bucket-0", tmp_path / "root" / "moved")
    (tmp_path / "root" / "bucket-0").symlink_to(outside)
    with pytest.raises(InvalidInputError):
        store.write("bucket-0/two", b"x")
    assert not (outside / "two").exists()


def test_a_link_in_place_of_a_file_is_never_written_through(store: LocalFileStore, outside: Path) -> None:
    for name in ("file", "hint"):
        os.symlink(outside / "precious", f"{store.root_uri}/{name}")
    os.symlink(outside / "nothing-yet", f"{store.root_uri}/dangling")
    assert store.publish_if_absent("file", b"x") is False
    assert store.publish_if_absent("dangling", b"x") is False
    store.overwrite("hint", b"x")
    assert store.delete("file") is True
    store.delete_directory("deep")
    assert sorted(entry.name for entry in outside.iterdir()) == ["precious"]
    assert (outside / "precious").read_bytes() == b"precious"


def test_a_root_that_is_reached_through_a_link_works(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "real")
    store = LocalFileStore(tmp_path / "root")
    store.at("db/table").write("file", b"x")
    assert (tmp_path / "real" / "db" / "table" / "file").read_bytes() == b"x"


def test_a_link_to_a_place_in_the_same_root_is_read_and_never_written_or_deleted_through(store: LocalFileStore) -> None:
    """Another table lies in the same warehouse."""
    store.write("other/precious", b"x")
    os.symlink("other", f"{store.root_uri}/inner")
    assert store.read("inner/precious") == b"x"
    for verb in (
        lambda: store.write("inner/new", b"x"),
        lambda: store.delete("inner/precious"),
        lambda: store.delete_directory("inner"),
        lambda: store.at("inner").delete("precious"),
        lambda: store.rename_directory("inner/precious", "elsewhere"),
        lambda: store.copy_file("inner/precious", "copy"),
    ):
        with pytest.raises(InvalidInputError, match="symbolic link"):
            verb()
    assert store.names("other") == ["precious"]


def test_a_listing_tells_links_apart(store: LocalFileStore) -> None:
    store.write("other/file", b"x")
    os.symlink("other", f"{store.root_uri}/linked")
    found = {info.name: (info.is_dir, info.is_link) for info in store.list("")}
    assert (found["linked"], found["other"]) == ((True, True), (True, False))


def test_a_directory_that_others_empty_meanwhile_is_removed_all_the_same(
    store: LocalFileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = local.shutil.rmtree
    calls = []

    def rmtree(path: str) -> None:
        calls.append(path)
        if len(calls) == 1:
            raise FileNotFoundError(errno.ENOENT, "another process was faster", path)
        real(path)

    monkeypatch.setattr(local.shutil, "rmtree", rmtree)
    store.delete_directory("snapshot")
    assert len(calls) == 2
    assert store.list("snapshot") == []


def test_an_unusable_root_is_refused() -> None:
    for root in ("", "a\0b"):
        with pytest.raises(InvalidInputError):
            LocalFileStore(root)


# ---- crashes


class Crash(BaseException):
    """The process dies here: no handler for errors may count on running."""


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("verb", ["publish_if_absent", "write", "overwrite"])
def test_a_crash_at_any_step_leaves_the_whole_file_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, after: bool
) -> None:
    names = ("open", "write", "fsync", "link", "replace", "unlink", "close")
    real = {name: getattr(os, name) for name in names}
    data = b"all of it" * 1000

    def crash_at(step: int, root: Path) -> bool:
        """Whether the step was reached; from then on nothing works, as in a process that is gone."""
        done = 0

        def wrapped(name: str) -> Callable[..., Any]:
            def run(*args: Any, **kwargs: Any) -> Any:
                nonlocal done
                done += 1
                if done > step or (done == step and not after):
                    raise Crash
                result = real[name](*args, **kwargs)
                if done == step:
                    raise Crash
                return result

            return run

        store = LocalFileStore(root, ids=SeededIds(step))
        with monkeypatch.context() as patch:
            for name in names:
                patch.setattr(os, name, wrapped(name))
            try:
                getattr(store, verb)("snapshot/snapshot-1", data)
            except Crash:
                return True
        return False

    step = 1
    while True:
        root = tmp_path / str(step)
        (root / "snapshot").mkdir(parents=True)
        crashed = crash_at(step, root)
        store = LocalFileStore(root)
        if store.exists("snapshot/snapshot-1"):
            assert store.read("snapshot/snapshot-1") == data
        listed = {info.name for info in store.list("snapshot")} - {"snapshot-1"}
        assert all(name.startswith(TEMPORARY_PREFIX) for name in listed)
        assert store.publish_if_absent("snapshot/snapshot-1", data) in (True, False)
        assert store.read("snapshot/snapshot-1") == data
        if not crashed:
            break
        step += 1
    assert step > 6


def test_errors_at_random_leave_a_store_that_works_and_no_handles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(20)
    injected = 0
    open_before = len(os.listdir("/proc/self/fd"))
    store = LocalFileStore(tmp_path / "root", ids=SeededIds(2))
    acknowledged: dict[str, bytes] = {}

    def flaky(real: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal injected
            if chance.random() < 0.05:
                injected += 1
                raise OSError(code := chance.choice([errno.EIO, errno.ENOSPC, errno.EMFILE]), os.strerror(code))
            return real(*args, **kwargs)

        return run

    with monkeypatch.context() as patch:
        for name in ("open", "write", "fsync", "link", "unlink", "scandir", "stat"):
            patch.setattr(os, name, flaky(getattr(os, name)))
        for n in range(600):
            path, data = f"d{n % 7}/{n}", b"%d" % n
            try:
                if n % 3 == 0:
                    with store.open_output(path) as file:
                        file.write(data)
                    store.sync(f"d{n % 7}")
                elif n % 3 == 1:
                    assert store.publish_if_absent(path, data)
                else:
                    store.write(path, data)
                acknowledged[path] = data
                assert store.read(path) == data
                assert store.list(f"d{n % 7}")
            except TablestoreError:
                continue
    assert injected > 100
    assert len(acknowledged) > 200
    assert {path: store.read(path) for path in acknowledged} == acknowledged
    assert len(os.listdir("/proc/self/fd")) == open_before
