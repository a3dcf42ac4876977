"""Compares another version of a materialized table with what readers see. Nothing is changed by it.

    columns     added, removed, of another type
    rows        by key, where both have the same one: only here, only there, changed; else as bags: only here, only there

Rows are compared in the columns that both have, with the same type, by what SQL calls equal: NULL is NULL, NaN is NaN.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tablestore.distributed.read import pin_at
from tablestore.environment.engine import ManagedRelation, QueryEngine, Relation
from tablestore.environment.rows.relations import Relations
from tablestore.environment.session.session import Session
from tablestore.materialized.incremental.refreshcursor import RefreshCursor, parse_cursor, stored_cursor
from tablestore.materialized.incremental.verify import MOST_EXAMPLES, difference
from tablestore.materialized.refreshing import refresh_session
from tablestore.materialized.storing import StoredTable
from tablestore.materialized.tableversions import Role
from tablestore.sql.query.edits import quote_name
from tablestore.types.datatypes import with_nullable
from tablestore.types.typestring import type_to_sql

_CURRENT, _OTHER = "tablestore_current", "tablestore_other"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareReport:
    """The differences of a version from the current one. ``changed`` is None where the two have no common key.

    ``apart``: sources that the two were made from at different snapshots, so that rows may differ without another reason.
    ``examples_…``: some of the rows, at most 20; of ``changed`` as they are in the version.
    """

    role: Role
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()
    columns_retyped: tuple[str, ...] = ()
    only_current: int
    only_other: int
    changed: int | None
    apart: tuple[str, ...] = ()
    examples_only_current: pa.Table = field(repr=False)
    examples_only_other: pa.Table = field(repr=False)
    examples_changed: pa.Table | None = field(default=None, repr=False)

    @property
    def is_equal(self) -> bool:
        """True if there is no difference, neither in columns nor in rows."""
        columns = (self.columns_added, self.columns_removed, self.columns_retyped)
        return not (any(columns) or self.only_current or self.only_other or self.changed)

    def __str__(self) -> str:
        if self.is_equal:
            lines = [f"the {self.role} version has the columns and rows of the current one"]
        else:
            named = (("added", self.columns_added), ("removed", self.columns_removed), ("of another type", self.columns_retyped))
            lines = [f"columns {kind}: {', '.join(names)}" for kind, names in named if names]
            lines.append(f"rows only in the current version: {self.only_current}; only in the {self.role} one: {self.only_other}")
            if self.changed is not None:
                lines.append(f"rows that are not the same in both: {self.changed}")
        if self.apart:
            lines.append(f"made from different snapshots of {', '.join(self.apart)}: REFRESH both for a strict comparison")
        return "\n".join(lines)


def compare(session: Session, current: StoredTable, other: StoredTable, role: Role) -> CompareReport:
    """Compares two versions as they are now. Raises UnsupportedError without an engine, and what reading them raises."""
    inner = refresh_session(session)
    engine = session.engine_for("COMPARE")
    before, after = (
        {column.name: type_to_sql(with_nullable(column.type, True)) for column in version.table.table_schema.fields}
        for version in (current, other)
    )
    common = [name for name, text in before.items() if after.get(name) == text]
    rows = _Rows(inner, engine, {_CURRENT: _relation(inner, current), _OTHER: _relation(inner, other)})
    keys = current.table.primary_key
    schema = pa.schema([current.table.schema.field(name) for name in common])
    examples_changed, changed = None, None
    if keys and keys == other.table.primary_key and set(keys) <= set(common):
        only_current, here_rows = rows.without_partner(schema, keys, (_CURRENT, _OTHER))
        only_other, there_rows = rows.without_partner(schema, keys, (_OTHER, _CURRENT))
        changed, examples_changed = rows.changed(schema, keys)
    elif common:
        only_current, here_rows = difference(inner, engine, schema, rows.given, (_CURRENT, _OTHER))
        only_other, there_rows = difference(inner, engine, schema, rows.given, (_OTHER, _CURRENT))
    else:
        (only_current, here_rows), (only_other, there_rows) = (
            (rows.count(f"FROM {side}"), schema.empty_table()) for side in rows.given
        )
    cursors = [parse_cursor(stored_cursor(version.table.context.snapshots.latest())) for version in (current, other)]
    return CompareReport(
        role=role,
        columns_added=tuple(f"{name} {text}" for name, text in after.items() if name not in before),
        columns_removed=tuple(f"{name} {text}" for name, text in before.items() if name not in after),
        columns_retyped=tuple(f"{name} {text} -> {after[name]}" for name, text in before.items() if after.get(name, text) != text),
        only_current=only_current,
        only_other=only_other,
        changed=changed,
        apart=_apart(*cursors),
        examples_only_current=here_rows,
        examples_only_other=there_rows,
        examples_changed=examples_changed,
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    session: Session
    engine: QueryEngine
    given: dict[str, Relation]

    def without_partner(self, schema: pa.Schema, keys: Sequence[str], sides: tuple[str, str]) -> tuple[int, pa.Table]:
        """Rows of one side whose key the other side does not have."""
        one_side, other_side = sides
        return self._counted(schema, f"FROM {one_side} AS h LEFT ANTI JOIN {other_side} AS t ON {_equal(keys, '=')}")

    def changed(self, schema: pa.Schema, keys: Sequence[str]) -> tuple[int, pa.Table]:
        """Rows of the other version whose key both have, with other values."""
        values = [name for name in schema.names if name not in keys]
        if not values:
            return 0, schema.empty_table()
        joined = f"FROM {_OTHER} AS h JOIN {_CURRENT} AS t ON {_equal(keys, '=')} WHERE NOT ({_equal(values, '<=>')})"
        return self._counted(schema, joined)

    def count(self, rows: str) -> int:
        return int(self._read(f"SELECT count(*) AS `rows` {rows}").column(0)[0].as_py())

    def _counted(self, schema: pa.Schema, rows: str) -> tuple[int, pa.Table]:
        number = self.count(rows)
        columns = ", ".join(f"h.{quote_name(name)} AS {quote_name(name)}" for name in schema.names)
        return number, self._read(f"SELECT {columns} {rows} LIMIT {MOST_EXAMPLES}") if number else schema.empty_table()

    def _read(self, sql: str) -> pa.Table:
        return self.engine.read(Relations(session=self.session).bind(sql, self.given)).read_all()


def _equal(names: Sequence[str], sign: str) -> str:
    return " AND ".join(f"h.{quote_name(name)} {sign} t.{quote_name(name)}" for name in names)


def _relation(session: Session, stored: StoredTable) -> Relation:
    table = stored.table
    latest = table.context.snapshots.latest()
    pin = pin_at(table.context, session.spec(stored.path, table), latest.id if latest else None)
    return ManagedRelation(name=table.name, table=table, pin=pin)


def _apart(one: RefreshCursor | None, other: RefreshCursor | None) -> tuple[str, ...]:
    """The sources of both that were read at different snapshots."""
    if one is None or other is None:
        return ()
    points = [(point, other.of_source(point.name)) for point in one.points]
    return tuple(sorted(point.name for point, same in points if same is not None and same.snapshot_id != point.snapshot_id))
