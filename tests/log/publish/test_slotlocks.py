"""The lock of a publisher slot is one of its user and its table; where it cannot be had the broker's fence has to do."""

import tempfile
from pathlib import Path

import pytest

from tablestore.log.publish.slotlocks import SlotLocks, try_lock, user_lock_folder


def test_a_lock_is_held_once_and_is_that_of_its_table_log_and_slot(tmp_path: Path) -> None:
    locks = SlotLocks(tmp_path / "locks")
    others = [locks.slot("another", "topic", 0), locks.slot("one", "another", 0), locks.slot("one", "topic", 1)]
    held = [locks.slot("one", "topic", 0), locks.early_writer("one", "topic"), *others]
    assert all(try_lock(lock) for lock in held) and not try_lock(locks.slot("one", "topic", 0))
    held[0].release()
    again = locks.slot("one", "topic", 0)
    assert try_lock(again)
    for lock in (*held[1:], again):
        lock.release()


def test_the_folder_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert user_lock_folder({"HOME": str(tmp_path)}) == tmp_path / ".cache" / "tablestore" / "locks"
    assert user_lock_folder({"HOME": str(tmp_path), "XDG_CACHE_HOME": "/c"}) == Path("/c/tablestore/locks")
    for homeless in ({}, {"HOME": ""}, {"HOME": "relative"}, {"HOME": str(tmp_path / "absent")}):
        assert user_lock_folder(homeless).parent == tmp_path


def test_another_user_has_another_folder_in_the_temporary_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = user_lock_folder({})
    monkeypatch.setattr("os.getuid", lambda: 4711)
    assert user_lock_folder({}) != mine and user_lock_folder({}).name == "tablestore-locks-4711"


def test_a_lock_that_cannot_be_had_leaves_it_to_the_fence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "locks").write_text("")
    lock = SlotLocks(tmp_path / "locks").slot("one", "topic", 0)
    assert try_lock(lock) and not lock.is_locked and "fence each other" in caplog.text
    lock.release()


@pytest.mark.parametrize("attack", ["writable", "link", "foreign"])
def test_a_folder_that_others_may_write_into_or_made_is_not_used(
    tmp_path: Path, attack: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever comes first in the shared temporary directory chooses what lies there."""
    folder, victim = tmp_path / "locks", tmp_path / "victim"
    victim.mkdir()
    if attack == "link":
        folder.symlink_to(victim)
    else:
        folder.mkdir()
        folder.chmod(0o777 if attack == "writable" else 0o700)
    if attack == "foreign":
        monkeypatch.setattr("os.getuid", lambda: 4711)
    lock = SlotLocks(folder).slot("one", "topic", 0)
    assert try_lock(lock) and not lock.is_locked and "nobody else may write into" in caplog.text
    assert list(victim.iterdir()) == [] and list(folder.iterdir()) == []
