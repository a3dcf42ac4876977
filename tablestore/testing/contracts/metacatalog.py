"""Holds a catalog to what it promises: tests to subclass.

    class TestMine(MetaCatalogContract):
        @pytest.fixture
        def catalog_of(self, tmp_path):
            return lambda: MyCatalog(tmp_path)      # each call opens the same catalog anew, as another process would

A catalog that lives in one object returns that one.
"""

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from tablestore.catalog.definitions import DefinitionKind, KeepsDefinitions
from tablestore.catalog.identifier import Identifier
from tablestore.catalog.metacatalog import MetaCatalog
from tablestore.errors import AlreadyExistsError, ConflictError, InvalidInputError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.format.paths import schema_path, snapshot_path
from tablestore.format.schemafile import decode_schema, encode_schema
from tablestore.store.schemas import TABLE_UUID_OPTION
from tablestore.types.newschema import new_schema
from tablestore.types.schema import TableSchema

CatalogOf = Callable[[], MetaCatalog]
ORDERS, ITEMS = Identifier("shop", "orders"), Identifier("shop", "items")
# What a careless catalog takes for a path, a pattern, or SQL.
HOSTILE = ["", "..", "../x", "a/b", "/etc", "a\\b", "a\0b", "a b", "ä", "a.b", "%", "a'b", 'a"b', "a;b", "`a`", "-rf", "x" * 129]
ODD = ["_", "__x", "0", "select", "TABLE", "null", "x" * 128, "a-b", "schema", "snapshot", "paimon_tables"]


