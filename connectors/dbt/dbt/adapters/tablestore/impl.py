"""Implements the adapter: what dbt looks up in a warehouse, and what its macros call."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation, InformationSchema
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.sql import SQLAdapter
from dbt.adapters.tablestore.column import TablestoreColumn
from dbt.adapters.tablestore.connections import TablestoreConnectionManager
from dbt.adapters.tablestore.drivercursor import rows_of
from dbt.adapters.tablestore.relationname import TablestoreRelation
from dbt.adapters.tablestore.seedrows import seed_type, to_arrow
from dbt.adapters.tablestore.typewords import declared, shared_word, spelled
from dbt_common.clients.agate_helper import table_from_rows
from dbt_common.contracts.constraints import ColumnLevelConstraint, ConstraintType, ModelLevelConstraint
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, TableMetadata
from dbt_common.exceptions import DbtRuntimeError

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.errors import NotFoundError, TablestoreError
from tablestore.types.typestring import declared_type, quote_identifier

if TYPE_CHECKING:
    import agate

_CATALOG_COLUMNS = (
    "table_database",
    "table_schema",
    "table_name",
    "table_type",
    "table_comment",
    "table_owner",
    "column_name",
    "column_index",
    "column_type",
    "column_comment",
)
# The types of information_schema, as the documents of dbt show them.
_SHOWN_TYPES = {"BASE TABLE": "table", "VIEW": "view", "MATERIALIZED TABLE": "materialized_view", "FOREIGN": "external"}


class TablestoreAdapter(SQLAdapter):
    """Tables, views and materialized tables of tablestore, for dbt."""

    ConnectionManager = TablestoreConnectionManager
    Relation = TablestoreRelation
    Column = TablestoreColumn

    CONSTRAINT_SUPPORT = {  # noqa: RUF012, what dbt declares as a class variable
        ConstraintType.check: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_SUPPORTED,
        # The key of the table: of rows with equal keys the last one stays.
        ConstraintType.primary_key: ConstraintSupport.ENFORCED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }

    _capabilities = CapabilityDict(
        {
            Capability.SchemaMetadataByRelations: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadata: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadataBatch: CapabilitySupport(support=Support.Full),
            Capability.GetCatalogForSingleRelation: CapabilitySupport(support=Support.Full),
        }
    )

    @classmethod
    def date_function(cls) -> str:
        """The function that gives the time of now."""
        return "current_timestamp()"

    @classmethod
    def quote(cls, identifier: str) -> str:
        """A name in backticks."""
        return quote_identifier(identifier)

    @property
    def _environment(self) -> ts.TableEnvironment:
        environment: ts.TableEnvironment = self.connections.get_thread_connection().handle.environment
        return environment

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self.connections.exception_handler(sql):
            return rows_of(self._environment.execute_sql(sql).to_arrow())

    def _names(self, sql: str) -> set[str]:
        return {str(row[0]) for row in self._rows(sql)}

    # -- what there is

    def list_schemas(self, database: str) -> list[str]:
        """The databases of a catalog, whose name may be quoted."""
        name = database.strip("`")
        with self.connections.exception_handler(f"databases of {name}"):
            return list(self._environment.catalog(name).list_databases())

    def check_schema_exists(self, database: str, schema: str) -> bool:
        """True if a catalog has such a database."""
        return schema in self.list_schemas(database)

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """The tables, views and materialized tables of a database."""
        database, schema = str(schema_relation.database), str(schema_relation.schema)
        if not self.check_schema_exists(database, schema):
            return []
        place = f"{quote_identifier(database)}.{quote_identifier(schema)}"
        tables = self._names(f"SHOW TABLES IN {place}")
        materialized = self._names(f"SHOW MATERIALIZED TABLES IN {place}")
        views = self._names(f"SHOW VIEWS IN {place}") - self._names(f"SHOW TEMPORARY VIEWS IN {place}")
        types = {
            **dict.fromkeys(tables, RelationType.Table),
            **dict.fromkeys(materialized, RelationType.MaterializedView),
            **dict.fromkeys(views, RelationType.View),
        }
        return [self.Relation.create(database=database, schema=schema, identifier=name, type=types[name]) for name in sorted(types)]

    def get_columns_in_relation(self, relation: BaseRelation) -> list[TablestoreColumn]:
        """The columns of a table or view, also of a temporary one; none where it is not there."""
        try:
            described = self._environment.execute_sql(f"DESCRIBE {relation.render()}").to_arrow()
        except NotFoundError:
            return []
        except TablestoreError as error:
            raise DbtRuntimeError(str(error)) from error
        return [
            TablestoreColumn(name, _spelled(text))
            for name, text in zip(described["name"].to_pylist(), described["type"].to_pylist(), strict=True)
        ]

    @available.parse(lambda *_, **__: False)
    def is_temporary(self, relation: BaseRelation) -> bool:
        """True for a temporary view of this connection."""
        place = f"{quote_identifier(str(relation.database))}.{quote_identifier(str(relation.schema))}"
        return relation.identifier in self._names(f"SHOW TEMPORARY VIEWS IN {place}")

    @available.parse(lambda *_, **__: [])
    def primary_key_of(self, relation: BaseRelation) -> list[str]:
        """The columns of the primary key of a table; none where it has none."""
        with self.connections.exception_handler("primary_key_of"):
            table = self._environment.catalog(relation.database).table(f"{relation.schema}.{relation.identifier}")
            return list(table.primary_key)

    # -- documents and freshness

    def _get_one_catalog(
        self, information_schema: InformationSchema, schemas: set[str], used_schemas: frozenset[tuple[str, str]]
    ) -> "agate.Table":
        rows = self._catalog_rows(str(information_schema.database), schemas)
        return self._catalog_filter_table(table_from_rows(rows, _CATALOG_COLUMNS), used_schemas)

    def _get_one_catalog_by_relations(
        self,
        information_schema: InformationSchema,
        relations: list[BaseRelation],
        used_schemas: frozenset[tuple[str, str]],
    ) -> "agate.Table":
        names = {(str(one.schema), str(one.identifier)) for one in relations}
        rows = self._catalog_rows(str(information_schema.database), {schema for schema, _ in names}, names)
        return self._catalog_filter_table(table_from_rows(rows, _CATALOG_COLUMNS), used_schemas)

    def get_catalog_for_single_relation(self, relation: BaseRelation) -> CatalogTable | None:
        """The columns of one table or view for the documents; None where it is not there."""
        place = (str(relation.schema), str(relation.identifier))
        rows = self._catalog_rows(str(relation.database), [place[0]], {place})
        if not rows:
            return None
        database, schema, name, kind, comment, owner = rows[0][:6]
        columns = {row[6]: ColumnMetadata(type=row[8], index=row[7], name=row[6], comment=row[9]) for row in rows}
        metadata = TableMetadata(type=kind, schema=schema, name=name, database=database, comment=comment, owner=owner)
        return CatalogTable(metadata=metadata, columns=columns, stats={})

    def _catalog_rows(
        self, database: str, schemas: Iterable[str], names: set[tuple[str, str]] | None = None
    ) -> list[tuple[Any, ...]]:
        place = f"{quote_identifier(database)}.`information_schema`"
        rows: list[tuple[Any, ...]] = []
        for schema in sorted(schemas):
            condition = f"table_schema = '{_escaped(schema)}'"
            tables = {
                name: (_SHOWN_TYPES.get(kind, "table"), comment)
                for name, kind, comment in self._rows(
                    f"SELECT table_name, table_type, table_comment FROM {place}.tables WHERE {condition}"
                )
                if names is None or (schema, name) in names
            }
            columns = self._rows(
                "SELECT table_name, column_name, ordinal_position, data_type, column_comment "
                f"FROM {place}.columns WHERE {condition}"
            )
            rows += [
                (database, schema, name, *tables[name], None, column, index, _spelled(kind), comment)
                for name, column, index, kind, comment in sorted(columns, key=lambda row: (row[0], row[2]))
                if name in tables
            ]
        return rows

    @available.parse(lambda *_, **__: [])
    def last_modified(self, relations: list[BaseRelation]) -> list[tuple[str, str, datetime | None, datetime]]:
        """Schema, name, the time of the newest snapshot and of now, for each table."""
        with self.connections.exception_handler("last_modified"):
            now = SystemClock().now_ms()
            return [
                (str(one.schema), str(one.identifier), self._newest_snapshot(one), datetime.fromtimestamp(now / 1000, UTC))
                for one in relations
            ]

    def _newest_snapshot(self, relation: BaseRelation) -> datetime | None:
        snapshots = self._environment.catalog(relation.database).table(f"{relation.schema}.{relation.identifier}").snapshots()
        return datetime.fromtimestamp(snapshots[-1].time_millis / 1000, UTC) if snapshots else None

    # -- seeds

    @available.parse(lambda *_, **__: "")
    def stage_seed(self, relation: BaseRelation, rows: "agate.Table") -> None:
        """Makes the rows of a CSV file a temporary view, as Arrow."""
        with self.connections.exception_handler("stage_seed"):
            self._environment.drop_temporary_view(relation.render())
            self._environment.create_temporary_view(relation.render(), to_arrow(rows))

    @classmethod
    def convert_type(cls, agate_table: "agate.Table", col_idx: int) -> str:
        """The type of a column of a CSV file."""
        return seed_type(agate_table, col_idx)

    @available
    @classmethod
    def declared_type(cls, text: str) -> str:
        """A type of the project as a declaration of a column."""
        return declared(text)

    # -- constraints

    @available
    @classmethod
    def render_raw_columns_constraints(cls, raw_columns: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """The declarations of the columns of a contract."""
        lines = []
        for column in raw_columns.values():
            words = [cls.quote(column["name"]), declared(column["data_type"])]
            for raw in column.get("constraints") or ():
                constraint = cls._parse_column_constraint(raw)
                rendered = cls.process_parsed_constraint(constraint, cls.render_column_constraint)
                words += [] if rendered is None else [rendered]
            lines.append(" ".join(words))
        return lines

    @classmethod
    def render_column_constraint(cls, constraint: ColumnLevelConstraint) -> str | None:
        """The words of a column's declaration; the key is said of the table."""
        if constraint.type == ConstraintType.not_null:
            return "NOT NULL"
        return constraint.expression if constraint.type == ConstraintType.custom else None

    @classmethod
    def render_model_constraint(cls, constraint: ModelLevelConstraint) -> str | None:
        """The words of a table's declaration beside its key."""
        return constraint.expression if constraint.type == ConstraintType.custom else None

    @available
    @classmethod
    def key_of_constraints(cls, columns: Mapping[str, Mapping[str, Any]], constraints: Iterable[Mapping[str, Any]]) -> list[str]:
        """The columns that the constraints of a contract name as the primary key."""
        of_columns = [
            column["name"]
            for column in columns.values()
            if any(one["type"] == ConstraintType.primary_key for one in column.get("constraints") or ())
        ]
        of_table = [name for one in constraints or () if one["type"] == ConstraintType.primary_key for name in one["columns"]]
        return of_table or of_columns

    # -- incremental models

    def valid_incremental_strategies(self) -> list[str]:
        """The names of the strategies."""
        return ["append", "merge", "delete+insert", "insert_overwrite", "microbatch"]

    def builtin_incremental_strategies(self) -> list[str]:
        """The strategies that have macros of this adapter."""
        return self.valid_incremental_strategies()


def _spelled(text: str) -> str:
    try:
        return spelled(declared_type(text))
    except TablestoreError:
        # A type of the engine's own.
        return shared_word(text)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
