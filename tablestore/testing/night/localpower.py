"""Cuts the power of this machine, as far as a folder can tell: what was not synced by a system call may be gone.

    fsync(file)         its bytes last                    fsync(directory)     its names last
    everything else     is there or not, by chance; a file whose name lasts and whose bytes do not is empty

Nothing is intercepted but ``fsync``: what a file held and what a directory named at that moment is what lasts.
"""

import os
import random
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tablestore.testing.files import SimulatedCrash
from tablestore.testing.holdings import Holdings
from tablestore.testing.night.counts import Tally
from tablestore.testing.night.killed import TABLES, check_clean, make_table, scratch_folder
from tablestore.testing.night.worker import open_local, rows_of

_CUTS = 6


@dataclass
class Disk:
    """Knows what lasts of the files of this process: bytes by inode, names by the inode of their directory."""

    contents: dict[int, bytes] = field(default_factory=dict)
    names: dict[int, dict[str, int]] = field(default_factory=dict)
    syncs: int = 0
    # The power is cut at this sync from now on, before or after it.
    cut_at: int = 0
    is_after: bool = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Take note of every sync."""
        real = os.fsync
        os.fsync = partial(self._fsync, real)
        try:
            yield
        finally:
            os.fsync = real

    def _fsync(self, real: Callable[[int], None], descriptor: int) -> None:
        self.syncs += 1
        if self.cut_at and self.syncs >= self.cut_at and not self.is_after:
            raise SimulatedCrash("the power was cut before a sync")
        real(descriptor)
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            with os.scandir(descriptor) as entries:
                self.names[status.st_ino] = {entry.name: entry.inode() for entry in entries}
        else:
            self.contents[status.st_ino] = Path(f"/proc/self/fd/{descriptor}").read_bytes()
        if self.cut_at and self.syncs >= self.cut_at:
            raise SimulatedCrash("the power was cut after a sync")

    def restore(self, source: Path, target: Path, chance: random.Random) -> int:
        """Make ``target`` what ``source`` may be after the power was cut; returns how many names were lost or came back."""
        target.mkdir()
        there = {entry.name: entry.inode() for entry in os.scandir(source)}
        lasting = self.names.get(source.stat().st_ino, {})
        changed = 0
        for name in sorted(there.keys() | lasting.keys()):
            inode = lasting.get(name)
            if there.get(name) != inode and chance.random() < 0.5:
                inode = there.get(name)
            changed += inode != there.get(name)
            if inode is None:
                continue
            path = source / name
            is_now = path.exists() and path.stat().st_ino == inode
            if is_now and path.is_dir():
                changed += self.restore(path, target / name, chance)
            elif inode in self.contents:
                (target / name).write_bytes(self.contents[inode])
            elif is_now:
                # Its bytes were never synced.
                (target / name).write_bytes(path.read_bytes() if chance.random() < 0.3 else b"")
        return changed


def live_local_power(seed: int) -> Tally:
    """A table in a folder, whose machine loses power again and again."""
    chance = random.Random(seed)
    kind = chance.choice(list(TABLES))
    tally = Tally(lives=1)
    with scratch_folder() as folder:
        state: dict[int, str] = {}
        disk = Disk()
        with disk.watching():
            make_table(folder / "0" / "table", kind)
        # What was there before lasts.
        disk.names[(folder / "0").stat().st_ino] = {"table": (folder / "0" / "table").stat().st_ino}
        for number in range(_CUTS):
            path = folder / str(number) / "table"
            disk.cut_at, disk.is_after = disk.syncs + chance.randrange(1, 120), chance.random() < 0.5
            flying: dict[int, str] = {}
            with disk.watching():
                try:
                    _work(path, number, chance, state, flying)
                except SimulatedCrash:
                    tally.kills["power"] += 1
            disk.cut_at = 0
            tally.faults["changes lost"] += disk.restore(folder / str(number), folder / str(number + 1), chance)
            disk = _as_it_is(folder / str(number + 1))
            lab = make_table(folder / str(number + 1) / "table", kind, is_there=True, seed=number + 1)
            missing = Holdings(lab.files).missing()
            assert missing == {}, f"cut {number}: files that something leads to are gone: {missing}"
            lab.open().compact()
            rows = lab.read()
            assert len(dict(rows)) == len(rows), f"cut {number}: rows were doubled"
            assert dict(rows) in (state, state | flying), f"cut {number}: {_difference(dict(rows), state)}"
            tally.states += 1
            state = dict(rows)
            lab.write_new((-number - 1, "others"))
            state[-number - 1] = "others"
            disk = _as_it_is(folder / str(number + 1))
        lab.open().compact()
        check_clean(lab, folder / str(_CUTS) / "table", list(state.items()))
    return tally


def _difference(rows: dict[int, str], state: dict[int, str]) -> str:
    lost = {key for key, value in state.items() if rows.get(key) != value}
    return f"of {len(state)} acknowledged rows {sorted(lost)} are lost or old; {sorted(rows.keys() - state.keys())} came"


def _work(path: Path, number: int, chance: random.Random, state: dict[int, str], flying: dict[int, str]) -> None:
    """Write and keep up, until the power is cut."""
    table = open_local(str(path))
    count = number * 1_000 + 1
    while True:
        rows = [(count, "new"), *([(number % 5 - 1_000, str(count))] if table.primary_key else [])]
        flying.clear()
        flying.update(rows)
        table.upsert(rows_of(table, rows)) if table.primary_key else table.append(rows_of(table, rows))
        state.update(rows)
        flying.clear()
        count += 1
        step = chance.random()
        if step < 0.3:
            table.compact(full=chance.random() < 0.5)
        elif step < 0.5:
            table.expire_snapshots(retain_min=1, retain_max=2)
        elif step < 0.6:
            table.remove_orphan_files(dry_run=False)
        elif step < 0.7:
            table.create_tag(f"t{count}")
        elif step < 0.8 and (tags := table.tags()):
            table.delete_tag(chance.choice(tags).name)


def _as_it_is(folder: Path) -> Disk:
    """A disk on which everything that is there lasts."""
    disk = Disk()
    for directory, _, files in os.walk(folder):
        disk.names[os.stat(directory).st_ino] = {entry.name: entry.inode() for entry in os.scandir(directory)}
        for name in files:
            path = Path(directory, name)
            disk.contents[path.stat().st_ino] = path.read_bytes()
    return disk
