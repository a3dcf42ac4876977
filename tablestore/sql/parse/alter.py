"""Parses ALTER TABLE, ANALYZE TABLE, RESTORE TABLE, TRUNCATE TABLE and COMMENT ON TABLE, in Flink's spelling and in Spark's."""

from collections.abc import Callable
from dataclasses import replace

from tablestore.sql.parse.columndefinitions import check_constraint, default_value, physical_column
from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.datatype import data_type, nullability
from tablestore.sql.parse.literals import constant, option_key, option_keys, optional_partition, partition_spec, set_option
from tablestore.sql.parse.materialized import alter_materialized
from tablestore.sql.source import Fragment
from tablestore.sql.statements.alter import (
    AddColumnAction,
    AddConstraint,
    AlterAction,
    AlterFunction,
    AlterTable,
    AlterView,
    AnalyzeTable,
    ColumnPlacement,
    Compact,
    DropColumnAction,
    DropConstraint,
    DropPartitions,
    ModifyColumn,
    PartitionSpec,
    RenameColumnAction,
    RenameTo,
    ResetOptions,
    RestoreTable,
    SetComment,
    SetOptions,
    TruncateTable,
)
from tablestore.sql.statements.definition import Check
from tablestore.sql.statements.materialized import AlterMaterializedTable
from tablestore.types.expression.sqlwords import name_text

_NO_KEYS = "a table keeps its key and watermark; make it anew with CREATE TABLE … LIKE"
_NO_PARTITIONS = "partitions come with their rows; INSERT INTO the table"
_TAGS = "CALL sys.create_tag(…), sys.delete_tag(…) and the like keep tags and branches"
_UNSUPPORTED_VERBS = {
    "RECOVER": _NO_PARTITIONS,
    "REPLACE": "write RENAME, MODIFY, ADD and DROP COLUMN",
    "CREATE": _TAGS,
    "DELETE": _TAGS,
}
_UNSUPPORTED_SETS = {
    "LOCATION": "a table stays where it is; make it anew there with CREATE TABLE … AS SELECT",
    "SERDE": "a table has no serde",
    "SERDEPROPERTIES": "a table has no serde",
    "FILEFORMAT": "write SET ('file.format' = '…')",
}


def alter(cursor: Cursor) -> AlterTable | AlterView | AlterFunction | AlterMaterializedTable:
    """Takes ALTER TABLE …, ALTER VIEW …, ALTER FUNCTION …, ALTER MATERIALIZED TABLE …."""
    cursor.expect("ALTER")
    if cursor.accept("MATERIALIZED"):
        return alter_materialized(cursor)
    if cursor.accept("VIEW"):
        return _view(cursor)
    if cursor.accept("FUNCTION"):
        return _function(cursor)
    if cursor.next.key in ("DATABASE", "SCHEMA", "NAMESPACE", "CATALOG"):
        raise cursor.unsupported(f"ALTER {cursor.next.key} is not supported; drop it and create it again")
    cursor.expect("TABLE")
    if_exists = cursor.if_exists()
    path = cursor.path("the name of a table")
    return AlterTable(path=path, actions=_actions(cursor), if_exists=if_exists)


def _function(cursor: Cursor) -> AlterFunction:
    if_exists = cursor.if_exists()
    path = cursor.path("the name of a function")
    cursor.expect("AS")
    class_name = cursor.string("the name of a class")
    language = cursor.name("a language") if cursor.accept("LANGUAGE") else None
    return AlterFunction(
        path=path, class_name=class_name, language=None if language is None else language.lower(), if_exists=if_exists
    )


def _view(cursor: Cursor) -> AlterView:
    if_exists = cursor.if_exists()
    path = cursor.path("the name of a view")
    action: Fragment | RenameTo | SetOptions | ResetOptions
    match cursor.expect_one("AS", "RENAME", "SET", "UNSET"):
        case "AS":
            action = cursor.query()
        case "RENAME":
            cursor.expect("TO")
            action = RenameTo(path=cursor.path("the new name of the view"))
        case "SET":
            cursor.expect("TBLPROPERTIES")
            options: dict[str, str] = {}
            for _ in cursor.listed():
                set_option(cursor, options)
            action = SetOptions(options=options)
        case _:
            cursor.expect("TBLPROPERTIES")
            cursor.if_exists()
            action = ResetOptions(keys=option_keys(cursor))
    return AlterView(path=path, action=action, if_exists=if_exists)


