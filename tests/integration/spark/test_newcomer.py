"""A scripted first afternoon in Spark: ordinary uses work, and ordinary mistakes end in a message of ours.

The cases are a table (tests/newcomer/spark.toml), which is also a page of the documents. Each runs in a warehouse of its own.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CASES = tomllib.loads((Path(__file__).parents[2] / "newcomer" / "spark.toml").read_text())


@pytest.fixture
def scene(spark: Any, tmp_path: Path) -> Iterator[dict[str, Any]]:
    names: dict[str, Any] = {"spark": spark, "WAREHOUSE": str(tmp_path / "warehouse")}
    exec(CASES["scene"], names)
    yield names
    spark.sql("DROP TABLE IF EXISTS phantom")


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("case", CASES["use"], ids=lambda case: case["does"])
def test_a_use_gives_what_one_expects(case: dict[str, str], scene: dict[str, Any]) -> None:
    exec(case["code"], scene)
    assert eval(case["then"], scene)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("case", CASES["mistake"], ids=lambda case: case["code"])
def test_a_mistake_ends_in_a_message_of_ours_and_one_frame(case: dict[str, str], scene: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=r"\S") as caught:
        exec(case["code"], scene)
    said = str(caught.value)
    pattern = ".*".join(re.escape(part) for part in case["says"].split("…"))
    assert re.search(pattern, said, re.DOTALL), f"found: {said}"
    assert said.count('  File "') <= 1, f"found: {said}"
