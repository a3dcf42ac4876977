"""Random interleavings of writers, readers and an expirer: nothing acknowledged is lost, doubled, or on a dead history."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tablestore.io.filestore import FileStore
from tablestore.io.local import LocalFileStore
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.night.schedules import Play, Report, UnsettledPlay

CHUNK = 25


def play(seeds: range, files: Path, *, ambiguous: float, local: bool = False, **options: int) -> list[Report]:
    reports = []
    for seed in seeds:
        where = files / str(seed)
        store: FileStore = LocalFileStore(where) if local else MemoryFileStore(f"schedules{where}")
        reports.append(Play(seed, store, ambiguous=ambiguous, **options).run())
    return reports


def total(reports: list[Report], what: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for report in reports:
        found.update(getattr(report, what))
    return found


@pytest.mark.deep
@pytest.mark.parametrize("chunk", range(5))
def test_paused_writers_lose_nothing(chunk: int, tmp_path: Path) -> None:
    reports = play(range(chunk * CHUNK, (chunk + 1) * CHUNK), tmp_path, ambiguous=0)
    outcomes = total(reports, "outcomes")
    assert outcomes["landed"] > 4 * CHUNK
    assert outcomes["expired"] > CHUNK


@pytest.mark.deep
@pytest.mark.parametrize("chunk", range(5))
def test_ambiguous_publishes_lose_and_double_nothing(chunk: int, tmp_path: Path) -> None:
    first = 10_000 + chunk * CHUNK
    reports = play(range(first, first + CHUNK), tmp_path, ambiguous=0.4)
    faults = total(reports, "faults")
    assert sum(faults.values()) >= 2 * CHUNK and len(faults) == 3


@pytest.mark.deep
def test_schedules_on_local_files(tmp_path: Path) -> None:
    play(range(20_000, 20_008), tmp_path, ambiguous=0.2, local=True)


def test_the_same_seed_gives_the_same_trace(tmp_path: Path) -> None:
    one, other = (play(range(77, 78), tmp_path / name, ambiguous=0.3)[0] for name in ("one", "other"))
    assert one.trace == other.trace
    assert len(one.trace) > 100


DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "2"}
VECTORS = {"deletion-vectors.enabled": "true", "compaction.min.file-num": "2"}


def play_vectors(seeds: range, files: Path, ambiguous: float) -> dict[str, Counter[str]]:
    """Dynamic buckets; marked rows with a compactor beside them; merge on write with one, and with writers that compact."""
    found: dict[str, Counter[str]] = {}
    shapes: dict[str, tuple[type[Play], dict[str, Any]]] = {
        "dynamic": (Play, {"keyed": True, "options": DYNAMIC}),
        "append": (Play, {"keyed": False, "options": VECTORS, "compactions": 3}),
        "compactor": (UnsettledPlay, {"keyed": True, "options": VECTORS, "compactions": 3}),
        "writers": (UnsettledPlay, {"keyed": True, "options": {**VECTORS, "write-only": "false"}}),
    }
    for name, (kind, how) in shapes.items():
        stores = [MemoryFileStore(f"schedules{files}/{name}/{seed}") for seed in seeds]
        reports = [kind(seed, store, ambiguous=ambiguous, **how).run() for seed, store in zip(seeds, stores, strict=True)]
        found[name] = total(reports, "outcomes")
    return found


@pytest.mark.deep
@pytest.mark.parametrize("ambiguous", [0, 0.3])
def test_vectors_and_dynamic_buckets_lose_and_double_nothing(ambiguous: float, tmp_path: Path) -> None:
    first = 30_000 + int(ambiguous * 1000)
    outcomes = play_vectors(range(first, first + 16), tmp_path, ambiguous)
    assert all(found["landed"] > 24 for found in outcomes.values())
    assert outcomes["append"]["compacted"] + outcomes["append"]["dropped"] > 3


@pytest.mark.parametrize("seed", [200_018, 200_284])
def test_a_compaction_that_only_moves_files_leaves_no_snapshot_beside_the_history(seed: int, tmp_path: Path) -> None:
    # It sleeps while others commit and expire past it, and adds no file by which it could be recognised.
    store = MemoryFileStore(f"schedules{tmp_path}/{seed}")
    UnsettledPlay(seed, store, keyed=True, options={**VECTORS, "write-only": "false"}).run()


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(10))
def test_many_schedules_of_vectors_and_dynamic_buckets(chunk: int, tmp_path: Path) -> None:
    first = 200_000 + chunk * 50
    play_vectors(range(first, first + 50), tmp_path, 0.1 * (chunk % 5))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(10))
def test_many_schedules(chunk: int, tmp_path: Path) -> None:
    first = 100_000 + chunk * 500
    play(range(first, first + 500), tmp_path, ambiguous=0.1 * (chunk % 5), writers=2 + chunk % 4, commits=3)
