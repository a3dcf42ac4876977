"""Parses the constraints of a table, and finds rows that violate them.

    tablestore.constraint.positive = price > 0        CHECK (price > 0) under the name "positive"

A constraint is a condition over columns in the language of filters, which Arrow computes without an engine of SQL. As in SQL a row
violates it where it is FALSE: an unknown result (a comparison with NULL) is none. Floats are ordered as in filters: NaN is greater
than every other number, -0.0 equals 0.0.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.options import CHECK_PREFIX, checks_of
from tablestore.types.arrays import Mask, mask_of
from tablestore.types.datatypes import Field
from tablestore.types.filter.filters import parse_filter
from tablestore.types.filter.predicate import Not, Predicate, columns, evaluate

CONSTRAINT = "constraint"
"""The kind of the error of a row that violates one."""
INVALID = "invalid-constraint"
_LONGEST_NAME, _LONGEST_TEXT = 128, 8_192
_SHOWN_VALUE, _SHOWN_TEXT = 60, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A condition that every row holds. ``columns``: those that it looks at, in the order of the table."""

    name: str
    text: str
    predicate: Predicate
    columns: tuple[str, ...]

    @property
    def violation(self) -> Predicate:
        """The condition of the rows that violate it."""
        return Not(self.predicate)

    def __str__(self) -> str:
        text = self.text if len(self.text) <= _SHOWN_TEXT else f"{self.text[:_SHOWN_TEXT]}…"
        return f"constraint {self.name!r}, CHECK ({text})"


def parse_constraint(name: str, text: str, fields: Sequence[Field]) -> Constraint:
    """The constraint of a text. Raises InvalidInputError, UnsupportedError for conditions that need an engine of SQL."""
    check_constraint_name(name)
    if not isinstance(text, str) or not text.strip():
        raise InvalidInputError(
            f"expected a condition as SQL text for the constraint {name!r}, such as 'price > 0', found {text!r:.80}", kind=INVALID
        )
    if len(text) > _LONGEST_TEXT:
        raise InvalidInputError(
            f"expected at most {_LONGEST_TEXT} characters for the constraint {name!r}, found {len(text)}; write several",
            kind=INVALID,
        )
    try:
        predicate = parse_filter(text, fields)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"the constraint {name!r}, CHECK ({text:.200}), is not one that every writer could check: {error.message}",
            kind=INVALID,
        ) from error
    except TablestoreError as error:
        raise InvalidInputError(f"the constraint {name!r}, CHECK ({text:.200}): {error.message}", kind=INVALID) from error
    assert predicate is not None, "a text is a condition"
    names = columns(predicate)
    if not names:
        raise InvalidInputError(
            f"the constraint {name!r}, CHECK ({text:.200}), looks at no column: it would refuse all rows or none; name a column",
            kind=INVALID,
        )
    return Constraint(
        name=name, text=text, predicate=predicate, columns=tuple(field.name for field in fields if field.name in names)
    )


def stored_text(name: str, text: str, fields: Sequence[Field]) -> str:
    """The text by which a constraint is kept: on one line and without comments where that means the same. Raises as
    :func:`parse_constraint`."""
    constraint = parse_constraint(name, text, fields)
    text = text.strip()
    if text.isprintable() and "--" not in text and "/*" not in text:
        return text
    # A reader of its own; sqlglot takes a while to load.
    from tablestore.types.expression.sqltree import parse_tree

    plain = parse_tree(text, what="constraint", example='"price > 0"').sql(dialect="spark", comments=False)
    try:
        return plain if parse_filter(plain, fields) == constraint.predicate else text
    except TablestoreError:
        return text


def parse_constraints(options: Mapping[str, str], fields: Sequence[Field]) -> tuple[Constraint, ...]:
    """The constraints in the options of a table, by their names. Raises as :func:`parse_constraint`."""
    checks = checks_of(options)
    folded: dict[str, str] = {}
    for name in checks:
        if (other := folded.setdefault(name.casefold(), name)) != name:
            raise InvalidInputError(
                f"the constraints {other!r} and {name!r} differ in upper and lower case only; name one of them otherwise",
                kind=INVALID,
            )
    return tuple(parse_constraint(name, checks[name], fields) for name in sorted(checks))


