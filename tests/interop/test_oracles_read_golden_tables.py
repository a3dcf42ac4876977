"""The oracles read the golden tables as ``expected.json`` says: this proves the encoding that all others rely on.

Known differences of the readers, each with its own test below or in the table:

    py_pk_wrong_delete_count  all released readers return the deleted row of a file whose _DELETE_ROW_COUNT is too low
    jv_*                      pypaimon cannot open manifests of Java 0.9 (it wants _VALUE_STATS_COLS); pure and native
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from canonical import comparable
from oracles import JavaOracle, Oracle, OracleError, PypaimonOracle

pytestmark = pytest.mark.interop

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "paimon"
TABLES = sorted(path.parent.name for path in GOLDEN.glob("*/expected.json"))
WRONG_DELETE_COUNT = "py_pk_wrong_delete_count"
BY_JAVA_09 = [name for name in TABLES if name.startswith("jv_")]


@pytest.fixture(scope="session")
def golden_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden tables laid out as a warehouse."""
    warehouse = tmp_path_factory.mktemp("golden")
    shutil.copytree(GOLDEN, warehouse / "golden.db", ignore=shutil.ignore_patterns("expected.json", "README.md"))
    return warehouse / "golden.db"


def expected_snapshots(name: str) -> dict[int, dict[str, Any]]:
    expected = json.loads((GOLDEN / name / "expected.json").read_text())
    return {int(snapshot): value for snapshot, value in expected["snapshots"].items()}


def assert_reads_as_expected(oracle: Oracle, warehouse: Path, name: str) -> None:
    for snapshot, expected in expected_snapshots(name).items():
        rows = oracle.read(warehouse / name, snapshot=snapshot)
        assert comparable(rows) == comparable(expected["rows"]), f"{oracle.name} {name} snapshot {snapshot}"


def test_there_are_golden_tables() -> None:
    assert len(TABLES) >= 27


@pytest.mark.parametrize("name", [name for name in TABLES if name != WRONG_DELETE_COUNT])
def test_java_reads_every_golden_snapshot(java: JavaOracle, golden_warehouse: Path, name: str) -> None:
    assert_reads_as_expected(java, golden_warehouse, name)


@pytest.mark.parametrize("name", [name for name in TABLES if name not in (WRONG_DELETE_COUNT, *BY_JAVA_09)])
def test_pure_pypaimon_reads_every_golden_snapshot(pypaimon_pure: PypaimonOracle, golden_warehouse: Path, name: str) -> None:
    assert_reads_as_expected(pypaimon_pure, golden_warehouse, name)


@pytest.mark.parametrize("name", [name for name in TABLES if name not in (WRONG_DELETE_COUNT, *BY_JAVA_09)])
def test_native_pypaimon_reads_every_golden_snapshot(pypaimon_native: PypaimonOracle, golden_warehouse: Path, name: str) -> None:
    assert_reads_as_expected(pypaimon_native, golden_warehouse, name)


def test_a_delete_count_too_low_brings_the_row_back_in_every_released_reader(
    java: JavaOracle, pypaimon_pure: PypaimonOracle, pypaimon_native: PypaimonOracle, golden_warehouse: Path
) -> None:
    snapshot, expected = max(expected_snapshots(WRONG_DELETE_COUNT).items())
    for oracle in (java, pypaimon_pure, pypaimon_native):
        rows = oracle.read(golden_warehouse / WRONG_DELETE_COUNT, snapshot=snapshot)
        assert set(comparable(rows)) > set(comparable(expected["rows"])), oracle.name


@pytest.mark.parametrize("name", BY_JAVA_09)
def test_pypaimon_cannot_open_tables_of_java_09(pypaimon_pure: PypaimonOracle, golden_warehouse: Path, name: str) -> None:
    with pytest.raises(OracleError):
        pypaimon_pure.read(golden_warehouse / name)


def test_java_delivers_the_changelog_of_golden_tables(java: JavaOracle, golden_warehouse: Path) -> None:
    checked = 0
    for name in TABLES:
        for snapshot, expected in expected_snapshots(name).items():
            if "changelog" in expected:
                changes = java.changes(golden_warehouse / name, from_snapshot=snapshot - 1, to_snapshot=snapshot)
                assert sorted(json.dumps(c, sort_keys=True) for c in changes) == sorted(
                    json.dumps(c, sort_keys=True) for c in expected["changelog"]
                ), f"{name} snapshot {snapshot}"
                checked += 1
    assert checked >= 5
