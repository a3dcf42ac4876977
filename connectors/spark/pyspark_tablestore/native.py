"""Chooses the files that Spark's own scan of Parquet or ORC reads exactly as tablestore does, and reads them by it.

Where Spark would read other rows, and what is done about it:

* Parquet statistics of a float column leave NaN out, and dictionaries hold -0.0 and 0.0 as two values; Spark takes NaN for the
  greatest value and both zeros for one. So no condition on a float may reach the Parquet reader: such columns are *screened*, read
  through an expression that changes nothing and that Spark pushes no condition through. A float inside a struct cannot be screened
  without reading all of the struct: there the reader skips nothing.
* Session settings change the result of a scan (calendars of old dates, ignored files). Each has an option, which overrides it.
* Spark matches column names without regard to case. tablestore reads the files in which that is ambiguous.
* Some characters make a path a pattern, and cannot be escaped everywhere. Spark silently ignores names that begin with ``_`` or
  ``.``.
* A JVM whose locale has only ASCII cannot open files with other names.
* Spark lists more files than a setting says (32) by a job with a task for each. So a scan takes no more, and the table is a union
  of some scans; tablestore's tasks, which put small files together, read the rest.

* Of ORC Spark takes days before 1582-10-15 for those of the calendar of that time, cannot read times before 1970 that Arrow wrote,
  gives no TIMESTAMP without time zone, and says not where a row lies. Files that have such values are read by tablestore, and those
  whose statistics do not say that they have none. Nothing keeps conditions on a field of a struct out of its reader: structs with
  floats are read by tablestore too. A file all of whose columns are named ``_col…`` is read by places.

Types that Spark reads differently are read by tablestore too. A :class:`NativeRule` holds the decision, so that the process that
plans the tasks makes the same one.
"""

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyspark_tablestore.typemapping import spark_schema
from tablestore.distributed.plainfiles import OrcTerms, PlainFile
from tablestore.options import MIB
from tablestore.types.datatypes import (
    FLOAT_ROOTS,
    TIMESTAMP_ROOTS,
    AtomicType,
    DataType,
    Field,
    RowType,
    TypeRoot,
    VariantType,
    is_finer_than_micros,
    types_in,
)
from tablestore.types.rowposition import POSITION_FIELDS
from tablestore.types.schema import TableSchema

# Each scan of a union costs the planner some milliseconds, and each listing task and file some more. With more files than fit into
# that many scans, Spark reads all of them if they are large enough to outweigh the listing job, and otherwise only the largest.
MOST_SCANS = 32
LARGE_FILE_BYTES = 8 * MIB

