"""The calendar and the clock by which ORC files count, which Arrow's reader does not tell."""

from datetime import UTC, date, datetime
from io import BytesIO

import pyarrow as pa
import pytest
from pyarrow import orc

import tablestore as ts
from tablestore.format.datafiles.orccalendar import days_of_file, days_of_table
from tablestore.format.datafiles.orczone import orc_clock

# Dates, and the days for which Spark 4.3 stores them.
STORED = {"0001-01-01": -719_164, "1000-02-28": -354_222, "1582-10-04": -141_428, "1582-10-15": -141_427, "1600-01-01": -135_140}


def test_days_before_the_calendar_of_today_are_those_of_java() -> None:
    dates = pa.array([None, *map(date.fromisoformat, STORED)])
    stored = days_of_file(dates)
    assert stored.cast(pa.int32()).to_pylist() == [None, *STORED.values()]
    assert days_of_table(stored).equals(dates)
    every = pa.array(range(-800_000, -141_437), pa.int32()).cast(pa.date32())
    assert days_of_table(days_of_file(every)).equals(every)
    inside = pa.array(
        [[("k", {"d": [date(1, 1, 1), None]})], None, []], pa.map_(pa.string(), pa.struct([("d", pa.list_(pa.date32()))]))
    )
    assert days_of_table(days_of_file(inside)).equals(inside) and not days_of_file(inside).equals(inside)
    with pytest.raises(ts.InvalidInputError, match="leaves out"):
        days_of_file(pa.array([date(1582, 10, 10)]))


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "zstd"])
def test_the_clock_of_a_file_is_read_from_its_end(compression: str) -> None:
    file = BytesIO()
    rows = pa.table({"at": pa.array([datetime(2024, 7, 1, tzinfo=UTC)] * 100_000, pa.timestamp("ns", "UTC")), "n": range(100_000)})
    orc.write_table(rows, file, compression=compression, stripe_size=64 << 10)
    clock = orc_clock(file, "a.orc")
    assert clock.zones == {"GMT"} and not clock.is_proleptic
    for damaged in (b"", b"ORC", file.getvalue()[:-40], file.getvalue()[:-1] + b"\xff"):
        with pytest.raises(ts.FormatError, match=r"a\.orc: expected a readable ORC file"):
            orc_clock(BytesIO(damaged), "a.orc")
