"""Defines a table as CREATE TABLE does, as one value: columns, keys, partitioning, options, and those that LIKE brings.

LIKE source          all of it, options of the statement winning      (INCLUDING ALL OVERWRITING OPTIONS)
(EXCLUDING what)     without: options partitions constraints generated metadata watermarks, or all but the columns;
                     distribution: the options of buckets and clustering, where nothing is said of it, go with the options
(INCLUDING what)     with, and what both say is an error
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from tablestore.environment.managed.nonphysical import (
    Unstored,
    UnstoredColumn,
    WatermarkOf,
    in_order,
    read_unstored,
    renumbered,
    unstored_options,
)
from tablestore.environment.rows.expressions import expression_type
from tablestore.environment.session.objects import CONNECTOR, ConnectorTable
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.names import did_you_mean
from tablestore.options import (
    BUCKET,
    BUCKET_KEY,
    CLUSTERING_COLUMNS,
    CLUSTERING_INCREMENTAL,
    CLUSTERING_RANGES,
    CLUSTERING_STRATEGY,
    KEY_CONSTRAINT,
    LOG_KAFKA_TOPIC,
    MATERIALIZED_PREFIX,
    OWN_MATERIALIZED_PREFIX,
    SCHEMA_PREFIX,
    TYPE,
    checks_of,
    is_check,
    other_spellings,
    with_options,
)
from tablestore.sql.query.functions import function_edits
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.source import Fragment, Span
from tablestore.sql.statements.definition import (
    Check,
    Column,
    ComputedColumn,
    CreateTable,
    LikeClause,
    MetadataColumn,
    PhysicalColumn,
    Watermark,
)
from tablestore.sql.stored.storedexpression import check_expression
from tablestore.store.schemas import TABLE_UUID_OPTION
from tablestore.table.table import Table
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.datatypes import TIMESTAMP_ROOTS, AtomicType, Field
from tablestore.types.evolution.replacing import OF_REPLACEMENTS
from tablestore.types.filter.constraints import constraint_options, stored_text
from tablestore.types.typestring import type_to_sql

# Options that belong to one table alone.
OWN_OPTIONS = OF_REPLACEMENTS | {TABLE_UUID_OPTION, LOG_KAFKA_TOPIC.key}
_DISTRIBUTION = (
    BUCKET.key,
    BUCKET_KEY.key,
    CLUSTERING_COLUMNS.key,
    CLUSTERING_STRATEGY.key,
    CLUSTERING_INCREMENTAL.key,
    CLUSTERING_RANGES.key,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """A table to be made. ``fields`` are the stored columns, ``constraint`` is the name of the primary key, ``checks`` are the
    conditions that every row holds, by name."""

    fields: tuple[Field, ...] = ()
    unstored: Unstored = field(default_factory=Unstored)
    primary_key: tuple[str, ...] = ()
    constraint: str | None = None
    checks: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    comment: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def kept_options(self) -> dict[str, str]:
        """The options, with those that keep what the format has no place for."""
        named = {} if self.constraint is None else {KEY_CONSTRAINT: self.constraint}
        return {**self.options, **unstored_options(self.unstored), **named, **constraint_options(self.checks)}


def define(session: Session, statement: CreateTable, source: Source, of_query: Sequence[Field] = ()) -> TableDefinition:
    """The table that a statement defines; ``of_query`` are columns of its query, which follow its own.

    Raises InvalidInputError, and of computed columns what the engine says.
    """
    check_own_options(statement.options, source)
    base = TableDefinition() if statement.like is None else _like(session, statement.like, statement.options, source)
    columns: list[str | UnstoredColumn] = in_order([one.name for one in base.fields], base.unstored)
    fields = [*base.fields, *(_stored(one) for one in statement.columns or () if isinstance(one, PhysicalColumn)), *of_query]
    _check_names([_name(one) for one in (*columns, *(statement.columns or ()), *of_query)], source)
    for one in statement.columns or ():
        columns.append(one.name if isinstance(one, PhysicalColumn) else _unstored(session, one, fields, source))
    columns += [one.name for one in of_query]
    watermark = base.unstored.watermark
    if statement.watermark is not None:
        watermark = _watermark(session, statement.watermark, fields, source)
    unstored = Unstored(columns=renumbered(columns), watermark=watermark)
    if CONNECTOR not in {**base.options, **statement.options}:
        _check_stored(unstored, [one.name for one in fields], source)
    return TableDefinition(
        fields=tuple(fields),
        unstored=unstored,
        primary_key=statement.primary_key or base.primary_key,
        constraint=statement.constraint if statement.primary_key else base.constraint,
        checks=_checks(base, statement, fields, source),
        partition_by=statement.partitioned_by or base.partition_by,
        comment=statement.comment if statement.comment is not None else base.comment,
        options=with_options(base.options, statement.options),
    )


def _checks(base: TableDefinition, statement: CreateTable, fields: Sequence[Field], source: Source) -> Mapping[str, str]:
    """The conditions of the source of LIKE, and those of the statement. Raises InvalidInputError, UnsupportedError."""
    checks = dict(base.checks)
    key_name = statement.constraint if statement.primary_key else base.constraint
    for check in statement.checks:
        name, text = named_check(check, (*checks, *filter(None, (one.name for one in statement.checks))), fields, source)
        if name.casefold() in {other.casefold() for other in (*checks, *filter(None, (key_name,)))}:
            raise InvalidInputError(
                source.mark(f"there is a constraint {name!r} already; choose another name", source.word(name)),
                kind="constraint-exists",
            )
        checks[name] = text
    return checks


def named_check(check: Check, names: Iterable[str], fields: Sequence[Field], source: Source) -> tuple[str, str]:
    """The name of a condition and its text. One without a name gets one that is not among ``names``.

    Raises InvalidInputError, UnsupportedError for what no writer computes.
    """
    name = check.name
    if name is None:
        base = f"{check.column or 'row'}_check"
        used = {other.casefold() for other in names}
        candidates = (base if number == 1 else f"{base}_{number}" for number in count(1))
        name = next(candidate for candidate in candidates if candidate.casefold() not in used)
    with placing(source, check.condition.span):
        return name, stored_text(name, check.condition.text, fields)


def check_own_options(options: Mapping[str, str], source: Source) -> None:
    """Raises InvalidInputError for options that other clauses and statements write."""
    for key in options:
        if key.startswith(SCHEMA_PREFIX):
            why = "is where computed columns are kept: declare it as a column"
        elif key == KEY_CONSTRAINT:
            why = "is where the name of the key is kept: write CONSTRAINT name PRIMARY KEY (…) NOT ENFORCED"
        elif is_check(key):
            why = "is where a constraint is kept: write CONSTRAINT name CHECK (condition), or ALTER TABLE … ADD or DROP CONSTRAINT"
        elif key.startswith((MATERIALIZED_PREFIX, OWN_MATERIALIZED_PREFIX)) or key == TYPE.key:
            why = "is where the definition of a materialized table is kept: CREATE OR ALTER MATERIALIZED TABLE writes it"
        else:
            continue
        raise InvalidInputError(source.mark(f"option {key!r:.100} {why}", source.word(key)), kind="invalid-option")


def definition_of(table: Table | ConnectorTable) -> TableDefinition:
    """The definition of a table that is there, without what belongs to it alone."""
    if isinstance(table, ConnectorTable):
        return TableDefinition(
            fields=() if table.schema is None else fields_from_arrow(table.schema)[0],
            unstored=table.unstored or Unstored(),
            primary_key=table.primary_key,
            constraint=table.constraint,
            partition_by=table.partition_by,
            comment=table.comment,
            options={CONNECTOR: table.connector, **table.options},
        )
    schema = table.table_schema
    options = {key: value for key, value in schema.options.items() if key not in OWN_OPTIONS and not _of_query(key)}
    return TableDefinition(
        fields=schema.fields,
        unstored=read_unstored(options, schema.field_names),
        primary_key=schema.primary_keys,
        constraint=options.pop(KEY_CONSTRAINT, None),
        checks=checks_of(options),
        partition_by=schema.partition_keys,
        comment=schema.comment,
        options={key: value for key, value in options.items() if not key.startswith(SCHEMA_PREFIX) and not is_check(key)},
    )


def _of_query(key: str) -> bool:
    """True if an option is about the query that makes the rows of a table: another table has rows of its own."""
    return key == TYPE.key or key.startswith((MATERIALIZED_PREFIX, OWN_MATERIALIZED_PREFIX))


def _stored(column: PhysicalColumn) -> Field:
    return Field(id=0, name=column.name, type=column.type, description=column.comment, default_value=column.default)


def _name(column: str | UnstoredColumn | Column | Field) -> str:
    return column if isinstance(column, str) else column.name


def _check_names(names: list[str], source: Source) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if (earlier_name := seen.get(name.casefold())) is not None:
            raise InvalidInputError(
                source.mark(f"duplicate column names: {name}{why_same(name, earlier_name)}; rename one", source.word(name)),
                kind="duplicate-column",
            )
        seen[name.casefold()] = name


def _unstored(session: Session, column: Column, fields: list[Field], source: Source) -> UnstoredColumn:
    if isinstance(column, MetadataColumn):
        return UnstoredColumn(
            name=column.name,
            position=0,
            type_text=type_to_sql(column.type),
            metadata=column.name if column.key is None else column.key,
            virtual=column.virtual,
            comment=column.comment,
        )
    assert isinstance(column, ComputedColumn)
    engine = session.engine_for(f"the computed column {column.name!r}, whose type is to be found,")
    _check_functions(session, column.expression, source)
    with placing(source, column.expression.span):
        computed_type = expression_type(engine, column.expression.text, fields)
    return UnstoredColumn(
        name=column.name,
        position=0,
        type_text=type_to_sql(computed_type),
        expression=column.expression.text,
        comment=column.comment,
    )


def _watermark(session: Session, watermark: Watermark, fields: list[Field], source: Source) -> WatermarkOf:
    names = [one.name for one in fields]
    if watermark.column not in names:
        raise InvalidInputError(
            source.mark(
                f"WATERMARK FOR {watermark.column!r}: expected a stored column of the table{did_you_mean(watermark.column, names)}",
                source.word(watermark.column),
            ),
            kind="unknown-column",
        )
    column = fields[names.index(watermark.column)]
    if not isinstance(column.type, AtomicType) or column.type.root not in TIMESTAMP_ROOTS:
        raise InvalidInputError(
            source.mark(
                f"WATERMARK FOR {column.name!r}: expected a column of type TIMESTAMP, found {type_to_sql(column.type)}",
                source.word(column.name),
            ),
            kind="invalid-watermark",
        )
    watermark_type: object = column.type
    if session.engine is not None:
        _check_functions(session, watermark.expression, source)
        with placing(source, watermark.expression.span):
            watermark_type = expression_type(session.engine, watermark.expression.text, fields)
        if not isinstance(watermark_type, AtomicType) or watermark_type.root not in TIMESTAMP_ROOTS:
            raise InvalidInputError(
                source.mark("the watermark must be a TIMESTAMP", watermark.expression.span), kind="invalid-watermark"
            )
    return WatermarkOf(column=column.name, expression=watermark.expression.text, type_text=type_to_sql(column.type))


def _check_functions(session: Session, expression: Fragment, source: Source) -> None:
    """Raises UnsupportedError where what a table keeps calls a function that ends with the session."""
    for call in function_edits(Tokens(expression.text), session.temporary_function):
        start = expression.span.start
        name = expression.text[call.span.start : call.span.end]
        raise UnsupportedError(
            source.mark(
                f"{name} is a temporary function of this session, and the table outlives it: use functions of the engine, or "
                "call it in a temporary view over the table",
                Span(start + call.span.start, start + call.span.end),
            ),
            kind="temporary-object",
        )


def _check_stored(unstored: Unstored, names: Sequence[str], source: Source) -> None:
    """Raises InvalidInputError for what readers of the table would not compute; the session alone reads one with a connector."""
    for column in unstored.computed:
        _check_expression(f"the computed column {column.name!r:.80}", column.name, column.expression or "", names, source)
    if (watermark := unstored.watermark) is not None:
        _check_expression("the watermark", watermark.column, watermark.expression, names, source)


def _check_expression(subject: str, name: str, text: str, columns: Sequence[str], source: Source) -> None:
    try:
        check_expression(text, columns)
    except InvalidInputError as error:
        raise InvalidInputError(
            source.mark(f"{subject} is one expression over stored columns of its table: {error.message}", source.word(name)),
            kind=error.kind,
        ) from error


def _like(session: Session, like: LikeClause, statement_options: Mapping[str, str], source: Source) -> TableDefinition:
    choices = dict(like.choices)
    base = _of_source(session, like, source)

    def takes(category: str) -> bool:
        return choices.get(category, choices.get("all", "including")) != "excluding"

    def about(key: str) -> str:
        return "distribution" if key in _DISTRIBUTION and "distribution" in choices else "options"

    options = {key: value for key, value in base.options.items() if takes(about(key))}
    again = {key for key in options if key in statement_options or other_spellings(key) & statement_options.keys()}
    both = sorted(key for key in again if choices.get(about(key)) == "including")
    if both:
        category = about(both[0]).upper()
        raise InvalidInputError(
            source.mark(
                f"LIKE … (INCLUDING {category}): both tables set {', '.join(both)}; OVERWRITING {category} takes those given here",
                source.word(next(key for key in statement_options if key == both[0] or key in other_spellings(both[0]))),
            ),
            kind="like",
        )
    stored: list[str | UnstoredColumn] = [
        one
        for one in in_order([field.name for field in base.fields], base.unstored)
        if isinstance(one, str) or takes("generated" if one.expression is not None else "metadata")
    ]
    return TableDefinition(
        fields=base.fields,
        unstored=Unstored(columns=renumbered(stored), watermark=base.unstored.watermark if takes("watermarks") else None),
        primary_key=base.primary_key if takes("constraints") else (),
        constraint=base.constraint if takes("constraints") else None,
        checks=base.checks if takes("constraints") else {},
        partition_by=base.partition_by if takes("partitions") else (),
        comment=base.comment,
        options=options,
    )


def _of_source(session: Session, like: LikeClause, source: Source) -> TableDefinition:
    original = session.find(like.source, source)
    if isinstance(original, ConnectorTable):
        # The copy is this session's own, which it trusts.
        with placing(source, like.source.span):
            session.check_access(original)
    if isinstance(original, Table | ConnectorTable):
        return definition_of(original)
    raise InvalidInputError(source.mark(f"LIKE {like.source}: expected a table", like.source.span), kind="like")


def why_same(name: str, other_name: str) -> str:
    """The explanation that a message adds where the names of two columns that are one to a query are not spelt alike."""
    return "" if name == other_name else f", and a query cannot tell {name!r} from it: they differ in case only"
