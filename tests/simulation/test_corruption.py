"""Damaged files: every flipped bit, cut, zeroed block and swapped file is told, by an error of ours that names the file."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from tablestore.errors import TablestoreError
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.auditor import walk
from tablestore.testing.lab import Lab

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("day", pa.string(), nullable=False),
        pa.field("n", pa.int32()),
        pa.field("x", pa.float64()),
        pa.field("s", pa.string()),
        pa.field("d", pa.decimal128(12, 2)),
        pa.field("tags", pa.list_(pa.string())),
    ]
)
KINDS = ("snapshot", "schema", "list", "manifest", "data", "hint")
CASES = 2_000
CHUNKS = 4


def rows(first: int, last: int, tag: str) -> list[tuple[Any, ...]]:
    return [
        (i, f"d{i % 2}", i * 7, i / 3, f"{tag}-{i}" if i % 5 else None, None if i % 3 else i, [tag, str(i)] if i % 4 else [])
        for i in range(first, last)
    ]


@dataclass
class Subject:
    """A sound table, what its scans give, and its files by kind."""

    lab: Lab
    scans: dict[str, dict[str, Any]]
    expected: dict[str, list[tuple[Any, ...]]]
    files: dict[str, list[str]]
    readers: dict[str, list[str]]


def subject(name: str, *, keyed: bool) -> Subject:
    store = MemoryFileStore(name)
    options = {"bucket": "2"} if keyed else {"bucket": "-1"}
    lab = Lab(store, keyed=keyed, schema=SCHEMA, primary_key=["id", "day"], partition_by=["day"], options=options)
    table = lab.open()
    for first, last, tag in ((0, 60, "a"), (30, 90, "b"), (10, 20, "c")):
        lab.write(table, *rows(first, last, tag))
        lab.clock.advance(60)
    table.delete("n > 500")
    lab.clock.advance(60)
    table.overwrite(lab.rows(*[row for row in rows(0, 8, "z") if row[1] == "d0"]), {"day": "d0"})
    times = [snapshot["timeMillis"] for snapshot in lab.auditor.snapshots()]
    scans: dict[str, dict[str, Any]] = {f"snapshot {i}": {"snapshot_id": i} for i in lab.auditor.ids()}
    scans |= {f"time {i}": {"timestamp": time} for i, time in enumerate(times[1:3])}
    scans["newest"] = {}
    scans["some"] = {"columns": ["s", "id"], "filter": "n >= 70 AND day = 'd1'"}
    kinds: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for path in walk(store):
        kinds[kind_of(path)].append(path)
    readers: dict[str, list[str]] = {path: [] for path in walk(store)}
    for name, scan in scans.items():
        table, faults = lab.faulty()
        table.scan(**scan).to_arrow()
        for path in sorted({call.path for call in faults.calls} & set(readers)):
            readers[path].append(name)
    return Subject(lab, scans, {name: lab.read(**scan) for name, scan in scans.items()}, kinds, readers)


def kind_of(path: str) -> str:
    directory, _, name = path.rpartition("/")
    if directory == "snapshot":
        return "snapshot" if name.startswith("snapshot-") else "hint"
    if directory == "manifest":
        return "list" if name.startswith("manifest-list") else "manifest"
    return "schema" if directory == "schema" else "data"


@pytest.fixture(scope="module")
def subjects() -> list[Subject]:
    return [subject("damaged keyed", keyed=True), subject("damaged append", keyed=False)]


Damage = Callable[[random.Random, bytes, bytes], bytes]


def flip_a_bit(chance: random.Random, data: bytes, _: bytes) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]


def cut(chance: random.Random, data: bytes, _: bytes) -> bytes:
    return data[: chance.randrange(len(data))]


def zero_a_block(chance: random.Random, data: bytes, _: bytes) -> bytes:
    size = min(len(data), chance.choice((1, 8, 64, 512)))
    place = chance.randrange(len(data) - size + 1)
    return data[:place] + bytes(size) + data[place + size :]


def swap(_: random.Random, __: bytes, other: bytes) -> bytes:
    return other


def repeat_a_block(chance: random.Random, data: bytes, _: bytes) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + data[place // 2 : place] + data[place:]


DAMAGES: list[Damage] = [flip_a_bit, flip_a_bit, cut, zero_a_block, swap, repeat_a_block]


@pytest.mark.deep
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_damage_is_never_read_as_rows(chunk: int, subjects: list[Subject]) -> None:
    outcomes: Counter[tuple[str, str]] = Counter()
    for seed in range(chunk * CASES // CHUNKS, (chunk + 1) * CASES // CHUNKS):
        outcomes.update(damage_once(seed, subjects[seed % 2]))
    for kind in KINDS:
        seen = outcomes[kind, "told"] + outcomes[kind, "harmless"]
        assert seen >= CASES // CHUNKS // len(KINDS) // 2, f"{kind} was hardly damaged: {outcomes}"
        assert kind == "hint" or outcomes[kind, "told"] > outcomes[kind, "harmless"], f"{kind}: {outcomes}"


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(10))
def test_much_damage_is_never_read_as_rows(chunk: int, subjects: list[Subject]) -> None:
    first = 1_000_000 + chunk * 2_000
    outcomes: Counter[tuple[str, str]] = Counter()
    for seed in range(first, first + 2_000):
        outcomes.update(damage_once(seed, subjects[seed % 2]))
    assert outcomes


def damage_once(seed: int, subject: Subject) -> list[tuple[str, str]]:
    """Damage one file, scan, mend it. Per scan: the kind of file, and whether the damage was told or harmless."""
    chance = random.Random(seed)
    kind = KINDS[seed // 2 % len(KINDS)]
    store = subject.lab.files
    path = chance.choice(subject.files[kind])
    data = store.read(path)
    others = [p for p in subject.files[chance.choice((kind, kind, chance.choice(KINDS)))] if p != path] or subject.files["data"]
    damage = chance.choice(DAMAGES)
    damaged = damage(chance, data, store.read(chance.choice(others)))
    if damaged == data:
        return []
    where = f"seed {seed}: {damage.__name__} on {path}"
    told = 0
    store.overwrite(path, damaged)
    try:
        # Two of the scans that read this file: damage elsewhere cannot show.
        names = subject.readers[path] or list(subject.scans)
        for name in chance.sample(names, min(len(names), 2)):
            try:
                found = subject.lab.read(**subject.scans[name])
            except TablestoreError as error:
                told += 1
                if path.rpartition("/")[2] not in str(error):
                    raise AssertionError(f"{where}: the error of {name} does not name the file: {error}") from error
            except Exception as error:
                raise AssertionError(f"{where}: {name} raised {type(error).__name__}: {error}") from error
            else:
                assert found == subject.expected[name], f"{where}: {name} gave wrong rows, silently"
    finally:
        store.overwrite(path, data)
    return [(kind, "told" if told else "harmless")]


@pytest.mark.deep
def test_the_files_are_sound_again_after_all_that(subjects: list[Subject]) -> None:
    for subject in subjects:
        for name, scan in subject.scans.items():
            assert subject.lab.read(**scan) == subject.expected[name]
