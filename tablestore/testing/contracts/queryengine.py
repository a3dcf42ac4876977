"""Holds a query engine to what it promises: tests to subclass.

    class TestMine(QueryEngineContract):
        @pytest.fixture(scope="module")
        def engine(self):
            return MyEngine()

Each test gets a warehouse of its own; the engine may be shared by them.
"""

import datetime as dt
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore.distributed.change import pin_change
from tablestore.distributed.read import ReadPin, pin_read
from tablestore.distributed.spec import TableSpec
from tablestore.environment.engine import (
    BoundQuery,
    ChangeTarget,
    ConnectorRelation,
    InsertTarget,
    ManagedRelation,
    QueryEngine,
    QueryRelation,
    Relation,
    RowsRelation,
)
from tablestore.errors import InvalidInputError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.format.snapshot import CommitKind
from tablestore.sql.source import Edit, Span
from tablestore.store.commit.conflict import StalePlan
from tablestore.table.catalog import Catalog
from tablestore.table.opening import open_catalog
from tablestore.table.table import Table
from tablestore.table.write.rowchange import RowChange
from tablestore.tableenvironment import TableEnvironment
from tablestore.types.evolution.schemachanges import ChangeType, RenameColumn
from tablestore.types.filter.filters import parse_filter

_MOST_LONG = 2**63 - 1
_MOST_DIGITS = Decimal(10**38 - 1)
# Ends of the years 1 and 9999, in microseconds.
_FIRST_MOMENT, _LAST_MOMENT = -62_135_596_800_000_000, 253_402_300_799_999_999

ORDERS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("price", pa.float64()), ("note", pa.string())])


def bound(text: str, *relations: Relation, parameters: Mapping[str, Any] | Sequence[Any] = ()) -> BoundQuery:
    """A query whose ``{0}``, ``{1}``, … stand for the relations."""
    edits = [Edit(span=Span(*place.span()), relation=int(place[1])) for place in re.finditer(r"\{(\d)\}", text)]
    return BoundQuery(text=text, relations=relations, edits=tuple(edits), parameters=parameters)


def spec_of(table: Table) -> TableSpec:
    """The specification by which other processes find a table."""
    return TableSpec(location=table.location, storage_options={})


def pin(table: Table, **when: Any) -> ReadPin:
    """A table as it is, or as it was."""
    return pin_read(table, spec_of(table), **when)


def target_of(table: Table, change: RowChange) -> ChangeTarget:
    """The target of a change of a table as it is."""
    pin = pin_change(table, spec_of(table), change, table.context.snapshots.latest())
    return ChangeTarget(table=table, pin=pin, change=change)


def managed(
    table: Table, *, name: str = "t", snapshot_id: int | None = None, filter: str | None = None, **pruned: Any
) -> ManagedRelation:
    """A relation of a table."""
    relation = ManagedRelation(name=name, table=table, pin=pin(table, snapshot_id=snapshot_id), **pruned)
    return replace(relation, filter=parse_filter(filter, relation.schema.fields))


def rows_of(engine: QueryEngine, query: BoundQuery) -> list[dict[str, Any]]:
    """The rows of a query."""
    return engine.query(query).to_reader().read_all().to_pylist()  # type: ignore[no-any-return]


