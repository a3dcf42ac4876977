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

# Engines disagree on what the values become, so these are refused by name.
REFUSED = ts.UnsupportedError

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
    ("BIGINT", "DOUBLE", None),
    ("INT", "FLOAT", None),
    ("TIMESTAMP(6)", "TIMESTAMP(3)", None),
    ("TIMESTAMP(9)", "TIMESTAMP(6)", None),
    ("TIMESTAMP(3)", "TIMESTAMP(0)", REFUSED),
    ("TIMESTAMP(6)", "BIGINT", REFUSED),
    ("DOUBLE", "STRING", REFUSED),
    ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "STRING", REFUSED),
    ("BYTES", "VARBINARY(12)", REFUSED),
    ("DECIMAL(19, 6)", "VARCHAR(20)", REFUSED),
]


@pytest.mark.parametrize(("old", "new", "refusal"), CHANGES)
def test_a_changed_type_reads_as_java_reads_it_or_is_refused(
    java: JavaOracle, warehouse: Path, old: str, new: str, refusal: type[Exception] | None
) -> None:
    path = warehouse / "db.db" / "changed"
    columns = number_fields([{"name": "id", "type": "INT"}, {"name": "c", "type": old}])
    java.create(path, columns)
    rows = [{**row, "id": i} for i, row in enumerate(random_rows(random.Random(f"{old} {new}"), columns, 30))]
    java.write(path, rows)
    java.alter(path, {"action": "widen", "column": "c", "type": new})
    if refusal:
        with pytest.raises(refusal, match=r"engines disagree|made the column narrower"):
            Ours().read(path)
    else:
        assert comparable(Ours().read(path)) == comparable(java.read(path))
    assert comparable(Ours().read(path, snapshot=1)) == comparable(rows)


@pytest.mark.slow
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
