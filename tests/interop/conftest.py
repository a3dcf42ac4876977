"""The oracles as fixtures: one process of each for the whole session, started by the first test that uses it."""

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.services import require_service

# The helpers of this folder are plain modules; importlib mode does not put test folders on the path.
sys.path.insert(0, str(Path(__file__).parent))

import setup_oracles
from oracles import JavaOracle, Oracle, PypaimonOracle

_versions: dict[str, str] = {}


def _ensure(ensure: Callable[[], Path]) -> Path:
    try:
        return ensure()
    except setup_oracles.SetupError as error:
        require_service(str(error), setup_oracles.COMMAND, env=os.environ)


def _serve(oracle: Oracle) -> Iterator[Any]:
    hello = oracle.hello()
    _versions[oracle.name] = " ".join(f"{key} {value}" for key, value in hello.items() if key != "implementation")
    yield oracle
    oracle.close()


@pytest.fixture(scope="session")
def interpreter() -> Callable[[str], Path]:
    """The Python of an environment of its own, by its name."""
    return lambda name: _ensure(partial(setup_oracles.ensure_environment, name))


@pytest.fixture(scope="session")
def java() -> Iterator[JavaOracle]:
    """The Java core of Paimon."""
    yield from _serve(JavaOracle(_ensure(setup_oracles.ensure_java)))


@pytest.fixture(scope="session")
def pypaimon_pure(interpreter: Callable[[str], Path]) -> Iterator[PypaimonOracle]:
    """pypaimon, pure Python."""
    yield from _serve(PypaimonOracle(interpreter("pypaimon"), native=False))


@pytest.fixture(scope="session")
def pypaimon_native(interpreter: Callable[[str], Path]) -> Iterator[PypaimonOracle]:
    """pypaimon with its Rust code; where that would fall back to Python, the oracle refuses."""
    yield from _serve(PypaimonOracle(interpreter("pypaimon"), native=True))


@pytest.fixture(scope="session")
def spark_jar() -> Path:
    """Paimon for Spark."""
    return _ensure(setup_oracles.ensure_spark_jar)


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """An empty warehouse with a database ``db``; tables lie in ``warehouse / "db.db" / name``."""
    (tmp_path / "db.db").mkdir()
    return tmp_path


@pytest.fixture(scope="session")
def golden_tables(project: Path) -> Path:
    """The folder of the golden tables."""
    return project / "tests" / "golden" / "paimon"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says which implementations judged, and if the Java core is not the newest one that was asked for, why."""
    for name, version in _versions.items():
        terminalreporter.write_line(f"interop oracle {name}: {version}")
    if "java" in _versions:
        for reason in setup_oracles.java_passed_over():
            terminalreporter.write_line(f"  a newer Java core was passed over: {reason[:300]}")
