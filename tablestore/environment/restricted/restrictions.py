"""Decides which statements a restricted session runs, and holds the limits of what they take.

What reads tables and names runs: queries, EXPLAIN of a query, SHOW, DESCRIBE, and USE, which only says where names are looked up.
All else is refused, a kind of statement that nobody has thought of too: what defines or changes anything, settings, procedures,
and statements of the engine's own. Restrictions that allow changes run some of these (:mod:`.plainchanges`).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.parse.otherwords import Reach

if TYPE_CHECKING:
    from tablestore.sql.statements.anystatement import Statement

# Kinds of statements by the names of their classes, so that a query loads no other.
_READING = frozenset({"Query", "UseNames", "DescribeHistory"})
_SHOWN = frozenset({
    "CATALOGS", "DATABASES", "TABLES", "VIEWS", "FUNCTIONS", "COLUMNS", "PARTITIONS", "SNAPSHOTS", "TAGS", "BRANCHES",
    "PROCEDURES", "MATERIALIZED_TABLES", "CREATE_TABLE", "CREATE_MATERIALIZED_TABLE", "CREATE_VIEW", "CURRENT_CATALOG",
    "CURRENT_DATABASE",
})  # fmt: skip
# The least value of each that is as much as no limit.
_ENDLESS = {
    "time_s": 1_000_000,
    "rows": 2**62,
    "memory_bytes": 2**60,
    "threads": 65_536,
    "characters": 100_000_000,
    "words": 100_000_000,
}
_MOST_COMPUTED = 5
_DESCRIBED = frozenset({"table", "database"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Restrictions:
    """The limits of each query of a restricted environment.

    ``time_s``: seconds from its begin to its last row, those in which the reader rests too. ``rows``: of its result.
    ``memory_bytes``: of DuckDB and of the result, with four times as much on disk; None: 1 GiB on DuckDB. ``threads``: of DuckDB;
    None: one for each core. Memory and threads of Spark are its session's: numbers for them are refused there. ``characters``: of
    its text. ``words``: those, numbers and signs of it, which are read and translated before the time counts: some seconds for as
    many as there may be by default. ``changes``: rows and tables of its catalogs may be changed too, by statements that name no
    place outside; the limit of rows is that of results.
    """

    time_s: float = 60.0
    rows: int = 1_000_000
    memory_bytes: int | None = None
    threads: int | None = None
    characters: int = 1_000_000
    words: int = 20_000
    changes: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.changes, bool):
            raise InvalidInputError(
                f"Restrictions: expected True or False as changes, found {self.changes!r:.80}", kind="invalid-option"
            )
        for name in _ENDLESS:
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float)) and 0 < value < _ENDLESS[name]):
                raise InvalidInputError(
                    f"Restrictions: expected a number above 0 and below {_ENDLESS[name]:,} as {name}, found {value!r:.80}",
                    kind="invalid-option",
                )

    @property
    def reach(self) -> Reach:
        """The statements that its session runs, for the hints in messages."""
        return Reach.CHANGES if self.changes else Reach.READS

    def check_text(self, text: str) -> None:
        """Raises UnsupportedError of kind ``limit-exceeded`` for a text that is too long to be read."""
        if len(text) > self.characters:
            raise _exceeded(f"characters = {self.characters:,}", f"{len(text):,}")

    def check_words(self, number: int) -> None:
        """Raises UnsupportedError of kind ``limit-exceeded`` for a text of so many words, numbers and signs."""
        if number > self.words:
            raise _exceeded(f"words = {self.words:,} (with numbers and signs)", f"{number:,}")

    def check_values(self, number: int) -> None:
        """Raises UnsupportedError of kind ``limit-exceeded`` where a text has computed so many snapshots: each has its time."""
        if number >= _MOST_COMPUTED:
            raise UnsupportedError(
                f"a text of a restricted environment computes at most {_MOST_COMPUTED} values of VERSION AS OF, TIMESTAMP AS OF "
                "and table_changes; write them as numbers, texts or parameters",
                kind="limit-exceeded",
            )

    def check(self, statement: "Statement") -> None:
        """Raises UnsupportedError of kind ``restricted`` for a statement that does not run here."""
        refusal, runs = _refused(statement), "queries, EXPLAIN of a query, SHOW, DESCRIBE and USE"
        if refusal is not None and self.changes:
            # What only reads does not load it.
            from tablestore.environment.restricted.plainchanges import refused_change

            refusal, runs = refused_change(statement), f"{runs}, and plain changes of rows, columns, tables and databases"
        if refusal is not None:
            raise UnsupportedError(f"{refusal} is not run in a restricted environment: it runs {runs}", kind="restricted")


def _exceeded(limit: str, actual: str) -> UnsupportedError:
    return UnsupportedError(
        f"the text is over the limit {limit} of its environment, found {actual}; ask in parts, or read long lists from a table",
        kind="limit-exceeded",
    )


def _refused(statement: object) -> str | None:
    """The kind of a statement, in words, if it does not run; None if it does."""
    kind = type(statement).__name__
    if kind in _READING:
        return None
    if kind == "Explain":
        inner = getattr(statement, "statement", None)
        return None if type(inner).__name__ == "Query" else f"EXPLAIN of a statement of the kind {type(inner).__name__}"
    if kind == "Show":
        shown = getattr(statement, "kind", None)
        name = getattr(shown, "name", "")
        # Without a table they are those of the session, which say how it was set up.
        is_shown = name in _SHOWN or (name == "OPTIONS" and getattr(statement, "path", None) is not None)
        return None if is_shown else f"SHOW {getattr(shown, 'value', '')}"
    if kind == "Describe":
        described = getattr(statement, "what", "")
        return None if described in _DESCRIBED else f"DESCRIBE {str(described).upper()}"
    return f"a statement of the kind {kind}"
