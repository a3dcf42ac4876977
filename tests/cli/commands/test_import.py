"""``import``: every kind of file into every kind of table, streamed, exact, and with nothing lost silently."""

import gzip
import io
import json
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import tablestore as ts
from tablestore.cli.rows import jsonlines, rowsource
from tests.support.commandline import Ran

Run = Callable[..., Ran]

EVERY_TYPE = (
    "id BIGINT NOT NULL, t STRING, b BOOLEAN, i8 TINYINT, f FLOAT, d DOUBLE, dec DECIMAL(38, 20), raw BYTES, day DATE, "
    "tod TIME(3), ts TIMESTAMP(6), tns TIMESTAMP(9), ltz TIMESTAMP(3) WITH LOCAL TIME ZONE"
)
NESTED = "id BIGINT NOT NULL, l ARRAY<INT>, r ROW<x INT, y STRING>, m MAP<STRING, INT>, p MAP<INT, BYTES>, days ARRAY<DATE>"
ROWS = [
    {
        "id": 1,
        "t": 'a "quoted", text\nof two lines \\ 😀',
        "b": True,
        "i8": -128,
        "f": 0.5,
        "d": 1e300,
        "dec": Decimal("123456789012345678.12345678901234567891"),
        "raw": b"\x00\xff\n",
        "day": date(1969, 12, 31),
        "tod": time(23, 59, 59, 999000),
        "ts": datetime(2026, 1, 31, 12, 0, 0, 123456),
        "tns": datetime(2026, 1, 31, 12, 0, 0, 1),
        "ltz": datetime(2026, 1, 31, 12, tzinfo=UTC),
    },
    {"id": 2, "t": "", "raw": b"", "dec": Decimal("0.00000000000000000001")},
    {"id": 3},
]


def rows_of(table: ts.Table) -> list[dict[str, object]]:
    return sorted(table.refresh().scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def made(run: Run, catalog: ts.Catalog, columns: str, *more: str) -> ts.Table:
    run("table", "create", "shop.t", "--schema", columns, "--primary-key", "id", *more)
    return catalog.table("shop.t")


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_what_is_read_out_is_imported_again_exactly(run: Run, catalog: ts.Catalog, tmp_path: Path, kind: str) -> None:
    table = made(run, catalog, EVERY_TYPE)
    table.upsert(pa.Table.from_pylist(ROWS, schema=table.schema))
    path = tmp_path / f"rows.{kind}"
    run("table", "read", "shop.t", "--output", path)
    run("table", "create", "shop.again", "--schema", EVERY_TYPE, "--primary-key", "id")
    assert run("import", "shop.again", path, "--json").json["rows"] == 3
    assert rows_of(catalog.table("shop.again")) == rows_of(table)


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_nested_values_too(run: Run, catalog: ts.Catalog, tmp_path: Path, kind: str) -> None:
    table = made(run, catalog, NESTED)
    rows = [
        {
            "id": 1,
            "l": [1, None],
            "r": {"x": 1, "y": "a"},
            "m": [("k", 1), ("l", None)],
            "p": [(1, b"\x00")],
            "days": [date(2026, 1, 31)],
        },
        {"id": 2, "l": [], "r": {"x": None, "y": None}, "m": [], "p": [], "days": []},
        {"id": 3},
    ]
    table.upsert(pa.Table.from_pylist(rows, schema=table.schema))
    run("table", "read", "shop.t", "--output", tmp_path / f"rows.{kind}")
    run("table", "create", "shop.again", "--schema", NESTED, "--primary-key", "id")
    run("import", "shop.again", tmp_path / f"rows.{kind}")
    assert rows_of(catalog.table("shop.again")) == rows_of(table)


def test_special_numbers_survive(run: Run, catalog: ts.Catalog, tmp_path: Path) -> None:
    table = made(run, catalog, "id BIGINT NOT NULL, d DOUBLE")
    table.upsert(pa.table({"id": [1, 2, 3], "d": [float("inf"), float("-inf"), -0.0]}, table.schema))
    wanted = rows_of(table)
    for kind in ("csv", "json"):
        run("table", "read", "shop.t", "--output", tmp_path / f"rows.{kind}")
        table.delete("id > 0")
        run("import", "shop.t", tmp_path / f"rows.{kind}")
        assert str(rows_of(table)) == str(wanted)


def test_files_in_any_format_and_compression(run: Run, catalog: ts.Catalog, tmp_path: Path) -> None:
    table = made(run, catalog, "id BIGINT NOT NULL, t STRING")
    data = pa.table({"id": [1], "t": ["007"]})
    pq.write_table(data, tmp_path / "a.parquet")
    pyarrow.feather.write_feather(data.set_column(0, "id", [[2]]), tmp_path / "b.arrow")
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"id,t\n3,007\n", mtime=0))
    (tmp_path / "d.tsv").write_text("id\tt\n4\t007\n")
    (tmp_path / "e.jsonl.gz").write_bytes(gzip.compress(b'{"id":5,"t":"007"}\n\n', mtime=0))
    (tmp_path / "f.data").write_text("6;007\n")
    done = run(
        "import", "shop.t", *(tmp_path / name for name in ("a.parquet", "b.arrow", "c.csv.gz", "d.tsv", "e.jsonl.gz")), "--json"
    )
    assert done.json["snapshots"] == [1]
    run("import", "shop.t", tmp_path / "f.data", "--file-format", "csv", "--delimiter", ";", "--no-header")
    # Text that looks like a number is text, because the column is.
    assert rows_of(table) == [{"id": number, "t": "007"} for number in range(1, 7)]