class MetaCatalogContract:
    """Names are checked and kept; a table is whole or it is not there, whoever else is at it."""

    @pytest.fixture
    def catalog_of(self) -> CatalogOf:
        """Opens one catalog, empty at first, as often as it is called."""
        raise NotImplementedError("override the fixture `catalog_of`")

    @pytest.fixture
    def catalog(self, catalog_of: CatalogOf) -> MetaCatalog:
        return catalog_of()

    # ---- names

    def test_databases_are_listed_in_order_and_dropped(self, catalog: MetaCatalog, catalog_of: CatalogOf) -> None:
        assert catalog.list_databases() == () and not catalog.has_database("shop")
        catalog.create_database("shop")
        catalog.create_database("audit")
        with pytest.raises(AlreadyExistsError) as refused:
            catalog.create_database("shop")
        assert refused.value.kind == "database-exists"
        catalog.create_database("shop", ignore_if_exists=True)
        assert catalog_of().list_databases() == ("audit", "shop") and catalog_of().has_database("shop")
        catalog.drop_database("shop")
        assert catalog_of().list_databases() == ("audit",)
        with pytest.raises(NotFoundError) as missing:
            catalog.drop_database("shop")
        assert missing.value.kind == "no-such-database"
        catalog.drop_database("shop", ignore_if_not_exists=True)

    def test_tables_are_listed_in_order_and_dropped(self, catalog: MetaCatalog, catalog_of: CatalogOf) -> None:
        catalog.create_database("shop")
        assert catalog.list_tables("shop") == () and not catalog.has_table(ORDERS)
        assert catalog.create_table(ORDERS, schema_of("id")) and catalog.create_table(ITEMS, schema_of("id"))
        assert catalog_of().list_tables("shop") == ("items", "orders") and catalog_of().has_table(ORDERS)
        catalog.drop_table(ORDERS)
        assert catalog_of().list_tables("shop") == ("items",) and not catalog_of().has_table(ORDERS)
        for call in (lambda: catalog.drop_table(ORDERS), lambda: catalog.table_files(ORDERS)):
            with pytest.raises(NotFoundError) as missing:
                call()
            assert missing.value.kind == "no-such-table"
        catalog.drop_table(ORDERS, ignore_if_not_exists=True)

    def test_a_table_that_exists_is_refused_or_left_as_it_is(self, catalog: MetaCatalog) -> None:
        catalog.create_database("shop")
        catalog.create_table(ORDERS, schema_of("id"))
        before = stored(catalog, ORDERS)
        with pytest.raises(AlreadyExistsError) as refused:
            catalog.create_table(ORDERS, schema_of("other"))
        assert refused.value.kind == "table-exists"
        assert catalog.create_table(ORDERS, schema_of("other"), ignore_if_exists=True) is False
        assert stored(catalog, ORDERS) == before

    def test_what_needs_a_database_says_which_one_is_missing(self, catalog: MetaCatalog) -> None:
        assert not catalog.has_table(ORDERS)
        for call in (
            lambda: catalog.list_tables("shop"),
            lambda: catalog.create_table(ORDERS, schema_of("id")),
            lambda: catalog.create_table(ORDERS, schema_of("id"), ignore_if_exists=True),
        ):
            with pytest.raises(NotFoundError, match="shop") as missing:
                call()
            assert missing.value.kind == "no-such-database"
        assert catalog.list_databases() == ()

    def test_a_database_with_tables_is_dropped_only_on_request(self, catalog: MetaCatalog) -> None:
        catalog.create_database("shop")
        catalog.create_database("audit")
        catalog.create_table(ORDERS, schema_of("id"))
        catalog.create_table(Identifier("audit", "orders"), schema_of("id"))
        with pytest.raises(InvalidInputError, match="orders") as refused:
            catalog.drop_database("shop")
        assert refused.value.kind == "database-not-empty" and catalog.has_table(ORDERS)
        catalog.drop_database("shop", cascade=True)
        assert catalog.list_databases() == ("audit",) and catalog.list_tables("audit") == ("orders",)
        catalog.create_database("shop")
        assert catalog.list_tables("shop") == ()

    @pytest.mark.parametrize("name", HOSTILE, ids=repr)
    def test_hostile_names_are_refused_and_change_nothing(self, catalog: MetaCatalog, name: str) -> None:
        catalog.create_database("shop")
        catalog.create_table(ORDERS, schema_of("id"))
        for call in (
            lambda: catalog.create_database(name, ignore_if_exists=True),
            lambda: catalog.drop_database(name, ignore_if_not_exists=True, cascade=True),
            lambda: catalog.has_database(name),
            lambda: catalog.list_tables(name),
            lambda: catalog.has_table(Identifier(name, "orders")),
            lambda: catalog.rename_table(ORDERS, Identifier("shop", name)),
        ):
            with pytest.raises(InvalidInputError):
                call()
        assert catalog.list_databases() == ("shop",) and catalog.list_tables("shop") == ("orders",)

    def test_odd_names_are_kept_as_they_are(self, catalog: MetaCatalog, catalog_of: CatalogOf) -> None:
        for name in ODD:
            catalog.create_database(name)
        catalog.create_database("shop")
        for name in ODD:
            catalog.create_table(Identifier("shop", name), schema_of("id"))
        assert catalog_of().list_databases() == tuple(sorted([*ODD, "shop"]))
        assert catalog_of().list_tables("shop") == tuple(sorted(ODD))
        for name in ODD:
            catalog.drop_table(Identifier("shop", name))
        assert catalog.list_tables("shop") == ()

    # ---- tables

    def test_a_new_table_has_its_schema_and_an_identity_of_its_own(self, catalog: MetaCatalog) -> None:
        catalog.create_database("shop")
        seen = set()
        for _ in range(2):
            catalog.create_table(ORDERS, schema_of("id", "price"))
            schema = stored(catalog, ORDERS)
            assert [field.name for field in schema.fields] == ["id", "price"]
            seen.add(schema.options[TABLE_UUID_OPTION])
            catalog.drop_table(ORDERS)
        assert len(seen) == 2

    def test_a_dropped_table_leaves_no_file_to_its_successor(self, catalog: MetaCatalog) -> None:
        catalog.create_database("shop")
        catalog.create_table(ORDERS, schema_of("id"))
        catalog.table_files(ORDERS).write(snapshot_path(1), b"old")
        catalog.drop_table(ORDERS)
        catalog.create_table(ORDERS, schema_of("id"))
        assert [info.name for info in catalog.table_files(ORDERS).list("")] == ["schema"]

    def test_a_creation_deals_with_what_a_removal_that_died_has_left(self, catalog: MetaCatalog) -> None:
        catalog.create_database("shop")
        catalog.create_table(ORDERS, schema_of("id"))
        files = catalog.table_files(ORDERS)
        files.write(snapshot_path(1), b"old")
        files.delete_directory("schema")  # as far as the removal came
        assert not catalog.has_table(ORDERS)
        with pytest.raises(NotFoundError):
            catalog.table_files(ORDERS)
        (outcome,) = at_once(_creation(catalog, ORDERS, "id"))
        if outcome is not True:  # where nobody can know that it died
            assert isinstance(outcome, AlreadyExistsError) and outcome.kind == "half-removed-table", outcome
            catalog.drop_table(ORDERS)
            catalog.create_table(ORDERS, schema_of("id"))
        assert [info.name for info in catalog.table_files(ORDERS).list("")] == ["schema"]

    def test_a_database_whose_removal_died_is_dropped(self, catalog: MetaCatalog) -> None:
        catalog.create_database("shop")
        catalog.create_table(ORDERS, schema_of("id"))
        catalog.table_files(ORDERS).delete_directory("schema")
        catalog.drop_database("shop")
        assert not catalog.has_database("shop")

    def test_a_renamed_table_keeps_its_files(self, catalog: MetaCatalog, catalog_of: CatalogOf) -> None:
        new = Identifier("archive", "orders_2024")
        catalog.create_database("shop")
        catalog.create_database("archive")
        catalog.create_table(ORDERS, schema_of("id"))
        before = stored(catalog, ORDERS)
        catalog.table_files(ORDERS).write(snapshot_path(1), b"kept")
        catalog.rename_table(ORDERS, new)
        again = catalog_of()
        assert (again.list_tables("shop"), again.list_tables("archive")) == ((), ("orders_2024",))
        assert stored(again, new) == before and again.table_files(new).read(snapshot_path(1)) == b"kept"
        assert catalog.create_table(ORDERS, schema_of("id"))

    # ---- tables that were made elsewhere

    def test_a_table_that_was_made_elsewhere_gets_its_name_with_all_its_files(
        self, catalog: MetaCatalog, catalog_of: CatalogOf
    ) -> None:
        catalog.create_database("shop")
        made = _made_elsewhere(catalog, "_ctas/hidden/orders")
        assert catalog.list_tables("shop") == () and "_ctas" not in catalog.list_databases()
        catalog.publish_table(ORDERS, "_ctas/hidden/orders")
        again = catalog_of()
        assert again.list_tables("shop") == ("orders",) and stored(again, ORDERS) == made
        assert again.table_files(ORDERS).read(snapshot_path(1)) == b"rows"
        _made_elsewhere(catalog, "_ctas/hidden/more")
        for identifier, kind in ((ORDERS, AlreadyExistsError), (Identifier("nowhere", "t"), NotFoundError)):
            with pytest.raises(kind):
                catalog.publish_table(identifier, "_ctas/hidden/more")
        with pytest.raises(NotFoundError):
            catalog.publish_table(ITEMS, "_ctas/hidden/nothing")
        assert again.list_tables("shop") == ("orders",) and stored(again, ORDERS) == made

    def test_of_several_that_publish_one_name_at_most_one_wins(self, catalog: MetaCatalog, catalog_of: CatalogOf) -> None:
        catalog.create_database("shop")
        uuids = [_made_elsewhere(catalog, f"_ctas/hidden/t{k}").options[TABLE_UUID_OPTION] for k in range(3)]
        outcomes = at_once(*[_publishing(catalog_of(), f"_ctas/hidden/t{k}") for k in range(3)])
        winners = [k for k, outcome in enumerate(outcomes) if outcome is None]
        assert all(isinstance(outcome, AlreadyExistsError) for outcome in outcomes if outcome is not None), outcomes
        assert [uuids[k] for k in winners] == ([stored(catalog, ORDERS).options[TABLE_UUID_OPTION]] if winners else [])
        assert winners or not catalog.has_table(ORDERS)

    def test_two_tables_change_places_or_nothing_happens(self, catalog: MetaCatalog) -> None:
        catalog.create_database("shop")
        catalog.create_table(ORDERS, schema_of("id"), table_uuid="the old one")
        made = _made_elsewhere(catalog, "_ctas/hidden/orders")
        with pytest.raises((ConflictError, UnsupportedError)):
            catalog.exchange_table(ORDERS, "_ctas/hidden/orders", table_uuid="another")
        assert stored(catalog, ORDERS).options[TABLE_UUID_OPTION] == "the old one"
        try:
            catalog.exchange_table(ORDERS, "_ctas/hidden/orders", table_uuid="the old one")
        except UnsupportedError:
            return
        assert stored(catalog, ORDERS) == made
        assert catalog.files.exists(f"_ctas/hidden/orders/{schema_path(0)}")

    def test_only_the_table_of_an_identity_is_dropped_where_one_is_given(self, catalog: MetaCatalog) -> None:
        catalog.create_database("shop")
        catalog.create_table(ORDERS, schema_of("id"), table_uuid="mine")
        with pytest.raises(ConflictError) as refused:
            catalog.drop_table(ORDERS, table_uuid="yours")
        assert refused.value.kind == "table-replaced" and catalog.has_table(ORDERS)
        catalog.drop_table(ORDERS, table_uuid="mine")
        assert not catalog.has_table(ORDERS)

    def test_a_renaming_that_is_refused_changes_nothing(self, catalog: MetaCatalog) -> None:
        catalog.create_database("shop")
        catalog.create_table(ORDERS, schema_of("id"))
        catalog.create_table(ITEMS, schema_of("id"))
        nowhere = Identifier("nowhere", "orders")
        for old, new, error in (
            (ORDERS, ITEMS, AlreadyExistsError),
            (ORDERS, ORDERS, AlreadyExistsError),
            (ORDERS, nowhere, NotFoundError),
            (Identifier("shop", "nothing"), Identifier("shop", "new"), NotFoundError),
            (nowhere, Identifier("shop", "new"), NotFoundError),
        ):
            with pytest.raises(error):
                catalog.rename_table(old, new)
        catalog.rename_table(nowhere, Identifier("shop", "new"), ignore_if_not_exists=True)
        assert (catalog.list_databases(), catalog.list_tables("shop")) == (("shop",), ("items", "orders"))

    # ---- facts

    def test_definitions_are_kept_replaced_and_dropped_beside_the_tables(self, catalog: MetaCatalog, catalog_of: CatalogOf) -> None:
        if not isinstance(catalog, KeepsDefinitions):
            pytest.skip("it keeps no definitions")
        view, relation, function = Identifier("shop", "dear"), DefinitionKind.RELATION, DefinitionKind.FUNCTION
        with pytest.raises(NotFoundError):
            catalog.keep_definition(view, relation, "1")
        catalog.create_database("shop")
        catalog.keep_definition(view, relation, "1")
        catalog.keep_definition(view, function, "f")
        again = catalog_of()
        assert isinstance(again, KeepsDefinitions)
        assert again.find_definition(view, relation) == "1" and again.list_definitions("shop", relation) == ("dear",)
        assert again.list_tables("shop") == () and not again.has_table(view)
        with pytest.raises(AlreadyExistsError):
            again.keep_definition(view, relation, "2")
        with pytest.raises(AlreadyExistsError):
            again.create_table(view, schema_of("id"))
        again.keep_definition(view, relation, "2", replace=True)
        assert catalog.find_definition(view, relation) == "2" and catalog.find_definition(view, function) == "f"
        with pytest.raises(InvalidInputError):
            catalog.drop_database("shop")
        assert catalog.drop_definition(view, relation) and not catalog.drop_definition(view, relation)
        assert catalog.find_definition(view, relation) is None
        catalog.create_table(view, schema_of("id"))
        with pytest.raises(AlreadyExistsError):
            catalog.keep_definition(view, relation, "3")
        catalog.drop_database("shop", cascade=True)
        assert not catalog.has_database("shop") and catalog.list_definitions("shop", function) == ()
        catalog.create_database("shop")
        catalog.keep_definition(view, DefinitionKind.DATABASE, "what is said of the database itself")
        catalog.drop_database("shop")
        assert not catalog.has_database("shop") and catalog.find_definition(view, DefinitionKind.DATABASE) is None

    def test_its_lock_is_a_value_that_other_processes_get(self, catalog: MetaCatalog) -> None:
        assert catalog.lock is None or pickle.loads(pickle.dumps(catalog.lock)) == catalog.lock
        assert catalog.supports_managed_table in (True, False)

    def test_it_pickles_or_says_why_not(self, catalog: MetaCatalog) -> None:
        catalog.create_database("shop")
        catalog.create_table(ORDERS, schema_of("id"))
        if not catalog.serializable:
            with pytest.raises(UnsupportedError) as refused:
                pickle.dumps(catalog)
            assert refused.value.kind == "not-serializable"
            return
        copy = pickle.loads(pickle.dumps(catalog))
        assert stored(copy, ORDERS) == stored(catalog, ORDERS)
        copy.drop_table(ORDERS)
        assert not catalog.has_table(ORDERS)

    # ---- several at once

    def test_of_several_creators_one_wins_and_its_table_stays(self, catalog: MetaCatalog, catalog_of: CatalogOf) -> None:
        catalog.create_database("shop")
        for n in range(4):
            mine = Identifier("shop", f"t{n}")
            calls = [_creation(catalog_of(), mine, f"c{k}") for k in range(4)]
            outcomes = at_once(*calls)
            winners = [k for k, outcome in enumerate(outcomes) if outcome is True]
            assert len(winners) == 1, outcomes
            assert all(isinstance(outcome, AlreadyExistsError) for outcome in outcomes if outcome is not True), outcomes
            assert stored(catalog, mine).fields[0].name == f"c{winners[0]}"

    def test_of_several_who_create_a_database_two_never_win(self, catalog: MetaCatalog, catalog_of: CatalogOf) -> None:
        outcomes = at_once(*[_database_creation(catalog_of()) for _ in range(4)])
        assert sum(outcome is None for outcome in outcomes) <= 1, outcomes
        assert all(isinstance(outcome, AlreadyExistsError) for outcome in outcomes if outcome is not None), outcomes
        assert catalog.list_databases() == ("shop",)

    def test_of_several_renamings_to_one_name_one_wins(self, catalog: MetaCatalog, catalog_of: CatalogOf) -> None:
        catalog.create_database("shop")
        goal = Identifier("shop", "goal")
        olds = [Identifier("shop", f"old{k}") for k in range(3)]
        for old in olds:
            catalog.create_table(old, schema_of(old.table))
        outcomes = at_once(*[_renaming(catalog_of(), old, goal) for old in olds])
        winners = [k for k, outcome in enumerate(outcomes) if outcome is None]
        assert len(winners) == 1, outcomes
        assert all(isinstance(outcome, AlreadyExistsError) for outcome in outcomes if outcome is not None), outcomes
        assert stored(catalog, goal).fields[0].name == f"old{winners[0]}"
        losers = [old for k, old in enumerate(olds) if k != winners[0]]
        assert [stored(catalog, old).fields[0].name for old in losers] == [old.table for old in losers]

    def test_of_several_renamings_of_one_table_one_wins(self, catalog: MetaCatalog, catalog_of: CatalogOf) -> None:
        catalog.create_database("shop")
        catalog.create_table(ORDERS, schema_of("id"))
        news = [Identifier("shop", f"new{k}") for k in range(3)]
        outcomes = at_once(*[_renaming(catalog_of(), ORDERS, new) for new in news])
        assert sum(outcome is None for outcome in outcomes) == 1, outcomes
        assert all(isinstance(outcome, TablestoreError) for outcome in outcomes if outcome is not None), outcomes
        assert [catalog.has_table(new) for new in news] == [outcome is None for outcome in outcomes]
        assert not catalog.has_table(ORDERS)

    def test_renamings_in_a_circle_end_and_lose_no_table(self, catalog: MetaCatalog, catalog_of: CatalogOf) -> None:
        catalog.create_database("shop")
        catalog.create_table(ORDERS, schema_of("orders"))
        catalog.create_table(ITEMS, schema_of("items"))
        outcomes = at_once(_renaming(catalog_of(), ORDERS, ITEMS), _renaming(catalog_of(), ITEMS, ORDERS))
        assert all(isinstance(outcome, AlreadyExistsError) for outcome in outcomes), outcomes
        assert stored(catalog, ORDERS).fields[0].name == "orders" and stored(catalog, ITEMS).fields[0].name == "items"

    def test_a_table_that_is_dropped_and_created_at_once_is_whole_or_gone(
        self, catalog: MetaCatalog, catalog_of: CatalogOf
    ) -> None:
        catalog.create_database("shop")
        for _ in range(4):
            catalog.create_table(ORDERS, schema_of("old"), ignore_if_exists=True)
            catalog.table_files(ORDERS).write(snapshot_path(1), b"old")
            first, second = catalog_of(), catalog_of()
            outcomes = at_once(partial(first.drop_table, ORDERS), _creation(second, ORDERS, "new"))
            assert outcomes[0] is None and (outcomes[1] is True or isinstance(outcomes[1], AlreadyExistsError)), outcomes
            if catalog.has_table(ORDERS):
                assert stored(catalog, ORDERS).fields[0].name == "new"
                assert [info.name for info in catalog.table_files(ORDERS).list("")] == ["schema"]
            catalog.drop_table(ORDERS, ignore_if_not_exists=True)

    def test_a_database_is_not_dropped_under_a_table_that_is_created_in_it(
        self, catalog: MetaCatalog, catalog_of: CatalogOf
    ) -> None:
        for _ in range(4):
            catalog.create_database("shop", ignore_if_exists=True)
            first, second = catalog_of(), catalog_of()
            dropped, created = at_once(partial(first.drop_database, "shop"), _creation(second, ORDERS, "id"))
            assert dropped is None or isinstance(dropped, InvalidInputError), dropped
            assert created is True or isinstance(created, NotFoundError), created
            if catalog.has_database("shop"):
                assert catalog.list_tables("shop") in ((), ("orders",))
                catalog.drop_database("shop", cascade=True)


