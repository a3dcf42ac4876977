"""What changes a table that is there: text -> value."""

import pytest

from tablestore.sql.parse.statement import parse_statement
from tablestore.sql.source import Path
from tablestore.sql.statements.alter import (
    AddColumnAction,
    AlterAction,
    AlterTable,
    ColumnPlacement,
    Compact,
    DropColumnAction,
    DropPartitions,
    ModifyColumn,
    RenameColumnAction,
    RenameTo,
    ResetOptions,
    RestoreTable,
    SetComment,
    SetOptions,
    TruncateTable,
)
from tablestore.sql.statements.definition import PhysicalColumn
from tablestore.types.typestring import parse_type

TABLE = Path(("t",))
INT, BIGINT, STRING = parse_type("INT"), parse_type("BIGINT"), parse_type("STRING")


def added(
    name: str, type: object = INT, *, above: tuple[str, ...] = (), place: ColumnPlacement | None = None, **more: str
) -> AddColumnAction:
    column = PhysicalColumn(name=name, type=type, **more)  # type: ignore[arg-type]
    return AddColumnAction(path=(*above, name), column=column, place=place)


def modified(name: str, **more: object) -> ModifyColumn:
    return ModifyColumn(path=tuple(name.split(".")), **more)  # type: ignore[arg-type]


ACTIONS: list[tuple[str, tuple[AlterAction, ...]]] = [
    ("ADD a INT", (added("a"),)),
    ("ADD COLUMN a INT", (added("a"),)),
    ("ADD COLUMNS a INT, b STRING", (added("a"), added("b", STRING))),
    ("ADD COLUMNS (a INT, b STRING)", (added("a"), added("b", STRING))),
    (
        "ADD (a INT COMMENT 'x' FIRST, s.b STRING AFTER s.c)",
        (
            added("a", comment="x", place=ColumnPlacement()),
            added("b", STRING, above=("s",), place=ColumnPlacement(after=("s", "c"))),
        ),
    ),
    (
        "ADD a INT NOT NULL DEFAULT 1 AFTER b",
        (added("a", parse_type("INT NOT NULL"), default="1", place=ColumnPlacement(after=("b",))),),
    ),
    ("ADD COLUMN column INT", (added("column"),)),
    ("ADD COLUMN a TIMESTAMP", (added("a", parse_type("TIMESTAMP(6)")),)),
    ("DROP a", (DropColumnAction(path=("a",)),)),
    ("DROP COLUMN s.a", (DropColumnAction(path=("s", "a")),)),
    ("DROP COLUMNS (a, b)", (DropColumnAction(path=("a",)), DropColumnAction(path=("b",)))),
    ("DROP COLUMNS a, b", (DropColumnAction(path=("a",)), DropColumnAction(path=("b",)))),
    ("DROP (a, b)", (DropColumnAction(path=("a",)), DropColumnAction(path=("b",)))),
    ("DROP COLUMN IF EXISTS a", (DropColumnAction(path=("a",), if_exists=True),)),
    ("DROP IF EXISTS a", (DropColumnAction(path=("a",), if_exists=True),)),
    ("DROP COLUMN", (DropColumnAction(path=("COLUMN",)),)),
    ("DROP partition", (DropColumnAction(path=("partition",)),)),
    ("DROP PARTITION (a = 1)", (DropPartitions(partitions=({"a": "1"},)),)),
    (
        "DROP IF EXISTS PARTITION (a = 1, b = 'x'), PARTITION (a = NULL) PURGE",
        (DropPartitions(partitions=({"a": "1", "b": "x"}, {"a": None}), if_exists=True),),
    ),
    ("RENAME a TO b", (RenameColumnAction(path=("a",), new_name="b"),)),
    ("RENAME COLUMN s.a TO `b.c`", (RenameColumnAction(path=("s", "a"), new_name="b.c"),)),
    ("RENAME TO d.u", (RenameTo(path=Path(("d", "u"))),)),
    ("MODIFY a BIGINT", (modified("a", type=BIGINT),)),
    (
        "MODIFY COLUMN a BIGINT NOT NULL COMMENT 'x' FIRST",
        (modified("a", type=BIGINT, nullable=False, comment="x", place=ColumnPlacement()),),
    ),
    (
        "MODIFY (a BIGINT NULL, b STRING DEFAULT 'x' AFTER a)",
        (
            modified("a", type=BIGINT, nullable=True),
            modified("b", type=STRING, default="x", place=ColumnPlacement(after=("a",))),
        ),
    ),
    ("ALTER COLUMN a TYPE BIGINT", (modified("a", type=BIGINT),)),
    (
        "ALTER COLUMN s.a TYPE BIGINT COMMENT 'x' AFTER s.b",
        (modified("s.a", type=BIGINT, comment="x", place=ColumnPlacement(after=("s", "b"))),),
    ),
    ("ALTER a COMMENT 'x'", (modified("a", comment="x"),)),
    ("ALTER COLUMN a SET NOT NULL", (modified("a", nullable=False),)),
    ("ALTER COLUMN a DROP NOT NULL", (modified("a", nullable=True),)),
    ("ALTER COLUMN a SET DEFAULT -1", (modified("a", default="-1"),)),
    ("ALTER COLUMN a SET DEFAULT NULL", (modified("a", drop_default=True),)),
    ("ALTER COLUMN a DROP DEFAULT", (modified("a", drop_default=True),)),
    ("ALTER COLUMN a FIRST", (modified("a", place=ColumnPlacement()),)),
    ("ALTER COLUMN a AFTER b", (modified("a", place=ColumnPlacement(after=("b",))),)),
    ("ALTER COLUMN a COMMENT 'x', b FIRST", (modified("a", comment="x"), modified("b", place=ColumnPlacement()))),
    ("CHANGE COLUMN a a BIGINT COMMENT 'x'", (modified("a", type=BIGINT, comment="x"),)),
    ("SET ('a' = 'b', c.d = 4)", (SetOptions(options={"a": "b", "c.d": "4"}),)),
    ("SET TBLPROPERTIES ('a' = 'b')", (SetOptions(options={"a": "b"}),)),
    ("SET 'change-tracking' = 'false'", (SetOptions(options={"change-tracking": "false"}),)),
    ("SET change-tracking = false", (SetOptions(options={"change-tracking": "false"}),)),
    ("SET ('change-tracking' = 'false')", (SetOptions(options={"change-tracking": "false"}),)),
    ("RESET ('a', b.c)", (ResetOptions(keys=("a", "b.c")),)),
    ("RESET 'a'", (ResetOptions(keys=("a",)),)),
    ("UNSET TBLPROPERTIES ('a')", (ResetOptions(keys=("a",)),)),
    ("UNSET TBLPROPERTIES IF EXISTS (a, 'b')", (ResetOptions(keys=("a", "b")),)),
    ("COMMENT 'x'", (SetComment(comment="x"),)),
    ("SET COMMENT 'x'", (SetComment(comment="x"),)),
    ("SET comment = 'x'", (SetOptions(options={"comment": "x"}),)),
    ("UNSET COMMENT", (SetComment(comment=None),)),
    ("COMPACT", (Compact(),)),
    ("PARTITION (a = 1, b = DATE '2024-01-31') COMPACT", (Compact(partition={"a": "1", "b": "2024-01-31"}),)),
    (
        "PARTITION (a = 'x') SET 'change-tracking' = 'false'",
        (SetOptions(options={"change-tracking": "false"}, partition={"a": "x"}),),
    ),
    (
        "PARTITION (a = 'x') SET ('change-tracking' = 'true')",
        (SetOptions(options={"change-tracking": "true"}, partition={"a": "x"}),),
    ),
    ("PARTITION (a = -1.50) RESET ('change-tracking')", (ResetOptions(keys=("change-tracking",), partition={"a": "-1.50"}),)),
    ("PARTITION (a = 10L, b = true) COMPACT", (Compact(partition={"a": "10", "b": "true"}),)),
]


