"""Applies changes of constraints to a schema. Whether the rows that are there hold a new one, the store looks at
(:mod:`tablestore.store.commit.alterschema`)."""

from tablestore.errors import AlreadyExistsError, NotFoundError, TablestoreError
from tablestore.names import did_you_mean
from tablestore.options import CHECK_PREFIX, checks_of
from tablestore.types.evolution.columnchanges import State
from tablestore.types.evolution.schemachanges import AddCheck, DropCheck
from tablestore.types.filter.constraints import parse_constraints, stored_text
from tablestore.types.schema import TableSchema


def add(state: State, change: AddCheck) -> None:
    """Apply an AddCheck. Raises AlreadyExistsError, and as :func:`stored_text`."""
    text = stored_text(change.name, change.condition, state.fields)
    names = checks_of(state.schema.options)
    if same := [name for name in names if name.casefold() == change.name.casefold()]:
        raise AlreadyExistsError(
            f"there is a constraint {same[0]!r} already, CHECK ({names[same[0]]:.200}); choose another name, or drop that one",
            kind="constraint-exists",
        )
    state.change(options={**state.schema.options, f"{CHECK_PREFIX}{change.name}": text})


def drop(state: State, change: DropCheck) -> None:
    """Apply a DropCheck. Raises NotFoundError."""
    names = list(checks_of(state.schema.options))
    if change.name not in names:
        there = f"; there is {', '.join(map(repr, names))}" if names else "; the table has none"
        raise NotFoundError(
            f"there is no constraint {change.name!r:.100}{did_you_mean(str(change.name), names)}{there}", kind="no-such-constraint"
        )
    key = f"{CHECK_PREFIX}{change.name}"
    state.change(options={other: text for other, text in state.schema.options.items() if other != key})


def check_all(old: TableSchema, new: TableSchema) -> None:
    """Refuse constraints that the columns do not bear any more. Those that could not be parsed before are not held against it."""
    if not checks_of(new.options):
        return
    try:
        parse_constraints(old.options, old.fields)
    except TablestoreError:
        return
    parse_constraints(new.options, new.fields)
