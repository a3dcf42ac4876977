"""Rules of a catalog service: every way in which rows of a table come out shows what a caller may see, and nothing else."""

import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablestore as ts
from tablestore.agents.tools import AgentWarehouse, describe_table, table_history
from tablestore.distributed.read import ReadTask, pin_read, plan_read, read_task
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.stream.streamoffset import START
from tablestore.distributed.stream.streamplanner import StreamPlanner
from tablestore.distributed.stream.streamrequest import StreamRequest
from tablestore.distributed.stream.streamtask import StreamTask, read_stream_task
from tablestore.distributed.write import commit_messages, prepare_write, write_partition
from tablestore.format.snapshot import Snapshot
from tablestore.format.writecounts import COUNT_NAMES
from tablestore.server.access.queryrules import QueryRule
from tablestore.server.access.roles import Resource, Role
from tablestore.store.scan.violations import check_rows
from tablestore.table.read.scan import Scan
from tablestore.types.evolution import schemachanges as to
from tablestore.types.filter.constraints import parse_constraint
from tests.support.commandline import run_command
from tests.support.servers.serverthread import RuledService, ruled_service

ORDERS = Resource("shop", "orders")
RESTRICTED = (Role.READER, Role.WRITER)
FILTER = QueryRule(table=ORDERS, roles=RESTRICTED, row_filter="region = 'eu' AND size < 40")
MASKS = QueryRule(table=ORDERS, roles=RESTRICTED, column_masks=(("card", None), ("item", "'*' || item"), ("size", "points")))
BOTH = replace(FILTER, column_masks=MASKS.column_masks)
RULES = {"filter": FILTER, "mask": MASKS, "both": BOTH}
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("item", pa.string()),
        ("region", pa.string()),
        ("card", pa.string()),
        ("size", pa.int64()),
        ("points", pa.int64()),
    ]
)
Row = dict[str, Any]


def rows(*values: tuple[int, str, str, str, int, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, value, strict=True)) for value in values], schema=SCHEMA)


FIRST = rows((1, "a", "eu", "c1", 10, 5), (2, "b", "us", "c2", 20, 6), (3, "c", "eu", "c3", 30, 7), (4, "d", "eu", "c4", 50, 8))
# Of the first ones it replaces, one enters what is seen and one leaves it.
SECOND = rows((2, "bb", "eu", "k2", 21, 9), (3, "cc", "us", "k3", 31, 9), (5, "e", "eu", "k5", 11, 9), (6, "f", "us", "k6", 12, 9))
TABLES: dict[str, dict[str, Any]] = {
    "keyed": {"primary_key": ["id"], "options": {"bucket": "2"}},
    "append": {},
    "partitioned": {"primary_key": ["region", "id"], "partition_by": ["region"], "options": {"bucket": "1"}},
    "vectors": {"primary_key": ["id"], "options": {"bucket": "1", "deletion-vectors.enabled": "true"}},
}


@dataclass
class Scene:
    """A table with two snapshots. ``beside`` reads its files without the service, ``seen`` is a restricted caller's handle."""

    service: RuledService
    beside: ts.Table
    rule: QueryRule

    @property
    def seen(self) -> ts.Table:
        table = self.service.catalog("reader").table("shop.orders")
        assert isinstance(table, ts.Table)
        return table

    @property
    def early(self) -> Snapshot:
        """The first snapshot with rows, those of the first write."""
        return next(one for one in self.beside.snapshots() if self.beside.scan(snapshot_id=one.id).count())

    def shown(self, plain: list[Row]) -> list[Row]:
        """What the rule lets through of some rows."""
        kept = [row for row in plain if self.rule.row_filter is None or (row["region"] == "eu" and row["size"] < 40)]
        if not self.rule.column_masks:
            return by_id(kept)
        return by_id([{**row, "card": None, "item": f"*{row['item']}", "size": row["points"]} for row in kept])

    @property
    def expected(self) -> list[Row]:
        return self.shown(self.beside.refresh().to_arrow().to_pylist())

    def environment(self, who: str = "reader") -> ts.TableEnvironment:
        return ts.TableEnvironment.create(self.service.options(who), engine="duckdb")


def by_id(found: list[Row]) -> list[Row]:
    return sorted(found, key=lambda row: (row["id"], str(row["item"])))


@pytest.fixture(params=RULES)
def rule(request: pytest.FixtureRequest) -> QueryRule:
    """A filter, masks, and both."""
    return RULES[str(request.param)]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RuledService]:
    catalog = ts.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    with ruled_service(catalog) as service:
        yield service


def scene_of(service: RuledService, tmp_path: Path, rule: QueryRule, kind: str = "keyed") -> Scene:
    table = ts.open_catalog(str(tmp_path / "wh")).create_table("shop.orders", SCHEMA, **TABLES[kind])
    for part in (FIRST, SECOND):
        with table.new_writer() as writer:
            writer.write(part)
            writer.commit()
        if kind == "vectors":
            table.compact(full=True)
    service.rules.append(rule)
    return Scene(service, table, rule)