def test_standard_input(run: Run, catalog: ts.Catalog) -> None:
    table = made(run, catalog, "id BIGINT NOT NULL, t STRING")
    run("import", "shop.t", "-", "--file-format", "json", input=b'{"id": 1, "t": "a"}\n{"id": 2, "t": null}')
    run("import", "shop.t", "-", "--file-format", "csv", input=b"t,id\nc,3\n")
    assert rows_of(table) == [{"id": 1, "t": "a"}, {"id": 2, "t": None}, {"id": 3, "t": "c"}]


def test_a_table_is_made_with_the_columns_of_the_file(run: Run, catalog: ts.Catalog, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "day": [date(2026, 1, 1)]}), tmp_path / "a.parquet")
    args = ("import", "shop.new", tmp_path / "a.parquet", "--create", "--primary-key", "id,day", "--partition-by", "day")
    run(*args, "-o", "bucket=2")
    table = catalog.table("shop.new")
    assert (table.primary_key, table.partition_by, table.options()["bucket"]) == (("id", "day"), ("day",), "2")
    run(*args)
    assert table.scan().count() == 1
    run("import", "shop.append", tmp_path / "a.parquet", "--create")
    assert catalog.table("shop.append").primary_key == ()


def test_nulls_and_empty_texts_are_told_apart_in_csv(run: Run, catalog: ts.Catalog) -> None:
    table = made(run, catalog, "id BIGINT NOT NULL, t STRING")
    run("import", "shop.t", "-", "--file-format", "csv", input=b'id,t\n1,\n2,""\n3,NULL\n')
    assert [row["t"] for row in rows_of(table)] == [None, "", "NULL"]
    run("import", "shop.t", "-", "--file-format", "csv", "--null", "NULL", input=b'id,t\n1,\n3,NULL\n4,"NULL"\n')
    assert [row["t"] for row in rows_of(table)] == ["", "", None, "NULL"]


