"""Every golden table reads to its expected rows at every snapshot.

Encoding of expected values: see ``tests/golden/paimon/README.md``.
"""

import json
import shutil
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts

GOLDEN = Path(__file__).parents[2] / "golden" / "paimon"
TABLES = sorted(path.name for path in GOLDEN.iterdir() if (path / "expected.json").exists())


def encoded(value: Any, data_type: pa.DataType) -> Any:
    """A value as ``expected.json`` spells it."""
    if value is None:
        return None
    if pa.types.is_timestamp(data_type):
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return moment.isoformat(timespec="microseconds") + ("Z" if data_type.tz else "")
    if isinstance(value, (Decimal, date, datetime)):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if pa.types.is_list(data_type):
        return [encoded(item, data_type.value_type) for item in value]
    if pa.types.is_map(data_type):
        return [[encoded(key, data_type.key_type), encoded(item, data_type.item_type)] for key, item in value]
    if pa.types.is_struct(data_type):
        return {field.name: encoded(value[field.name], field.type) for field in data_type}
    return value


def rows_of(table: pa.Table) -> list[str]:
    """Rows in any order, comparable."""
    rows = [{f.name: encoded(row[f.name], f.type) for f in table.schema} for row in table.to_pylist()]
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.mark.deep_after(9)
@pytest.mark.parametrize("name", TABLES)
def test_every_snapshot_of_a_golden_table_reads_to_its_expected_rows(name: str) -> None:
    expected = json.loads((GOLDEN / name / "expected.json").read_text())
    table = ts.open_table(str(GOLDEN / name))
    assert [str(snapshot.id) for snapshot in table.snapshots()] == list(expected["snapshots"])
    for snapshot_id, facts in expected["snapshots"].items():
        scan = table.scan(snapshot_id=int(snapshot_id))
        wanted = sorted(json.dumps(row, sort_keys=True) for row in facts["rows"])
        assert rows_of(scan.to_arrow()) == wanted, f"snapshot {snapshot_id}"
        assert scan.count() == len(wanted)
        snapshot = scan.snapshot
        assert snapshot is not None
        assert (snapshot.commit_kind, snapshot.schema_id) == (facts["commitKind"], facts["schemaId"])


def test_a_tag_reads_the_rows_and_columns_of_its_snapshot() -> None:
    table = ts.open_table(str(GOLDEN / "py_pk_evolved"))
    tags = [path.name.removeprefix("tag-") for path in (GOLDEN / "py_pk_evolved" / "tag").iterdir()]
    assert len(tags) == 1
    tagged = table.scan(tag=tags[0])
    assert tagged.snapshot_id is not None
    assert tagged.to_arrow().equals(table.scan(snapshot_id=tagged.snapshot_id).to_arrow())


@pytest.mark.parametrize("name", ["py_pk_postpone"])
def test_writing_onto_what_is_only_read_is_refused_and_changes_nothing(name: str, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / name, tmp_path / name)
    schema = tmp_path / name / "schema" / "schema-0"
    schema.write_text(schema.read_text().replace('"bucket": "-2"', '"bucket": "-2", "changelog-producer": "input"'))
    table = ts.open_table(str(tmp_path / name))
    before = len(table.snapshots())
    with pytest.raises(ts.UnsupportedError, match="changelog-producer = input"):
        table.upsert(table.scan().to_arrow())
    assert len(table.snapshots()) == before


# -- changes

KEYED = [name for name in TABLES if name.split("_")[1] == "pk"]


def _snapshots(name: str) -> dict[int, dict[str, Any]]:
    expected = json.loads((GOLDEN / name / "expected.json").read_text())
    return {int(snapshot_id): facts for snapshot_id, facts in expected["snapshots"].items()}


def _changes(table: ts.Table, start: int, stop: int) -> list[list[Any]]:
    rows = table.changes(start, stop).to_arrow()
    fields = [field for field in rows.schema if field.name != "_row_kind"]
    return [[row["_row_kind"], {f.name: encoded(row[f.name], f.type) for f in fields}] for row in rows.to_pylist()]


WITH_CHANGELOG = [name for name in TABLES if any("changelog" in facts for facts in _snapshots(name).values())]


def test_there_are_golden_tables_of_each_producer() -> None:
    assert {"jv_pk_input", "jv_pk_lookup", "jv_pk_full_compaction", "py_pk_changelog_input"} <= set(WITH_CHANGELOG)


@pytest.mark.parametrize("name", WITH_CHANGELOG)
def test_the_changes_of_each_snapshot_are_those_of_its_changelog_files_in_their_order(name: str) -> None:
    table = ts.open_table(str(GOLDEN / name))
    for snapshot_id, facts in _snapshots(name).items():
        assert _changes(table, snapshot_id - 1, snapshot_id) == facts.get("changelog", []), f"snapshot {snapshot_id}"
        assert table.changes(snapshot_id - 1, snapshot_id).count() == len(facts.get("changelog", []))


@pytest.mark.deep_after(15)
@pytest.mark.parametrize("name", KEYED)
def test_changes_from_the_beginning_add_up_to_the_rows_of_each_snapshot(name: str) -> None:
    table = ts.open_table(str(GOLDEN / name))
    producer = table.options().get("changelog-producer", "none")
    exact = producer != "input"
    key, newest = table.primary_key, table.table_schema.id
    state: dict[str, Any] = {}
    for snapshot_id, facts in _snapshots(name).items():
        for kind, row in _changes(table, snapshot_id - 1, snapshot_id):
            place = json.dumps([row[column] for column in key])
            if kind in ("-U", "-D"):
                removed = state.pop(place, None)
                assert not exact or removed == row, f"snapshot {snapshot_id}: {kind} {row}, there was {removed}"
            else:
                assert not exact or place not in state, f"snapshot {snapshot_id}: {kind} {row}, there was {state.get(place)}"
                state[place] = row
        # Changes have the columns of today.
        compared = (producer in ("none", "input") or facts["commitKind"] == "COMPACT") and facts["schemaId"] == newest
        if compared:
            found = sorted(json.dumps(row, sort_keys=True) for row in state.values())
            assert found == sorted(json.dumps(row, sort_keys=True) for row in facts["rows"]), f"snapshot {snapshot_id}"


@pytest.mark.parametrize("name", [name for name in TABLES if "append" in name])
def test_the_changes_of_an_append_table_are_its_rows(name: str) -> None:
    table = ts.open_table(str(GOLDEN / name))
    for snapshot_id, facts in _snapshots(name).items():
        rows = [row for kind, row in _changes(table, 0, snapshot_id) if kind == "+I"]
        assert sorted(json.dumps(row, sort_keys=True) for row in rows) == sorted(
            json.dumps(r, sort_keys=True) for r in facts["rows"]
        )
