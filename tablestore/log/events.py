"""Events in a stream of changes: the table was replaced, or its schema has changed.

    Restarted       rows of the table were replaced without a record of which: all of it follows, drop what you hold
    SchemaLanded    from here on changes may be of a newer schema than the handle that reads them

An event is a batch without rows, ``batch.event``, at its place among the others. It also comes where no rows follow (a table that
was emptied). A follower whose ``commit`` or stored position is before it meets it again.

After SchemaLanded reading goes on with the columns of the handle: those that came are left out, renamed ones keep the handle's
name, dropped ones are null. To have the new ones, open the table again and go on with the position of the event, or under the same
name. That is also the only way on where a column that is read was widened: ConflictError of kind ``schema-changed``.
"""

from dataclasses import dataclass

from tablestore.errors import ConflictError
from tablestore.types.schema import TableSchema
from tablestore.types.typestring import type_to_sql


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarted:
    """The table's rows as of ``snapshot_id`` come next, all of them; ``reason`` says what has replaced those before."""

    snapshot_id: int
    reason: str

    @property
    def name(self) -> str:
        """The name on the command line."""
        return "restart"

    def __str__(self) -> str:
        return f"{self.reason}: all rows as of snapshot {self.snapshot_id} come next, drop those before"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaLanded:
    """Snapshot ``snapshot_id`` is the first one of a schema with other columns; ``changes`` says which, one by one."""

    snapshot_id: int
    schema_id: int
    changes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name on the command line."""
        return "schema"

    def __str__(self) -> str:
        return (
            f"schema {self.schema_id} landed with snapshot {self.snapshot_id} ({'; '.join(self.changes)}): call "
            "table.consume() again and go on from here to read its columns"
        )


Event = Restarted | SchemaLanded


def schema_landed(before: TableSchema, after: TableSchema, snapshot_id: int) -> SchemaLanded | None:
    """The event for a follower that reads as ``before``, of a snapshot of ``after``; None if the columns are the same."""
    if before.fields == after.fields:
        return None
    old, new = {field.id: field for field in before.fields}, {field.id: field for field in after.fields}
    changes = [f"column {field.name} came" for field in after.fields if field.id not in old]
    changes += [f"column {field.name} went" for field in before.fields if field.id not in new]
    for field_id, was in old.items():
        if (field := new.get(field_id)) is None:
            continue
        if was.name != field.name:
            changes.append(f"column {was.name} is {field.name} now")
        if was.type != field.type:
            changes.append(f"column {field.name} is {type_to_sql(field.type)} now, it was {type_to_sql(was.type)}")
    return SchemaLanded(snapshot_id=snapshot_id, schema_id=after.id, changes=tuple(changes) or ("columns were moved or commented",))


def does_not_fit(where: str, schema_id: int, handle: int, error: Exception) -> ConflictError:
    """A column of a newer schema is too wide for the stream that reads it."""
    return ConflictError(
        f"{where}: schema {schema_id} landed, whose values do not go into the columns of schema {handle}, which this stream "
        f"reads by ({error}); call table.consume() again with the position of the last batch, or the same "
        "consumer_id",
        kind="schema-changed",
    )