def analyze(cursor: Cursor) -> AnalyzeTable:
    """Takes ANALYZE TABLE …."""
    start = cursor.next.start
    cursor.expect("ANALYZE", "TABLE")
    path = cursor.path("the name of a table")
    refused = None
    if cursor.accept("PARTITION"):
        refused = "PARTITION"
        if cursor.next.key != "(":
            raise cursor.error()
        cursor.skip()
    cursor.expect("COMPUTE", "STATISTICS")
    columns: tuple[str, ...] | None = ()
    if cursor.accept("NOSCAN"):
        refused = "NOSCAN"
    elif cursor.accept("FOR"):
        if cursor.accept("ALL"):
            cursor.expect("COLUMNS")
            columns = None
        else:
            cursor.expect("COLUMNS")
            names = [cursor.name("the name of a column")]
            while cursor.accept(","):
                names.append(cursor.name("the name of a column"))
            columns = tuple(dict.fromkeys(names))
    return AnalyzeTable(path=path, columns=columns, refused=refused, text=cursor.fragment_from(start))


def restore(cursor: Cursor) -> RestoreTable:
    """Takes RESTORE [TABLE] path TO VERSION|TIMESTAMP AS OF …."""
    cursor.expect("RESTORE")
    if cursor.sees("TABLE") and cursor.sees_name(1) and not cursor.sees("TABLE", "TO"):
        cursor.take()
    path = cursor.path("the name of a table")
    cursor.expect("TO")
    kind = cursor.expect_one("VERSION", "TIMESTAMP")
    cursor.expect("AS", "OF")
    start = cursor.next.start
    value = constant(cursor).value
    if not isinstance(value, str | int) or isinstance(value, bool):
        expected = "a snapshot id or the name of a tag" if kind == "VERSION" else "a time between quotes"
        raise cursor.wrong(f"expected {expected}, found {cursor.fragment_from(start).text:.40}", start)
    return RestoreTable(path=path, kind=kind.lower(), value=value, span=cursor.span_from(start))


def truncate(cursor: Cursor) -> TruncateTable:
    """Takes TRUNCATE TABLE …."""
    cursor.expect("TRUNCATE", "TABLE")
    path = cursor.path("the name of a table")
    return TruncateTable(path=path, partition=optional_partition(cursor))


def comment_on(cursor: Cursor) -> AlterTable:
    """Takes COMMENT ON TABLE path IS 'text' | NULL."""
    cursor.expect("COMMENT", "ON")
    if cursor.sees("VIEW"):
        raise cursor.unsupported(
            "COMMENT ON VIEW is not supported, as in Spark; CREATE OR REPLACE VIEW … COMMENT '…' AS … says it anew"
        )
    if cursor.sees_name() and cursor.next.key != "TABLE":
        raise cursor.unsupported(f"COMMENT ON {cursor.next.text} is not supported; only COMMENT ON TABLE is")
    cursor.expect("TABLE")
    path = cursor.path("the name of a table")
    cursor.expect("IS")
    return AlterTable(path=path, actions=(_comment(cursor),))


def _actions(cursor: Cursor) -> tuple[AlterAction, ...]:
    if cursor.sees("PARTITION"):
        return (_of_partition(cursor),)
    verbs: dict[str, Callable[[Cursor], tuple[AlterAction, ...]]] = {
        "ADD": _add,
        "DROP": _drop,
        "RENAME": _rename,
        "MODIFY": _modify,
        "ALTER": _alter_columns,
        "CHANGE": _alter_columns,
        "SET": _set,
        "RESET": _reset,
        "UNSET": _unset,
        "COMMENT": lambda cursor: (_comment(cursor),),
        "COMPACT": lambda cursor: (Compact(),),
    }
    verb = cursor.accept_one(*verbs)
    if verb is not None:
        return verbs[verb](cursor)
    cursor.hope("PARTITION")
    if cursor.next.key in _UNSUPPORTED_VERBS:
        raise cursor.unsupported(f"{cursor.next.key} is not supported here; {_UNSUPPORTED_VERBS[cursor.next.key]}")
    raise cursor.error()


def _of_partition(cursor: Cursor) -> AlterAction:
    cursor.expect("PARTITION")
    partition = partition_spec(cursor)
    match cursor.accept_one("COMPACT", "SET", "RESET"):
        case "COMPACT":
            return Compact(partition=partition)
        case "SET":
            return _set_options(cursor, partition)
        case "RESET":
            return _reset_options(cursor, partition)
    if cursor.next.key == "RENAME":
        raise cursor.unsupported("a partition keeps its name; INSERT its rows with other values, and drop it")
    raise cursor.error()