class QueryEngineContract:
    """The rows that tablestore's own scans give, whatever reads the files; errors of tablestore's."""

    has_time = True
    """False for an engine that has no type TIME, and refuses columns of it by name."""

    @pytest.fixture
    def engine(self) -> Iterator[QueryEngine]:
        """The engine."""
        raise NotImplementedError("override the fixture `engine`")

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        """A catalog with the database ``shop``."""
        catalog = open_catalog(str(tmp_path / "warehouse"))
        catalog.create_database("shop")
        return catalog

    @pytest.fixture
    def orders(self, catalog: Catalog) -> Table:
        """Ten rows in two buckets, compacted; then row 5 was replaced and row 6 deleted."""
        table = catalog.create_table("shop.orders", schema=ORDERS, primary_key=["id"], options={"bucket": "2"})
        table.upsert(orders_rows(range(10)))
        table.compact(full=True)
        table.upsert(pa.table({"id": [5], "price": [float("nan")], "note": ["replaced"]}, schema=ORDERS))
        table.delete(pa.table({"id": [6]}))
        return table

    # -- reading

    def test_rows_that_were_replaced_or_deleted_do_not_come_out(self, engine: QueryEngine, orders: Table) -> None:
        found = rows_of(engine, bound("SELECT id, note FROM {0} AS o WHERE id >= 4 ORDER BY id", managed(orders)))
        assert [(row["id"], row["note"]) for row in found] == [(4, "n4"), (5, "replaced"), (7, "n7"), (8, "n8"), (9, "n9")]

    @pytest.mark.parametrize("shape", ["append", "compacted", "overlapping"])
    def test_every_type_comes_through_with_the_ends_of_its_range(self, engine: QueryEngine, catalog: Catalog, shape: str) -> None:
        rows = edge_rows() if self.has_time else edge_rows().drop_columns(["time"])
        if shape == "append":
            table = catalog.create_table("shop.edges", schema=rows.schema)
            table.append(rows)
        else:
            table = catalog.create_table("shop.edges", schema=rows.schema, primary_key=["id"], options={"bucket": "1"})
            table.upsert(rows)
            table.compact(full=True)
            if shape == "overlapping":
                table.upsert(rows.slice(1, 2))
        made = engine.query(bound("SELECT * FROM {0} AS e ORDER BY id", managed(table)))
        for found in (made.to_reader().read_all(), made.streamed().read_all()):
            assert found.schema.types == [in_microseconds(field.type) for field in rows.schema]
            for name in rows.schema.names:
                # As text, because NaN is not equal to itself and -0.0 is equal to 0.0.
                assert repr(found[name].to_pylist()) == repr(rows[name].to_pylist()), name

    def test_a_type_that_the_engine_lacks_is_refused_by_name_and_other_columns_are_read(
        self, engine: QueryEngine, catalog: Catalog
    ) -> None:
        rows = edge_rows().select(["id", "time"])
        table = catalog.create_table("shop.times", schema=rows.schema)
        table.append(rows)
        numbers = bound("SELECT id FROM {0} AS e ORDER BY id", managed(table, columns=("id",)))
        assert [row["id"] for row in rows_of(engine, numbers)] == [1, 2, 3, 4]
        everything = bound("SELECT * FROM {0} AS e ORDER BY id", managed(table))
        if self.has_time:
            assert rows_of(engine, everything) == rows.to_pylist()
            return
        with pytest.raises(UnsupportedError, match="TIME") as refused:
            rows_of(engine, everything)
        assert refused.value.kind == "engine"

    def test_conditions_on_floats_see_nan_as_the_greatest_value_and_one_zero(self, engine: QueryEngine, catalog: Catalog) -> None:
        table = catalog.create_table("shop.floats", schema=pa.schema([("id", pa.int64()), ("x", pa.float64())]))
        table.append(pa.table({"id": [1, 2, 3, 4, 5], "x": [1.0, float("nan"), -0.0, float("-inf"), None]}))
        for condition, ids in (
            ("x > 100", [2]),
            ("x = CAST('NaN' AS DOUBLE)", [2]),
            ("x = 0", [3]),
            ("x < -1", [4]),
            ("x IS NULL", [5]),
        ):
            found = rows_of(engine, bound(f"SELECT id FROM {{0}} AS f WHERE {condition} ORDER BY id", managed(table)))
            assert [row["id"] for row in found] == ids, condition

    @pytest.mark.parametrize("keyed", [False, True])
    def test_conditions_on_text_see_which_values_are_null(self, engine: QueryEngine, catalog: Catalog, keyed: bool) -> None:
        schema = pa.schema([("id", pa.int64()), ("t", pa.string()), ("b", pa.binary())])
        table = catalog.create_table(
            "shop.texts", schema=schema, primary_key=["id"] if keyed else [], options={"bucket": "1"} if keyed else {}
        )
        rows = pa.table({"id": [1, 2, 3, 4], "t": ["yes", None, "yes", "yes"], "b": [None, b"1", b"1", None]}, schema=schema)
        if keyed:
            table.upsert(rows)
            table.compact(full=True)
        else:
            table.append(rows)
        for condition, ids in (
            ("t IS NULL", [2]),
            ("t IS NOT NULL", [1, 3, 4]),
            ("t <=> NULL", [2]),
            ("coalesce(t, 'no') = 'no'", [2]),
            ("t = 'yes' OR t IS NULL", [1, 2, 3, 4]),
            ("t <> 'yes'", []),
            ("b IS NULL", [1, 4]),
            ("b IS NULL AND t = 'yes'", [1, 4]),
        ):
            found = rows_of(engine, bound(f"SELECT id, t FROM {{0}} AS f WHERE {condition} ORDER BY id", managed(table)))
            assert found == [{"id": one, "t": None if one == 2 else "yes"} for one in ids], condition

    def test_a_relation_that_is_read_twice_gives_the_same_rows_twice(self, engine: QueryEngine, orders: Table) -> None:
        joined = "SELECT count(*) AS n FROM {0} AS a JOIN {1} AS b ON a.id = b.id"
        assert rows_of(engine, bound(joined, managed(orders), managed(orders, name="b"))) == [{"n": 9}]
        twice = "WITH c AS (SELECT * FROM {0} AS o) SELECT count(*) AS n FROM (SELECT id FROM c UNION ALL SELECT id FROM c) AS u"
        assert rows_of(engine, bound(twice, managed(orders))) == [{"n": 18}]
        correlated = "SELECT id FROM {0} AS a WHERE id > (SELECT avg(b.id) FROM {1} AS b WHERE b.id <> a.id) ORDER BY id"
        assert [row["id"] for row in rows_of(engine, bound(correlated, managed(orders), managed(orders, name="b")))] == [5, 7, 8, 9]

    def test_each_reading_runs_the_query_again_and_readers_may_be_open_at_once(self, engine: QueryEngine, orders: Table) -> None:
        rows = engine.query(bound("SELECT id FROM {0} AS o ORDER BY id", managed(orders)))
        first = rows.to_reader()
        batch = first.read_next_batch()
        assert rows.schema == batch.schema
        second = rows.to_reader().read_all()
        assert second["id"].to_pylist() == [0, 1, 2, 3, 4, 5, 7, 8, 9]
        assert pa.Table.from_batches([batch, *first]).equals(second)
        streamed = rows.streamed()
        assert streamed.schema == rows.schema and streamed.read_all().equals(second)

    def test_a_relation_is_read_at_its_snapshot(self, engine: QueryEngine, orders: Table) -> None:
        then = managed(orders, snapshot_id=1)
        orders.upsert(orders_rows(range(100, 120)))
        counted = "SELECT count(*) AS n, max(id) AS last FROM {0} AS o"
        assert rows_of(engine, bound(counted, then)) == [{"n": 10, "last": 9}]
        assert rows_of(engine, bound(counted, managed(orders))) == [{"n": 29, "last": 119}]
        old_and_new = "SELECT a.note AS then, b.note AS now FROM {0} AS a JOIN {1} AS b USING (id) WHERE a.note <> b.note"
        assert rows_of(engine, bound(old_and_new, then, managed(orders, name="b"))) == [{"then": "n5", "now": "replaced"}]

    def test_columns_and_a_filter_leave_out_only_what_the_query_does_not_use(self, engine: QueryEngine, orders: Table) -> None:
        pruned = managed(orders, columns=("id",), filter="id = 5 OR id = 8")
        assert rows_of(engine, bound("SELECT id FROM {0} AS o WHERE id IN (5, 8) ORDER BY id", pruned)) == [{"id": 5}, {"id": 8}]
        assert rows_of(engine, bound("SELECT count(*) AS n FROM {0} AS o", managed(orders, columns=()))) == [{"n": 9}]

    def test_a_table_without_a_snapshot_has_no_rows(self, engine: QueryEngine, catalog: Catalog) -> None:
        table = catalog.create_table("shop.empty", schema=ORDERS, primary_key=["id"])
        assert rows_of(engine, bound("SELECT count(*) AS n, max(note) AS m FROM {0} AS e", managed(table))) == [{"n": 0, "m": None}]

    def test_deleted_rows_of_partitions_and_older_schemas_are_read_as_a_scan_reads_them(
        self, engine: QueryEngine, catalog: Catalog
    ) -> None:
        schema = pa.schema([("day", pa.string()), ("id", pa.int32()), ("note", pa.string())])
        table = catalog.create_table(
            "shop.visits", schema=schema, partition_by=["day"], options={"deletion-vectors.enabled": "true"}
        )
        days = ["2024-01-01", "a=b", "ü *?["]
        table.append(pa.table({"day": days * 4, "id": range(12), "note": ["x"] * 12}, schema=schema))
        table.delete("id = 4")
        catalog.alter_table("shop.visits", [RenameColumn("note", to="remark"), ChangeType("id", pa.int64())])
        table = table.refresh()
        table.append(pa.table({"day": ["2024-01-01"], "id": [2**40], "remark": ["late"]}))
        found = engine.query(bound("SELECT * FROM {0} AS v ORDER BY id", managed(table))).to_reader().read_all()
        assert found.to_pylist() == table.scan().to_arrow().sort_by("id").to_pylist()
        one = "SELECT id FROM {0} AS v WHERE day = 'a=b' ORDER BY id"
        assert [row["id"] for row in rows_of(engine, bound(one, managed(table, filter="day = 'a=b'")))] == [1, 7, 10]

    def test_views_rows_of_tablestore_and_files_are_relations_too(self, engine: QueryEngine, orders: Table, tmp_path: Path) -> None:
        pq.write_table(pa.table({"id": [5, 6], "label": ["five", "six"]}), tmp_path / "labels.parquet")
        files = ConnectorRelation(name="l", connector="filesystem", options={"path": str(tmp_path / "labels.parquet")})
        view = QueryRelation(name="v", query=bound("SELECT id, note FROM {0} AS o WHERE id > 4", managed(orders)))
        changes = RowsRelation(name="c", rows=orders.changes(2))
        text = (
            "SELECT v.id, v.note, l.label, c._row_kind AS kind "
            "FROM {0} AS v JOIN {1} AS l ON v.id = l.id JOIN {2} AS c ON v.id = c.id WHERE c._row_kind <> '-U'"
        )
        wanted = {"id": 5, "note": "replaced", "label": "five", "kind": "+U"}
        assert rows_of(engine, bound(text, view, files, changes)) == [wanted]

    def test_parameters_keep_their_types(self, engine: QueryEngine, orders: Table) -> None:
        values = {
            "i": 2**40,
            "d": Decimal("12.50"),
            "s": "it's :s ?",
            "t": dt.datetime(2024, 2, 29, 12, 30, 1, 5),
            "day": dt.date(1969, 12, 31),
            "b": True,
            "x": 0.1,
        }
        text = "SELECT :i AS i, :d AS d, :s AS s, :t AS t, :day AS day, :b AS b, :x AS x FROM {0} AS o WHERE id = :n"
        assert rows_of(engine, bound(text, managed(orders), parameters={**values, "n": 3})) == [values]
        by_place = bound("SELECT id FROM {0} AS o WHERE id > ? AND note <> ? ORDER BY id", managed(orders), parameters=[7, "n8"])
        assert rows_of(engine, by_place) == [{"id": 9}]
        inner = bound("SELECT id FROM {0} AS o WHERE id > :low", managed(orders), parameters={"low": 7, "but": 8})
        outer = bound(
            "SELECT v.id FROM {0} AS v WHERE v.id <> :but", QueryRelation(name="v", query=inner), parameters=inner.parameters
        )
        assert rows_of(engine, outer) == [{"id": 9}]

    # -- writing

    def test_the_rows_of_a_query_become_one_snapshot(self, engine: QueryEngine, orders: Table) -> None:
        query = bound("SELECT id + 5 AS id, note FROM {0} AS o WHERE id < 3", managed(orders))
        before = len(orders.snapshots())
        snapshot = engine.insert(query, InsertTarget(table=orders, spec=spec_of(orders)))
        assert [one for one in orders.snapshots()[before:] if one.commit_kind is not CommitKind.COMPACT] == [snapshot]
        found = orders.scan(filter="id >= 5 AND id <= 7").to_arrow().sort_by("id").to_pylist()
        # Columns that the rows lack are NULL.
        assert [(row["id"], row["price"], row["note"]) for row in found] == [(5, None, "n0"), (6, None, "n1"), (7, None, "n2")]

    def test_no_rows_make_no_snapshot(self, engine: QueryEngine, orders: Table) -> None:
        before = orders.snapshots()[-1].id
        nothing = bound("SELECT * FROM {0} AS o WHERE id < 0", managed(orders))
        assert engine.insert(nothing, InsertTarget(table=orders, spec=spec_of(orders))) is None
        assert orders.snapshots()[-1].id == before

    def test_rows_with_kinds_are_changes(self, engine: QueryEngine, orders: Table) -> None:
        query = bound("SELECT *, CASE WHEN id = 1 THEN '-D' ELSE '+I' END AS _row_kind FROM {0} AS o WHERE id < 3", managed(orders))
        engine.insert(query, InsertTarget(table=orders, spec=spec_of(orders)))
        assert sorted(orders.scan().to_arrow()["id"].to_pylist()) == [0, 2, 3, 4, 5, 7, 8, 9]

    def test_a_numbered_insert_is_applied_once(self, engine: QueryEngine, orders: Table, catalog: Catalog) -> None:
        log = catalog.create_table("shop.log", schema=pa.schema([("id", pa.int64())]))
        target = InsertTarget(table=log, spec=spec_of(log), commit_user="job", commit_identifier=7)
        query = bound("SELECT id FROM {0} AS o", managed(orders))
        first = engine.insert(query, target)
        again = engine.insert(query, target)
        assert first is not None
        assert again == first
        assert log.scan().count() == 9

    def test_an_overwrite_replaces_what_it_names(self, engine: QueryEngine, catalog: Catalog) -> None:
        schema = pa.schema([("day", pa.string()), ("id", pa.int64())])

        def fresh(name: str) -> Table:
            table = catalog.create_table(f"shop.{name}", schema=schema, partition_by=["day"])
            table.append(pa.table({"day": ["mon", "tue", "wed"], "id": [1, 2, 3]}, schema=schema))
            return table

        def after(table: Table, **how: Any) -> list[tuple[str, int]]:
            query = bound("SELECT day, id + 10 AS id FROM {0} AS d WHERE day = 'tue'", managed(table))
            engine.insert(query, InsertTarget(table=table, spec=spec_of(table), **how))
            return sorted((row["day"], row["id"]) for row in table.scan().to_arrow().to_pylist())

        assert after(fresh("whole"), overwrite={}) == [("tue", 12)]
        assert after(fresh("named"), overwrite={"day": "tue"}) == [("mon", 1), ("tue", 12), ("wed", 3)]
        assert after(fresh("dynamic"), overwrite={}, dynamic=True) == [("mon", 1), ("tue", 12), ("wed", 3)]
        table = fresh("outside")
        with pytest.raises(InvalidInputError) as refused:
            after(table, overwrite={"day": "mon"})
        assert refused.value.kind == "outside-partition"
        assert table.scan().count() == 3

    def test_rows_that_do_not_fit_the_table_change_nothing(self, engine: QueryEngine, orders: Table) -> None:
        before = orders.snapshots()[-1].id
        nulls = "SELECT CAST(NULL AS BIGINT) AS id, price, note FROM {0} AS o"
        for query in ("SELECT id, note AS price, note FROM {0} AS o", nulls):
            with pytest.raises(TablestoreError):
                engine.insert(bound(query, managed(orders)), InsertTarget(table=orders, spec=spec_of(orders)))
        assert orders.snapshots()[-1].id == before

    # -- changing

    def test_a_query_changes_rows_of_a_keyed_table(self, engine: QueryEngine, orders: Table) -> None:
        change = RowChange(operation="MERGE", inserts=True, deletes=True, sets=("note",))
        text = (
            "SELECT '+U' AS _row_kind, id, price, concat(note, '!') AS note FROM {0} AS o WHERE id = 5 "
            "UNION ALL SELECT '-D', id, price, note FROM {0} AS o WHERE id IN (0, 1) "
            "UNION ALL SELECT '+I', id + 100, price, note FROM {0} AS o WHERE id = 9"
        )
        snapshot = engine.change(bound(text, managed(orders)), target_of(orders, change))
        assert snapshot is not None
        assert snapshot.operation == "MERGE"
        found = orders.scan().to_arrow().sort_by("id")
        assert found["id"].to_pylist() == [2, 3, 4, 5, 7, 8, 9, 109]
        assert found["note"].to_pylist()[3] == "replaced!"

    @pytest.mark.parametrize("vectors", ["true", "false"])
    def test_a_query_changes_rows_of_an_append_table_by_their_places(
        self, engine: QueryEngine, catalog: Catalog, vectors: str
    ) -> None:
        table = catalog.create_table("shop.heap", schema=ORDERS, options={"deletion-vectors.enabled": vectors})
        table.append(orders_rows(range(6)))
        table.append(orders_rows(range(3, 9)))
        for operation, text, ids in (
            ("DELETE", "SELECT '-D' AS _row_kind, t.* FROM {0} AS t WHERE id IN (3, 8)", [0, 1, 2, 4, 4, 5, 5, 6, 7]),
            (
                "UPDATE",
                "SELECT '+U' AS _row_kind, id + 10 AS id, price, note, _data_file, _row_position FROM {0} AS t WHERE id >= 5",
                [0, 1, 2, 4, 4, 15, 15, 16, 17],
            ),
        ):
            change = RowChange(operation=operation, deletes=operation == "DELETE", sets=("id",) * (operation == "UPDATE"))
            engine.change(bound(text, managed(table, positions=True)), target_of(table, change))
            assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ids
        assert table.scan(filter="id = 17").to_arrow()["note"].to_pylist() == ["n7"]

    def test_a_row_that_is_changed_twice_is_refused_and_a_change_of_nothing_is_no_snapshot(
        self, engine: QueryEngine, orders: Table
    ) -> None:
        change = RowChange(operation="UPDATE", sets=("note",))
        target = target_of(orders, change)
        twice = "SELECT '+U' AS _row_kind, id, price, 'x' AS note FROM {0} AS o WHERE id < 3"
        with pytest.raises(InvalidInputError) as refused:
            engine.change(bound(f"{twice} UNION ALL {twice}", managed(orders)), target)
        assert refused.value.kind == "second-match"
        assert engine.change(bound(f"{twice} AND id > 5", managed(orders)), target) is None
        assert orders.snapshots()[-1].id == target.pin.snapshot_id

    def test_a_change_of_rows_that_others_changed_meanwhile_is_planned_again(self, engine: QueryEngine, orders: Table) -> None:
        change = RowChange(operation="UPDATE", sets=("price",))
        target = target_of(orders, change)
        query = bound("SELECT '+U' AS _row_kind, id, price + 1 AS price, note FROM {0} AS o", managed(orders))
        orders.upsert(orders_rows([3]))
        before = orders.scan().to_arrow()
        with pytest.raises(StalePlan):
            engine.change(query, target)
        # As text: the prices have a NaN.
        assert repr(orders.scan().to_arrow().to_pylist()) == repr(before.to_pylist())

    # -- all else

    def test_a_query_that_is_wrong_is_refused_in_words_of_ours(self, engine: QueryEngine, orders: Table) -> None:
        for text, word in (
            ("SELECT nix FROM {0} AS o", "nix"),
            ("SELECT * FROM there_is_no_such_table AS x, {0} AS o", "there_is_no_such_table"),
            ("SELECT sum(id) + FROM {0} AS o", "FROM"),
            ("SELECT id FROM {0} AS o WHERE id > :missing", "missing"),
        ):
            with pytest.raises(InvalidInputError, match=word):
                rows_of(engine, bound(text, managed(orders)))
        with pytest.raises(TablestoreError, match="no_such_function"):
            rows_of(engine, bound("SELECT no_such_function(id) FROM {0} AS o", managed(orders)))
        with pytest.raises(UnsupportedError, match="carrier-pigeon"):
            rows_of(engine, bound("SELECT * FROM {0} AS o", ConnectorRelation(name="p", connector="carrier-pigeon", options={})))

    def test_a_damaged_file_is_an_error_that_names_it(self, engine: QueryEngine, orders: Table) -> None:
        for file in Path(orders.location).rglob("*.parquet"):
            file.write_bytes(b"PAR1 is all that is left")
        with pytest.raises(TablestoreError, match=r"data-.*parquet"):
            rows_of(engine, bound("SELECT sum(price) AS s FROM {0} AS o", managed(orders)))

    def test_a_flipped_bit_in_a_page_is_an_error_and_not_another_number(self, engine: QueryEngine, catalog: Catalog) -> None:
        table = catalog.create_table("shop.numbers", schema=pa.schema([("x", pa.int64())]), options={"file.compression": "none"})
        table.append(pa.table({"x": pa.array([7**20] * 500 + [1])}))
        (file,) = Path(table.location).rglob("*.parquet")
        data = bytearray(file.read_bytes())
        data[data.index((7**20).to_bytes(8, "little"))] ^= 1
        file.write_bytes(data)
        with pytest.raises(TablestoreError, match=file.name):
            rows_of(engine, bound("SELECT sum(x) AS s FROM {0} AS n", managed(table)))

    def test_a_cancelled_query_ends_where_it_runs(self, engine: QueryEngine, orders: Table) -> None:
        endless = bound(endless_text(14), managed(orders))
        running = engine.query(endless).to_reader()
        ended = threading.Event()

        def cancel_until_it_ends() -> None:
            # It may not have begun yet.
            while not ended.wait(0.05):
                engine.cancel()

        canceller = threading.Thread(target=cancel_until_it_ends)
        canceller.start()
        try:
            with pytest.raises(UnsupportedError) as stopped:
                running.read_all()
        finally:
            ended.set()
            canceller.join()
        assert stopped.value.kind == "cancelled"
        assert rows_of(engine, bound("SELECT count(*) AS n FROM {0} AS o", managed(orders))) == [{"n": 9}]

    def test_what_one_thread_runs_is_ended_alone(self, engine: QueryEngine, orders: Table) -> None:
        query = bound("SELECT count(*) AS n FROM {0} AS o", managed(orders))
        engine.cancel(threading.get_ident())
        engine.cancel(threading.get_ident() + 1)
        assert rows_of(engine, query) == [{"n": 9}]
        endless = bound(endless_text(14), managed(orders))
        ended: list[str] = []

        def run() -> None:
            try:
                engine.query(endless).to_reader().read_all()
            except UnsupportedError as error:
                ended.append(error.kind)

        def cancel_until_it_ends() -> None:
            # It may not have begun yet; and while it runs it may have all that the engine computes with.
            while thread.is_alive():
                engine.cancel(thread.ident)
                thread.join(0.05)

        thread = threading.Thread(target=run)
        thread.start()
        canceller = threading.Thread(target=cancel_until_it_ends)
        canceller.start()
        while thread.is_alive():
            assert rows_of(engine, query) == [{"n": 9}], "this thread goes on"
        canceller.join()
        assert ended == ["cancelled"]

    @pytest.mark.parametrize("atomic", ["false", "true"])
    def test_a_table_is_made_of_a_query_with_its_types_and_rows(self, engine: QueryEngine, catalog: Catalog, atomic: str) -> None:
        rows = edge_rows() if self.has_time else edge_rows().drop_columns(["time"])
        catalog.create_table("shop.edges", schema=rows.schema).append(rows)
        environment = TableEnvironment.create(catalog, engine=engine, config={"table.ctas.atomicity-enabled": atomic})
        made = environment.execute_sql(
            "CREATE TABLE shop.made (PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2') AS SELECT * FROM shop.edges"
        )
        assert made.snapshot is not None and made.snapshot.id == 1
        found = catalog.table("shop.made").scan().to_arrow().sort_by("id")
        assert found.schema.names == rows.schema.names
        assert found.schema.types == [in_microseconds(field.type) for field in rows.schema]
        assert [field.name for field in found.schema if not field.nullable] == ["id"]
        for name in rows.schema.names:
            assert repr(found[name].to_pylist()) == repr(rows[name].to_pylist()), name
        again = environment.execute_sql("CREATE TABLE IF NOT EXISTS shop.made AS SELECT * FROM shop.edges")
        assert (again.snapshot, len(again.notices), len(catalog.table("shop.made").snapshots())) == (None, 1, 1)

    def test_an_insert_writes_null_or_keeps_or_is_refused_where_it_does_not_name_a_column(
        self, engine: QueryEngine, catalog: Catalog
    ) -> None:
        environment = TableEnvironment.create(catalog, engine=engine)
        columns = "id BIGINT, item STRING, price DOUBLE DEFAULT 7.5, PRIMARY KEY (id) NOT ENFORCED"
        environment.execute_sql(f"CREATE TABLE shop.priced ({columns})")

        def priced(choice: str | None, values: str) -> list[dict[str, Any]]:
            if choice is not None:
                environment.execute_sql(f"SET 'table.insert.missing-columns' = '{choice}'")
            result = environment.execute_sql(f"INSERT INTO shop.priced (item, id) {values}")
            said = ["1 of the rows took the place of stored ones"] if choice == "keep" else []
            assert [notice.message for notice in result.notices] == said
            return list(catalog.table("shop.priced").scan().to_arrow().sort_by("id").to_pylist())

        environment.execute_sql("INSERT INTO shop.priced VALUES (1, 'a', 1.5), (2, 'b', 2.5)")
        after = priced("keep", "SELECT CONCAT('x', id), id FROM shop.priced WHERE id = 1 UNION ALL SELECT 'new', 3")
        assert [(row["item"], row["price"]) for row in after] == [("x1", 1.5), ("b", 2.5), ("new", 7.5)]
        with pytest.raises(InvalidInputError, match=r"lack price.*SET 'table\.insert\.missing-columns'"):
            priced("refuse", "VALUES ('c', 1), ('new', 4)")
        assert catalog.table("shop.priced").scan().to_arrow().sort_by("id").to_pylist() == after
        environment.execute_sql("RESET 'table.insert.missing-columns'")
        assert [(row["item"], row["price"]) for row in priced(None, "VALUES ('c', 1)")] == [("c", 7.5), ("b", 2.5), ("new", 7.5)]
        # Of what is replaced as a whole nothing is kept, and in a new table nothing is lost.
        environment.execute_sql("SET 'table.insert.missing-columns' = 'refuse'")
        environment.execute_sql("INSERT OVERWRITE shop.priced (item, id) VALUES ('d', 1)")
        environment.execute_sql(f"CREATE TABLE shop.again ({columns}) AS SELECT id, item FROM shop.priced")
        for name in ("priced", "again"):
            assert catalog.table(f"shop.{name}").scan().to_arrow().to_pylist() == [{"id": 1, "item": "d", "price": 7.5}]

    def test_what_cannot_be_a_table_makes_none(self, engine: QueryEngine, catalog: Catalog) -> None:
        environment = TableEnvironment.create(catalog, engine=engine, config={"table.ctas.atomicity-enabled": "true"})
        for query, kind in (
            ("SELECT 1 AS a, 2 AS A", "duplicate-column"),
            ("SELECT 1 + 1", "unnamed-column"),
            ("SELECT NULL AS a", "column-type"),
            ("SELECT INTERVAL '1' DAY AS a", "unsupported-type"),
            ("SELECT CAST(v AS INT) AS n FROM VALUES ('1'), ('b') AS r (v)", "query"),
        ):
            with pytest.raises(TablestoreError) as refused:
                environment.execute_sql(f"CREATE TABLE shop.made AS {query}")
            assert refused.value.kind == kind, query
        assert catalog.list_tables("shop") == ()

    def test_a_plan_names_the_table_its_snapshot_and_its_files(self, engine: QueryEngine, orders: Table) -> None:
        pruned = managed(orders, name="shop.orders", columns=("id",), filter="id = 5")
        plan = engine.explain(bound("SELECT id FROM {0} AS o WHERE id = 5", pruned))
        newest = orders.snapshots()[-1].id
        for words in (r"shop\.orders", rf"snapshot\s+{newest}\b", r"files\s+\d+ of \d+ read", r"id = 5", r"columns\s+id\b"):
            assert re.search(words, plan), words

    def test_a_reference_has_options_and_hints_of_spark_are_taken_or_left_out(
        self, engine: QueryEngine, catalog: Catalog, orders: Table
    ) -> None:
        environment = TableEnvironment.create(catalog, engine=engine)
        first = "/*+ OPTIONS('scan.snapshot-id' = '1') */"
        wanted = orders.scan(snapshot_id=1).count()
        orders.delete("id >= 0")
        for query in (
            f"SELECT count(*) AS n FROM shop.orders {first}",
            f"SELECT count(*) AS n FROM shop.orders {first} AS o WHERE o.id >= 0",
            f"WITH c AS (SELECT * FROM shop.orders {first}) SELECT count(*) AS n FROM c LEFT JOIN shop.orders AS o ON o.id = c.id",
        ):
            result = environment.execute_sql(query)
            assert (result.to_arrow().to_pylist(), result.notices) == ([{"n": wanted}], ()), query
        for wrong in (f"SELECT {first} * FROM shop.orders", "SELECT * FROM shop.orders /*+ OPTIONS('scan.snapshot' = '1') */"):
            with pytest.raises(InvalidInputError, match=r"(?s)OPTIONS|unknown option.*line 1, column"):
                environment.execute_sql(wrong)
        for moment in (
            "now()",
            "current_timestamp()",
            "current_timestamp() - INTERVAL 1 MICROSECOND",
            "date_add(current_date(), 1)",
            "CAST(current_timestamp() AS TIMESTAMP_NTZ)",
        ):
            for words in ("TIMESTAMP AS OF", "FOR SYSTEM_TIME AS OF"):
                count = f"SELECT count(*) AS n FROM shop.orders {words} {moment} AS o WHERE o.id IS NOT NULL"
                assert environment.execute_sql(count).to_arrow().to_pylist() == [{"n": 0}], moment
        with pytest.raises(NotFoundError, match="no snapshot at or before"):
            environment.execute_sql("SELECT * FROM shop.orders TIMESTAMP AS OF now() - INTERVAL 1 DAY")
        with pytest.raises(InvalidInputError, match="an expression that reads no table"):
            environment.execute_sql("SELECT * FROM shop.orders TIMESTAMP AS OF (SELECT max(id) FROM shop.orders)")
        millis = orders.snapshots()[0].time_millis
        for options, rows, notices in (
            (f"'log.scan' = 'from-timestamp', 'log.scan.timestamp-mills' = '{millis}'", wanted, 0),
            ("'log.scan' = 'latest', 'consumer-id' = 'reader'", 0, 1),
        ):
            result = environment.execute_sql(f"SELECT count(*) AS n FROM shop.orders /*+ OPTIONS({options}) */")
            assert (result.to_arrow().to_pylist(), len(result.notices)) == ([{"n": rows}], notices), options
        hinted = f"SELECT /*+ SHUFFLE_HASH(b) */ a.id FROM shop.orders {first} AS a JOIN shop.orders AS b ON a.id = b.id"
        assert len(environment.execute_sql(hinted).notices) == (0 if engine.takes_hints else 1)
        if engine.takes_hints:
            assert "ShuffledHashJoin" in (environment.execute_sql(f"EXPLAIN {hinted}").text or "")

    def test_a_table_is_compacted(self, engine: QueryEngine, orders: Table) -> None:
        engine.compact(orders, pin(orders), None)
        assert set(orders.files()["level"].to_pylist()) != {0}
        assert rows_of(engine, bound("SELECT count(*) AS n FROM {0} AS o", managed(orders))) == [{"n": 9}]

    def test_names_that_nobody_gave_are_not_known(self, engine: QueryEngine) -> None:
        assert not engine.knows(("nobody", "has", "this"))
        assert not engine.knows(("there_is_no_such_table",))


