"""Chooses the files that DuckDB's own Parquet scan reads exactly as tablestore does, and writes that scan.

Where DuckDB would read other rows, and what is done about it:

* Parquet statistics of a float column leave NaN out, and DuckDB takes NaN for the greatest value: ``can_have_nan``. Conditions on
  floats then prune row groups rightly. But DuckDB answers ``min`` and ``max`` of a column of a single file from its statistics,
  and says NaN, or a zero of the other sign, for they hold -0.0 and 0.0 as one. So the floats of a single file are read times one:
  conditions still reach the scan, and statistics no longer answer. Of other types they are exact (``is_max_value_exact``).
* A text or binary column whose values are all equal but for some NULLs comes out as NULL everywhere if DuckDB 2.0 filters it in
  the scan. So no condition on such a column that holds NULLs reaches the scan: it is *screened*, read through an expression that
  changes nothing and that no condition is pushed through. Of a struct with such a field nobody counts the NULLs: it always is.
* Folders named ``a=b`` become columns: ``hive_partitioning`` is off, the files hold the partition columns.
* DuckDB matches column names without regard to case. tablestore reads the files in which that is ambiguous.
* Some characters make a path a pattern, and cannot be escaped.
* DuckDB does not verify the checksums of pages: tablestore does, once for each file (``checksums``).

Timestamps finer than microseconds lie in a layout (INT96) that DuckDB cuts to microseconds, and files of others may have VARIANT in
parts: tablestore reads them.
"""

from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa

from tablestore.distributed.plainfiles import PlainFile
from tablestore.types.datatypes import (
    LENGTH_ROOTS,
    AtomicType,
    DataType,
    Field,
    RowType,
    VariantType,
    is_finer_than_micros,
    is_float,
    types_in,
)
from tablestore.types.rowposition import DATA_FILE_COLUMN, ROW_POSITION_COLUMN
from tablestore_duckdb.quoting import identifier, literal

_PATTERN = frozenset("*?[]{}")
CAN_HAVE_NAN = "can_have_nan=true"
_OPTIONS = f"hive_partitioning=false, union_by_name=false, {CAN_HAVE_NAN}"


def reads_alike(data_type: DataType) -> bool:
    """True if DuckDB's Parquet scan gives the values that we give."""
    return not any(is_finer_than_micros(one) or isinstance(one, VariantType) for one in types_in(data_type))


def choose(files: Sequence[PlainFile]) -> Iterable[PlainFile]:
    """The files that DuckDB reads. Pure."""
    # Files of one schema share the columns.
    columns = {id(file.columns): file.columns for file in files}
    clear = {key for key, one in columns.items() if are_clear(list(one))}
    return [file for file in files if id(file.columns) in clear and can_name(file.path)]


def can_name(path: str) -> bool:
    """True if DuckDB opens a path as the one file that it names."""
    return not _PATTERN & set(path)


def are_clear(columns: Sequence[pa.Field]) -> bool:
    """True if no two columns, and no two fields of a struct, have names that are equal without regard to case."""
    return len({column.name.casefold() for column in columns}) == len(columns) and all(
        are_clear([column.type.field(position) for position in range(column.type.num_fields)]) for column in columns
    )


def is_screened(data_type: DataType) -> bool:
    """True if conditions on a column of this type have to stay out of the scan if it holds NULLs."""
    return isinstance(data_type, AtomicType) and data_type.root in LENGTH_ROOTS


def has_screened_field(data_type: DataType) -> bool:
    """True if it is a struct with such a column inside."""
    return isinstance(data_type, RowType) and any(is_screened(f.type) or has_screened_field(f.type) for f in data_type.fields)


def native_scan(paths: Sequence[str], fields: Sequence[Field], *, screening: Collection[str], positions: bool) -> str:
    """SQL that reads the columns of Parquet files, by absolute local paths; ``positions``: and where each row lies."""
    read = {
        field.name: read_column(identifier(field.name), field.type, is_screened=field.name in screening, is_alone=len(paths) == 1)
        for field in fields
    }
    chosen = ", ".join(f"{column} AS {identifier(name)}" for name, column in read.items())
    options = _OPTIONS
    if positions:
        chosen += f", parse_filename(filename) AS {DATA_FILE_COLUMN}, file_row_number AS {ROW_POSITION_COLUMN}"
        options += ", filename=true, file_row_number=true"
    return f"SELECT {chosen} FROM read_parquet([{', '.join(map(literal, paths))}], {options})"


def read_column(column: str, data_type: DataType, *, is_screened: bool, is_alone: bool) -> str:
    """A column of files as it is read; ``is_alone``: of a single file, of whose floats statistics must not answer."""
    if is_alone and is_float(data_type):
        return f"{column} * 1"
    if is_screened or (is_alone and isinstance(data_type, RowType) and any(map(is_float, types_in(data_type)))):
        return screened(column)
    return column


def screened(column: str) -> str:
    """A column that no condition is pushed through, and of which statistics do not answer."""
    return f"list_value({column})[1]"


def names_of(columns: Sequence[str]) -> str:
    """A list of columns in SQL."""
    return ", ".join(map(identifier, columns))