def test_one_commit_or_one_every_so_many_rows(run: Run, catalog: ts.Catalog, tmp_path: Path) -> None:
    table = made(run, catalog, "id BIGINT NOT NULL", "-o", "write-only=true")
    pq.write_table(pa.table({"id": list(range(10))}), tmp_path / "a.parquet")
    done = run("import", "shop.t", tmp_path / "a.parquet", "--commit-every", "4", "--json").json
    assert (done["rows"], done["snapshots"]) == (10, [1, 2, 3])
    assert [table.scan(snapshot_id=one).count() for one in (1, 2, 3)] == [4, 8, 10]
    assert run("import", "shop.t", tmp_path / "a.parquet", "--json").json["snapshots"] == [4]


def test_what_was_committed_before_a_failure_is_said(run: Run, catalog: ts.Catalog, tmp_path: Path) -> None:
    table = made(run, catalog, "id BIGINT NOT NULL", "-o", "write-only=true")
    pq.write_table(pa.table({"id": list(range(5))}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("id\nnot a number\n")
    ran = run("import", "shop.t", tmp_path / "a.parquet", tmp_path / "b.csv", "--commit-every", "2", code=1)
    assert "4 rows were committed before that (snapshots 1 to 2)" in ran.err
    assert "b.csv" in ran.err
    assert table.scan().count() == 4
    run("import", "shop.t", tmp_path / "a.parquet", tmp_path / "b.csv", code=1)
    assert len(table.snapshots()) == 2


def test_rows_replace_rows_only_as_it_was_asked_for(run: Run, catalog: ts.Catalog, orders: ts.Table, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,item,price\n1,cap,2\n")
    run("import", "shop.orders", tmp_path / "a.csv", "--append", code=3)
    run("import", "shop.orders", tmp_path / "a.csv", "--upsert")
    assert orders.scan().count() == 4
    plan = run("import", "shop.orders", tmp_path / "a.csv", "--overwrite", "--json", code=3).json["plan"]
    assert plan["replaces"] == "all rows"
    assert orders.scan().count() == 4
    run("import", "shop.orders", tmp_path / "a.csv", "--overwrite", "--yes")
    assert rows_of(orders) == [{"id": 1, "item": "cap", "price": 2.0}]
    catalog.create_table("shop.plain", schema=orders.schema)
    run("import", "shop.plain", tmp_path / "a.csv", "--upsert", code=3)
    run("import", "shop.plain", tmp_path / "a.csv", "--append")
    assert catalog.table("shop.plain").scan().count() == 1


@pytest.mark.deep_after(13)
@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("a.csv", b"id,extra\n1,2\n", "extra"),
        ("a.jsonl", b'{"id":1,"extra":2}\n', "extra"),
        ("a.jsonl", b'{"id":1}\n{"id":2,"extra":2}\n', "extra"),
        ("a.jsonl", b'{"id":1,"f":"NaN","extra":2}\n', "extra"),
        ("a.jsonl", b'{"id":1,"f":"NaN","extra":' + b"9" * 5000 + b"}\n", "extra"),
        ("a.csv", b"id,t\n1\n", "a.csv, line 2: expected 2 values, as in the header, found 1"),
        ("a.csv", b'id,t\n1,"two\nlines"\n\nx,y\n', "a.csv, line 5, column 'id': expected BIGINT, found 'x'"),
        ("a.csv", b"id,t\r\n1,x\r\n2,\xff\r\n", "a.csv, line 3, column 't': expected UTF-8 text"),
        (
            "a.csv",
            b"id,t,f,i8,raw,r\n" + b"1,,2.5,,,\n" * 600_000 + b"2,,NA,,,\n",
            "line 600002, column 'f': expected DOUBLE, found 'NA'; if that means NULL, pass --null 'NA'",
        ),
        ("a.tsv", b"id\tt\n1\tx\ty\n", "a.tsv, line 2: expected 2 values"),
        (
            "a.csv.gz",
            gzip.compress(b"id,i8\n1,1\n1,300\n", mtime=0),
            "a.csv.gz, line 3, column 'i8': expected TINYINT, found '300'",
        ),
        ("a.csv", b"", "a.csv"),
        ("a.jsonl", b'{"id":1}\n{"id":"x"}\n', "line 2"),
        ("a.jsonl", b'{"id":1}\n{"id":\n', "line 2"),
        ("a.jsonl", b'{"id":1,"i8":300}\n', "column 'i8': expected TINYINT, found 300; TINYINT has no room for it: give the"),
        ("a.jsonl", b'{"id":99999999999999999999}\n', "'id': expected BIGINT, found 99999999999999999999; BIGINT has no room"),
        ("a.jsonl", b'{"id":1,"r":-1e39}\n', "column 'r': expected FLOAT, found -1e39; FLOAT has no room for it: give"),
        ("a.jsonl", b'{"id":1.5}\n', "column 'id': expected BIGINT, found 1.5\n"),
        ("a.jsonl", b'{"id":"12"}\n', "column 'id': expected BIGINT, found '12'\n"),
        ("a.jsonl", b'{"id":true}\n', "column 'id': expected BIGINT, found true\n"),
        ("a.jsonl", b'{"id":1,"f":1.5}\n{"id":2,"f":false}\n', "line 2: column 'f': expected DOUBLE, found false\n"),
        ("a.jsonl", b'{"id":1,"t":true}\n', "column 't': expected STRING, found true\n"),
        ("a.jsonl", b"[1,2]\n", "a.jsonl"),
        ("a.jsonl", b'{"id":1}\nnull\n', "line 2"),
        ("a.jsonl", b'{"id":1}\n{"id":2,"t":"\xff"}\n', "line 2"),
        ("a.jsonl", b'{"id":1,"raw":"no base64!"}\n', "line 1"),
        ("a.csv", b"id,raw\n1,\n2,AAAA\n3,no base64!\n4,AAAA\n", "line 4, column 'raw': expected BYTES, found 'no base64!'"),
        ("a.csv", b"id,i8\n1,300\n", "TINYINT has no room for it: give the column a wider type with tablestore"),
        ("a.csv", b"id,i8\n1,1.5\n", "expected TINYINT, found '1.5'\n"),
        ("a.csv", b"id,r\n1,-1e39\n", "column 'r': expected FLOAT, found '-1e39'; FLOAT has no room for it: give"),
        ("a.csv", b'id,f\n1,\n2,""\n', "a.csv, line 3, column 'f': expected DOUBLE, found ''"),
        ("a.csv", b"t\nx\n", "id"),
        ("a.jsonl", b'{"t":"x","f":1,"i8":1,"raw":"","r":1}\n', "id"),
        ("a.parquet", b"PAR1 is not enough PAR1", "a.parquet"),
        ("a.csv.gz", b"not compressed", "a.csv.gz"),
        ("a.txt", b"id\n1\n", "--file-format"),
        ("missing.csv", None, "missing.csv"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(
    run: Run, catalog: ts.Catalog, tmp_path: Path, name: str, content: bytes | None, word: str
) -> None:
    table = made(run, catalog, "id BIGINT NOT NULL, t STRING, f DOUBLE, i8 TINYINT, raw BYTES, r FLOAT")
    if content is not None:
        (tmp_path / name).write_bytes(content)
    ran = run("import", "shop.t", tmp_path / name, code=1)
    assert word in ran.err
    assert "Traceback" not in ran.err
    assert table.snapshots() == ()


@pytest.mark.parametrize(
    ("content", "options", "word"),
    [
        (b"id,i8\n\n1,1\n2,300\n", (), "-, row 3 (the header is row 1), column 'i8': expected TINYINT, found '300'"),
        (b'id,f\n1,"x\n"\n', (), "-, row 2 (the header is row 1), column 'f': expected DOUBLE, found 'x\\n'"),
        (b"id,f\n" + b"2,3\n" * 70_000 + b"3,x\n", (), "row 70002 (the header is row 1), column 'f': expected DOUBLE, found 'x'"),
        (b"id,t\n1,\xff\n", (), "row 2 (the header is row 1), column 't': expected UTF-8 text"),
        (b"id,t\n1\n", (), "row 2 (the header is row 1): expected 2 values, as in the header, found 1"),
        (b"1,1.5\nx,2\n", ("--no-header",), "-, row 2, column 'id': expected BIGINT, found 'x'"),
    ],
)
def test_a_pipe_is_refused_with_the_row(run: Run, catalog: ts.Catalog, content: bytes, options: tuple[str, ...], word: str) -> None:
    made(run, catalog, "id BIGINT NOT NULL, f DOUBLE" if options else "id BIGINT NOT NULL, t STRING, f DOUBLE, i8 TINYINT")
    lacking = () if options else ("--missing-columns", "null")
    assert word in run("import", "shop.t", "-", "--file-format", "csv", *lacking, *options, input=content, code=1).err


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("digits", ["100000000000000000000", "-99999999999999999999.5", "2147483648e11", "0.000000000000000000001"])
def test_a_decimal_that_does_not_fit_is_refused_and_never_another_number(
    run: Run, catalog: ts.Catalog, kind: str, quote: str, digits: str
) -> None:
    """Arrow's readers of CSV and JSON make 1318113592927845595.62136384478721867776 of the first, without a word."""
    table = made(run, catalog, "id BIGINT NOT NULL, dec DECIMAL(38, 20)")
    row = f'{{"id":1,"dec":{quote}{digits}{quote}}}\n' if kind == "json" else f"id,dec\n1,{quote}{digits}{quote}\n"
    ran = run("import", "shop.t", "-", "--file-format", kind, input=row.encode(), code=1)
    assert "dec" in ran.err and "Traceback" not in ran.err
    assert table.snapshots() == ()


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_decimals_keep_their_digits_however_they_are_written(run: Run, catalog: ts.Catalog, kind: str) -> None:
    table = made(run, catalog, "id BIGINT NOT NULL, dec DECIMAL(38, 20)")
    wanted = [
        Decimal("99999999999999999.99999999999999999999"),
        Decimal("-1.5").quantize(Decimal("1e-20")),
        Decimal("0").quantize(Decimal("1e-20")),
        Decimal("120").quantize(Decimal("1e-20")),
        None,
    ]
    written = ["99999999999999999.99999999999999999999", "-1.50", "0", "1.2e2", ""]
    if kind == "json":
        lines = [f'{{"id":{n},"dec":{text or "null"}}}' for n, text in enumerate(written)]
        lines += [f'{{"id":{n},"dec":"{text}"}}' for n, text in enumerate(written, 5) if text]
    else:
        lines = ["id,dec", *(f"{n}, {text}" if text else f"{n}," for n, text in enumerate(written))]
        lines += [f'{n},"{text}"' for n, text in enumerate(written, 5) if text]
    run("import", "shop.t", "-", "--file-format", kind, input="\n".join(lines).encode() + b"\n")
    assert [row["dec"] for row in rows_of(table)] == [*wanted, *wanted[:4]]


def test_columns_are_chosen(run: Run, catalog: ts.Catalog) -> None:
    table = made(run, catalog, "id BIGINT NOT NULL, t STRING, f DOUBLE")
    null = ("--missing-columns", "null")
    run("import", "shop.t", "-", "--file-format", "json", "-c", "id,t", *null, input=b'{"id":1,"t":"a","f":"x","other":{}}\n')
    run("import", "shop.t", "-", "--file-format", "csv", "-c", "id", *null, input=b"other,id\nx,2\n")
    assert [(row["id"], row["t"]) for row in rows_of(table)] == [(1, "a"), (2, None)]
    run("import", "shop.t", "-", "--file-format", "csv", "-c", "nothing", input=b"id\n2\n", code=1)


def test_columns_that_a_file_lacks_are_refused_kept_or_null(run: Run, catalog: ts.Catalog) -> None:
    table = made(run, catalog, "id BIGINT NOT NULL, t STRING, f DOUBLE")
    run("import", "shop.t", "-", "--file-format", "csv", input=b"id,t,f\n1,a,0.5\n")
    lacking = ("import", "shop.t", "-", "--file-format", "csv")
    run(*lacking, input=b"id,t\n1,b\n", code=1)
    run(*lacking, "--missing-columns", "keep", input=b"id,t\n1,b\n")
    assert [(row["t"], row["f"]) for row in rows_of(table)] == [("b", 0.5)]
    run(*lacking, "--missing-columns", "null", input=b"id,t\n1,c\n")
    assert [(row["t"], row["f"]) for row in rows_of(table)] == [("c", None)]


def lines_of(*rows: dict[str, object], spaced: bool = False) -> bytes:
    separators = (" , ", " : ") if spaced else (",", ":")
    return b"\n\n".join(json.dumps(row, separators=separators).encode() for row in rows)


@pytest.mark.deep_after(4)
@pytest.mark.parametrize("spaced", [False, True])
@pytest.mark.parametrize("text", ["a", '{"f": 1}', 'x"f":', "\\"])
def test_fields_that_json_lines_lack_are_refused_kept_or_null(run: Run, catalog: ts.Catalog, text: str, spaced: bool) -> None:
    """A line that says null means it; to Arrow's reader one without the field says the same."""
    table = made(run, catalog, "id BIGINT NOT NULL, t STRING, f DOUBLE, m MAP<STRING, DOUBLE>")
    whole = {"id": 1, "t": text, "f": 0.5, "m": {"f": 1.0}}
    load = ("import", "shop.t", "-", "--file-format", "json")
    run(*load, input=lines_of(whole, {**whole, "id": 2, "f": None, "t": None}, spaced=spaced))
    before = rows_of(table)
    assert [(row["t"], row["f"]) for row in before] == [(text, 0.5), (None, None)]
    none = lines_of({"id": 1, "t": text, "m": {"f": 2.0}}, {"id": 2, "t": "b", "m": None}, spaced=spaced)
    assert "lack f" in run(*load, input=none, code=1).err
    some = lines_of({"id": 2, "f": None, "t": "b", "m": {}}, {"id": 1, "t": text, "m": {"f": 2.0}}, spaced=spaced)
    for choice in ((), ("--missing-columns", "keep")):
        assert "line 3 has no 'f', which other lines have" in run(*load, *choice, input=some, code=1).err
    assert rows_of(table) == before
    run(*load, "--missing-columns", "keep", input=none)
    assert [(row["t"], row["f"]) for row in rows_of(table)] == [(text, 0.5), ("b", None)]
    run(*load, "--missing-columns", "null", input=some)
    assert [(row["t"], row["f"]) for row in rows_of(table)] == [(text, None), ("b", None)]


def test_json_lines_that_take_rows_back_need_the_key_only(run: Run, orders: ts.Table) -> None:
    lines = lines_of({"_row_kind": "-D", "id": 1}, {"_row_kind": "+U", "id": 2, "item": "ink", "price": 10})
    run("import", "shop.orders", "-", "--file-format", "json", input=lines)
    assert [(row["id"], row["price"]) for row in rows_of(orders)] == [(2, 10.0), (3, 4.0), (4, 0.5)]
    partial = lines_of({"_row_kind": "+U", "id": 2, "item": "ink"}, {"_row_kind": "+U", "id": 3, "item": "ink", "price": 10})
    assert "price" in run("import", "shop.orders", "-", "--file-format", "json", input=partial, code=1).err


def test_lines_of_a_partial_update_table_set_what_they_hold(run: Run, catalog: ts.Catalog) -> None:
    table = made(run, catalog, "id BIGINT NOT NULL, t STRING, f DOUBLE", "-o", "merge-engine=partial-update")
    lines = lines_of({"id": 1, "t": "a"}, {"id": 1, "f": 0.5}, {"id": 2, "f": 1.5})
    run("import", "shop.t", "-", "--file-format", "json", input=lines)
    assert [(row["t"], row["f"]) for row in rows_of(table)] == [("a", 0.5), (None, 1.5)]


def test_changes_with_row_kinds_are_applied(run: Run, orders: ts.Table) -> None:
    lines = b"_row_kind,id,item,price\n-D,1,,\n+U,2,ink,10\n"
    run("import", "shop.orders", "-", "--file-format", "csv", input=lines)
    assert [(row["id"], row["price"]) for row in rows_of(orders)] == [(2, 10.0), (3, 4.0), (4, 0.5)]


@pytest.mark.parametrize("seed", range(5))
def test_blocks_of_any_size_give_the_same_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seed: int) -> None:
    """Lines are cut where blocks end: with blocks smaller than lines, nothing is lost or doubled."""
    chance = random.Random(seed)
    rows = [{"id": number, "t": "x" * chance.randrange(0, 40) + "é\n"} for number in range(200)]
    (tmp_path / "a.jsonl").write_bytes("\n".join(json.dumps(row) for row in rows).encode())
    monkeypatch.setattr(jsonlines, "BLOCK_BYTES", chance.choice([1, 7, 64, 1000]))
    target = pa.schema([("id", pa.int64()), ("t", pa.string())])
    with rowsource.open_rows(str(tmp_path / "a.jsonl"), target=target) as source:
        found = [row for batch in source for row in batch.to_pylist()]
    assert found == rows, f"seed {seed}"


def test_memory_is_bounded_by_blocks_and_not_by_the_file(tmp_path: Path) -> None:
    """A stream is read as rows are asked for, never as a whole."""
    lines = b'{"id":1,"t":"' + b"x" * 1000 + b'"}\n'
    stream = io.BytesIO(lines * 20_000)
    _, batches = jsonlines.json_batches(stream, "stream", pa.schema([("id", pa.int64()), ("t", pa.string())]))
    next(iter(batches))
    assert stream.tell() <= 2 * jsonlines.BLOCK_BYTES


def test_folders_and_patterns(run: Run, catalog: ts.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(run, catalog, "id BIGINT NOT NULL")
    for number, name in enumerate(("in/a.csv", "in/deep/b.csv", "in/deep/c[1].csv", "in/.hidden.csv", "in/_tmp/d.csv")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"id\n{number}\n")
    (tmp_path / "in" / "README").write_text("no rows")
    monkeypatch.chdir(tmp_path)

    def imported(*names: str) -> list[int]:
        table.delete("id >= 0")
        run("import", "shop.t", *names)
        return [row["id"] for row in rows_of(table)]

    assert imported("in") == imported(f"{tmp_path}/in/") == imported("file://" + f"{tmp_path}/in/") == [0, 1, 2]
    assert imported("in/*.csv") == [0]
    assert imported("in/**/*.csv") == [0, 1, 2, 4]
    assert imported("*/deep/[a-b].csv") == [1]
    assert imported("in/deep/c[1].csv", "in/a.csv") == [0, 2]
    assert "no file matches 'in/*.tsv'" in run("import", "shop.t", "in/*.tsv", code=1).err
    (tmp_path / "empty").mkdir()
    assert "the folder empty holds no files of rows" in run("import", "shop.t", "empty", code=1).err


def test_a_table_that_is_not_there_is_made_with_create(run: Run, catalog: ts.Catalog, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    refused = run("import", "shop.new", tmp_path / "a.csv", "--json", code=1)
    assert "--create makes it" in json.loads(refused.err)["error"]["message"]
    run("import", "shop.new", tmp_path / "a.csv", "--create")
    assert catalog.table("shop.new").scan().count() == 1
