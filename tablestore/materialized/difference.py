"""Plans the changes by which a materialized table becomes what a statement declares. Pure: from two definitions a plan.

    diff(old, new) -> Plan        every aspect: query, columns, freshness, mode, options, comment, constraint, partitioning
    validate(plan)                refuses what cannot be done with the rows that are there

A plan without changes is a statement that does nothing. Columns may be appended, and may be NULL; one that is there may get a
wider type of its kind, and one that is wider than what the query gives stays. The columns of a query also change without it: where
a table that it reads is altered or made anew.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.materialized.freshness import Freshness, FreshnessRules, LogicalRefreshMode, RefreshMode, pick_mode
from tablestore.materialized.materializedtable import MaterializedTable
from tablestore.options import PARTITION_DATE_FORMATTER, partition_date_column
from tablestore.types.datatypes import (
    FLOAT_ROOTS,
    INTEGER_ROOTS,
    TEXT_ROOTS,
    TIMESTAMP_ROOTS,
    AtomicType,
    DataType,
    Field,
    TypeRoot,
    nullable_throughout,
    with_nullable,
)
from tablestore.types.evolution.widening import keeps_values
from tablestore.types.typestring import quote_identifier, type_to_sql

_STAGE = "beside the table: ALTER MATERIALIZED TABLE … STAGE AS query, then PROMOTE"
WAY_OUT = f"Such a version can be built {_STAGE}."
DRIFTED = (
    "A table that the query reads was altered, or made anew. ALTER MATERIALIZED TABLE … AS a query that gives the columns as they "
    f"were, such as by CAST, keeps the table; with the columns that there are now it is built {_STAGE}."
)
_KINDS = (INTEGER_ROOTS | FLOAT_ROOTS | {TypeRoot.DECIMAL}, TEXT_ROOTS, {TypeRoot.BINARY, TypeRoot.VARBINARY}, TIMESTAMP_ROOTS)
_AFTER_COMMA = re.compile(r"(?<=\d), (?=\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyQuery:
    """Another query; ``appended`` are the columns that it adds."""

    original: str
    expanded: str
    appended: tuple[Field, ...] = ()

    def __str__(self) -> str:
        added = ", ".join(f"{quote_identifier(column.name)} {_type(column.type)}" for column in self.appended)
        columns = f"; adds {added}" if added else ""
        return f"MODIFY QUERY to: {' '.join(self.original.split())}{columns}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyColumns:
    """Columns that get another type: each as it was, and as it is to be."""

    columns: tuple[tuple[Field, Field], ...]

    @property
    def widens(self) -> bool:
        """True if they hold their values as they are."""
        return all(widens(before.type, after.type) for before, after in self.columns)

    def __str__(self) -> str:
        return "; ".join(f"MODIFY COLUMN {_column(after)} (was {_type(before.type)})" for before, after in self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyFreshness:
    """Another freshness."""

    before: Freshness
    after: Freshness

    def __str__(self) -> str:
        return f"SET FRESHNESS = {self.after} (was {self.before})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyRefreshMode:
    """Another mode; ``after`` is the one that holds."""

    logical: LogicalRefreshMode
    before: RefreshMode
    after: RefreshMode

    def __str__(self) -> str:
        chosen = " (chosen by its freshness)" if self.logical is LogicalRefreshMode.AUTOMATIC else ""
        return f"SET REFRESH_MODE = {self.after}{chosen} (was {self.before})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyOptions:
    """Options that are set, and keys that are set back."""

    set: Mapping[str, str] = field(default_factory=dict)
    reset: tuple[str, ...] = ()

    def __str__(self) -> str:
        pairs = [f"SET '{key}' = '{value}'" for key, value in sorted(self.set.items())]
        return "; ".join([*pairs, *(f"RESET '{key}'" for key in self.reset)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyComment:
    """Another comment; None: none."""

    comment: str | None

    def __str__(self) -> str:
        return "DROP COMMENT" if self.comment is None else f"SET COMMENT '{self.comment}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyConstraint:
    """Another primary key, or name of it."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    name: str | None

    def __str__(self) -> str:
        return f"MODIFY PRIMARY KEY to {_names(self.after)} (was {_names(self.before)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyPartitioning:
    """Other partition columns."""

    before: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        return f"MODIFY PARTITIONED BY to {_names(self.after)} (was {_names(self.before)})"