_LISTING_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_ENCODING = "java_method('java.lang.System', 'getProperty', 'sun.jnu.encoding')"
_PATTERN = frozenset("{}[]*?\\")
_HIDDEN = ("_", ".")
_OPTIONS = {
    # Without it, a flipped bit in a page can come out as another number.
    "parquet.page.verify-checksum.enabled": "true",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "mergeSchema": "false",
    # Our files hold the proleptic Gregorian calendar, and do not carry the mark of Spark that says so.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
_ORC_OPTIONS = {
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "mergeSchema": "false",
    # Columns are found by their names.
    "orc.force.positional.evolution": "false",
}
# Settings by which Spark reads ORC as it was tried.
_ORC_SETTINGS = {"spark.sql.orc.impl": "native", "spark.sql.orc.enableVectorizedReader": "true"}
# The day before lies in another calendar; a condition on one of the days that were none says this day.
_FIRST_DAY = dt.date(1582, 10, 16)
_FIRST_MOMENT = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_BY_PLACE = "_col"
_SKIP_NOTHING = {f"parquet.filter.{by}.enabled": "false" for by in ("stats", "dictionary", "columnindex", "bloom", "record-level")}


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeRule:
    """The rule by which plain files are read natively. ``most_files`` of None sets no bound, ``orc`` of None leaves ORC out."""

    ascii_only: bool
    most_files: int | None
    orc: OrcTerms | None = None

    def choose(self, files: Sequence[PlainFile]) -> list[PlainFile]:
        """The files to read natively; the largest ones where they are too many. Pure."""
        # Files of one schema share the columns.
        columns = {id(file.columns): file.columns for file in files}
        clear = {key for key, schema in columns.items() if _are_clear(list(schema))}
        by_place = {key for key, schema in columns.items() if all(name.startswith(_BY_PLACE) for name in schema.names)}
        candidates = [
            file
            for file in files
            if id(file.columns) in clear
            and self.can_name(file.path)
            and not _is_hidden(file.path)
            and not (is_orc(file.path) and id(file.columns) in by_place)
        ]
        total = sum(file.size_bytes for file in candidates)
        if self.most_files is None or len(candidates) <= self.most_files or total >= LARGE_FILE_BYTES * len(candidates):
            return candidates
        return sorted(candidates, key=lambda file: (-file.size_bytes, file.path))[: self.most_files]

    def can_name(self, path: str) -> bool:
        """True if Spark can open a path, or a part of one."""
        return (path.isascii() or not self.ascii_only) and not _PATTERN & set(path)

    def to_json(self) -> dict[str, Any]:
        """The rule as JSON."""
        rule: dict[str, Any] = {"ascii-only": self.ascii_only, "most-files": self.most_files}
        if self.orc is not None:
            rule["orc"] = {"least": [[name, value.isoformat()] for name, value in self.orc.least], "ours": self.orc.ours_only}
        return rule

    @classmethod
    def from_json(cls, parsed: Mapping[str, Any]) -> "NativeRule":
        """The inverse of :meth:`to_json`."""
        orc = None
        if (terms := parsed.get("orc")) is not None:
            orc = OrcTerms(least=tuple((name, _moment(text)) for name, text in terms["least"]), ours_only=terms["ours"])
        return cls(ascii_only=parsed["ascii-only"], most_files=parsed["most-files"], orc=orc)


def _moment(text: str) -> dt.date:
    return dt.datetime.fromisoformat(text) if "T" in text else dt.date.fromisoformat(text)


def is_orc(path: str) -> bool:
    """True for the path of an ORC file."""
    return path.endswith(".orc")


def orc_terms(spark: SparkSession, schema: TableSchema, names: Collection[str]) -> OrcTerms | None:
    """The terms on which Spark reads these columns of ORC files; None if it reads them otherwise than we do, or there are none."""
    written = {value for key, value in schema.options.items() if key.startswith("file.format")}
    fields = [field for field in schema.fields if field.name in names]
    if not any("orc" in value for value in written) or not all(map(_is_in_orc, fields)):
        return None
    if any(str(spark.conf.get(key, value)).lower() != value for key, value in _ORC_SETTINGS.items()):
        return None
    starts = {TypeRoot.DATE: _FIRST_DAY, TypeRoot.TIMESTAMP_LTZ: _FIRST_MOMENT}
    roots = {field.name: field.type.root for field in fields if isinstance(field.type, AtomicType)}
    inner = {one.root for field in fields for one in types_in(field.type) if isinstance(one, AtomicType)}
    return OrcTerms(
        least=tuple((name, starts[root]) for name, root in roots.items() if root in starts),
        # Java's writers have instants as times of a clock, and texts that are filled up.
        ours_only=not inner.isdisjoint((TypeRoot.TIMESTAMP_LTZ, TypeRoot.CHAR)),
    )


def _is_in_orc(field: Field) -> bool:
    inner = {one.root for one in types_in(field.type) if isinstance(one, AtomicType)}
    if isinstance(field.type, AtomicType):
        return TypeRoot.TIMESTAMP not in inner
    has_moments = not inner.isdisjoint((TypeRoot.DATE, *TIMESTAMP_ROOTS))
    return not has_moments and not (isinstance(field.type, RowType) and _has_float(field.type))


def listing_threshold(spark: SparkSession) -> int:
    """The number of files that Spark lists without a job; 0 if all are to be listed by one."""
    return int(spark.conf.get(_LISTING_THRESHOLD) or 0)


def names_unicode_paths(spark: SparkSession) -> bool:
    """True if the JVMs can open files whose names are not ASCII. Runs a small job."""
    # The first is computed where the query is planned, the second where tasks run.
    frames = spark.sql("SELECT id FROM VALUES (1L) AS one (id)"), spark.range(1)
    encodings = {frame.selectExpr(f"{_ENCODING} AS encoding").collect()[0].encoding for frame in frames}
    return all(str(encoding).upper() in ("UTF-8", "UTF8") for encoding in encodings)


def native_scan(spark: SparkSession, paths: Sequence[str], fields: Sequence[Field], *, positions: bool = False) -> DataFrame:
    """The rows of Parquet and ORC files, by absolute local paths: at least one. With ``positions``, where each row lies comes
    behind the fields; these are files of Parquet."""
    scans = _scans(spark, paths, fields)
    if not positions:
        return screened(reduce(DataFrame.union, scans), fields)
    file_name, position = (field.name for field in POSITION_FIELDS)
    # Hidden columns, which a union does not have. Spark counts the rows that it skips too.
    where = _decoded(sf.col("_metadata.file_name")).alias(file_name), sf.col("_metadata.row_index").alias(position)
    return reduce(DataFrame.union, (scan.select(*map(_screened, fields), *where) for scan in scans))


def unscreened_scan(spark: SparkSession, paths: Sequence[str], fields: Sequence[Field]) -> DataFrame:
    """As :func:`native_scan`, for conditions on columns that are no floats: all others come behind :func:`screened`."""
    return reduce(DataFrame.union, _scans(spark, paths, fields))


def screened(rows: DataFrame, fields: Sequence[Field], *, has_more: bool = False) -> DataFrame:
    """These columns of a scan, for any condition. ``has_more``: whether it has others."""
    # Each step takes the planner some milliseconds.
    return rows.select(*map(_screened, fields)) if has_more or any(map(_needs_screen, fields)) else rows


def renewed(rows: DataFrame) -> DataFrame:
    """The same rows in columns of their own: two relations of a query that are made of one scan stay two relations."""
    return rows.selectExpr(*(f"{name} AS {name}" for name in map(quoted, rows.columns)))


def _scans(spark: SparkSession, paths: Sequence[str], fields: Sequence[Field]) -> list[DataFrame]:
    nested = any(isinstance(field.type, RowType) and _has_float(field.type) for field in fields)
    schema = spark_schema(fields)
    reader = spark.read.options(**_OPTIONS, **(_SKIP_NOTHING if nested else {})).schema(schema)
    step = listing_threshold(spark)
    if step < 1 or len(paths) > step * MOST_SCANS:
        step = len(paths)
    plain, orc = ([f"file:{path}" for path in paths if is_orc(path) is chosen] for chosen in (False, True))
    scans = [reader.parquet(*plain[start : start + step]) for start in range(0, len(plain), step)]
    if orc:
        orc_reader = spark.read.options(**_ORC_OPTIONS).schema(schema)
        scans += [orc_reader.orc(orc[start : start + step]) for start in range(0, len(orc), step)]
    return scans


def column(name: str) -> Column:
    """A column by its exact name, whatever is in it."""
    return sf.col(quoted(name))


def _decoded(name: Column) -> Column:
    """A file's name, which Spark gives as a part of a URL. In URLs of forms a plus stands for a blank."""
    plain = sf.url_decode(sf.replace(name, sf.lit("+"), sf.lit("%2B")))
    return sf.when(sf.contains(name, sf.lit("%")), plain).otherwise(name)


def quoted(name: str) -> str:
    """A name as SQL text."""
    return "`" + name.replace("`", "``") + "`"


def _needs_screen(field: Field) -> bool:
    return isinstance(field.type, AtomicType) and _has_float(field.type)


def _screened(field: Field) -> Column | str:
    # Spark makes a column of a plain name in one step.
    if not _needs_screen(field):
        return quoted(field.name)
    # The value itself, whether it is NaN or not; the optimiser does not see that.
    metadata = {} if field.description is None else {"comment": field.description}
    plain = column(field.name)
    return sf.nanvl(plain, plain).alias(field.name, metadata=metadata)


def _has_float(data_type: DataType) -> bool:
    """True if there is a float that a condition can name: inside structs, for of lists and maps Spark pushes nothing."""
    match data_type:
        case AtomicType():
            return data_type.root in FLOAT_ROOTS
        case RowType():
            return any(_has_float(field.type) for field in data_type.fields)
        case _:
            return False


def _is_hidden(path: str) -> bool:
    return path.rpartition("/")[2].startswith(_HIDDEN)


def _are_clear(columns: Sequence[pa.Field]) -> bool:
    """True if no two columns, and no two fields of a struct, have names that are equal without regard to case."""
    return len({_folded(column.name) for column in columns}) == len(columns) and all(
        _are_clear([column.type.field(position) for position in range(column.type.num_fields)]) for column in columns
    )


def _folded(name: str) -> str:
    # Equal for all that Java may take for equal: it compares in upper case and in lower case, and loses the dot of a Turkish I.
    return name.upper().casefold().replace("\u0307", "")


def reads_alike(data_type: DataType) -> bool:
    """True if Spark's Parquet scan gives the values that we give."""
    return not any(
        is_finer_than_micros(part) or isinstance(part, VariantType) or (isinstance(part, AtomicType) and part.root is TypeRoot.TIME)
        for part in types_in(data_type)
    )
