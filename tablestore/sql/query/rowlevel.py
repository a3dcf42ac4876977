"""Describes queries whose rows are changes of a table: the names in them, what is asked of them, and the query itself.

Its rows have ``_row_kind`` (``+I``, ``+U`` with the new row, ``-D`` with the old one), all columns of the target in order, and what
:class:`TargetTable` asks for besides. The tables that a statement changes and reads stand in it under names of our own:

    ``_tablestore_target``    the table that is changed
    ``_tablestore_source``    the source of a MERGE, which is a query of its own
    ``_tablestore_pairs``     rows of both, side by side: see :mod:`tablestore.sql.writing.mergerows`

The queries are made in :mod:`tablestore.sql.writing`.
"""

from dataclasses import dataclass

from tablestore.sql.freshnames import fresh_name
from tablestore.sql.query.querytext import Piece, origin_of
from tablestore.sql.source import Span
from tablestore.types.datatypes import Field

TARGET, SOURCE = "_tablestore_target", "_tablestore_source"
PAIRS = "_tablestore_pairs"
ROW_KIND = "_row_kind"
POSITIONS = {"_data_file": "STRING", "_row_position": "BIGINT"}
BEFORE = "_row_before"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTable:
    """The table that is changed. ``positions``: rows have the place of the old row; ``before``: columns of it that a ``+U`` has (a
    struct).

    ``replaces``: a row takes the place of the one that has its key, whatever that holds. ``taken``: the names of columns of what
    else is read, and texts with such names.
    """

    fields: tuple[Field, ...]
    keys: tuple[str, ...] = ()
    positions: bool = False
    before: tuple[str, ...] = ()
    replaces: bool = False
    taken: tuple[str, ...] = ()

    def fresh(self, name: str, statement: str) -> str:
        """A name for a column or a relation of our own, which nothing is called in what the statement reads and says."""
        return fresh_name(name, statement, *self.taken, *(field.name for field in self.fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowQuery:
    """A query whose rows are changes. ``sets``: columns that its updates assign; ``inserts``, ``deletes``: it may yield such rows.

    ``source``: that of a MERGE. ``equal``: columns of target and source, without regard to case; of the target only rows count that
    have the values of a row of the source there. ``paired``: the same rows by a query over pairs of both, where there is one.
    ``new_keys``: no row of the target has the key of a row that it inserts.
    """

    text: str
    pieces: tuple[Piece, ...] = ()
    sets: tuple[str, ...] = ()
    inserts: bool = False
    deletes: bool = False
    source: "RowQuery | None" = None
    equal: tuple[tuple[str, str], ...] = ()
    paired: "RowQuery | None" = None
    new_keys: bool = False

    def place(self, span: Span) -> Span | None:
        """The place in the statement that a place of ``text`` came from, None if it is not the user's."""
        return origin_of(self.pieces, span)
