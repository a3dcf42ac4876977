"""A column whose type was changed: files of the old type read as the Java core reads them, or are refused by name.

Where Java itself is wrong (dates and times of timestamps before 1970, rounded the wrong way) it is not followed.
"""

import random
from pathlib import Path

import pytest
from canonical import comparable
from oracles import JavaOracle, OracleError
from ours import Ours
from random_tables import ATOMIC_TYPES, number_fields, random_rows

import tablestore as ts

pytestmark = pytest.mark.interop

LOSSY_FLOAT = "a whole number that the floating-point type cannot hold exactly is an error; Java takes the nearest"
FLOOR = "instants before 1970 are cut towards 1970; Java cuts downwards"
SECONDS = "a timestamp of precision 0 keeps its milliseconds"
EPOCH = "Java counts seconds; we take the stored ticks"
TEXT = "Java writes -Infinity, 0.0 and no zone; we write -inf, 0 and Z"
LENGTH = "Java cuts and pads to the length of the new type"

CHANGES = [
    ("TINYINT", "SMALLINT", None),
    ("SMALLINT", "INT", None),
    ("INT", "BIGINT", None),
    ("INT", "DOUBLE", None),
    ("INT", "STRING", None),
    ("TINYINT", "DECIMAL(9, 0)", None),
    ("FLOAT", "DOUBLE", None),
    ("DECIMAL(5, 2)", "DECIMAL(19, 6)", None),
    ("DECIMAL(5, 2)", "STRING", None),
    ("VARCHAR(20)", "STRING", None),
    ("CHAR(8)", "STRING", None),
    ("VARBINARY(12)", "BYTES", None),
    ("DATE", "TIMESTAMP(6)", None),
    ("TIMESTAMP(3)", "TIMESTAMP(6)", None),
    ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE", None),
    ("BIGINT", "DOUBLE", LOSSY_FLOAT),
    ("INT", "FLOAT", LOSSY_FLOAT),
    ("TIMESTAMP(6)", "TIMESTAMP(3)", FLOOR),
    ("TIMESTAMP(9)", "TIMESTAMP(6)", FLOOR),
    ("TIMESTAMP(3)", "TIMESTAMP(0)", SECONDS),
    ("TIMESTAMP(6)", "BIGINT", EPOCH),
    ("DOUBLE", "STRING", TEXT),
    ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "STRING", TEXT),
    ("BYTES", "VARBINARY(12)", LENGTH),
    ("DECIMAL(19, 6)", "VARCHAR(20)", LENGTH),
]


@pytest.mark.parametrize(
    ("old", "new"),
    [pytest.param(old, new, marks=[pytest.mark.xfail(reason=why)] if why else []) for old, new, why in CHANGES],
)
def test_a_changed_type_reads_as_java_reads_it(java: JavaOracle, warehouse: Path, old: str, new: str) -> None:
    path = warehouse / "db.db" / "changed"
    columns = number_fields([{"name": "id", "type": "INT"}, {"name": "c", "type": old}])
    java.create(path, columns)
    rows = [{**row, "id": i} for i, row in enumerate(random_rows(random.Random(f"{old} {new}"), columns, 30))]
    java.write(path, rows)
    java.alter(path, {"action": "widen", "column": "c", "type": new})
    assert comparable(Ours().read(path)) == comparable(java.read(path))
    assert comparable(Ours().read(path, snapshot=1)) == comparable(rows)


@pytest.mark.slow
@pytest.mark.xfail(reason="see CHANGES: some changes of type give other values than Java's, silently", strict=False)
@pytest.mark.parametrize("old", ATOMIC_TYPES)
def test_any_change_that_java_allows_is_read_alike_or_refused(java: JavaOracle, warehouse: Path, old: str) -> None:
    different = []
    columns = number_fields([{"name": "id", "type": "INT"}, {"name": "c", "type": old}])
    rows = [{**row, "id": i} for i, row in enumerate(random_rows(random.Random(old), columns, 20))]
    for number, new in enumerate(kind for kind in ATOMIC_TYPES if kind != old):
        path = warehouse / "db.db" / f"changed{number}"
        java.create(path, columns)
        java.write(path, rows)
        try:
            java.alter(path, {"action": "widen", "column": "c", "type": new})
            theirs = comparable(java.read(path))
        except OracleError:
            continue  # Java does not allow it, or cannot read it itself.
        try:
            if comparable(Ours().read(path)) != theirs:
                different.append(new)
        except ts.UnsupportedError:
            continue
    assert not different
