"""The documents keep their word: every block of Python, shell and SQL in them runs (see ``pages``)."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pages
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tablestore.testing.kafka import BrokerUnavailable, KafkaBroker, ensure_jars
from tests.support.s3 import FakeS3
from tests.support.services import require_service


@pytest.mark.deep
@pytest.mark.parametrize("page", pages.pages_with(None), ids=pages.name_of)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pages.run_page(page)


BARE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""


@pytest.mark.deep
@pytest.mark.parametrize("name", ["docs/index.md", "docs/tutorial.md"])
def test_the_first_pages_run_on_a_bare_install(name: str, tmp_path: Path, project: Path) -> None:
    stated = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    # The tutorial ends with the command.
    bare = packages_of([*stated["dependencies"], *stated["optional-dependencies"]["cli"]])
    others = packages_distributions().items()
    extra = {module for module, owners in others if not {"managed-tablestore", *bare} & set(map(canonicalize_name, owners))}
    assert {"pandas", "polars", "duckdb"} <= extra and not {"pyarrow", "numpy"} & extra
    (tmp_path / "without" / "page").mkdir(parents=True)
    (tmp_path / "without" / "sitecustomize.py").write_text(BARE.format(names=extra))
    path = os.pathsep.join(filter(None, (str(tmp_path / "without"), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, pages.__file__, str(project / name)],
        cwd=tmp_path / "without" / "page",
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


def packages_of(stated: Iterable[str]) -> set[str]:
    """The distributions that these requirements install, by their canonical names, without extras."""
    needed: set[str] = set()
    waiting = list(stated)
    while waiting:
        need = Requirement(waiting.pop())
        name = canonicalize_name(need.name)
        if name not in needed and (need.marker is None or need.marker.evaluate({"extra": ""})):
            needed.add(name)
            waiting += requires(name) or ()
    return needed


@pytest.mark.slow
@pytest.mark.parametrize("page", pages.pages_with("slow"), ids=pages.name_of)
def test_blocks_run_with_the_slow_ones(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pages.run_page(page, ("slow",))


@pytest.mark.slow
@pytest.mark.parametrize("page", pages.pages_with("s3"), ids=pages.name_of)
def test_blocks_run_with_s3(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("moto")
    monkeypatch.chdir(tmp_path)
    with FakeS3() as server:
        server.make_bucket("lake")
        pages.run_page(page, ("s3",), services={pages.S3: str(server.options["endpoint_url"])})


@pytest.mark.slow
@pytest.mark.parametrize("package", pages.PACKAGES)
def test_blocks_run_with_other_systems(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """These packages are no dependencies of ours: install one to run its blocks."""
    pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    for page in pages.pages_with(package):
        pages.run_page(page, (package,))


# One page in the fast tests: each starts a Spark of its own.
SPARK_PAGES = [pytest.param(page, marks=[] if page.name == "README.md" else pytest.mark.slow) for page in pages.pages_with("spark")]


@pytest.mark.deep
@pytest.mark.spark
@pytest.mark.parametrize("page", SPARK_PAGES, ids=lambda page: pages.name_of(page))
def test_blocks_run_with_spark(page: Path, tmp_path: Path) -> None:
    run_in_a_process_of_its_own(page, tmp_path, "--with", "spark")


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("page", pages.pages_with("kafka"), ids=pages.name_of)
def test_blocks_run_with_kafka(page: Path, tmp_path: Path, project: Path) -> None:
    try:
        jars = ensure_jars(project / ".cache")
    except BrokerUnavailable as error:
        require_service(str(error), "install a JDK 17 and Maven", env=os.environ)
    with KafkaBroker(jars, tmp_path / "kafka") as broker:
        folder = tmp_path / "page"
        folder.mkdir()
        run_in_a_process_of_its_own(page, folder, "--with", "kafka", "--at", f"{pages.BROKER}={broker.servers}")


def run_in_a_process_of_its_own(page: Path, folder: Path, *arguments: str) -> None:
    """As a reader does: with no other Spark session and no other client of a broker."""
    done = subprocess.run(
        [sys.executable, pages.__file__, str(page), *arguments],
        cwd=folder,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("page", pages.documents(), ids=pages.name_of)
def test_every_block_is_run_or_is_known_not_to_be(page: Path) -> None:
    text = page.read_text()
    found = pages.blocks(page)
    assert text.count("```") == 2 * len(found), "a block is not understood"
    for block in found:
        assert block.language in (*pages.RUN, *pages.SHOWN), f"line {block.line}: {block.language!r} is neither run nor shown"
        assert block.need in (None, *pages.NEEDS), f"line {block.line}: {block.need}"
    assert text.count("<!-- test:") == sum(block.need is not None for block in found), "a mark does not stand in front of a block"


def test_first_example_is_short_and_creates_upserts_reads_and_travels(project: Path) -> None:
    first = next(block for block in pages.blocks(project / "README.md") if block.language == "python")
    assert len(first.code.splitlines()) <= 10
    for call in ("create_table(", "upsert(", "scan(", "snapshot_id="):
        assert call in first.code
