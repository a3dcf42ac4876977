"""The catalog of a service: the contracts of catalogs and of who publishes snapshots, over services of two kinds of catalog."""

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from anyio import to_thread
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import tablestore as ts
from tablestore.catalog.metacatalog import MetaCatalog
from tablestore.catalog.opening import open_meta_catalog
from tablestore.catalog.settings import parse_catalog_settings
from tablestore.errors import NotFoundError, StorageError
from tablestore.ids import SystemIds
from tablestore.store.commit.committerfactory import committer
from tablestore.store.commit.snapshotcommit import ServiceCommit, SnapshotCommit
from tablestore.store.context import TableContext
from tablestore.testing.contracts.metacatalog import CatalogOf, MetaCatalogContract
from tablestore.testing.contracts.snapshotcommit import Opened, SnapshotCommitContract, empty_snapshot, published
from tests.support.servers.serverthread import catalog_service


def publishing(context: TableContext) -> SnapshotCommit:
    return committer(context).publishing


def rest(uri: str) -> MetaCatalog:
    return open_meta_catalog(parse_catalog_settings({"metastore": "rest", "uri": uri}), SystemIds())[0]


class TestServiceOfFiles(MetaCatalogContract):
    @pytest.fixture
    def catalog_of(self, tmp_path: Path) -> Iterator[CatalogOf]:
        with catalog_service(ts.open_catalog(str(tmp_path / "warehouse"))) as uri:
            yield lambda: rest(uri)


class TestServiceOfSqlite(MetaCatalogContract):
    @pytest.fixture
    def catalog_of(self, tmp_path: Path) -> Iterator[CatalogOf]:
        catalog = ts.open_catalog(str(tmp_path / "warehouse"), metastore="jdbc", uri=f"sqlite:///{tmp_path}/catalog.db")
        with catalog_service(catalog) as uri:
            yield lambda: rest(uri)


class TestServiceCommit(SnapshotCommitContract):
    @pytest.fixture
    def opened(self, tmp_path: Path) -> Iterator[Callable[[], Opened]]:
        with catalog_service(ts.open_catalog(str(tmp_path / "warehouse"))) as uri:
            catalog = ts.open_catalog(metastore="rest", uri=uri)
            catalog.create_database("shop")
            context = catalog.create_table("shop.orders", "id BIGINT, v STRING").context

            def again() -> Opened:
                opened = context.reopened()
                commit = publishing(opened)
                assert isinstance(commit, ServiceCommit)
                return Opened(opened, commit)

            yield again


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with catalog_service(ts.open_catalog(str(tmp_path / "warehouse"))) as uri:
        yield uri


def test_a_table_is_written_through_the_service_and_beside_it(address: str, tmp_path: Path) -> None:
    served, beside = ts.open_catalog(metastore="rest", uri=address), ts.open_catalog(str(tmp_path / "warehouse"))
    served.create_database("shop")
    served.create_table("shop.orders", "id BIGINT, v STRING", primary_key=["id"])
    for k in range(4):
        table = (served, beside)[k % 2].table("shop.orders")
        assert isinstance(table, ts.Table)
        table.upsert(pa.table({"id": [k, k + 1], "v": [f"a{k}", f"b{k}"]}))
    rows = {row["id"]: row["v"] for row in served.table("shop.orders").to_arrow().to_pylist()}
    assert rows == {0: "a0", 1: "a1", 2: "a2", 3: "a3", 4: "b3"}


def test_a_commit_through_the_service_says_what_it_did(address: str) -> None:
    served = ts.open_catalog(metastore="rest", uri=address)
    served.create_database("shop")
    table = served.create_table("shop.orders", "id BIGINT, v STRING", primary_key=["id"])
    landed = [table.upsert(pa.table({"id": [1, 2], "v": ["a", "b"]})), table.update({"v": "'c'"}, "id = 1"), table.delete("id = 2")]
    said = ["2 rows inserted", "1 row updated", "1 row deleted"]
    assert [snapshot.counts.text for snapshot in landed if snapshot is not None] == said
    assert [snapshot.counts.text for snapshot in table.snapshots()] == said


def test_a_branch_is_committed_to_through_the_service(address: str) -> None:
    catalog = ts.open_catalog(metastore="rest", uri=address)
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", "id BIGINT")
    table.append(pa.table({"id": [1]}))
    table.create_branch("b")
    branch = catalog.table("shop.orders$branch_b")
    assert isinstance(branch, ts.Table) and isinstance(publishing(branch.context), ServiceCommit)
    branch.append(pa.table({"id": [2]}))
    assert (branch.refresh().to_arrow().num_rows, table.refresh().to_arrow().num_rows) == (2, 1)


