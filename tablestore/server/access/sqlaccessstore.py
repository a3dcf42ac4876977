"""Keeps the access document in the database of a SQL catalog: a row a catalog, with a version that grows with each change.

    tablestore_access    catalog_key, version, document

A change names the version that it read; who was slower reads again, at most so often as is bounded.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tablestore.catalog.settings import URI
from tablestore.errors import StorageError
from tablestore.io.lock.databaseurl import ensure_table, exc, open_engine, parse_url, reason, sa
from tablestore.lazy import lazy
from tablestore.server.access.accessdocument import EMPTY, AccessDocument, Change, decode_access, encode_access

ACCESS = sa.Table(
    "tablestore_access",
    sa.MetaData(),
    sa.Column("catalog_key", sa.String(255), primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("document", sa.Text, nullable=False),
)
_SQLITE = {"timeout": 60, "isolation_level": "IMMEDIATE"}
_ATTEMPTS = 50


class SqlAccessStore:
    """The document of the catalog ``key`` in the database at ``url``."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url, key
        self._cached: tuple[int, AccessDocument] | None = None

    @property
    def where(self) -> str:
        return f"table {ACCESS.name} of {parse_url(self._url, URI.key).render_as_string(hide_password=True)}"

    def read(self) -> AccessDocument:
        return self._read()[1]

    def change(self, change: Change) -> AccessDocument:
        for _ in range(_ATTEMPTS):
            version, document = self._read()
            changed = change(document)
            values = {"version": version + 1, "document": encode_access(changed).decode()}
            try:
                with self._transaction() as connection:
                    if version == 0:
                        connection.execute(sa.insert(ACCESS).values(catalog_key=self._key, **values))
                        return changed
                    unchanged = (ACCESS.c.catalog_key == self._key, ACCESS.c.version == version)
                    if connection.execute(sa.update(ACCESS).where(*unchanged).values(values)).rowcount == 1:
                        return changed
            except exc.IntegrityError:
                continue  # the first row is another one's
        raise StorageError(f"others change {self.where} all the time; repeat when they have done", kind="busy")

    def _read(self) -> tuple[int, AccessDocument]:
        """The version, 0 if there is no row, and the document."""
        with self._transaction() as connection:
            version = connection.execute(sa.select(ACCESS.c.version).where(ACCESS.c.catalog_key == self._key)).scalar()
            if version is None:
                return 0, EMPTY
            cached = self._cached
            if cached is not None and cached[0] == version:
                return cached
            columns = sa.select(ACCESS.c.version, ACCESS.c.document).where(ACCESS.c.catalog_key == self._key)
            version, text = connection.execute(columns).one()
        self._cached = int(version), decode_access(text.encode(), self.where)
        return self._cached

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except exc.IntegrityError:
            raise
        except exc.SQLAlchemyError as error:
            raise self._failed(error) from error

    @lazy
    def _engine(self) -> sa.Engine:
        engine = open_engine(parse_url(self._url, URI.key), URI.key, sqlite=_SQLITE)
        try:
            with engine.connect() as connection:
                ensure_table(connection, ACCESS)
        except exc.SQLAlchemyError as error:
            raise self._failed(error) from error
        return engine

    def _failed(self, error: exc.SQLAlchemyError) -> StorageError:
        return StorageError(
            f"{self.where} failed: {reason(error)}; check that the database runs and that its user may create and change tables",
            kind="catalog-database",
        )
