"""Bitmaps of several lengths are combined as Spark does: what one lacks is zeros, and bytes beyond 4096 are not read."""

import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from tablestore_duckdb import open_engine

import tablestore as ts

LENGTHS = (0, 1, 31, 32, 33, 256, 257, 4095, 4096, 4097)


@pytest.fixture
def env(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with duckdb.connect() as connection:
        chance = random.Random(3)
        rows = [(group, chance.randbytes(chance.choice(LENGTHS))) for group in range(6) for _ in range(8)]
        rows += [(group, chance.randbytes(length)) for group, length in enumerate(LENGTHS, 10)]
        connection.execute("CREATE TABLE bitmaps (g INT, bin BLOB)")
        connection.executemany("INSERT INTO bitmaps VALUES (?, ?)", [*rows, (0, None), (99, None)])
        with ts.TableEnvironment.create(warehouse=str(tmp_path), engine=open_engine(connection)) as env:
            yield env


def _filled(bitmap: bytes) -> int:
    return int.from_bytes(bitmap[:4096].ljust(4096, b"\0"), "big")


def test_bitmaps_of_any_lengths_are_combined(env: ts.TableEnvironment) -> None:
    text = "SELECT g, collect_list(bin) AS all, bitmap_and_agg(bin) AS common, bitmap_or_agg(bin) AS united FROM bitmaps GROUP BY g"
    for row in env.execute_sql(text).to_arrow().to_pylist():
        common, united = (1 << 8 * 4096) - 1, 0
        for bitmap in row["all"] or ():
            common, united = common & _filled(bitmap), united | _filled(bitmap)
        assert (row["common"], row["united"]) == (common.to_bytes(4096, "big"), united.to_bytes(4096, "big")), row["g"]


def test_a_bitmap_of_places_has_the_lowest_bit_of_a_byte_first(env: ts.TableEnvironment) -> None:
    calls = "bitmap_construct_agg(p) AS b, bitmap_construct_agg(p) FILTER (WHERE p > 40000) AS none"
    text = f"SELECT {calls} FROM VALUES (0L), (3L), (9L), (32767L), (CAST(NULL AS BIGINT)) AS t (p)"
    (row,) = env.execute_sql(text).to_arrow().to_pylist()
    assert row["b"] == b"\x09\x02" + bytes(4093) + b"\x80"
    assert row["none"] == bytes(4096)


@pytest.mark.parametrize("place", [-1, 32768])
def test_a_place_beyond_a_bitmap_is_refused(place: int, env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.UnsupportedError, match="beyond 32767"):
        env.execute_sql(f"SELECT bitmap_construct_agg({place}) FROM bitmaps").to_arrow()
