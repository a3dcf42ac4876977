"""pypaimon behind JSON lines; the protocol of java/PaimonOracle.java. Run by the interpreter of its own environment.

``python pypaimon_oracle.py pure|native``. In native mode the table options ``read.native.enabled`` and
``write.native.enabled`` are set on every copy of a table. pypaimon falls back to its Python code silently where the
native code does not apply; here that is an error (``NativeFallback``, with pypaimon's reason), so that an answer of
the native oracle is never an answer of the pure one. ``"allow_fallback": true`` in a request lifts this.
"""

import json
import logging
import os
import sys
import traceback
from contextlib import closing
from importlib.metadata import version
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import canonical
import pyarrow as pa
from pypaimon import CatalogFactory, Schema
from pypaimon.catalog.rest.property_change import PropertyChange
from pypaimon.common.identifier import Identifier
from pypaimon.function.function import FunctionImpl
from pypaimon.function.function_definition import FunctionDefinition
from pypaimon.read import table_read
from pypaimon.schema.data_types import AtomicInteger, DataField, DataTypeParser, PyarrowFieldParser
from pypaimon.schema.schema_change import SchemaChange
from pypaimon.table.instant import Instant
from pypaimon.write.native_write import NativeTableWrite

NATIVE_OPTIONS = {"read.native.enabled": "true", "write.native.enabled": "true"}


class NativeFallback(Exception):
    """The native implementation does not do this; pypaimon would have used its Python code."""


class Unsupported(Exception):
    """pypaimon has no such operation."""


