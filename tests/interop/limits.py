"""What released readers cannot do, in one place, so that a comparison is weakened by name and never just left out.

| who           | limit                                                                  | shown in           |
|---------------|------------------------------------------------------------------------|--------------------|
| pypaimon-pure | reading drops nanoseconds below a microsecond where it merges rows       | oracles_agree      |
| pypaimon-pure | an equality filter finds nothing where statistics hold NaN (Java's do)   | oracles_agree      |
| pypaimon-pure | writes delete counts of 0: all released readers bring deleted rows back  | oracles_agree      |
| pypaimon      | no MULTISET, no compaction, no expiry; row kinds only from a column      | oracles_agree      |
| pypaimon      | cannot open tables of Java 0.9 (no _VALUE_STATS_COLS in manifests)       | golden_tables      |
| java 1.4.2    | misreads TIMESTAMP(7-9) stored as 64-bit nanoseconds, as pypaimon does   | oracles_agree      |
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
