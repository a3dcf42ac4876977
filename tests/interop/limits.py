"""What released readers cannot do, in one place, so that a comparison is weakened by name and never just left out.

| who           | limit                                                                  | shown in           |
|---------------|------------------------------------------------------------------------|--------------------|
| pypaimon-pure | reading drops nanoseconds below a microsecond where it merges rows       | oracles_agree      |
| pypaimon-pure | an equality filter finds nothing where statistics hold NaN (Java's do)   | oracles_agree      |
| pypaimon-pure | writes delete counts of 0: all released readers bring deleted rows back  | oracles_agree      |
| pypaimon      | no MULTISET, no compaction, no expiry; row kinds only from a column      | oracles_agree      |
| pypaimon      | cannot open tables of Java 0.9 (no _VALUE_STATS_COLS in manifests)       | golden_tables      |
| pypaimon      | equality filters on TIMESTAMP(7-9) do not find what is below a microsecond | here: can_filter   |
| pypaimon      | cuts TIMESTAMP(7-9) keys in _MIN_KEY and _MAX_KEY to microseconds         | here               |
| java 1.4.2    | misreads TIMESTAMP(7-9) stored as 64-bit nanoseconds, as pypaimon does   | oracles_agree      |
| java 1.4.2    | compares statistics of BYTES as signed bytes, so a filter drops files     | oracles_agree      |
|               | whose statistics have bounds (its own have none; ours must not either)   |                    |
| java 1.4.2    | an equality filter on DECIMAL(19-38) finds nothing in dictionary pages    | we_write_they_read |
|               | (its own files have none there; ours must not either)                    |                    |
"""

import re
from collections.abc import Iterable

from canonical import Row, comparable

_BELOW_MICROSECOND = re.compile(r'(T\d\d:\d\d:\d\d\.\d{6})\d{3}(?=Z?")')


def seen_by(reader_name: str, rows: Iterable[Row]) -> list[str]:
    """The rows, comparable, as far as this reader can tell them apart; used on what it read and on what it should."""
    texts = comparable(rows)
    if reader_name == "pypaimon-pure":
        return sorted(_BELOW_MICROSECOND.sub(r"\1", text) for text in texts)
    return texts


def has_nanoseconds(paimon_type: object) -> bool:
    """Whether a type is a timestamp finer than microseconds: pypaimon and Java do not understand each other on it."""
    return isinstance(paimon_type, str) and re.match(r"TIMESTAMP\([789]\)", paimon_type) is not None


def can_filter(reader_name: str, paimon_type: object) -> bool:
    """Whether a reader can be asked for equality on a column of this type."""
    return not (reader_name.startswith("pypaimon") and has_nanoseconds(paimon_type))