def test_statements_of_an_environment_go_through_the_service(address: str) -> None:
    with ts.TableEnvironment.create({"metastore": "rest", "uri": address}, engine="duckdb") as env:
        env.execute_sql("CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED)")
        env.execute_sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        env.execute_sql("CREATE TABLE copied AS SELECT id, upper(v) AS v FROM t")
        env.execute_sql("CREATE OR REPLACE TABLE copied AS SELECT id + 10 AS id FROM t")
        env.execute_sql("CREATE VIEW dear AS SELECT id FROM copied WHERE id > 11")
        env.execute_sql("UPDATE t SET v = 'z' WHERE id = 2")
        env.execute_sql("ALTER TABLE t ADD COLUMN w INT")
        env.execute_sql("CREATE MATERIALIZED TABLE m FRESHNESS = INTERVAL '1' HOUR AS SELECT id, v FROM t")
        assert env.execute_sql("SELECT v FROM t ORDER BY id").to_arrow()["v"].to_pylist() == ["a", "z"]
        assert env.execute_sql("SELECT id FROM dear").to_arrow()["id"].to_pylist() == [12]
        with pytest.raises(ts.TablestoreError):
            env.execute_sql("CREATE TABLE failed AS SELECT 1 / 0 AS x, raise_error('no') AS y")
    with ts.TableEnvironment.create({"metastore": "rest", "uri": address}, engine="duckdb") as env:
        assert sorted(env.catalog().list_tables("default")) == ["copied", "m", "t"]
        assert env.execute_sql("SELECT id FROM dear").to_arrow()["id"].to_pylist() == [12]
        env.execute_sql("DROP VIEW dear")
        env.execute_sql("DROP MATERIALIZED TABLE m")
        env.execute_sql("DROP TABLE copied")
        env.execute_sql("ALTER TABLE t RENAME TO u")
        assert env.catalog().list_tables("default") == ("u",)


def test_a_table_opened_by_its_path_with_the_options_of_the_catalog_commits_through_the_service(address: str) -> None:
    catalog = ts.open_catalog(metastore="rest", uri=address)
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", "id BIGINT")
    again = ts.open_table(table.location, **catalog.storage_options)
    assert isinstance(again, ts.Table) and isinstance(publishing(again.context), ServiceCommit)
    again.append(pa.table({"id": [1]}))
    assert table.refresh().to_arrow().num_rows == 1


def test_a_renamed_table_is_committed_to_under_its_new_name(address: str) -> None:
    catalog = ts.open_catalog(metastore="rest", uri=address)
    catalog.create_database("shop")
    commit = publishing(catalog.create_table("shop.orders", "id BIGINT").context)
    catalog.rename_table("shop.orders", "shop.sales")
    renamed = catalog.table("shop.sales")
    assert isinstance(commit, ServiceCommit) and isinstance(renamed, ts.Table)
    # A commit that was begun under the old name: the service is asked what the table is called now.
    assert published(Opened(renamed.context, commit), empty_snapshot(renamed.context, 1))
    assert renamed.refresh().snapshots()[0].id == 1
    late = empty_snapshot(renamed.context, 2)
    catalog.drop_table("shop.sales")
    with pytest.raises(NotFoundError):
        published(Opened(renamed.context, commit), late)