def schema_of(*names: str) -> TableSchema:
    """The schema of a table with these columns."""
    return new_schema(schema=pa.schema([(name, pa.int64()) for name in names]), time_millis=1_700_000_000_000)


def stored(catalog: MetaCatalog, identifier: Identifier) -> TableSchema:
    """The first schema of a table, as its file has it."""
    return decode_schema(catalog.table_files(identifier).read(schema_path(0)), schema_path(0))


def at_once(*calls: Callable[[], object]) -> list[object]:
    """The results or errors of calls, all begun together in threads of their own."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> object:
        barrier.wait(60)
        try:
            return call()
        except TablestoreError as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def _creation(catalog: MetaCatalog, identifier: Identifier, column: str) -> Callable[[], bool]:
    return lambda: catalog.create_table(identifier, schema_of(column))


def _database_creation(catalog: MetaCatalog) -> Callable[[], None]:
    return lambda: catalog.create_database("shop")


def _made_elsewhere(catalog: MetaCatalog, directory: str) -> TableSchema:
    made = replace(schema_of("id"), options={**schema_of("id").options, TABLE_UUID_OPTION: f"made in {directory}"})
    catalog.files.write(f"{directory}/{schema_path(0)}", encode_schema(made))
    catalog.files.write(f"{directory}/{snapshot_path(1)}", b"rows")
    return made


def _publishing(catalog: MetaCatalog, directory: str) -> Callable[[], None]:
    return lambda: catalog.publish_table(ORDERS, directory)


def _renaming(catalog: MetaCatalog, old: Identifier, new: Identifier) -> Callable[[], None]:
    return lambda: catalog.rename_table(old, new)