def _refuse_constraints(cursor: Cursor) -> None:
    constraint = cursor.sees("PRIMARY", "KEY") or (cursor.next.key == "CONSTRAINT" and cursor.sees_name(1))
    if constraint or cursor.next.key == "WATERMARK":
        raise cursor.unsupported(_NO_KEYS)


def _columns(cursor: Cursor, take_action: Callable[[], AlterAction], *, plural: bool) -> tuple[AlterAction, ...]:
    """Takes one column or several: in brackets, and behind COLUMNS also without."""
    if cursor.sees("("):
        return tuple([take_action() for _ in cursor.listed()])
    actions = [take_action()]
    while plural and cursor.accept(","):
        actions.append(take_action())
    return tuple(actions)


def _column_word(cursor: Cursor) -> bool:
    """Takes COLUMN or COLUMNS, unless it is itself a column's name; True if several may follow."""
    if cursor.next.key in ("COLUMN", "COLUMNS") and (cursor.sees_name(1) or cursor.ahead(1).key == "("):
        cursor.take()
        return True
    cursor.hope("COLUMN")
    return False


def _add(cursor: Cursor) -> tuple[AlterAction, ...]:
    if cursor.sees("CHECK", "(") or (cursor.sees("CONSTRAINT") and cursor.sees_name(1) and cursor.ahead(2).key in ("CHECK", "NOT")):
        return (_added_constraint(cursor),)
    _refuse_constraints(cursor)
    if cursor.sees("PARTITION") or cursor.sees("IF", "NOT", "EXISTS", "PARTITION"):
        raise cursor.unsupported(_NO_PARTITIONS)
    plural = _column_word(cursor)
    if cursor.sees("IF", "NOT", "EXISTS"):
        raise cursor.unsupported("ADD COLUMN IF NOT EXISTS is not supported; look with DESCRIBE")
    return _columns(cursor, lambda: _added(cursor), plural=plural)


def _added_constraint(cursor: Cursor) -> AddConstraint:
    name = cursor.name("the name of the constraint") if cursor.accept("CONSTRAINT") else None
    if cursor.accept("NOT"):
        # PostgreSQL's form.
        cursor.expect("NULL")
        column = cursor.name("a column")
        return AddConstraint(check=Check(condition=Fragment(f"{name_text(column)} IS NOT NULL"), name=name, column=column))
    return AddConstraint(check=check_constraint(cursor, name))


def _added(cursor: Cursor) -> AddColumnAction:
    above: list[str] = []
    while cursor.ahead(1).key == ".":
        above.append(cursor.name("a column"))
        cursor.expect(".")
    column = physical_column(cursor)
    return AddColumnAction(path=(*above, column.name), column=column, place=_place(cursor))


def _place(cursor: Cursor) -> ColumnPlacement | None:
    if cursor.accept("FIRST"):
        return ColumnPlacement()
    return ColumnPlacement(after=cursor.dotted("a column").parts) if cursor.accept("AFTER") else None


def _drop(cursor: Cursor) -> tuple[AlterAction, ...]:
    if cursor.sees("CONSTRAINT") and cursor.sees_name(1):
        cursor.take()
        if_exists, start = cursor.if_exists(), cursor.next.start
        name = cursor.name("the name of a constraint")
        return (DropConstraint(name=name, if_exists=if_exists, span=cursor.span_from(start)),)
    _refuse_constraints(cursor)
    start = cursor.at
    if_exists = cursor.if_exists()
    if cursor.sees("PARTITION", "("):
        return (_drop_partitions(cursor, if_exists=if_exists),)
    cursor.hope("PARTITION")
    if if_exists:
        cursor.at = start
    plural = _column_word(cursor)
    if_exists = cursor.if_exists()

    def take_action() -> DropColumnAction:
        path = cursor.dotted("a column")
        return DropColumnAction(path=path.parts, if_exists=if_exists, span=path.span)

    return _columns(cursor, take_action, plural=plural)


def _drop_partitions(cursor: Cursor, *, if_exists: bool) -> DropPartitions:
    cursor.expect("PARTITION")
    partitions = [partition_spec(cursor)]
    while cursor.accept(","):
        cursor.expect("PARTITION")
        partitions.append(partition_spec(cursor))
    cursor.accept("PURGE")
    return DropPartitions(partitions=tuple(partitions), if_exists=if_exists)


def _rename(cursor: Cursor) -> tuple[AlterAction, ...]:
    if cursor.accept("TO"):
        return (RenameTo(path=cursor.path("the new name of the table")),)
    _column_word(cursor)
    path = cursor.dotted("a column")
    cursor.expect("TO")
    return (RenameColumnAction(path=path.parts, new_name=cursor.name("the new name of the column"), span=path.span),)


