"""Computes the change of a query's rows in this process, where the query only chooses and computes rows of one table.

    changes of the source -> those for which the condition holds -> the values -> netted: the rows that come and go

No engine is asked, as for statements of literals and simple expressions (:mod:`tablestore.environment.rows.direct`), whose rule
holds here too: the small evaluator and every engine agree on the expressions. Each column has the very type of the target's. What
fails here is run by the engine, whose error it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from tablestore.environment.rows.direct import MOST_ROWS, DirectColumns, may_be_direct, read_direct
from tablestore.environment.session.session import Session
from tablestore.errors import TablestoreError
from tablestore.materialized.incremental.sources import added_up
from tablestore.recursion import deep_stack
from tablestore.sql.incremental.nodes import Block, Union
from tablestore.sql.incremental.planner import IncrementalPlan
from tablestore.sql.incremental.shapes import WEIGHT, SourceShape
from tablestore.sql.query.dialect import Spark4
from tablestore.sql.source import Fragment, Span
from tablestore.types.arrays import one_chunk
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import LENGTH_ROOTS, MAX_LENGTH, AtomicType, Field
from tablestore.types.expression.agreement import agreed_condition, agreed_type, agreed_value
from tablestore.types.expression.evaluate import ColumnValues, evaluate_expression, holds
from tablestore.types.expression.expression import Expression, columns_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectBlock:
    """A SELECT of the rows of one source, by its number; ``values``: of each column of the target, in their order."""

    source: int
    condition: Expression | None
    values: tuple[Expression, ...]

    def change(self, changes: pa.Table) -> list[pa.Array]:
        """The values of the rows that come and go, and their weights. Raises as the evaluator does."""
        columns = {name: one_chunk(changes.column(name)) for name in changes.column_names}
        rows = ColumnValues(changes.num_rows, lambda column: columns[column.name])
        if self.condition is not None:
            chosen = holds(self.condition, rows).nonzero()[0]
            if len(chosen) < rows.count:
                columns = {name: column.take(pa.array(chosen)) for name, column in columns.items()}
                rows = ColumnValues(len(chosen), lambda column: columns[column.name])
        return [*(evaluate_expression(value, rows) for value in self.values), columns[WEIGHT]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectPlan:
    """A query whose rows are those of its blocks. ``texts``: what it says of them; ``fields``: the columns of the target."""

    blocks: tuple[DirectBlock, ...]
    texts: tuple[str, ...]
    fields: tuple[Field, ...]

    def change(self, session: Session, changes: Mapping[int, pa.Table]) -> pa.Table | None:
        """The rows that come and go, as :meth:`IncrementalPlan.change` gives them; None where an engine has to compute them."""
        if sum(rows.num_rows for rows in changes.values()) > MOST_ROWS:
            return None
        if not may_be_direct(session, [Fragment(text, Span(0, len(text))) for text in self.texts]):
            return None
        schema = pa.schema([*((field.name, to_arrow_type(field.type)) for field in self.fields), (WEIGHT, pa.int32())])
        parts: list[pa.RecordBatch] = []
        try:
            for block in self.blocks:
                if block.source in changes:
                    arrays = block.change(changes[block.source])
                    if [array.type for array in arrays] != schema.types:
                        return None
                    parts.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
        except (TablestoreError, RecursionError, pa.ArrowException):
            # The engine says it in its words, or has the whole query decide.
            return None
        return added_up(pa.Table.from_batches(parts, schema=schema))


def direct_plan(plan: IncrementalPlan, sources: Sequence[SourceShape]) -> DirectPlan | None:
    """The plan of a query that no engine has to run; None for others."""
    sides = plan.node.sides if isinstance(plan.node, Union) else (plan.node,)
    fields = tuple(field for _, field in plan.outputs)
    texts: list[str] = []
    blocks: list[DirectBlock] = []
    for side in sides:
        block = _direct_block(side, sources, fields, texts) if isinstance(side, Block) else None
        if block is None:
            return None
        blocks.append(block)
    return DirectPlan(blocks=tuple(blocks), texts=tuple(texts), fields=fields)


def _direct_block(block: Block, sources: Sequence[SourceShape], fields: Sequence[Field], texts: list[str]) -> DirectBlock | None:
    clauses = {clause for clause, value in block.select.args.items() if value}
    if not clauses <= {"expressions", "from_", "where"} or len(block.inputs) != 1:
        return None
    (one,) = block.inputs
    if not isinstance(one.reads, int) or one.equalities:
        return None
    columns = DirectColumns.of(sources[one.reads].fields, one.alias.casefold())
    if len(columns.by_name) < len(columns.fields) or columns.alias in columns.by_name:
        return None
    read = partial(_read, columns=columns, texts=texts)
    where = block.select.args.get("where")
    try:
        condition = None if where is None else read(where.this.sql(dialect=Spark4))
        if condition is not None and not (_is_plain(condition, columns) and agreed_condition(condition, columns.type)):
            return None
        values = [read(value.unalias().sql(dialect=Spark4)) for value in block.select.expressions]
    except (TablestoreError, RecursionError):
        return None
    if not all(_is_value(value, columns, field) for value, field in zip(values, fields, strict=True)):
        return None
    return DirectBlock(source=one.reads, condition=condition, values=tuple(values))


def _read(text: str, *, columns: DirectColumns, texts: list[str]) -> Expression:
    texts.append(text)
    with deep_stack():
        return read_direct(text, columns)[1]


def _is_value(value: Expression, columns: DirectColumns, field: Field) -> bool:
    """True if a value is the same everywhere, and of the type of a column."""
    kind = to_arrow_type(field.type)
    return (
        _is_plain(value, columns)
        and not _has_length(field)
        and agreed_value(value, columns.type, field.type)
        and agreed_type(value, columns.type) == kind
    )


def _is_plain(expression: Expression, columns: DirectColumns) -> bool:
    """True if no column has a length, which engines may fill up, or cut at."""
    return not any(_has_length(columns.field("", column.name)) for column in columns_of(expression))


def _has_length(field: Field) -> bool:
    kind = field.type
    return isinstance(kind, AtomicType) and kind.root in LENGTH_ROOTS and kind.length != MAX_LENGTH
