"""Writes an INSERT as one query around the user's, with the table's column names and types.

    INSERT INTO t PARTITION (day = '2024-01-01') (id, x) SELECT a, b FROM s
    SELECT CAST(`id` AS BIGINT) AS `id`, CAST(`x` AS INT) AS `x`, CAST('2024-01-01' AS DATE) AS `day`
    FROM (SELECT a, b FROM s) AS `_rows` (`id`, `x`)

Columns are taken by their place, or with BY NAME by their name. Those that the statement does not name are left out: the table
fills in their defaults. A column ``_row_kind`` of the query makes the rows changes.
"""

from collections.abc import Mapping, Sequence

from tablestore.errors import InvalidInputError
from tablestore.names import did_you_mean
from tablestore.sql.query.edits import quote_name
from tablestore.sql.query.querytext import RowText
from tablestore.sql.query.rowlevel import ROW_KIND, RowQuery
from tablestore.sql.query.sparktypes import as_type, cast_text, refusal
from tablestore.sql.query.tokenstream import tokens_of
from tablestore.sql.source import NOWHERE, Fragment, marked
from tablestore.sql.statements.rows import Insert
from tablestore.types.datatypes import DataType, Field, with_nullable

Given = Sequence[tuple[str, DataType | None]]
"""Names and types of a query's columns; None: the type of NULL."""


def rows_to_insert(insert: Insert) -> Fragment:
    """The query of an INSERT; ``DEFAULT`` in a list of VALUES is NULL in it, which the table fills in. Same length, same places."""
    if "DEFAULT" not in insert.query.text.upper():
        return insert.query
    tokens = tokens_of(insert.query)
    if tokens.key(0) != "VALUES":
        return insert.query
    text, parts, done = insert.query.text, list[str](), 0
    for at in range(len(tokens)):
        if tokens.key(at) == "DEFAULT" and tokens.key(at - 1) in ("(", ",") and tokens.key(at + 1) in (")", ",", ""):
            parts += text[done : tokens[at].start], "NULL   "
            done = tokens[at].end
    return Fragment("".join([*parts, text[done:]]), insert.query.span)


def insert_query(
    statement: str, insert: Insert, fields: Sequence[Field], query_columns: Given, *, rows: str | Fragment | None = None
) -> RowQuery:
    """The rows to write. ``query_columns``: those of ``rows_to_insert``, or of another query of the same ``rows``, as engines say.

    Raises InvalidInputError for unknown columns, a wrong number of them, and types that a column does not take.
    """
    static = {name: value for name, value in (insert.partition or {}).items() if value is not None}
    for name in insert.partition or {}:
        _field(statement, insert, fields, name)
    fixed = {_field(statement, insert, fields, name).name: value for name, value in static.items()}
    pairs = (
        _by_name(statement, insert, fields, query_columns)
        if insert.by_name
        else columns_by_place(statement, insert, fields, query_columns, fixed)
    )
    if twice := next((field.name for _, field in pairs if field is not None and field.name in fixed), None):
        raise _wrong(
            statement,
            insert,
            f"column {twice!r} has its value from PARTITION ({twice} = …), and the rows give it another one: leave one of them out",
        )
    text = RowText(statement, ())
    text.add("SELECT ")
    columns = _called([ROW_KIND if field is None else field.name for _, field in pairs])
    for place, ((name, given_type), field) in enumerate(pairs):
        column = columns[place]
        if field is None:
            text.add(", " if place else "", f"{column} AS {quote_name(ROW_KIND)}")
            continue
        if (wrong := refusal(field.name, field.type, given_type, f" (column {name!r} of the query)")) is not None:
            raise _wrong(statement, insert, wrong)
        # NULL is refused when the rows are written; a cast would hide which column of the query this one is.
        is_alike = given_type is not None and with_nullable(given_type, field.type.nullable) == field.type
        value = column if is_alike else as_type(column, given_type, field.type)
        text.add(", " if place else "", f"{value} AS {quote_name(field.name)}")
    for field in fields:
        if field.name in fixed:
            opening, closing = cast_text("\0", field.type).split("\0")
            text.add(", " if pairs else "", opening, fixed[field.name], f"{closing} AS {quote_name(field.name)}")
    text.add(" FROM (", rows or rows_to_insert(insert), f") AS `_rows` ({', '.join(columns)})")
    return RowQuery(text=text.text, pieces=text.pieces, inserts=True)


def _called(names: Sequence[str]) -> list[str]:
    """The names that the query gives to columns of the user's query: the table's, since an engine names them in its errors.

    Names that are equal but for their case would be one for some engines.
    """
    alike = len({name.casefold() for name in names}) < len(names)
    return [quote_name(f"_c{place}" if alike else name) for place, name in enumerate(names)]


_Pairs = Sequence[tuple[tuple[str, DataType | None], Field | None]]


def _by_name(statement: str, insert: Insert, fields: Sequence[Field], query_columns: Given) -> _Pairs:
    return [(column, None if column[0] == ROW_KIND else _field(statement, insert, fields, column[0])) for column in query_columns]


def columns_by_place(
    statement: str, insert: Insert, fields: Sequence[Field], query_columns: Given, fixed: Mapping[str, Fragment]
) -> Sequence[tuple[tuple[str, DataType | None], Field | None]]:
    """The columns of a query with those of the table that take them; None: the kinds of rows. ``fixed``: those that have a value
    already. Raises InvalidInputError."""
    target_fields: list[Field | None]
    if insert.columns is not None:
        target_fields = [None if name == ROW_KIND else _field(statement, insert, fields, name) for name in insert.columns]
        # Partition columns that are neither in the list nor given a value stand at the end of the query.
        listed = {field.name for field in target_fields if field is not None}
        open_ones = [name for name, value in (insert.partition or {}).items() if value is None]
        target_fields += [
            open_field for name in open_ones if (open_field := _field(statement, insert, fields, name)).name not in listed
        ]
    else:
        target_fields = [field for field in fields if field.name not in fixed]
        kinds = [place for place, (name, _) in enumerate(query_columns) if name == ROW_KIND]
        for place in kinds[:1]:
            target_fields.insert(min(place, len(target_fields)), None)
    if len(target_fields) != len(query_columns):
        expected = ", ".join(ROW_KIND if field is None else field.name for field in target_fields)
        names = ", ".join(name for name, _ in query_columns)
        raise _wrong(
            statement,
            insert,
            f"expected {len(target_fields)} columns ({expected}), found {len(query_columns)} ({names}); name the columns that the "
            f"query gives: INSERT INTO {insert.target} (…)",
        )
    return list(zip(query_columns, target_fields, strict=True))


def _field(statement: str, insert: Insert, fields: Sequence[Field], name: str) -> Field:
    exact = [field for field in fields if field.name == name]
    matching_fields = exact or [field for field in fields if field.name.casefold() == name.casefold()]
    if len(matching_fields) == 1:
        return matching_fields[0]
    names = [field.name for field in fields]
    raise _wrong(
        statement,
        insert,
        f"{insert.target} has no column {name!r}{did_you_mean(name, names)}; its columns are {', '.join(names)}",
    )


def _wrong(statement: str, insert: Insert, message: str) -> InvalidInputError:
    place = "" if insert.target.span == NOWHERE else f"\n{marked(statement, insert.target.span)}"
    return InvalidInputError(f"{message}{place}", kind="columns")