def _modify(cursor: Cursor) -> tuple[AlterAction, ...]:
    _refuse_constraints(cursor)
    plural = _column_word(cursor)

    def take_action() -> ModifyColumn:
        path = cursor.dotted("a column")
        return _changed(cursor, ModifyColumn(path=path.parts, type=data_type(cursor), span=path.span))

    return _columns(cursor, take_action, plural=plural)


def _alter_columns(cursor: Cursor) -> tuple[AlterAction, ...]:
    plural = _column_word(cursor)
    return _columns(cursor, lambda: _altered(cursor), plural=plural)


def _altered(cursor: Cursor) -> ModifyColumn:
    path = cursor.dotted("a column")
    column = ModifyColumn(path=path.parts, span=path.span)
    if cursor.accept("TYPE") or cursor.accept("SET", "DATA", "TYPE"):
        return _changed(cursor, replace(column, type=data_type(cursor)))
    if cursor.sees_name() and cursor.sees_name(1) and cursor.next.text == path.parts[-1]:
        # CHANGE COLUMN a a INT: the name stands there twice.
        cursor.take()
        return _changed(cursor, replace(column, type=data_type(cursor)))
    return _changed(cursor, column)


def _changed(cursor: Cursor, column: ModifyColumn) -> ModifyColumn:
    before = column
    while True:
        if cursor.accept("SET"):
            if cursor.accept("NOT"):
                cursor.expect("NULL")
                column = replace(column, nullable=False)
            else:
                cursor.expect("DEFAULT")
                column = _with_default(cursor, column)
        elif cursor.accept("DROP"):
            if cursor.accept("DEFAULT"):
                column = replace(column, drop_default=True)
            else:
                cursor.expect("NOT", "NULL")
                column = replace(column, nullable=True)
        elif cursor.accept("COMMENT"):
            column = replace(column, comment=cursor.string("a comment"))
        elif column.type is not None and cursor.accept("DEFAULT"):
            column = _with_default(cursor, column)
        elif column.type is not None and (nullable := nullability(cursor)) is not None:
            column = replace(column, nullable=nullable)
        elif (place := _place(cursor)) is not None:
            column = replace(column, place=place)
        elif column == before and column.type is None:
            cursor.hope("TYPE")
            raise cursor.error()
        else:
            return column


def _with_default(cursor: Cursor, column: ModifyColumn) -> ModifyColumn:
    default = default_value(cursor)
    return replace(column, default=default, drop_default=default is None)


def _set(cursor: Cursor) -> tuple[AlterAction, ...]:
    if cursor.next.key == "COMMENT" and (cursor.sees_text(1) or cursor.ahead(1).key == "NULL"):
        cursor.take()
        return (_comment(cursor),)
    return (_set_options(cursor, None),)


def _set_options(cursor: Cursor, partition: PartitionSpec | None) -> SetOptions:
    if cursor.next.key in _UNSUPPORTED_SETS:
        raise cursor.unsupported(f"SET {cursor.next.key} is not supported; {_UNSUPPORTED_SETS[cursor.next.key]}")
    options: dict[str, str] = {}
    if cursor.accept("TBLPROPERTIES") or cursor.sees("("):
        for _ in cursor.listed():
            set_option(cursor, options)
    else:
        cursor.hope("(")
        set_option(cursor, options)
        while cursor.accept(","):
            set_option(cursor, options)
    return SetOptions(options=options, partition=partition)


def _reset(cursor: Cursor) -> tuple[AlterAction, ...]:
    return (_reset_options(cursor, None),)


def _reset_options(cursor: Cursor, partition: PartitionSpec | None) -> ResetOptions:
    if cursor.sees("("):
        return ResetOptions(keys=option_keys(cursor), partition=partition)
    cursor.hope("(")
    keys = [option_key(cursor)]
    while cursor.accept(","):
        keys.append(option_key(cursor))
    return ResetOptions(keys=tuple(keys), partition=partition)


def _unset(cursor: Cursor) -> tuple[AlterAction, ...]:
    if cursor.accept("COMMENT"):
        return (SetComment(comment=None),)
    cursor.expect("TBLPROPERTIES")
    # A key that is not set is no error to either spelling.
    cursor.if_exists()
    return (ResetOptions(keys=option_keys(cursor)),)


def _comment(cursor: Cursor) -> SetComment:
    return SetComment(comment=None if cursor.accept("NULL") else cursor.string("a comment"))
