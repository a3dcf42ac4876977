"""Shows of a table what the rules of its catalog service let one caller see: some of its rows, and masks in place of columns.

    rows of the files ── condition of the rules, and of the caller over columns as they are ──> rows
                      ── masks in place of columns ── the caller's whole condition ──> columns

A condition of the caller over a masked column sees the mask: it is never put to stored values, to statistics or to partitions. The
rules are written in names of the table as it is now. A column of an older snapshot, or of a stream that began earlier, is the one
of the same id; one that the table no longer has is not shown, because no rule can name it. A rule whose columns a snapshot lacks
lets nothing of it through. Every other doubt is an error too.

This is the one place where rules are carried out: :class:`~tablestore.store.scan.splitreader.SplitReader` and
:class:`~tablestore.store.changes.changefeed.ChangeFeed` put it to their rows unless they are told that nobody sees them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tablestore.errors import TablestoreError, UnsupportedError
from tablestore.io.service.tablerules import TableRules, parse_rules
from tablestore.store.rulejson import decode_filter, decode_mask
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import Field, with_nullable
from tablestore.types.expression.coercion import cast_to
from tablestore.types.expression.evaluate import ColumnValues, evaluate_expression
from tablestore.types.expression.expression import Expression, columns_of, renamed_columns
from tablestore.types.filter.filters import parse_filter
from tablestore.types.filter.predicate import Predicate, all_of, keep_only, renamed
from tablestore.types.filter.predicate import columns as filter_columns
from tablestore.types.schema import TableSchema

KIND = "query-rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRules:
    """The rules of a table for one caller, as a service has told them; they travel with what is read.

    ``schema_id``: the schema whose names they are in.
    """

    texts: TableRules = ((), ())
    schema_id: int = 0

    @property
    def is_empty(self) -> bool:
        """True if the caller sees all of the table."""
        return self.texts == ((), ())

    def to_json(self) -> dict[str, object]:
        """The rules as a task holds them."""
        filters, masks = self.texts
        return {"filter": list(filters), "columnMasking": dict(masks), "schema": self.schema_id}

    @classmethod
    def from_json(cls, value: object) -> "ReadRules | None":
        """Parses what :meth:`to_json` gave; None for None. Raises FormatError."""
        if value is None:
            return None
        texts = parse_rules(value, "a task")
        schema_id = value.get("schema") if isinstance(value, Mapping) else None
        return cls(texts=texts, schema_id=schema_id if isinstance(schema_id, int) else 0)


def rules_to_json(rules: ReadRules | None) -> dict[str, object] | None:
    """The rules of a read as a task holds them; None where nobody was asked."""
    return None if rules is None else rules.to_json()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowView:
    """The rules of a table, in the names of one of its schemas.

    ``condition``: of the rows that are there for the caller, None for all. ``masks``: the value that stands in for a column.
    ``unknown``: columns that are not shown.
    """

    where: str
    condition: Predicate | None
    masks: Mapping[str, Expression]
    unknown: frozenset[str]

    def check(self, names: Iterable[str]) -> None:
        """Raise UnsupportedError for a column that is not shown."""
        if hidden := sorted(self.unknown.intersection(names)):
            raise UnsupportedError(
                f"{self.where} is read under rules of its catalog service, which know nothing of its former column {hidden[0]!r}; "
                "name the columns that it has now",
                kind=KIND,
            )

    def stored_condition(self, predicate: Predicate | None) -> Predicate | None:
        """A condition on stored values that every row fulfils which is shown and passes ``predicate``."""
        plain = keep_only(predicate, filter_columns(predicate) - self.masks.keys())
        parts = [part for part in (self.condition, plain) if part is not None]
        return all_of(parts) if parts else None

    def shown_condition(self, predicate: Predicate | None) -> Predicate | None:
        """The condition that is still to be put to shown values; None if the stored ones have said it all."""
        return predicate if filter_columns(predicate) & self.masks.keys() else None

    def exact_condition(self, predicate: Predicate | None, what: str) -> Predicate | None:
        """The condition on stored values that is fulfilled by what is shown and passes ``predicate``, and by nothing else.

        Raises UnsupportedError for one over a masked column.
        """
        if masked := sorted(filter_columns(predicate) & self.masks.keys()):
            raise UnsupportedError(
                f"{self.where}: a filter of {what} names {masked[0]!r}, which is masked for you; leave it out, and filter what "
                "comes",
                kind=KIND,
            )
        return self.stored_condition(predicate)

    def inputs(self, names: Collection[str]) -> frozenset[str]:
        """The columns that are read to show these: masks may be made of others."""
        of_masks = (columns_of(self.masks[name]) for name in names if name in self.masks)
        return frozenset(names).difference(self.masks).union(column.name for columns in of_masks for column in columns)

    def shown(self, batch: pa.RecordBatch, names: Sequence[str], fields: Mapping[str, Field]) -> pa.RecordBatch:
        """The batch with masks in place of these of its columns, which need not be in it. ``fields``: the table's columns."""
        masked = {name: self._masked(batch, fields[name]) for name in names if name in self.masks}
        kept = [name for name in batch.schema.names if name not in masked]
        schema = pa.schema(
            [
                *(batch.schema.field(name) for name in kept),
                *(pa.field(name, column.type) for name, column in masked.items()),
            ]
        )
        if not schema.names:
            return batch
        return pa.RecordBatch.from_arrays([*(batch.column(name) for name in kept), *masked.values()], schema=schema)

    def _masked(self, batch: pa.RecordBatch, field: Field) -> pa.Array:
        rows = ColumnValues(batch.num_rows, lambda column: batch.column(column.name))
        values = evaluate_expression(self.masks[field.name], rows)
        target = to_arrow_type(field.type)
        if pa.types.is_null(values.type):
            return pa.nulls(batch.num_rows, target)
        return values if values.type == target else cast_to(values, field.type)

    def fields(self, fields: Sequence[Field]) -> tuple[Field, ...]:
        """The columns as they are shown: a mask may be NULL."""
        return tuple(
            replace(field, type=with_nullable(field.type, True)) if field.name in self.masks else field for field in fields
        )

    def arrow_fields(self, fields: Sequence[pa.Field]) -> list[pa.Field]:
        """The same of Arrow."""
        return [field.with_nullable(True) if field.name in self.masks else field for field in fields]


