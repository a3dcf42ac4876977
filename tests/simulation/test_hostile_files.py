"""Warehouses in which a stranger has changed a file: typed errors or no harm, in a process that watches what it does."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.hostile.process import SECRET

TIMEOUT_S = 3_000


def tree(folder: Path) -> dict[str, str]:
    """All that lies in a folder, links as what they are."""
    return {
        str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else _content(path)
        for path in sorted(folder.rglob("*"))
    }


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "a folder"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("seed", "count"),
    [(1, 20), *(pytest.param(seed, 330, marks=pytest.mark.slow) for seed in range(2, 6))],
)
def test_a_changed_file_gives_a_typed_error_or_does_no_harm(tmp_path: Path, seed: int, count: int) -> None:
    canary = tmp_path / "canary"
    canary.mkdir()
    (canary / "precious").write_text(SECRET)
    (canary / "folder").mkdir()
    (canary / "folder" / "precious").write_text(SECRET)
    pq.write_table(pa.table({"id": [1], "p": [SECRET], "v": [SECRET]}), canary / "secret.parquet")
    before = tree(canary)
    command = [sys.executable, "-m", "tests.support.hostile.process", str(tmp_path), *map(str, (seed, 0, count))]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    said = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    assert ended.returncode == 0, (said[-1:], ended.stderr[-2_000:])
    assert [one for one in said if "wrong" in one] == []
    assert said[-1] == {"done": count}
    assert tree(canary) == before
    assert {path.name for path in tmp_path.iterdir()} == {"canary", "wh", "template"}
