"""The rows that DELETE, UPDATE, MERGE and INSERT write; the made queries run on DuckDB."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import pytest
from tablestore_duckdb.columntypes import columns_of, parameter_types

from tablestore.errors import InvalidInputError
from tablestore.sql.duckdb.transpile import Known, translated
from tablestore.sql.parse.statement import parse_statement
from tablestore.sql.query.edits import relation_edits
from tablestore.sql.query.parameters import named_parameters
from tablestore.sql.query.rowlevel import PAIRS, SOURCE, TARGET, RowQuery, TargetTable
from tablestore.sql.query.sparktypes import assignable, spark_type
from tablestore.sql.query.tablereferences import find_references
from tablestore.sql.source import Fragment, Span, apply_edits
from tablestore.sql.statements.rows import Delete, Insert, Merge, Update
from tablestore.sql.writing.columnvalues import GivenTypes
from tablestore.sql.writing.insertion import insert_query, rows_to_insert
from tablestore.sql.writing.mergerows import merge_query
from tablestore.sql.writing.updating import delete_query, update_query
from tablestore.types.datatypes import Field, RowType
from tablestore.types.typestring import parse_type

FIELDS = (
    Field(id=0, name="id", type=parse_type("BIGINT NOT NULL")),
    Field(id=1, name="x", type=parse_type("INT"), default_value="-1"),
    Field(id=2, name="Name", type=parse_type("STRING"), default_value="it's"),
    Field(
        id=3,
        name="s",
        type=RowType(fields=(Field(id=4, name="a", type=parse_type("INT")), Field(id=5, name="b", type=parse_type("STRING")))),
    ),
)
KEYED = TargetTable(fields=FIELDS, keys=("id",))
APPEND = TargetTable(fields=FIELDS, positions=True)


def changes(
    statement: str, parameters: Mapping[str, Any] | Sequence[Any] = (), target: TargetTable = KEYED
) -> list[tuple[Any, ...]]:
    """The rows that a statement writes to a table with three rows; ``s`` is another one."""
    made = row_query(statement, target)
    text = made.text if made.source is None else made.text.replace(SOURCE, f"({made.source.text})")
    return run(text, statement, parameters)


def row_query(statement: str, target: TargetTable = KEYED, types: GivenTypes | None = None) -> RowQuery:
    match parse_statement(statement):
        case Delete() as delete:
            return delete_query(statement, delete, target)
        case Update() as update:
            return update_query(statement, update, target, types)
        case Merge() as merge:
            return merge_query(statement, merge, target, types)
    raise AssertionError(statement)


def run(text: str, statement: str, parameters: Mapping[str, Any] | Sequence[Any]) -> list[tuple[Any, ...]]:
    edits = [edit for at, found in enumerate(find_references(text)) for edit in relation_edits(found, at)]
    names = {TARGET: "target", "db.t": "old", "t": "old", "db.s": "src", "s": "src"}
    relations = [names[str(found.path)] for found in find_references(text)]
    values = named_parameters(statement, parameters)
    with duckdb.connect() as connection:
        connection.execute(
            """CREATE TABLE target AS SELECT *, 'f' || id AS _data_file, id AS _row_position FROM (VALUES
                   (1::BIGINT, 10, 'one', {'a': 1, 'b': 'x'}), (2, NULL, 'two', NULL), (3, 30, NULL, {'a': NULL, 'b': 'z'})
               ) v(id, x, "Name", s);
               CREATE TABLE old AS SELECT * EXCLUDE (_data_file, _row_position) FROM target;
               CREATE TABLE src AS SELECT * FROM (VALUES
                   (1::BIGINT, 11, 'eins', NULL::STRUCT(a INTEGER, b VARCHAR)), (4, 44, 'vier', NULL)
               ) v(id, x, "Name", s)"""
        )
        tables = {name: columns_of(connection.table(name)) for name in ("target", "old", "src")}
        known = Known(tables=tables, parameters=dict(parameter_types(values)))
        written = translated(apply_edits(text, edits, relations.__getitem__), known)
        return sorted(connection.execute(written.sql, dict(values) or None).fetchall())


S1, S3 = {"a": 1, "b": "x"}, {"a": None, "b": "z"}


def test_delete_yields_the_old_rows() -> None:
    assert changes("DELETE FROM db.t WHERE db.t.x > 5 AND t.id < ?", [3]) == [("-D", 1, 10, "one", S1)]
    assert changes("DELETE FROM t AS a WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.id = a.id) -- all others") == [
        ("-D", 2, None, "two", None),
        ("-D", 3, 30, None, S3),
    ]
    assert len(changes("DELETE FROM t")) == 3


def test_delete_from_an_append_table_yields_places_alone() -> None:
    assert changes("DELETE FROM t WHERE id >= 2", target=APPEND) == [("-D", "f2", 2), ("-D", "f3", 3)]


def test_update_yields_the_new_rows() -> None:
    assert changes("UPDATE db.t SET x = t.x + :p, NAME = DEFAULT WHERE id = 1", {"p": 5}) == [("+U", 1, 15, "it's", S1)]
    largest = "a.x = (SELECT max(s.x) FROM s WHERE s.id > a.id)"
    where = "id IN (SELECT id FROM t WHERE x IS NULL)"
    assert changes(f"UPDATE t a SET {largest}, t.`Name` = NULL WHERE {where}") == [("+U", 2, 44, None, None)]


def test_update_of_an_append_table_has_the_place_of_the_old_row() -> None:
    assert changes("UPDATE t SET x = 7 WHERE id = 3", target=APPEND) == [("+U", 3, 7, None, S3, "f3", 3)]
    with_before = TargetTable(fields=FIELDS[:2], positions=True, before=tuple(field.name for field in FIELDS[:2]))
    assert changes("UPDATE t SET x = 7 WHERE id = 3", target=with_before) == [("+U", 3, 7, "f3", 3, {"id": 3, "x": 30})]


def test_fields_of_a_struct_are_set_alone() -> None:
    assert changes("UPDATE t SET s.b = 'new', t.S.A = 5 WHERE id = 1") == [("+U", 1, 10, "one", {"a": 5, "b": "new"})]
    assert changes("UPDATE t SET s.b = 'new' WHERE id = 3") == [("+U", 3, 30, None, {"a": None, "b": "new"})]


def test_parameters_by_place_keep_their_values_though_pieces_change_their_order() -> None:
    assert changes("UPDATE t SET x = ?, name = ? WHERE id = ?", [1, "a", 2]) == [("+U", 2, 1, "a", None)]
    text = """MERGE INTO t USING (SELECT ? AS id) s ON t.id = s.id
        WHEN MATCHED AND t.x > ? THEN UPDATE SET x = ? WHEN MATCHED THEN DELETE"""
    assert changes(text, [1, 5, 77]) == [("+U", 1, 77, "one", S1)]
    assert changes(text, [1, 50, 77]) == [("-D", 1, 10, "one", S1)]


MERGE = "MERGE INTO db.t USING db.s ON t.id = s.id "


@pytest.mark.deep_after(4)
@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("WHEN MATCHED THEN DELETE", [("-D", 1, 10, "one", S1)]),
        ("WHEN MATCHED THEN UPDATE SET x = s.x + t.x, Name = DEFAULT", [("+U", 1, 21, "it's", S1)]),
        ("WHEN MATCHED AND s.x > 100 THEN DELETE WHEN MATCHED THEN UPDATE SET *", [("+U", 1, 11, "eins", None)]),
        ("WHEN MATCHED AND db.s.x > 10 THEN DELETE WHEN MATCHED THEN UPDATE SET *", [("-D", 1, 10, "one", S1)]),
        ("WHEN MATCHED AND NULL THEN DELETE", []),
        ("WHEN NOT MATCHED THEN INSERT *", [("+I", 4, 44, "vier", None)]),
        ("WHEN NOT MATCHED THEN INSERT (name, id) VALUES (upper(Name), db.s.id)", [("+I", 4, None, "VIER", None)]),
        ("WHEN NOT MATCHED AND s.x < 5 THEN INSERT *", []),
        ("WHEN NOT MATCHED BY SOURCE AND x IS NULL THEN DELETE", [("-D", 2, None, "two", None)]),
        ("WHEN NOT MATCHED BY SOURCE THEN UPDATE SET x = 0", [("+U", 2, 0, "two", None), ("+U", 3, 0, None, S3)]),
        (
            "WHEN MATCHED THEN UPDATE SET x = s.x WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, DEFAULT)",
            [("+I", 4, None, None, None), ("+U", 1, 11, "one", S1)],
        ),
        (
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND x > 9 THEN UPDATE SET x = 1 "
            "WHEN NOT MATCHED BY SOURCE THEN DELETE",
            [("+U", 3, 1, None, S3), ("-D", 1, 10, "one", S1), ("-D", 2, None, "two", None)],
        ),
        (
            "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN MATCHED AND false THEN DELETE",
            [("+I", 4, 44, "vier", None), ("-D", 2, None, "two", None), ("-D", 3, 30, None, S3)],
        ),
        (
            "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN DELETE",
            [("+I", 4, 44, "vier", None), ("-D", 2, None, "two", None)],
        ),
        (
            "WHEN MATCHED AND s.x IN (SELECT x FROM s) THEN DELETE WHEN NOT MATCHED AND x > 9 THEN INSERT (id, x) "
            "VALUES (ID, aggregate(array(x, 1), 0, (a, y) -> a + y) + CAST(x AS INT) + (SELECT max(x) FROM t WHERE t.id < 2))",
            [("+I", 4, 99, None, None), ("-D", 1, 10, "one", S1)],
        ),
    ],
)
def test_merge_takes_the_first_clause_that_is_for_a_row(clauses: str, expected: list[tuple[Any, ...]]) -> None:
    assert changes(MERGE + clauses) == expected
    # In an append table each row has its old place besides, an inserted one none.
    placed = changes(MERGE + clauses, target=APPEND)
    only_deletes = "UPDATE" not in clauses and "INSERT" not in clauses
    assert placed == sorted(
        (row[0], *(() if only_deletes else row[1:]), *((None, None) if row[0] == "+I" else (f"f{row[1]}", row[1])))
        for row in expected
    )


def test_merge_takes_queries_with_names_of_columns_as_source() -> None:
    text = "MERGE INTO t USING (SELECT id, x FROM s UNION ALL SELECT 3, 33 /* FROM t */) AS q (k, v) ON t.id = k "
    assert changes(text + "WHEN MATCHED THEN UPDATE SET x = v WHEN NOT MATCHED BY SOURCE THEN DELETE") == [
        ("+U", 1, 11, "one", S1),
        ("+U", 3, 33, None, S3),
        ("-D", 2, None, "two", None),
    ]


@pytest.mark.parametrize(
    ("on", "set_keys"),
    [
        ("t.id = s.id", ()),
        ("s.ID = T.id AND t.x > 1", ()),
        ("t.x = s.x", ("id",)),
        ("t.id = s.id OR t.x = 1", ("id",)),
        ("t.x IS NOT NULL AND t.id = s.id", ()),
        ("t.id = s.id AND NOT t.x > 1 AND s.x NOT IN (1, 2)", ()),
        ("NOT t.id = s.id", ("id",)),
        ("t.x > 1 AND NOT t.id = s.id", ("id",)),
        ("! t.id = s.id", ("id",)),
        ("NOT (t.x > 1 AND t.id = s.id)", ("id",)),
        ("t.id = s.id AND t.x BETWEEN 1 AND 2", ()),
        ("t.x NOT BETWEEN 1 AND 2 AND t.id = s.id", ()),
        ("t.x BETWEEN (1 AND 2) AND t.id AND s.x BETWEEN 1 AND 2 AND s.id = t.id", ()),
        ("t.x BETWEEN 1 AND t.id = s.id", ("id",)),
        ("t.x NOT BETWEEN s.x AND t.id = s.id AND t.x > 1", ("id",)),
        ("t.id = s.id + 1", ("id",)),
        ("t.id + 0 = s.id", ("id",)),
    ],
)
def test_a_key_is_set_unless_the_merge_condition_says_that_it_stays(on: str, set_keys: tuple[str, ...]) -> None:
    made = row_query(f"MERGE INTO t USING s ON {on} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    assert (made.sets, made.inserts, made.deletes) == ((*set_keys, "x", "Name", "s"), True, False)
    made = row_query(f"MERGE INTO t USING s ON {on} WHEN MATCHED THEN UPDATE SET id = s.id, x = 1")
    assert made.sets == (*set_keys, "x")
    assert row_query(f"MERGE INTO t USING s ON {on} WHEN MATCHED THEN UPDATE SET id = s.id + 1").sets == ("id",)


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ("nam = 'a'", r"(?s)no column 'nam' to set; did you mean 'Name'\?.*line 1, column 14:.*\^\^\^"),
        ("x = 1, t.X = 2", "'x' is set twice"),
        ("x.y = 1", "'x' is no struct"),
        ("s.q = 1", "no column 'q' to set"),
        ("s.a = 1, s = NULL", "'s' is set twice"),
        ("s = NULL, s.a = 1", "as a whole, and its field 'a' too"),
    ],
)
def test_columns_that_cannot_be_set_are_refused_with_their_place(assignments: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        row_query(f"UPDATE t SET {assignments} WHERE id = 1")


def test_a_place_in_the_made_query_leads_back_to_the_statement() -> None:
    statement = "UPDATE db.t SET x = 1 WHERE db.t.id IN (SELECT id FROM nowhere)"
    made = row_query(statement)
    (_, found) = find_references(made.text)
    span = made.place(found.path.span)
    assert span is not None and statement[span.start : span.end] == "nowhere"
    assert made.place(Span(0, 6)) is None


def inserted(statement: str, given: Sequence[tuple[str, str | None]]) -> str:
    insert = parse_statement(statement)
    assert isinstance(insert, Insert)
    types = [(name, None if kind is None else parse_type(kind)) for name, kind in given]
    return insert_query(statement, insert, FIELDS[:3], types).text


@pytest.mark.parametrize(
    ("statement", "given", "expected"),
    [
        ("INSERT INTO t SELECT a, b, c FROM s", "BIGINT INT STRING", [(1, 11, "eins"), (4, 44, "vier")]),
        ("INSERT INTO t (name, id) SELECT c, b FROM s", "STRING INT", [("eins", 11), ("vier", 44)]),
        ("INSERT INTO t BY NAME SELECT c AS NAME, a AS Id FROM s", "c:STRING a:BIGINT", [("eins", 1), ("vier", 4)]),
        ("INSERT INTO t PARTITION (x = '7') SELECT a, c FROM s", "BIGINT STRING", [(1, "eins", 7), (4, "vier", 7)]),
        ("INSERT INTO t PARTITION (x) (id) SELECT a, b FROM s", "BIGINT INT", [(1, 11), (4, 44)]),
        ("INSERT INTO t PARTITION (x = ?) (id) SELECT a + ? FROM s", "BIGINT", [(101, 5), (104, 5)]),
        ("INSERT INTO t VALUES (1, DEFAULT, 'a'), (2, 3, default) -- last", "INT INT STRING", [(1, None, "a"), (2, 3, None)]),
        ("INSERT INTO t (_row_kind, id) VALUES ('-D', 5)", "STRING INT", [("-D", 5)]),
    ],
)
def test_insert_gives_rows_the_names_and_types_of_the_table(statement: str, given: str, expected: list[tuple[Any, ...]]) -> None:
    names = {"Id": "Id", "c": "NAME", "a": "Id"}
    columns = [
        (names[kind.split(":")[0]], kind.split(":")[1]) if ":" in kind else (f"c{at}", kind)
        for at, kind in enumerate(given.split())
    ]
    text = inserted(statement, columns)
    text = text.replace("FROM s", "FROM (SELECT id AS a, x AS b, `Name` AS c FROM s) AS v")
    assert run(text, statement, [5, 100] if "?" in statement else ()) == expected


def test_a_column_of_row_kinds_in_a_query_makes_changes() -> None:
    text = inserted("INSERT INTO t SELECT * FROM q", [("id", "BIGINT"), ("x", "INT"), ("Name", "STRING"), ("_row_kind", "STRING")])
    columns = "`id` AS `id`, `x` AS `x`, `Name` AS `Name`, `_row_kind` AS `_row_kind`"
    assert text.startswith(f"SELECT {columns} FROM (SELECT")


@pytest.mark.parametrize(
    ("statement", "given", "message"),
    [
        ("INSERT INTO t SELECT 1", "INT", r"(?s)expected 3 columns \(id, x, Name\), found 1 \(c0\).*column 13"),
        ("INSERT INTO t (id, nam) SELECT 1, 2", "INT INT", "no column 'nam'; did you mean 'Name'"),
        ("INSERT INTO t BY NAME SELECT 1", "INT", "no column 'c0'"),
        ("INSERT INTO t PARTITION (y = 1) SELECT 1", "INT", "no column 'y'"),
        ("INSERT INTO t (x) SELECT 'a'", "STRING", r"'x' is INT and takes no STRING \(column 'c0'"),
    ],
)
def test_inserts_that_do_not_fit_are_refused(statement: str, given: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        inserted(statement, [(f"c{at}", kind) for at, kind in enumerate(given.split())])


def test_default_is_only_a_word_where_it_stands_alone_in_values() -> None:
    insert = parse_statement("INSERT INTO t VALUES (DEFAULT, default, 'DEFAULT', f(default_x))")
    assert isinstance(insert, Insert)
    assert rows_to_insert(insert) == Fragment("VALUES (NULL   , NULL   , 'DEFAULT', f(default_x))")


@pytest.mark.parametrize(
    ("given", "wanted", "expected"),
    [
        ("BIGINT", "TINYINT", True),
        ("DOUBLE", "DECIMAL(3, 1)", True),
        ("INT", "STRING", True),
        ("DATE", "TIMESTAMP(3)", True),
        ("STRING", "INT", False),
        ("BOOLEAN", "INT", False),
        ("INT", "BOOLEAN", False),
        ("INT", "DATE", False),
        ("BYTES", "STRING", True),
        ("STRING", "BYTES", False),
        (None, "DATE", True),
    ],
)
def test_store_assignment_follows_ansi(given: str | None, wanted: str, expected: bool) -> None:
    assert assignable(None if given is None else parse_type(given), parse_type(wanted)) is expected


def test_types_in_sparks_words() -> None:
    assert (
        spark_type(RowType(fields=FIELDS)) == "STRUCT<`id`: BIGINT, `x`: INT, `Name`: STRING, `s`: STRUCT<`a`: INT, `b`: STRING>>"
    )
    assert [spark_type(parse_type(kind)) for kind in ("TIMESTAMP(3)", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "BYTES", "CHAR(3)")] == [
        "TIMESTAMP_NTZ",
        "TIMESTAMP",
        "BINARY",
        "STRING",
    ]


@pytest.mark.parametrize(
    ("on", "clauses", "equal"),
    [
        ('t.id = s.Id AND t.x > 3 AND s."Name" = t.name', "WHEN MATCHED THEN DELETE", {("id", "id")}),
        ("(t.x) = s.x AND s.name = t.name", "WHEN NOT MATCHED THEN INSERT *", {("name", "name")}),
        ("t.id = s.id OR t.x = s.x", "WHEN MATCHED THEN DELETE", set()),
        ("t.id <=> s.id AND id = s.id AND t.id = s.id + 1", "WHEN MATCHED THEN DELETE", set()),
        ("t.id = s.id", "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE", set()),
    ],
)
def test_a_merge_says_which_columns_of_target_and_source_have_to_be_equal(
    on: str, clauses: str, equal: set[tuple[str, str]]
) -> None:
    made = row_query(f"MERGE INTO db.t USING db.s ON {on} {clauses}")
    assert set(made.equal) == equal
    assert made.source is not None
    assert made.source.text == "SELECT * FROM db.s"


PLAIN = TargetTable(fields=(FIELDS[0], replace(FIELDS[1], default_value=None)), keys=("id",), replaces=True)
TYPES: GivenTypes = {(clause, (name,)): parse_type(kind) for clause in (0, 1) for name, kind in (("id", "BIGINT"), ("x", "INT"))}
SETS_ALL = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
NAMES_ALL = "WHEN NOT MATCHED THEN INSERT (X, id) VALUES (s.x, s.ID) WHEN MATCHED THEN UPDATE SET t.x = s.X, id = s.id -- all"


@pytest.mark.parametrize(("on", "clauses"), [("t.id = s.id", SETS_ALL), ("s.ID = T.Id", SETS_ALL), ("t.id = s.id", NAMES_ALL)])
def test_a_merge_that_is_an_upsert_reads_its_source_alone(on: str, clauses: str) -> None:
    statement = f"MERGE INTO db.t USING db.s ON {on} {clauses}"
    made = row_query(statement, PLAIN, TYPES)
    assert TARGET not in made.text
    assert (made.sets, made.inserts, made.deletes, made.equal) == (("x",), True, False, ())
    assert made.source is not None
    assert run(made.text.replace(SOURCE, f"({made.source.text})"), statement, ()) == [("+I", 1, 11), ("+I", 4, 44)]


@pytest.mark.parametrize(
    ("clauses", "target", "types"),
    [
        (SETS_ALL, PLAIN, {}),
        (SETS_ALL, PLAIN, {**TYPES, (1, ("id",)): parse_type("DOUBLE")}),
        (SETS_ALL, PLAIN, {**TYPES, (1, ("id",)): None}),
        (SETS_ALL, replace(PLAIN, fields=FIELDS[:2]), TYPES),
        (SETS_ALL, replace(PLAIN, replaces=False), TYPES),
        (SETS_ALL, replace(PLAIN, before=("id",)), TYPES),
        (SETS_ALL, replace(PLAIN, keys=("id", "x")), TYPES),
        ("WHEN MATCHED AND s.x > 1 THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *", PLAIN, TYPES),
        ("WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *", PLAIN, TYPES),
        ("WHEN MATCHED THEN UPDATE SET x = s.x + 1 WHEN NOT MATCHED THEN INSERT *", PLAIN, TYPES),
        ("WHEN MATCHED THEN UPDATE SET x = t.x WHEN NOT MATCHED THEN INSERT *", PLAIN, TYPES),
        ("WHEN MATCHED THEN UPDATE SET x = s.x WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.x, s.x)", PLAIN, TYPES),
        ("WHEN MATCHED THEN UPDATE SET x = s.x WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)", PLAIN, TYPES),
        ("WHEN MATCHED THEN UPDATE SET *", PLAIN, TYPES),
        ("WHEN NOT MATCHED THEN INSERT *", PLAIN, TYPES),
        (f"{SETS_ALL} WHEN NOT MATCHED BY SOURCE THEN DELETE", PLAIN, TYPES),
    ],
)
def test_a_merge_in_which_the_target_has_a_say_reads_it(clauses: str, target: TargetTable, types: GivenTypes) -> None:
    assert TARGET in row_query(f"MERGE INTO t USING s ON t.id = s.id {clauses}", target, types).text
    for on in ("t.id = s.id AND s.x > 1", "(t.id = s.id)", "t.id = s.id OR t.x = s.x", "t.id = s.id AND t.x = s.x"):
        assert TARGET in row_query(f"MERGE INTO t USING s ON {on} {SETS_ALL}", PLAIN, TYPES).text


def test_a_merge_that_sets_all_columns_does_not_read_the_old_ones() -> None:
    sets_all = row_query("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    assert "`t`.`id`" in sets_all.text
    assert "`t`.`x`" not in sets_all.text
    sets_one = row_query("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = 1 WHEN NOT MATCHED THEN INSERT *")
    assert "`t`.`Name`" in sets_one.text
    assert "`t`.`x`" not in sets_one.text


@pytest.mark.parametrize(
    ("on", "clauses", "is_paired"),
    [
        ("t.id = s.id", "WHEN MATCHED THEN DELETE", True),
        ("s.ID = t.Id AND t.x > s.x + 1 * 2", "WHEN NOT MATCHED AND s.x * 2 > 1 THEN INSERT *", True),
        ("t.id = s.id", "WHEN MATCHED AND t.x > 1 THEN UPDATE SET x = t.x * s.x WHEN NOT MATCHED THEN INSERT *", True),
        ("t.x = s.x", "WHEN MATCHED THEN DELETE", False),
        ("t.id = s.id", "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE", False),
        ("t.id = s.id AND t.x = (SELECT 1)", "WHEN MATCHED THEN DELETE", False),
        ("t.id = s.id", "WHEN MATCHED AND EXISTS (TABLE s) THEN DELETE", False),
        ("t.id = s.id", "WHEN MATCHED AND size(array(*)) > 1 THEN DELETE", False),
        ("t.id = s.id", "WHEN MATCHED THEN UPDATE SET x = (SELECT max(id) FROM s)", False),
    ],
)
def test_a_merge_by_the_whole_key_has_a_query_over_pairs(on: str, clauses: str, is_paired: bool) -> None:
    made = row_query(f"MERGE INTO t USING s ON {on} {clauses}")
    assert (made.paired is not None) is is_paired
    if made.paired is not None:
        assert [str(one.path) for one in find_references(made.paired.text)] == [PAIRS]
        assert (made.paired.sets, made.paired.inserts, made.paired.deletes) == (made.sets, made.inserts, made.deletes)
        assert (on in made.paired.text) is (on != "t.id = s.id"), "pairs of a key are not asked whether it is equal"
    assert row_query(f"MERGE INTO t USING s ON {on} {clauses}", APPEND).paired is None