@pytest.fixture(scope="module", params=[f"{rule} {kind}" for rule in RULES for kind in TABLES])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A table of each kind under each rule, for tests that leave all as it was."""
    rule, kind = request.param.split()
    place = tmp_path_factory.mktemp(kind)
    catalog = ts.open_catalog(str(place / "wh"))
    catalog.create_database("shop")
    with ruled_service(catalog) as service:
        scene = scene_of(service, place, RULES[rule], kind)
        scene.beside.create_tag("early", snapshot_id=scene.early.id)
        scene.beside.create_branch("b", tag="early")
        yield scene


@pytest.fixture
def both(service: RuledService, tmp_path: Path) -> Scene:
    """A keyed table under a filter and masks."""
    return scene_of(service, tmp_path, BOTH)


# ---- each way in which rows come out


def spec_of(table: ts.Table) -> TableSpec:
    return TableSpec(location=table.location, storage_options={}, files=table.context.main_files, branch=table.context.branch)


def tasks(table: ts.Table) -> pa.Table:
    plan = plan_read(
        pin_read(table, spec_of(table)), parallelism=3, plain_files=lambda _: pytest.fail("a file that others read"), layers=True
    )
    batches = [batch for task in plan.tasks for batch in read_task(plan.pin.spec, ReadTask.from_bytes(task.to_bytes()))]
    return pa.Table.from_batches(batches, schema=plan.schema)


def stream(table: ts.Table) -> pa.Table:
    spec = spec_of(table)
    planner = StreamPlanner(spec, StreamRequest(scan="full"), look_s=0)
    end = planner.latest(START.to_json(), None)
    batches = [
        batch
        for task in planner.tasks(START.to_json(), end)
        for batch in read_stream_task(spec, StreamTask.from_bytes(task.to_bytes()))
    ]
    return pa.Table.from_batches(batches) if batches else SCHEMA.empty_table()


def pickled(table: ts.Table) -> pa.Table:
    splits = pickle.loads(pickle.dumps(table.scan().splits()))
    return pa.concat_tables([split.to_arrow() for split in splits]) if splits else SCHEMA.empty_table()


def registered(table: ts.Table) -> pa.Table:
    with duckdb.connect() as connection:
        return table.scan().to_duckdb(connection, "orders").to_arrow_table()


def followed(table: ts.Table) -> pa.Table:
    batches = [batch.rows for batch in table.consume("full", follow=False) if batch.rows.num_rows]
    return pa.Table.from_batches(batches).drop_columns(["_row_kind"]) if batches else SCHEMA.empty_table()


def by_path(table: ts.Table) -> ts.Table:
    service = table.context.main_files.service  # type: ignore[attr-defined]
    again = ts.open_table(
        table.location, **{"catalog.service.uri": service.uri, "catalog.service.token": "reader", "catalog.service.prefix": "lake"}
    )
    assert isinstance(again, ts.Table)
    return again


READS: dict[str, Callable[[ts.Table], Any]] = {
    "to_arrow": lambda table: table.to_arrow(),
    "to_batches": lambda table: pa.Table.from_batches(table.scan().to_batches(), schema=table.scan().schema),
    "to_reader": lambda table: table.scan().to_reader().read_all(),
    "to_pandas": lambda table: pa.Table.from_pandas(table.to_pandas(types_mapper=None), preserve_index=False),
    "to_polars": lambda table: table.to_polars().to_arrow(),
    "scan_polars": lambda table: table.scan_polars().collect().to_arrow(),
    "head": lambda table: table.head(100),
    "limit": lambda table: table.scan(limit=100).to_arrow(),
    "dataset": lambda table: table.to_dataset().to_table(),
    "stream": lambda table: pa.table(table),
    "registered": registered,
    "pickled scan": lambda table: pickle.loads(pickle.dumps(table.scan())).to_arrow(),
    "pickled splits": pickled,
    "tasks": tasks,
    "stream tasks": stream,
    "consume": followed,
    "columns in another order": lambda table: table.scan(list(reversed(SCHEMA.names))).to_arrow().select(SCHEMA.names),
    "its newest snapshot": lambda table: table.scan(snapshot_id=table.snapshots()[-1].id).to_arrow(),
    "by its path": lambda table: by_path(table).to_arrow(),
}


@pytest.mark.parametrize("way", READS)
def test_each_read_shows_what_a_rule_lets_through(scene: Scene, way: str) -> None:
    found = READS[way](scene.seen).to_pylist()
    assert by_id(found) == scene.expected and scene.expected


QUERIES = {
    "select": "SELECT * FROM shop.orders",
    "subquery": "SELECT * FROM (SELECT * FROM shop.orders WHERE id > 0) AS o",
    "join": "SELECT o.* FROM shop.orders o JOIN shop.orders p ON o.id = p.id AND o.item = p.item",
    "common table": "WITH o AS (SELECT * FROM shop.orders) SELECT * FROM o",
}


@pytest.mark.parametrize("way", QUERIES)
def test_each_query_shows_what_a_rule_lets_through(scene: Scene, way: str) -> None:
    with scene.environment() as env:
        assert by_id(env.execute_sql(QUERIES[way]).to_arrow().to_pylist()) == scene.expected


def test_what_a_query_stores_is_what_its_caller_sees(service: RuledService, tmp_path: Path, rule: QueryRule) -> None:
    scene = scene_of(service, tmp_path, rule)
    with scene.environment("owner") as env:
        # Rules of the readers and writers; an owner sees all.
        assert env.execute_sql("SELECT count(*) AS n FROM shop.orders").to_arrow()["n"][0].as_py() == scene.beside.scan().count()
    scene.service.rules[:] = [replace(scene.rule, roles=())]
    with scene.environment("owner") as env:
        env.execute_sql("CREATE TABLE shop.copied AS SELECT * FROM shop.orders")
        env.execute_sql("CREATE VIEW shop.viewed AS SELECT * FROM shop.orders")
        for name in ("copied", "viewed"):
            assert by_id(env.execute_sql(f"SELECT * FROM shop.{name}").to_arrow().to_pylist()) == scene.expected
        env.execute_sql("INSERT INTO shop.copied SELECT * FROM shop.orders")
        assert env.execute_sql("SELECT count(*) AS n FROM shop.copied").to_arrow()["n"].to_pylist() == [2 * len(scene.expected)]


def test_older_snapshots_tags_and_branches_are_under_the_rules(scene: Scene) -> None:
    first = scene.early
    plain = scene.beside.scan(tag="early").to_arrow().to_pylist()
    then = scene.shown(plain)
    assert then
    assert by_id(scene.seen.scan(snapshot_id=first.id).to_arrow().to_pylist()) == then
    assert by_id(scene.seen.scan(tag="early").to_arrow().to_pylist()) == then
    assert by_id(scene.seen.scan(timestamp=first.time_millis).to_arrow().to_pylist()) == then
    branch = scene.service.catalog("reader").table("shop.orders$branch_b")
    assert isinstance(branch, ts.Table) and by_id(branch.to_arrow().to_pylist()) == then
    with scene.environment() as env:
        for suffix in (f"VERSION AS OF {first.id}", "VERSION AS OF 'early'"):
            assert by_id(env.execute_sql(f"SELECT * FROM shop.orders {suffix}").to_arrow().to_pylist()) == then
        assert by_id(env.execute_sql("SELECT * FROM shop.orders$branch_b").to_arrow().to_pylist()) == then


def applied(changes: list[Row]) -> list[Row]:
    """The rows that changes add up to; a change of a row that is not there is none of its reader's."""
    found: list[Row] = []
    for change in changes:
        row = {key: value for key, value in change.items() if key in SCHEMA.names}
        if change.get("_row_kind", change.get("rowkind")) in ("-U", "-D"):
            found.remove(row)
        else:
            found.append(row)
    return by_id(found)


