"""Checks a query in DuckDB's own words with DuckDB's own parser, and says what it uses of its tables.

    the user's text -> tree: its tables are those that were resolved, at the places where they were
    text with the names of views -> tree: it reads these and nothing else

The tables were found by a walk over tokens. Where the parser sees others, the query is refused: no name may lead to a table, a file
or a setting of DuckDB's that nobody has resolved.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tablestore.environment.engine import BoundQuery, ManagedRelation, PrunableRows, Relation, RowsRelation
from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.sql.depth import deep
from tablestore.sql.query.tablereferences import CALLS
from tablestore.sql.source import NOWHERE, Span, marked
from tablestore_duckdb.ownfilters import TableConditions, conditions_of, filter_of

Parse: TypeAlias = Callable[[str], str]
"""A text -> its tree as JSON, or what is wrong with it, as DuckDB gives it."""

_QUERIES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
# Expressions whose columns are those that stand in them by name. A star has all, and #2 is one by its place.
_NAMING = frozenset({
    "COLUMN_REF", "CONSTANT", "FUNCTION", "COMPARISON", "CONJUNCTION", "OPERATOR", "CAST", "CASE", "BETWEEN", "SUBQUERY", "WINDOW",
    "PARAMETER", "LAMBDA", "COLLATE",
})  # fmt: skip
_COMPUTED = frozenset({"unnest", "range", "generate_series", "repeat", "repeat_row", "json_each", "json_tree"})
_FILES = frozenset({
    "read_csv", "read_csv_auto", "sniff_csv", "read_parquet", "parquet_scan", "parquet_metadata", "parquet_schema",
    "parquet_file_metadata", "parquet_kv_metadata", "read_json", "read_json_auto", "read_json_objects", "read_json_objects_auto",
    "read_ndjson", "read_ndjson_auto", "read_ndjson_objects", "read_text", "read_blob", "glob",
})  # fmt: skip
# They name tables by texts, or act on the database.
_NEVER = frozenset({"query", "query_table", "checkpoint", "force_checkpoint", "seq_scan", "arrow_scan", "arrow_scan_dumb"})
# Macros that stand in FROM and name a table by an argument.
_OF_TABLES = frozenset({"histogram", "histogram_values"})
# They tell of DuckDB's own database, session or host instead of ours, or change them.
_OF_DATABASE = frozenset({
    "current_setting", "getenv", "getvariable", "nextval", "currval", "setseed", "write_log", "current_database",
    "current_databases", "current_schema", "current_schemas", "current_catalog", "current_query", "current_connection_id",
    "current_query_id", "current_transaction_id", "txid_current", "in_search_path", "set_config", "which_secret",
})  # fmt: skip
_TELLING = ("duckdb_", "pragma_", "pg_", "has_", "enable_", "disable_")
_OF_VALUES = frozenset({"pg_typeof"})


@dataclass(slots=True)
class OwnTree:
    """The tables, columns and functions that a tree names.

    ``tables``: names in parts, with their places where the parser says them. ``columns``: all parts of the names of columns, None
    where all columns of all tables may be meant; ``rows``: the last parts, which may also stand for the row of a table.
    ``conditions``: on the rows of single tables.
    """

    tables: list[tuple[tuple[str, ...], Span]] = field(default_factory=list)
    aliases: set[str] = field(default_factory=set)
    columns: set[str] | None = field(default_factory=set)
    rows: set[str] = field(default_factory=set)
    calls: list[tuple[str, Span, bool]] = field(default_factory=list)
    conditions: list[TableConditions] = field(default_factory=list)

    def conditions_at(self, text: str, start: int) -> TableConditions | None:
        """The conditions on the table that stands at a place of the text."""
        place = len(text[:start].encode())
        return next((one for one in self.conditions if one.place == place), None)


def checked_tree(query: BoundQuery, parse: Parse, *, reads_files: bool) -> OwnTree:
    """The tree of the user's text, which reads the tables that were resolved.

    ``reads_files``: the connection is the user's own, and its table functions are too. Raises InvalidInputError, UnsupportedError,
    with the place.
    """
    tree = _tree(query.text, parse)
    counted = Counter(_folded(path.parts) for path in query.tables)
    if counted != Counter(_folded(path) for path, _ in tree.tables):
        raise _other_tables(query, tree)
    starts = {(_folded(path.parts), path.span.start) for path in query.tables}
    for path, span in tree.tables:
        at_place = any((_folded(path), start) in starts for start in range(span.start, span.end))
        if span != NOWHERE and not at_place:
            raise _other_tables(query, tree)
    for name, span, is_table in tree.calls:
        _check_call(name, span, query, is_table=is_table, reads_files=reads_files)
    return tree


def check_written(text: str, parse: Parse, views: Collection[str], engine_tables: Collection[tuple[str, ...]]) -> None:
    """Checks the text that DuckDB gets: it names views of this query, and tables that were resolved to DuckDB's own."""
    known = {_folded(path) for path in engine_tables}
    for path, _ in _tree(text, parse).tables:
        if not (len(path) == 1 and path[0] in views) and _folded(path) not in known:
            raise UnsupportedError(
                f"the query reads {'.'.join(path)}, which is no table that its names were resolved to; give each table an alias",
                kind="engine",
            )


