"""Reads the aggregate function of a column from the options, and checks it against the column's type.

fields.<column>.ignore-retract | distinct | list-agg-delimiter | nested-key | count-limit      settings of its function
"""

from tablestore import options as opt
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.lsm.functions.mergefunction import ColumnFunction
from tablestore.names import did_you_mean, split_names
from tablestore.options import FIELDS_PREFIX, TableOptions
from tablestore.types.datatypes import ArrayType, AtomicType, DataType, Field, MapType, RowType, TypeRoot
from tablestore.types.typestring import type_to_sql

# Settings of Paimon that change results and that we do not have.
MISSING_SETTINGS = ("nested-sequence-field", "nested-key-null-strategy")
_MISSING_FUNCTIONS = ("merge_map_with_keytime", "nested_partial_update")
_LEGACY_NAMES = {"first_not_null_value": "first_non_null_value"}
_NUMERIC = frozenset(
    {TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT, TypeRoot.FLOAT, TypeRoot.DOUBLE, TypeRoot.DECIMAL}
)
_ROOTS = {
    **dict.fromkeys(("sum", "product"), _NUMERIC),
    **dict.fromkeys(("bool_and", "bool_or"), frozenset({TypeRoot.BOOLEAN})),
    "listagg": frozenset({TypeRoot.VARCHAR}),
    **dict.fromkeys(("rbm32", "rbm64", "theta_sketch", "hll_sketch"), frozenset({TypeRoot.VARBINARY})),
}


def flag(options: TableOptions, key: str) -> bool:
    """An option that is not in the registry, as true or false (default)."""
    return bool(opt.parse_bool(options.get(key, "false")))


def column_function(options: TableOptions, field: Field, name: str) -> ColumnFunction:
    """The function ``name`` of a column with its settings. Raises InvalidInputError or UnsupportedError for an unknown function,
    or one that does not take this type."""
    # The folding code is loaded for tables that have such columns.
    from tablestore.lsm.functions.aggregate import FUNCTIONS

    name = name.strip().lower()
    name = _LEGACY_NAMES.get(name, name)
    prefix = f"{FIELDS_PREFIX}{field.name}."
    if name in _MISSING_FUNCTIONS:
        raise UnsupportedError(
            f"option {prefix}aggregate-function: tablestore does not have {name}; it has {', '.join(FUNCTIONS)}",
            kind="aggregate-function",
        )
    if name not in FUNCTIONS:
        raise InvalidInputError(
            f"option {prefix}aggregate-function: unknown function {name!r:.100}{did_you_mean(name, FUNCTIONS)}; "
            f"known are {', '.join(FUNCTIONS)}",
            kind="aggregate-function",
        )
    for setting in MISSING_SETTINGS:
        if options.get(prefix + setting):
            raise UnsupportedError(f"tablestore does not have the option {prefix}{setting}; remove it", kind="unsupported-option")
    _check_type(field, name)
    keys = split_names(options.get(f"{prefix}nested-key", ""))
    if name == "nested_update":
        _check_nested_key(field, keys, f"{prefix}nested-key")
    limit = options.get(f"{prefix}count-limit")
    return ColumnFunction(
        name=name,
        ignore_retract=flag(options, f"{prefix}ignore-retract"),
        distinct=flag(options, f"{prefix}distinct"),
        delimiter=options.get(f"{prefix}list-agg-delimiter", ","),
        nested_key=keys,
        count_limit=None if limit is None else opt.parse_int(limit),
    )


def _check_type(field: Field, name: str) -> None:
    kind: DataType = field.type
    if name in _ROOTS:
        fits = isinstance(kind, AtomicType) and kind.root in _ROOTS[name]
        expected = " or ".join(sorted(root.value for root in _ROOTS[name]))
    elif name in ("min", "max"):
        fits, expected = isinstance(kind, AtomicType), "a type without parts"
    elif name == "collect":
        fits, expected = isinstance(kind, ArrayType), "ARRAY"
    elif name == "merge_map":
        fits, expected = isinstance(kind, MapType), "MAP"
    elif name == "nested_update":
        fits, expected = isinstance(kind, ArrayType) and isinstance(kind.element, RowType), "ARRAY<ROW<...>>"
    else:
        return
    if not fits:
        raise InvalidInputError(
            f"the aggregate function {name} of column {field.name!r} needs a column of type {expected}, found {type_to_sql(kind)}",
            kind="aggregate-type",
        )
    if name == "product" and isinstance(kind, AtomicType) and kind.root is TypeRoot.DECIMAL and (kind.precision or 10) > 37:
        raise UnsupportedError(
            f"the aggregate function product of column {field.name!r} works up to DECIMAL(37), found {type_to_sql(kind)}",
            kind="aggregate-type",
        )


def _check_nested_key(field: Field, names: tuple[str, ...], key: str) -> None:
    assert isinstance(field.type, ArrayType) and isinstance(field.type.element, RowType), "the type was checked"
    nested_names = [nested.name for nested in field.type.element.fields]
    for name in names:
        if name not in nested_names:
            raise InvalidInputError(
                f"option {key} names {name!r}, which the rows in column {field.name!r} do not have"
                f"{did_you_mean(name, nested_names)} (they have {', '.join(nested_names)})",
                kind="unknown-column",
            )
