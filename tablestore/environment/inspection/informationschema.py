"""Lists what a catalog holds as the tables of SQL's ``information_schema``, computed whenever they are read.

    schemata    its databases
    tables      its tables, and the temporary objects and tables with a connector that a session has in it
    columns     their columns
    views       temporary views
    routines    procedures, and temporary functions

A name is listed without opening its table. One is opened only where a column of it is read that the catalog does not know, and
where its name passes the conditions of the query. A table that is dropped meanwhile is left out; one that cannot be read is there
with its name alone.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tablestore.environment.inspection.columns import column_rows, view_rows
from tablestore.environment.inspection.showcreate import shown_query
from tablestore.environment.objectpath import ObjectPath, known
from tablestore.environment.procedures.registry import PROCEDURES
from tablestore.environment.session.objects import ConnectorTable, InformationView, RowsView, View
from tablestore.environment.session.session import INFORMATION_SCHEMA, Session
from tablestore.errors import NotFoundError, TablestoreError
from tablestore.names import is_name
from tablestore.options import is_materialized
from tablestore.table.read.scan import ArrowSource
from tablestore.table.table import Table
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.datatypes import AtomicType, Field, TypeRoot
from tablestore.types.filter.predicate import Predicate, evaluate, keep_only

_TEXT, _NUMBER = pa.string(), pa.int32()
_NAMES = ("table_catalog", "table_schema", "table_name")
SCHEMAS: Mapping[str, pa.Schema] = {
    "schemata": pa.schema(
        [
            ("catalog_name", _TEXT),
            ("schema_name", _TEXT),
            ("schema_owner", _TEXT),
            ("default_character_set_catalog", _TEXT),
            ("default_character_set_schema", _TEXT),
            ("default_character_set_name", _TEXT),
            ("sql_path", _TEXT),
        ]
    ),
    "tables": pa.schema(
        [
            *((name, _TEXT) for name in _NAMES),
            ("table_type", _TEXT),
            ("self_referencing_column_name", _TEXT),
            ("reference_generation", _TEXT),
            ("user_defined_type_catalog", _TEXT),
            ("user_defined_type_schema", _TEXT),
            ("user_defined_type_name", _TEXT),
            ("is_insertable_into", _TEXT),
            ("is_typed", _TEXT),
            ("commit_action", _TEXT),
            ("table_comment", _TEXT),
        ]
    ),
    "columns": pa.schema(
        [
            *((name, _TEXT) for name in _NAMES),
            ("column_name", _TEXT),
            ("ordinal_position", _NUMBER),
            ("column_default", _TEXT),
            ("is_nullable", _TEXT),
            ("data_type", _TEXT),
            ("character_maximum_length", _NUMBER),
            ("character_octet_length", _NUMBER),
            ("numeric_precision", _NUMBER),
            ("numeric_precision_radix", _NUMBER),
            ("numeric_scale", _NUMBER),
            ("datetime_precision", _NUMBER),
            ("is_generated", _TEXT),
            ("generation_expression", _TEXT),
            ("column_comment", _TEXT),
        ]
    ),
    "views": pa.schema(
        [
            *((name, _TEXT) for name in _NAMES),
            ("view_definition", _TEXT),
            ("check_option", _TEXT),
            ("is_updatable", _TEXT),
            ("is_insertable_into", _TEXT),
        ]
    ),
    "routines": pa.schema(
        [
            ("specific_catalog", _TEXT),
            ("specific_schema", _TEXT),
            ("specific_name", _TEXT),
            ("routine_catalog", _TEXT),
            ("routine_schema", _TEXT),
            ("routine_name", _TEXT),
            ("routine_type", _TEXT),
            ("data_type", _TEXT),
            ("routine_body", _TEXT),
            ("routine_definition", _TEXT),
        ]
    ),
}
_DIGITS = {
    TypeRoot.TINYINT: 8,
    TypeRoot.SMALLINT: 16,
    TypeRoot.INT: 32,
    TypeRoot.BIGINT: 64,
    TypeRoot.FLOAT: 24,
    TypeRoot.DOUBLE: 53,
}
_CLOCKS = (TypeRoot.TIME, TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
# The columns of ``tables`` that a name alone does not say.
_OPENED = frozenset({"table_type", "is_insertable_into", "table_comment"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """A name, and the object of the session that has it; None: a table of the catalog."""

    path: ObjectPath
    held: object = None


class InformationRows(ArrowSource):
    """One of the tables, of one catalog. ``columns``: those that are read, None for all; ``condition``: on rows that are wanted."""

    def __init__(
        self, session: Session, catalog: str, table: str, columns: tuple[str, ...] | None = None, condition: Predicate | None = None
    ) -> None:
        self._session, self._catalog, self._table = session, catalog, table
        self._columns, self._condition = columns, condition

    @property
    def schema(self) -> pa.Schema:
        whole = SCHEMAS[self._table]
        return whole if self._columns is None else pa.schema([whole.field(name) for name in self._columns])

    @property
    def prunable_fields(self) -> tuple[Field, ...]:
        """All of its columns, as a query may use some of them."""
        return tuple(fields_from_arrow(SCHEMAS[self._table])[0])

    def pruned(self, columns: tuple[str, ...] | None, condition: Predicate | None) -> "InformationRows":
        """The same with these columns at least, without rows that do not pass a condition."""
        names = columns and tuple(name for name in SCHEMAS[self._table].names if name in columns)
        return InformationRows(self._session, self._catalog, self._table, names or None, condition)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        rows = list(_ROWS[self._table](self))
        yield pa.RecordBatch.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)

    # -- names

    def _databases(self) -> tuple[str, ...]:
        session = self._session
        names = session.catalogs.databases(self._catalog) if self._catalog in session.catalogs.names() else ()
        # A folder of any name may lie in a warehouse; no statement can name what is in some of them.
        return tuple(name for name in names if is_name(name))

    def _names(self) -> Iterator[_Named]:
        """The names of all tables and views that may pass the condition."""
        objects = self._session.objects
        # A temporary object hides the others.
        databases = self._wanted([{"table_catalog": self._catalog, "table_schema": name} for name in self._databases()])
        kept = (one for row in databases for one in self._session.kept.all(self._catalog, row["table_schema"]))
        held: dict[ObjectPath, object] = {one.path: one for one in (*kept, *objects.temporary_tables(), *objects.views())}
        named = {path: _Named(path=path, held=one) for path, one in held.items() if path.catalog == self._catalog}
        for database in databases:
            for name in _listed(self._session, self._catalog, database["table_schema"]):
                path = ObjectPath(self._catalog, database["table_schema"], name)
                named.setdefault(path, _Named(path=path))
        wanted = {tuple(row.values()) for row in self._wanted([_name_of(path) for path in named])}
        for path in sorted(named):
            if (path.catalog, path.database, path.name) in wanted:
                yield named[path]

    def _wanted(self, rows: list[dict[str, str]]) -> list[dict[str, str]]:
        """Those of some rows of names that the condition may let pass."""
        if not rows or (condition := keep_only(self._condition, tuple(rows[0]))) is None:
            return rows
        table = pa.Table.from_pylist(rows, schema=pa.schema([(name, _TEXT) for name in rows[0]]))
        kept = evaluate(condition, table.combine_chunks().to_batches()[0])
        return [row for row, keep in zip(rows, kept.to_pylist(), strict=True) if keep]

    def _opened(self, path: ObjectPath) -> Table | None:
        """A table of the catalog; None if it cannot be read. Raises NotFoundError if it is gone."""
        try:
            table = self._session.open_table(self._session.stored(path))
        except NotFoundError:
            raise
        except TablestoreError:
            return None
        return table if isinstance(table, Table) else None

    # -- rows

    def _schemata(self) -> Iterator[dict[str, Any]]:
        for name in self._databases():
            yield {"catalog_name": self._catalog, "schema_name": name}

    def _tables(self) -> Iterator[dict[str, Any]]:
        opens = self._columns is None or bool(_OPENED & set(self._columns))
        for one in self._names():
            row: dict[str, Any] = {**_name_of(one.path), "is_typed": "NO"}
            if isinstance(one.held, View | RowsView):
                comment = one.held.comment if isinstance(one.held, View) else None
                yield row | {"table_type": "VIEW", "is_insertable_into": "NO", "table_comment": comment}
            elif isinstance(one.held, ConnectorTable):
                kind = "LOCAL TEMPORARY" if one.held.temporary else "FOREIGN"
                yield row | {"table_type": kind, "is_insertable_into": "YES", "table_comment": one.held.comment}
            elif not opens:
                yield row
            else:
                yield from self._managed(row, one)

    def _managed(self, row: dict[str, Any], one: _Named) -> Iterator[dict[str, Any]]:
        try:
            table = self._opened(one.path)
        except NotFoundError:
            return
        if table is None:
            yield row
            return
        schema = table.table_schema
        is_of_query = is_materialized(schema.options)
        kind = "LOCAL TEMPORARY" if one.held is not None else "MATERIALIZED TABLE" if is_of_query else "BASE TABLE"
        comment = schema.comment or None
        yield row | {"table_type": kind, "is_insertable_into": "NO" if is_of_query else "YES", "table_comment": comment}

    def _column_rows(self) -> Iterator[dict[str, Any]]:
        for one in self._names():
            try:
                described, fields = self._described(one)
            except TablestoreError:
                # Its columns are not known: a view whose tables are gone, a table that is dropped or damaged.
                continue
            for position, column in enumerate(described, 1):
                yield {**_name_of(one.path), "ordinal_position": position, **_column(column, fields.get(column["name"]))}

    def _described(self, one: _Named) -> tuple[list[dict[str, Any]], Mapping[str, Field]]:
        if isinstance(one.held, View | RowsView):
            return list(view_rows(self._session, one.held)), {}
        if isinstance(one.held, ConnectorTable):
            return list(column_rows(one.held)), {}
        table = self._opened(one.path)
        if table is None:
            return [], {}
        return list(column_rows(table)), {field.name: field for field in table.table_schema.fields}

    def _views(self) -> Iterator[dict[str, Any]]:
        for one in self._names():
            if isinstance(one.held, View | RowsView):
                text = shown_query(one.held) if isinstance(one.held, View) else None
                yield {
                    **_name_of(one.path),
                    "view_definition": text,
                    "check_option": "NONE",
                    "is_updatable": "NO",
                    "is_insertable_into": "NO",
                }

    def _routines(self) -> Iterator[dict[str, Any]]:
        for name in PROCEDURES:
            yield _routine(self._catalog, "sys", name, "PROCEDURE")
        for database in self._databases():
            place = (self._catalog, database)
            for name in sorted({*self._session.functions.names(place), *self._session.kept_functions.names(*place)}):
                yield _routine(self._catalog, database, name, "FUNCTION")


_ROWS: Mapping[str, Callable[[InformationRows], Iterator[dict[str, Any]]]] = {
    "schemata": InformationRows._schemata,
    "tables": InformationRows._tables,
    "columns": InformationRows._column_rows,
    "views": InformationRows._views,
    "routines": InformationRows._routines,
}


def find_information(session: Session, path: ObjectPath) -> InformationView | None:
    """The table of information_schema that a name stands for; None for another name. A database of this name comes before it.

    Raises NotFoundError for a table that it does not have.
    """
    table = path.full_name.lower()
    if path.database.casefold() != INFORMATION_SCHEMA or path.catalog not in session.catalogs.names():
        return None
    if table not in SCHEMAS:
        if session.catalogs.get(path.catalog).database_exists(path.database):
            return None
        raise NotFoundError(f"information_schema has no table {path.full_name!r:.120}{known(SCHEMAS, table)}", kind="no-such-table")
    return InformationView(path=replace(path, name=table), rows=InformationRows(session, path.catalog, table))


def _listed(session: Session, catalog: str, database: str) -> tuple[str, ...]:
    try:
        return session.catalogs.tables(catalog, database)
    except NotFoundError:
        # It was dropped meanwhile.
        return ()


def _name_of(path: ObjectPath) -> dict[str, Any]:
    return dict(zip(_NAMES, (path.catalog, path.database, path.name), strict=True))


def _routine(catalog: str, database: str, name: str, kind: str) -> dict[str, Any]:
    place = {"catalog": catalog, "schema": database, "name": name}
    names = {f"{of}_{part}": text for of in ("specific", "routine") for part, text in place.items()}
    return {**names, "routine_type": kind, "routine_body": "EXTERNAL"}


def _column(described: Mapping[str, Any], field: Field | None) -> dict[str, Any]:
    """A column, from what DESCRIBE says of it and, where it is stored, its type."""
    extras = described["extras"] or ""
    computed = extras.startswith("AS ")
    row = {
        "column_name": described["name"],
        "is_nullable": "YES" if described["null"] else "NO",
        "data_type": described["type"],
        "is_generated": "ALWAYS" if computed else "NEVER",
        "generation_expression": extras.removeprefix("AS ") if computed else None,
        "column_comment": described["comment"],
    }
    if field is None or not isinstance(data_type := field.type, AtomicType):
        return row
    row["column_default"] = field.default_value
    if data_type.root in (TypeRoot.CHAR, TypeRoot.VARCHAR) and data_type.length is not None:
        row["character_maximum_length"] = data_type.length
    if data_type.root in _DIGITS:
        row |= {"numeric_precision": _DIGITS[data_type.root], "numeric_precision_radix": 2}
        row |= {"numeric_scale": 0} if data_type.root not in (TypeRoot.FLOAT, TypeRoot.DOUBLE) else {}
    if data_type.root is TypeRoot.DECIMAL:
        row |= {"numeric_precision": data_type.precision, "numeric_precision_radix": 10, "numeric_scale": data_type.scale}
    if data_type.root in _CLOCKS:
        row["datetime_precision"] = data_type.precision
    return row