def stored_condition(view: RowView | None, predicate: Predicate | None) -> Predicate | None:
    """The condition by which files are chosen: one on stored values, also where some are masked."""
    return predicate if view is None else view.stored_condition(predicate)


def shown_fields(view: RowView | None, fields: Sequence[Field]) -> tuple[Field, ...]:
    """The columns as they are shown. Raises UnsupportedError for one that is not."""
    if view is None:
        return tuple(fields)
    view.check(field.name for field in fields)
    return view.fields(fields)


def view_of(rules: ReadRules, ruled: TableSchema, read: TableSchema, where: str) -> RowView:
    """The rules, which are in the names of the schema ``ruled``, in the names of the schema that is read.

    Raises FormatError, InvalidInputError, UnsupportedError for rules that cannot be carried out.
    """
    filters, masks = rules.texts
    try:
        condition = all_of(decode_filter(text, ruled.fields) for text in filters) if filters else None
        decoded = {name: decode_mask(text, name, ruled.fields) for name, text in masks}
    except TablestoreError as error:
        raise type(error)(f"{where}: {error.message}", kind=error.kind) from error
    names_then = {field.id: field.name for field in read.fields}
    then = {field.name: names_then[field.id] for field in ruled.fields if field.id in names_then}
    known_ids = {field.id for field in ruled.fields}
    # A mask of a column that was not there yet hides nothing.
    decoded = {name: mask for name, mask in decoded.items() if name in then}
    needed = filter_columns(condition).union(column.name for mask in decoded.values() for column in columns_of(mask))
    if missing := sorted(needed - then.keys()):
        raise UnsupportedError(
            f"{where} is read under rules of its catalog service over the column {missing[0]!r}, which it did not have then; "
            "read a snapshot since it has it",
            kind=KIND,
        )
    return RowView(
        where=where,
        condition=None if condition is None else parse_filter(renamed(condition, then), read.fields),
        masks={then[name]: renamed_columns(mask, then) for name, mask in decoded.items()},
        unknown=frozenset(field.name for field in read.fields if field.id not in known_ids),
    )