@pytest.mark.parametrize(("text", "actions"), ACTIONS, ids=[text for text, _ in ACTIONS])
def test_text_becomes_its_actions(text: str, actions: tuple[AlterAction, ...]) -> None:
    assert parse_statement(f"ALTER TABLE t {text}") == AlterTable(path=TABLE, actions=actions)


def test_the_other_statements_become_their_values() -> None:
    assert parse_statement("ALTER TABLE IF EXISTS c.d.t COMPACT;") == AlterTable(
        path=Path(("c", "d", "t")), actions=(Compact(),), if_exists=True
    )
    assert parse_statement("RESTORE TABLE t TO VERSION AS OF 3") == RestoreTable(path=TABLE, kind="version", value=3)
    assert parse_statement("RESTORE t TO VERSION AS OF 'v1'") == RestoreTable(path=TABLE, kind="version", value="v1")
    assert parse_statement("RESTORE TABLE t TO TIMESTAMP AS OF TIMESTAMP '2026-01-31'") == RestoreTable(
        path=TABLE, kind="timestamp", value="2026-01-31"
    )
    assert parse_statement("TRUNCATE TABLE t") == TruncateTable(path=TABLE)
    assert parse_statement("TRUNCATE TABLE t PARTITION (a = 1)") == TruncateTable(path=TABLE, partition={"a": "1"})
    assert parse_statement("COMMENT ON TABLE t IS 'x'") == AlterTable(path=TABLE, actions=(SetComment(comment="x"),))
    assert parse_statement("COMMENT ON TABLE t IS NULL") == AlterTable(path=TABLE, actions=(SetComment(comment=None),))