def test_a_catalog_pickles_and_shows_no_token(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATALOG_TOKEN", "canary")
    catalog = ts.open_catalog(metastore="rest", uri=address, token="env:CATALOG_TOKEN")
    assert catalog.properties["token"] == "env:CATALOG_TOKEN"
    copy = pickle.loads(pickle.dumps(catalog))
    copy.create_database("shop")
    assert catalog.list_databases() == ("shop",)
    plain = ts.open_catalog(metastore="rest", uri=address, token="canary")
    assert "canary" not in str(dict(plain.properties)) and b"canary" not in pickle.dumps(plain)


class LosingAnswers:
    """An ASGI application whose first answer to each change, which is carried out, is 503 for the client."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._seen = app, set[tuple[str, str]]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = (str(scope.get("method")), str(scope.get("path")))
        if scope["type"] != "http" or key[0] == "GET" or key in self._seen:
            await self._app(scope, receive, send)
            return
        self._seen.add(key)

        async def swallow(message: Message) -> None:
            """Sends nothing."""

        await self._app(scope, receive, swallow)
        await send({"type": "http.response.start", "status": 503, "headers": [(b"retry-after", b"0"), (b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


def test_changes_whose_answers_are_lost_are_carried_out_once(tmp_path: Path) -> None:
    with catalog_service(ts.open_catalog(str(tmp_path / "warehouse")), wrap=LosingAnswers) as uri:
        catalog = ts.open_catalog(metastore="rest", uri=uri)
        catalog.create_database("shop")
        table = catalog.create_table("shop.orders", "id BIGINT")
        table.append(pa.table({"id": [1]}))
        assert table.refresh().to_arrow().num_rows == 1 and len(table.snapshots()) == 1
        catalog.rename_table("shop.orders", "shop.sales")
        assert catalog.list_tables("shop") == ("sales",)
        catalog.drop_table("shop.sales")
        assert catalog.list_tables("shop") == ()
        with ts.TableEnvironment.create({"metastore": "rest", "uri": uri}, engine="duckdb") as env:
            env.execute_sql("CREATE TABLE shop.made AS SELECT 1 AS id")
            env.execute_sql("CREATE VIEW shop.seen AS SELECT id FROM shop.made")
            assert env.execute_sql("SELECT id FROM shop.seen").to_arrow()["id"].to_pylist() == [1]


def test_a_service_that_is_not_there_is_named() -> None:
    with pytest.raises(StorageError, match="nothing answers"):
        ts.open_catalog(metastore="rest", uri="http://127.0.0.1:9")


def test_new_tables_have_the_options_of_the_service_below_those_of_the_client_and_their_own(tmp_path: Path) -> None:
    defaults = {"table-default.bucket": "3", "table-default.snapshot.num-retained.max": "70", "table-default.write-only": "true"}
    with catalog_service(ts.open_catalog(str(tmp_path / "warehouse"), **defaults)) as uri:
        catalog = ts.open_catalog({"metastore": "rest", "uri": uri, "table-default.bucket": "5"})
        catalog.create_database("shop")
        table = catalog.create_table("shop.orders", "id BIGINT", primary_key=["id"], options={"write-only": "false"})
        options = {"bucket": "5", "snapshot.num-retained.max": "70", "write-only": "false"}
        assert catalog.table("shop.orders").options().items() >= options.items()
        assert table.options() == catalog.table("shop.orders").options()
        again = pickle.loads(pickle.dumps(catalog))
        again.create_table("shop.sales", "id BIGINT", primary_key=["id"])
        assert again.table("shop.sales").options().items() >= {"bucket": "5", "snapshot.num-retained.max": "70"}.items()


def test_a_service_may_overrule_the_options_of_new_tables_and_name_some_of_other_engines(tmp_path: Path) -> None:
    class Overruling:
        """Answers the configuration as another service may."""

        def __init__(self, app: ASGIApp) -> None:
            self._app = app

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and scope["path"] == "/v1/config":
                defaults = {"prefix": "lake", "table-default.bucket": "2", "table-default.sink.parallelism": "4"}
                answer = {"defaults": defaults, "overrides": {"table-default.bucket": 7}}
                await Response(json.dumps(answer), 200, None, "application/json")(scope, receive, send)
            else:
                await self._app(scope, receive, send)

    with catalog_service(ts.open_catalog(str(tmp_path / "warehouse")), wrap=Overruling) as uri:
        catalog = ts.open_catalog({"metastore": "rest", "uri": uri, "table-default.bucket": "5"})
        catalog.create_database("shop")
        options = catalog.create_table("shop.orders", "id BIGINT", primary_key=["id"]).options()
        assert options["bucket"] == "7" and "sink.parallelism" not in options


class Overtaking:
    """An ASGI application that notes what is posted to a table, and lets another commit land before the first one."""

    def __init__(self, app: ASGIApp, overtake: Callable[[], object]) -> None:
        self._app, self._overtake, self.posted = app, overtake, list[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and "/tables/orders/" in scope["path"]:
            if scope["path"].endswith("/commit") and "commit" not in self.posted:
                await to_thread.run_sync(self._overtake)
            self.posted.append(scope["path"].rpartition("/")[2])
        await self._app(scope, receive, send)


def test_whoever_is_new_or_was_too_late_waits_for_its_turn_before_it_builds_a_commit(tmp_path: Path) -> None:
    beside = ts.open_catalog(str(tmp_path / "warehouse"))
    beside.create_database("shop")
    beside.create_table("shop.orders", "id BIGINT")
    services: list[Overtaking] = []

    def overtaking(app: ASGIApp) -> ASGIApp:
        services.append(Overtaking(app, lambda: beside.table("shop.orders").append({"id": [0]})))
        return services[0]

    with catalog_service(beside, wrap=overtaking) as uri:
        table = ts.open_catalog(metastore="rest", uri=uri).table("shop.orders")
        assert isinstance(table, ts.Table)
        for number in (1, 2, 3):
            table.append(pa.table({"id": [number]}))
        posted = [verb for verb in services[0].posted if verb != "auth"]
        # Before its first commit, after the one that came too late, and not after a turn that it had at once.
        assert posted == ["commit-turn", "commit", "commit", "commit-turn", "commit", "commit"]
        assert sorted(table.refresh().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3]


def test_a_service_that_knows_no_turns_takes_commits_all_the_same(tmp_path: Path) -> None:
    class WithoutTurns(LosingAnswers):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            asks_for_a_turn = str(scope.get("path")).endswith("/commit-turn")
            await self._app({**scope, "path": "/nowhere"} if asks_for_a_turn else scope, receive, send)

    with catalog_service(ts.open_catalog(str(tmp_path / "warehouse")), wrap=WithoutTurns) as uri:
        catalog = ts.open_catalog(metastore="rest", uri=uri)
        catalog.create_database("shop")
        table = catalog.create_table("shop.orders", "id BIGINT")
        commit = publishing(table.context)
        assert isinstance(commit, ServiceCommit)
        commit.client.crowded.add(commit.location)
        table.append(pa.table({"id": [1]}))
        assert table.refresh().to_arrow()["id"].to_pylist() == [1]
