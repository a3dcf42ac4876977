"""The contracts find stores that break them, run as other people run them: from a folder of their own, by subclassing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

STORES = """
import pytest
from tablestore.errors import AlreadyExistsError
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.contracts.filestore import FileStoreContract, PublishContract


class Replaces(MemoryFileStore):
    def write(self, path, data):
        self.overwrite(path, data)


class LooksAndWrites(MemoryFileStore):
    def publish_if_absent(self, path, data):
        there = self.exists(path)
        self.overwrite(path, data)
        return not there


class ListsUnsorted(MemoryFileStore):
    def list(self, directory, prefix=""):
        return super().list(directory, prefix)[::-1]


class TestReplaces(FileStoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return Replaces(tmp_path.name)


class TestListsUnsorted(FileStoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return ListsUnsorted(tmp_path.name)


class TestLooksAndWrites(PublishContract):
    @pytest.fixture
    def store(self, tmp_path):
        return LooksAndWrites(tmp_path.name)
"""


def run(folder: Path, *chosen: str) -> str:
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(folder),
        "-rf",
        *chosen,
        ".",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


@pytest.mark.deep
def test_each_broken_store_fails_the_test_of_what_it_breaks(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(STORES)
    printed = run(tmp_path, "-k", "taken or sorted or takes")
    failed = set(re.findall(r"^FAILED test_mine\.py::(\w+::\w+)", printed, re.MULTILINE))
    assert {
        "TestReplaces::test_write_refuses_a_name_that_is_taken_and_keeps_the_content",
        "TestListsUnsorted::test_a_listing_is_sorted_fresh_and_one_level_deep",
        "TestLooksAndWrites::test_publish_takes_a_free_name_and_no_other",
    } <= failed, printed
    assert "assert b'yours' == b'mine'" in printed, "a failure shows the values that it compared"


@pytest.mark.deep
def test_the_guides_example_passes(tmp_path: Path, project: Path) -> None:
    page = (project / "docs" / "guides" / "testing.md").read_text()
    example = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert example is not None
    (tmp_path / "test_example.py").write_text(example[1])
    assert re.search(r"^\d+ passed", run(tmp_path, "-k", "published or written"), re.MULTILINE)