def pruned(query: BoundQuery, tree: OwnTree, *, compares_texts: bool) -> tuple[Relation, ...]:
    """The relations of a query with the columns and rows that it may use. ``compares_texts``: texts are compared by their bytes."""
    starts = {edit.relation: edit.span.start for edit in query.edits if edit.relation is not None}
    relations: list[Relation] = []
    for number, relation in enumerate(query.relations):
        conditions = tree.conditions_at(query.text, starts[number]) if number in starts else None
        if isinstance(relation, ManagedRelation) and conditions is not None:
            condition = filter_of(conditions, relation.schema.fields, compares_texts=compares_texts)
            relation = replace(relation, filter=condition)
        relations.append(_narrowed(relation, tree))
    return tuple(relations)


def _narrowed(relation: Relation, tree: OwnTree) -> Relation:
    """The relation with the columns that the query may use."""
    is_prunable = isinstance(relation, ManagedRelation) or (
        isinstance(relation, RowsRelation) and isinstance(relation.rows, PrunableRows)
    )
    if not is_prunable or tree.columns is None:
        return relation
    # A name that is that of a table is its row, unless it is a column.
    if tree.rows & (tree.aliases | {relation.name.rpartition(".")[2].casefold()}):
        return relation
    columns = tree.columns
    if isinstance(relation, RowsRelation):
        assert isinstance(relation.rows, PrunableRows), "others are left as they are"
        names = tuple(field.name for field in relation.rows.prunable_fields if field.name.casefold() in columns)
        return replace(relation, rows=relation.rows.pruned(names, None))
    assert isinstance(relation, ManagedRelation), "others are left as they are"
    return replace(relation, columns=tuple(one for one in relation.schema.field_names if one.casefold() in columns))


def _tree(text: str, parse: Parse) -> OwnTree:
    with deep():
        content = json.loads(parse(text))
        if content["error"]:
            raise _refused(text, content)
        statements = content["statements"]
        if len(statements) != 1:
            raise InvalidInputError(f"expected one query, found {len(statements)}", kind="query")
        tree = OwnTree()
        _Walk(text, tree).node(statements[0]["node"], frozenset())
    return tree


def _refused(text: str, content: Mapping[str, Any]) -> TablestoreError:
    message = str(content.get("error_message", "it is no query"))
    if content.get("error_type") == "not implemented":
        first = text.split(maxsplit=1)[:1]
        if any(word in text.upper() for word in ("PIVOT",)):
            return UnsupportedError(
                "a PIVOT without IN takes its columns from the rows, which only a query that is one itself can: name the values, "
                "as in PIVOT t ON k IN ('a', 'b') USING sum(v)",
                kind="engine",
            )
        return InvalidInputError(f"expected a query, found {first[0] if first else 'none'!r:.40}", kind="query")
    place = ""
    if str(content.get("position", "")).isdecimal():
        start = _characters(text, int(content["position"]))
        place = f"\n{marked(text, Span(start, start + 1))}"
    return InvalidInputError(f"DuckDB refuses the query: {message}{place}", kind="query")


def _characters(text: str, place: int) -> int:
    """The place in characters of one in bytes."""
    return place if text.isascii() else len(text.encode()[:place].decode(errors="ignore"))


