"""The catalog of a service: names are kept by ``tablestore serve``, or another service of Apache Paimon's REST protocol.

    names          asked of the service, with a bearer token
    files          opened by this process, where the service says that a table lies
    snapshots      published by the service (``catalog.service.*``, which the tables' file stores carry)

The protocol has no words for a table that was made elsewhere in the warehouse, for two tables that change places, and for
definitions as text; a service of tablestore has, any other refuses them by name.

A request whose answer is lost is repeated. Who then meets a table of the identity that it drew has made it; a database that is
there by then, or what was to be dropped and is gone, is taken for its own doing.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import replace as with_changes
from typing import Any
from urllib.parse import unquote

from tablestore.catalog import refusals
from tablestore.catalog.definitions import DefinitionKind
from tablestore.catalog.identifier import Identifier
from tablestore.catalog.settings import TABLE_DEFAULT, CatalogSettings
from tablestore.errors import AlreadyExistsError, FormatError, NotFoundError, StorageError, UnsupportedError
from tablestore.format.schemafile import protocol_schema
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore
from tablestore.io.lock.cataloglock import CatalogLock
from tablestore.io.lock.lockedstore import LockedFileStore
from tablestore.io.opening import open_served, open_store
from tablestore.io.service.serviceclient import ServiceClient
from tablestore.names import check_name
from tablestore.options import is_table_option, option_text, with_options
from tablestore.store.schemas import TABLE_UUID_OPTION
from tablestore.types.schema import TableSchema

WAREHOUSE_KEY = "tablestore.warehouse"
"""In the configuration that a service of tablestore answers: the address of its warehouse. Others have no such key."""

# The change log of a table is seen to by this process; see tablestore.server.protocol.restextensions.
_OWN_LOG = {"own-log": "true"}
_PAGE = 1000
_TRIES = 5


class RestCatalog:
    """The catalog behind ``client``. ``storage``: the options of the file system with which this process opens files;
    ``hands_out_keys``: the service has the keys to it."""

    supports_managed_table = True
    serializable = True

    def __init__(
        self, client: ServiceClient, ids: Ids, *, warehouse: str | None, storage: Mapping[str, Any], hands_out_keys: bool = False
    ) -> None:
        self._client, self._ids, self._warehouse, self._storage = client, ids, warehouse, storage
        self._hands_out_keys = hands_out_keys

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (self._client, self._ids, self._warehouse, dict(self._storage), self._hands_out_keys)

    @property
    def files(self) -> FileStore:
        """The warehouse. Raises UnsupportedError where the service does not say where it lies."""
        if self._warehouse is None:
            raise self._lacks("an address of its warehouse")
        return open_served(self._warehouse, self._storage, self._client, hands_out_keys=False)

    @property
    def lock(self) -> CatalogLock | None:
        files = open_store(self._warehouse, self._storage) if self._warehouse is not None else None
        return files.lock if isinstance(files, LockedFileStore) else None

    # ---- databases

    def list_databases(self) -> tuple[str, ...]:
        return tuple(sorted(self._paged(self._path("databases"), "databases")))

    def has_database(self, name: str) -> bool:
        check_name(name, "database")
        return self._exists(self._path("databases", name), "no-such-database")

    def create_database(self, name: str, *, ignore_if_exists: bool = False) -> None:
        check_name(name, "database")
        body = {"name": name, "options": {}}
        try:
            self._changed("POST", self._path("databases"), body, is_done=_is_there)
        except AlreadyExistsError:
            if not ignore_if_exists:
                raise

    def drop_database(self, name: str, *, ignore_if_not_exists: bool = False, cascade: bool = False) -> None:
        check_name(name, "database")
        if not cascade and self._warehouse is None and (tables := self.list_tables(name)):
            # The protocol drops whatever is in it. A service of tablestore looks in the same step.
            raise refusals.database_not_empty(name, tables)
        query = {"cascade": "true" if cascade else "false"}
        try:
            self._changed("DELETE", self._path("databases", name), query=query, is_done=_is_gone)
        except NotFoundError:
            if not ignore_if_not_exists:
                raise

    # ---- tables

    def list_tables(self, database: str) -> tuple[str, ...]:
        check_name(database, "database")
        return tuple(sorted(self._paged(self._path("databases", database, "tables"), "tables")))

    def has_table(self, identifier: Identifier) -> bool:
        return self._exists(self._table_path(identifier), "no-such-table")

    def create_table(
        self, identifier: Identifier, schema: TableSchema, *, ignore_if_exists: bool = False, table_uuid: str | None = None
    ) -> bool:
        identity = table_uuid or self._ids.uuid()
        described = protocol_schema(schema)
        described["options"] = {**schema.options, TABLE_UUID_OPTION: identity}
        body = {"identifier": _named(identifier), "schema": described}

        def is_done(error: Exception) -> bool:
            return isinstance(error, AlreadyExistsError) and self._identity(identifier) == identity

        try:
            self._changed("POST", self._path("databases", identifier.database, "tables"), body, _OWN_LOG, is_done=is_done)
        except AlreadyExistsError as error:
            if not ignore_if_exists or error.kind != "table-exists":
                raise
            return False
        return True

    def publish_table(self, identifier: Identifier, directory: str, *, is_wanted: Callable[[], bool] = lambda: True) -> None:
        """As the protocol of catalogs has it; ``is_wanted`` is looked at before the service is asked."""
        if not is_wanted():
            raise refusals.creation_swept(identifier)
        self._own("POST", identifier, "publish", {"directory": directory})

    def exchange_table(self, identifier: Identifier, directory: str, *, table_uuid: str | None) -> None:
        self._own("POST", identifier, "exchange", {"directory": directory, "tableUuid": table_uuid})

    def abandon_arrival(self, identifier: Identifier, directory: str) -> None:
        self._own("POST", identifier, "abandon", {"directory": directory})

    def drop_table(self, identifier: Identifier, *, ignore_if_not_exists: bool = False, table_uuid: str | None = None) -> None:
        try:
            self._changed("DELETE", self._table_path(identifier), query={**_OWN_LOG, "tableUuid": table_uuid}, is_done=_is_gone)
        except NotFoundError:
            if not ignore_if_not_exists:
                raise

    def rename_table(self, identifier: Identifier, new: Identifier, *, ignore_if_not_exists: bool = False) -> None:
        body = {"source": _named(identifier), "destination": _named(new)}
        identity = self._identity(identifier)

        def is_done(error: Exception) -> bool:
            return isinstance(error, NotFoundError) and identity is not None and self._identity(new) == identity

        try:
            self._changed("POST", self._path("tables", "rename"), body, _OWN_LOG, is_done=is_done)
        except NotFoundError as error:
            if not ignore_if_not_exists or error.kind != "no-such-table":
                raise

    def table_files(self, identifier: Identifier) -> FileStore:
        return self._opened(self._location(self._client.get(self._table_path(identifier))))

    # ---- definitions

    def list_definitions(self, database: str, kind: DefinitionKind) -> tuple[str, ...]:
        check_name(database, "database")
        try:
            answer = self._client.get(self._path("databases", database, "definitions", kind.value))
        except NotFoundError:
            return ()
        return tuple(sorted(_texts(answer, "names")))

    def find_definition(self, identifier: Identifier, kind: DefinitionKind) -> str | None:
        try:
            answer = self._client.get(self._definition_path(identifier, kind))
        except NotFoundError:
            return None
        return str(answer["text"]) if isinstance(answer, Mapping) and "text" in answer else None

    def keep_definition(self, identifier: Identifier, kind: DefinitionKind, text: str, *, replace: bool = False) -> None:
        def is_done(error: Exception) -> bool:
            return isinstance(error, AlreadyExistsError) and self.find_definition(identifier, kind) == text

        body = {"text": text, "replace": replace}
        self._changed("PUT", self._definition_path(identifier, kind), body, is_done=is_done)

    def drop_definition(self, identifier: Identifier, kind: DefinitionKind) -> bool:
        try:
            self._changed("DELETE", self._definition_path(identifier, kind), is_done=_is_gone)
        except NotFoundError:
            return False
        return True

    # ---- helpers

    def _path(self, *parts: str) -> str:
        return self._client.path(*parts)

    def _table_path(self, identifier: Identifier) -> str:
        return self._path("databases", identifier.database, "tables", identifier.table)

    def _definition_path(self, identifier: Identifier, kind: DefinitionKind) -> str:
        return self._path("databases", identifier.database, "definitions", kind.value, identifier.table)

    def _paged(self, path: str, key: str) -> Iterator[str]:
        token: str | None = None
        while True:
            answer = self._client.get(path, {"maxResults": _PAGE, "pageToken": token})
            yield from _texts(answer, key)
            following = answer.get("nextPageToken")
            if not following or following == token:
                return
            token = str(following)

    def _exists(self, path: str, kind: str) -> bool:
        try:
            self._client.get(path)
        except NotFoundError as error:
            if error.kind in (kind, "no-such-database"):
                return False
            raise
        return True

    def _identity(self, identifier: Identifier) -> str | None:
        try:
            answer = self._client.get(self._table_path(identifier))
        except NotFoundError:
            return None
        return str(answer.get("id")) if isinstance(answer, Mapping) else None

    def _changed(
        self,
        method: str,
        path: str,
        body: object | None = None,
        query: Mapping[str, str | int | None] | None = None,
        *,
        is_done: Callable[[Exception], bool],
    ) -> Any:
        """Asks for a change until there is an answer. ``is_done``: the error of a repeated request shows that an earlier one, whose
        answer was lost, was carried out."""
        is_doubtful = False
        for attempts_left in reversed(range(_TRIES)):
            try:
                return self._client.send(method, path, body, query)
            except StorageError as error:
                if error.kind != "unknown-outcome" and is_doubtful:
                    # This try did nothing; an earlier one may have.
                    raise StorageError(error.message, kind="unknown-outcome") from error
                if error.kind != "unknown-outcome" or not attempts_left:
                    raise
                is_doubtful = True
            except (NotFoundError, AlreadyExistsError) as error:
                if is_doubtful and is_done(error):
                    return None
                raise
        raise AssertionError("the last attempt returns or raises")

    def _own(self, method: str, identifier: Identifier, verb: str, body: object) -> None:
        if self._warehouse is None:
            raise self._lacks(f"the operation {verb!r}, of tablestore's own services")
        self._client.send(method, f"{self._table_path(identifier)}/{verb}", body)

    def _opened(self, location: str) -> FileStore:
        return open_served(location, self._storage, self._client, self._hands_out_keys)

    def _location(self, table: Any) -> str:
        location = table.get("path") if isinstance(table, Mapping) else None
        if not isinstance(location, str) or not location:
            raise FormatError(f"{self._client.uri}: expected the path of a table, found {table!r:.200}", kind="answer")
        # Paimon's Java writes local paths as file:/data/wh, with one slash.
        if location.startswith("file:/") and not location.startswith("file://"):
            return unquote(location.removeprefix("file:"))
        return location

    def _lacks(self, what: str) -> UnsupportedError:
        return UnsupportedError(
            f"the catalog service {self._client.uri} has no {what}; a service of tablestore (tablestore serve) has", kind="service"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAnswer:
    """The configuration that a service answers. ``prefix``: that of its paths. ``warehouse``: its address; None from a service that
    does not name it. ``table_defaults``, ``table_overrides``: options of new tables, below and above those of the client."""

    prefix: str
    warehouse: str | None
    table_defaults: Mapping[str, str]
    table_overrides: Mapping[str, str]

    def merged(self, own: Mapping[str, str]) -> Mapping[str, str]:
        """The options of new tables that name none, of a client with options of its own."""
        return with_options(with_options(self.table_defaults, own), self.table_overrides)


def open_rest_catalog(
    settings: CatalogSettings, client: ServiceClient, ids: Ids, *, hands_out_keys: bool
) -> tuple[RestCatalog, ServiceAnswer]:
    """The catalog, and what the service says of itself. Asks the service once."""
    answer = _configuration(client, client.get("/v1/config", {"warehouse": settings.warehouse}))
    client = with_changes(client, prefix=answer.prefix, has_rules=answer.warehouse is not None)
    storage = {**settings.storage, **settings.lock}
    return RestCatalog(client, ids, warehouse=answer.warehouse, storage=storage, hands_out_keys=hands_out_keys), answer


def _configuration(client: ServiceClient, answer: Any) -> ServiceAnswer:
    if not isinstance(answer, Mapping):
        raise FormatError(f"{client.uri}: expected a configuration, found {answer!r:.100}", kind="answer")
    defaults, overrides = answer.get("defaults") or {}, answer.get("overrides") or {}
    if not isinstance(defaults, Mapping) or not isinstance(overrides, Mapping):
        raise FormatError(f"{client.uri}: expected defaults and overrides as objects, found {answer!r:.100}", kind="answer")
    configuration = {**defaults, **overrides}
    warehouse = configuration.get(WAREHOUSE_KEY)
    return ServiceAnswer(
        prefix=str(configuration.get("prefix") or ""),
        warehouse=None if warehouse is None else str(warehouse),
        table_defaults=_of_new_tables(defaults),
        table_overrides=_of_new_tables(overrides),
    )


def _of_new_tables(configuration: Mapping[str, Any]) -> dict[str, str]:
    """The options of new tables in a configuration. Those that only other engines know are left out: they say nothing of what is
    written here. One that is wrong is refused where a table is made."""
    prefixed = {key.removeprefix(TABLE_DEFAULT): value for key, value in configuration.items() if key.startswith(TABLE_DEFAULT)}
    return {key: option_text(value) for key, value in prefixed.items() if is_table_option(key)}


def _unpickled(
    client: ServiceClient, ids: Ids, warehouse: str | None, storage: Mapping[str, Any], hands_out_keys: bool
) -> RestCatalog:
    return RestCatalog(client, ids, warehouse=warehouse, storage=storage, hands_out_keys=hands_out_keys)


def _named(identifier: Identifier) -> dict[str, str]:
    return {"database": identifier.database, "object": identifier.table}


def _texts(answer: Any, key: str) -> list[str]:
    values = answer.get(key) if isinstance(answer, Mapping) else None
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise FormatError(f"expected {key} as a list of texts from the catalog service, found {values!r:.100}", kind="answer")
    return values


def _is_there(error: Exception) -> bool:
    return isinstance(error, AlreadyExistsError)


def _is_gone(error: Exception) -> bool:
    return isinstance(error, NotFoundError)
