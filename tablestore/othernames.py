"""Names our way for what people of other libraries type: deltalake, pyiceberg, pypaimon, DuckDB, pandas, Spark.

An attribute or an argument that does not exist here, and means one thing elsewhere, is an error that says how it is called here.
What stands for nothing is Python's own error. ``tests/newcomer/python.toml`` has each of them.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from tablestore.errors import InvalidInputError, UnsupportedError

_P = ParamSpec("_P")
_R = TypeVar("_R")


class OtherName(UnsupportedError, AttributeError):
    """An attribute that other libraries have; the message says what it is called here."""

    default_kind = "other-name"


_SQL = "tablestore.TableEnvironment.create(warehouse, engine='duckdb').execute_sql(text)"

MODULE = {
    **dict.fromkeys(("connect", "open", "load_catalog", "catalog", "CatalogFactory", "Warehouse"), "tablestore.open_catalog(path)"),
    **dict.fromkeys(("DeltaTable", "StaticTable", "load_table", "read_table", "read", "scan"), "tablestore.open_table(path)"),
    **dict.fromkeys(("write_deltalake", "write_table"), "table.append(rows), table.upsert(rows) or table.overwrite(rows)"),
    **dict.fromkeys(("query", "execute", "execute_sql"), _SQL),
    **dict.fromkeys(("create_table", "create_database"), "a method of a catalog: tablestore.open_catalog(path)"),
}

CATALOG = {
    **dict.fromkeys(("get_table", "load_table", "open_table"), "catalog.table('database.name')"),
    **dict.fromkeys(("list_namespaces", "namespaces", "list_schemas", "schemas", "databases"), "catalog.list_databases()"),
    **dict.fromkeys(("create_namespace", "create_schema"), "catalog.create_database(name)"),
    **dict.fromkeys(("drop_namespace", "drop_schema"), "catalog.drop_database(name)"),
    **dict.fromkeys(("namespace_exists", "has_database"), "catalog.database_exists(name)"),
    **dict.fromkeys(("tables", "list", "table_names"), "catalog.list_tables(database)"),
    "has_table": "catalog.table_exists(name)",
    "purge_table": "catalog.drop_table(name), which removes its files too",
    "create_table_if_not_exists": "catalog.create_table(name, …, ignore_if_exists=True)",
    "create_database_if_not_exists": "catalog.create_database(name, ignore_if_exists=True)",
    "create_table_transaction": "catalog.stage_table(name, …), which nobody sees before its publish",
    "register_table": "tablestore.open_table(path), or POST …/register of the service",
    **dict.fromkeys(
        ("sql", "execute", "execute_sql", "query"),
        "tablestore.TableEnvironment.create(warehouse, engine='duckdb').execute_sql(text)",
    ),
}

TABLE = {
    **dict.fromkeys(("count_rows", "num_rows", "row_count", "size", "shape"), "table.count()"),
    **dict.fromkeys(("show", "display", "limit", "take", "sample"), "table.head(rows)"),
    **dict.fromkeys(("select", "filter", "where", "read", "query", "search", "new_scan"), "table.scan(columns, filter)"),
    "new_read_builder": "table.scan(columns, filter)",
    **dict.fromkeys(("to_pyarrow_table", "to_table", "collect", "fetchall", "read_all"), "table.to_arrow()"),
    **dict.fromkeys(("to_pylist", "to_list", "rows", "to_dicts"), "table.to_arrow().to_pylist()"),
    **dict.fromkeys(("to_pyarrow_dataset", "to_lance", "dataset"), "table.to_dataset()"),
    **dict.fromkeys(("toPandas", "df"), "table.to_pandas()"),
    **dict.fromkeys(("to_batches", "to_arrow_batch_reader"), "table.scan().to_batches()"),
    **dict.fromkeys(("sql", "execute"), _SQL),
    **dict.fromkeys(("insert", "add", "write", "put", "insert_into"), "table.append(rows), by primary key table.upsert(rows)"),
    **dict.fromkeys(("new_batch_write_builder", "new_write", "new_stream_write_builder", "transaction"), "table.new_writer()"),
    "merge_insert": "table.merge(rows, on='id').when_matched_update_all().when_not_matched_insert_all().execute()",
    **dict.fromkeys(("truncate", "clear", "delete_all"), "table.delete('true')"),
    **dict.fromkeys(("drop", "delete_table"), "catalog.drop_table(name)"),
    "rename": "catalog.rename_table(name, new_name)",
    **dict.fromkeys(("optimize", "compact_files", "rewrite_data_files"), "table.compact(), in order table.compact(order_by=…)"),
    **dict.fromkeys(("vacuum", "cleanup_old_versions"), "table.expire_snapshots() and table.remove_orphan_files(dry_run=False)"),
    **dict.fromkeys(("restore", "rollback", "rollback_to_snapshot", "restore_to"), "table.rollback_to(snapshot_id)"),
    **dict.fromkeys(
        ("history", "versions", "current_snapshot", "latest_snapshot", "version", "list_versions"),
        "table.snapshots(), oldest first",
    ),
    **dict.fromkeys(
        ("checkout", "as_of", "at", "load_as_version", "version_as_of", "time_travel"),
        "table.scan(snapshot_id=1), table.scan(timestamp='2026-01-31 12:00:00') or table.scan(tag='v1')",
    ),
    **dict.fromkeys(("load_cdf", "table_changes", "cdf"), "table.changes(from_snapshot)"),
    **dict.fromkeys(("inspect", "metadata", "detail"), "table.system('snapshots'), 'files', 'options', …"),
    **dict.fromkeys(("describe", "info"), "table.schema, table.options(), and in a terminal `tablestore table describe`"),
    "explain": "table.scan(filter=…).explain()",
    **dict.fromkeys(("file_uris", "get_add_actions", "plan_files", "data_files"), "table.files()"),
    **dict.fromkeys(("add_column", "add_columns", "with_column"), "table.alter(tablestore.AddColumn(name, type))"),
    **dict.fromkeys(("drop_column", "drop_columns"), "table.alter(tablestore.DropColumn(name))"),
    **dict.fromkeys(("rename_column", "alter_columns"), "table.alter(tablestore.RenameColumn(name, new_name))"),
    "update_schema": "table.alter([…]) with tablestore.AddColumn, DropColumn, RenameColumn, ChangeType",
    **dict.fromkeys(("columns", "column_names", "field_names"), "table.schema.names"),
    **dict.fromkeys(("dtypes", "types"), "table.schema.types"),
    **dict.fromkeys(("path", "uri", "table_uri"), "table.location"),
    **dict.fromkeys(("properties", "table_properties"), "table.options()"),
    **dict.fromkeys(("set_properties", "set_options"), "table.alter(tablestore.SetOption(key, value))"),
    **dict.fromkeys(("tag", "add_tag"), "table.create_tag(name, snapshot_id)"),
    **dict.fromkeys(("branch", "add_branch"), "table.create_branch(name)"),
    **dict.fromkeys(("create_index", "create_scalar_index"), "nothing: a primary key orders files, and filters leave files out"),
}


def missing_attribute(owner: object, name: str, ways: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that an object does not have; where others have it, with what it is called here."""
    kind = type(owner).__name__
    if (way := ways.get(name)) is not None:
        return OtherName(f"{kind} has no attribute {name!r}; here it is {way}")
    # With both, Python itself suggests the names that are near.
    return AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=owner)


def other_arguments(**ways: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorates a method: an argument that other libraries have is an error that says how it is called here."""

    def decorated(method: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(method)
        def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            for name in kwargs.keys() & ways.keys():
                raise InvalidInputError(f"{method.__name__} has no argument {name!r}; here it is {ways[name]}", kind="other-name")
            return method(*args, **kwargs)

        return called

    return decorated
