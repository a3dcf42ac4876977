"""Rows as text: what Arrow's kernels make of whole columns is what Python's own encoder makes of each value."""

import base64
import json
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore.cli.rows import rowtext
from tablestore.cli.rows.rowtext import slices, to_csv_columns, to_json_lines, to_plain_lines
from tablestore.cli.text.safetext import UNSAFE, safe, safe_lines
from tablestore.errors import InvalidInputError
from tablestore.units import human_age, human_bytes, iso_time, parse_time


def parsed(batch: pa.RecordBatch) -> list[Any]:
    lines = bytes(to_json_lines(batch)).decode()
    assert lines.count("\n") == batch.num_rows
    return [json.loads(line) for line in lines.splitlines()]


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


@given(st.lists(st.none() | TEXTS, max_size=8), TEXTS)
def test_any_text_is_the_same_after_json(values: list[str | None], name: str) -> None:
    batch = pa.record_batch([pa.array(values, pa.string())], names=[name])
    # Every line is one line, whatever line breaks a text holds.
    assert parsed(batch) == [{name: value} for value in values]


@given(st.lists(st.none() | st.binary(max_size=12), max_size=8), st.integers(0, 3))
def test_any_bytes_are_base64(values: list[bytes | None], skipped: int) -> None:
    batch = pa.record_batch({"b": pa.array(values, pa.binary())}).slice(skipped)
    wanted = [None if value is None else base64.b64encode(value).decode() for value in values[skipped:]]
    assert [row["b"] for row in parsed(batch)] == wanted


@given(st.lists(st.none() | st.floats(), max_size=8))
def test_any_float_is_a_number_or_its_name(values: list[float | None]) -> None:
    rows = parsed(pa.record_batch({"f": pa.array(values, pa.float64())}))
    names = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
    found = [names.get(row["f"], row["f"]) for row in rows]
    # A whole number comes without a point, and minus zero keeps its sign.
    assert [None if one is None else repr(float(one)) for one in found] == [None if one is None else repr(one) for one in values]


NESTED = pa.struct([("x", pa.list_(pa.struct([("y", pa.string())]))), ("m", pa.map_(pa.string(), pa.list_(pa.int32())))])


@given(
    st.lists(
        st.none()
        | st.fixed_dictionaries(
            {
                "x": st.none() | st.lists(st.none() | st.fixed_dictionaries({"y": st.none() | TEXTS}), max_size=3),
                "m": st.none() | st.lists(st.tuples(TEXTS, st.none() | st.lists(st.integers(-9, 9), max_size=2)), max_size=3),
            }
        ),
        max_size=5,
    ),
    st.integers(0, 2),
)
def test_any_nesting_keeps_its_shape(values: list[Any], skipped: int) -> None:
    batch = pa.record_batch({"n": pa.array(values, NESTED)}).slice(skipped)

    def plain(value: Any) -> Any:
        return None if value is None else {"x": value["x"], "m": None if value["m"] is None else dict(value["m"])}

    assert [row["n"] for row in parsed(batch)] == [plain(value) for value in values[skipped:]]


def test_rows_inside_of_maps_are_read_from_any_slice() -> None:
    kind = pa.map_(pa.string(), pa.struct([("x", pa.int64())]))
    batch = pa.record_batch({"m": pa.array([[(f"k{n}", {"x": n}), ("none", None)] for n in range(4)], kind)}).slice(1, 2)
    assert parsed(batch) == [{"m": {f"k{n}": {"x": n}, "none": None}} for n in (1, 2)]


@given(st.lists(st.none() | st.decimals(-(10**17), 10**17, places=20), max_size=6))
def test_any_decimal_keeps_its_digits_without_an_exponent(values: list[Decimal | None]) -> None:
    rows = parsed(pa.record_batch({"d": pa.array(values, pa.decimal128(38, 20))}))
    assert [row["d"] for row in rows] == [None if value is None else format(value, "f") for value in values]


def test_times_are_iso_and_those_beyond_the_calendar_are_ticks() -> None:
    batch = pa.record_batch({"t": pa.array([0, 2**62], pa.timestamp("ms")), "z": pa.array([1, None], pa.timestamp("us", "UTC"))})
    assert parsed(batch) == [
        {"t": "1970-01-01T00:00:00.000", "z": "1970-01-01T00:00:00.000001Z"},
        {"t": f"{2**62}ms", "z": None},
    ]


def test_a_plain_line_has_as_many_cells_as_columns_whatever_is_in_them() -> None:
    batch = pa.record_batch({"a": ["x\ty\nz\x1b[31m", None], "b": ["\u202e", "c"]})
    assert bytes(to_plain_lines(batch)).decode() == "x\\ty\\nz\\x1b[31m\t\\u202e\n\tc\n"


def test_no_columns_and_no_rows() -> None:
    empty = pa.record_batch({"a": pa.array([], pa.string())})
    assert bytes(to_json_lines(empty)) == b"" == bytes(to_plain_lines(empty))
    bare = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert bytes(to_json_lines(bare)) == b"{}\n{}\n"


def test_csv_keeps_numbers_and_says_the_rest_as_text() -> None:
    batch = pa.record_batch({"n": [1], "d": pa.array([Decimal("1.50")], pa.decimal128(5, 2)), "l": [[1, 2]]})
    assert to_csv_columns(batch).to_pylist() == [{"n": 1, "d": "1.50", "l": "[1,2]"}]


def test_large_batches_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.record_batch({"n": pa.array(range(20_000))})
    assert sum(piece.num_rows for piece in slices(batch)) == 20_000
    assert max(piece.num_rows for piece in slices(batch)) <= 8192
    monkeypatch.setattr(rowtext, "_SLICE_BYTES", 1000)
    wide = pa.record_batch({"t": ["x" * 100] * 20 + ["x" * 5000]})
    pieces = list(slices(wide))
    assert sum(piece.num_rows for piece in pieces) == 21 and {piece.num_rows for piece in pieces} == {1}
    assert list(slices(batch.slice(0, 0))) == []


@pytest.mark.parametrize("seed", range(3))
def test_hostile_text_is_shown_as_escapes(seed: int) -> None:
    chance = random.Random(seed)
    text = "".join(chance.choices([*UNSAFE, "a", "é", "\udc80"], k=200))
    shown = safe(text)
    assert not set(shown) & {*UNSAFE, "\udc80"}, f"seed {seed}"
    assert shown.encode()
    assert safe_lines("a\nb\x1b") == "a\nb\\x1b"


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (150 * 1024, "150 KB"), (5 << 30, "5.0 GB"), (1 << 50, "1,024 TB")],
)
def test_sizes_for_people(size: int, text: str) -> None:
    assert human_bytes(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "now"),
        (59, "59 s ago"),
        (60, "1 min ago"),
        (7200, "2 h ago"),
        (86400, "24 h ago"),
        (3 * 86400, "3 days ago"),
        (-60, "in 1 min"),
    ],
)
def test_ages_for_people(seconds: int, text: str) -> None:
    assert human_age(1_000_000_000_000 - seconds * 1000, 1_000_000_000_000) == text


def test_times_for_programs() -> None:
    assert iso_time(1769860800123) == "2026-01-31T12:00:00.123Z"
    assert parse_time("2026-01-31T12:00:00.123Z") == parse_time("1769860800123") == 1769860800123
    assert iso_time(10**18) == "1000000000000000000 ms"
    with pytest.raises(InvalidInputError, match="never"):
        parse_time("never")