@dataclass(slots=True)
class _Walk:
    text: str
    tree: OwnTree

    def node(self, part: Any, bound: frozenset[str]) -> None:
        """Notes what a part of a tree reads; ``bound``: the names of WITH that are known in it, folded."""
        if isinstance(part, list):
            for one in part:
                self.node(one, bound)
        if not isinstance(part, dict):
            return
        kind = str(part.get("type", ""))
        if kind.endswith("_NODE") and kind not in _QUERIES:
            raise InvalidInputError("expected a query, found a statement that changes rows in it", kind="query")
        for entry in (part.get("cte_map") or {}).get("map") or ():
            inner, name = entry["value"]["query_node"], entry["key"].casefold()
            if entry["value"].get("aliases"):
                self.tree.columns = None
            self.node(inner, bound | {name} if inner.get("type") == "RECURSIVE_CTE_NODE" else bound)
            bound |= {name}
        if kind == "SELECT_NODE":
            self.tree.conditions += conditions_of(part, bound)
        self._note(part, kind, bound)
        for key, inner in part.items():
            if key != "cte_map":
                self.node(inner, bound)

    def _note(self, part: Mapping[str, Any], kind: str, bound: frozenset[str]) -> None:
        tree = self.tree
        if part.get("alias"):
            tree.aliases.add(str(part["alias"]).casefold())
        is_unknown = "class" in part and part["class"] not in _NAMING
        if part.get("column_name_alias") or part.get("ref_type") == "NATURAL" or kind == "PIVOT" or is_unknown:
            tree.columns = None
        if tree.columns is not None:
            tree.columns.update(str(name).casefold() for name in part.get("using_columns") or ())
        if part.get("class") == "COLUMN_REF":
            names = [str(name).casefold() for name in part["column_names"]]
            tree.rows.add(names[-1])
            if tree.columns is not None:
                tree.columns.update(names)
        elif part.get("class") == "FUNCTION" and kind != "TABLE_FUNCTION":
            tree.calls.append((_name(part), self._span(part), False))
        elif kind == "TABLE_FUNCTION":
            tree.calls.append((_name(part["function"]), self._span(part), True))
        elif kind == "BASE_TABLE":
            path = tuple(str(name) for name in part["qualified_name"]["path"])
            tree.aliases.add(path[-1].casefold())
            if len(path) > 1 or path[0].casefold() not in bound:
                tree.tables.append((path, self._span(part)))
        elif kind == "SHOW_REF" and "query" not in part:
            raise UnsupportedError(
                "SHOW of DuckDB's own objects is no query here; SHOW TABLES is a statement, and information_schema.tables a table",
                kind="engine",
            )

    def _span(self, part: Mapping[str, Any]) -> Span:
        if "query_location" not in part:
            return NOWHERE
        start = int(part["query_location"])
        end = start + int(part.get("query_location_length", 1))
        return Span(_characters(self.text, start), _characters(self.text, end))


def _name(function: Mapping[str, Any]) -> str:
    return str(function.get("function_name", "")).lower()


def _folded(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.casefold() for part in parts)


def _other_tables(query: BoundQuery, tree: OwnTree) -> TablestoreError:
    """The error where the parser sees other tables than those that were resolved."""
    known = {_folded(path.parts) for path in query.tables}
    for path, span in tree.tables:
        if _folded(path) not in known:
            is_file = any(sign in path[-1] for sign in "./\\:*")
            place = "" if span == NOWHERE else f"\n{marked(query.text, span)}"
            advice = (
                "a file is no table: read it with read_csv(…), read_parquet(…) or read_json(…), or declare it as a table with "
                "'connector' = 'filesystem'"
                if is_file
                else "write its name behind FROM or JOIN"
            )
            return UnsupportedError(
                f"the query reads {'.'.join(path)!r:.200} in a place where no table is looked up; {advice}{place}", kind="engine"
            )
    return UnsupportedError(
        "the query names its tables in a way that cannot be told for sure: give the names of WITH and of tables different names",
        kind="engine",
    )


def is_open_function(name: str) -> bool:
    """True unless a function, in small letters, tells of DuckDB's own database or acts on it."""
    return name in _OF_VALUES or (name not in _NEVER | _OF_DATABASE and not name.startswith(_TELLING))


def _check_call(name: str, span: Span, query: BoundQuery, *, is_table: bool, reads_files: bool) -> None:
    if name in CALLS:
        return
    place = "" if span == NOWHERE else f"\n{marked(query.text, span)}"
    if not is_open_function(name) or (is_table and name in _OF_TABLES):
        raise UnsupportedError(
            f"the function {name} names or tells of what DuckDB has itself, and a query reads the tables that its names stand for; "
            f"SHOW, DESCRIBE and information_schema say what there is{place}",
            kind="engine",
        )
    if not is_table or name in _COMPUTED:
        return
    if query.is_closed:
        raise UnsupportedError(f"a stored query reads tables of catalogs alone, found {name}(…){place}", kind="unsafe")
    if name not in _FILES and not reads_files:
        raise UnsupportedError(
            f"the table function {name} is not known to read nothing but its arguments or files; make the environment over a "
            f"connection of your own: engine=tablestore_duckdb.open_engine(connection){place}",
            kind="engine",
        )