def endless_text(times: int) -> str:
    """A query over ``{0}``, joined so often that it does not end by itself."""
    names = [f"t{number}" for number in range(times)]
    together = " + ".join(f"{name}.id" for name in names)
    tables = ", ".join(f"{{0}} AS {name}" for name in names)
    return f"SELECT count(*) AS n FROM {tables} WHERE sin({together}) = 2"


def orders_rows(ids: Sequence[int]) -> pa.Table:
    """Rows of the table of orders."""
    return pa.table({"id": ids, "price": [float(one) for one in ids], "note": [f"n{one}" for one in ids]}, schema=ORDERS)


def in_microseconds(arrow_type: pa.DataType) -> pa.DataType:
    """The type in which a query's rows come out of an engine: timestamps count microseconds."""
    if pa.types.is_timestamp(arrow_type):
        return pa.timestamp("us", arrow_type.tz)
    if pa.types.is_list(arrow_type):
        return pa.list_(pa.field("element", in_microseconds(arrow_type.value_type)))
    if pa.types.is_struct(arrow_type):
        return pa.struct([pa.field(part.name, in_microseconds(part.type)) for part in arrow_type])
    return arrow_type


def edge_rows() -> pa.Table:
    """A row of ends of ranges, one of other ends, one of nulls, one of little."""

    def moments(unit: str, zone: str | None) -> pa.Array:
        values = pa.array([_FIRST_MOMENT, _LAST_MOMENT, None, 1_000], pa.int64())
        return values.cast(pa.timestamp("us", zone)).cast(pa.timestamp(unit, zone), safe=False)

    def decimals(precision: int, scale: int) -> pa.Array:
        most = Decimal((0, (9,) * precision, -scale))
        return pa.array([most, most.copy_negate(), None, Decimal(0).scaleb(-scale)], pa.decimal128(precision, scale))

    nested = pa.struct([("a", pa.int8()), ("at", pa.timestamp("ms")), ("l", pa.list_(pa.float64()))])
    columns: dict[str, pa.Array] = {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "boolean": pa.array([True, False, None, True]),
        "tiny": pa.array([127, -128, None, 0], pa.int8()),
        "small": pa.array([32767, -32768, None, 0], pa.int16()),
        "int": pa.array([2**31 - 1, -(2**31), None, 0], pa.int32()),
        "big": pa.array([_MOST_LONG, -_MOST_LONG - 1, None, 0]),
        "float": pa.array([float("nan"), -0.0, None, float("inf")], pa.float32()),
        "double": pa.array([float("nan"), -0.0, None, float("-inf")]),
        "money": decimals(9, 2),
        "wide": decimals(38, 10),
        "text": pa.array(["", "ü\U0001f600 'quoted' \\", None, "x" * 5000]),
        "bytes": pa.array([b"", b"\x00\xff", None, b"y" * 5000]),
        "date": pa.array([dt.date.min, dt.date.max, None, dt.date(1970, 1, 1)]),
        "time": pa.array([0, 86_399_999, None, 1], pa.time32("ms")),
        "local_ms": moments("ms", None),
        "local": moments("us", None),
        "moment_ms": moments("ms", "UTC"),
        "moment": moments("us", "UTC"),
        "list": pa.array([[1, None], [], None, [3]], pa.list_(pa.field("element", pa.int16()))),
        "map": pa.array([[("a", 1.5)], [], None, [("b", None)]], pa.map_(pa.string(), pa.float64())),
        "row": pa.array([{"a": 1, "at": dt.datetime(9999, 12, 31, 23, 59, 59, 999000), "l": [-0.0]}, {}, None, {"a": -1}], nested),
    }
    schema = pa.schema([pa.field(name, column.type, nullable=name != "id") for name, column in columns.items()])
    return pa.table(columns, schema=schema)
