"""Runs the source of a MERGE once, and keeps it while the MERGE runs: its values say which part of the target counts.

    source -> temporary table -> least and greatest value, or each of a few -> what the target's scan reads, what others may write

DuckDB puts of the table on disk what does not fit into memory.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa

from tablestore.environment.engine import BoundQuery, ChangeTarget, Matching, QueryRelation
from tablestore.environment.rows.matched import matched_part, reading, restricted
from tablestore.types.datatypes import INTEGER_ROOTS, AtomicType, Field, TypeRoot
from tablestore.types.filter.equalvalues import MOST_VALUES, where_between, where_equal
from tablestore.types.filter.predicate import TRUE, Predicate
from tablestore_duckdb.columntypes import columns_of
from tablestore_duckdb.prepared import PreparedQuery
from tablestore_duckdb.quoting import ViewPlace, identifier
from tablestore_duckdb.resultrows import run_batches
from tablestore_duckdb.rowtypes import duckdb_type
from tablestore_duckdb.sessions import Sessions

_INTEGERS = frozenset(f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"))
_PLAIN_ROOTS = frozenset({TypeRoot.VARCHAR, TypeRoot.DATE, TypeRoot.DECIMAL, TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
# Texts that a collation takes for equal: of case, and of accents, compositions and languages.
_ALIKE = (("a", "A"), ("e\u0301", "\u00e9"))


def can_say(query: BoundQuery, matching: Matching) -> bool:
    """True if the values of the source may say something of the target, as far as its columns go."""
    roots = INTEGER_ROOTS | _PLAIN_ROOTS

    def may_be(field: Field, _: str) -> Predicate | None:
        return TRUE if isinstance(field.type, AtomicType) and field.type.root in roots else None

    return matched_part(query.relations[matching.target], matching.columns, may_be) is not None


@contextmanager
def merged_rows(
    sessions: Sessions, prepared: Callable[..., PreparedQuery], query: BoundQuery, target: ChangeTarget, matching: Matching
) -> Iterator[tuple[pa.RecordBatchReader, ChangeTarget]]:
    """The rows of a MERGE's query, and its target with what it reads of that. They keep a connection busy until the end.

    ``prepared``: a query as DuckDB runs it, with what has the rows of its relations already.
    """
    source, changed = query.relations[matching.source], query.relations[matching.target]
    assert isinstance(source, QueryRelation), "the source of a MERGE is a query"
    with sessions.run(prepared(source.query)) as run:
        sessions.check_files(run)
        name = sessions.new_name()
        run.keep(name)
        part = matched_part(changed, matching.columns, _Source(run.connection.table(name), name).where_equal)
        relations = {matching.target: restricted(changed, part)}
        placed = tuple(relations.get(place, relation) for place, relation in enumerate(query.relations))
        kept = (ViewPlace(name),), columns_of(run.connection.table(name))
        run.then(prepared(replace(query, relations=placed), {matching.source: kept}))
        with closing(run_batches(sessions, run)) as batches:
            yield pa.RecordBatchReader.from_batches(next(batches).schema, batches), reading(target, part)


@dataclass(frozen=True, slots=True)
class _Source:
    """The rows of a source, in a table of this name."""

    rows: duckdb.DuckDBPyRelation
    name: str

    def where_equal(self, field: Field, column: str) -> Predicate | None:
        """The condition that holds for a column of the target where it equals one of the source; None if nothing can be said."""
        named = self._columns().get(column)
        if named is None or not _is_plain(field, named[1]):
            return None
        value, is_text = identifier(named[0]), named[1] == "VARCHAR"
        rows = self.rows.filter(f"{value} IS NOT NULL")
        if is_text and rows.project(_collates(value)).limit(1).fetchall() == [(True,)]:
            return None
        bounds = rows.project(f"count(*) AS n, min({value}) AS low, max({value}) AS high").to_arrow_table()
        if bounds["n"][0].as_py() > MOST_VALUES:
            return where_between(field, pa.concat_arrays([bounds[end].combine_chunks() for end in ("low", "high")]))
        return where_equal(field, rows.project(value).to_arrow_table().column(0))

    def _columns(self) -> Mapping[str, tuple[str, str]]:
        """Names and types by name without regard to case; no two are alike in a table."""
        return {name.casefold(): (name, str(kind)) for name, kind in zip(self.rows.columns, self.rows.types, strict=True)}


def _is_plain(field: Field, kind: str) -> bool:
    """True if DuckDB compares the column with one of its type ``kind`` without a cast that could round, and as a filter does."""
    if not isinstance(field.type, AtomicType):
        return False
    if field.type.root in INTEGER_ROOTS:
        return kind in _INTEGERS
    expected = "TIMESTAMP WITH TIME ZONE" if field.type.root is TypeRoot.TIMESTAMP_LTZ else duckdb_type(field.type)
    return field.type.root in _PLAIN_ROOTS and kind.replace(" ", "") == expected.replace(" ", "")


def _collates(column: str) -> str:
    """The expression that is true if texts compare with this column by a collation, its own or the default one, not by their
    bytes."""
    return " OR ".join(f"coalesce(CASE WHEN FALSE THEN {column} END, '{one}') = '{other}'" for one, other in _ALIKE)