@pytest.mark.parametrize("producer", ["none", "input", "lookup"])
@pytest.mark.parametrize("kind", ["keyed", "append"], indirect=False)
def test_changes_add_up_to_what_is_seen_and_name_no_hidden_row(
    service: RuledService, tmp_path: Path, rule: QueryRule, kind: str, producer: str
) -> None:
    if kind == "append" and producer != "none":
        pytest.skip("an append table has no producer")
    options = {**TABLES[kind].get("options", {}), "changelog-producer": producer}
    table = ts.open_catalog(str(tmp_path / "wh")).create_table("shop.orders", SCHEMA, **{**TABLES[kind], "options": options})
    for part in (FIRST, SECOND):
        with table.new_writer() as writer:
            writer.write(part)
            writer.commit()
    service.rules.append(rule)
    scene = Scene(service, table, rule)
    seen, newest = scene.seen, table.snapshots()[-1].id
    shown = {tuple(row.values()) for version in (FIRST, SECOND) for row in scene.shown(version.to_pylist())}
    unpaired = seen.changes(0, newest, pairs=False).to_arrow().drop_columns(["_row_kind"]).to_pylist()
    assert {tuple(row.values()) for row in unpaired} <= shown and unpaired
    if producer == "input" and rule.row_filter is None:
        # These are the rows as they were written, which name no row before an update.
        return
    assert applied(seen.changes(0, newest).to_arrow().to_pylist()) == scene.expected
    with_pairs = [row for batch in seen.consume("full", follow=False, pairs=True) for row in batch.rows.to_pylist()]
    assert applied(with_pairs) == scene.expected
    assert applied(seen.system("audit_log").to_arrow().to_pylist()) == scene.expected
    with scene.environment() as env:
        assert applied(env.execute_sql("SELECT * FROM table_changes('shop.orders', 0)").to_arrow().to_pylist()) == scene.expected


# ---- nothing is told in another way


def test_numbers_are_counted_and_not_read_from_metadata(scene: Scene) -> None:
    expected = scene.expected
    assert scene.seen.scan().count() == scene.seen.scan(limit=100).count() == len(expected)
    assert scene.seen.to_dataset().count_rows() == len(expected)
    assert scene.seen.changes(0).count() == len(scene.seen.changes(0).to_arrow())
    with scene.environment() as env:
        query = "SELECT count(*) AS n, min(id) AS low, max(size) AS high, count(card) AS cards FROM shop.orders"
        (found,) = env.execute_sql(query).to_arrow().to_pylist()
    sizes, cards = [row["size"] for row in expected], [row["card"] for row in expected if row["card"] is not None]
    assert found == {"n": len(expected), "low": min(row["id"] for row in expected), "high": max(sizes), "cards": len(cards)}


# A condition over what is stored, and the same over what is shown.
CONDITIONS = (
    "item = 'a'",
    "item = '*a'",
    "card = 'c1'",
    "card IS NULL",
    "size = 10",
    "size = 5",
    "size > points",
    "region = 'us'",
    "id = 4",
)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_sees_masks_and_no_hidden_row(scene: Scene, condition: str) -> None:
    with duckdb.connect() as connection:
        connection.register("shown", pa.Table.from_pylist(scene.expected, schema=SCHEMA))
        expected = by_id(connection.sql(f"SELECT * FROM shown WHERE {condition}").to_arrow_table().to_pylist())
    seen = scene.seen
    scan = seen.scan(filter=condition)
    assert by_id(scan.to_arrow().to_pylist()) == expected and scan.count() == len(expected)
    assert seen.scan(["id"], filter=condition).to_arrow().num_rows == len(expected)
    with scene.environment() as env:
        query = f"SELECT * FROM shop.orders WHERE {condition}"
        assert by_id(env.execute_sql(query).to_arrow().to_pylist()) == expected
        counted = env.execute_sql(f"SELECT count(*) AS n FROM shop.orders WHERE {condition}").to_arrow()
        assert counted["n"].to_pylist() == [len(expected)]
    plan = plan_read(pin_read(seen, spec_of(seen)), filter=condition)
    read = [row for task in plan.tasks for batch in read_task(plan.pin.spec, task) for row in batch.to_pylist()]
    assert by_id(read) == expected


def test_conditions_of_others_libraries_see_masks(both: Scene) -> None:
    dataset = both.seen.to_dataset()
    assert (
        dataset.to_table(filter=pc.field("item") == "a").num_rows == dataset.to_table(filter=pc.field("card") == "c1").num_rows == 0
    )
    assert dataset.to_table(filter=pc.field("item") == "*a").num_rows == 1
    frame = both.seen.scan_polars()
    assert frame.filter(pl.col("size") == 10).collect().height == 0 and frame.filter(pl.col("size") == 5).collect().height == 1
    with duckdb.connect() as connection:
        relation = both.seen.scan().to_duckdb(connection, "orders")
        assert relation.filter("item = 'a'").fetchall() == [] and len(relation.filter("item = '*a'").fetchall()) == 1


def test_a_condition_that_fails_on_a_hidden_row_does_not_tell_of_it(both: Scene) -> None:
    # Of the row of id 4, which is hidden, it is a division by zero.
    condition = "100 / (id - 4) < 1000 AND region = 'eu'"
    with pytest.raises(ts.TablestoreError):
        both.beside.scan(filter=condition).to_arrow()
    assert both.seen.scan(filter=condition).to_arrow().num_rows == len(both.expected)
    assert both.seen.changes(0, filter=condition).to_arrow().num_rows


def test_a_filter_of_changes_over_a_masked_column_is_refused(both: Scene) -> None:
    with pytest.raises(ts.UnsupportedError, match="masked"):
        both.seen.changes(0, filter="item = 'a'").to_arrow()
    with pytest.raises(ts.UnsupportedError, match="masked"):
        list(both.seen.consume("full", filter="card = 'c1'", follow=False))
    assert both.seen.changes(0, filter="id = 1").to_arrow().num_rows == 1


def test_the_read_optimised_table_is_under_the_rules(service: RuledService, tmp_path: Path, rule: QueryRule) -> None:
    scene = scene_of(service, tmp_path, rule)
    scene.beside.compact(full=True)
    assert by_id(scene.seen.system("ro").to_arrow().to_pylist()) == scene.expected
    with scene.environment() as env:
        assert by_id(env.execute_sql("SELECT * FROM shop.orders$ro").to_arrow().to_pylist()) == scene.expected


