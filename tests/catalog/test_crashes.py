"""A process that dies while it creates, removes or renames a table: at every call of the store, on every kind of catalog."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tablestore.catalog.filesystem import FileSystemCatalog
from tablestore.catalog.identifier import Identifier
from tablestore.catalog.metacatalog import MetaCatalog
from tablestore.catalog.sqlcatalog import SqlCatalog
from tablestore.errors import AlreadyExistsError, CommitOutcomeUnknown, NotFoundError, StorageError
from tablestore.format.paths import snapshot_path
from tablestore.io.filestore import FileStore, RenamesDirectories
from tablestore.io.local import LocalFileStore
from tablestore.testing.contracts.metacatalog import ORDERS, at_once, schema_of, stored
from tablestore.testing.deterministic import SeededIds
from tablestore.testing.files import Faults, FaultyFileStore, SimulatedCrash

NEW = Identifier("archive", "orders")
DATA = "bucket-0/data-1.parquet"
OpenOver = Callable[[FileStore], MetaCatalog]


class RenamingFaultyStore(FaultyFileStore):
    """One that renames directories too; the other one is as an object store is."""

    def rename_directory(self, old: str, new: str) -> None:
        inner = self.inner
        assert isinstance(inner, RenamesDirectories)
        self._do("rename_directory", old, lambda: inner.rename_directory(old, new))


@pytest.fixture(params=["filesystem", "sqlite"])
def open_over(request: pytest.FixtureRequest, tmp_path: Path) -> OpenOver:
    ids = SeededIds(7)

    def opened(files: FileStore) -> MetaCatalog:
        if request.param == "filesystem":
            return FileSystemCatalog(files, ids)
        return SqlCatalog(files, ids, url=f"sqlite:///{files.root_uri}.db", key="jdbc")

    return opened


@pytest.fixture(params=[RenamingFaultyStore, FaultyFileStore])
def faulty(request: pytest.FixtureRequest) -> type[FaultyFileStore]:
    kind: type[FaultyFileStore] = request.param
    return kind


def each_crash(
    open_over: OpenOver,
    faulty: type[FaultyFileStore],
    root: Path,
    begin: Callable[[MetaCatalog], object],
    run: Callable[[MetaCatalog], object],
) -> list[MetaCatalog]:
    """The catalog as the next process finds it, for each call of the store at which ``run`` may die, before and after it."""
    found = []
    for when in ("before", "after"):
        for nth in range(1, 200):
            files = LocalFileStore(str(root / f"{when}{nth}"))
            catalog = open_over(files)
            begin(catalog)
            faults = Faults()
            faults.crash_nth(nth, when=when)  # type: ignore[arg-type]
            try:
                run(open_over(faulty(files, faults)))
            except SimulatedCrash:
                found.append(catalog)
            else:
                break
    assert len(found) > 4
    return found


def with_databases(catalog: MetaCatalog) -> None:
    catalog.create_database("shop")
    catalog.create_database("archive")


def with_table(catalog: MetaCatalog) -> None:
    with_databases(catalog)
    catalog.create_table(ORDERS, schema_of("id"))
    files = catalog.table_files(ORDERS)
    files.write(snapshot_path(1), b"first")
    files.write(DATA, b"rows")


def is_whole(catalog: MetaCatalog, identifier: Identifier) -> bool:
    files = catalog.table_files(identifier)
    return stored(catalog, identifier).fields[0].name == "id" and files.read(snapshot_path(1)) + files.read(DATA) == b"firstrows"


def is_free(catalog: MetaCatalog, identifier: Identifier) -> bool:
    """Whether a new table of that name can be had, that has nothing of an old one."""
    with pytest.raises(NotFoundError):
        catalog.table_files(identifier)
    (made,) = at_once(lambda: catalog.create_table(identifier, schema_of("other")))
    if isinstance(made, AlreadyExistsError) and made.kind == "half-removed-table":
        catalog.drop_table(identifier)
        made = catalog.create_table(identifier, schema_of("other"))
    entries = [info.name for info in catalog.table_files(identifier).list("")]
    return made is True and entries == ["schema"] and stored(catalog, identifier).fields[0].name == "other"


@pytest.mark.deep_after(1)
def test_a_creation_that_dies_makes_a_whole_table_or_leaves_the_name_free(
    open_over: OpenOver, faulty: type[FaultyFileStore], tmp_path: Path
) -> None:
    outcomes = set()
    for catalog in each_crash(open_over, faulty, tmp_path, with_databases, lambda one: one.create_table(ORDERS, schema_of("id"))):
        exists = catalog.has_table(ORDERS)
        outcomes.add(exists)
        if exists:
            assert stored(catalog, ORDERS).fields[0].name == "id"
        else:
            assert is_free(catalog, ORDERS)
        catalog.drop_table(ORDERS)
        catalog.drop_database("shop")
        assert catalog.list_databases() == ("archive",)
    assert outcomes == {True, False}


@pytest.mark.deep_after(2)
def test_a_removal_that_dies_leaves_the_table_whole_or_its_name_free(
    open_over: OpenOver, faulty: type[FaultyFileStore], tmp_path: Path
) -> None:
    outcomes = set()
    for catalog in each_crash(open_over, faulty, tmp_path, with_table, lambda one: one.drop_table(ORDERS)):
        exists = catalog.has_table(ORDERS)
        outcomes.add(exists)
        assert is_whole(catalog, ORDERS) if exists else is_free(catalog, ORDERS)
        catalog.drop_database("shop", cascade=True)
        assert catalog.list_databases() == ("archive",)
    assert outcomes == {True, False}


@pytest.mark.deep_after(1)
def test_a_renaming_that_dies_leaves_the_table_under_one_of_the_names(open_over: OpenOver, tmp_path: Path) -> None:
    outcomes = set()
    for catalog in each_crash(open_over, RenamingFaultyStore, tmp_path, with_table, lambda one: one.rename_table(ORDERS, NEW)):
        here, free = (ORDERS, NEW) if catalog.has_table(ORDERS) else (NEW, ORDERS)
        outcomes.add(here)
        assert is_whole(catalog, here) and is_free(catalog, free)
    assert outcomes == {ORDERS, NEW}


def test_a_creation_that_the_store_refuses_leaves_no_name(open_over: OpenOver, tmp_path: Path) -> None:
    files = LocalFileStore(str(tmp_path / "warehouse"))
    catalog = open_over(files)
    with_databases(catalog)
    faults = Faults()
    faults.before(lambda call: fail() if "schema/" in call.path else None, op="publish_if_absent")
    with pytest.raises(StorageError, match="disk is full"):
        open_over(FaultyFileStore(files, faults)).create_table(ORDERS, schema_of("id"))
    assert catalog.list_tables("shop") == ()
    catalog.drop_database("shop")


def fail() -> None:
    raise StorageError("the disk is full")


class LosesItsDirectory(LocalFileStore):
    """Before or after the first file of a table is published, its database is removed; whether the file is there is not known."""

    def __init__(self, root: str, *, published: bool, database_stays: bool) -> None:
        super().__init__(root)
        self._published, self._database_stays, self._done = published, database_stays, False

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        if self._done or not path.endswith("schema-0"):
            return super().publish_if_absent(path, data)
        self._done = True
        if self._published:
            super().publish_if_absent(path, data)
        elif not self._database_stays:
            self.delete_directory("shop.db")
        raise CommitOutcomeUnknown(f"publishing {path} neither succeeded nor failed for sure")


@pytest.mark.parametrize(("published", "database_stays"), [(True, True), (False, True), (False, False)])
def test_a_creation_of_unknown_outcome_is_settled_by_looking(tmp_path: Path, published: bool, database_stays: bool) -> None:
    files = LosesItsDirectory(str(tmp_path), published=published, database_stays=database_stays)
    catalog = FileSystemCatalog(files, SeededIds(7))
    catalog.create_database("shop")
    if database_stays:
        assert catalog.create_table(ORDERS, schema_of("id"))
        assert stored(catalog, ORDERS).fields[0].name == "id"
    else:
        with pytest.raises(NotFoundError, match="shop"):
            catalog.create_table(ORDERS, schema_of("id"))
        assert not catalog.has_database("shop")
