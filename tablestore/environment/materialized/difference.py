"""What has to change so that a materialized table becomes what a statement declares? Pure: from two definitions a plan.

    diff(old, new) -> Plan        every aspect: query, columns, freshness, mode, options, comment, constraint, partitioning
    validate(plan)                refuses what cannot be done with the rows that are there

A plan without changes is a statement that does nothing. Columns may only be appended, and may be NULL.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tablestore.environment.materialized.freshness import Freshness, FreshnessRules, LogicalRefreshMode, RefreshMode, pick_mode
from tablestore.environment.materialized.materializedtable import MaterializedTable
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.options import PARTITION_DATE_FORMATTER, partition_date_column
from tablestore.types.datatypes import DataType, Field, with_nullable
from tablestore.types.typestring import quote_identifier, type_to_sql

_STAGE = "beside the table: ALTER MATERIALIZED TABLE … STAGE AS query, then PROMOTE"
_WAY_OUT = f"Such a version can be built {_STAGE}."
_AFTER_COMMA = re.compile(r"(?<=\d), (?=\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyQuery:
    """Another query; ``appended`` are the columns that it adds."""

    original: str
    expanded: str
    appended: tuple[Field, ...] = ()

    def __str__(self) -> str:
        added = ", ".join(f"{quote_identifier(one.name)} {_type(one.type)}" for one in self.appended)
        columns = f"; adds {added}" if added else ""
        return f"MODIFY QUERY to: {' '.join(self.original.split())}{columns}"


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


Change = ModifyQuery | ModifyFreshness | ModifyRefreshMode | ModifyOptions | ModifyComment | ModifyConstraint | ModifyPartitioning


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """From one definition to another, change by change."""

    old: MaterializedTable
    new: MaterializedTable
    changes: tuple[Change, ...] = ()

    @property
    def appended(self) -> tuple[Field, ...]:
        """The columns that the table gets."""
        return tuple(one for change in self.changes if isinstance(change, ModifyQuery) for one in change.appended)

    @property
    def changes_query(self) -> bool:
        """Whether the rows are to be made anew, from the beginning."""
        return any(isinstance(change, ModifyQuery) for change in self.changes)

    @property
    def restarts(self) -> bool:
        """Whether whoever refreshes the table has to begin again."""
        return any(isinstance(change, ModifyQuery | ModifyFreshness | ModifyRefreshMode) for change in self.changes)

    @property
    def changes_rows(self) -> bool:
        """Whether what readers see becomes something else: other rows, another key, other partitions."""
        return any(isinstance(change, ModifyQuery | ModifyConstraint | ModifyPartitioning) for change in self.changes)

    def __str__(self) -> str:
        return "\n".join(map(str, self.changes)) if self.changes else "no change"


def diff(old: MaterializedTable, new: MaterializedTable, *, same_query: bool) -> Plan:
    """What leads from ``old`` to ``new``. ``same_query``: their queries say the same, whatever their texts."""
    changes: list[Change] = []
    if not same_query:
        appended = new.fields[len(old.fields) :]
        changes.append(ModifyQuery(original=new.original_query, expanded=new.expanded_query, appended=appended))
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
    return Plan(old=old, new=new, changes=tuple(changes))


def settled(
    old: MaterializedTable, freshness: Freshness | None, logical: LogicalRefreshMode, rules: FreshnessRules
) -> tuple[Freshness, RefreshMode]:
    """The freshness and mode of a table that is declared again: what is declared as before stays, whatever the rules are now."""
    declared_before = None if old.default_freshness else old.freshness
    if (freshness, logical) == (declared_before, old.logical_mode):
        return old.freshness, old.refresh_mode
    return pick_mode(freshness, logical, rules)


def validate(plan: Plan) -> None:
    """Raise InvalidInputError or UnsupportedError for a plan that cannot be carried out."""
    if plan.changes_query:
        check_columns(plan.old.fields, plan.new.fields)
    for change in plan.changes:
        match change:
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
    """Raise InvalidInputError unless the columns of a query are those of the table, with others behind them."""
    if len(derived) < len(original):
        raise InvalidInputError(
            "Failed to modify query because drop column is unsupported. When modifying a query, you can only append new columns at "
            f"the end of original schema. The original schema has {len(original)} columns, but the newly derived schema from the "
            f"query has {len(derived)} columns.\n{_WAY_OUT}",
            kind="materialized-columns",
        )
    for place, (before, after) in enumerate(zip(original, derived, strict=False)):
        if before.name != after.name or not _same_type(before.type, after.type):
            raise InvalidInputError(
                "When modifying the query of a materialized table, currently only support appending columns at the end of original "
                "schema, dropping, renaming, and reordering columns are not supported.\n"
                f"Column mismatch at position {place}: Original column is [{_column(before)}], but new column is "
                f"[{_column(after)}].\n{_WAY_OUT}",
                kind="materialized-columns",
            )


def check_declared(definition: MaterializedTable) -> None:
    """Raise InvalidInputError for keys, partitions and options that do not fit the columns of the query."""
    by_name = {one.name: one for one in definition.fields}
    there = ", ".join(by_name)
    for name in definition.partition_by:
        if name not in by_name:
            raise InvalidInputError(
                f"Partition column '{name}' not defined in the query's schema. Available columns: [{there}].", kind="unknown-column"
            )
    for name in definition.primary_key:
        if name not in by_name:
            raise InvalidInputError(
                f"Primary key column '{name}' not defined in the query schema. Available columns: [{there}].", kind="unknown-column"
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
    """Whether a type is CHAR, VARCHAR or STRING."""
    return type_to_sql(with_nullable(data_type, True)).startswith(("CHAR", "VARCHAR", "STRING"))


def _options(old: Mapping[str, str], new: Mapping[str, str]) -> ModifyOptions:
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    return ModifyOptions(set=changed, reset=tuple(sorted(key for key in old if key not in new)))


def _same_type(before: DataType, after: DataType) -> bool:
    return _type(before) == _type(after)


def _column(one: Field) -> str:
    return f"{quote_identifier(one.name)} {_type(one.type)}"


def _type(data_type: DataType) -> str:
    """As the messages of Flink have it: ``DECIMAL(10,2)``; whether it may be NULL does not count."""
    return _AFTER_COMMA.sub(",", type_to_sql(with_nullable(data_type, True)))


def _names(names: tuple[str, ...]) -> str:
    return f"({', '.join(names)})" if names else "none"
