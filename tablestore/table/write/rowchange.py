"""Row changes of a statement: the form of changed rows, and the changes that each merge engine allows.

UPDATE, DELETE and MERGE are one query each, which reads one snapshot and yields a row for each row that changes:

    _row_kind                       +I a new row, +U the row as it is now, -D the row that goes
    the table's columns             all of them; in an append table those of -D do not count
    _data_file, _row_position       append tables: where the row of +U and -D lies in the snapshot (types.rowposition)
    _row_before                     of the row that +U replaces, as a struct: all with changelog-producer = input, else with
                                    sequence.field these columns

What merge engines leave of it:

    deduplicate      everything; with ignore-delete no deletes. With sequence.field an update wins over the row that it read, but
                     not with a smaller sequence, which is refused: every reader of the table would go on with the stored row
    partial-update   updates, but none to NULL, which keeps the stored value there, and none in tables with sequence groups;
                     deletes with partial-update.remove-record-on-delete or -on-sequence-group
    aggregation      no updates: the new row would be combined with the stored one; deletes with aggregation.remove-record-on-delete
    first-row        inserts only
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from tablestore.errors import InvalidInputError
from tablestore.lsm.functions.mergefunction import MergeFunction, SequenceField
from tablestore.store.changelogproducer import INPUT
from tablestore.store.context import TableContext
from tablestore.table.read.scan import check_positions
from tablestore.types.filter.predicate import Predicate, columns
from tablestore.types.schema import check_known


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """A statement: ``operation`` is UPDATE, DELETE or MERGE, ``sets`` the columns that its updates assign, none without updates.

    ``reads``: a condition that holds for every row of the table that it reads, and would for those that it looks for in vain; None:
    it reads the whole table. ``new_keys``: it has looked for the keys of the rows that it inserts, and no row has them.
    """

    operation: str
    inserts: bool = False
    deletes: bool = False
    sets: tuple[str, ...] = ()
    reads: Predicate | None = None
    new_keys: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeColumns:
    """The columns that rows which change a table have besides ``_row_kind`` and its own: ``positions`` of old rows, and
    ``before``, columns of the row that an update replaces."""

    positions: bool
    before: tuple[str, ...]

    @classmethod
    def of(cls, context: TableContext) -> "ChangeColumns":
        """The columns that this table needs."""
        before: Sequence[str] = list(map(attrgetter("name"), sequence_fields(context)))
        if context.changelog_settings.producer == INPUT:
            before = context.schema.field_names
        return cls(positions=not context.schema.is_keyed, before=tuple(before))


def check_change(context: TableContext, change: RowChange) -> None:
    """Raise InvalidInputError or UnsupportedError, which says why, if the table does not allow the change of a statement.

    Nor is it allowed where rules of a catalog service hide something from the caller: it would read, and tell of, hidden rows.
    """
    context.check_writable()
    context.check_sees_all(change.operation)
    schema, merge, where = context.schema, context.settings.merge, f"table {context.files.root_uri}"
    check_known(schema, (*change.sets, *sorted(columns(change.reads))), change.operation)
    if merge is None:
        check_positions(context)
        return
    if change.deletes:
        merge.check_removal(where, by_key=False)
    if keys := list(filter(schema.primary_keys.__contains__, change.sets)):
        raise InvalidInputError(
            f"{where}: {change.operation} sets {', '.join(keys)}, which identifies a row (primary key "
            f"{', '.join(schema.primary_keys)}); delete the row and insert it with another key",
            kind="update-key",
        )
    if change.sets and (why := _why_no_update(merge)):
        raise InvalidInputError(f"{where} does not update rows: {why}", kind="update")


def _why_no_update(merge: MergeFunction) -> str | None:
    if merge.engine == "first-row":
        return "merge-engine first-row keeps the first row of a key for ever"
    if merge.engine == "aggregation":
        return (
            "merge-engine aggregation combines a new row with the stored one and does not replace it; write what is to be "
            "combined with table.upsert(rows), or INSERT"
        )
    if merge.groups:
        ordering = ", ".join(name for group in merge.groups for name in group.fields)
        return (
            f"merge-engine partial-update decides by {ordering} (sequence groups) which value of a column counts; write rows with "
            "the columns of a group and its sequence with table.upsert(rows), or INSERT"
        )
    return None


def sequence_fields(context: TableContext) -> tuple[SequenceField, ...]:
    """The sequence fields that order the rows of one key."""
    merge = context.settings.merge
    return () if merge is None else merge.sequence_fields


def columns_that_keep(merge: MergeFunction | None, sets: Sequence[str]) -> Sequence[str]:
    """The columns that an update sets and that would keep their value if it set them to NULL."""
    return sets if merge is not None and merge.engine == "partial-update" else ()
