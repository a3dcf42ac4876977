"""Ray and Daft read the parts of a scan, by the recipes of the documents, in environments of their own."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.parametrize("name", ["ray", "daft"])
def test_the_recipe_of_the_documents_gives_the_rows_of_the_scan(
    name: str, interpreter: Callable[[str], Path], project: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [interpreter(name), Path(__file__).with_name("read_parts.py"), name, tmp_path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(project), "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-4000:]
