"""A stream that runs for long holds no more than one that has just begun."""

import json
from pathlib import Path

import pytest

from tests.integration.spark.program import start

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("way", ["sink", "writer"])
def test_memory_after_five_hundred_batches_is_that_after_fifty(way: str, tmp_path: Path) -> None:
    process = start("streammemory.py", tmp_path, way)
    said, errors = process.communicate(timeout=3000)
    assert process.returncode == 0, errors[-6000:]
    found = {int(number): sizes for number, sizes in json.loads(said.splitlines()[-1]).items()}

    def least(of: str, around: int) -> float:
        """Of some measurements: what is garbage only for a moment counts in none of them."""
        return min(sizes[of] for number, sizes in found.items() if around - 40 < number <= around)

    for of in ("heap", "workers", "largest", "driver"):
        assert least(of, 500) < 1.1 * least(of, 60), (of, said)