class Oracle:
    """Answers requests; each one opens its table anew, as others change the tables too."""

    def __init__(self, *, native: bool) -> None:
        self._native = native
        self._fallbacks: list[str] = []
        # The one place where a native read gives up; it is told the reason.
        original = table_read.TableRead._native_fallback

        def note_fallback(read: Any, reason: str, *args: Any, **kwargs: Any) -> Any:
            self._fallbacks.append(reason)
            return original(read, reason, *args, **kwargs)

        table_read.TableRead._native_fallback = note_fallback

    def run(self, request: dict[str, Any]) -> Any:
        self._fallbacks.clear()
        command = getattr(self, "do_" + request["command"], None)
        if command is None:
            raise Unsupported(f"pypaimon {version('pypaimon')} has no {request['command']!r}")
        return command(request)

    # ---- catalog ---------------------------------------------------------------------------------------------------

    def do_hello(self, request: dict[str, Any]) -> Any:
        return {
            "implementation": "pypaimon-native" if self._native else "pypaimon-pure",
            "version": version("pypaimon"),
            "rust": version("pypaimon-rust"),
            "pyarrow": pa.__version__,
        }

    def do_shutdown(self, request: dict[str, Any]) -> Any:
        return {}

    def do_create(self, request: dict[str, Any]) -> Any:
        counter = AtomicInteger(-1)
        fields = []
        for column in request["columns"]:
            field_id = counter.increment_and_get()
            fields.append(DataField(field_id, column["name"], _parse_type(column["type"], counter)))
        schema = Schema(fields, request.get("partition_by") or [], request.get("primary_key") or [], request.get("options") or {})
        catalog, identifier = _catalog(request)
        catalog.create_database(identifier.get_database_name(), True)
        catalog.create_table(identifier, schema, False)
        return {}

    def do_alter(self, request: dict[str, Any]) -> Any:
        changes = []
        for change in request["changes"]:
            match change["action"]:
                case "add":
                    changes.append(SchemaChange.add_column(change["column"], _parse_type(change["type"], None)))
                case "rename":
                    changes.append(SchemaChange.rename_column(change["column"], change["to"]))
                case "drop":
                    changes.append(SchemaChange.drop_column(change["column"]))
                case "widen":
                    changes.append(SchemaChange.update_column_type(change["column"], _parse_type(change["type"], None)))
                case "set":
                    changes.append(SchemaChange.set_option(change["key"], change["value"]))
                case other:
                    raise Unsupported(f"schema change {other!r}")
        catalog, identifier = _catalog(request)
        catalog.alter_table(identifier, changes, False)
        return {}

    def do_names(self, request: dict[str, Any]) -> Any:
        catalog, _ = _catalog(request)
        return {database: catalog.list_tables(database) for database in catalog.list_databases()}

    def do_rename(self, request: dict[str, Any]) -> Any:
        catalog, identifier = _catalog(request)
        catalog.rename_table(identifier, Identifier.create(identifier.get_database_name(), request["to"]))
        return {}

    def do_drop(self, request: dict[str, Any]) -> Any:
        catalog, identifier = _catalog(request)
        catalog.drop_table(identifier, False)
        return {}

    def do_catalog(self, request: dict[str, Any]) -> Any:
        """The calls of java/CatalogCalls.java, as far as pypaimon has them."""
        catalog, table = _catalog(request)
        name = request.get("name", "")
        named = Identifier.create(table.get_database_name(), name)
        match request["call"]:
            case "database":
                catalog.create_database(name, False, {"owner": "ann"})
                catalog.alter_database(name, [PropertyChange.set_property("a", "b")])
                options = catalog.get_database(name).options
                catalog.drop_database(name, False, True)
                return {"owner": options["owner"], "a": options["a"], "names": catalog.list_databases()}
            case "tag":
                catalog.create_tag(table, name, request["snapshot"], "7 d")
                tag = catalog.get_tag(table, name)
                names = catalog.list_tags_paged(table).elements
                return {"snapshot": tag.snapshot.id, "retained": tag.tag_time_retained, "names": names}
            case "branch":
                catalog.create_branch(table, name, request["tag"])
                return {"names": catalog.list_branches(table)}
            case "forward":
                catalog.fast_forward(table, name)
            case "rollback":
                instant = Instant.tag(request["tag"]) if "tag" in request else Instant.snapshot(request["snapshot"])
                catalog.rollback_to(table, instant)
            case "partitions":
                partitions = catalog.list_partitions_paged(table).elements
                text = "{{{}}} {} {}"
                return {
                    "partitions": [
                        text.format(
                            ", ".join(f"{key}={value}" for key, value in one.spec.items()), one.record_count, one.file_count
                        )
                        for one in partitions
                    ]
                }
            case "function":
                fields = [DataField(0, "x", _parse_type("BIGINT", None))]
                function = FunctionImpl(
                    named, fields, fields, True, {"spark": FunctionDefinition.sql("x + x")}, "twice", {"k": "v"}
                )
                catalog.create_function(named, function)
                kept = catalog.get_function(named)
                same = kept.definitions() == function.definitions() and kept.comment() == "twice" and kept.options() == {"k": "v"}
                return {"same": same, "names": catalog.list_functions(named.get_database_name())}
            case other:
                raise Unsupported(f"pypaimon {version('pypaimon')} has no call {other!r}")
        return {}

    # ---- writing ---------------------------------------------------------------------------------------------------

    def do_write(self, request: dict[str, Any]) -> Any:
        kinds = request.get("kinds")
        table = self._table(request)
        kind_column = table.options.options.to_map().get("rowkind.field")
        if kinds and kind_column is None and any(kind != "+I" for kind in kinds):
            raise Unsupported("pypaimon takes row kinds only from the column that the option rowkind.field names")
        rows = request["rows"]
        if kind_column is not None:
            rows = [{**row, kind_column: kind} for row, kind in zip(rows, kinds or ["+I"] * len(rows), strict=True)]
        data = canonical.decode_rows(rows, PyarrowFieldParser.from_paimon_schema(table.table_schema.fields))
        stream = request.get("user") is not None
        if stream:
            builder = table.new_stream_write_builder()._with_commit_user(request["user"])
        else:
            builder = table.new_batch_write_builder()
            if request.get("overwrite") is not None:
                builder = builder.overwrite(request["overwrite"])
        with closing(builder.new_write()) as write, closing(builder.new_commit()) as commit:
            if self._native and not isinstance(write, NativeTableWrite):
                self._refuse_fallback(request, "the native writer does not take this table")
            write.write_arrow(data)
            if stream:
                commit.commit(write.prepare_commit(request["identifier"]), request["identifier"])
            else:
                commit.commit(write.prepare_commit())
            if self._native and getattr(write, "_python_writer", None) is not None:
                self._refuse_fallback(request, "the native writer handed over to the Python writer")
        return self._latest(request)

    # ---- reading ---------------------------------------------------------------------------------------------------

    def do_read(self, request: dict[str, Any]) -> Any:
        table = self._table(request)
        if request.get("snapshot") is not None:
            if table.snapshot_manager().get_snapshot_by_id(request["snapshot"]) is None:
                # pypaimon itself would silently read the latest snapshot.
                raise Unsupported(f"snapshot {request['snapshot']} does not exist")
            table = table.copy({"scan.snapshot-id": str(request["snapshot"])})
        if request.get("tag") is not None:
            table = table.copy({"scan.tag-name": request["tag"]})
        builder = table.new_read_builder()
        if request.get("equals"):
            schema = PyarrowFieldParser.from_paimon_schema(table.table_schema.fields)
            predicates = builder.new_predicate_builder()
            builder = builder.with_filter(
                predicates.and_predicates(
                    [
                        predicates.equal(name, canonical.decode_values([value], schema.field(name).type)[0].as_py())
                        for name, value in request["equals"].items()
                    ]
                )
            )
        if request.get("columns"):
            builder = builder.with_projection(request["columns"])
        splits = builder.new_scan().plan().splits()
        rows = canonical.encode_rows(builder.new_read().to_arrow(splits))
        if self._native and self._fallbacks:
            self._refuse_fallback(request, "; ".join(self._fallbacks))
        return {"rows": rows, "splits": len(splits)}

    def do_changes(self, request: dict[str, Any]) -> Any:
        table = self._table(request)
        builder = table.new_stream_read_builder().with_include_row_kind(True)
        scan = builder.new_streaming_scan()
        changes = []
        for snapshot_id in range(request["from"] + 1, request["to"] + 1):
            snapshot = table.snapshot_manager().get_snapshot_by_id(snapshot_id)
            if not scan.follow_up_scanner.should_scan(snapshot):
                continue
            splits = scan._create_follow_up_plan(snapshot).splits()
            for row in canonical.encode_rows(builder.new_read().to_arrow(splits)):
                changes.append([row.pop("_row_kind"), row])
        if self._native and self._fallbacks:
            self._refuse_fallback(request, "; ".join(self._fallbacks))
        return {"changes": changes, "next": request["to"] + 1}

    # ---- metadata --------------------------------------------------------------------------------------------------

    def do_snapshots(self, request: dict[str, Any]) -> Any:
        return [
            {
                "id": s.id,
                "schemaId": s.schema_id,
                "commitKind": s.commit_kind,
                "commitUser": s.commit_user,
                "commitIdentifier": s.commit_identifier,
                "timeMillis": s.time_millis,
                "properties": s.properties,
                "totalRecordCount": s.total_record_count,
                "deltaRecordCount": s.delta_record_count,
            }
            for s in self._table(request).snapshot_manager().list_snapshots()
        ]

    def do_info(self, request: dict[str, Any]) -> Any:
        table = self._table(request)
        schema = table.table_schema
        return {
            **self._latest(request),
            "bucket_mode": table.bucket_mode().name,
            "schema": {
                "id": schema.id,
                "fields": [field.to_dict() for field in schema.fields],
                "options": schema.options,
                "primaryKeys": schema.primary_keys,
                "partitionKeys": schema.partition_keys,
            },
        }

    def do_files(self, request: dict[str, Any]) -> Any:
        splits = self._table(request).new_read_builder().new_scan().plan().splits()
        return [
            {
                "bucket": split.bucket,
                "name": file.file_name,
                "level": file.level,
                "rows": file.row_count,
                "min_sequence": file.min_sequence_number,
                "max_sequence": file.max_sequence_number,
            }
            for split in splits
            for file in split.files
        ]

    def do_tag(self, request: dict[str, Any]) -> Any:
        self._table(request).create_tag(request["name"], request["snapshot"])
        return {}

    # ---- helpers ---------------------------------------------------------------------------------------------------

    def _table(self, request: dict[str, Any]) -> Any:
        catalog, identifier = _catalog(request)
        options = dict(request.get("options") or {})
        if self._native:
            options |= NATIVE_OPTIONS
        return catalog.get_table(identifier).copy(options)

    def _latest(self, request: dict[str, Any]) -> dict[str, Any]:
        snapshot = self._table(request).snapshot_manager().get_latest_snapshot()
        return {"snapshot": 0 if snapshot is None else snapshot.id}

    def _refuse_fallback(self, request: dict[str, Any], reason: str) -> None:
        if not request.get("allow_fallback"):
            raise NativeFallback(reason)


def _catalog(request: dict[str, Any]) -> tuple[Any, Identifier]:
    database, table = os.path.split(request["path"])
    warehouse, folder = os.path.split(database)
    options = {"warehouse": warehouse, **(request.get("catalog") or {})}
    return CatalogFactory.create(options), Identifier.create(folder.removesuffix(".db"), table)


def _parse_type(paimon_type: Any, counter: Any) -> Any:
    if counter is not None and not isinstance(paimon_type, str):
        from pypaimon.schema.data_types import reassign_field_id

        return reassign_field_id(DataTypeParser.parse_data_type(paimon_type), counter)
    return DataTypeParser.parse_data_type(paimon_type)


def main() -> None:
    """Answers until "shutdown" or the end of stdin."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # Whatever a library prints must not be taken for an answer.
    logging.basicConfig(level=logging.WARNING)
    oracle = Oracle(native=sys.argv[1] == "native")
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {"id": request.get("id")}
        try:
            answer["ok"] = oracle.run(request)
        except Exception as error:
            answer["error"] = type(error).__name__
            answer["message"] = "".join(traceback.format_exception(error, limit=-6))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        if request.get("command") == "shutdown":
            break


if __name__ == "__main__":
    main()
