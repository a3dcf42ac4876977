"""A scripted first afternoon: ordinary uses work, and ordinary mistakes get a message that says what to do.

The cases are a table (python.toml), which is also a page of the documents. Each runs in a warehouse of its own.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts

CASES = tomllib.loads(Path(__file__).with_name("python.toml").read_text())


@pytest.fixture
def scene(request: pytest.FixtureRequest) -> dict[str, Any]:
    names: dict[str, Any] = {"WAREHOUSE": f"memory://newcomer-{abs(hash(request.node.name))}"}
    exec(CASES["scene"], names)
    return names


@pytest.mark.deep_after(23)
@pytest.mark.parametrize("case", CASES["use"], ids=lambda case: case["does"])
def test_a_use_gives_what_one_expects(case: dict[str, str], scene: dict[str, Any]) -> None:
    exec(case["code"], scene)
    assert eval(case["then"], scene)


@pytest.mark.deep_after(32)
@pytest.mark.parametrize("case", CASES["mistake"], ids=lambda case: case["code"])
def test_a_mistake_gets_an_error_of_ours_that_says_what_to_do(case: dict[str, str], scene: dict[str, Any]) -> None:
    with pytest.raises(getattr(ts, case["error"])) as caught:
        exec(case["code"], scene)
    assert caught.value.kind == case["kind"]
    pattern = ".*".join(re.escape(part) for part in case["says"].split("…"))
    assert re.fullmatch(pattern, str(caught.value), re.DOTALL), f"found: {caught.value}"


def test_no_secret_is_in_a_message() -> None:
    assert not [case for case in CASES["mistake"] if "s3cr3t" in case["says"]]
