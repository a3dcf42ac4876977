"""Compares the rows of a table with its constraints and with rules of a file (:mod:`.expectationrules`): counts, and some rows.

    constraints, not_null, range, regex, values, condition      one read of the columns that they look at, batch by batch
    unique, foreign_key                                          reads of their columns alone, as many as the keys need

Memory: some batches, and of ``unique`` and ``foreign_key`` the keys of about :data:`KEYS_AT_ONCE` rows: where there are more, keys
are shared out by their hash, and each share is a read of its own. All reads see one snapshot of each table.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError, TablestoreError
from tablestore.format.bucket import hash_columns
from tablestore.format.snapshot import Snapshot
from tablestore.store.context import TableContext
from tablestore.store.scan.violations import constraints_of
from tablestore.table.inspect.expectationrules import Rule
from tablestore.table.read.scan import Scan
from tablestore.types.arrays import Mask, is_true, mask_array, one_chunk
from tablestore.types.datatypes import TEXT_ROOTS, AtomicType, Field, TypeRoot
from tablestore.types.filter.filters import parse_filter
from tablestore.types.filter.predicate import (
    And,
    Comparison,
    IsIn,
    IsNull,
    Not,
    Predicate,
    columns,
    evaluate,
)
from tablestore.types.typestring import type_to_sql

KEYS_AT_ONCE = 2_000_000
_MERGED_AT_ONCE = 1 << 19
_COUNT = "n"
_WHOLE = AtomicType(root=TypeRoot.BIGINT)
_INTEGERS = frozenset({TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT})

OpenTable = Callable[[str], TableContext]
"""Opens the table that a foreign key references, by its name."""


@dataclass(slots=True, kw_only=True)
class Expectation:
    """The result of a rule or constraint: how many of the ``rows`` that it is about violate it, and some of them.

    Of ``unique`` those count that have a key which another row has too, but for one of each key.
    """

    kind: str
    name: str
    columns: tuple[str, ...]
    rows: int = 0
    violations: int = 0
    samples: list[dict[str, Any]] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """True if no row violates it."""
        return not self.violations


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowRule:
    """A rule about each row by itself. ``violating``: the mask of the rows of a batch that violate it."""

    result: Expectation
    needed: frozenset[str]
    where: Predicate | None
    violating: Callable[[pa.Table], Mask]


def check_expectations(
    context: TableContext,
    rules: Sequence[Rule],
    open_table: OpenTable,
    *,
    samples: int = 5,
    keys_at_once: int = KEYS_AT_ONCE,
) -> list[Expectation]:
    """Compare the newest rows of a table with its constraints and with rules; at most ``samples`` rows of each are kept.

    Raises InvalidInputError of kind ``rules`` for rules that do not suit the table, and what reading raises.
    """
    snapshot = context.snapshots.latest()
    context = context.still_there()
    row_rules = [_of_constraint(one.name, one.predicate, one.columns) for one in constraints_of(context)]
    results = [rule.result for rule in row_rules]
    keyed: list[tuple[Rule, Expectation]] = []
    for rule in rules:
        try:
            if rule.kind in ("unique", "foreign_key"):
                names = tuple(_field(context, name).name for name in rule.columns)
                keyed.append((rule, Expectation(kind=rule.kind, name=rule.name, columns=names)))
                results.append(keyed[-1][1])
            else:
                row_rules.append(_row_rule(context, rule))
                results.append(row_rules[-1].result)
        except TablestoreError as error:
            raise InvalidInputError(f"the rule {rule.name!r:.200}: {error.message}", kind="rules") from error
    if row_rules:
        _compare_rows(context, snapshot, row_rules, samples)
    for rule, result in keyed:
        try:
            if rule.kind == "unique":
                _count_duplicates(context, snapshot, rule, result, samples, keys_at_once)
            else:
                _count_orphans(context, snapshot, rule, result, open_table, samples, keys_at_once)
        except InvalidInputError as error:
            raise InvalidInputError(f"the rule {rule.name!r:.200}: {error.message}", kind="rules") from error
    return results


# -- rows by themselves


def _compare_rows(context: TableContext, snapshot: Snapshot | None, rules: Sequence[_RowRule], samples: int) -> None:
    key = context.schema.primary_keys
    needed = frozenset(key).union(*(rule.needed for rule in rules))
    names = tuple(name for name in context.schema.field_names if name in needed) or context.schema.field_names[:1]
    for batch in Scan(context, snapshot, names, None).to_batches():
        rows = pa.Table.from_batches([batch])
        for rule in rules:
            result = rule.result
            chosen = None if rule.where is None else is_true(evaluate(rule.where, rows))
            result.rows += rows.num_rows if chosen is None else int(np.count_nonzero(chosen))
            try:
                violating = rule.violating(rows)
            except InvalidInputError as error:
                raise InvalidInputError(
                    f"the rule {result.name!r:.200} cannot be computed: {error.message}", kind="rules"
                ) from error
            places = np.flatnonzero(violating if chosen is None else violating & chosen)
            result.violations += len(places)
            if len(places) and len(result.samples) < samples:
                shown = list(dict.fromkeys((*key, *result.columns)))
                result.samples += rows.select(shown).take(pa.array(places[: samples - len(result.samples)])).to_pylist()


def _of_constraint(name: str, predicate: Predicate, names: tuple[str, ...]) -> _RowRule:
    return _RowRule(
        result=Expectation(kind="constraint", name=name, columns=names),
        needed=frozenset(names),
        where=None,
        violating=_where(Not(predicate)),
    )


def _where(predicate: Predicate) -> Callable[[pa.Table], Mask]:
    return lambda rows: is_true(evaluate(predicate, rows))


def _row_rule(context: TableContext, rule: Rule) -> _RowRule:
    fields = context.schema.fields
    where = parse_filter(rule.where, fields)
    if rule.kind == "regex":
        (name,) = rule.columns
        column = _field(context, name)
        if not isinstance(column.type, AtomicType) or column.type.root not in TEXT_ROOTS:
            raise InvalidInputError(f"regex takes a column of texts, {name!r} is {type_to_sql(column.type)}")
        named: tuple[str, ...] = (column.name,)
        violating = _not_matching(column.name, rule.settings["pattern"])
    else:
        predicate = parse_filter(rule.condition if rule.kind == "condition" else _predicate(rule), fields)
        assert predicate is not None, "there is a condition"
        violation = Not(predicate)
        names = columns(predicate)
        named, violating = tuple(one.name for one in fields if one.name in names), _where(violation)
    return _RowRule(
        result=Expectation(kind=rule.kind, name=rule.name, columns=named),
        needed=frozenset(named) | columns(where),
        where=where,
        violating=violating,
    )


def _predicate(rule: Rule) -> Predicate:
    """The condition that rows hold."""
    (name,) = rule.columns
    match rule.kind:
        case "not_null":
            return Not(IsNull(name))
        case "values":
            return IsIn(name, tuple(rule.settings["accepted"]))
        case _:
            least, most = rule.settings.get("min"), rule.settings.get("max")
            ends: list[Predicate] = [] if least is None else [Comparison(">=", name, least)]
            ends += [] if most is None else [Comparison("<=", name, most)]
            return And(tuple(ends))


def _not_matching(name: str, pattern: str) -> Callable[[pa.Table], Mask]:
    whole = rf"\A(?:{pattern})\z"

    def violating(rows: pa.Table) -> Mask:
        return is_true(pc.invert(pc.match_substring_regex(one_chunk(rows.column(name)), pattern=whole)))

    try:
        pc.match_substring_regex(pa.scalar(""), pattern=whole)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(f"expected a pattern of RE2, found {pattern!r:.100} ({error})") from error
    return violating


def _field(context: TableContext, name: str) -> Field:
    # As filters find columns, with their message.
    predicate = parse_filter(IsNull(name), context.schema.fields)
    (column,) = columns(predicate)
    return context.schema.field(column)


# -- keys


def _count_duplicates(
    context: TableContext, snapshot: Snapshot | None, rule: Rule, result: Expectation, samples: int, keys_at_once: int
) -> None:
    keys = _Keys.of(context, snapshot, result.columns, rule.where)
    for share in keys.shares(keys_at_once):
        counted: pa.Table | None = None
        for part in share:
            result.rows += part.num_rows
            counted = _counted([part] if counted is None else [counted, part])
        if counted is None:
            continue
        several = counted.filter(pc.greater(counted.column(_COUNT), 1))
        result.violations += sum(several.column(_COUNT).to_pylist()) - several.num_rows
        if several.num_rows and len(result.samples) < samples:
            shown = several.slice(0, samples - len(result.samples)).rename_columns([*result.columns, "rows"])
            result.samples += shown.to_pylist()


def _count_orphans(
    context: TableContext,
    snapshot: Snapshot | None,
    rule: Rule,
    result: Expectation,
    open_table: OpenTable,
    samples: int,
    keys_at_once: int,
) -> None:
    other = open_table(rule.settings["references"])
    there = other.snapshots.latest()
    other = other.still_there()
    names = rule.settings.get("columns", list(rule.columns))
    names = tuple(_field(other, name).name for name in ([names] if isinstance(names, str) else names))
    keys, referenced = _Keys.of(context, snapshot, result.columns, rule.where), _Keys.of(other, there, names, None)
    for own, its in zip(keys.types, referenced.types, strict=True):
        if own != its:
            raise InvalidInputError(
                f"expected columns of like types, found {', '.join(map(type_to_sql, keys.types))} and "
                f"{', '.join(map(type_to_sql, referenced.types))} in {rule.settings['references']}"
            )
    count = max(keys.share_count(keys_at_once), referenced.share_count(keys_at_once))
    for number in range(count):
        known: pa.Table | None = None
        for part in referenced.share(number, count):
            known = _counted([part] if known is None else [known, part])
        for part in keys.share(number, count):
            result.rows += part.num_rows
            names_of_keys = [name for name in part.column_names if name != _COUNT]
            rows = part.select(names_of_keys)
            orphans = (
                rows
                if known is None
                else rows.join(known.select(names_of_keys), names_of_keys, join_type="left anti", use_threads=False)
            )
            result.violations += orphans.num_rows
            if orphans.num_rows and len(result.samples) < samples:
                shown = orphans.slice(0, samples - len(result.samples)).rename_columns(list(result.columns))
                result.samples += shown.to_pylist()


def _counted(parts: Iterable[pa.Table]) -> pa.Table:
    """The distinct keys of all parts, with the number of their rows."""
    rows = pa.concat_tables(parts)
    names = [name for name in rows.column_names if name != _COUNT]
    counted = rows.group_by(names, use_threads=False).aggregate([(_COUNT, "sum")])
    return counted.select([*names, f"{_COUNT}_sum"]).rename_columns([*names, _COUNT])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    """The keys of one snapshot of a table: the columns as ``k0``, ``k1``, …, and a count of 1; none with NULL in them."""

    scan: Scan
    types: tuple[AtomicType, ...]
    where: Predicate | None

    @classmethod
    def of(cls, context: TableContext, snapshot: Snapshot | None, names: Sequence[str], where: str | None) -> "_Keys":
        types = []
        for name in names:
            kind = context.schema.field(name).type
            if not isinstance(kind, AtomicType):
                raise InvalidInputError(f"keys are no nested values: {name!r} is {type_to_sql(kind)}")
            types.append(_like(kind))
        predicate = parse_filter(where, context.schema.fields)
        return cls(scan=Scan(context, snapshot, tuple(names), predicate), types=tuple(types), where=predicate)

    def share_count(self, keys_at_once: int) -> int:
        """The number of shares of at most so many rows, as far as their hashes spread."""
        snapshot = self.scan.snapshot
        if snapshot is None:
            return 1
        rows = self.scan.count() if snapshot.total_record_count is None else snapshot.total_record_count
        return max(1, -(-rows // keys_at_once))

    def shares(self, keys_at_once: int) -> Iterator[Iterator[pa.Table]]:
        """All shares, one after the other."""
        count = self.share_count(keys_at_once)
        return (self.share(number, count) for number in range(count))

    def share(self, number: int, count: int) -> Iterator[pa.Table]:
        """The keys of one share, in parts of some hundred thousand rows."""
        pending: list[pa.Table] = []
        pending_rows = 0
        for batch in self.scan.to_batches():
            rows = self._chosen(batch, number, count)
            pending.append(rows)
            pending_rows += rows.num_rows
            if pending_rows >= _MERGED_AT_ONCE:
                yield pa.concat_tables(pending)
                pending, pending_rows = [], 0
        if pending_rows:
            yield pa.concat_tables(pending)

    def _chosen(self, batch: pa.RecordBatch, number: int, count: int) -> pa.Table:
        columns_of_key = [_comparable(batch.column(place)) for place in range(len(self.types))]
        kept = np.ones(batch.num_rows, dtype=np.bool_)
        for column in columns_of_key:
            kept &= ~is_true(pc.is_null(column))
        if count > 1 and batch.num_rows:
            kept &= hash_columns(columns_of_key, self.types).view(np.uint32) % count == number
        named: Mapping[str, Any] = {f"k{place}": column for place, column in enumerate(columns_of_key)}
        rows = pa.table({**named, _COUNT: pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows)})
        return rows if kept.all() else rows.filter(mask_array(kept))


def _like(kind: AtomicType) -> AtomicType:
    """The type as which keys are compared, whatever their width and whether they take NULL."""
    if kind.root in _INTEGERS:
        return _WHOLE
    if kind.root in TEXT_ROOTS:
        return AtomicType(root=TypeRoot.VARCHAR, length=(1 << 31) - 1)
    return AtomicType(root=kind.root, precision=kind.precision, scale=kind.scale, length=kind.length)


def _comparable(column: pa.Array) -> pa.Array:
    """Whole numbers in 64 bits; of floats one NaN and one zero."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    if pa.types.is_floating(column.type):
        plain = pc.add(column, pa.scalar(0.0, column.type))
        return pc.if_else(pc.is_nan(plain), pa.scalar(float("nan"), column.type), plain)
    return column
