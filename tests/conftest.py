"""What every test gets: hypothesis that can be replayed, services that are skipped by name, and groups for xdist.

A test that needs a service carries its marker (``spark``, ``interop``). Where the service is missing the test is
skipped with the reason; in CI (``CI`` is set) nothing is skipped, so a missing service shows as a failure.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.servers.postgres import FIX, PostgresServer, PostgresUnavailable
from tests.support.services import require_service
from tests.support.sql.received import Received, recording

IN_CI = bool(os.environ.get("CI"))

# No deadline: how long an example takes is the machine's business. A failing seed is printed as a
# `@reproduce_failure` line; in CI the examples are the same in every run.
settings.register_profile("local", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if IN_CI else "local")

# Tables are published with fsync, so tests would wait for a disk longer than they compute.
MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 * 1024**3
STORES = Path(__file__).parent / "io"

# These start a Java process each; one worker runs all tests of a kind, so that there is one process of a kind.
ONE_WORKER = ("spark", "interop", "kafka", "s3")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_deep(items)
    missing = {} if IN_CI else {"spark": why_no_spark()}
    for item in items:
        for marker in ONE_WORKER:
            if item.get_closest_marker(marker) and not item.get_closest_marker("xdist_group"):
                item.add_marker(pytest.mark.xdist_group(marker))
        for marker, why in missing.items():
            if why and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=why))


def mark_deep(items: list[pytest.Item]) -> None:
    """Marks as ``deep`` the cases behind the first n of a test with ``deep_after(n)``, as ``slow`` those with ``slow_after(n)``;
    and as ``deep`` of a class with ``deep_but(names)`` all tests but these."""
    seen: Counter[tuple[str, Path, str]] = Counter()
    for item in items:
        test = item.nodeid.split("[")[0]
        if item.get_closest_marker("slow"):
            continue
        for marker, mark in (("deep_after", pytest.mark.deep), ("slow_after", pytest.mark.slow)):
            if (after := item.get_closest_marker(marker)) is not None:
                seen[marker, item.path, test] += 1
                if seen[marker, item.path, test] > after.args[0]:
                    item.add_marker(mark)
        if (but := item.get_closest_marker("deep_but")) is not None and test.rpartition("::")[2] not in but.args:
            item.add_marker(pytest.mark.deep)


def why_no_spark() -> str | None:
    """Why Spark cannot be started here, or None."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'managed-tablestore[spark]'"
    java_home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (java_home and Path(java_home, "bin", "java").is_file()):
        return "there is no Java: install a JDK 17 or later, or set JAVA_HOME"
    return None


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder of the test's own: in memory where there is room.

    It is on disk where stores are tested, beside services, and where PYTEST_DEBUG_TEMPROOT names the place (pytest keeps it there).
    """
    on_disk = "PYTEST_DEBUG_TEMPROOT" in os.environ or request.path.is_relative_to(STORES)
    if on_disk or any(request.node.get_closest_marker(name) for name in ONE_WORKER) or not has_room(MEMORY):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="tablestore-test-", dir=MEMORY, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def has_room(folder: Path) -> bool:
    """Whether tests can have their folders there, programs among them."""
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        return False
    there = os.statvfs(folder)
    return there.f_bavail * there.f_frsize >= ROOM_BYTES and not there.f_flag & os.ST_NOEXEC


@pytest.fixture(scope="session", autouse=True)
def _jvms_that_start_fast() -> Iterator[None]:
    """Spark in tests plans many small queries and runs none for long: the second compiler costs more than it brings."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
            patch.setenv(name, f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {os.environ.get(name, '')}".strip())
        yield


@pytest.fixture(scope="session", autouse=True)
def _locks_outside_of_the_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The locks of publisher slots lie in the user's cache folder; processes that tests start inherit this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def received() -> Iterator[Received]:
    with pytest.MonkeyPatch.context() as patch, recording(patch) as watched:
        yield watched


@pytest.fixture(autouse=True)
def _engines_receive_queries_over_planned_relations(request: pytest.FixtureRequest, received: Received) -> Iterator[None]:
    """Whatever a test does, no engine gets anything else."""
    if request.node.get_closest_marker("spark"):
        received.watch_spark()
    yield
    received.check()


@pytest.fixture(scope="session")
def project() -> Path:
    """The root folder of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def wheel_file(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the checkout, built with what is installed: no network."""
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", str(project), "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*command, "--wheel-dir", str(target)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real server, started by the first test that needs it."""
    try:
        if importlib.util.find_spec("psycopg") is None:
            raise PostgresUnavailable("the package psycopg is not installed")
        server = PostgresServer()
        server.start()
    except PostgresUnavailable as error:
        require_service(str(error), FIX, env=os.environ)
    yield server
    server.stop()