def test_lists_of_files_partitions_and_statistics_are_refused(service: RuledService, tmp_path: Path) -> None:
    scene = scene_of(service, tmp_path, BOTH, "partitioned")
    seen = scene.seen
    for read in (
        seen.files,
        seen.partitions,
        *(seen.system(name).to_arrow for name in ("files", "partitions", "buckets", "manifests")),
    ):
        with pytest.raises(ts.UnsupportedError, match="rules of its catalog service"):
            read()
    with scene.environment() as env:
        for statement in ("SHOW PARTITIONS shop.orders", "DESCRIBE EXTENDED shop.orders PARTITION (region = 'us')"):
            with pytest.raises(ts.UnsupportedError, match="rules of its catalog service"):
                env.execute_sql(statement)
        explained = str(env.execute_sql("EXPLAIN SELECT * FROM shop.orders WHERE id = 2").to_arrow().to_pylist())
        assert "files" not in explained and "masked: card, item, size" in explained
    assert "buckets" not in seen._repr_html_()
    snapshots = seen.system("snapshots").to_arrow()
    assert snapshots.num_rows == 2 and snapshots["total_record_count"].null_count == snapshots["delta_record_count"].null_count == 2
    for name in ("schemas", "options", "tags", "branches", "consumers"):
        seen.system(name).to_arrow()


def test_what_was_analyzed_is_not_told(both: Scene) -> None:
    with ts.TableEnvironment.create(str(Path(both.beside.location).parents[1]), engine="duckdb") as env:
        env.execute_sql("ANALYZE TABLE shop.orders COMPUTE STATISTICS FOR ALL COLUMNS")
    with both.environment() as env:
        assert "when analyzed" not in str(env.execute_sql("EXPLAIN SELECT * FROM shop.orders").to_arrow().to_pylist())
    with both.environment("writer") as env, pytest.raises(ts.UnsupportedError, match="ANALYZE"):
        env.execute_sql("ANALYZE TABLE shop.orders COMPUTE STATISTICS")


# ---- older and other columns


def test_a_renamed_column_is_masked_and_filtered_by_in_older_snapshots_too(service: RuledService, tmp_path: Path) -> None:
    scene = scene_of(service, tmp_path, BOTH)
    first = scene.beside.snapshots()[0].id
    names = {"card": "number", "item": "title", "region": "area"}
    scene.beside.alter([to.RenameColumn(old, to=new) for old, new in names.items()])
    service.rules[:] = [
        QueryRule(table=ORDERS, row_filter="area = 'eu'", column_masks=(("number", None), ("title", "'*' || title")))
    ]
    then = scene.seen.scan(snapshot_id=first).to_arrow().to_pylist()
    assert [(row["id"], row["item"], row["card"]) for row in by_id(then)] == [(1, "*a", None), (3, "*c", None), (4, "*d", None)]
    assert scene.seen.scan(snapshot_id=first, filter="card IS NOT NULL").count() == 0
    changes = scene.seen.changes(0, 1).to_arrow().to_pylist()
    assert {(row["id"], row["title"], row["number"]) for row in changes} == {(1, "*a", None), (3, "*c", None), (4, "*d", None)}


def test_a_column_that_was_dropped_is_not_shown_in_older_snapshots(service: RuledService, tmp_path: Path) -> None:
    scene = scene_of(service, tmp_path, FILTER)
    first = scene.beside.snapshots()[0].id
    scene.beside.alter(to.DropColumn("card"))
    for columns in (None, ["card"]):
        with pytest.raises(ts.UnsupportedError, match="former column 'card'"):
            scene.seen.scan(columns, snapshot_id=first).to_arrow()
    with pytest.raises(ts.UnsupportedError, match="former column 'card'"):
        scene.seen.scan(["id"], filter="card = 'c1'", snapshot_id=first).to_arrow()
    assert scene.seen.scan(["id"], snapshot_id=first).count() == 2


def test_a_snapshot_without_the_column_of_a_filter_shows_nothing(service: RuledService, tmp_path: Path) -> None:
    scene = scene_of(service, tmp_path, FILTER)
    scene.beside.alter(to.AddColumn("secret", "BOOLEAN"))
    service.rules[:] = [QueryRule(table=ORDERS, row_filter="secret IS NULL")]
    with pytest.raises(ts.UnsupportedError, match="did not have then"):
        scene.seen.scan(snapshot_id=1).to_arrow()
    assert scene.seen.scan().count() == 6


def test_a_column_gets_no_new_name_that_would_take_it_from_its_rule(both: Scene) -> None:
    both.service.rules[:] = [replace(BOTH, roles=(), principals=("owner",))]
    owned = both.service.catalog("owner").table("shop.orders")
    assert isinstance(owned, ts.Table)
    with pytest.raises(ts.UnsupportedError, match="a new name of a column"):
        owned.alter(to.RenameColumn("card", to="free"))
    with both.environment("owner") as env, pytest.raises(ts.UnsupportedError, match="a new name of a column"):
        env.execute_sql("ALTER TABLE shop.orders RENAME COLUMN card TO free")
    client = owned.context.main_files.service  # type: ignore[attr-defined]
    rename = {"action": "renameColumn", "fieldNames": ["card"], "newName": "free"}
    with pytest.raises(ts.TablestoreError, match="rules for queries name columns"):
        client.send("POST", client.path("databases", "shop", "tables", "orders"), {"changes": [rename]})
    assert "card" in both.beside.refresh().schema.names


def test_a_new_constraint_is_not_compared_with_rows_that_its_author_does_not_see(both: Scene) -> None:
    both.service.rules[:] = [replace(BOTH, roles=(), principals=("owner",))]
    owned = both.service.catalog("owner").table("shop.orders")
    assert isinstance(owned, ts.Table)
    with pytest.raises(ts.UnsupportedError) as refused:
        check_rows(owned.context, both.beside.snapshots()[-1], parse_constraint("few", "id < 0", owned.table_schema.fields))
    assert refused.value.kind == "query-rules"


