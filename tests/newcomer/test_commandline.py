"""A scripted first afternoon on the command line: what one types, and what one gets to read.

The cases are a table (commandline.toml), which is also a page of the documents. Each runs in a folder and a warehouse of its own.
"""

import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.support.commandline import Ran, run_command

CASES = tomllib.loads(Path(__file__).with_name("commandline.toml").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files and the warehouse that every case begins with a copy of."""
    folder = tmp_path_factory.mktemp("newcomer")
    for name, text in CASES["files"].items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("TABLESTORE_WAREHOUSE", "warehouse")
        for line in CASES["scene"].strip().splitlines():
            typed(line)
    return folder


@pytest.fixture(autouse=True)
def scene(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(folder, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    for name, value in {"TABLESTORE_WAREHOUSE": "warehouse", "COLUMNS": "400", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TABLESTORE_DEBUG", raising=False)


def typed(line: str, code: int = 0) -> Ran:
    program, *args = shlex.split(line)
    assert program == "tablestore"
    return run_command(*args, code=code)


def fits(said: str, shown: str) -> bool:
    """Whether ``said`` is what is ``shown`` in the table, in which … stands for more text. White space and frames do not count."""
    words = " ".join(re.sub(r"[│╭╮╰╯─]", " ", said).split())
    pattern = ".*".join(re.escape(" ".join(part.split())) for part in shown.split("…"))
    return re.fullmatch(rf"(Usage: .*? Error )?(Error: )?{pattern}", words) is not None


@pytest.mark.deep_after(16)
@pytest.mark.parametrize("case", CASES["use"], ids=lambda case: case["does"])
def test_a_use_gives_what_one_expects(case: dict[str, str]) -> None:
    *before, last = case["types"].splitlines()
    for line in before:
        typed(line)
    ran = typed(last)
    assert fits(ran.out, case["shows"]), f"found: {ran.out}"
    assert not ran.err


@pytest.mark.deep_after(23)
@pytest.mark.parametrize("case", CASES["mistake"], ids=lambda case: case["types"])
def test_a_mistake_gets_a_message_that_says_what_to_do(case: dict[str, str]) -> None:
    ran = typed(case["types"], code=int(case["returns"]))
    assert fits(ran.err, case["says"]), f"found: {ran.err}"