def with_plain_texts(options: Mapping[str, str], fields: Sequence[Field]) -> dict[str, str]:
    """The options of a new table, its constraints as they are kept. Raises as :func:`parse_constraints`."""
    parse_constraints(options, fields)
    plain = {f"{CHECK_PREFIX}{name}": stored_text(name, text, fields) for name, text in checks_of(options).items()}
    return {**options, **plain}


def check_constraint_name(name: object) -> None:
    """Raise InvalidInputError for a name that no constraint may have."""
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidInputError(
            f"expected as the name of a constraint 1 to {_LONGEST_NAME} printable characters, found {name!r:.100}", kind=INVALID
        )


def constraint_options(checks: Mapping[str, str]) -> dict[str, str]:
    """The options that keep conditions by their names. Raises InvalidInputError for what is no mapping of names."""
    if not isinstance(checks, Mapping):
        raise InvalidInputError(
            f"expected the conditions of rows by their names, such as {{'positive': 'price > 0'}}, found {checks!r:.80}",
            kind=INVALID,
        )
    for name in checks:
        check_constraint_name(name)
    return {f"{CHECK_PREFIX}{name}": text for name, text in checks.items()}


def naming_constraints(options: Mapping[str, str], fields: Sequence[Field], column: str) -> tuple[str, ...]:
    """The names of the constraints that look at a column; also those that cannot be parsed, which may."""
    naming = []
    for name, text in checks_of(options).items():
        try:
            if column in parse_constraint(name, text, fields).columns:
                naming.append(name)
        except TablestoreError:
            naming.append(name)
    return tuple(naming)


def violations(constraint: Constraint, rows: pa.Table) -> Mask:
    """The mask of the rows that violate a constraint. Raises InvalidInputError of kind ``constraint`` for a row of which it
    cannot be computed: a division by zero, say."""
    try:
        return mask_of(evaluate(constraint.violation, rows))
    except InvalidInputError as error:
        place = _first_uncomputed(constraint, rows)
        raise InvalidInputError(
            f"{constraint} cannot be computed for the row with {shown_values(rows, place, constraint.columns)}: {error.message}",
            kind=CONSTRAINT,
        ) from error


def violations_of_each(constraint: Constraint, rows: pa.Table) -> dict[int, str]:
    """The reasons by the place of each row that violates a constraint, or for which it cannot be computed."""
    if not rows.num_rows:
        return {}
    try:
        places = mask_of(evaluate(constraint.violation, rows)).nonzero()[0].tolist()
        return {place: f"{constraint}, is violated: {shown_values(rows, place, constraint.columns)}" for place in places}
    except InvalidInputError as error:
        if rows.num_rows == 1:
            return {0: f"{constraint}, cannot be computed: {shown_values(rows, 0, constraint.columns)}: {error.message}"}
    half = rows.num_rows // 2
    later = violations_of_each(constraint, rows.slice(half))
    return violations_of_each(constraint, rows.slice(0, half)) | {half + place: reason for place, reason in later.items()}


def shown_values(rows: pa.Table | pa.RecordBatch, place: int, names: Collection[str]) -> str:
    """Columns of one row, for messages."""
    values = ((name, rows.column(name)[place].as_py()) for name in names)
    return ", ".join(f"{name} = {'NULL' if value is None else _shown(value)}" for name, value in values)


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, (str, bytes)) else str(value)
    return text if len(text) <= _SHOWN_VALUE else f"{text[:_SHOWN_VALUE]}…"


def _first_uncomputed(constraint: Constraint, rows: pa.Table) -> int:
    """The place of the first row for which a constraint cannot be computed, by halves."""
    low, high = 0, rows.num_rows - 1
    while low < high:
        middle = (low + high) // 2
        try:
            evaluate(constraint.violation, rows.slice(low, middle - low + 1))
            low = middle + 1
        except InvalidInputError:
            high = middle
    return low
