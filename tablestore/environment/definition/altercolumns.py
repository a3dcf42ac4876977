"""Translates actions of ALTER TABLE on columns, options and comments into changes of a managed table's schema.

Names of columns and of nested fields are looked up as queries do: in any case of letters, and the stored name is taken. Stored
columns change as :mod:`tablestore.types.evolution.schemachanges` says. Columns that are not stored live in options: a list
of all columns in their order is altered beside, and what is new in its options is set.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tablestore.environment.definition.partitions import partition_of
from tablestore.environment.definition.tabledefinition import check_own_options, named_check, why_same
from tablestore.environment.managed.nonphysical import (
    Unstored,
    UnstoredColumn,
    in_order,
    mentions,
    read_unstored,
    renumbered,
    unstored_options,
)
from tablestore.environment.session.objects import CONNECTOR
from tablestore.environment.source import Source
from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnsupportedError
from tablestore.options import KEY_CONSTRAINT, SCHEMA_PREFIX, checks_of
from tablestore.sql.source import Span
from tablestore.sql.statements.alter import (
    AddColumnAction,
    AddConstraint,
    AlterAction,
    ColumnPlacement,
    DropColumnAction,
    DropConstraint,
    ModifyColumn,
    RenameColumnAction,
    ResetOptions,
    SetComment,
    SetOptions,
)
from tablestore.table.table import Table
from tablestore.types.datatypes import RowType, with_nullable
from tablestore.types.evolution import schemachanges as to
from tablestore.types.evolution.fieldpaths import type_at

Names = list[str | UnstoredColumn]
ColumnAction = AddColumnAction | DropColumnAction | RenameColumnAction | ModifyColumn | SetOptions | ResetOptions | SetComment


def schema_changes(table: Table, actions: Sequence[AlterAction], source: Source) -> list[to.SchemaChange]:
    """The changes, all to be applied together. Raises InvalidInputError, UnsupportedError, AlreadyExistsError."""
    return _Alteration(table, source).changes(actions)


class _Alteration:
    def __init__(self, table: Table, source: Source) -> None:
        self._table, self._source = table, source
        self._unstored = read_unstored(table.options(), table.table_schema.field_names)
        self._columns: Names = in_order(table.table_schema.field_names, self._unstored)

    def changes(self, actions: Sequence[AlterAction]) -> list[to.SchemaChange]:
        alterations = [change for action in actions for change in self._changes(action)]
        before = unstored_options(self._unstored)
        after = unstored_options(Unstored(columns=renumbered(self._columns), watermark=self._unstored.watermark))
        alterations += [to.RemoveOption(key) for key in before if key not in after]
        alterations += [to.SetOption(key, value) for key, value in after.items() if before.get(key) != value]
        return alterations

    def _changes(self, action: AlterAction) -> Iterator[to.SchemaChange]:
        match action:
            case AddColumnAction():
                yield from self._add(replace(action, path=self._parent_known(action.path), place=self._place_known(action)))
            case DropColumnAction():
                yield from self._drop(replace(action, path=self._known(action.path)))
            case RenameColumnAction():
                yield from self._rename(replace(action, path=self._known(action.path)))
            case ModifyColumn():
                yield from self._modify(replace(action, path=self._known(action.path), place=self._place_known(action)))
            case SetOptions():
                spec = None if action.partition is None else partition_of(self._table, action.partition, self._source)
                for key, value in action.options.items():
                    self._check_key(key)
                    yield to.SetOption(key, value, partition=spec)
            case ResetOptions():
                if action.partition is not None:
                    raise UnsupportedError(
                        "PARTITION (…) RESET is not supported: a partition has change-tracking only; SET it to 'true'",
                        kind="unsupported",
                    )
                for key in action.keys:
                    self._check_key(key)
                    yield to.RemoveOption(key)
            case AddConstraint():
                names = checks_of(self._table.options())
                name, text = named_check(action.check, names, self._table.table_schema.fields, self._source)
                if name == self._table.options().get(KEY_CONSTRAINT):
                    raise AlreadyExistsError(
                        f"there is a constraint {name!r} already, the primary key; choose another name", kind="constraint-exists"
                    )
                yield to.AddCheck(name, text)
            case DropConstraint():
                if action.name == self._table.options().get(KEY_CONSTRAINT):
                    raise UnsupportedError(
                        self._source.mark(
                            f"the constraint {action.name!r} is the primary key, which a table keeps; make it anew with CREATE "
                            "TABLE … LIKE",
                            action.span,
                        ),
                        kind="unsupported",
                    )
                names = checks_of(self._table.options())
                # As names of columns: exactly, or else in other letters where that is one.
                name = next((one for one in names if one.casefold() == action.name.casefold()), action.name)
                if not action.if_exists or name in names:
                    yield to.DropCheck(name)
            case SetComment():
                yield to.SetTableComment(action.comment)
            case _:
                raise UnsupportedError(
                    "an ALTER TABLE with several actions takes actions on columns, options and comments only: give RENAME TO, "
                    "DROP PARTITION and COMPACT a statement of their own",
                    kind="unsupported",
                )

    def _add(self, action: AddColumnAction) -> Iterator[to.SchemaChange]:
        column = action.column
        place = action.place
        first, after = place is not None and place.after is None, place.after[-1] if place and place.after else None
        if len(action.path) == 1:
            self._check_free(column.name, self._names(), column.span)
            self._columns.insert(self._place(place), column.name)
        else:
            self._check_free(column.name, self._siblings(action.path), column.span)
        # A neighbour that is not stored: the stored one before it is the neighbour, or none.
        if after is not None and len(action.path) == 1 and self._is_unstored(after):
            after = self._stored_before(column.name)
            first = after is None
        yield to.AddColumn(action.path, column.type, comment=column.comment, default=column.default, first=first, after=after)

    def _drop(self, action: DropColumnAction) -> Iterator[to.SchemaChange]:
        name = action.path[0]
        if action.if_exists and not self._exists(action.path):
            return
        if len(action.path) == 1 and name in self._names():
            self._check_unused(name, "dropped")
            unstored = self._is_unstored(name)
            del self._columns[self._names().index(name)]
            if unstored:
                return
        yield to.DropColumn(action.path)

    def _rename(self, action: RenameColumnAction) -> Iterator[to.SchemaChange]:
        name = action.path[0]
        siblings = self._names() if len(action.path) == 1 else self._siblings(action.path)
        self._check_free(action.new_name, [one for one in siblings if one != action.path[-1]], action.span)
        if len(action.path) == 1 and name in self._names():
            self._check_unused(name, "renamed")
            place = self._names().index(name)
            column = self._columns[place]
            if isinstance(column, UnstoredColumn):
                raise UnsupportedError(
                    self._source.mark(f"column {name!r} is not stored: drop it, and create it under its new name", action.span),
                    kind="unsupported",
                )
            self._columns[place] = action.new_name
        yield to.RenameColumn(action.path, to=action.new_name)

    def _modify(self, action: ModifyColumn) -> Iterator[to.SchemaChange]:
        if len(action.path) == 1 and self._is_unstored(action.path[0]):
            raise UnsupportedError(
                self._source.mark(f"column {action.path[0]!r} is not stored and cannot be modified: drop it", action.span),
                kind="unsupported",
            )
        if action.type is not None:
            yield to.ChangeType(action.path, with_nullable(action.type, True))
        if action.nullable is not None:
            yield to.ChangeNullability(action.path, nullable=action.nullable)
        if action.comment is not None:
            yield to.ChangeComment(action.path, action.comment)
        if action.default is not None or action.drop_default:
            yield to.ChangeDefault(action.path, action.default)
        if action.place is not None:
            after = action.place.after[-1] if action.place.after else None
            if len(action.path) == 1 and action.path[0] in self._names():
                self._columns.remove(action.path[0])
                self._columns.insert(self._place(action.place), action.path[0])
                after = self._stored_before(action.path[0]) if after is not None and self._is_unstored(after) else after
            yield to.MoveColumn(action.path, first=after is None, after=after)

    def _check_key(self, key: str) -> None:
        check_own_options({key: ""}, self._source)
        if key.startswith(SCHEMA_PREFIX) or key == CONNECTOR:
            why = "a managed table has no connector" if key == CONNECTOR else "that is where columns that are not stored are kept"
            raise InvalidInputError(
                self._source.mark(f"the option {key!r} cannot be altered: {why}", self._source.word(key)), kind="invalid-option"
            )

    def _check_free(self, name: str, siblings: Sequence[str], span: Span) -> None:
        # SQL ignores upper and lower case.
        if (sibling := next((one for one in siblings if one.casefold() == name.casefold()), None)) is not None:
            raise AlreadyExistsError(
                self._source.mark(f"there is a column {sibling!r} already{why_same(name, sibling)}; choose another name", span),
                kind="duplicate-column",
            )

    def _known(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """The path in the letters that are stored; from a part on that nobody knows, as it is. Raises InvalidInputError."""
        known: tuple[str, ...] = ()
        for name in path:
            siblings = self._names() if not known else self._siblings((*known, name))
            stored = self._stored_name(name, siblings)
            known = (*known, name if stored is None else stored)
        return known

    def _parent_known(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """The path of what is new: its parent in the letters that are stored."""
        return (*self._known(path[:-1]), path[-1])

    def _place_known(self, action: AddColumnAction | ModifyColumn) -> ColumnPlacement | None:
        """The place of a column with its neighbour in the letters that are stored."""
        place = action.place
        if place is None or place.after is None:
            return place
        return replace(place, after=self._known((*action.path[:-1], *place.after[-1:])))

    def _stored_name(self, name: str, siblings: Sequence[str]) -> str | None:
        """The one of ``siblings`` that a name means; None if there is none. Raises InvalidInputError where it may be several."""
        if name in siblings:
            return name
        same = [one for one in siblings if one.casefold() == name.casefold()]
        if len(same) > 1:
            raise InvalidInputError(
                self._source.mark(
                    f"column {name!r} may be {' or '.join(map(repr, same))}: write one of them in its letters",
                    self._source.word(name),
                ),
                kind="ambiguous-column",
            )
        return same[0] if same else None

    def _exists(self, path: tuple[str, ...]) -> bool:
        return path[-1] in (self._names() if len(path) == 1 else self._siblings(path))

    def _siblings(self, path: tuple[str, ...]) -> list[str]:
        """The names beside a nested field; none where its place is no ROW, which is refused where the schema changes."""
        try:
            data_type = type_at(self._table.table_schema.fields, path[:-1])
        except NotFoundError:
            return []
        return [field.name for field in data_type.fields] if isinstance(data_type, RowType) else []

    def _check_unused(self, name: str, action: str) -> None:
        users = {one.name: one.expression for one in self._columns if isinstance(one, UnstoredColumn) and one.expression}
        watermark = self._unstored.watermark
        if watermark is not None:
            users["the watermark"] = f"{watermark.column} {watermark.expression}"
        for user, expression in users.items():
            if user != name and mentions(expression, name):
                raise InvalidInputError(
                    self._source.mark(
                        f"column {name!r} cannot be {action}: {user} is computed from it ({expression}); drop that first",
                        self._source.word(name),
                    ),
                    kind="column-in-use",
                )

    def _names(self) -> list[str]:
        return [one if isinstance(one, str) else one.name for one in self._columns]

    def _is_unstored(self, name: str) -> bool:
        return any(isinstance(one, UnstoredColumn) and one.name == name for one in self._columns)

    def _place(self, place: ColumnPlacement | None) -> int:
        if place is None:
            return len(self._columns)
        names = self._names()
        # A neighbour that does not exist is refused where the schema changes.
        return 0 if place.after is None or place.after[-1] not in names else names.index(place.after[-1]) + 1

    def _stored_before(self, name: str) -> str | None:
        names = self._names()
        before = [one for one in self._columns[: names.index(name)] if isinstance(one, str)]
        return before[-1] if before else None
