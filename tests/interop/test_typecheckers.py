"""What type checkers take is taken, and programs of users, as the documents show them, have no error in mypy and pyright."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import typed_uses

from tests.docs import pages

CONNECTORS = ("connectors/spark", "connectors/kafka", "connectors/duckdb")


def test_rows_of_every_kind_that_type_checkers_take_are_taken(tmp_path: Path) -> None:
    prices = typed_uses.made(str(tmp_path))
    typed_uses.rows_of_every_kind(prices, [{"item": "hat", "price": 1.5}])
    typed_uses.what_calls_give(prices)
    assert set(prices.scan().to_arrow()["item"].to_pylist()) == {"hat", "cap", "gum"}


@pytest.fixture
def programs(project: Path, tmp_path: Path) -> Path:
    """A folder with what users would have: the Python of the README and of the first page, and the uses above."""
    for page in ("README.md", "docs/index.md"):
        blocks = [block.code for block in pages.blocks(project / page) if block.language == "python"]
        (tmp_path / f"{Path(page).stem.lower()}.py").write_text("\n\n".join(blocks))
    (tmp_path / "uses.py").write_text(Path(typed_uses.__file__).read_text())
    return tmp_path


@pytest.mark.slow
def test_programs_of_users_have_no_type_error(interpreter: Callable[[str], Path], project: Path, programs: Path) -> None:
    checkers = interpreter("typecheckers")
    search = [str(project), *(str(project / part) for part in CONNECTORS)]
    # One environment that has the checkers, their stubs, and after these the packages of this one.
    both = programs / "environment"
    venv.create(both, symlinks=True)
    (packages,) = both.glob("lib/python*/site-packages")
    (theirs,) = checkers.parent.parent.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(f"{theirs}\n{sysconfig.get_path('purelib')}\n")
    names = sorted(path.name for path in programs.glob("*.py"))
    mypy = [both / "bin" / "python", "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", *names]
    check(mypy, programs, MYPYPATH=os.pathsep.join(search))
    settings = {"include": names, "typeCheckingMode": "standard", "pythonVersion": f"{sys.version_info[0]}.{sys.version_info[1]}"}
    settings["extraPaths"] = [*search, str(theirs), sysconfig.get_path("purelib")]
    (programs / "pyrightconfig.json").write_text(json.dumps(settings))
    check([checkers.parent / "basedpyright", "--project", "."], programs)


def check(command: Sequence[str | Path], folder: Path, **env: str) -> None:
    done = subprocess.run(command, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