def test_numbers_of_rows_are_not_told_of_commits_either(both: Scene) -> None:
    told = {name for name in COUNT_NAMES if name.startswith("rows_")}
    with both.environment() as env:
        history = env.execute_sql("DESCRIBE HISTORY shop.orders").to_arrow()
    assert all(history[name].null_count == len(history) for name in (*told, "rows", "rows_added", "records", "records_added"))


# ---- doubt is an error


def leaf(function: str, literals: str) -> str:
    """A condition of the column id."""
    transform = '{"name": "FIELD_REF", "fieldRef": {"name": "id"}}'
    return f'{{"kind": "LEAF", "transform": {transform}, "function": "{function}", "literals": {literals}}}'


@pytest.mark.parametrize(
    "answer",
    [
        {"filter": ["{"]},
        {"filter": [""]},
        {"filter": ["null"]},
        {"filter": "all"},
        {"filter": [7]},
        {"columnMasking": {"item": ""}},
        {"columnMasking": ["item"]},
        {"columnMasking": {"none": '{"name": "NULL"}'}},
        {"columnMasking": {"item": '{"name": "HASH"}'}},
        {"columnMasking": {"size": '{"name": "UPPER", "inputs": [{"name": "item"}]}'}},
        {"columnMasking": {"item": '{"name": "FIELD_REF", "fieldRef": {"name": "none"}}'}},
        {"filter": [leaf("NEAR", "[1]")]},
        {"filter": [leaf("EQUAL", "[]")]},
        {"filter": [leaf("EQUAL", '["1"]')]},
        {"filter": ['{"kind": "LEAF", "transform": {"name": "UPPER", "inputs": []}, "function": "EQUAL", "literals": ["A"]}']},
        {"filter": ['{"kind": "COMPOUND", "function": "XOR", "children": []}']},
        [],
        None,
    ],
)
def test_an_answer_that_is_not_understood_lets_nothing_through(
    both: Scene, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = both.seen
    monkeypatch.setattr("tablestore.io.service.serviceclient.ServiceClient.ask", lambda *_: answer)
    reads: list[Callable[[], object]] = [
        lambda: table.scan().to_arrow(),
        lambda: table.scan(["id"]).count(),
        lambda: table.changes(0).to_arrow(),
        lambda: list(table.consume("full", follow=False)),
        lambda: tasks(table),
        lambda: table.files(),
    ]
    for read in reads:
        with pytest.raises(ts.TablestoreError):
            read()


def test_without_an_answer_nothing_is_read(both: Scene, tmp_path: Path) -> None:
    table = both.seen
    both.service.rules[:] = [replace(BOTH, row_filter="none = 1")]
    with pytest.raises(ts.InvalidInputError, match="rule"):
        table.to_arrow()
    nobody = by_path(table).context.main_files
    wrong = ts.open_table(
        table.location,
        **{"catalog.service.uri": nobody.service.uri, "catalog.service.token": "unknown", "catalog.service.prefix": "lake"},
    )  # type: ignore[attr-defined]
    assert isinstance(wrong, ts.Table)
    with pytest.raises(ts.TablestoreError):
        wrong.to_arrow()
    with pytest.raises(ts.TablestoreError):
        wrong.scan().count()


def test_a_table_is_under_its_own_rules_whatever_its_directory_is_called(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    with ruled_service(catalog, [FILTER]) as service:
        table = catalog.create_table("shop.orders", SCHEMA)
        table.append(FIRST)
        # The directory of a table without rules, moved to where the service knows another one.
        other = catalog.create_table("shop.free", SCHEMA)
        other.append(FIRST)
        moved = tmp_path / "copies" / "shop.db"
        moved.mkdir(parents=True)
        Path(table.location).rename(moved / "free")
        options = {"catalog.service.uri": service.address, "catalog.service.token": "reader", "catalog.service.prefix": "lake"}
        opened = ts.open_table(str(moved / "free"), **options)
        assert isinstance(opened, ts.Table)
        with pytest.raises(ts.NotFoundError):
            opened.to_arrow()


def test_a_service_of_others_is_asked_for_tables_that_say_so(both: Scene, tmp_path: Path) -> None:
    options = {
        "catalog.service.uri": both.service.address,
        "catalog.service.token": "reader",
        "catalog.service.prefix": "lake",
        "catalog.service.query-rules": "by-table",
    }
    table = ts.open_table(both.beside.location, **options)
    assert isinstance(table, ts.Table)
    before = len(both.service.requests)
    assert table.scan().count() == 6 and len(both.service.requests) == before
    schema = table.table_schema
    context = table.context.at_schema(replace(schema, options={**schema.options, "query-auth.enabled": "true"}))
    assert by_id(Scan(context, table.snapshots()[-1], schema.field_names, None).to_arrow().to_pylist()) == both.expected


# ---- when rules are looked at


def test_the_next_read_is_under_the_rules_of_then(both: Scene) -> None:
    table = both.seen
    scan = table.scan()
    assert scan.count() == len(both.expected)
    both.service.rules.clear()
    assert table.scan().count() == 6
    # A scan keeps what it began with, wherever it is read.
    assert pickle.loads(pickle.dumps(scan)).count() == scan.count() == len(both.expected)
    both.service.rules.append(replace(FILTER, row_filter="id = 1"))
    assert table.scan().count() == 1


def test_who_follows_a_table_is_under_the_rules_of_each_snapshot(both: Scene) -> None:
    both.service.rules[:] = []
    first, later = list[int](), list[int]()
    for batch in both.seen.consume("full", follow=False):
        (first if batch.in_frame else later).extend(batch.rows.column("id").to_pylist())
        if len(first) == 6 and not later and both.service.rules == []:
            both.service.rules[:] = [replace(FILTER, row_filter="id = 100")]
            both.beside.upsert(rows((50, "x", "eu", "s", 1, 1), (100, "y", "eu", "s", 1, 1)))
    assert len(first) == 6 and later == [100]


def test_a_stream_whose_rules_have_changed_is_loaded_again(both: Scene) -> None:
    table = both.seen
    spec = spec_of(table)
    planner = StreamPlanner(spec, StreamRequest(scan="full"), look_s=0)
    end = planner.latest(START.to_json(), None)
    both.service.rules[:] = [replace(FILTER, row_filter="id = 1")]
    with pytest.raises(ts.ConflictError, match="rules of its catalog service"):
        planner.tasks(START.to_json(), end)
    again = StreamPlanner(spec, StreamRequest(scan="full"), look_s=0)
    read = [
        row for task in again.tasks(START.to_json(), end) for batch in read_stream_task(spec, task) for row in batch.to_pylist()
    ]
    assert [row["id"] for row in read] == [1]


def test_tasks_of_other_processes_ask_nobody(both: Scene) -> None:
    seen = both.seen
    plan = plan_read(pin_read(seen, spec_of(seen)))
    before = len(both.service.requests)
    read = [
        row
        for task in plan.tasks
        for batch in read_task(plan.pin.spec, ReadTask.from_bytes(task.to_bytes()))
        for row in batch.to_pylist()
    ]
    assert by_id(read) == both.expected and len(both.service.requests) == before


def test_a_table_without_its_token_is_not_read_and_one_that_names_it_is(both: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ts.InvalidInputError, match="token"):
        pickle.loads(pickle.dumps(both.seen)).to_arrow()
    monkeypatch.setenv("READERS_TOKEN", "reader")
    named = both.service.catalog("env:READERS_TOKEN").table("shop.orders")
    assert by_id(pickle.loads(pickle.dumps(named)).to_arrow().to_pylist()) == both.expected


# ---- writes


@pytest.mark.parametrize("kind", ["keyed", "append"], indirect=False)
def test_a_restricted_writer_adds_rows_and_changes_none(service: RuledService, tmp_path: Path, kind: str) -> None:
    scene = scene_of(service, tmp_path, BOTH, kind)
    table = service.catalog("writer").table("shop.orders")
    assert isinstance(table, ts.Table)
    before = scene.beside.scan().count()
    changes: list[Callable[[], object]] = [
        lambda: table.update({"points": "0"}, "id = 2"),
        lambda: table.delete("id = 2"),
        lambda: table.merge(rows((2, "m", "eu", "s", 1, 1)), on="id").when_matched_update_all().execute(),
        lambda: table.overwrite(SECOND),
    ]
    if kind == "keyed":
        changes.append(lambda: table.delete(pa.table({"id": [2]})))
    for change in changes:
        with pytest.raises(ts.UnsupportedError, match="rules of its catalog service"):
            change()
    with scene.environment("writer") as env:
        for statement in (
            "UPDATE shop.orders SET points = 0 WHERE id = 2",
            "UPDATE shop.orders SET points = length(item)",
            "DELETE FROM shop.orders WHERE item = 'b'",
            "MERGE INTO shop.orders o USING (SELECT 2 AS id) s ON o.id = s.id WHEN MATCHED THEN DELETE",
            "INSERT OVERWRITE shop.orders SELECT * FROM shop.orders",
            "TRUNCATE TABLE shop.orders",
        ):
            with pytest.raises(ts.TablestoreError):
                env.execute_sql(statement)
        assert scene.beside.refresh().scan().count() == before
        env.execute_sql("INSERT INTO shop.orders VALUES (70, 'n', 'us', 's', 1, 1)")
    with table.new_writer() as writer:
        writer.write(rows((71, "n", "eu", "s", 1, 1)))
        writer.commit()
    assert scene.beside.refresh().scan().count() == before + 2
    assert {row["id"] for row in table.to_arrow().to_pylist()} & {70, 71} == {71}


def test_upkeep_by_a_restricted_writer_keeps_hidden_rows(both: Scene) -> None:
    plain = by_id(both.beside.to_arrow().to_pylist())
    table = both.service.catalog("writer").table("shop.orders")
    assert isinstance(table, ts.Table)
    table.compact(full=True)
    # Whether a partition that is named is there is not told.
    with pytest.raises(ts.UnsupportedError, match="partitions that you name"):
        table.compact(full=True, partitions=[{"region": "us"}])
    assert by_id(both.beside.refresh().to_arrow().to_pylist()) == plain and by_id(table.to_arrow().to_pylist()) == both.expected


# ---- materialized tables


def test_a_materialized_table_is_made_and_refreshed_by_who_sees_all(both: Scene) -> None:
    declared = (
        "CREATE MATERIALIZED TABLE shop.m FRESHNESS = INTERVAL '1' HOUR REFRESH_MODE = FULL AS SELECT id, item FROM shop.orders"
    )
    both.service.rules[:] = [replace(BOTH, roles=(), principals=("owner",))]
    with both.environment("owner") as env:
        with pytest.raises(ts.UnsupportedError, match="materialized table that reads it"):
            env.execute_sql(declared)
        assert "m" not in env.catalog().list_tables("shop")
    with both.environment("admin") as env:
        env.execute_sql(declared)
        env.execute_sql("ALTER MATERIALIZED TABLE shop.m REFRESH")
    with both.environment("owner") as env:
        for statement in (
            "ALTER MATERIALIZED TABLE shop.m REFRESH",
            "ALTER MATERIALIZED TABLE shop.m AS SELECT id, item, card FROM shop.orders",
        ):
            with pytest.raises(ts.UnsupportedError, match="materialized table that reads it"):
                env.execute_sql(statement)
        # It has rows of its own, which the rule of its source says nothing about.
        assert env.execute_sql("SELECT count(*) AS n FROM shop.m").to_arrow()["n"].to_pylist() == [6]
        env.execute_sql("DROP MATERIALIZED TABLE shop.m")


# ---- no write reads, removes or tells of what its writer does not see


def salaries(service: RuledService, tmp_path: Path, rule: QueryRule, **how: Any) -> tuple[ts.Table, ts.Table]:
    """A table with a hidden row of id 2 and salaries that may be masked: beside the service, and as a restricted writer has it."""
    columns = "id BIGINT, region STRING, salary BIGINT, cap BIGINT"
    beside = ts.open_catalog(str(tmp_path / "wh")).create_table("shop.orders", columns, primary_key=["id"], **how)
    beside.upsert([{"id": 1, "region": "eu", "salary": 10, "cap": 100}, {"id": 2, "region": "us", "salary": 777, "cap": 888}])
    service.rules.append(rule)
    table = service.catalog("writer").table("shop.orders")
    assert isinstance(table, ts.Table)
    return beside, table


EU = replace(FILTER, row_filter="region = 'eu'")
NO_SALARY = replace(FILTER, row_filter=None, column_masks=(("salary", None),))


@pytest.mark.parametrize("hiding", [EU, NO_SALARY], ids=["filter", "mask"])
def test_a_restricted_writer_keeps_no_stored_values(service: RuledService, tmp_path: Path, hiding: QueryRule) -> None:
    beside, table = salaries(service, tmp_path, hiding, checks={"c": "salary < cap"})
    before = beside.to_arrow()
    for row in ({"id": 2, "cap": 0}, {"id": 2, "region": "eu"}, {"id": 99, "region": "eu", "cap": 1}):
        with pytest.raises(ts.UnsupportedError, match="a row that keeps stored values") as refused:
            table.upsert([row], missing_columns="keep")
        assert refused.value.kind == "query-rules" and "777" not in str(refused.value)
    assert beside.refresh().to_arrow().equals(before)


@pytest.mark.parametrize(
    "options",
    [
        {"merge-engine": "partial-update"},
        {"merge-engine": "aggregation", "fields.salary.aggregate-function": "sum"},
        {"merge-engine": "first-row", "bucket": "1"},
        {"sequence.field": "cap"},
    ],
    ids=lambda options: "+".join(options.values()),
)
def test_a_write_whose_outcome_depends_on_stored_rows_is_refused(
    service: RuledService, tmp_path: Path, options: dict[str, str]
) -> None:
    beside, table = salaries(service, tmp_path, EU, options=options)
    before = len(beside.refresh().snapshots())
    files = set(Path(beside.location).rglob("data-*"))
    with pytest.raises(ts.UnsupportedError, match="depends on stored rows"):
        table.upsert([{"id": 2, "region": "eu", "salary": None, "cap": None}])
    assert len(beside.refresh().snapshots()) == before and set(Path(beside.location).rglob("data-*")) == files


def test_a_restricted_writer_removes_no_row_by_its_kind(service: RuledService, tmp_path: Path) -> None:
    beside, table = salaries(service, tmp_path, EU)
    for kind in ("-D", "-U"):
        change = pa.table({"id": [2], "region": ["us"], "salary": [777], "cap": [888], "_row_kind": [kind]})
        with pytest.raises(ts.UnsupportedError, match="removes rows"):
            table.write_changes(change)
        # Tasks in other processes, which their driver commits.
        job = prepare_write(table, spec_of(table))
        with pytest.raises(ts.UnsupportedError, match="removes rows"):
            commit_messages(table, [write_partition(job, change.to_batches(), 0)])
    added = table.write_changes(pa.table({"id": [3], "region": ["us"], "salary": [1], "cap": [2], "_row_kind": ["+I"]}))
    assert added is not None and beside.refresh().scan().count() == 3
    assert len(list(Path(beside.location).rglob("data-*"))) == beside.files().num_rows


def test_a_restricted_writer_removes_no_row_by_a_column_of_kinds(service: RuledService, tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path / "wh"))
    beside = catalog.create_table(
        "shop.orders", "id BIGINT, region STRING, op STRING", primary_key="id", options={"rowkind.field": "op"}
    )
    beside.upsert([{"id": 2, "region": "us", "op": "+I"}])
    service.rules.append(EU)
    table = service.catalog("writer").table("shop.orders")
    assert isinstance(table, ts.Table)
    with pytest.raises(ts.UnsupportedError, match="removes rows"):
        table.upsert([{"id": 2, "region": "us", "op": "-D"}])
    assert beside.refresh().scan().count() == 1


def test_a_restricted_writer_returns_to_no_older_rows_and_drops_no_partition(service: RuledService, tmp_path: Path) -> None:
    scene = scene_of(service, tmp_path, BOTH, "partitioned")
    scene.beside.create_branch("b", snapshot_id=1)
    table = service.catalog("writer").table("shop.orders")
    assert isinstance(table, ts.Table)
    before = len(scene.beside.snapshots())
    changes: list[Callable[[], object]] = [
        lambda: table.drop_partitions([{"region": "us"}]),
        lambda: table.drop_partitions([{"region": "us"}], dry_run=True),
        lambda: table.drop_partitions([{"region": "zz"}], dry_run=True),
        lambda: table.expire_partitions(1, dry_run=True),
        lambda: table.expire_partitions(1),
        lambda: table.rollback_to(1),
        lambda: table.fast_forward("b", discard_newer=True),
        lambda: table.rescale(3),
    ]
    for change in changes:
        with pytest.raises(ts.UnsupportedError, match="rules of its catalog service"):
            change()
    with scene.environment("writer") as env:
        for statement in (
            "ALTER TABLE shop.orders DROP PARTITION (region = 'us')",
            "ALTER TABLE shop.orders DROP IF EXISTS PARTITION (region = 'zz')",
            "RESTORE TABLE shop.orders TO VERSION AS OF 1",
        ):
            with pytest.raises(ts.UnsupportedError, match="rules of its catalog service"):
                env.execute_sql(statement)
    assert len(scene.beside.refresh().snapshots()) == before and scene.beside.options()["bucket"] == "1"


def test_a_table_that_its_owner_does_not_see_whole_is_not_replaced(service: RuledService, tmp_path: Path) -> None:
    scene = scene_of(service, tmp_path, replace(BOTH, roles=()))
    plain = by_id(scene.beside.to_arrow().to_pylist())
    with scene.environment("owner") as env, pytest.raises(ts.UnsupportedError, match="rules of its catalog service"):
        env.execute_sql("CREATE OR REPLACE TABLE shop.orders AS SELECT * FROM shop.orders")
    assert by_id(scene.beside.refresh().to_arrow().to_pylist()) == plain


# ---- numbers, lists and errors


def test_a_commit_says_what_its_writer_wrote_and_not_what_was_there(service: RuledService, tmp_path: Path) -> None:
    _, table = salaries(service, tmp_path, EU)
    row = {"region": "eu", "salary": 1, "cap": 2}
    hidden, absent = table.upsert([{"id": 2, **row}]), table.upsert([{"id": 99, **row}])
    assert hidden is not None and absent is not None
    for landed in (hidden, absent):
        assert landed.counts.text == "1 row written" and landed.counts.rows_inserted is landed.counts.rows_updated is None
        assert landed.rows is landed.row_change is landed.total_record_count is landed.delta_record_count is None
        assert landed.size_text == "rows unknown" and "rows unknown" in repr(landed)
    with ts.TableEnvironment.create(service.options("writer"), engine="duckdb") as env:
        results = [env.execute_sql(f"INSERT INTO shop.orders VALUES ({n}, 'us', 1, 2)").to_arrow() for n in (1, 98)]
    assert [result.drop_columns(["snapshot_id"]) for result in results[:1]] == [results[1].drop_columns(["snapshot_id"])]


def test_snapshots_and_tags_come_without_numbers_of_rows(scene: Scene) -> None:
    seen = scene.seen
    read = seen.scan().snapshot
    assert read is not None
    for snapshot in (read, *seen.snapshots(), *(tag.snapshot for tag in seen.tags())):
        counts = snapshot.counts
        assert counts.rows_affected is counts.rows_inserted is counts.rows_updated is counts.rows_deleted is None
        assert snapshot.rows is snapshot.row_change is snapshot.total_record_count is snapshot.changelog_record_count is None
        assert not any(key.startswith(("tablestore.rows", "tablestore.row-change")) for key in snapshot.properties)
    assert scene.beside.snapshots()[-1].total_record_count
    warehouse = AgentWarehouse(catalog=scene.service.catalog("reader"))
    commits = table_history(warehouse, {"table": "shop.orders", "limit": 20})["commits"]
    assert commits and all(one["rows"] is None and one["did"] == "unknown" for one in commits)
    assert not any(name.startswith("rows") for one in commits for name in one["counts"])
    assert describe_table(warehouse, {"table": "shop.orders"})["rows"] is None


def command(scene: Scene, *words: str) -> str:
    """What a command prints to a reader, in JSON."""
    storage = [f"--storage={pair}" for pair in ("metastore=rest", f"uri={scene.service.address}", "token=env:READERS_TOKEN")]
    return run_command(*words, "--warehouse", "lake", *storage, "--json").out


def test_commands_leave_out_what_tells_of_hidden_rows(both: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READERS_TOKEN", "reader")
    described = json.loads(command(both, "table", "describe", "shop.orders"))
    assert described["totals"] is described["buckets"] is described["snapshot"]["records"] is None
    assert [column["name"] for column in described["columns"]] == SCHEMA.names
    explained = json.loads(command(both, "table", "explain", "shop.orders", "--filter", "id = 2"))
    assert explained["rules"] == {"masked": ["card", "item", "size"]} and "files" not in explained
    for words in (["snapshot", "list"], ["snapshot", "show"], ["table", "history"]):
        printed = json.loads(command(both, *words, "shop.orders", *(["2"] if words[1] == "show" else [])))
        lines = [printed] if isinstance(printed, dict) and "id" in printed else next(iter(printed.values()))
        assert lines and all(line.get("rows") is line.get("total_records") is None for line in lines)
        assert "tablestore.rows" not in str(printed) and "records in files" not in str(printed)
    (line,) = json.loads(command(both, "table", "list", "shop", "--long"))["tables"]
    assert line["records"] is None


def test_the_service_lists_and_drops_no_partitions_for_who_does_not_see_all(service: RuledService, tmp_path: Path) -> None:
    scene = scene_of(service, tmp_path, replace(BOTH, roles=()), "partitioned")
    scene.beside.create_branch("b", snapshot_id=1)
    client = service.catalog("owner").table("shop.orders").context.main_files.service  # type: ignore[union-attr]
    before = len(scene.beside.snapshots())
    where = ("databases", "shop", "tables", "orders")
    spec = {"specs": [{"region": "us"}], "partitionSpecs": [{"region": "us"}]}
    requests: list[tuple[str, tuple[str, ...], object]] = [
        ("GET", ("partitions",), None),
        ("POST", ("partitions", "list-by-names"), spec),
        ("POST", ("partitions", "drop"), spec),
        ("POST", ("rollback",), {"instant": {"type": "snapshot", "snapshotId": 1}}),
        ("POST", ("branches", "b", "forward"), {}),
    ]
    for method, path, body in requests:
        with pytest.raises(ts.UnsupportedError, match="hide rows or columns") as refused:
            client.send(method, client.path(*where, *path), body)
        assert refused.value.kind == "query-rules"
    assert len(scene.beside.refresh().snapshots()) == before
    service.rules.clear()
    assert len(client.get(client.path(*where, "partitions"))["partitions"]) == 2


def test_the_error_of_a_refresh_is_told_to_who_sees_all_of_its_sources(both: Scene) -> None:
    both.service.rules[:] = []
    with ts.TableEnvironment.create(str(Path(both.beside.location).parents[1]), engine="duckdb") as env:
        # Over the rest of the path a reader has a role on orders alone.
        env.execute_sql(
            "CREATE MATERIALIZED TABLE shop.m FRESHNESS = INTERVAL '1' HOUR REFRESH_MODE = FULL AS "
            "SELECT id, CAST(card AS INT) AS n FROM shop.orders"
        )
        with pytest.raises(ts.TablestoreError, match="Could not convert"):
            env.execute_sql("ALTER MATERIALIZED TABLE shop.m REFRESH")
        whole = env.execute_sql("DESCRIBE EXTENDED shop.m").to_arrow().to_pylist()
        assert "Could not convert" in str(whole)
    both.service.rules[:] = [replace(BOTH, roles=(), principals=("owner",))]
    for who, is_told in (("admin", True), ("owner", False)):
        with both.environment(who) as env:
            (figures,) = env.freshness("shop")
            assert figures.error is not None and figures.error.during == "refresh" and figures.error.at_ms
            told = (figures.error.message, str(env.execute_sql("DESCRIBE EXTENDED shop.m").to_arrow().to_pylist()))
        for text in told:
            assert ("Could not convert" in text) is is_told
            assert is_told or ("InvalidInputError" in text and "for who sees all rows" in text)


def test_a_rescale_that_the_service_refuses_leaves_the_table_open_to_writers(service: RuledService, tmp_path: Path) -> None:
    beside = ts.open_catalog(str(tmp_path / "wh")).create_table("shop.orders", SCHEMA, **TABLES["keyed"])
    beside.upsert(FIRST)
    table = service.catalog("reader").table("shop.orders")
    assert isinstance(table, ts.Table)
    with pytest.raises(ts.StorageError, match="403"):
        table.rescale(5)
    assert beside.refresh().options()["bucket"] == "2"
    writer = service.catalog("writer").table("shop.orders")
    assert isinstance(writer, ts.Table) and writer.upsert(SECOND) is not None
    owner = service.catalog("owner").table("shop.orders")
    assert isinstance(owner, ts.Table)
    assert owner.rescale(5).options()["bucket"] == "5" and owner.upsert(FIRST) is not None
