"""Runs statements of literals and simple expressions without an engine: UPDATE, DELETE, and INSERT … VALUES.

    statement -> values and a condition on which the small evaluator and every engine agree  |  None: an engine runs it
              -> few rows -> files, written in this process -> one commit

The rule is :mod:`tablestore.types.expression.agreement`; here it is applied to the text of a statement. A text that an engine could
read in another way is not direct either: comments, hints, escapes, double quotes, parameters, and calls of functions where the user
has functions. Nor is what fails before its commit: the engine runs it anew, and its error is the one that the user gets.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

import pyarrow as pa
from sqlglot import exp

from tablestore.environment.engine import Agrees, InsertTarget
from tablestore.environment.rows.literalrows import literal_rows
from tablestore.environment.session.session import Session
from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.format.snapshot import Snapshot
from tablestore.memo import Memo
from tablestore.recursion import deep_stack
from tablestore.sql.source import Fragment
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statements.rows import Delete, Insert, Update
from tablestore.sql.writing.insertion import columns_by_place, rows_to_insert
from tablestore.store.commit.conflict import StalePlan
from tablestore.store.scan.scanplan import plan_scan
from tablestore.table.change.assigning import Assignments, no_rows
from tablestore.table.change.update import removed_rows, updated_rows
from tablestore.table.table import Table
from tablestore.table.write.changetasks import ChangeJob, ChangeMessage, write_changes
from tablestore.table.write.current import settled
from tablestore.table.write.rowchange import RowChange, check_change
from tablestore.table.write.writer import TableWriter
from tablestore.types.arrays import one_chunk
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import Field
from tablestore.types.expression.agreement import Agreed, agreed_condition, agreed_store, agreed_value
from tablestore.types.expression.assignment import assigned_values
from tablestore.types.expression.coercion import cast_to
from tablestore.types.expression.evaluate import evaluate_expression
from tablestore.types.expression.expression import Column, Expression, constants_of
from tablestore.types.expression.sqlexpression import ExpressionReader
from tablestore.types.expression.sqltree import parse_tree
from tablestore.types.filter.filters import check_depth
from tablestore.types.filter.predicate import Predicate
from tablestore.types.filter.sqlfilter import condition_of

MOST_ROWS = 100_000
"""The most rows that are read for a statement: docs/decisions/0011-direct-changes.md."""

_QUOTED = re.compile(r"'[^']*'|`[^`]*`")
# What has another meaning to some engines, or in some sessions.
_SPECIAL = re.compile(r"[\"\\$?:{}@#]|--|/\*|\b0[xXbB]")
_CALL = re.compile(r"([^\W\d]\w*)\s*\(")
# Of one condition inside of another without parentheses parsers make different trees: ``a = b IS NULL``.
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_PREDICATES = (*_COMPARISONS, exp.Is, exp.In, exp.Between, exp.Like)
_CONDITIONS = (*_PREDICATES, exp.Not)
# Words that stand before a parenthesis and call no function.
_WORDS = frozenset("AND OR NOT IN LIKE BETWEEN CASE WHEN THEN ELSE CAST AS DECIMAL".split())  # noqa: SIM905


def direct_rows(session: Session, statement: Insert, fields: Sequence[Field]) -> pa.Table | None:
    """The rows of an INSERT of literals, as the columns of the table have them; None where an engine has to say what they are."""
    plain = statement.partition is None and not (statement.overwrite or statement.by_name or session.settings.is_streaming)
    if not plain or session.restrictions is not None or statement.query.dialect is not SqlDialect.SPARK:
        return None
    try:
        values = literal_rows(rows_to_insert(statement).text, 1)
        if values is None or not (isinstance(session.engine, Agrees) and session.engine.agrees(calls=False)):
            return None
        return _stored_rows(statement, values, fields)
    except (TablestoreError, pa.ArrowException):
        return None


def _stored_rows(statement: Insert, values: pa.Table, fields: Sequence[Field]) -> pa.Table | None:
    query_columns = [(name, None) for name in values.column_names]
    columns: dict[str, pa.Array] = {}
    for (name, _), target in columns_by_place("", statement, fields, query_columns, {}):
        column = one_chunk(values.column(name))
        if target is None or target.name in columns or not agreed_store(Agreed(column.type, column[0]), target.type):
            return None
        columns[target.name] = cast_to(column, target.type)
    return pa.table(columns)


@contextmanager
def written_rows(rows: pa.Table, target: InsertTarget) -> Iterator[TableWriter | None]:
    """Writes rows, for a commit; None for rows that the table does not take: an engine says then what is wrong."""
    with target.table.new_writer(target.commit_user) as writer:
        try:
            writer.write(rows, missing_columns=target.missing_columns)
        except TablestoreError:
            written = False
        else:
            written = True
        yield writer if written else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectChange:
    """An UPDATE or DELETE on whose meaning all agree: ``sets`` are the values of an UPDATE, ``predicate`` None takes all rows."""

    sets: Mapping[str, Expression]
    predicate: Predicate | None


def write_directly(
    session: Session, statement: Update | Delete, table: Table, base: Snapshot | None
) -> tuple[ChangeJob, ChangeMessage] | None:
    """Writes the files of a statement that no engine has to run, for a commit; None: an engine has to. Raises StalePlan."""
    fragments = [statement.where] if statement.where is not None else []
    for assignment in statement.assignments if isinstance(statement, Update) else ():
        if assignment.value is None:
            return None
        fragments.append(assignment.value)
    try:
        if not may_be_direct(session, fragments):
            return None
        direct = direct_change(statement, table.table_schema.fields, session.memo)
        return None if direct is None else _written(table, statement, direct, base)
    except StalePlan:
        raise
    except (TablestoreError, RecursionError, pa.ArrowException):
        # The engine says it in its words, and where.
        return None


def may_be_direct(session: Session, fragments: Sequence[Fragment]) -> bool:
    """True if texts mean the same to everyone, as far as they can be read."""
    text = "\n".join(map(attrgetter("text"), fragments))
    bare = _QUOTED.sub("q", text)
    if _SPECIAL.search(bare) or "\\" in text or "${" in text:
        return False
    calls = set(_CALL.findall(bare.upper())) - _WORDS
    if session.restrictions is not None or (calls and session.functions.called()):
        return False
    return isinstance(session.engine, Agrees) and session.engine.agrees(calls=bool(calls))


def direct_change(statement: Update | Delete, fields: tuple[Field, ...], memo: Memo) -> DirectChange | None:
    """The values and the condition of a statement; None where an engine has to say what they are.

    Raises InvalidInputError, UnsupportedError, also for what an engine may know."""
    columns = DirectColumns.of(fields, (statement.alias or statement.target.parts[-1]).casefold())
    if len(columns.by_name) < len(fields) or columns.alias in columns.by_name:
        return None
    sets: dict[str, Expression] = {}
    for assignment in statement.assignments if isinstance(statement, Update) else ():
        assert assignment.value is not None, "a default is for an engine"
        value = memo(_agreed_value, assignment.value.text, columns, assignment.column)
        if value is None or value[0] in sets:
            return None
        sets[value[0]] = value[1]
    if statement.where is None:
        return DirectChange(sets=sets, predicate=None)
    text = statement.where.text
    with deep_stack():
        tree, condition = read_direct(text, columns)
        if not agreed_condition(condition, columns.type):
            return None
        predicate = condition_of(tree, text, partial(columns.field, ""))
    check_depth(predicate)
    return DirectChange(sets=sets, predicate=predicate)


@dataclass(frozen=True, slots=True)
class DirectColumns:
    """The columns of a table, by names without regard to case; ``alias``: its name in texts, folded."""

    fields: tuple[Field, ...]
    alias: str
    by_name: Mapping[str, Field] = field(compare=False)

    @classmethod
    def of(cls, fields: tuple[Field, ...], alias: str) -> "DirectColumns":
        """The columns of a table with an alias."""
        names = map(str.casefold, map(attrgetter("name"), fields))
        return cls(fields, alias, dict(zip(names, fields, strict=True)))

    def field(self, table: str, name: str) -> Field:
        """The column of a name. Raises InvalidInputError for one that is not there, or is a matter of the engine."""
        named_field = self.by_name.get(name.casefold())
        # What else than letters of English are equal but for their case is no matter of agreement.
        if named_field is None or (table and table.casefold() != self.alias) or (name != named_field.name and not name.isascii()):
            raise InvalidInputError(f"there is no column {table}.{name}", kind="unknown-column")
        return named_field

    def column(self, table: str, name: str) -> Column:
        """The same as an expression."""
        return Column(self.field(table, name).name)

    def type(self, name: str) -> pa.DataType:
        """The type of a column."""
        return to_arrow_type(self.by_name[name.casefold()].type)


def _agreed_value(text: str, columns: DirectColumns, column: tuple[str, ...]) -> tuple[str, Expression] | None:
    """The name of the column that is set, and its value; None if an engine may see it in another way."""
    *table, name = column
    target = columns.field(".".join(table), name)
    with deep_stack():
        value = read_direct(text, columns)[1]
    if not agreed_value(value, columns.type, target.type):
        return None
    # An engine may compute what has no column, and fail there, although there is no row.
    nothing = no_rows(lambda column: columns.type(column.name))
    for constant in constants_of(value):
        if constant is value:
            assigned_values(value, target, nothing)
        else:
            evaluate_expression(constant, nothing)
    return target.name, value


def read_direct(text: str, columns: DirectColumns) -> tuple[exp.Expression, Expression]:
    """The tree of a text, without names of tables, and the expression that it means. Raises InvalidInputError, UnsupportedError."""
    tree = parse_tree(text, what="expression", example="price * 2")
    expression = ExpressionReader(text, columns.column).whole(tree)
    for node in tree.walk():
        if isinstance(node, exp.Column):
            node.set("table", None)
        elif isinstance(node, _PREDICATES):
            right = node.expression if isinstance(node, _COMPARISONS) else None
            if isinstance(node.this, _CONDITIONS) or isinstance(right, _CONDITIONS):
                raise UnsupportedError(f"{text} has other parentheses for some engines", kind="unsupported-filter")
    return tree, expression


def _written(
    table: Table, statement: Update | Delete, direct: DirectChange, base: Snapshot | None
) -> tuple[ChangeJob, ChangeMessage] | None:
    context = table.context
    change = RowChange(
        operation=type(statement).__name__.upper(),
        deletes=isinstance(statement, Delete),
        sets=tuple(direct.sets),
        reads=direct.predicate,
    )
    check_change(context, change)
    base = settled(context, base)
    splits = plan_scan(context, base, direct.predicate).splits
    runs = (run for split in splits for section in split.sections for run in section.runs)
    if sum(file.row_count for run in runs for file in run) > MOST_ROWS:
        return None
    if direct.sets:
        rows = updated_rows(context, splits, Assignments(direct.sets), direct.predicate)
    else:
        rows = removed_rows(context, splits, direct.predicate)
    job = ChangeJob.of(context, change, base)
    return job, write_changes(context, table.change_log, job, rows)
