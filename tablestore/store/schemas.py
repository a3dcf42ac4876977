"""Reads the schemas of one table: the newest, and older ones by id.

A table's schemas are ``schema/schema-0``, ``schema/schema-1``, …: each is published once, if absent, and never changes.
Publishing ``schema-0`` is what creates a table; publishing the next one is what alters it.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from tablestore.errors import ConflictError, FormatError, NotFoundError
from tablestore.format.paths import SCHEMA_DIR, parse_schema_id, schema_path
from tablestore.format.schemafile import decode_schema, encode_schema
from tablestore.io.filestore import FileStore
from tablestore.types.datatypes import Field
from tablestore.types.schema import TableSchema

_MOST_DECODED = 128

TABLE_UUID_OPTION = "tablestore.table-uuid"
TABLE_REPLACED = "table-replaced"


class FieldsById(Mapping[int, tuple[Field, ...]]):
    """The columns of every schema of a table, by schema id; a schema is read when it is asked for."""

    def __init__(self, schemas: "Schemas") -> None:
        self._schemas = schemas

    def __getitem__(self, schema_id: int) -> tuple[Field, ...]:
        try:
            return self._schemas.read(schema_id).fields
        except NotFoundError as error:
            raise KeyError(schema_id) from error

    def __iter__(self) -> Iterator[int]:
        return iter(self._schemas.ids())

    def __len__(self) -> int:
        return len(self._schemas.ids())


class DecodedSchemas:
    """Schemas by their bytes: the same bytes are the same schema, so a file that is read again is not parsed again."""

    def __init__(self) -> None:
        self.decode = lru_cache(maxsize=_MOST_DECODED)(decode_schema)


class Schemas:
    """The schema files of one table. Schemas are immutable, so each is read once and kept. ``decoded``: those that are known
    already."""

    def __init__(self, files: FileStore, decoded: DecodedSchemas | None = None) -> None:
        self._files = files
        self.decoded = decoded or DecodedSchemas()
        self._cache: dict[int, TableSchema] = {}
        self._refreshed_ids: tuple[int, ...] | None = None

    def ids(self) -> tuple[int, ...]:
        """The schema ids, ascending."""
        schema_ids = map(parse_schema_id, self._files.names(SCHEMA_DIR, prefix="schema-"))
        return tuple(sorted(schema_id for schema_id in schema_ids if schema_id is not None))

    def read(self, schema_id: int) -> TableSchema:
        """One schema. Raises NotFoundError if it does not exist, FormatError if its content is not what it says."""
        cached = self._cache.get(schema_id)
        return self._read(schema_id) if cached is None else cached

    def _read(self, schema_id: int) -> TableSchema:
        path = schema_path(schema_id)
        schema = self.decoded.decode(self._files.read(path), f"{self._files.root_uri}/{path}")
        if schema.id != schema_id:
            raise FormatError(
                f"{self._files.root_uri}/{path} says that it is schema {schema.id}, expected {schema_id}: the file was "
                "swapped or renamed; restore it from a backup",
                kind="swapped",
            )
        self._cache[schema_id] = schema
        return schema

    def latest(self) -> TableSchema:
        """The newest schema. Raises NotFoundError if there is no table here."""
        return self.read(self._newest(self.ids()))

    def _newest(self, ids: tuple[int, ...]) -> int:
        if not ids:
            raise NotFoundError(
                f"no table at {self._files.root_uri}: expected {SCHEMA_DIR}/schema-0 and found none; check the path, or create "
                "the table with catalog.create_table(...)",
                kind="no-such-table",
            )
        return ids[-1]

    def refreshed_latest(self) -> TableSchema:
        """The newest schema, read from the store again: a table that was dropped and created anew has another ``schema-0``."""
        self._cache.clear()
        self._refreshed_ids = ids = self.ids()
        # Not by the cache: another thread may have put there what it has read before.
        return self._read(self._newest(ids))

    def option_is_constant(self, key: str) -> bool:
        """True if an option has had one value ever since the table was created, as far as the schemas show that there were at the
        last refresh."""
        ids = self.ids() if self._refreshed_ids is None else self._refreshed_ids
        return ids == tuple(range(len(ids))) and len({self.read(schema_id).options.get(key) for schema_id in ids}) == 1

    def publish(self, schema: TableSchema) -> bool:
        """Make ``schema`` the schema of its id. False if that id is taken."""
        return self._files.publish_if_absent(schema_path(schema.id), encode_schema(schema))


def table_uuid_of(schema: TableSchema) -> str | None:
    """The identity that a table of ours got when it was created."""
    return schema.options.get(TABLE_UUID_OPTION)


def check_is_same(table_uuid: str | None, latest: TableSchema, *, table: str) -> None:
    """The table of this identity must still be there. Raises ConflictError."""
    if table_uuid != table_uuid_of(latest):
        raise ConflictError(
            f"table {table} was dropped and created again, or replaced: it was {table_uuid} when it was opened, now it is "
            f"{table_uuid_of(latest)}; open the table again, and repeat what was begun",
            kind=TABLE_REPLACED,
        )
