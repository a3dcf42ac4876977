"""Gives the constraints of an open table, and looks for rows of a snapshot that violate one, as readers see them.

Files whose statistics rule out such a row are not read. Memory: that of a read, a batch after the other.
"""

from tablestore.errors import InvalidInputError
from tablestore.format.snapshot import Snapshot
from tablestore.store.context import TableContext
from tablestore.store.scan.scanplan import plan_scan
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.tableconstraints import telling_columns
from tablestore.types.filter.constraints import CONSTRAINT, Constraint, parse_constraints, shown_values
from tablestore.types.schema import POSTPONE_BUCKET


def constraints_of(context: TableContext) -> tuple[Constraint, ...]:
    """The constraints of a table. Raises InvalidInputError, UnsupportedError for one that another program has put there wrong."""
    return context.once(_parsed)


def _parsed(context: TableContext) -> tuple[Constraint, ...]:
    return parse_constraints(context.schema.options, context.schema.fields)


def check_rows(context: TableContext, snapshot: Snapshot | None, constraint: Constraint) -> None:
    """Raise InvalidInputError of kind ``constraint`` if a row of the snapshot violates a constraint, or may once a compaction shows
    it."""
    context.check_sees_all("a new constraint")
    where = f"table {context.files.root_uri}"
    if _hides_rows(context, snapshot):
        raise InvalidInputError(
            f"{where} has rows that its readers see only after a compaction, which the {constraint}, has to be compared with: run "
            "table.compact(full=True), and repeat",
            kind=CONSTRAINT,
        )
    names = tuple(dict.fromkeys((*telling_columns(context.schema), *constraint.columns)))
    reader = SplitReader.of(context, names, constraint.violation)
    with context.reading():
        for split in plan_scan(context, snapshot, constraint.violation).splits:
            try:
                rows = next((batch for batch in reader.read(split) if batch.num_rows), None)
            except InvalidInputError as error:
                raise InvalidInputError(
                    f"{where}: {constraint} cannot be computed of its rows: {error.message}", kind=CONSTRAINT
                ) from error
            if rows is not None:
                raise InvalidInputError(
                    f"{where}: the row with {shown_values(rows, 0, names)} violates the {constraint}. Correct or delete such rows "
                    f"before: their condition is NOT ({constraint.text:.200})",
                    kind=CONSTRAINT,
                )


def _hides_rows(context: TableContext, snapshot: Snapshot | None) -> bool:
    settings = context.settings
    if snapshot is None or not (settings.postpones or settings.skips_level_zero):
        return False
    files = context.manifests.live_columns(snapshot, ("bucket", "level"))
    hidden = files.numbers("bucket") == POSTPONE_BUCKET
    if settings.skips_level_zero:
        hidden |= files.numbers("level") == 0
    return bool(hidden.any())
