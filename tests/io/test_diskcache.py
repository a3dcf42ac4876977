"""The cache on disk gives what was put, forgets what was not read for longest, and is never an error."""

import os
from pathlib import Path

import pytest

from tablestore.io.diskcache import CACHE_DIR_VARIABLE, DiskCache, user_cache


def test_it_gives_what_was_put_and_nothing_else(tmp_path: Path) -> None:
    cache, other = DiskCache(tmp_path / "c"), DiskCache(tmp_path / "c")
    cache.put("s3://bucket/t/manifest/a", b"1")
    cache.put("s3://bucket/t/manifest/b", b"")
    assert (other.get("s3://bucket/t/manifest/a"), other.get("s3://bucket/t/manifest/b"), other.get("c")) == (b"1", b"", None)
    cache.put("s3://bucket/t/manifest/a", b"2")
    assert other.get("s3://bucket/t/manifest/a") == b"2" and len(os.listdir(tmp_path / "c")) == 2
    assert (tmp_path / "c").stat().st_mode & 0o077 == 0, "statistics of files are values of rows"


def test_what_was_not_read_for_longest_goes_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, most_bytes=25)
    for number, key in enumerate("abc"):
        cache.put(key, b"x" * 8)
        os.utime(cache._path(key), ns=(number, number))
    cache.get("a")
    cache.put("d", b"x" * 8)
    assert [key for key in "abcd" if cache.get(key) is not None] == ["a", "c", "d"]


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.doc").write_bytes(b"x" * 100)
    cache = DiskCache(tmp_path, most_bytes=10)
    cache.put("a", b"x" * 8)
    cache.put("b", b"x" * 8)
    assert (tmp_path / "thesis.doc").exists() and (cache.get("a"), cache.get("b")) == (None, b"x" * 8)


def test_an_entry_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(os, "replace", full)
    DiskCache(tmp_path).put("a", b"1")
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_used_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    cache = DiskCache(tmp_path / "file")
    cache.put("a", b"1")
    assert cache.get("a") is None


def test_the_folder_is_the_users_and_can_be_switched_off(tmp_path: Path) -> None:
    for value in ("", "off"):
        assert user_cache({CACHE_DIR_VARIABLE: value, "HOME": str(tmp_path)}) is None
    assert user_cache({}) is None
    for environ, folder in (
        ({CACHE_DIR_VARIABLE: f"{tmp_path}/x", "HOME": "/h"}, tmp_path / "x"),
        ({"XDG_CACHE_HOME": f"{tmp_path}/y", "HOME": "/h"}, tmp_path / "y"),
        ({"HOME": f"{tmp_path}/z"}, tmp_path / "z" / ".cache"),
    ):
        cache = user_cache(environ)
        assert cache is not None
        cache.put("a", b"1")
        assert len(os.listdir(folder / "tablestore-manifests")) == 1