Change = (
    ModifyQuery
    | ModifyColumns
    | ModifyFreshness
    | ModifyRefreshMode
    | ModifyOptions
    | ModifyComment
    | ModifyConstraint
    | ModifyPartitioning
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterationPlan:
    """The plan that leads from one definition to another, change by change."""

    old: MaterializedTable
    new: MaterializedTable
    changes: tuple[Change, ...] = ()

    @property
    def appended(self) -> tuple[Field, ...]:
        """The columns that the table gets."""
        return tuple(column for change in self.changes if isinstance(change, ModifyQuery) for column in change.appended)

    @property
    def changes_query(self) -> bool:
        """True if the rows are to be made anew, from the beginning."""
        return any(isinstance(change, ModifyQuery) for change in self.changes)

    @property
    def widens(self) -> bool:
        """True if columns get a wider type."""
        return any(isinstance(change, ModifyColumns) for change in self.changes)

    @property
    def restarts(self) -> bool:
        """True if another job or workflow has to refresh the table. One of FULL refreshes reads the definition each time."""
        if self.old.refresh_mode is self.new.refresh_mode is RefreshMode.FULL:
            return self.old.freshness != self.new.freshness
        return any(isinstance(change, ModifyQuery | ModifyFreshness | ModifyRefreshMode) for change in self.changes)

    @property
    def changes_rows(self) -> bool:
        """True if what readers see becomes something else: other rows, another key, other partitions."""
        return any(
            isinstance(change, ModifyQuery | ModifyConstraint | ModifyPartitioning)
            or (isinstance(change, ModifyColumns) and not change.widens)
            for change in self.changes
        )

    def __str__(self) -> str:
        return "\n".join(map(str, self.changes)) if self.changes else "no change"


def diff(old: MaterializedTable, new: MaterializedTable, *, same_query: bool) -> AlterationPlan:
    """The plan that leads from ``old`` to ``new``. ``same_query``: their queries say the same, whatever their texts."""
    changes: list[Change] = []
    new = replace(new, fields=_aligned(old.fields, new.fields))
    if not same_query or [column.name for column in old.fields] != [column.name for column in new.fields]:
        appended = new.fields[len(old.fields) :]
        changes.append(ModifyQuery(original=new.original_query, expanded=new.expanded_query, appended=appended))
    if retyped := _retyped(old.fields, new.fields):
        changes.append(ModifyColumns(columns=retyped))
    if (old.freshness, old.default_freshness) != (new.freshness, new.default_freshness):
        changes.append(ModifyFreshness(before=old.freshness, after=new.freshness))
    if (old.logical_mode, old.refresh_mode) != (new.logical_mode, new.refresh_mode):
        changes.append(ModifyRefreshMode(logical=new.logical_mode, before=old.refresh_mode, after=new.refresh_mode))
    options = _options(old.options, new.options)
    if options != ModifyOptions():
        changes.append(options)
    if old.comment != new.comment:
        changes.append(ModifyComment(comment=new.comment))
    if (old.primary_key, old.constraint) != (new.primary_key, new.constraint):
        changes.append(ModifyConstraint(before=old.primary_key, after=new.primary_key, name=new.constraint))
    if old.partition_by != new.partition_by:
        changes.append(ModifyPartitioning(before=old.partition_by, after=new.partition_by))
    return AlterationPlan(old=old, new=new, changes=tuple(changes))


def settled(
    old: MaterializedTable, freshness: Freshness | None, logical: LogicalRefreshMode, rules: FreshnessRules
) -> tuple[Freshness, RefreshMode]:
    """The freshness and mode of a table that is declared again: what is declared as before stays, whatever the rules are now."""
    declared_before = None if old.default_freshness else old.freshness
    if (freshness, logical) == (declared_before, old.logical_mode):
        return old.freshness, old.refresh_mode
    return pick_mode(freshness, logical, rules)


def validate(plan: AlterationPlan) -> None:
    """Raises InvalidInputError or UnsupportedError for a plan that cannot be carried out."""
    if plan.old.query == plan.new.query:
        _check_drift(plan)
    else:
        check_columns(plan.old.fields, plan.new.fields)
    for change in plan.changes:
        match change:
            case ModifyColumns():
                keys = {*plan.old.primary_key, *plan.old.partition_by}
                if retyped := [(before, after) for before, after in change.columns if before.name in keys]:
                    raise UnsupportedError(
                        f"{'; '.join(drift(*zip(*retyped, strict=True)))}: the files of the table are placed and ordered by its "
                        f"key and its partitions. {WAY_OUT}",
                        kind="immutable",
                    )
            case ModifyPartitioning():
                raise UnsupportedError(
                    f"PARTITIONED BY cannot be altered from {_names(change.before)} to {_names(change.after)}: the files of the "
                    f"table lie in its partitions. DROP MATERIALIZED TABLE it and create it anew, or build it {_STAGE}",
                    kind="immutable",
                )
            case ModifyConstraint() if change.before != change.after:
                raise UnsupportedError(
                    f"PRIMARY KEY cannot be altered from {_names(change.before)} to {_names(change.after)}: the files of the table "
                    f"are ordered by it. DROP MATERIALIZED TABLE it and create it anew, or build it {_STAGE}",
                    kind="immutable",
                )
    check_declared(plan.new)


def check_columns(original: tuple[Field, ...], derived: tuple[Field, ...]) -> None:
    """Raises InvalidInputError unless the columns of another query are those of the table, with others behind them."""
    if len(derived) < len(original):
        raise InvalidInputError(
            "Failed to modify query because drop column is unsupported. When modifying a query, you can only append new columns at "
            f"the end of original schema. The original schema has {len(original)} columns, but the newly derived schema from the "
            f"query has {len(derived)} columns.\n{WAY_OUT}",
            kind="materialized-columns",
        )
    for place, (before, after) in enumerate(zip(original, derived, strict=False)):
        if before.name != after.name or not (_same_type(before.type, after.type) or widens(before.type, after.type)):
            raise InvalidInputError(
                "When modifying the query of a materialized table, currently only support appending columns at the end of original "
                "schema, dropping, renaming, and reordering columns are not supported.\n"
                f"Column mismatch at position {place}: Original column is [{_column(before)}], but new column is "
                f"[{_column(after)}].\n{WAY_OUT}",
                kind="materialized-columns",
            )


def _check_drift(plan: AlterationPlan) -> None:
    """Raises InvalidInputError where the query is the same, and its columns are others than those that the table may get."""
    old, new = plan.old.fields, plan.new.fields
    same_names = [before.name for before in old] == [after.name for after in new[: len(old)]]
    if same_names and all(widens(before.type, after.type) for before, after in _retyped(old, new)):
        return
    raise InvalidInputError(
        f"The query is the same, and its columns are not: {'; '.join(drift(old, new))}. {DRIFTED}", kind="materialized-columns"
    )


def drift(stored: Sequence[Field], derived: Sequence[Field]) -> list[str]:
    """The differences of the columns that a query gives from those of its table, one by one."""
    before, after = ({column.name: column for column in fields} for fields in (stored, derived))
    lines = [f"column {_column(column)} is not there any more" for name, column in before.items() if name not in after]
    lines += [f"column {_column(column)} is new" for name, column in after.items() if name not in before]
    lines += [
        f"column {quote_identifier(name)} was {_type(column.type)}, and is {_type(after[name].type)} now"
        for name, column in before.items()
        if name in after and not _takes(column.type, after[name].type)
    ]
    return lines or [f"they are ordered {_names(tuple(after))}, and were {_names(tuple(before))}"]


def check_kinds(stored: Sequence[Field], derived: Sequence[Field], table: str) -> list[str]:
    """The columns whose values may not all go into those of a table, in words. Raises InvalidInputError where none can."""
    pairs = [(column, other) for column, other in zip(stored, derived, strict=True) if not _takes(column.type, other.type)]
    if not pairs:
        return []
    lines = drift(*zip(*pairs, strict=True))
    if all(widens(column.type, other.type) for column, other in pairs):
        lines[-1] += " (CREATE OR ALTER MATERIALIZED TABLE of the same query widens it)"
    if any(_kind(column.type) != _kind(other.type) for column, other in pairs):
        raise drifted(table, lines)
    return lines


def drifted(table: str, lines: Sequence[str], because: str = "") -> InvalidInputError:
    """The error of a refresh whose query gives other columns than those that the table was declared with."""
    reason = f"\n{because}" if because else ""
    return InvalidInputError(
        f"the query of materialized table {table} gives other columns now: {'; '.join(lines)}. {DRIFTED}{reason}",
        kind="materialized-columns",
    )


def widens(old: DataType, new: DataType) -> bool:
    """True if a column may become one of another type: a wider one of its kind, which holds each of its values."""
    return (
        isinstance(old, AtomicType)
        and isinstance(new, AtomicType)
        and _kind(old) == _kind(new)
        and keeps_values(old, new)
        and not _same_type(old, new)
    )


def _aligned(stored: tuple[Field, ...], derived: tuple[Field, ...]) -> tuple[Field, ...]:
    """The columns of a table whose query gives these: a column that is there stays where it takes what the query gives."""

    def aligned(before: Field, after: Field) -> Field:
        if before.name != after.name:
            return after
        if _takes(before.type, after.type):
            return before
        return replace(before, type=with_nullable(after.type, before.type.nullable))

    return (*map(aligned, stored, derived), *derived[len(stored) :])


def _retyped(old: tuple[Field, ...], new: tuple[Field, ...]) -> tuple[tuple[Field, Field], ...]:
    pairs = zip(old, new, strict=False)
    return tuple(pair for pair in pairs if pair[0].name == pair[1].name and not _same_type(pair[0].type, pair[1].type))


def _takes(stored: DataType, derived: DataType) -> bool:
    """True if a column takes all values of a type as they are."""
    return _same_type(stored, derived) or widens(derived, stored)


def _kind(data_type: DataType) -> object:
    """The value that the types of one kind share, among which values may go from one to another; a nested type is one of its
    own."""
    if not isinstance(data_type, AtomicType):
        return type_to_sql(nullable_throughout(data_type))
    return next((kind for kind in _KINDS if data_type.root in kind), data_type.root)


def check_declared(definition: MaterializedTable) -> None:
    """Raises InvalidInputError for keys, partitions and options that do not fit the columns of the query."""
    by_name = {column.name: column for column in definition.fields}
    names = ", ".join(by_name)
    for name in definition.partition_by:
        if name not in by_name:
            raise InvalidInputError(
                f"Partition column '{name}' not defined in the query's schema. Available columns: [{names}].", kind="unknown-column"
            )
    for name in definition.primary_key:
        if name not in by_name:
            raise InvalidInputError(
                f"Primary key column '{name}' not defined in the query schema. Available columns: [{names}].", kind="unknown-column"
            )
    for key in definition.options:
        column = partition_date_column(key)
        if column is None:
            continue
        if column not in definition.partition_by:
            raise InvalidInputError(
                f"Column '{column}' referenced by materialized table option '{key}' isn't a partition column. Available partition "
                f"columns: [{', '.join(definition.partition_by)}].",
                kind="invalid-option",
            )
        if not is_text(by_name[column].type):
            raise InvalidInputError(
                f"Materialized table option '{PARTITION_DATE_FORMATTER.replace('#', column)}' only supports referring to char, "
                f"varchar and string type partition column. Column `{column}` type is {_type(by_name[column].type)}.",
                kind="invalid-option",
            )


def is_text(data_type: DataType) -> bool:
    """True if a type is CHAR, VARCHAR or STRING."""
    return type_to_sql(with_nullable(data_type, True)).startswith(("CHAR", "VARCHAR", "STRING"))


def _options(old: Mapping[str, str], new: Mapping[str, str]) -> ModifyOptions:
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    return ModifyOptions(set=changed, reset=tuple(sorted(key for key in old if key not in new)))


def _same_type(before: DataType, after: DataType) -> bool:
    return type_to_sql(nullable_throughout(before)) == type_to_sql(nullable_throughout(after))


def _column(column: Field) -> str:
    return f"{quote_identifier(column.name)} {_type(column.type)}"


def _type(data_type: DataType) -> str:
    """The type as the messages of Flink have it: ``DECIMAL(10,2)``; whether it may be NULL does not count."""
    return _AFTER_COMMA.sub(",", type_to_sql(with_nullable(data_type, True)))


def _names(names: tuple[str, ...]) -> str:
    return f"({', '.join(names)})" if names else "none"
